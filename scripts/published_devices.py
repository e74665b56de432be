#!/usr/bin/env python3
"""Simulates what others published of trainings on many devices, group by group, and prints each row with its error.

With --write, writes docs/evidence/published_devices.md; with --check, simulates some rows of each group and ends with 1 where the page
holds others. scripts/published_parallel.py does the same for Megatron-LM's and Megatron-DeepSpeed's tables.
"""
import argparse
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks" / "published" / folder) for folder in ("multimodal", "parallel")]

import devices

PAGE = ROOT / "docs" / "evidence" / "published_devices.md"


def shown(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def line(row, tolerance):
    error = row.predicted / row.published - 1
    remark = "calibrated" if row.calibrated else "**miss**" if abs(error) > tolerance else ""
    return f"| {row.what} | {shown(row.published)} | {shown(row.predicted)} | {error:+.1%} | {remark} |"


def sizes_of_errors(rows):
    return [abs(row.error) for row in rows if not row.calibrated]


def summary(group, rows):
    errors = sizes_of_errors(rows)
    misses = sum(error > group.tolerance for error in errors)
    return (f"| [{group.title}](#{group.anchor()}) | {len(errors)} | {statistics.median(errors):.1%} | {statistics.mean(errors):.1%} | "
            f"{max(errors):.1%} | {misses} |")


def section(group, rows):
    table = "\n".join(line(row, group.tolerance) for row in rows)
    return f"## {group.title}\n\n{group.notes}\n\n| what | published, {group.unit} | predicted | error | |\n|---|--:|--:|--:|---|\n{table}\n"


def page_text(of_groups):
    head = ("# Published trainings on many devices\n\nWhat papers and products measured of trainings that many devices share, beside simulations. A group's machine has "
            "figures of specifications, and an efficiency that was taken from a row: that row is marked and not counted. No row is tuned.\n\n"
            "| group | rows | median error | mean | worst | misses |\n|---|--:|--:|--:|--:|--:|\n")
    left_out = "\n".join(f"| {what} | {reason} |" for what, reason in devices.LEFT_OUT)
    return (head + "\n".join(summary(group, rows) for group, rows in of_groups) +
            "\n\nMegatron-LM's and Megatron-DeepSpeed's tables have [pages](megatron.md) [of their own](megatron_deepspeed.md), ZeRO-Offload's and ZeRO-Infinity's figures "
            "are [in systems](../systems.md#published-figures). A miss is beyond the group's tolerance: 8% of a time or a rate, 5% of memory, 25% of a ratio.\n\n"
            "`scripts/published_devices.py` simulates all rows anew, in minutes.\n\n" +
            "\n".join(section(group, rows) for group, rows in of_groups) +
            f"\n## What is not simulated\n\n| rows | why |\n|---|---|\n{left_out}\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--write", action="store_true", help="write the page")
    p.add_argument("--check", action="store_true", help="compare some rows of each group")
    p.add_argument("--group", help="only the groups with this in their title")
    arguments = p.parse_args()
    if arguments.write and (arguments.check or arguments.group):
        p.error("--write takes all rows of all groups")
    of_groups = []
    for group in devices.GROUPS:
        if arguments.group and arguments.group not in group.title:
            continue
        rows = group.rows(quick=arguments.check)
        if rows:
            of_groups.append((group, rows))
            print("\n".join([*[line(row, group.tolerance) for row in rows], summary(group, rows)]), flush=True)
    if arguments.write:
        PAGE.write_text(page_text(of_groups), encoding="utf-8")
    if arguments.check:
        page = PAGE.read_text(encoding="utf-8").splitlines()
        wrong = [row.what for group, rows in of_groups for row in rows if line(row, group.tolerance) not in page]
        if wrong:
            sys.exit(f"{PAGE.relative_to(ROOT)} holds other rows than these: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
