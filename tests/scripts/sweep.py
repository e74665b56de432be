#!/usr/bin/env python3
"""`tandem sweep` as people use it: the table of all combinations, killed at random moments and gone on with, conditions,
rows without a result, and what is wrong with its file."""
import csv
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
KILLS = 6
FAILURES = []

BASE = """base:
  machine: round_numbers
  workload: {family: gpt, layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 64, batch: 2}
  policy: {name: on_demand}
  steps: 3
"""
GRID = BASE + """sweep:
  policy: [on_demand, resident, zero_offload, one_bit_adam]
  workload.batch: {from: 1, to: 8, factor: 2}
  limits.device_bytes: [2MiB, 8MiB]
  workload.precision: [fp32, fp16]
constraint:
  - workload.batch != 4
  - step_s < 1s
"""


def check(name, holds, what=""):
    if not holds:
        FAILURES.append(name)
        print(f"{name}: {what}", file=sys.stderr)


def tandem(folder, *words):
    return subprocess.run([str(BIN / "tandem"), *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def expect(name, result, code, words=""):
    check(name, result.returncode == code, f"exit code {result.returncode}: {result.stdout} {result.stderr}")
    check(name, words in result.stdout + result.stderr, f"no '{words}' in {result.stdout} {result.stderr}")


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def written(folder, text, name="grid.yaml"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def the_table(folder):
    written(folder, GRID)
    expect("the table", tandem(folder, "sweep", "grid.yaml", "--csv", "whole.csv", "--json", "whole.json", "--report", "whole.html"), 0,
           "64 combinations: ")
    rows = rows_of(folder / "whole.csv")
    check("rows", len(rows) == 48, len(rows))  # without batch 4
    outcomes = {row["outcome"] for row in rows}
    check("outcomes", outcomes == {"done", "does not fit", "refused"}, outcomes)
    for row in rows:
        check("a row has figures or a reason", bool(row["step_s"]) != bool(row["why_not"]), row)
    # A row is what simulate says of the same scenario.
    row = next(row for row in rows if row["policy"] == "zero_offload" and row["outcome"] == "done")
    settings = [word for key in ("workload.batch", "limits.device_bytes", "workload.precision") for word in ("--set", f"{key}={row[key]}")]
    alone = json.loads(tandem(folder, "simulate", "grid.yaml#base", *settings, "--set", "policy={name: zero_offload}", "--json", "-").stdout)
    check("as simulated alone", alone["step_time_s"]["median"] == float(row["step_s"]), (alone["step_time_s"], row))
    with sqlite3.connect(folder / "grid.sqlite") as database:
        kept = database.execute('SELECT number, "workload.batch", outcome, step_s, result FROM rows ORDER BY number').fetchall()
    check("SQLite", [str(row[0]) for row in kept] == [row["number"] for row in rows], kept[:3])
    check("whole results", all((json.loads(row[4])["steps"] == 3) if row[4] else row[3] is None for row in kept), kept[:3])
    check("JSON", len(json.loads((folder / "whole.json").read_text())["rows"]) == 48)
    page = (folder / "whole.html").read_text(encoding="utf-8")
    for words in ("Pareto front", "class=\"cell\"", "<polyline", "does not fit"):
        check("the page", words in page, f"no {words}")


def killed(folder):
    """At random moments, over and over: the table is that of a sweep which nobody killed."""
    written(folder, GRID)
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"kills: seed {seed}")
    moments = random.Random(seed)
    for kill in range(KILLS):
        process = subprocess.Popen([str(BIN / "tandem"), "sweep", "grid.yaml", "--output", "killed.sqlite", "--quiet"], cwd=folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        time.sleep(moments.uniform(0, 1.2))
        number = signal.SIGKILL if kill % 2 == 0 else signal.SIGINT
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        # -SIGINT: it came before the program had asked for it, which under a sanitizer takes a while.
        check("killed", process.returncode in (0, -signal.SIGKILL, -signal.SIGINT, 130), f"{process.returncode} {errors}")
        if process.returncode == 130 and "rows are in" in errors:
            check("says how to go on", "the same command goes on from there" in errors, errors)
    expect("gone on with", tandem(folder, "sweep", "grid.yaml", "--output", "killed.sqlite", "--csv", "killed.csv"), 0)
    check("the same table", (folder / "killed.csv").read_bytes() == (folder / "whole.csv").read_bytes())
    begin = time.monotonic()
    expect("once more", tandem(folder, "sweep", "grid.yaml", "--output", "killed.sqlite", "--csv", "again.csv"), 0, "48 of 48 rows are in")
    check("simulates nothing again", time.monotonic() - begin < 5)
    check("the same table again", (folder / "again.csv").read_bytes() == (folder / "whole.csv").read_bytes())


def changed(folder):
    """A larger grid keeps its rows; another base is refused, unless it begins anew."""
    written(folder, GRID.replace("factor: 2", "factor: 8").replace("  - step_s < 1s\n", "  - device_bytes > 7MiB\n"))
    expect("a smaller grid", tandem(folder, "sweep", "grid.yaml", "--csv", "small.csv"), 0, "32 of 32 rows are in")
    small = rows_of(folder / "small.csv")
    check("excluded", any(row["outcome"] == "excluded" and "breaks device_bytes > 7MiB" in row["why_not"] and row["step_s"] for row in small), small)
    written(folder, GRID)
    expect("a larger one", tandem(folder, "sweep", "grid.yaml", "--csv", "large.csv"), 0, "32 of 48 rows are in")
    check("the same table", (folder / "large.csv").read_bytes() == (folder / "whole.csv").read_bytes())
    expect("another base", tandem(folder, "sweep", "grid.yaml", "--set", "steps=2"), 2, "holds rows of another sweep (the base scenario differs)")
    expect("anew", tandem(folder, "sweep", "grid.yaml", "--set", "steps=2", "--restart"), 0)
    (folder / "text.sqlite").write_text("no table " * 200)
    expect("no table", tandem(folder, "sweep", "grid.yaml", "--output", "text.sqlite"), 2, "file is not a database")
    with sqlite3.connect(folder / "other.sqlite") as other:
        other.execute("CREATE TABLE mine (a)")
    expect("another's", tandem(folder, "sweep", "grid.yaml", "--output", "other.sqlite"), 2, "is no table of a sweep")
    expect("no folder", tandem(folder, "sweep", "grid.yaml", "--output", "none/x.sqlite"), 2, "create the folder first")
    expect("one file twice", tandem(folder, "sweep", "grid.yaml", "--output", "grid.yaml"), 2, "which is read")


def largest(folder):
    written(folder, BASE + "sweep: {policy: [resident, zero_offload]}\nlargest: {workload.layers: 1..40}\n", "largest.yaml")
    expect("largest", tandem(folder, "sweep", "largest.yaml", "--set", "limits={device_bytes: 4MiB, host_bytes: 16MiB, disk_bytes: 0B}", "--csv", "l.csv"), 0)
    found = {row["policy"]: int(row["largest workload.layers"]) for row in rows_of(folder / "l.csv")}
    other = tandem(folder, "compare-policies", "largest.yaml#base", "--policies", "resident,zero_offload", "--set",
                   "limits={device_bytes: 4MiB, host_bytes: 16MiB, disk_bytes: 0B}", "--largest", "workload.layers=1..40", "--json", "-")
    check("as compare-policies", found == {row["policy"]: row["largest"] for row in json.loads(other.stdout)["policies"]}, (found, other.stdout))
    check("zero_offload holds more", found["zero_offload"] > found["resident"], found)


def wrong(folder):
    for text, words in (
            ("base: grid\nsweep: {workload.batch: [1]}\n", "grid:1:1: file: cannot be opened"),
            ("base: dmeo\nsweep: {workload.batch: [1]}\n", "did you mean 'demo'?"),
            (BASE + "sweep:\n  workload.bacth: [1, 2]\n", "wrong.yaml:7:3: sweep: workload.bacth: is not a key here, did you mean 'batch'?"),
            (BASE + "sweep: {workload.batch: [1]}\nconstraint: workload.bathc < 3\n", "there is no 'workload.bathc', did you mean 'workload.batch'?"),
            (BASE + "sweep: {workload.batch: [1]}\nconstraint: workload.batch > 3\n", "leaves no combination of 1"),
            (BASE + "sweep: {workload.batch: [1]}\nconstraint: workload.batch > policy\n", "compares a number with a text"),
            (BASE + "sweep: {step_s: {together: [{steps: 2}]}}\n", "is the name of a column"),
            (BASE.replace("layers: 4", "layers: -4") + "sweep: {workload.batch: [1]}\n", "wrong.yaml:3:35: workload.layers: '-4'"),
            ("sweep: {}\n", "base: is missing")):
        result = tandem(folder, "sweep", written(folder, text, "wrong.yaml").name)
        expect(text, result, 2, words)
        check(text, not (folder / "wrong.sqlite").exists(), "a table was made")
        expect(f"check of {text}", tandem(folder, "check", "wrong.yaml"), 2, words)
    expect("check", tandem(folder, "check", "grid.yaml"), 0, "grid.yaml: a valid sweep of 48 combinations")
    expect("all refused by size", tandem(folder, "sweep", written(folder, BASE + "sweep: {limits.device_bytes: [1kB, 2kB]}\n", "small.yaml").name), 3,
           "2 does not fit")
    expect("jobs", tandem(folder, "sweep", "grid.yaml", "--jobs", "0"), 2)
    expect("a flag", tandem(folder, "sweep", "grid.yaml", "--restrat"), 2, "did you mean --restart?")


def two_at_once(folder):
    written(folder, BASE + "sweep: {workload.batch: 1..40, policy: all}\n", "long.yaml")
    with subprocess.Popen([str(BIN / "tandem"), "sweep", "long.yaml", "--quiet"], cwd=folder) as first:
        while not (folder / "long.sqlite").exists() and first.poll() is None:
            time.sleep(0.01)
        time.sleep(0.1)
        expect("another writes", tandem(folder, "sweep", "long.yaml", "--quiet"), 2, "another sweep writes it")
        first.send_signal(signal.SIGTERM)
    check("ended", first.returncode == 130, first.returncode)


def main():
    with tempfile.TemporaryDirectory() as name:
        for test in (the_table, killed, changed, largest, wrong, two_at_once):
            begin = time.monotonic()
            test(pathlib.Path(name))
            print(f"{test.__name__}: {time.monotonic() - begin:.1f} s")
    print("failed: " + ", ".join(FAILURES) if FAILURES else "ok")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
