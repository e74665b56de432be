#!/usr/bin/env python3
"""Times Tandem's Adam on the CPU beside LibTorch's and DeepSpeed's, and what memory can move, in turns, and prints a table.

    benchmarks/peers/cpu_adam.py --threads 16 --parameters 0.1

DeepSpeed's runs where its package is on the path of `--python`, and is compiled at its first use; without it its row says why
it is missing. G parameters/s: the median of all rounds, and the lowest and highest. Bytes are what an update must move of
one parameter: DeepSpeed and LibTorch update FP32 parameters from FP32 gradients; where gradients and parameters are bf16, as
in training, they need passes of their own to convert them, which LibTorch's third row has.
"""
import argparse, json, os, statistics, sys

from compare import run

HERE = os.path.dirname(os.path.abspath(__file__))
# Name in bench_runtime, what the table calls it, bytes a parameter.
OURS = [
    ("memory_limit", "memory: the same bytes as below, hardly any arithmetic", 26),
    ("ours/bf16", "Tandem, bf16 gradients and parameters", 26),
    ("ours/fp32", "Tandem, fp32", 28),
    ("libtorch/fp32", "LibTorch fused, fp32", 28),
    ("libtorch/fp32_and_bf16_passes", "LibTorch fused, and passes for bf16", 44),
]
DEEPSPEED, DEEPSPEED_BYTES = "DeepSpeed CPUAdam, fp32", 28


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--parameters", type=float, default=0.06, help="in billions: far beyond any cache")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--program", default=os.path.join(HERE, "../../build/bin/bench_runtime"))
    p.add_argument("--python", default=sys.executable, help="one that has torch, and DeepSpeed")
    p.add_argument("--timeout", type=int, default=300, help="seconds a program of a round")
    p.add_argument("--json", help="every round's figures")
    return p.parse_args()


def run_ours(a):
    names = "|".join(name for name, _, _ in OURS)
    command = [a.program, f"--benchmark_filter=^({names})/threads:{a.threads}/", "--benchmark_format=json"]
    environment = {**os.environ, "CPU_ADAM_ELEMENTS": str(int(a.parameters * 1e9)), "OMP_NUM_THREADS": str(a.threads)}
    printed, reason = run(command, a.timeout, environment)
    if reason:
        sys.exit(f"cpu_adam.py: {a.program}: {reason}")
    results = json.loads(printed)["benchmarks"] if printed else []  # nothing is printed where no name matches
    found = {row["name"].split("/threads:")[0]: row for row in results}
    missing = [name for name, _, _ in OURS if name not in found]
    if missing:
        sys.exit(f"cpu_adam.py: {a.program} has no {', '.join(missing)} with {a.threads} threads")
    return {name: found[name]["items_per_second"] / 1e9 for name, _, _ in OURS}


def run_deepspeed(a):
    """(G parameters/s, why not)"""
    command = [a.python, os.path.join(HERE, "bench_deepspeed_offload.py"), "--mode", "adam", "--device", "cpu",
               "--adam-params", str(a.parameters)]
    printed, reason = run(command, a.timeout, {**os.environ, "OMP_NUM_THREADS": str(a.threads)})
    if reason:
        return None, reason
    rows = {key: value for row in json.loads(printed.strip().splitlines()[-1])["adam"] for key, value in row.items()}
    rate = rows.get("deepspeed_cpu_adam_gparam_per_s")
    return rate, None if rate else str(rows.get("deepspeed_cpu_adam", "no figure"))[:120]


def main():
    a = parse()
    rates, reason = {name: [] for name, _, _ in OURS}, None
    rates[DEEPSPEED] = []
    for i in range(a.rounds):
        for name, rate in run_ours(a).items():
            rates[name].append(rate)
        rate, reason = run_deepspeed(a)
        if rate:
            rates[DEEPSPEED].append(rate)
        print(f"round {i + 1} of {a.rounds}", file=sys.stderr)
    print(f"{a.threads} threads, {a.parameters:g} billion parameters, {a.rounds} rounds\n")
    print("| | G parameters/s: median (lowest to highest) | bytes a parameter | GB/s |\n|---|---|--:|--:|")
    for name, title, size in OURS + [(DEEPSPEED, DEEPSPEED, DEEPSPEED_BYTES)]:
        got = rates[name]
        if not got:
            print(f"| {title} | {reason} | {size} | |")
            continue
        middle = statistics.median(got)
        print(f"| {title} | {middle:.2f} ({min(got):.2f} to {max(got):.2f}) | {size} | {middle * size:.0f} |")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(rates, f, indent=1)


if __name__ == "__main__":
    main()
