#!/usr/bin/env python3
"""Predictions of runs that a real machine did once are no worse than when they were recorded (tests/accuracy)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
RECORDED = pathlib.Path(os.environ["TANDEM_SOURCE"]) / "tests" / "accuracy"
# With the profile calibrated before these runs, when they were recorded, and a point of play: median and 90th percentile of
# the step times' errors, 90th percentile of the peaks', and groups whose fastest policy is foreseen within 2%.
LIMITS = {"step_median": 0.036, "step_p90": 0.135, "peak_p90": 0.01}
RUNS, GROUPS, FORESEEN = 68, 22, 20


def errors(*settings):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "errors.json"
        command = [BIN / "tandem", "validate", "--measured", RECORDED / "h200.jsonl", "--quiet", "--json", out,
                   "--set", f"machine={RECORDED / 'h200.yaml'}", *settings]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
        if not out.exists():
            sys.exit(f"tandem validate ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        return json.loads(out.read_text())


def misses(found):
    got = {"step_median": found["step_errors"]["median"], "step_p90": found["step_errors"]["p90"],
           "peak_p90": found["peak_errors"]["p90"]}
    lines = [f"{name} is {got[name]:.4f}, above {limit}" for name, limit in LIMITS.items() if got[name] > limit]
    if len(found["scenarios"]) != RUNS or found["failures"]:
        lines.append(f"{len(found['scenarios'])} of {RUNS} scenarios: {found['failures']}")
    foreseen = sum(group["excess"] <= 0.02 for group in found["rankings"])
    if len(found["rankings"]) != GROUPS or foreseen < FORESEEN:
        lines.append(f"fastest policy foreseen in {foreseen} of {len(found['rankings'])} groups, not in {FORESEEN} of {GROUPS}")
    return lines


wrong = misses(errors())
if not misses(errors("--set", "truth.compute_time=0.9")):
    wrong.append("predictions with computing that is a tenth too fast pass: this test cannot fail")
print("\n".join(wrong))
sys.exit(bool(wrong))
