#!/usr/bin/env python3
"""What quantised optimizer states cost in accuracy: trains one scenario with moments of 32, 8 and 4 bits.

Prints the loss over the last steps and the step time of each run. With --check, ends with 1 where a loss is further from
that of 32 bits than is promised. `--device cuda` does the same on a GPU.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SMOOTHED_STEPS = 50
# Of a loss of about 2.25 nats. Two seeds of one run are 0.007 apart.
PROMISED_DIFFERENCE = {8: 0.01, 4: 0.02}


def train(options, bits):
    command = [options.tandem, "train", options.scenario, "--device", options.device, "--seed", options.seed, "--quiet"]
    command += ["--json", "-", "--set", f"optimizer.state_bits={bits}"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr.strip()}")
    result = json.loads(done.stdout)
    return {
        "loss": statistics.fmean(result["loss"][-SMOOTHED_STEPS:]),
        "step_ms": 1e3 * result["step_time_s"]["median"],
    }


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tandem", type=Path, default=ROOT / "build/bin/tandem")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="end with 1 where the promised difference is exceeded")
    parser.add_argument("scenario", nargs="?", type=Path, default=ROOT / "scenarios/state_bits.yaml")
    return parser.parse_args()


def main():
    options = arguments()
    os.environ.setdefault("TANDEM_HOME", str(ROOT))
    runs = {bits: train(options, bits) for bits in (32, 8, 4)}
    print(f"| bits | loss, last {SMOOTHED_STEPS} steps | difference | step ms |\n|--:|--:|--:|--:|")
    for bits, run in runs.items():
        difference = run["loss"] - runs[32]["loss"]
        print(f"| {bits} | {run['loss']:.4f} | {difference:+.4f} | {run['step_ms']:.1f} |")
    beyond = [b for b, most in PROMISED_DIFFERENCE.items() if not abs(runs[b]["loss"] - runs[32]["loss"]) <= most]
    if options.check and beyond:
        sys.exit(f"the promised difference is exceeded with {' and '.join(map(str, beyond))} bits")


if __name__ == "__main__":
    main()
