#!/usr/bin/env python3
"""Layers that the CPU computes (policy.cpu_modules): what they were predicted to take, beside what they take.

    benchmarks/live/cpu_modules.py --tandem build/bin/tandem --machine machine.yaml --device cpu --output cpu_modules.json

`--machine` is a profile of this machine (`tandem calibrate`). Twenty networks that no calibration trains: odd widths, vocabularies and
batches. Of each, one module or several run on the CPU; the time that they took it a step stands beside the simulated one. Prints every
row, those that miss by more than 5 % marked, and the median error.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

GPT = {"family": "gpt", "layers": 3, "vocabulary": 5003}
CASES = [
    ({**GPT, "hidden": 320, "heads": 5, "sequence": 96, "batch": 2}, "block1"),
    ({**GPT, "hidden": 528, "heads": 11, "sequence": 72, "batch": 1}, "block0..1"),
    ({**GPT, "hidden": 768, "heads": 12, "sequence": 200, "batch": 1}, "block2"),
    ({**GPT, "hidden": 416, "heads": 8, "sequence": 333, "batch": 1}, "block*"),
    ({**GPT, "hidden": 640, "heads": 10, "sequence": 64, "batch": 3}, "head"),
    ({**GPT, "hidden": 256, "heads": 4, "sequence": 512, "batch": 1, "recompute": "block"}, "block0"),
    ({**GPT, "hidden": 384, "heads": 6, "sequence": 128, "batch": 5}, "block1, head"),
    ({**GPT, "hidden": 1024, "heads": 16, "sequence": 48, "batch": 2, "vocabulary": 1009}, "block0"),
    ({**GPT, "hidden": 448, "heads": 7, "sequence": 160, "batch": 2, "attention": "unfused"}, "block1"),
    ({**GPT, "hidden": 352, "heads": 11, "sequence": 256, "batch": 2, "tied_embedding": False}, "embedding, head"),
    ({"family": "bert", "layers": 3, "hidden": 320, "heads": 5, "vocabulary": 3001, "sequence": 120, "batch": 3}, "block1"),
    ({"family": "bert", "layers": 2, "hidden": 576, "heads": 9, "vocabulary": 7001, "sequence": 80, "batch": 2}, "block0..1"),
    ({"family": "llama", "layers": 3, "hidden": 320, "heads": 5, "feed_forward": 864, "vocabulary": 4001, "sequence": 144, "batch": 2}, "block1"),
    ({"family": "llama", "layers": 2, "hidden": 512, "heads": 8, "feed_forward": 1376, "vocabulary": 2003, "sequence": 100, "batch": 2}, "block*"),
    ({"family": "llama", "layers": 2, "hidden": 640, "heads": 10, "feed_forward": 1728, "vocabulary": 1009, "sequence": 64, "batch": 1}, "block0"),
    ({"family": "mlp", "inputs": 64, "classes": 10, "layers": 4, "hidden": 1100, "batch": 200}, "layer1..2"),
    ({"family": "mlp", "inputs": 64, "classes": 10, "layers": 3, "hidden": 1900, "batch": 90}, "layer1"),
    ({"family": "mlp", "inputs": 64, "classes": 10, "layers": 5, "hidden": 600, "batch": 700}, "layer*"),
    ({**GPT, "hidden": 896, "heads": 14, "sequence": 96, "batch": 1, "layers": 2}, "block1"),
    ({**GPT, "hidden": 288, "heads": 9, "sequence": 700, "batch": 1, "layers": 2}, "block0"),
]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")


def busy_s(path):
    """Of the CPU's compute lanes, a step."""
    result = json.loads(pathlib.Path(path).read_text())
    share = sum(v for lane, v in result["busy_share"].items() if lane.split("/")[1].split(".")[0] == "cpu_compute")
    return share * statistics.fmean(result["step_time_s"]["all"])


def measure(args, folder, number, workload, modules):
    scenario = folder / f"case{number}.yaml"
    scenario.write_text(json.dumps({
        "machine": str(pathlib.Path(args.machine).resolve()), "steps": args.steps,
        "workload": {"precision": args.precision, **workload},
        "policy": {"name": "zero_offload", "cpu_modules": modules}}))
    common = ["--json", folder / "out.json", "--quiet"]
    run([args.tandem, "simulate", scenario, *common])
    predicted = busy_s(folder / "out.json")
    run([args.tandem, "train", scenario, "--device", args.device, *common])
    return predicted, busy_s(folder / "out.json")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tandem", required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (workload, modules) in enumerate(CASES):
            predicted, measured = measure(args, pathlib.Path(folder), number, workload, modules)
            error = predicted / measured - 1
            rows.append({"workload": workload, "modules": modules, "predicted_s": predicted, "measured_s": measured, "error": error})
            print(f"{workload['family']:6} {workload['hidden']:5} {modules:18} predicted {1e3 * predicted:8.2f} ms, measured {1e3 * measured:8.2f} ms  "
                  f"{100 * error:+6.1f} %{'  *' if abs(error) > 0.05 else ''}", flush=True)
    errors = sorted(abs(row["error"]) for row in rows)
    print(f"median error {100 * statistics.median(errors):.1f} %, worst {100 * errors[-1]:.1f} %, {sum(e > 0.05 for e in errors)} of {len(errors)} beyond 5 %")
    pathlib.Path(args.output).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
