#!/usr/bin/env python3
"""What `tandem calibrate --for` measures, beside runs of the same scenarios: each op, the computing of a step, and the step itself.

    benchmarks/live/measured_ops.py --tandem build/bin/tandem --machine machine.yaml --device cuda --text docs/architecture.md --output measured_ops.json

`--machine` is a profile of this machine (`tandem calibrate`). Each question is measured (`calibrate --for`), predicted with what was measured, and
trained (`train --learn`, into a profile of its own, so that both sides have the ops of one step). Questions marked held out are predicted with the
ops of all others alone: what they have of their own is modelled. Imports need PyTorch and, but for modules by hand, transformers on the PATH's python3 or
`--python`.

Prints each question: errors of the step, of its 90th percentile over time, of computing, the median and the worst op; then the rows that miss: ops by more
than 5 %, computing by more than 2 %, steps by more than 8 %. `--small`: tiny questions, for a machine without a GPU.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

# Name, workload, policy and other keys. `held`: no op of it is measured for it.
NAMED = [
    ("gpt2", "{model: gpt2, batch: 8, precision: bf16}", "resident", ""),
    ("gpt2 odd", "{model: gpt2, batch: 5, sequence: 777, precision: bf16}", "resident", ""),
    ("gpt2-medium", "{model: gpt2-medium, batch: 4, precision: fp16}", "resident", ""),
    ("gpt2-large", "{model: gpt2-large, batch: 3, precision: bf16}", "zero_offload", "limits: {device_bytes: 16GiB}"),
    ("gpt2-xl", "{model: gpt2-xl, batch: 2, precision: bf16}", "zero_infinity", "limits: {device_bytes: 12GiB}"),
    ("gpt custom", "{family: gpt, layers: 10, hidden: 1040, heads: 13, vocabulary: 50257, sequence: 900, batch: 6, precision: bf16}", "resident", ""),
    ("gpt two parts", "{model: gpt2, batch: 4, micro_batches: 3, precision: bf16}", "balanced", "limits: {device_bytes: 3GiB}"),
    ("gpt recompute", "{model: gpt2-medium, batch: 6, recompute: block, precision: bf16}", "resident", ""),
    ("opt-125m", "{model: opt-125m, batch: 7, sequence: 1111, precision: fp16}", "resident", ""),
    ("opt-1.3b", "{model: opt-1.3b, batch: 2, sequence: 1536, precision: bf16}", "balanced", "limits: {device_bytes: 14GiB}"),
    ("bert-base", "{model: bert-base, batch: 24, precision: fp16}", "resident", ""),
    ("bert-large", "{model: bert-large, batch: 11, sequence: 384, precision: bf16}", "zero_offload", "limits: {device_bytes: 6GiB}"),
    ("qwen2.5-0.5b", "{model: qwen2.5-0.5b, batch: 2, sequence: 1000, precision: bf16}", "resident", ""),
    ("qwen2.5-1.5b", "{model: qwen2.5-1.5b, batch: 1, sequence: 2048, precision: bf16}", "zero_offload", "limits: {device_bytes: 20GiB}"),
    ("bloom-560m", "{model: bloom-560m, batch: 4, sequence: 700, precision: bf16}", "resident", ""),
    ("gemma-2-2b", "{model: gemma-2-2b, batch: 1, sequence: 1024, precision: bf16}", "balanced", "limits: {device_bytes: 30GiB}"),
    ("t5-small", "{model: t5-small, batch: 9, precision: bf16}", "resident", ""),
    ("t5-base", "{model: t5-base, batch: 7, precision: bf16}", "balanced", "limits: {device_bytes: 6GiB}"),
    ("vit-b", "{model: vit-b-16, batch: 50, precision: bf16}", "resident", ""),
    ("vit-l", "{model: vit-l-16, batch: 24, precision: fp16}", "balanced", "limits: {device_bytes: 8GiB}"),
    ("whisper-small", "{model: whisper-small, batch: 3, precision: bf16}", "resident", ""),
    ("clip", "{model: clip-vit-b-32, batch: 60, precision: bf16}", "resident", ""),
    ("resnet-50", "{model: resnet-50, batch: 40, precision: fp16}", "resident", ""),
    ("mixtral cut", "{model: mixtral-8x7b, layers: 2, hidden: 1024, heads: 8, batch: 2, sequence: 512, precision: bf16}", "resident", ""),
]
HELD_OUT = [
    ("gpt2 held", "{model: gpt2, batch: 6, sequence: 640, precision: bf16}", "resident", ""),
    ("bert held", "{model: bert-base, batch: 17, sequence: 200, precision: fp16}", "resident", ""),
    ("vit held", "{model: vit-b-16, batch: 33, precision: bf16}", "resident", ""),
]
# Module and function of tests/imports, batch, policy.
IMPORTED = [("hand_written:gpt", 4, "resident"), ("hand_written:gpt", 7, "zero_offload"), ("hand_written:unet", 3, "resident"),
            ("transformers_models:llama", 4, "resident"), ("transformers_models:gemma2", 5, "resident"), ("transformers_models:mixtral", 2, "resident"),
            ("transformers_models:vit", 6, "balanced"), ("transformers_models:whisper", 3, "resident"), ("transformers_models:clip", 5, "resident")]

SMALL_GPT = "{{family: gpt, layers: {}, hidden: {}, heads: {}, vocabulary: {}, sequence: {}, batch: {}, precision: fp32}}"
SMALL_NAMED = [
    ("gpt a", SMALL_GPT.format(3, 320, 5, 3001, 96, 2), "resident", ""),
    ("gpt b", SMALL_GPT.format(2, 528, 11, 1009, 72, 3), "zero_offload", ""),
    ("gpt c", SMALL_GPT.format(6, 256, 4, 701, 80, 6), "on_demand", "limits: {device_bytes: 96MiB}"),
    ("vit", "{family: vit, image: 96, patch: 12, layers: 3, hidden: 192, heads: 3, classes: 11, batch: 5, precision: fp32}", "resident", ""),
]
SMALL_HELD_OUT = [("gpt held", SMALL_GPT.format(3, 320, 5, 3001, 96, 3), "resident", "")]
SMALL_IMPORTED = [("hand_written:small", 3, "resident")]

WARM = 3
MISSES = {"op": 0.05, "computing": 0.02, "step": 0.08}
SOURCE = pathlib.Path(__file__).resolve().parents[2]


def tandem(args, *arguments, cwd=None):
    return subprocess.run([args.tandem, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=cwd)


def questions(args, folder):
    """(name, scenario's file, held out). Imports that cannot be made are told and left out."""
    for held, rows in ((False, SMALL_NAMED if args.small else NAMED), (True, SMALL_HELD_OUT if args.small else HELD_OUT)):
        for name, workload, policy, keys in rows:
            path = folder / f"{name.replace(' ', '_')}.yaml"
            data = f"data: {{text: {pathlib.Path(args.text).resolve()}}}\n" if args.text and has_text(workload) else ""
            path.write_text(f"machine: {args.machine}\nworkload: {workload}\npolicy: {{name: {policy}}}\n{keys}\n{data}")
            yield name, path, held
    for function, batch, policy in SMALL_IMPORTED if args.small else IMPORTED:
        name = f"{function.split(':')[1]} {batch} {policy}"
        imported = folder / function.replace(":", "_")
        if not imported.exists():
            done = tandem(args, "import", function, "--output", imported, "--dynamic", "batch", "--python", args.python, cwd=SOURCE / "tests" / "imports")
            if done.returncode != 0:
                print(f"{name}: not imported: {done.stderr.strip()[-200:]}", flush=True)
                continue
        path = folder / f"{name.replace(' ', '_')}.yaml"
        path.write_text(f"machine: {args.machine}\nworkload: {{family: imported, path: {imported}, batch: {batch}}}\npolicy: {{name: {policy}}}\n")
        yield name, path, False


def has_text(workload):
    """Pictures and spectra are made up where no data is named."""
    return not any(word in workload for word in ("vit", "whisper", "resnet", "clip"))


def rows_of(profile):
    """Ops of a profile: their keys to the median in ns, of recorded launches where there are some, as most of a run's are."""
    if not profile.exists():
        return {}
    pattern = r"- \{body: (\S+), precision: (\w+), sizes: \[([^\]]*)\], kernels: \"(\w+)\", processor: (\w+)(.*?)source:"
    out = {}
    for *key, times in re.findall(pattern, profile.read_text(), re.DOTALL):
        found = dict(re.findall(r"(afresh|repeated): \{median: (\d+)ns", times))
        out[tuple(key)] = int(found.get("repeated") or found["afresh"])
    return out


def steps_of(result):
    return result["step_time_s"]["all"][WARM - 1:]


def tail(values):
    values = sorted(values)
    return values[min(len(values) - 1, int(0.9 * len(values)))]


def measured_for(args, folder, path):
    """The profile with the question's ops; None and why, where they cannot be measured."""
    profile = folder / "for.yaml"
    done = tandem(args, "calibrate", "--device", args.device, "--for", path, "--base", args.machine, "--seconds", args.seconds, "--output", profile)
    return (profile, done.stderr) if done.returncode == 0 else (None, f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")


def merged(args, folder, paths):
    profile = folder / "all.yaml"
    done = tandem(args, "calibrate", "--device", args.device, "--for", *paths, "--base", args.machine, "--seconds", args.seconds, "--output", profile, "--quiet")
    return profile if profile.exists() else sys.exit(f"nothing could be measured: {done.stderr[-300:]}")


def compared(args, folder, path, profile):
    """A row of errors, of a question that was predicted with the profile and trained."""
    learnt, said, done_json = folder / "learnt.yaml", folder / "said.json", folder / "done.json"
    learnt.unlink(missing_ok=True)
    steps = f"--set=steps={WARM + args.steps + 2}"
    predicted = tandem(args, "simulate", path, f"--set=machine={profile}", steps, "--json", said, "--quiet")
    if predicted.returncode != 0:
        return {"why": f"simulate: exit code {predicted.returncode}: {predicted.stderr.strip()[-300:]}"}
    trained = tandem(args, "train", path, "--device", args.device, steps, "--learn", learnt, "--json", done_json, "--quiet")
    if trained.returncode != 0:
        return {"why": f"train: exit code {trained.returncode}: {trained.stderr.strip()[-300:]}"}
    said, done = json.loads(said.read_text()), json.loads(done_json.read_text())
    mine, theirs = rows_of(profile), rows_of(learnt)
    return {"step_s": [statistics.median(steps_of(said)), statistics.median(steps_of(done))],
            "p90_s": [tail(steps_of(said)), tail(steps_of(done))],
            "spread": (tail(steps_of(done)) - min(steps_of(done))) / statistics.median(steps_of(done)),
            "compute_s": [said["compute_s"], done["compute_s"]],
            "measured_share": said.get("measured_ops", {}).get("share", 0),
            "ops": {" ".join(key): [mine[key], theirs[key]] for key in sorted(mine.keys() & theirs.keys())}}


def error(pair):
    return pair[0] / pair[1] - 1


def tell(name, row):
    if "why" in row:
        print(f"{name[:22]:22} {row['why']}", flush=True)
        return
    ops = [abs(error(pair)) for pair in row["ops"].values()]
    step, computing = error(row["step_s"]), error(row["compute_s"])
    print(f"{name[:22]:22} {1e3 * row['step_s'][1]:9.2f} ms a step (spread {100 * row['spread']:4.1f} %): {100 * step:+6.1f} %"
          f"{' *' if abs(step) > MISSES['step'] else '  '} p90 {100 * error(row['p90_s']):+6.1f} %, computing {100 * computing:+6.1f} %"
          f"{' *' if abs(computing) > MISSES['computing'] else '  '} {100 * row['measured_share']:5.1f} % measured; {len(ops):3} ops: "
          + (f"median {100 * statistics.median(ops):4.1f} %, worst {100 * max(ops):5.1f} %" if ops else "none") + (" held out" if row["held"] else ""), flush=True)


def tell_all(rows):
    print("\nrows that miss")
    for name, row in rows.items():
        for op, pair in row.get("ops", {}).items():
            if abs(error(pair)) > MISSES["op"]:
                print(f"  {name}: {op}: {pair[0] / 1e3:.1f} us measured, {pair[1] / 1e3:.1f} us in the run, {100 * error(pair):+.1f} %")
        for what, key in (("computing", "compute_s"), ("step", "step_s")):
            if key in row and abs(error(row[key])) > MISSES[what]:
                print(f"  {name}: {what}: {1e3 * row[key][0]:.2f} ms said, {1e3 * row[key][1]:.2f} ms taken, {100 * error(row[key]):+.1f} %")
    for held in (False, True):
        those = [row for row in rows.values() if row["held"] == held and "step_s" in row]
        if not those:
            continue
        steps = [abs(error(row["step_s"])) for row in those]
        computing = [abs(error(row["compute_s"])) for row in those]
        ops = [abs(error(pair)) for row in those for pair in row["ops"].values()]
        print(f"{len(those)} runs{' of held-out sizes' if held else ''}: steps: median error {100 * statistics.median(steps):.1f} %, 90th percentile "
              f"{100 * tail(steps):.1f} %, worst {100 * max(steps):.1f} %; computing: median {100 * statistics.median(computing):.1f} %, worst "
              f"{100 * max(computing):.1f} %" + (f"; {len(ops)} ops: median {100 * statistics.median(ops):.1f} %, {sum(e > MISSES['op'] for e in ops)} beyond "
                                                  f"{100 * MISSES['op']:.0f} %" if ops else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tandem", required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--text", help="a file of text to train on; without one, the installed corpus")
    parser.add_argument("--python", default=sys.executable, help="for imports")
    parser.add_argument("--steps", type=int, default=30, help="that count, after three that do not")
    parser.add_argument("--seconds", type=float, default=5, help="of measuring a question")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    args.machine, args.tandem = pathlib.Path(args.machine).resolve(), str(pathlib.Path(args.tandem).resolve())
    rows = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        asked = list(questions(args, folder))
        for question, path, held in asked:
            if held:
                continue
            profile, why = measured_for(args, folder, path)
            rows[question] = {"held": False, **(compared(args, folder, path, profile) if profile else {"why": f"calibrate: {why}"})}
            tell(question, rows[question])
        held_out = [(question, path) for question, path, held in asked if held]
        if held_out:
            everything = merged(args, folder, [path for _, path, held in asked if not held])
        for question, path in held_out:
            rows[question] = {"held": True, **compared(args, folder, path, everything)}
            tell(question, rows[question])
    pathlib.Path(args.output).write_text(json.dumps(rows, indent=1))
    tell_all(rows)


if __name__ == "__main__":
    main()
