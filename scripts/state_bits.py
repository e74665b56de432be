#!/usr/bin/env python3
"""What optimizer states of fewer bits, parameters without masters, and other optimizers cost in accuracy.

Trains one scenario with each. Prints the loss over the last steps and the step time of each run. With --check, ends with 1
where a loss is further from that of 32 bits than is promised, and runs no others. `--device cuda` does the same on a GPU.
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
PROMISED_DIFFERENCE = {"8 bits": 0.01, "4 bits": 0.02}
PLAIN = "adamw, 32 bits"
BF16 = ["workload.precision=bf16"]
# Name: settings. Learning rates are each optimizer's best of a few, by powers of about 3.
RUNS = {
    PLAIN: [],
    "16 bits": ["optimizer.state_bits=16"],
    "16 bits, betas [0.9, 0.95]": ["optimizer.state_bits=16", "optimizer.betas=[0.9, 0.95]"],
    "8 bits": ["optimizer.state_bits=8"],
    "4 bits": ["optimizer.state_bits=4"],
    "bf16": BF16,
    "bf16, no masters": [*BF16, "optimizer.masters=false"],
    "bf16, no masters, 8 bits": [*BF16, "optimizer.masters=false", "optimizer.state_bits=8"],
    "lion": ["optimizer.name=lion", "optimizer.learning_rate=1e-3"],
    "adafactor": ["optimizer.name=adafactor", "optimizer.learning_rate=1e-1"],
    "sgd, momentum 0.9": ["optimizer.name=sgd", "optimizer.momentum=0.9", "optimizer.learning_rate=1e-1"],
}


def train(options, settings):
    command = [options.tandem, "train", options.scenario, "--device", options.device, "--seed", options.seed, "--quiet"]
    command += ["--json", "-", "--set", "optimizer.state_bits=32"]
    if options.device == "cpu":
        command += ["--set", "machine=cpu_2_cores"]
    command += [word for setting in settings for word in ("--set", setting)]
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
    chosen = [PLAIN, *PROMISED_DIFFERENCE] if options.check else RUNS
    runs = {name: train(options, RUNS[name]) for name in chosen}
    print(f"| | loss, last {SMOOTHED_STEPS} steps | difference | step ms |\n|---|--:|--:|--:|")
    for name, run in runs.items():
        difference = run["loss"] - runs[PLAIN]["loss"]
        print(f"| {name} | {run['loss']:.4f} | {difference:+.4f} | {run['step_ms']:.1f} |")
    beyond = [name for name, most in PROMISED_DIFFERENCE.items()
              if not abs(runs[name]["loss"] - runs[PLAIN]["loss"]) <= most]
    if options.check and beyond:
        sys.exit(f"the promised difference is exceeded with {' and '.join(beyond)}")


if __name__ == "__main__":
    main()
