#!/usr/bin/env python3
"""What people reported of frameworks' memory (tests/accuracy/product_reports.csv) beside what `product: {like: ...}` predicts.

    TANDEM_BUILD=build scripts/product_reports.py [--check]

Errors are of the host's peak; rows that miss are marked. --check fails if the error over the reports that were held out of the
choice exceeds 15%, or a verdict is wrong in more than one of ten."""
import csv
import json
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("TANDEM_SOURCE", pathlib.Path(__file__).resolve().parents[1]))
TANDEM = pathlib.Path(os.environ.get("TANDEM_BUILD", SOURCE / "build")) / "bin" / "tandem"
MOST_ERROR, MOST_WRONG = 0.15, 0.1
# With more memory than any of them needs: what is asked is how much they take.
MACHINE = ("{derive_from: h100_node_nvme, tiers: {device: {capacity: 320GB}, host_pinned: {capacity: 30TB}, disk: {capacity: 30TB}}}")


def scenario_of(row):
    stage2 = row["product"] in ("deepspeed-zero2", "torchao")
    policy = {"deepspeed-infinity": "{name: zero_infinity, variant: deepspeed, parameters: host, optimizer_states: disk}"}.get(
        row["product"], "{name: zero_offload}" if stage2 else f"{{name: zero_infinity, variant: deepspeed, parameters: {row['parameters']}}}")
    processes = int(row["processes"])
    partition = "" if processes == 1 else f", devices: {processes}, partition: {'states' if stage2 else 'parameters'}"
    precision = "" if "precision" in row["workload"] else ", precision: fp16"
    optimizer = "{masters: false, state_bits: 16}" if row["product"] == "torchao" else "{}"
    return (f"machine: {MACHINE}\nworkload: {{{row['workload']}{precision}{partition}}}\noptimizer: {optimizer}\npolicy: {policy}\n"
            f"product: {{like: {row['product']}, version: \"{row['version']}\"}}\nsteps: 2\n")


def predicted_gb(row):
    words = [str(TANDEM), "simulate", "/dev/stdin", "--quiet", "--no-trials", "--json", "-"]
    ended = subprocess.run(words, input=scenario_of(row), capture_output=True, text=True, timeout=300, check=False)
    if ended.returncode != 0:
        raise SystemExit(f"{row['id']}: {ended.stderr}")
    return json.loads(ended.stdout)["peak_bytes"]["host"] / 1e9


def main():
    with open(SOURCE / "tests/accuracy/product_reports.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    errors, verdicts = {"yes": [], "no": []}, []
    print(f"{'report':<18} {'product':<20} {'version':<8} {'processes':>9} {'reported':>14} {'predicted':>10} {'error':>7}")
    for row in rows:
        if row["kind"] == "not counted":
            continue
        gb, told = predicted_gb(row), float(row["gb"])
        line = f"{row['id']:<18} {row['product']:<20} {row['version']:<8} {row['processes']:>9} "
        if row["kind"] == "peak":
            error = gb / told - 1
            errors[row["held_out"]].append(abs(error))
            misses = "  misses" if abs(error) > MOST_ERROR else ""
            print(f"{line}{told:>11.1f} GB {gb:>7.1f} GB {error:>+7.1%}  {'held out' if row['held_out'] == 'yes' else 'chosen by'}{misses}")
        else:
            right = (gb <= told) == (row["kind"] == "fits")
            verdicts.append(right)
            what = "fits" if row["kind"] == "fits" else "not in"
            print(f"{line}{what + ' ' + row['gb']:>11} GB {gb:>7.1f} GB {'right' if right else 'wrong':>7}{'' if right else '  misses'}")
    wrong = verdicts.count(False)
    worst = max(errors["yes"])
    print(f"held out: {len(errors['yes'])} reports, largest error {worst:.1%}; chosen by: {len(errors['no'])}, {max(errors['no']):.1%}; "
          f"verdicts right in {len(verdicts) - wrong} of {len(verdicts)}")
    return 1 if "--check" in sys.argv and (worst > MOST_ERROR or wrong > MOST_WRONG * len(verdicts)) else 0


if __name__ == "__main__":
    sys.exit(main())
