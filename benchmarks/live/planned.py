#!/usr/bin/env python3
"""What `tandem plan` writes, trained: twenty questions to plan on a calibrated machine, and what their steps take live beside what was said.

    benchmarks/live/planned.py --tandem build/bin/tandem --machine machine.yaml --device cuda --text docs/architecture.md --output planned.json

`--machine` is a profile of this machine (`tandem calibrate`). The questions are models as people have them, with limits of memory and batches
that no calibration has. Prints every row, those that miss by more than 10 % marked, then the median error, the 90th percentile, and how many
of the runs did not fit. `--small`: questions for a machine without a GPU.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

# Model, flags of plan, keys.
QUESTIONS = [
    ("gpt2", ["--device-memory", "4GiB"], []),
    ("gpt2-medium", ["--device-memory", "6GiB", "--batch", "5"], []),
    ("gpt2-large", ["--device-memory", "8GiB", "--exact"], []),
    ("gpt2-xl", ["--device-memory", "12GiB", "--host-memory", "48GiB"], []),
    ("gpt2-xl", ["--device-memory", "40GiB", "--batch", "6", "--exact"], []),
    ("opt-1.3b", ["--device-memory", "10GiB", "--batch", "3"], ["workload.sequence=1536"]),
    ("opt-2.7b", ["--device-memory", "24GiB", "--exact", "--batch", "2"], []),
    ("bert-large", ["--device-memory", "5GiB", "--batch", "20"], []),
    ("bert-base", ["--device-memory", "3GiB", "--exact"], []),
    ("qwen2.5-0.5b", ["--device-memory", "8GiB", "--batch", "2"], ["workload.sequence=3072"]),
    ("qwen2.5-1.5b", ["--device-memory", "16GiB", "--host-memory", "40GiB"], ["workload.sequence=1000"]),
    ("bloom-560m", ["--device-memory", "7GiB", "--batch", "4"], ["workload.sequence=700"]),
    ("bloom-1b7", ["--device-memory", "20GiB", "--exact", "--batch", "4"], ["workload.sequence=1024"]),
    ("t5-base", ["--device-memory", "6GiB", "--batch", "7"], []),
    ("t5-large", ["--device-memory", "8GiB", "--batch", "4"], []),
    ("vit-l-16", ["--device-memory", "6GiB", "--batch", "24"], []),
    ("whisper-small", ["--device-memory", "6GiB", "--batch", "3"], []),
    ("whisper-medium", ["--device-memory", "14GiB", "--batch", "2", "--exact"], []),
    ("gemma-2-2b", ["--device-memory", "24GiB", "--host-memory", "64GiB", "--batch", "2"], ["workload.sequence=1024"]),
    ("gpt-j-6b", ["--device-memory", "32GiB", "--host-memory", "96GiB", "--batch", "2"], ["workload.sequence=1024"]),
]
SMALL_GPT = "workload={{family: gpt, layers: {}, hidden: {}, heads: {}, vocabulary: {}, sequence: {}, precision: fp32}}"
SMALL = [(None, ["--device-memory", f"{device}MiB", "--host-memory", "2GiB", "--batch", str(batch), *exact], [SMALL_GPT.format(*sizes)])
         for device, batch, exact, sizes in (
             (40, 2, [], (4, 320, 5, 3001, 96)), (64, 3, ["--exact"], (3, 528, 11, 1009, 72)), (96, 4, [], (6, 384, 6, 5003, 128)),
             (160, 1, ["--exact"], (5, 640, 10, 2003, 200)), (48, 6, [], (8, 256, 4, 701, 80)))]
WARM = 3


def tandem(args, *arguments):
    return subprocess.run([args.tandem, *map(str, arguments)], capture_output=True, text=True, check=False)


def answer(args, folder, model, flags, sets):
    """The plan's best, and where its scenario lies; None and why, where there is none."""
    scenario, said = folder / "planned.yaml", folder / "answer.json"
    model = ["--model", model] if model else []
    done = tandem(args, "plan", *model, "--machine", pathlib.Path(args.machine).resolve(), *flags, "--time-budget", args.time_budget,
                  *(f"--set={s}" for s in sets), "--output", scenario, "--json", said, "--quiet")
    if done.returncode == 0:
        return json.loads(said.read_text())["best"][0], scenario
    return None, json.loads(said.read_text())["verdict"] if done.returncode == 3 else f"exit code {done.returncode}: {done.stderr.strip()}"


def trained_s(args, folder, scenario):
    data = [f"--set=data.text={pathlib.Path(args.text).resolve()}"] if args.text and args.has_text(scenario) else []
    done = tandem(args, "train", scenario, "--device", args.device, f"--set=steps={WARM + args.steps}", *data, "--json", folder / "out.json", "--quiet")
    if done.returncode != 0:
        return None, done.returncode, done.stderr.strip()
    return statistics.median(json.loads((folder / "out.json").read_text())["step_time_s"]["all"][WARM - 1:]), 0, ""


def has_text(scenario):
    """Pictures and spectra are made up where no data is named."""
    return not any(word in scenario.read_text() for word in ("vit-", "whisper-", "resnet-"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tandem", required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--text", help="a file of text to train on; without one, the installed corpus")
    parser.add_argument("--steps", type=int, default=6, help="that count, after three that do not")
    parser.add_argument("--time-budget", default="10s")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    args.has_text = has_text
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model, flags, sets in SMALL if args.small else QUESTIONS:
            row = {"model": model or sets[0], "flags": flags, "sets": sets}
            rows.append(row)
            best, scenario = answer(args, folder, model, flags, sets)
            if best is None:
                print(f"{row['model']:14} no plan: {scenario[:150]}", flush=True)
                continue
            measured, row["exit_code"], row["why"] = trained_s(args, folder, scenario)
            row.update(words=best["words"], predicted_s=best["step_time_s"], measured_s=measured)
            if measured is None:
                print(f"{row['model'][:14]:14} {best['words']}: exit code {row['exit_code']}: {row['why'][-160:]}", flush=True)
                continue
            row["error"] = best["step_time_s"] / measured - 1
            print(f"{row['model'][:14]:14} {best['step_time_s']:8.3f} s said, {measured:8.3f} s taken, {100 * row['error']:+6.1f} %"
                  f"{' *' if abs(row['error']) > 0.1 else '  '} {best['words']}", flush=True)
    pathlib.Path(args.output).write_text(json.dumps(rows, indent=1))
    errors = sorted(abs(row["error"]) for row in rows if "error" in row)
    if errors:
        print(f"{len(errors)} runs of {len(rows)} questions: median error {100 * statistics.median(errors):.1f} %, 90th percentile "
              f"{100 * errors[min(len(errors) - 1, int(0.9 * len(errors)))]:.1f} %, worst {100 * errors[-1]:.1f} %; "
              f"{sum(row.get('exit_code') == 3 for row in rows)} did not fit")


if __name__ == "__main__":
    main()
