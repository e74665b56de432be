#!/usr/bin/env python3
"""Policy adaptive beside the best placement that never changes, on drawn mixes of texts, images and sounds.

Simulates, with `tandem simulate`: 20 mixes, of which one half is for development (what a policy may be trained or
tuned on) and the other is held out; each has four phases (text-heavy, image-heavy, audio-heavy, text-heavy again) of
drawn shares and lengths. For each machine and mix: adaptive, and all placements that are named (transforms on workers
or on the device, 0, 1 or one half of the micro-batches on the CPU). The best of these over the whole run is what adaptive has to
beat; the best of each phase is what nobody knows beforehand. Rates are of whole runs without their first steps.

  python3 benchmarks/multimodal_mixes.py --build build [--machines gtx,titan,h100] [--mixes 20] [--learned] [--limits]
                                         [--json FILE]
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
# Cores are shared by what computes and what decodes: lane_cores.
MACHINES = {
    "h100": ("{derive_from: h100_measured, name: h100_beside_16_cores}", 14, "bf16"),
    "gtx": ("{derive_from: gtx_1650, name: gtx_1650_beside_12_cores, tiers: {host_pinned: {capacity: 64GiB, bandwidth: "
            "80GB/s}}, cpu: {cores: 12, peak: 1.2TFLOPS, optimizer: {rate: 1.2Gparameters/s}}, host: {lane_cores: "
            "[{lane: cpu_compute, cores: 12}, {lane: cpu_optimizer, cores: 12}, {lane: loader, cores: 1}]}}", 12, "fp32"),
    "titan": ("{derive_from: titan_rtx, name: titan_rtx_beside_64_cores, tiers: {host_pinned: {capacity: 256GiB, "
              "bandwidth: 300GB/s}}, cpu: {cores: 64, peak: 5TFLOPS, optimizer: {rate: 4Gparameters/s}}, host: "
              "{lane_cores: [{lane: cpu_compute, cores: 64}, {lane: cpu_optimizer, cores: 64}, {lane: loader, cores: 1}]}}",
              16, "fp32"),
}
WORKLOAD = ("{{family: trimodal, image: 224, patch: 32, image_layers: 4, image_hidden: 256, image_heads: 4, "
            "audio_layers: 3, audio_hidden: 192, audio_heads: 3, frames: 300, text_layers: 6, text_hidden: 384, "
            "text_heads: 6, projection: 256, batch: 64, micro_batches: {micro_batches}, precision: {precision}, mix: {mix}}}")
SKIPPED = 4  # steps at the start that load weights and fill the pipeline


def drawn_mix(seed, steps):
    """Four phases: lists of {from_step, image, audio}."""
    draw = random.Random(seed)
    lengths = [draw.uniform(0.5, 1.5) for _ in range(4)]
    shares = [(draw.uniform(0, .15), draw.uniform(0, .1)), (draw.uniform(.7, 1), draw.uniform(0, .1)),
              (draw.uniform(0, .15), draw.uniform(.7, 1)), (draw.uniform(0, .15), draw.uniform(0, .1))]
    at, mix = 0.0, []
    for length, (image, audio) in zip(lengths, shares):
        mix.append({"from_step": round(at / sum(lengths) * steps), "image": round(image, 3), "audio": round(audio, 3)})
        at += length
    return mix


def steady_mix(seed):
    draw = random.Random(seed)
    return [{"from_step": 0, "image": round(draw.random(), 3), "audio": round(draw.random(), 3)}]


def scenario(machine, mix, policy, steps, micro_batches=4, more=""):
    profile, workers, precision = MACHINES[machine]
    points = "[" + ", ".join("{" + ", ".join(f"{k}: {v}" for k, v in p.items()) + "}" for p in mix) + "]"
    workload = WORKLOAD.format(mix=points, precision=precision, micro_batches=micro_batches)
    return (f"machine: {profile}\nworkload: {workload}\ndata: {{pipeline: {{workers: {workers}}}}}\n"
            f"policy: {policy}\nsteps: {steps}\n{more}")


def fixed_policies(micro_batches, states=""):
    return {f"{where}+{n}": f"{{name: static_best{states}, transforms: {where}, cpu_micro_batches: {n}}}"
            for n in sorted({0, 1, micro_batches // 2}) for where in ("workers", "device")}


class Runner:
    def __init__(self, build, folder):
        self.tandem = pathlib.Path(build).resolve() / "bin" / "tandem"
        self.folder = pathlib.Path(folder)

    def simulate(self, job):
        """Ends of the steps in seconds, or why there are none."""
        number, text = job
        path, result = self.folder / f"{number}.yaml", self.folder / f"{number}.json"
        path.write_text(text)
        done = subprocess.run([str(self.tandem), "simulate", str(path), "--quiet", "--no-trials", "--json", str(result)],
                              capture_output=True, text=True)
        if done.returncode == 3:
            return None
        if done.returncode != 0:
            sys.exit(f"{path}: {done.stderr}")
        run = json.loads(result.read_text())
        ends, now = [], run["head_s"]
        ends.append(now)
        for step in run["step_time_s"]["all"]:
            now += step
            ends.append(now)
        path.unlink(), result.unlink()
        return ends

    def all(self, texts):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(self.simulate, enumerate(texts)))


def between(ends, first, last):
    """Seconds from the end of step `first` to that of step `last`."""
    return ends[min(last, len(ends) - 1)] - ends[first]


def judge(mix, ends_of, steps, names):
    """Ratios of throughput: each name's over that of the best fixed placement, whole run and worst phase."""
    fixed = {name: ends for name, ends in ends_of.items() if name not in names and ends is not None}
    if not fixed or any(ends_of[name] is None for name in names):
        return None
    whole = min(fixed, key=lambda name: between(fixed[name], SKIPPED, steps - 1))
    starts = [point["from_step"] for point in mix] + [steps]
    out = {"best": whole}
    best_by_phase, oracle = [], 0
    # A phase counts once the batches that were made ahead are used up.
    spans = [(max(a, SKIPPED) + (3 if a else 0), b - 1) for a, b in zip(starts, starts[1:]) if b - a > 8]
    for span in spans:
        best_by_phase.append(min(fixed, key=lambda name: between(fixed[name], *span)))
        oracle += between(fixed[best_by_phase[-1]], *span)
    out["best_by_phase"] = best_by_phase
    out["oracle"] = sum(between(fixed[whole], *span) for span in spans) / oracle
    for name in names:
        ends = ends_of[name]
        out[name] = {"whole": between(fixed[whole], SKIPPED, steps - 1) / between(ends, SKIPPED, steps - 1),
                     "phases": [between(fixed[best], *span) / between(ends, *span)
                                for best, span in zip(best_by_phase, spans)]}
    return out


