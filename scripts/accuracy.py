#!/usr/bin/env python3
"""Compares predicted with measured step times and peak bytes on scenarios that calibration has not seen.

Calibrates this machine (or takes --profile), simulates and trains every scenario of scenarios/accuracy, and prints the
table of docs/accuracy.md. With --check, ends with 1 where a median error is above what is promised.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROMISED_STEP_ERROR = 0.10
PROMISED_PEAK_ERROR = 0.02
TIERS = ("device0", "host", "disk")


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def result(tandem, world, scenario, profile):
    return json.loads(run([tandem, world, scenario, "--set", f"machine={profile}", "--quiet", "--json", "-"]))


def spread(values):
    ordered = sorted(values)
    return (ordered[round(0.9 * (len(ordered) - 1))] - ordered[round(0.1 * (len(ordered) - 1))]) / statistics.median(ordered)


def compare(tandem, scenario, profile, repeats):
    """Steps of all repeats count alike; peak bytes are those of the run whose figure is the median."""
    predicted = result(tandem, "simulate", scenario, profile)
    runs = [result(tandem, "train", scenario, profile) for _ in range(repeats)]
    steps = [step for one in runs for step in one["step_time_s"]["all"]]
    row = {
        "scenario": scenario.stem,
        "predicted_s": predicted["step_time_s"]["median"],
        "measured_s": statistics.median(steps),
        "spread": spread(steps),
        "runs_s": [one["step_time_s"]["median"] for one in runs],
        "peaks": {},
    }
    row["error"] = row["predicted_s"] / row["measured_s"] - 1
    for tier in TIERS:
        measured = statistics.median_low([one["peak_bytes"].get(tier, 0) for one in runs])
        if measured > 0:
            row["peaks"][tier] = {
                "predicted": predicted["peak_bytes"].get(tier, 0),
                "measured": measured,
                "error": predicted["peak_bytes"].get(tier, 0) / measured - 1,
            }
    return row


def median_error(errors):
    return statistics.median([abs(error) for error in errors]) if errors else 0.0


def peak_errors(rows, tier):
    return [row["peaks"][tier]["error"] for row in rows if tier in row["peaks"]]


def table(rows):
    lines = [
        "| scenario | predicted ms | measured ms | spread | error | device MiB | error | host MiB | error |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        cells = [
            row["scenario"],
            f"{1e3 * row['predicted_s']:.1f}",
            f"{1e3 * row['measured_s']:.1f}",
            f"{100 * row['spread']:.0f}%",
            f"{100 * row['error']:+.1f}%",
        ]
        for tier in ("device0", "host"):
            peak = row["peaks"].get(tier)
            cells += [f"{peak['measured'] / 2**20:.1f}", f"{100 * peak['error']:+.1f}%"] if peak else ["-", "-"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(rows):
    errors = [abs(row["error"]) for row in rows]
    lines = [
        f"Step time: median error {100 * median_error(errors):.1f}%, largest {100 * max(errors):.1f}%, "
        f"{len(rows)} scenarios."
    ]
    for tier in TIERS:
        of_tier = peak_errors(rows, tier)
        if of_tier:
            lines.append(
                f"Peak bytes, {tier}: median error {100 * median_error(of_tier):.2f}%, "
                f"largest {100 * max(map(abs, of_tier)):.1f}%, {len(of_tier)} scenarios."
            )
    return "\n".join(lines)


def kept(rows):
    return median_error([row["error"] for row in rows]) <= PROMISED_STEP_ERROR and all(
        median_error(peak_errors(rows, tier)) <= PROMISED_PEAK_ERROR for tier in TIERS
    )


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tandem", type=Path, default=ROOT / "build/bin/tandem")
    parser.add_argument("--profile", type=Path, help="a profile of this machine; otherwise it is calibrated first")
    parser.add_argument("--quick", action="store_true", help="calibrate with --quick")
    parser.add_argument("--repeats", type=int, default=3, help="real runs of each scenario")
    parser.add_argument("--json", type=Path, help="write the rows here too")
    parser.add_argument("--check", action="store_true", help="end with 1 where the promised error is exceeded")
    parser.add_argument("scenarios", nargs="*", type=Path, help="otherwise all of scenarios/accuracy")
    return parser.parse_args()


def main():
    options = arguments()
    os.environ.setdefault("TANDEM_HOME", str(ROOT))
    scenarios = options.scenarios or sorted((ROOT / "scenarios/accuracy").glob("*.yaml"))
    with tempfile.TemporaryDirectory() as folder:
        profile = options.profile
        if profile is None:
            profile = Path(folder) / "this_machine.yaml"
            print("calibrating", file=sys.stderr)
            run([options.tandem, "calibrate", "--device", "cpu", "--output", profile] + ["--quick"] * options.quick)
        rows = []
        for scenario in scenarios:
            rows.append(compare(options.tandem, scenario, profile.resolve(), options.repeats))
            print(f"{scenario.stem}: {100 * rows[-1]['error']:+.1f}%", file=sys.stderr)
    print(table(rows) + "\n\n" + summary(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    if options.check and not kept(rows):
        sys.exit("the promised error is exceeded")


if __name__ == "__main__":
    main()
