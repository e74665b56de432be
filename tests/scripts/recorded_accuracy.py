#!/usr/bin/env python3
"""Predictions of runs that a real machine did once are no worse than when they were recorded (tests/accuracy). Under a
sanitizer, which sees the same code in all of them, of one set alone: that with every policy."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
RECORDED = pathlib.Path(os.environ["TANDEM_SOURCE"]) / "tests" / "accuracy"
# Of each set of runs (`runs_of`, or that of the name), with a profile (`profile`, or that of the name: beside the runs, or a shipped one),
# and a little play: median and 90th percentile of the step times' errors, 90th percentile of the peaks', and groups whose fastest policy
# is foreseen within 2%. The runs were recorded while every op of a network declared the temporaries of its widest one (until workspaces
# were derived call by call): those of today take up to 6% less of the device, and where it is short they move less, so that a few steps are
# foreseen shorter than they were. Before, the peaks' errors were 1%, and the 90th percentiles of the steps' 6 to 9.7%; runs made anew bring
# these limits back.
SETS = {
    "h200_repeated": {"step_median": 0.033, "step_p90": 0.118, "peak_p90": 0.058, "runs": 68, "groups": 22, "foreseen": 20},
    "h200": {"step_median": 0.023, "step_p90": 0.108, "peak_p90": 0.058, "runs": 68, "groups": 22, "foreseen": 22},
    "h200_near": {"step_median": 0.021, "step_p90": 0.1, "peak_p90": 0.058, "runs": 68, "groups": 22, "foreseen": 19},
    "h200_systems": {"profile": "h200_near", "step_median": 0.024, "step_p90": 0.069, "peak_p90": 0.058, "runs": 21, "groups": 2, "foreseen": 2},
    "h200_measured": {"step_median": 0.025, "step_p90": 0.097, "peak_p90": 0.058, "runs": 68, "groups": 22, "foreseen": 20},
    "h200_measured_stand_ins": {"profile": "h200_measured", "options": ["--as-probed"], "step_median": 0.045, "step_p90": 0.093, "peak_p90": 0.058, "runs": 15, "groups": 6, "foreseen": 6},
    "h100_measured": {"step_median": 0.025, "step_p90": 0.122, "peak_p90": 0.058, "runs": 60, "groups": 19, "foreseen": 19},
    # A machine that calibration has not seen: from an H200's profile and datasheets.
    "h100": {"runs_of": "h100_measured", "options": ["--as-probed"], "step_median": 0.021, "step_p90": 0.111, "peak_p90": 0.058, "runs": 60, "groups": 19, "foreseen": 19},
    "h200_stand_ins": {"profile": "h200", "step_median": 0.092, "step_p90": 0.14, "peak_p90": 0.058, "runs": 15, "groups": 6, "foreseen": 6},
}


def errors(name, *settings):
    limits = SETS[name]
    profile = limits.get("profile", name)
    beside = RECORDED / f"{profile}.yaml"
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "errors.json"
        command = [BIN / "tandem", "validate", "--measured", RECORDED / f"{limits.get('runs_of', name)}.jsonl", "--quiet",
                   "--json", out, "--set", f"machine={beside if beside.exists() else profile}", *limits.get("options", []), *settings]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
        if not out.exists():
            sys.exit(f"tandem validate ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        return json.loads(out.read_text())


def misses(name, *settings):
    limits, found = SETS[name], errors(name, *settings)
    got = {"step_median": found["step_errors"]["median"], "step_p90": found["step_errors"]["p90"],
           "peak_p90": found["peak_errors"]["p90"]}
    lines = [f"{name}: {what} is {value:.4f}, above {limits[what]}" for what, value in got.items() if value > limits[what]]
    if len(found["scenarios"]) != limits["runs"] or found["failures"]:
        lines.append(f"{name}: {len(found['scenarios'])} of {limits['runs']} scenarios: {found['failures']}")
    groups, foreseen = len(found["rankings"]), sum(group["excess"] <= 0.02 for group in found["rankings"])
    if groups != limits["groups"] or foreseen < limits["foreseen"]:
        lines.append(f"{name}: fastest policy foreseen in {foreseen} of {groups} groups, not in {limits['foreseen']} of {limits['groups']}")
    return lines


sanitized = bool(os.environ.get("TANDEM_SANITIZED"))
names = ["h200_systems"] if sanitized else list(SETS)
wrong = [line for name in names for line in misses(name)]
if not sanitized and not misses(names[0], "--set", "truth.compute_time=0.9"):
    wrong.append("predictions with computing that is a tenth too fast pass: this test cannot fail")
print("\n".join(wrong))
sys.exit(bool(wrong))
