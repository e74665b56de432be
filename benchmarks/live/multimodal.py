#!/usr/bin/env python3
"""Multi-modal runs on real media beside their predictions, and the same losses wherever things are placed.

    benchmarks/live/multimodal.py twin   --tandem build/bin/tandem --machine machine.yaml --device cuda --manifest stamps.csv --output twin.json
    benchmarks/live/multimodal.py phases --tandem build/bin/tandem --machine machine.yaml --device cuda --manifest stamps.csv
    benchmarks/live/multimodal.py decode --tandem build/bin/tandem --machine machine.yaml --device cuda --manifest photographs.csv
    benchmarks/live/multimodal.py losses --tandem build/bin/tandem --machine machine.yaml --device cuda --manifest stamps.csv

`--machine` is a profile of this machine (`tandem calibrate`), `--manifest` one of real files (scripts/tuxpaint_manifest.py). What decoding a file costs is
predicted from the files' average size, which this script reads (of JPEG, PNG and Ogg).

`twin`: mixes, placements, policies and workers; each is simulated, then trained. Prints each case: the median step, its error, the 90th percentile's, and the
error of the device's peak. `phases`: a mix that goes from text to images to sounds and back, under adaptive and under each static placement. `decode`: of
a manifest with JPEGs, decoded by workers and by the device. `losses`: of one scenario under placements, policies and workers. `--small`: tiny networks, for a machine without a GPU. `--only N:M`: of the cases.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import tempfile

TRIMODAL = ("{family: trimodal, image: 224, patch: 16, image_layers: 12, image_hidden: 768, image_heads: 12, audio_layers: 6, audio_hidden: 512, "
            "audio_heads: 8, mels: 80, frames: 300, text_layers: 8, text_hidden: 512, text_heads: 8, vocabulary: 300, sequence: 40, projection: 512, "
            "batch: 48, precision: bf16}")
LLM = ("{family: multimodal_llm, layers: 12, hidden: 1024, heads: 16, key_heads: 8, feed_forward: 2816, vocabulary: 300, sequence: 512, image: 224, patch: 16, "
       "image_layers: 12, image_hidden: 768, image_heads: 12, audio_layers: 6, audio_hidden: 512, audio_heads: 8, mels: 80, frames: 300, audio_pool: 5, "
       "batch: 12, precision: bf16}")
FROZEN = ', trained: ["text*", "*aligner*", "backbone*", "head*"]'
SMALL = {"image: 224": "image: 32", "patch: 16": "patch: 8", "image_layers: 12": "image_layers: 2", "audio_layers: 6": "audio_layers: 2",
         "image_hidden: 768": "image_hidden: 48", "image_heads: 12": "image_heads: 3", "audio_hidden: 512": "audio_hidden: 40", "audio_heads: 8": "audio_heads: 5",
         "frames: 300": "frames: 100", "mels: 80": "mels: 16", "text_layers: 8": "text_layers: 2", "text_hidden: 512": "text_hidden: 48",
         "text_heads: 8": "text_heads: 3", "layers: 12, hidden: 1024": "layers: 2, hidden: 64", "heads: 16, key_heads: 8": "heads: 4, key_heads: 2",
         "feed_forward: 2816": "feed_forward: 128", "sequence: 512": "sequence: 64", "batch: 48": "batch: 16", "batch: 12": "batch: 4", "bf16": "fp32",
         "projection: 512": "projection: 32"}

MIXES = {"text": (0.1, 0.1), "image": (1.0, 0.1), "audio": (0.1, 1.0), "all": (1.0, 1.0), "half": (0.5, 0.5)}


def mix(image, audio):
    return f", mix: [{{from_step: 0, image: {image}, audio: {audio}}}]"


def twin_cases():
    """(name, workload, pipeline, policy)."""
    cases = []
    for name, shares in MIXES.items():
        for workers in (2, 8):
            cases.append((f"trimodal {name} w{workers}", TRIMODAL[:-1] + mix(*shares) + "}", f"workers: {workers}", "resident"))
    for name in ("text", "image", "audio", "half"):
        cases.append((f"llm {name}", LLM[:-1] + mix(*MIXES[name]) + "}", "workers: 8", "resident"))
        cases.append((f"llm {name} balanced", LLM[:-1] + mix(*MIXES[name]) + "}", "workers: 8", "balanced"))
        cases.append((f"llm {name} transform on device", LLM[:-1] + mix(*MIXES[name]) + "}", "workers: 4, transform: device", "zero_offload"))
    for name in ("image", "audio", "all"):
        cases.append((f"trimodal {name} device w12", TRIMODAL[:-1] + mix(*MIXES[name]) + "}", "workers: 12, transform: device", "resident"))
        cases.append((f"trimodal {name} adaptive", TRIMODAL[:-1] + mix(*MIXES[name]) + "}", "workers: 8", "adaptive"))
    for name in ("image", "half"):
        cases.append((f"llm {name} frozen, features kept", LLM[:-1] + FROZEN + mix(*MIXES[name]) + "}", "workers: 8, cache: {features: 4GiB}", "resident"))
        cases.append((f"trimodal {name} decoded kept", TRIMODAL[:-1] + mix(*MIXES[name]) + "}", "workers: 8, cache: {decoded: 1GiB}", "resident"))
    return cases


def jpeg_pixels(data):
    """Of its frame header, which is found from segment to segment."""
    at = 2
    while data[at + 1] not in (0xC0, 0xC1, 0xC2):
        at += 2 + int.from_bytes(data[at + 2: at + 4], "big")
    return int.from_bytes(data[at + 5: at + 7], "big") * int.from_bytes(data[at + 7: at + 9], "big")


def averages(path):
    """Of a manifest's files: decoded pixels and samples of sound."""
    rows = list(csv.DictReader(open(path, newline="")))
    folder = pathlib.Path(path).parent
    pixels, samples, kind = [], [], "png"
    for row in rows[:: max(1, len(rows) // 100)]:
        if row.get("image", "").lower().endswith((".jpg", ".jpeg")):
            kind = "jpeg"
            pixels.append(jpeg_pixels((folder / row["image"]).read_bytes()))
        if row.get("image", "").lower().endswith(".png"):
            head = (folder / row["image"]).read_bytes()[:24]
            pixels.append(int.from_bytes(head[16:20], "big") * int.from_bytes(head[20:24], "big"))
        if row.get("audio", "").lower().endswith(".ogg"):
            page = (folder / row["audio"]).read_bytes()
            at = page.rfind(b"OggS")
            samples.append(int.from_bytes(page[at + 6: at + 14], "little"))
    sets = []
    if pixels:
        sets += ["--set", f"data.pipeline.image.kind={kind}", "--set", f"data.pipeline.image.pixels={int(statistics.mean(pixels))}"]
    if samples:
        sets += ["--set", "data.pipeline.audio.kind=vorbis", "--set", f"data.pipeline.audio.samples={int(statistics.mean(samples))}"]
    return sets


class Runs:
    def __init__(self, args):
        self.args = args
        self.folder = tempfile.TemporaryDirectory()
        self.sets = averages(args.manifest)

    def scenario(self, workload, pipeline, policy, steps):
        if self.args.small:
            for big, small in SMALL.items():
                workload = workload.replace(big, small)
        path = pathlib.Path(self.folder.name) / "s.yaml"
        path.write_text(f"machine: {pathlib.Path(self.args.machine).resolve()}\nworkload: {workload}\n"
                        f"data: {{manifest: {pathlib.Path(self.args.manifest).resolve()}, pipeline: {{{pipeline}}}}}\n"
                        f"policy: {policy if policy.startswith('{') else '{name: ' + policy + '}'}\nsteps: {steps}\nlimits: {{host_bytes: 24GiB}}\n")
        return str(path)

    def run(self, command, scenario, *flags):
        device = ["--device", self.args.device] if command == "train" else []
        done = subprocess.run([self.args.tandem, command, scenario, *device, *self.sets, *flags, "--quiet", "--json", "-"], capture_output=True, text=True)
        if done.returncode != 0:
            return {"failed": done.stderr.strip()[-600:]}
        return json.loads(done.stdout)


def step_times(result):
    """Of the second half: until then steps come that are the first of their sizes, whose networks are made and whose kernels are loaded."""
    steps = result["step_time_s"]["all"]
    return sorted(steps[len(steps) // 2:])


def quantile(values, share):
    return values[min(len(values) - 1, int(share * len(values)))]


def twin(args, runs):
    rows, errors, tails, peaks = [], [], [], []
    first, last = (int(x) if x else None for x in (args.only or ":").split(":"))
    for name, workload, pipeline, policy in twin_cases()[first:last]:
        scenario = runs.scenario(workload, pipeline, policy, args.steps)
        said, took = runs.run("simulate", scenario), runs.run("train", scenario)
        if "failed" in said or "failed" in took:
            print(f"{name:36} FAILED {said.get('failed') or took.get('failed')}", flush=True)
            continue
        a, b = step_times(said), step_times(took)
        error = statistics.median(a) / statistics.median(b) - 1
        tail = quantile(a, 0.9) / quantile(b, 0.9) - 1
        peak = said["peak_bytes"]["device0"] / max(1, took["peak_bytes"]["device0"]) - 1
        errors.append(abs(error)), tails.append(abs(tail)), peaks.append(abs(peak))
        spread = quantile(b, 0.9) / quantile(b, 0.1) - 1
        rows.append({"case": name, "said_s": statistics.median(a), "took_s": statistics.median(b), "error": error, "p90_error": tail, "peak_error": peak})
        print(f"{name:36} {statistics.median(b) * 1e3:8.2f} ms (spread {spread:6.1%})  said {statistics.median(a) * 1e3:8.2f} ms {error:+7.1%}"
              f"{' *' if abs(error) > 0.08 else '  '}  p90 {tail:+7.1%}  peak {peak:+6.1%}", flush=True)
    if errors:
        errors.sort(), tails.sort(), peaks.sort()
        print(f"{len(errors)} cases: step median {statistics.median(errors):.1%}, 90th percentile {quantile(errors, 0.9):.1%}; "
              f"p90 of steps median {statistics.median(tails):.1%}; peak worst {peaks[-1]:.2%}")
    if args.output:
        pathlib.Path(args.output).write_text(json.dumps(rows, indent=1))


PLACEMENTS = {"adaptive": "{name: adaptive, states: resident}", "workers": "{name: static_best, states: resident, transforms: workers}",
              "device": "{name: static_best, states: resident, transforms: device}", "static_best": "{name: static_best, states: resident}"}


def phases(args, runs):
    length = args.steps
    points = [(0.05, 0.05), (1, 0.05), (0.05, 1), (0.05, 0.05)]
    text = ", mix: [" + ", ".join(f"{{from_step: {i * length}, image: {a}, audio: {b}}}" for i, (a, b) in enumerate(points)) + "]"
    table = {}
    for workers in (1, 4, 12):
        for name, policy in PLACEMENTS.items():
            scenario = runs.scenario(TRIMODAL[:-1] + text + "}", f"workers: {workers}", policy, length * len(points))
            said, took = runs.run("simulate", scenario), runs.run("train", scenario)
            if "failed" in took or "failed" in said:
                print(f"w{workers} {name}: FAILED {took.get('failed') or said.get('failed')}")
                continue
            all_s = took["step_time_s"]["all"]
            parts = [sum(all_s[i * length + 2:(i + 1) * length]) for i in range(len(points))]
            table[(workers, name)] = (sum(all_s[2:]), parts)
            print(f"w{workers:<3} {name:12} {sum(all_s[2:]):7.3f} s (said {sum(said['step_time_s']['all'][2:]):7.3f})  phases " +
                  " ".join(f"{p:6.3f}" for p in parts), flush=True)
        statics = {n: t for (w, n), t in table.items() if w == workers and n != "adaptive"}
        if statics and (workers, "adaptive") in table:
            best = min(statics, key=lambda n: statics[n][0])
            own = table[(workers, "adaptive")]
            per_phase = [own[1][i] / min(t[1][i] for t in statics.values()) for i in range(len(points))]
            print(f"w{workers}: adaptive takes {own[0] / statics[best][0]:.3f} of the best static placement ({best}); by phase, of each phase's best: " +
                  " ".join(f"{x:.3f}" for x in per_phase))


VIT = "{family: vit, image: 224, patch: 16, layers: 12, hidden: 768, heads: 12, classes: 1000, batch: 128, precision: bf16}"


def decode(args, runs):
    """Where JPEGs are decoded: step, images a second, what was said of it, and how far losses are apart."""
    for workers in (1, 4, 15):
        wanted = None
        for place in ("cpu", "device"):
            scenario = runs.scenario(VIT, f"workers: {workers}, decode: {place}, transform: device", "resident", args.steps)
            said, took = runs.run("simulate", scenario), runs.run("train", scenario)
            if "failed" in said or "failed" in took:
                print(f"{workers:2} workers, {place}: FAILED {said.get('failed') or took.get('failed')}", flush=True)
                continue
            wanted = wanted or took["loss"]
            a, b = statistics.median(step_times(said)), statistics.median(step_times(took))
            apart = [abs(x - y) for x, y in zip(wanted, took["loss"])]
            print(f"{workers:2} workers, {place:6} {b * 1e3:8.2f} ms a step, {128 / b:7.0f} images/s; said {a * 1e3:8.2f} ms ({a / b - 1:+.1%}); losses apart by {apart[0]:.1e} in the first step, {max(apart):.1e} at most",
                  flush=True)


def losses(args, runs):
    base = None
    for name, pipeline, policy in [("one worker", "workers: 1", "resident"), ("eight workers", "workers: 8", "resident"),
                                   ("transform on the device", "workers: 8, transform: device", "resident"), ("decoded kept", "workers: 8, cache: {decoded: 1GiB}", "resident"),
                                   ("zero_infinity", "workers: 8", "zero_infinity"), ("adaptive", "workers: 8", "adaptive")]:
        took = runs.run("train", runs.scenario(TRIMODAL[:-1] + mix(0.7, 0.5) + "}", pipeline, policy, args.steps))
        if "failed" in took:
            print(f"{name}: FAILED {took['failed']}")
            continue
        base = base or took["loss"]
        apart = max(abs(a - b) for a, b in zip(base, took["loss"]))
        print(f"{name:26} first {took['loss'][0]:.6f} last {took['loss'][-1]:.6f}  apart from the first run {apart:.2e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["twin", "phases", "decode", "losses"])
    parser.add_argument("--tandem", required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--manifest", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--output")
    parser.add_argument("--only")
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    {"twin": twin, "phases": phases, "decode": decode, "losses": losses}[args.what](args, Runs(args))


if __name__ == "__main__":
    main()
