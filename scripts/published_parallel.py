#!/usr/bin/env python3
"""Simulates what others measured of trainings that many devices share, and prints each row with its error.

With --write, writes docs/evidence/megatron.md, and megatron_deepspeed.md with a table of all rows; with --check, ends with 1 where
the pages hold other rows than those that take seconds; with --fit, takes a machine's figures anew from a tenth of the steps of
Megatron-DeepSpeed, in minutes.
"""
import argparse
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks" / "published" / folder) for folder in ("multimodal", "parallel")]

import megatron
import megatron_deepspeed
import published

EVIDENCE = ROOT / "docs" / "evidence"
PAGE = EVIDENCE / "megatron.md"
STEPS_PAGE, STEPS_TABLE = EVIDENCE / "megatron_deepspeed.md", EVIDENCE / "megatron_deepspeed.csv"
QUICK_GPUS, QUICK_STEPS = 512, 40


def shown(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def line(row, tolerance=megatron.TOLERANCE):
    error = row.predicted / row.published - 1
    return f"| {row.what} | {shown(row.published)} | {shown(row.predicted)} | {error:+.1%} | {'**miss**' if abs(error) > tolerance else ''} |"


def page_text(rows):
    errors = [abs(row.error) for row in rows]
    return (f"# Megatron-LM on up to 3,072 GPUs\n\nThroughput of {len(rows)} trainings of 1.7 billion to 1 trillion parameters: median error "
            f"{statistics.median(errors):.1%}, mean {statistics.mean(errors):.1%}, worst {max(errors):.1%}. No figure was taken from these rows.\n\n"
            f"{megatron.NOTES}\n\nA row is a miss beyond {megatron.TOLERANCE:.0%}. `scripts/published_parallel.py` simulates them anew, in minutes.\n\n"
            "| training | published, TFLOPS a GPU | predicted | error | |\n|---|--:|--:|--:|---|\n" + "\n".join(map(line, rows)) + "\n")


def of_steps(rows):
    """The lines of the table of all steps: what, published, predicted, error, whether a figure was taken from it."""
    return [f"{row.system},\"{row.what}\",{row.published:.1f},{row.predicted:.1f},{row.error:+.3f},{'fitted' if row.calibrated else 'held out'}"
            for row in rows]


def steps_text(rows):
    held_out = {kind: [row for row in rows if row.system == hosts and not row.calibrated] for kind, hosts in megatron_deepspeed.HOSTS.items()}
    means = {kind: published.mean_error(of_kind) for kind, of_kind in held_out.items()}
    medians = {kind: statistics.median(abs(row.error) for row in of_kind) for kind, of_kind in held_out.items()}

    def table(of_kind, kind):
        return ("| training | published, ms | predicted | error | |\n|---|--:|--:|--:|---|\n" +
                "\n".join(line(row, megatron_deepspeed.TOLERANCE[kind]) for row in of_kind))
    worst = sorted(held_out["single"], key=lambda row: -abs(row.error))[:40]
    return (f"# Megatron-DeepSpeed, step by step\n\n{len(rows)} measured steps of GPTs on A100s, most of them held out. {len(held_out['single'])} of one host are "
            f"predicted with a mean error of {means['single']:.1%}, a median of {medians['single']:.1%}; {len(held_out['multi'])} of several hosts with "
            f"{means['multi']:.1%} and {medians['multi']:.1%}.\n\n{megatron_deepspeed.NOTES}\n\nEvery step is in [one table](megatron_deepspeed.csv). "
            "`scripts/published_parallel.py` simulates them anew, in seconds; with `--fit` it takes the machine's figures anew, in minutes.\n\n"
            f"## Several hosts\n\nA row is a miss beyond {megatron_deepspeed.TOLERANCE['multi']:.0%}.\n\n{table(held_out['multi'], 'multi')}\n\n"
            f"## One host: the {len(worst)} worst of {len(held_out['single'])}\n\nA row is a miss beyond {megatron_deepspeed.TOLERANCE['single']:.0%}.\n\n{table(worst, 'single')}\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--write", action="store_true", help="write the pages")
    p.add_argument("--check", action="store_true", help="compare the rows that take seconds")
    p.add_argument("--fit", action="store_true", help="take the figures of Megatron-DeepSpeed's machine anew")
    arguments = p.parse_args()
    if arguments.fit:
        megatron_deepspeed.fit_machine()
    rows = []
    for of_table in megatron.table():
        if arguments.check and int(of_table["gpus"]) > QUICK_GPUS:
            continue
        rows.append(megatron.row(of_table))
        print(line(rows[-1]), flush=True)
    steps = megatron_deepspeed.rows(QUICK_STEPS if arguments.check else None)
    print("\n".join(of_steps(steps)))
    if arguments.write:
        PAGE.write_text(page_text(rows), encoding="utf-8")
        STEPS_PAGE.write_text(steps_text(steps), encoding="utf-8")
        STEPS_TABLE.write_text("hosts,training,measured ms,predicted ms,error,figures of the machine\n" + "\n".join(of_steps(steps)) + "\n", encoding="utf-8")
    if arguments.check:
        wrong = [row.what for row in rows if line(row) not in PAGE.read_text(encoding="utf-8")]
        wrong += [row for row in of_steps(steps) if row not in STEPS_TABLE.read_text(encoding="utf-8").splitlines()]
        if wrong:
            sys.exit(f"docs/evidence holds other rows than these: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