def compare(runner, machine, mixes, steps, learned, micro_batches=4, states="", more=""):
    policies = {"adaptive": "{name: adaptive" + states + "}", "static_best": "{name: static_best" + states + "}"}
    if learned:
        policies["learned"] = "{name: learned, network: " + learned + states + "}"
    names = list(policies)
    policies.update(fixed_policies(micro_batches, states))
    jobs = [(m, name) for m in range(len(mixes)) for name in policies]
    ends = runner.all([scenario(machine, mixes[m], policies[name], steps, micro_batches, more) for m, name in jobs])
    found = {m: {} for m in range(len(mixes))}
    for (m, name), of in zip(jobs, ends):
        found[m][name] = of
    return [judge(mix, found[m], steps, names) for m, mix in enumerate(mixes)]


def line(title, judged, name):
    whole = sorted(j[name]["whole"] for j in judged)
    worst = min(min(j[name]["phases"]) for j in judged)
    best = statistics.median(j["oracle"] for j in judged)
    print(f"{title:<26} {name:<11} {len(judged):>3} {statistics.median(whole):>7.3f} {whole[0]:>7.3f} {whole[-1]:>7.3f} "
          f"{worst:>7.3f} {best:>7.3f}", flush=True)


def train(runner, machine, mixes, steps, output):
    """One network a machine; train-policy draws mixes of its own, so none of these is seen."""
    path = runner.folder / f"train_{machine}.yaml"
    path.write_text(scenario(machine, mixes[0], "{name: adaptive}", steps))
    subprocess.run([str(runner.tandem), "train-policy", str(path), "--output", str(output), "--quiet", "--generations",
                    "8", "--population", "12", "--mixes", "3"], check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("TANDEM_BUILD", str(SOURCE / "build")))
    parser.add_argument("--machines", default="h100,gtx,titan")
    parser.add_argument("--mixes", type=int, default=20)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--learned", action="store_true", help="train a network for each machine as well")
    parser.add_argument("--limits", action="store_true", help="vary cores, device_bytes and micro_batches instead")
    parser.add_argument("--json", help="write all ratios")
    flags = parser.parse_args()
    record = {}
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(flags.build, folder)
        print("throughput over that of the best fixed placement; phases: of the best fixed one of each phase")
        print(f"{'':<26} {'policy':<11} {'n':>3} {'median':>7} {'worst':>7} {'best':>7} {'phase':>7} {'to gain':>7}")
        if flags.limits:
            record = limits(runner, flags)
        else:
            for machine in flags.machines.split(","):
                record[machine] = whole_runs(runner, machine, flags)
    if flags.json:
        pathlib.Path(flags.json).write_text(json.dumps(record, indent=1) + "\n")


