#!/usr/bin/env python3
"""Trainings that several GPUs of a host share: what their steps take beside what was said, and beside PyTorch's own.

    benchmarks/live/ranks.py --tandem build/bin/tandem --machine machine.yaml --text docs/architecture.md --output ranks.json
    benchmarks/live/ranks.py ... --peers        # PyTorch's and DeepSpeed's ways, the same network, beside ours

`--machine` is a profile of this machine with links and collectives (`tandem calibrate --nproc 2`). The cases are networks that no calibration has,
under each strategy. Prints every row, those that miss by more than 10 % marked; then the median error and the 90th percentile.
"""
import argparse
import concurrent.futures
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

WARM = 3
FEED_FORWARD = 5632
LARGE = {"family": "gpt", "layers": 24, "hidden": 2048, "heads": 16, "vocabulary": 50304, "sequence": 1024, "batch": 8, "precision": "bf16"}


def gpt(layers, hidden, heads, vocabulary, sequence, batch):
    return {**LARGE, "layers": layers, "hidden": hidden, "heads": heads, "vocabulary": vocabulary, "sequence": sequence, "batch": batch}


# Name, workload, parallel, policy, of the workload besides (and limits).
CASES = [
    ("one GPU", LARGE, {}, "resident", {}),
    ("data", LARGE, {"data": 2}, "resident", {}),
    ("states divided", LARGE, {"data": 2}, "resident", {"partition": "states"}),
    ("states divided, host", LARGE, {"data": 2}, "balanced", {"partition": "states", "limits": {"device_bytes": "18GiB"}}),
    ("1f1b", {**LARGE, "batch": 2}, {"pipeline": 2, "schedule": "1f1b"}, "resident", {"micro_batches": 8}),
    ("gpipe", {**LARGE, "batch": 2}, {"pipeline": 2, "schedule": "gpipe"}, "resident", {"micro_batches": 8}),
    ("interleaved", {**LARGE, "batch": 2}, {"pipeline": 2, "schedule": "interleaved", "chunks": 2}, "resident", {"micro_batches": 8}),
    ("tensor", LARGE, {"tensor": 2}, "resident", {}),
]
HELD_OUT = [
    ("data", gpt(12, 768, 12, 50257, 1024, 12), {"data": 2}, "resident", {}),
    ("data", gpt(18, 1280, 20, 32003, 777, 5), {"data": 2}, "resident", {"micro_batches": 2}),
    ("data", {**gpt(16, 2048, 16, 32000, 2048, 2), "family": "llama", "feed_forward": FEED_FORWARD}, {"data": 2}, "resident", {}),
    ("data", gpt(30, 1600, 25, 50257, 512, 4), {"data": 2}, "zero_offload", {}),
    ("states divided", gpt(24, 1536, 16, 50257, 1024, 6), {"data": 2}, "resident", {"partition": "states"}),
    ("states divided", gpt(36, 1280, 20, 50257, 1000, 3), {"data": 2}, "balanced", {"partition": "states"}),
    ("states divided", {**gpt(20, 1792, 14, 65024, 1536, 3), "family": "llama", "feed_forward": FEED_FORWARD}, {"data": 2}, "zero_offload", {"partition": "states"}),
    ("states divided", gpt(12, 3072, 24, 50304, 640, 7), {"data": 2}, "resident", {"partition": "states", "micro_batches": 3}),
    ("all divided", gpt(24, 2048, 16, 50257, 1024, 4), {"data": 2}, "zero_infinity", {"partition": "parameters", "limits": {"device_bytes": "20GiB"}}),
    ("all divided", gpt(16, 1920, 15, 40961, 900, 6), {"data": 2}, "zero_offload", {"partition": "parameters"}),
    ("gpipe", gpt(24, 1024, 16, 50257, 1024, 4), {"pipeline": 2, "schedule": "gpipe"}, "resident", {"micro_batches": 6}),
    ("1f1b", gpt(21, 1408, 11, 32003, 1200, 2), {"pipeline": 2, "schedule": "1f1b"}, "resident", {"micro_batches": 7}),
    ("1f1b", {**gpt(14, 2304, 18, 32000, 1024, 3), "family": "llama", "feed_forward": FEED_FORWARD}, {"pipeline": 2, "schedule": "1f1b"}, "resident", {"micro_batches": 8}),
    ("interleaved", gpt(32, 1536, 12, 50257, 768, 3), {"pipeline": 2, "schedule": "interleaved", "chunks": 2}, "resident", {"micro_batches": 8}),
    ("1f1b", gpt(26, 1728, 12, 50304, 512, 8), {"pipeline": 2, "schedule": "1f1b"}, "zero_offload", {"micro_batches": 4}),
    ("tensor", gpt(18, 1536, 12, 50257, 1000, 6), {"tensor": 2}, "resident", {}),
    ("tensor, by tokens", {**gpt(16, 2048, 16, 32000, 2048, 2), "family": "llama", "feed_forward": FEED_FORWARD},
     {"tensor": 2, "sequence_kind": "megatron"}, "resident", {}),
    ("sequence", gpt(12, 2048, 16, 32003, 4096, 1), {"sequence": 2}, "resident", {}),
    ("naive", gpt(15, 1856, 29, 25013, 999, 4), {"pipeline": 2, "schedule": "naive"}, "resident", {"micro_batches": 3}),
]


