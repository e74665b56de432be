#!/usr/bin/env python3
"""Simulates what papers and products measured of input pipelines, multi-modal systems and optimizers on the CPU.

Prints every row with its error, misses marked. With --write, writes docs/evidence: a page a group and all rows as CSV;
with --check, ends with 1 where the pages hold other tables.
"""
import argparse
import concurrent.futures
import csv
import io
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks" / "published" / "multimodal"))

import gnn
import optimizers
import pipelines
import places
import video

EVIDENCE = ROOT / "docs" / "evidence"
PAGES = [module.PAGE for module in (gnn, pipelines, video, optimizers, places)]
FOLDER = "benchmarks/published/multimodal"


def shown(value, unit=""):
    """Published or predicted, with four digits; a range by its ends."""
    if isinstance(value, tuple):
        return shown(value[0]) if value[0] == value[1] else f"{shown(value[0])} to {shown(value[1])}"
    return value if isinstance(value, str) else f"{value:.4g}" + (f" {unit}" if unit else "")


def verdict(row, tolerance):
    if row.calibrated:
        return "calibrated"
    return "**miss**" if row.missed(tolerance) else ""


def table(page, rows):
    """In markdown."""
    lines = ["| system | case | published | predicted | error | |", "|---|---|--:|--:|--:|---|"]
    for row in rows:
        error = "" if row.error is None else f"{row.error:+.1%}"
        lines.append(f"| {row.system} | {row.what} | {shown(row.published, row.unit)} | {shown(row.predicted, row.unit)} "
                     f"| {error} | {verdict(row, page.tolerance)} |")
    return "\n".join(lines)


def page_text(page, rows):
    misses = sum(row.missed(page.tolerance) for row in rows if not row.calibrated)
    return (f"# {page.title}\n\n{page.answer(rows)}\n\n{page.notes}\n\n"
            f"A row is a miss beyond {page.tolerance:.0%}, or outside a range, or with another choice: {misses} of "
            f"{sum(not row.calibrated for row in rows)} are. Sources stand in `{FOLDER}/tables`.\n"
            f"`scripts/published_multimodal.py --only {page.name}` simulates them anew.\n\n{table(page, rows)}\n")


def csv_text(found):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["page", "system", "case", "unit", "published", "predicted", "error", "verdict"])
    for page, rows in found:
        for row in rows:
            writer.writerow([page.name, row.system, row.what, row.unit, shown(row.published), shown(row.predicted),
                             "" if row.error is None else f"{row.error:.4f}", verdict(row, page.tolerance).strip("*")])
    return out.getvalue()


def index_text(found):
    lines = ["# Evidence: how good it is, and how one knows", "",
             "| page | what it has |", "|---|---|",
             "| [accuracy](../accuracy.md) | predictions beside real runs, every row, and how sure a prediction is |",
             "| [performance](../performance.md) | live training on a GPU beside PyTorch, torchao and DeepSpeed, and the bound that no schedule beats |",
             "| [published figures](../systems.md#published-figures) | figures of the literature's systems beside simulations |",
             "| [Megatron-LM on up to 3,072 GPUs](megatron.md) | ten published trainings beside simulations |",
             "| [Megatron-DeepSpeed, step by step](megatron_deepspeed.md) | 772 measured steps on 2 to 512 A100s beside predictions |",
             "| [published trainings on many devices](published_devices.md) | what others measured of many devices, group by group, beside simulations |",
             "| [Two GPUs of one host](two_gpus.md) | steps that two H200s share, beside what was said and PyTorch's |",
             "| [Text on a GPU, live](live_generation.md) | tokens a second of an OPT-6.7B with 8 GiB, beside what was said and Accelerate |",
             "| [offloaded generation](generation.md) | FlexGen's table of tokens a second on one T4, beside simulations |",
             "| [hybrid training](hybrid.md) | a thesis' forward passes on CPU and GPU, and whether its CPU should train |",
             "| [what other tools offer](tools.md) | which tool answers which question |",
             "| [benchmarks](../benchmarks.md) | what Tandem itself takes |", "",
             "## Published measurements beside simulations", "",
             "What papers and products measured of input pipelines, multi-modal systems and optimizers on the CPU, and what `tandem simulate`",
             "predicts of it. Every prediction is a simulation, none a formula. Every row that was tried is here, misses too; no row is tuned, and",
             "those that a rate was taken from are marked.", "",
             "| page | rows | misses | |", "|---|--:|--:|---|"]
    for page, rows in found:
        judged = [row for row in rows if not row.calibrated]
        lines.append(f"| [{page.title}]({page.name}.md) | {len(judged)} | {sum(row.missed(page.tolerance) for row in judged)} | {page.answer(rows)} |")
    lines += ["", "`scripts/published_multimodal.py --write` simulates all rows, in seconds, and writes these pages and "
              "[one table of all rows](multimodal.csv)."]
    return "\n".join(lines) + "\n"


def files(found, everything):
    """What docs/evidence should hold, by name."""
    texts = {f"{page.name}.md": page_text(page, rows) for page, rows in found}
    if everything:
        texts |= {"README.md": index_text(found), "multimodal.csv": csv_text(found)}
    return texts


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", choices=[page.name for page in PAGES], action="append", help="of these pages alone; may be repeated")
    p.add_argument("--write", action="store_true", help="write docs/evidence")
    p.add_argument("--check", action="store_true", help="compare with docs/evidence")
    arguments = p.parse_args()
    chosen = [page for page in PAGES if not arguments.only or page.name in arguments.only]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(zip(chosen, pool.map(lambda page: page.rows(), chosen)))
    for page, rows in found:
        print(f"{page.title}\n{page.answer(rows)}\n{table(page, rows)}\n")
    wrong = []
    for name, text in files(found, not arguments.only).items():
        if arguments.write:
            EVIDENCE.mkdir(exist_ok=True)
            (EVIDENCE / name).write_text(text, encoding="utf-8")
        elif arguments.check and (not (EVIDENCE / name).exists() or (EVIDENCE / name).read_text(encoding="utf-8") != text):
            wrong.append(name)
    if wrong:
        sys.exit(f"docs/evidence holds other rows than these: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
