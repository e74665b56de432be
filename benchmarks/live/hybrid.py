#!/usr/bin/env python3
"""A trainer on the CPU beside a GPU: what a step takes under hybrid_coarse and hybrid_fine beside the GPU alone, predicted and measured, by turns.

    benchmarks/live/hybrid.py --tandem build/bin/tandem --machine machine.yaml --device cuda --output hybrid.json

`--machine` is a profile of this machine (`tandem calibrate`), by its file or its name. Networks are the thesis' two (scenarios/hybrid_gpt.yaml, hybrid_mlp.yaml), its perceptron
with a batch in one piece, and some that keep a GPU waiting for launches, where a CPU may be of use. Each row is a median of rounds, with their least and
most, over the GPU alone of the same rounds; below 1 the CPU helps. `--small`: for a machine without a GPU.
"""
import argparse
import json
import math
import pathlib
import random
import statistics
import struct
import subprocess
import tempfile

MLP = "family: mlp, inputs: 784, classes: 10, precision: fp32"
GPT = "family: gpt, heads: 1, sequence: 1000, vocabulary: 10000, precision: fp32, dropout: 0.2, attention: unfused, tied_embedding: false"
CASES = {
    "the thesis' GPT, 8 micro-batches of 1": f"{GPT}, layers: 10, hidden: 384, batch: 1, micro_batches: 8",
    "the thesis' perceptron, 10 of 10": f"{MLP}, layers: 2, hidden: 512, batch: 10, micro_batches: 10",
    "the thesis' perceptron, 1 of 100": f"{MLP}, layers: 2, hidden: 512, batch: 100, micro_batches: 1",
    "a deep perceptron, 16 of 3": f"{MLP}, layers: 12, hidden: 160, batch: 3, micro_batches: 16",
    "a wide perceptron, 6 of 50": f"{MLP}, layers: 3, hidden: 3000, batch: 50, micro_batches: 6",
    "a small GPT, 12 of 1": "family: gpt, layers: 4, hidden: 96, heads: 3, sequence: 50, vocabulary: 997, batch: 1, micro_batches: 12, precision: fp32",
}
SMALL = {"a perceptron, 6 of 10": f"{MLP}, layers: 2, hidden: 128, batch: 10, micro_batches: 6"}
POLICIES = ("resident", "hybrid_coarse", "hybrid_fine")
WARM = 5


def write_images(folder):
    """Of MNIST's size and form, made of noise: what they show does not change what a step takes."""
    count = 1000
    numbers = random.Random(1)
    folder.mkdir()
    for name, kind, shape, values in (("train-images-idx3-ubyte", 3, (count, 28, 28), 256), ("train-labels-idx1-ubyte", 1, (count,), 10)):
        body = bytes(numbers.randrange(values) for _ in range(math.prod(shape)))
        (folder / name).write_bytes(struct.pack(f">HBB{len(shape)}I", 0, 8, kind, *shape) + body)


def tandem(args, verb, path, policy, folder, *more):
    out = folder / "out.json"
    done = subprocess.run([args.tandem, verb, str(path), f"--set=policy={{name: {policy}}}", *more, "--json", str(out), "--quiet"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{verb} under {policy}: {done.stderr.strip()}")
    return statistics.median(json.loads(out.read_text())["step_time_s"]["all"][WARM - 1:])


def rows_of(args, folder, name, workload):
    path = folder / "case.yaml"
    machine = pathlib.Path(args.machine)
    path.write_text(f"machine: {machine.resolve() if machine.exists() else machine}\nworkload: {{{workload}}}\noptimizer: {{name: adam, learning_rate: 1e-3}}\n"
                    f"policy: {{name: resident}}\nsteps: {WARM + args.steps}\n" + (f"data: {{images: {folder / 'images'}}}\n" if "mlp" in workload else ""))
    said = {policy: tandem(args, "simulate", path, policy, folder) for policy in POLICIES}
    taken = {policy: [] for policy in POLICIES}
    for _ in range(args.rounds):
        for policy in POLICIES:
            taken[policy].append(tandem(args, "train", path, policy, folder, f"--device={args.device}"))
    return [{"case": name, "policy": policy, "said_ms": 1e3 * said[policy], "ms": [1e3 * s for s in taken[policy]],
             "said_ratio": said[policy] / said["resident"], "ratio": statistics.median(taken[policy]) / statistics.median(taken["resident"])}
            for policy in POLICIES]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tandem", default="build/bin/tandem")
    parser.add_argument("--machine", required=True)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        write_images(pathlib.Path(name) / "images")
        for case, workload in (SMALL if args.small else CASES).items():
            try:
                fresh = rows_of(args, pathlib.Path(name), case, workload)
            except RuntimeError as error:
                print(f"{case}: {error}", flush=True)
                continue
            for row in fresh:
                print(f"{row['case']:40} {row['policy']:14} said {row['said_ms']:9.3f} ms ({row['said_ratio']:.2f}), taken {statistics.median(row['ms']):9.3f} ms "
                      f"({row['ratio']:.2f}; {min(row['ms']):.3f} to {max(row['ms']):.3f})", flush=True)
            rows += fresh
            if args.output:
                args.output.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if rows else 1


if __name__ == "__main__":
    raise SystemExit(main())
