#!/usr/bin/env python3
"""Golden runs: the logs of simulated runs over policies, families and machines are, to the byte, those of
tests/golden/logs.csv. A change that is meant is recorded with TANDEM_RECORD=1, and shows in the diff what it changed:
commands (what is decided), or only times (what is predicted)."""
import csv
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

build, source = pathlib.Path(os.environ["TANDEM_BUILD"]), pathlib.Path(os.environ["TANDEM_SOURCE"])
golden = source / "tests/golden/logs.csv"
simulate = build / "bin/tandem-simulate"
if not simulate.exists():
    sys.exit(77)


def fingerprints(settings):
    """What the run's commands and its events come to, and how many commands there are."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        sets = [word for setting in settings.split(";") for word in ("--set", setting)]
        run = subprocess.run([simulate, source / "tests/golden/base.yaml", *sets, "--quiet", "--no-trials", "--log", log],
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"{settings}: ended with {run.returncode}: {run.stderr}")
        text = log.read_bytes()
    start = text.index(b"\nb ")  # after the header, which has the scenario's text
    sums, count = {"commands": hashlib.sha256(), "times": hashlib.sha256()}, 0
    for line in text[start + 1:].splitlines():
        is_command = line[:1] in b"rcf"
        count += is_command
        sums["commands" if is_command else "times"].update(line + b"\n")
    return {"count": str(count), **{name: s.hexdigest()[:16] for name, s in sums.items()}}


with open(golden, newline="") as rows:
    table = list(csv.DictReader(rows))
wrong = []
for row in table:
    found = fingerprints(row["settings"])
    wrong += [f"{row['settings']}: {key} {row[key]} became {found[key]}" for key in found if row[key] != found[key]]
    row.update(found)
if os.environ.get("TANDEM_RECORD"):
    with open(golden, "w", newline="") as out:
        writer = csv.DictWriter(out, fieldnames=list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    print(f"recorded {len(table)} runs, {len(wrong)} figures changed")
    sys.exit(0)
# Another seed of the simulator's noise is another run: the sums can differ.
other = fingerprints(table[0]["settings"] + ";truth={noise: 0.05};seed=2")
if other["times"] == table[0]["times"]:
    wrong.append("a run with noise has the same times: this test cannot fail")
if len(table) < 30:
    wrong.append(f"only {len(table)} golden runs, of at least 30")
print("\n".join(wrong) or f"{len(table)} runs, all as recorded")
sys.exit(1 if wrong else 0)
