#!/usr/bin/env python3
"""Simulates what papers measured of trainings that many devices share, and prints each row with its error.

With --write, writes docs/evidence/megatron.md; with --check, ends with 1 where the page holds other rows than those that take
seconds, on at most 512 devices.
"""
import argparse
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks" / "published" / folder) for folder in ("multimodal", "parallel")]

import megatron

PAGE = ROOT / "docs" / "evidence" / "megatron.md"
QUICK_GPUS = 512


def line(row):
    error = row.predicted / row.published - 1
    return f"| {row.what} | {row.published:.4g} | {row.predicted:.4g} | {error:+.1%} | {'**miss**' if abs(error) > megatron.TOLERANCE else ''} |"


def page_text(rows):
    errors = [abs(row.error) for row in rows]
    return (f"# Megatron-LM on up to 3,072 GPUs\n\nThroughput of {len(rows)} trainings of 1.7 billion to 1 trillion parameters: median error "
            f"{statistics.median(errors):.1%}, mean {statistics.mean(errors):.1%}, worst {max(errors):.1%}. No figure was taken from these rows.\n\n"
            f"{megatron.NOTES}\n\nA row is a miss beyond {megatron.TOLERANCE:.0%}. `scripts/published_parallel.py` simulates them anew, in minutes.\n\n"
            "| training | published, TFLOPS a GPU | predicted | error | |\n|---|--:|--:|--:|---|\n" + "\n".join(map(line, rows)) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--write", action="store_true", help="write the page")
    p.add_argument("--check", action="store_true", help="compare the page's rows of at most 512 devices")
    arguments = p.parse_args()
    rows = []
    for published in megatron.table():
        if arguments.check and int(published["gpus"]) > QUICK_GPUS:
            continue
        rows.append(megatron.row(published))
        print(line(rows[-1]), flush=True)
    if arguments.write:
        PAGE.write_text(page_text(rows), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8") if arguments.check else ""
    wrong = [row.what for row in rows if arguments.check and line(row) not in text]
    if wrong:
        sys.exit(f"docs/evidence/megatron.md holds other rows than these: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
