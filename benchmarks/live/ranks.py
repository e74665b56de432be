#!/usr/bin/env python3
"""Trainings that several GPUs of a host share: what their steps take beside what was said, and beside PyTorch's own.

    benchmarks/live/ranks.py --tandem build/bin/tandem --machine machine.yaml --text docs/architecture.md --output ranks.json
    benchmarks/live/ranks.py ... --cases two --peers     # PyTorch's and DeepSpeed's ways, the same network, beside ours
    benchmarks/live/ranks.py ... --cases four --peers --machine of_four.yaml of_two.yaml     # 7B and 13B on four GPUs
    benchmarks/live/ranks.py ... --cases eight_small --device cpu --losses     # small networks by eight processes, without a GPU

`--machine` is a profile of this machine with links and collectives (`tandem calibrate --nproc 2`); what further ones predict stands beside. The cases
(rank_cases.py) are networks that no calibration has, under each strategy. `--losses`: how far losses are from those of the same batches without any
other division than data parallelism. Prints every row, those that miss by more than 10 % marked; then the median error and the 90th percentile.
"""
import argparse
import concurrent.futures
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import rank_cases

WARM = 3


def scenario_text(args, machine, workload, parallel, policy, more):
    more = dict(more)
    limits = more.pop("limits", {})
    path = pathlib.Path(machine)
    return json.dumps({"machine": str(path.resolve()) if path.exists() else machine, "workload": {**workload, **more},
                       **({"parallel": parallel} if parallel else {}), "limits": limits, "policy": {"name": policy},
                       "optimizer": {"name": "adamw", "learning_rate": 1e-4}, "steps": WARM + args.steps,
                       **({"data": {"text": str(pathlib.Path(args.text).resolve())}} if args.text else {})})


def chosen(args, name):
    return not args.only or any(part in name for part in args.only)


def step_s(args, words, path):
    out = path.with_suffix(".json")
    try:
        done = subprocess.run([args.tandem, *words, path, "--json", out, "--quiet"], capture_output=True, text=True, timeout=args.timeout, check=False)
    except subprocess.TimeoutExpired:
        return None, f"did not end within {args.timeout} s"
    if done.returncode != 0:
        return None, f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    said = json.loads(out.read_text())
    return statistics.median(said["step_time_s"]["all"][WARM - 1:]), said.get("loss")


def written(args, folder, cases, machine):
    for number, (_, *case) in enumerate(cases):
        path = folder / f"{pathlib.Path(machine).stem}{number}.yaml"
        path.write_text(scenario_text(args, machine, *case))
        yield path


def plain(workload, parallel, more):
    """The same batches with as many copies of the network, each whole on one device."""
    copies = parallel.get("data", 1)
    return (workload, {"data": copies} if copies > 1 else {}, "resident", {key: value for key, value in more.items() if key != "partition"})


def loss_beside(args, folder, known, row, case):
    workload, parallel, _, more = case
    if parallel.get("sequence", 1) > 1:
        return ", the loss is of a rank's own tokens"
    scenario = scenario_text(args, args.machine[0], *plain(workload, parallel, more))
    if scenario not in known:
        path = folder / f"plain{len(known)}.yaml"
        path.write_text(scenario)
        known[scenario] = step_s(args, ["train", "--device", args.device], path)[1]
    row["plain_loss"] = known[scenario]
    if not isinstance(row["plain_loss"], list):
        return f", without divisions: {row['plain_loss']}"
    apart = max(abs(own / other - 1) for own, other in zip(row["loss"], row["plain_loss"], strict=True))
    return f", losses within {apart:.1e}"


def run_cases(args, folder, cases):
    rows, known = [], {}
    paths = list(zip(*(written(args, folder, cases, machine) for machine in args.machine)))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # before anything is timed
        said = list(pool.map(lambda of_case: [step_s(args, ["simulate"], path) for path in of_case], paths))
    for of_case, predicted, (name, workload, parallel, policy, more) in zip(paths, said, cases):
        row = {"strategy": name, "workload": {**workload, **more}, "parallel": parallel, "policy": policy}
        rows.append(row)
        row["predicted_s"], why = predicted[0]
        row["other_machines"] = {str(machine): seconds for machine, (seconds, _) in zip(args.machine[1:], predicted[1:])}
        if row["predicted_s"] is not None:
            row["measured_s"], row["loss"] = step_s(args, ["train", "--device", args.device], of_case[0])
            why = row["loss"]
        label = f"{name}, {workload['family']} {workload['layers']}x{workload['hidden']}, {policy}"
        if row.get("measured_s") is None:
            print(f"{label}: {why}", flush=True)
            continue
        row["error"] = row["predicted_s"] / row["measured_s"] - 1
        others = "".join(f", {100 * (seconds / row['measured_s'] - 1):+6.1f} %" for seconds in row["other_machines"].values() if seconds)
        print(f"{label:58} {1e3 * row['predicted_s']:8.1f} ms said, {1e3 * row['measured_s']:8.1f} ms taken, {100 * row['error']:+6.1f} %{others}"
              f"{' *' if abs(row['error']) > 0.1 else ''}{loss_beside(args, folder, known, row, (workload, parallel, policy, more)) if args.losses else ''}", flush=True)
    return rows


def run_peers(args):
    """The same networks by PyTorch and DeepSpeed, on as many GPUs."""
    rows = []
    folder = pathlib.Path(__file__).parents[1] / "peers"
    for name, gpus, script, flags in rank_cases.PEERS.get(args.cases, []):
        if not chosen(args, name):
            continue
        words = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={gpus}", "--", str(folder / script), *flags, "--steps", str(args.steps), "--warmup", "3"]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=args.timeout, check=False)
        except subprocess.TimeoutExpired:
            print(f"{name}: did not end within {args.timeout} s", flush=True)
            continue
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            print(f"{name}: exit code {done.returncode}: {done.stderr.strip()[-300:]}", flush=True)
            continue
        row = {"strategy": name, **json.loads(lines[-1])}
        rows.append(row)
        print(f"{name:58} {[row[key] for key in row if key.startswith('step')]}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tandem", required=True)
    parser.add_argument("--machine", required=True, nargs="+")
    parser.add_argument("--cases", default="held_out", choices=sorted(rank_cases.CASES))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--text", help="a file of text to train on; without one, the installed corpus")
    parser.add_argument("--timeout", type=float, default=120, help="seconds that one run may take")
    parser.add_argument("--steps", type=int, default=6, help="that count, after three that do not")
    parser.add_argument("--peers", action="store_true", help="DDP, FSDP2, torch's tensor and pipeline parallelism and DeepSpeed, first")
    parser.add_argument("--losses", action="store_true", help="how far losses are from those of the same batches without divisions")
    parser.add_argument("--only", nargs="*", help="strategies and peers whose names have one of these in them")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        said = {"peers": run_peers(args) if args.peers else []}
        said["ours"] = run_cases(args, folder, [case for case in rank_cases.CASES[args.cases] if chosen(args, case[0])])
    pathlib.Path(args.output).write_text(json.dumps(said, indent=1))
    errors = sorted(abs(row["error"]) for row in said["ours"] if "error" in row)
    if errors:
        print(f"{len(errors)} runs: median error {100 * statistics.median(errors):.1f} %, 90th percentile "
              f"{100 * errors[min(len(errors) - 1, int(0.9 * len(errors)))]:.1f} %, worst {100 * errors[-1]:.1f} %")


if __name__ == "__main__":
    main()
