#!/usr/bin/env python3
"""Does trimodal training learn? Trains images, sounds and captions of Tux Paint's stamps into one space, and asks for
each item which of all others it belongs to: among samples that were trained on, and among those that were held out,
which share no caption and no sound with the former (--split random: which may).

An answer is right if its sample has the item's caption: several stamps share one. Chance is that of a uniform guess,
and p the probability that independent guesses give as many right answers or more, summed exactly."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from trimodal_inputs import SOURCE, Inputs, apart, readable, stacked, stamps, write_manifest
from trimodal_towers import Towers

WORKLOAD = {"family": "trimodal", "image": 32, "patch": 8, "image_layers": 2, "image_hidden": 96, "image_heads": 3,
            "mels": 40, "frames": 120, "audio_layers": 2, "audio_hidden": 96, "audio_heads": 3, "vocabulary": 257,
            "sequence": 24, "text_layers": 2, "text_hidden": 96, "text_heads": 3, "projection": 64, "batch": 64,
            "micro_batches": 1, "precision": "fp32"}


def scenario_of(options, manifest, folder):
    pipeline = {"workers": options.workers}
    if options.augment:
        pipeline["image"] = {"crop": "random", "crop_scale": 0.5, "flip": 0.5}
    else:
        pipeline["cache"] = {"decoded": "1GiB"}
    return {"machine": options.machine, "workload": WORKLOAD, "policy": {"name": options.policy}, "steps": options.steps,
            "seed": options.seed,
            "data": {"manifest": str(manifest), "pipeline": pipeline},
            "optimizer": {"learning_rate": options.learning_rate, "betas": [0.9, 0.98], "clip_norm": 1,
                          "weight_decay": options.weight_decay, "decay": "matrices", "schedule": "cosine",
                          "warmup_steps": max(1, options.steps // 15)},
            "validation": {"every": max(1, options.steps // 5), "batches": 1, "fraction": options.held_out},
            "checkpoint": {"directory": str(folder / "checkpoints")}}


def train(options, scenario, folder):
    """What `tandem train` says of the run, and its last checkpoint."""
    (folder / "scenario.yaml").write_text(json.dumps(scenario))  # JSON is YAML
    command = [options.tandem, "train", folder / "scenario.yaml", "--device", options.device, "--json",
               folder / "result.json"]
    subprocess.run(list(map(str, command)), check=True, stdout=sys.stderr)
    result = json.loads((folder / "result.json").read_text())
    return result, folder / "checkpoints" / f"step-{options.steps:08}"


def probability_of_at_least(right, chances):
    """That independent guesses, each right with a chance of its own, give so many right answers or more."""
    counts = [1.0]
    for chance in chances:
        counts = [before * (1 - chance) + one_less * chance
                  for before, one_less in zip(counts + [0.0], [0.0] + counts)]
    return sum(counts[right:])


def retrieval(queries, candidates, captions):
    nearest = (queries @ candidates.T).argmax(1).tolist()
    right = sum(captions[i] == captions[found] for i, found in enumerate(nearest))
    chances = [captions.count(caption) / len(captions) for caption in captions]
    return {"items": len(captions), "right": right, "top1": right / len(captions), "chance": sum(chances) / len(chances),
            "p": probability_of_at_least(right, chances)}


def table(title, rows, captions):
    image, sound, text = rows
    found = {"image -> text": retrieval(image, text, captions), "sound -> text": retrieval(sound, text, captions),
             "image -> sound": retrieval(image, sound, captions)}
    print(f"{title}: {len(captions)} candidates with {len(set(captions))} captions")
    for name, r in found.items():
        print(f"  {name:15} top-1 {r['top1']:6.1%} ({r['right']:3} right)   chance {r['chance']:5.2%}   p = {r['p']:.2g}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    build = Path(os.environ.get("TANDEM_BUILD", SOURCE / "build")) / "bin"
    parser.add_argument("--tandem", type=Path, default=build / "tandem", metavar="FILE")
    parser.add_argument("--stages", type=Path, default=build / "media_stages", metavar="FILE", help="the decoders")
    parser.add_argument("--machine", default="cpu_2_cores", help="a hardware profile (default: %(default)s)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--policy", default="resident", help="(default: %(default)s)")
    parser.add_argument("--language", default="fr", help="of the sounds (default: %(default)s, which most stamps have)")
    parser.add_argument("--steps", type=int, default=1200, help="(default: %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=2e-3, help="(default: %(default)s)")
    parser.add_argument("--weight-decay", type=float, default=0.1, help="(default: %(default)s)")
    parser.add_argument("--held-out", type=float, default=0.2, metavar="FRACTION", help="(default: %(default)s)")
    parser.add_argument("--split", choices=("apart", "random"), default="apart",
                        help="random: what is held out may share captions and sounds with what is trained on")
    parser.add_argument("--augment", action="store_true", help="crop and mirror the pictures that are trained on at random")
    parser.add_argument("--workers", type=int, default=2, help="threads that decode (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="what is made stays in it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where all figures go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        rows, made, refused = readable(Inputs(options.stages, WORKLOAD), stamps(folder, options.language, options.seed))
        print(f"{len(rows)} stamps with image, sound ({options.language}) and caption; {len(refused)} cannot be decoded")
        if options.split == "apart":
            rows = apart(rows, int(len(rows) * options.held_out))
        write_manifest(folder / "manifest.csv", rows)
        result, checkpoint = train(options, scenario_of(options, folder / "manifest.csv", folder), folder)
        report(options, Towers(checkpoint, WORKLOAD), result, rows, stacked(made, rows))


def report(options, towers, result, rows, inputs):
    embedded = towers.rows(*inputs)
    first = len(rows) - int(len(rows) * options.held_out)
    captions = [row["text"] for row in rows]
    batch = [part[first:first + WORKLOAD["batch"]] for part in embedded]
    ours, theirs = towers.loss(*batch), result["validation_loss"][-1]["loss"]
    print(f"loss of the first held-out batch: {theirs:.6f} in the run, {ours:.6f} by torch from the checkpoint")
    if not abs(ours - theirs) <= 1e-4 * abs(theirs):
        sys.exit("trimodal_retrieval.py: the forward pass written in torch is not the run's")
    figures = {"steps": options.steps, "seconds": result["makespan_s"], "loss": result["loss"],
               "validation_loss": result["validation_loss"],
               "trained": table("trained on", [part[:first] for part in embedded], captions[:first]),
               "held_out": table("held out", [part[first:] for part in embedded], captions[first:])}
    print(f"{options.steps} steps in {result['makespan_s']:.0f} s; loss {result['loss'][0]:.3f} in the first step, "
          f"{result['loss'][-1]:.3f} in the last")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