def scenario_text(args, workload, parallel, policy, more):
    more = dict(more)
    limits = more.pop("limits", {})
    return json.dumps({"machine": str(pathlib.Path(args.machine).resolve()), "workload": {**workload, **more},
                       **({"parallel": parallel} if parallel else {}), "limits": limits, "policy": {"name": policy},
                       "optimizer": {"name": "adamw", "learning_rate": 1e-4}, "steps": WARM + args.steps,
                       **({"data": {"text": str(pathlib.Path(args.text).resolve())}} if args.text else {})})


def chosen(args, name):
    return not args.only or any(part in name for part in args.only)


def step_s(args, words, path):
    out = path.with_suffix(".json")
    done = subprocess.run([args.tandem, *words, path, "--json", out, "--quiet"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    said = json.loads(out.read_text())
    return statistics.median(said["step_time_s"]["all"][WARM - 1:]), said.get("loss")


def run_cases(args, folder, cases):
    rows = []
    paths = [folder / f"case{number}.yaml" for number in range(len(cases))]
    for path, (_, *case) in zip(paths, cases):
        path.write_text(scenario_text(args, *case))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # before anything is timed
        predicted = list(pool.map(lambda path: step_s(args, ["simulate"], path), paths))
    for path, said, (name, workload, parallel, policy, more) in zip(paths, predicted, cases):
        row = {"strategy": name, "workload": {**workload, **more}, "parallel": parallel, "policy": policy}
        rows.append(row)
        row["predicted_s"], why = said
        if row["predicted_s"] is not None:
            row["measured_s"], row["loss"] = step_s(args, ["train", "--device", args.device], path)
            why = row["loss"]
        label = f"{name}, {workload['family']} {workload['layers']}x{workload['hidden']}, {policy}"
        if row.get("measured_s") is None:
            print(f"{label}: {why}", flush=True)
            continue
        row["error"] = row["predicted_s"] / row["measured_s"] - 1
        print(f"{label:58} {1e3 * row['predicted_s']:8.1f} ms said, {1e3 * row['measured_s']:8.1f} ms taken, {100 * row['error']:+6.1f} %"
              f"{' *' if abs(row['error']) > 0.1 else ''}", flush=True)
    return rows


def run_peers(args):
    """The same network as CASES' by PyTorch, on as many GPUs."""
    rows = []
    folder = pathlib.Path(__file__).parents[1] / "peers"
    offload, parallel = "bench_deepspeed_offload.py", "bench_parallel.py"
    micro = ["--batch", "2", "--accum", "8"]
    sizes = ["--layers", "24", "--hidden", "2048", "--heads", "16", "--seq", "1024", "--batch", "8", "--steps", str(args.steps), "--warmup", "3"]
    for name, gpus, script, flags in (
            ("plain, one GPU", 1, offload, ["--mode", "plain"]),
            ("DDP, bf16 states", 2, offload, ["--mode", "plain", "--master", "bf16"]),
            ("DDP, fp32 masters", 2, offload, ["--mode", "plain"]),
            ("FSDP2", 2, offload, ["--mode", "fsdp2", "--fsdp-no-offload"]),
            ("FSDP2, CPU offload", 2, offload, ["--mode", "fsdp2"]),
            ("DeepSpeed ZeRO-2 offload", 2, offload, ["--mode", "ds2"]),
            ("torch 1f1b", 2, parallel, ["--mode", "pipeline", "--schedule", "1f1b", *micro]),
            ("torch gpipe", 2, parallel, ["--mode", "pipeline", "--schedule", "gpipe", *micro]),
            ("torch interleaved", 2, parallel, ["--mode", "pipeline", "--schedule", "interleaved", *micro]),
            ("torch tensor", 2, parallel, ["--mode", "tensor"])):
        if not chosen(args, name):
            continue
        words = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={gpus}", "--", str(folder / script), *sizes, *flags]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
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
    parser.add_argument("--machine", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--text", help="a file of text to train on; without one, the installed corpus")
    parser.add_argument("--steps", type=int, default=6, help="that count, after three that do not")
    parser.add_argument("--peers", action="store_true", help="DDP, FSDP2, torch's tensor and pipeline parallelism and DeepSpeed, and ours beside them, instead of the held-out cases")
    parser.add_argument("--only", nargs="*", help="strategies and peers whose names have one of these in them")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        said = {"peers": run_peers(args) if args.peers else []}
        said["ours"] = run_cases(args, folder, [case for case in (CASES if args.peers else HELD_OUT) if chosen(args, case[0])])
    pathlib.Path(args.output).write_text(json.dumps(said, indent=1))
    errors = sorted(abs(row["error"]) for row in said["ours"] if "error" in row)
    if errors:
        print(f"{len(errors)} runs: median error {100 * statistics.median(errors):.1f} %, 90th percentile "
              f"{100 * errors[min(len(errors) - 1, int(0.9 * len(errors)))]:.1f} %, worst {100 * errors[-1]:.1f} %")


if __name__ == "__main__":
    main()