def whole_runs(runner, machine, flags):
    mixes = [drawn_mix(seed, flags.steps) for seed in range(flags.mixes)]
    half = flags.mixes // 2
    network = ""
    if flags.learned:
        network = str(runner.folder / f"{machine}.safetensors")
        train(runner, machine, mixes[:half], flags.steps, network)
    judged = compare(runner, machine, mixes, flags.steps, network)
    steady = compare(runner, machine, [steady_mix(1000 + seed) for seed in range(max(2, half // 2))], flags.steps, network)
    for name in [n for n in ("adaptive", "static_best", "learned") if n in judged[0]]:
        line(f"{machine} development", judged[:half], name)
        line(f"{machine} held out", judged[half:], name)
        line(f"{machine} steady", steady, name)
    places = sorted({b for j in judged for b in j["best_by_phase"]})
    print(f"{machine}: best over whole runs: {', '.join(sorted({j['best'] for j in judged}))}; in phases: {', '.join(places)}")
    return {"development": judged[:half], "held_out": judged[half:], "steady": steady}


def limits(runner, flags):
    record = {}
    mixes = [drawn_mix(seed, flags.steps) for seed in range(2)]
    cases = [(f"{cores} cores", 4, "", f"limits: {{cores: {cores}}}\n") for cores in (4, 16)]
    cases += [(f"{n} micro-batches", n, "", "") for n in (2, 8)]
    cases += [("states resident", 4, ", states: resident", ""), ("states balanced", 4, ", states: balanced", ""),
              ("device 600MiB, balanced", 4, ", states: balanced", "limits: {device_bytes: 600MiB}\n")]
    for machine in flags.machines.split(","):
        for title, micro_batches, states, more in cases:
            judged = compare(runner, machine, mixes, flags.steps, "", micro_batches, states, more)
            if None in judged:
                print(f"{machine} {title}: no placement fits", flush=True)
                continue
            line(f"{machine} {title}", judged, "adaptive")
            print(f"  best in phases: {judged[0]['best_by_phase']}")
            record[f"{machine} {title}"] = judged
    return record


if __name__ == "__main__":
    main()
