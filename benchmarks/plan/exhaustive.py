#!/usr/bin/env python3
"""How far `tandem plan` is from the best of its own space: on random questions (a model, a machine, limits), its pick
beside that of a search which simulates every candidate.

    benchmarks/plan/exhaustive.py [--questions 50] [--seed 0] [--program build/bin/tandem-plan] [--json FILE]

Questions are small, since each is answered a thousand times over: models of few layers, or large ones cut to a few. Ends
with 1 where a pick is more than 2% slower than the best, or one search finds what fits and the other nothing.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ALLOWED = 0.02
# Models, and keys that make them small.
MODELS = [
    ("gpt2", []), ("opt-125m", []), ("bert-base", []), ("bert-large", ["workload.layers=8"]), ("vit-b-16", []),
    ("t5-small", []), ("whisper-tiny", []), ("resnet-18", []), ("resnet-50", []), ("clip-vit-b-32", []),
    ("gpt2-xl", ["workload.layers=6"]), ("opt-1.3b", ["workload.layers=6"]), ("bloom-1b7", ["workload.layers=4"]),
    ("qwen2.5-1.5b", ["workload.layers=6"]), ("llama-2-7b", ["workload.layers=3", "workload.sequence=1024"]),
    ("mistral-7b", ["workload.layers=3", "workload.sequence=1024"]), ("gpt-j-6b", ["workload.layers=3"]),
]
MACHINES = ["rtx_4090", "titan_rtx", "gtx_1650", "dgx2_v100", "v100_vm", "h100", "h200", "g10_a100", "flexgen_t4"]
DEVICE_GIB = [1, 2, 3, 4, 6, 8, 12, 16]
HOST_GIB = [4, 8, 16, 32, 64]


def question(rng):
    model, settings = rng.choice(MODELS)
    arguments = ["--model", model, "--machine", rng.choice(MACHINES), "--batch", str(rng.choice([1, 2, 4, 8, 16])),
                 "--device-memory", f"{rng.choice(DEVICE_GIB)}GiB", "--host-memory", f"{rng.choice(HOST_GIB)}GiB"]
    if rng.random() < 0.5:
        arguments.append("--exact")
    if rng.random() < 0.3:
        arguments += ["--disk", "0B"]
    return arguments + [word for setting in settings for word in ("--set", setting)]


def answer(program, arguments, *more):
    started = time.monotonic()
    run = subprocess.run([program, *arguments, *more, "--quiet", "--json", "-"], capture_output=True, text=True,
                         check=False)
    if run.returncode not in (0, 3):
        sys.exit(f"{' '.join(arguments)}: exit code {run.returncode}\n{run.stderr}")
    return json.loads(run.stdout), time.monotonic() - started


def compared(program, arguments):
    plan, seconds = answer(program, arguments)
    best, all_seconds = answer(program, arguments, "--exhaustive")
    row = {"arguments": arguments, "fits": plan["fits"], "agree": plan["fits"] == best["fits"], "seconds": seconds,
           "exhaustive_seconds": all_seconds, "candidates": best["candidates"]["all"],
           "simulated": plan["candidates"]["simulated"], "verdict": plan["verdict"]}
    if plan["fits"] and best["fits"]:
        row["loss"] = 1 - plan["best"][0]["samples_per_s"] / best["fastest_samples_per_s"]
        row["best"] = best["verdict"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    build = Path(os.environ.get("TANDEM_BUILD", Path(__file__).resolve().parents[2] / "build"))
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--program", default=str(build / "bin" / "tandem-plan"))
    parser.add_argument("--json", help="a line of JSON a question")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    rows = []
    for number in range(options.questions):
        row = compared(options.program, question(rng))
        rows.append(row)
        loss = f"{100 * row['loss']:6.2f}%" if "loss" in row else "   none fits" if row["agree"] else "   DIFFER"
        print(f"{number + 1:3} {loss:>11}  {row['simulated']:4} of {row['candidates']:5} simulated, {row['seconds']:5.1f} s, "
              f"{row['exhaustive_seconds']:6.1f} s for all: {' '.join(row['arguments'])}", flush=True)
        if options.json:
            with open(options.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    losses = sorted(row["loss"] for row in rows if "loss" in row)
    bad = [row for row in rows if not row["agree"] or row.get("loss", 0) > ALLOWED]
    if losses:
        print(f"{len(rows)} questions, {len(losses)} with something that fits: the pick is slower than the best by "
              f"{100 * losses[len(losses) // 2]:.2f}% in the median, {100 * losses[-1]:.2f}% at most; "
              f"{sum(row['simulated'] for row in rows)} of {sum(row['candidates'] for row in rows)} candidates simulated")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
