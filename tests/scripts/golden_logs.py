#!/usr/bin/env python3
"""Golden runs: the logs of simulated runs over policies, families and machines are, to the byte, those of
tests/golden/logs.csv, wherever the system puts the program's memory and whatever is in it. A change that is meant is
recorded with TANDEM_RECORD=1, and shows in the diff what it changed: commands (what is decided), or only times (what is
predicted)."""
import concurrent.futures
import csv
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

build, source = pathlib.Path(os.environ["TANDEM_BUILD"]), pathlib.Path(os.environ["TANDEM_SOURCE"])
golden = source / "tests/golden/logs.csv"
simulate = build / "bin/tandem-simulate"
if not simulate.exists():
    sys.exit(77)

FIXED = ["setarch", "-R"]
can_fix = bool(shutil.which("setarch")) and subprocess.run([*FIXED, "true"], capture_output=True, check=False).returncode == 0

# Memory at random addresses and at fixed ones, below an environment of another size, and full of other bytes when it is
# given out. Under a sanitizer, which keeps memory by itself, once.
WORLDS = [{}, {"fixed": True, "PADDING": "x" * 50_000}, {"PADDING": "y" * 777, "MALLOC_PERTURB_": "165"}]
if os.environ.get("TANDEM_SANITIZED"):
    WORLDS = WORLDS[:1]


def run_in(world, command):
    added = {key: value for key, value in world.items() if key != "fixed"}
    before = FIXED if can_fix and world.get("fixed") else []
    return subprocess.run([*before, *command], capture_output=True, text=True, check=False, env={**os.environ, **added})


def fingerprints(settings, world=WORLDS[0]):
    """What the run's commands and its events come to, and how many commands there are."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        sets = [word for setting in settings.split(";") for word in ("--set", setting)]
        command = [simulate, source / "tests/golden/base.yaml", *sets, "--quiet", "--no-trials", "--log", log]
        run = run_in(world, command)
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
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    found_in = [list(pool.map(lambda row: fingerprints(row["settings"], world), table)) for world in WORLDS]
wrong = []
for world, found_rows in zip(WORLDS, found_in):
    for row, found in zip(table, found_rows):
        wrong += [f"{row['settings']}: {key} {row[key]} became {found[key]} with {list(world)}"
                  for key in found if row[key] != found[key]]
for row, found in zip(table, found_in[0]):
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


def stack(world):
    """Where a program's stack lies."""
    maps = run_in(world, ["cat", "/proc/self/maps"]).stdout
    return next(line.split()[0] for line in maps.splitlines() if line.endswith("[stack]"))


if can_fix and len({stack({"fixed": True}) for _ in range(4)}) > 1:
    wrong.append("addresses that were to be fixed are random: this test cannot fail")
if not can_fix or len({stack({}) for _ in range(4)}) == 1:
    print("addresses are of one kind alone here, random or fixed")
print("\n".join(wrong) or f"{len(table)} runs, {len(WORLDS)} times each, all as recorded")
sys.exit(1 if wrong else 0)
