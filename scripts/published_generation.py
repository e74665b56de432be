#!/usr/bin/env python3
"""Simulates FlexGen's table of offloaded generation on one T4, and prints each row with its error.

With --write, writes docs/evidence/generation.md and a scenario for each cell of the lecture's table; with --check, simulates the rows of OPT-6.7B and OPT-30B at a prompt of 512 tokens and
ends with 1 where the page holds others.
"""
import argparse
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks" / "published" / "inference"))

import flexgen

PAGE = ROOT / "docs" / "evidence" / "generation.md"
TOLERANCE = 0.15
HEAD = """# Offloaded generation: FlexGen's table

FlexGen's authors timed OPT models on one T4 of 16 GB, with 208 GB of memory and 1.5 TB of SSD: 32 new tokens for each text, prompt and
generation together ([rows](../../benchmarks/published/inference/tables/flexgen.csv)). Here the same placements are simulated, on
[flexgen_t4](../../hardware_profiles/flexgen_t4.yaml). Its rates are specifications and the constants of FlexGen's own cost model.

Two figures are from rows, which are marked: how fast codes of 4 bits are read (OPT-6.7B, prompt 256), and how fast memory that is not pinned
is copied (OPT-30B, prompt 256). A prompt of 512 tokens has [a scenario a cell](../../scenarios/flexgen_t4). All other rows are predictions, and none is tuned. A miss is beyond 15%. The disk's rates are those that its
cloud specifies: with the cost model's, OPT-175B would be four times slower than it was.
"""
NOTES = """
Why rows miss: DeepSpeed's row is read as pinned weights that come one layer ahead. Its product waits on the host for each of a layer's
sixteen tensors, which no figure of the machine says. Accelerate was read in a later version than the one that was measured. The published
0.01 of the largest model has one digit.

Petals ran on 1, 4 and 24 T4s with six requests at once; its rows are tokens a second and GPU
([flexgen_t4_swarm](../../hardware_profiles/flexgen_t4_swarm.yaml), whose network is a guess). Its layers are in 8 bits, as they would not
fit in 16. Here codes become numbers before each product; its library multiplies by 8 bits.

FlexGen's rows at a prompt of 1,024 have no published rate.
FlexGen timed the first generated token of its larger models and took the others to be like it, while here each token attends to one more.
"""


def line(row):
    published = "" if row.published is None else f"{row.published:g}"
    error = "" if row.error is None else f"{row.error:+.1%}"
    missed = row.error is not None and abs(row.error) > TOLERANCE
    remark = "calibrated" if row.calibrated else "**miss**" if missed else ""
    return (f"| {row.system} | {row.model} | {row.prompt} | {published} | {row.predicted:.4g} | {error} | {row.first_token_s:.4g} s | {remark} |")


def pick_line(pick):
    slower = " **slower**" if pick.tokens_per_s < pick.published_placement else ""
    return f"| {pick.system} | {pick.model} | {pick.prompt} | {pick.published_placement:.4g} | {pick.tokens_per_s:.4g}{slower} | {pick.words} |"


def order(rows):
    """Of a prompt of 512 tokens: pairs of systems over 5% apart, and those that come out the other way round."""
    pairs, wrong = 0, []
    for model in flexgen.WEIGHTS_GIB:
        column = [row for row in rows if row.model == model and row.prompt == 512 and row.published]
        for i, a in enumerate(column):
            for b in column[i + 1:]:
                if max(a.published, b.published) <= 1.05 * min(a.published, b.published):
                    continue
                pairs += 1
                if (a.published > b.published) != (a.predicted > b.predicted):
                    wrong.append(f"{a.system} and {b.system} on {model}")
    return pairs, wrong


def page_text(rows, picks):
    judged = [row for row in rows if row.system.startswith("FlexGen") and row.published and not row.calibrated]
    errors = [abs(row.error) for row in judged]
    pairs, wrong = order(rows)
    answer = (f"\nOf FlexGen's {len(judged)} rows that nothing was taken from, the median error is {statistics.median(errors):.1%}, the worst {max(errors):.1%}. "
              f"Of {pairs} pairs of systems that are over 5% apart, {pairs - len(wrong)} come out in their order{': not ' + ', '.join(wrong) if wrong else ''}.\n")
    table = "\n".join(line(row) for row in rows)
    searched = "\n".join(pick_line(pick) for pick in picks)
    better = sorted(pick.tokens_per_s / pick.published_placement for pick in picks)
    return (f"{HEAD}{answer}{NOTES}\n`scripts/published_generation.py` simulates all rows anew, in a minute.\n\n"
            f"| system | model | prompt | published, tokens/s | predicted | error | first token after | |\n|---|---|--:|--:|--:|--:|--:|---|\n{table}\n"
            f"\n## What the search finds\n\nThe same questions with batch, block and placement left open (`tandem plan --exact`), beside the placement that FlexGen's authors chose. "
            f"Both are simulated; the search is free of what FlexLLMGen's code cannot do, such as half a tensor on the disk. Its pick is {better[0]:.2f} to {better[-1]:.2f} times as fast.\n\n"
            f"| system | model | prompt | their placement, tokens/s | the pick | which |\n|---|---|--:|--:|--:|---|\n{searched}\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--write", action="store_true", help="write the page")
    p.add_argument("--check", action="store_true", help="compare some rows with the page")
    arguments = p.parse_args()
    quick = arguments.check and not arguments.write
    rows = flexgen.rows(lambda row: not quick or (row["prompt"] == "512" and row["model"] != "opt-175b"))
    print("\n".join(line(row) for row in rows))
    picks = flexgen.picks(lambda row: not quick or (row["prompt"] == "512" and row["model"] == "opt-6.7b"))
    print("\n".join(pick_line(pick) for pick in picks))
    if arguments.write:
        PAGE.write_text(page_text(rows, picks), encoding="utf-8")
        for path, text in flexgen.cells().items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    elif arguments.check:
        held = PAGE.read_text(encoding="utf-8").splitlines()
        wrong = [text for text in [line(row) for row in rows] + [pick_line(pick) for pick in picks] if text not in held]
        wrong += [f"(scenario) {path}" for path, text in flexgen.cells().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
        if wrong:
            sys.exit("docs/evidence/generation.md holds other rows than these:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
