#!/usr/bin/env python3
"""A run that adapts, beside a neighbour that takes host memory bandwidth in its middle: how soon it is as fast as the policy that is best then.

    benchmarks/live/adapting.py --tandem build/bin/tandem --scenario scenarios/h200_gpt_1_4b.yaml --device cuda --output adapting.json \\
        --policies balanced,zero_offload,protrain --set limits.device_bytes=8GiB

First the adapting run, with the neighbour between two steps of it; then each policy for some steps, alone and beside the neighbour. Prints
the adapted run's median step 20 steps after each change, over the best policy's of that state.
"""
import argparse
import csv
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SETTLED = 20  # steps after a change


def copy_for_ever(megabytes):
    os.nice(0)
    import numpy
    source = numpy.ones(megabytes * 131072)
    target = numpy.empty_like(source)
    while True:
        numpy.copyto(target, source)


class Neighbour:
    """Processes that copy memory; each takes what one core can."""

    def __init__(self, processes):
        self.count, self.processes = processes, []

    def begin(self):
        self.processes = [multiprocessing.get_context("spawn").Process(target=copy_for_ever, args=(256,), daemon=True) for _ in range(self.count)]
        for process in self.processes:
            process.start()
        time.sleep(1.5)

    def end(self):
        for process in self.processes:
            process.kill()
            process.join()
        self.processes = []


def step_times(path):
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return [float(row["step_time_s"]) for row in csv.DictReader(file) if row["step_time_s"]]
    except (OSError, ValueError, KeyError):
        return []


def command(a, folder, name, policy, steps, *more):
    sets = [f"--set={s}" for s in (*a.set, f"policy={{name: {policy}}}", f"steps={steps}", "validation.every=0")]
    return [a.tandem, "train", a.scenario, f"--device={a.device}", "--quiet" if name != "adapted" else "--seed=0", *sets,
            f"--csv={folder / name}.csv", f"--json={folder / name}.json", *more]


def adapted(a, folder, neighbour):
    steps = 3 * a.phase
    log = open(folder / "adapted.err", "w+", encoding="utf-8")
    run = subprocess.Popen(command(a, folder, "adapted", a.begin_with, steps, "--adapt", f"--adapt-policies={a.policies}"), stderr=log, stdout=subprocess.DEVNULL)
    came = left = None
    while run.poll() is None:
        done = len(step_times(folder / "adapted.csv"))
        if came is None and done >= a.phase:
            neighbour.begin()
            came = len(step_times(folder / "adapted.csv"))
        if left is None and done >= 2 * a.phase:
            neighbour.end()
            left = len(step_times(folder / "adapted.csv"))
        time.sleep(0.05)
    neighbour.end()
    log.seek(0)
    sys.stderr.write("".join(line for line in log if line.startswith("adapt:")))
    if run.returncode != 0:
        log.seek(0)
        sys.exit(f"the adapting run ended with {run.returncode}: {log.read()[-500:]}")
    return came, left, step_times(folder / "adapted.csv"), json.loads((folder / "adapted.json").read_text(encoding="utf-8"))


def fixed(a, folder, policy):
    done = subprocess.run(command(a, folder, "fixed", policy, a.fixed_steps), capture_output=True, text=True, check=False)
    times = step_times(folder / "fixed.csv")
    (folder / "fixed.csv").unlink(missing_ok=True)
    return statistics.median(times[-5:]) if done.returncode == 0 and len(times) >= 5 else None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tandem", default="build/bin/tandem")
    p.add_argument("--scenario", default="scenarios/h200_gpt_1_4b.yaml")
    p.add_argument("--device", default="cuda")
    p.add_argument("--policies", default="balanced,zero_offload,protrain,split_update,deep_optimizer_states")
    p.add_argument("--begin-with", default="balanced")
    p.add_argument("--phase", type=int, default=50, help="steps before the neighbour comes, beside it, and after it")
    p.add_argument("--fixed-steps", type=int, default=12)
    p.add_argument("--neighbours", type=int, default=6, help="processes that copy memory")
    p.add_argument("--set", action="append", default=[])
    p.add_argument("--output", type=pathlib.Path)
    a = p.parse_args()
    neighbour = Neighbour(a.neighbours)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        came, left, times, result = adapted(a, folder, neighbour)
        alone, beside = {}, {}
        policies = a.policies.split(",")
        for policy in policies:
            alone[policy] = fixed(a, folder, policy)
        neighbour.begin()
        for policy in policies:
            beside[policy] = fixed(a, folder, policy)
        neighbour.end()
    best = lambda of: min(((t, p) for p, t in of.items() if t), default=(None, "none"))
    median = lambda first, last: statistics.median(times[first:last]) if last > first else None
    phases = {"before": (median(came - 10, came), best(alone)), "beside the neighbour": (median(came + SETTLED, left), best(beside)),
              "after": (median(left + SETTLED, len(times)), best(alone))}
    for phase, (time_s, (best_s, policy)) in phases.items():
        if time_s and best_s:
            print(f"{phase:22} {time_s:.3f} s a step, {time_s / best_s:.3f} of {policy}'s {best_s:.3f}")
    if a.output:
        a.output.write_text(json.dumps({"came": came, "left": left, "alone": alone, "beside": beside, **result}), encoding="utf-8")


if __name__ == "__main__":
    main()
