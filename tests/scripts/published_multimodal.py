#!/usr/bin/env python3
"""Published measurements beside simulations: docs/evidence holds what its script prints, the script says so where a page
holds other figures, and what the pages must reach they reach."""
import csv
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
SCRIPT = pathlib.Path("scripts") / "published_multimodal.py"
PAGES = ("graph_networks", "cedar", "torchcodec", "optimizer_on_cpu", "places")
FAILURES = []


def check(name, holds, what=""):
    if not holds:
        FAILURES.append(name)
        print(f"{name}: {what}", file=sys.stderr)


def run(root, *words):
    return subprocess.run([sys.executable, str(root / SCRIPT), *words], capture_output=True, text=True, timeout=300, check=False)


def pages_hold_what_is_printed():
    done = run(SOURCE, "--check")
    check("pages", done.returncode == 0, done.stderr)
    for page in PAGES:
        text = (SOURCE / "docs" / "evidence" / f"{page}.md").read_text(encoding="utf-8")
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        check(page, len(rows) > 10, "hardly any rows")
        check(page, all(row in done.stdout for row in rows), "has rows that the script does not print")


def another_figure_is_found(folder):
    for part in ("scripts", "benchmarks/published", "docs/evidence"):
        shutil.copytree(SOURCE / part, folder / part)
    page = folder / "docs" / "evidence" / "optimizer_on_cpu.md"
    text = page.read_text(encoding="utf-8")
    check("another figure", "1.871 s" in text, "the published step with a quarter on the CPU is not on the page")
    page.write_text(text.replace("1.871 s", "1.444 s"), encoding="utf-8")
    done = run(folder, "--check", "--only", "optimizer_on_cpu")
    check("another figure", done.returncode == 1 and "optimizer_on_cpu.md" in done.stderr, f"{done.returncode} {done.stderr}")


def what_must_be_reached():
    with open(SOURCE / "docs" / "evidence" / "multimodal.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    def mean_error(system):
        errors = [abs(float(row["error"])) for row in rows if row["system"] == system and row["verdict"] != "calibrated"]
        return sum(errors) / len(errors)

    check("DGL", mean_error("DGL") <= 0.05, mean_error("DGL"))
    check("GNNLab", mean_error("GNNLab") <= 0.105, mean_error("GNNLab"))
    places = [row for row in rows if row["system"] == "faster place"]
    check("torchcodec", len(places) == 12 and all(row["published"] == row["predicted"] for row in places), places)
    orders = [row for row in rows if row["published"] == "falls"]
    check("order of gains", len(orders) == 6 and all(row["predicted"] == "falls" for row in orders), orders)
    slower = [row for row in rows if " / no offload" in row["system"] and row["published"] != "falls" and float(row["predicted"]) < 1]
    check("FastFlow", not slower, slower)


pages_hold_what_is_printed()
with tempfile.TemporaryDirectory() as name:
    another_figure_is_found(pathlib.Path(name))
what_must_be_reached()
sys.exit(1 if FAILURES else 0)
