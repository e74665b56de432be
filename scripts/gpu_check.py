#!/usr/bin/env python3
"""On a GPU: small runs of every family and policy under compute-sanitizer, and each twice, to the same bits.

    gpu_check.py                       memcheck, racecheck, initcheck and twice, over all runs
    gpu_check.py --tools memcheck,twice --only bert --jobs 4

A table of what each found, with the time it took; what a tool said of a run that is not clean lies in --output.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
GPT = "family: gpt, layers: 3, hidden: 264, heads: 3, vocabulary: 3001, sequence: 33, batch: 3"
POLICIES = ("balanced", "cotrain", "deep_optimizer_states", "g10", "l2l", "lsp_offload", "mlp_offload", "on_demand",
            "one_bit_adam", "patrickstar", "protrain", "resident", "split_update", "ssdtrain", "stronghold",
            "zero_infinity", "zero_offload")
DISK = "limits.disk_bytes=256MiB"


def run_of(workload, policy, *settings):
    return ("workload={" + workload + "}", "policy={name: " + policy + "}", *settings)


def roomy(policy):
    """The device is so small that states move, but where all stays."""
    return ("limits.device_bytes=160MiB",) if policy == "resident" else ()


def small_families():
    """What each family that is trained names as a small instance of itself, with odd sizes."""
    schema = json.loads((SOURCE / "docs" / "scenario.schema.json").read_text())
    for case in schema["properties"]["workload"]["allOf"]:
        small = case["then"]["examples"][0]
        if small["family"] not in ("gpt", "gpt_decode", "layers", "mlp"):
            recompute = {"recompute": "block"} if "recompute" in case["then"]["propertyNames"]["enum"] else {}
            yield small["family"], {**small, **recompute, "batch": 3, "micro_batches": 2}


def families(precision, policy):
    return {f"{name} {precision} {policy}": (f"workload={json.dumps({**small, 'precision': precision})}",
                                             f"policy={{name: {policy}}}", "optimizer.clip_norm=1", *roomy(policy))
            for name, small in small_families()}


# Contrastive gradients of a small batch are large: at the first loss scale both steps overflow.
RUNS_OF_FP16 = families("fp16", "zero_offload")
for settings in RUNS_OF_FP16:
    RUNS_OF_FP16[settings] += ("optimizer.initial_loss_scale=1024",)

# Name: settings. Odd sizes, so that no width is a multiple of a warp's.
RUNS = {
    **families("fp32", "zero_infinity"),
    **RUNS_OF_FP16,
    **families("bf16", "resident"),
    **{f"gpt bf16 {policy}": run_of(GPT + ", precision: bf16", policy, DISK, *roomy(policy)) for policy in POLICIES},
    **{f"gpt {precision} {policy}": run_of(f"{GPT}, precision: {precision}", policy, "optimizer.clip_norm=1")
       for precision in ("fp32", "fp16") for policy in ("zero_offload", "balanced")},
    "gpt recompute": run_of(GPT + ", precision: bf16, recompute: block", "balanced"),
    "gpt micro-batches": run_of(GPT + ", precision: bf16, micro_batches: 3", "zero_infinity"),
    "gpt unfused tiles": run_of(GPT + ", precision: bf16, attention: unfused, loss_tiles: 3, linear_tiles: 3", "zero_infinity"),
    **{f"gpt {precision} {optimizer}": run_of(f"{GPT}, precision: {precision}", "balanced",
                                              "optimizer={name: " + optimizer + ", momentum: 0.5, clip_norm: 1}")
       for precision in ("fp32", "bf16") for optimizer in ("adafactor", "lion", "sgd")},
    "gpt bf16 no masters": run_of(GPT + ", precision: bf16", "zero_offload", "optimizer.masters=false",
                                  "optimizer.state_bits=16"),
    "gpt fp16 no masters": run_of(GPT + ", precision: fp16", "resident", "optimizer.masters=false", *roomy("resident")),
    "gpt 8-bit states": run_of(GPT + ", precision: bf16", "balanced", "optimizer.state_bits=8"),
    **{f"bert {policy}": run_of(GPT.replace("gpt", "bert") + ", precision: bf16", policy, *roomy(policy))
       for policy in ("resident", "zero_offload", "balanced")},
    **{f"mlp {policy}": run_of("family: mlp, layers: 3, hidden: 65, inputs: 64, classes: 10, batch: 17, precision: fp32", policy)
       for policy in ("resident", "on_demand", "zero_infinity")},
}
BASE = "machine: h100_measured\nlimits: {device_bytes: 112MiB, host_bytes: 256MiB}\nsteps: 2\n"
SANITIZER = os.environ.get("COMPUTE_SANITIZER", "compute-sanitizer")
NOT_CLEAN = 99
# PyTorch's memory-efficient attention in fp32 orders its accesses of shared memory by warps, which racecheck does not see.
LIBRARIES = ("--kernel-name-exclude", "kernel_substring=PyTorchMemEffAttention")

class Checks:
    def __init__(self, arguments):
        self.train, self.output, self.timeout = arguments.train, arguments.output, arguments.timeout
        self.output.mkdir(parents=True, exist_ok=True)
        self.scenario = self.output / "base.yaml"
        self.scenario.write_text(BASE)

    def training(self, settings, *more):
        sets = [word for setting in settings for word in ("--set", setting)]
        return [str(self.train), str(self.scenario), *sets, "--device", "cuda", "--quiet", *map(str, more)]

    def call(self, command):
        return subprocess.run(command, capture_output=True, text=True, timeout=self.timeout, check=False)

    def sanitized(self, tool, name, settings):
        """What is wrong; None where nothing is."""
        done = self.call([SANITIZER, "--tool", tool, "--error-exitcode", str(NOT_CLEAN), "--print-limit", "20",
                          *LIBRARIES, *self.training(settings)])
        if done.returncode == 0:
            return None
        log = self.output / f"{tool}-{name.replace(' ', '-')}.log"
        log.write_text(done.stdout + done.stderr)
        summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", done.stdout)
        return f"exit code {done.returncode}: {summary[-1] if summary else ''} {done.stderr.strip()[-200:]}"

    def twice(self, _, name, settings):
        """Losses and all that a checkpoint holds, of two runs."""
        seen = []
        for time_ in ("first", "second"):
            folder = self.output / f"{name.replace(' ', '-')}-{time_}"
            figures = folder.with_suffix(".json")
            save = f"checkpoint={{directory: {folder}, every: 2}}"
            done = self.call(self.training((*settings, save), "--json", figures))
            if done.returncode != 0:
                return f"exit code {done.returncode}: {done.stderr.strip()[-200:]}"
            files = sorted(folder.rglob("*.safetensors"))
            if not files:
                return "no checkpoint"
            sums = [(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files]
            seen.append((json.loads(figures.read_text()).get("loss"), sums))
        if seen[0] == seen[1]:
            return None
        return "losses differ" if seen[0][0] != seen[1][0] else "tensors differ"

    def one(self, tool, name, settings):
        started = time.monotonic()
        try:
            wrong = (self.twice if tool == "twice" else self.sanitized)(*(tool, name, settings))
        except subprocess.TimeoutExpired:
            wrong = f"not ended in {self.timeout} s"
        return tool, name, wrong, time.monotonic() - started

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tools", default="memcheck,racecheck,initcheck,twice")
    p.add_argument("--only", default="", help="runs whose names contain this")
    p.add_argument("--jobs", type=int, default=2, help="at a time; racecheck takes 20 GB of host memory for each")
    p.add_argument("--timeout", type=float, default=300, help="seconds a run")
    p.add_argument("--train", type=pathlib.Path, default=SOURCE / "build/bin/tandem-train-cuda")
    p.add_argument("--output", type=pathlib.Path, default=pathlib.Path("gpu_check"))
    arguments = p.parse_args()
    checks = Checks(arguments)
    cases = [(tool, name, settings) for tool in arguments.tools.split(",") for name, settings in RUNS.items()
             if arguments.only in name]
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(checks.one, *case) for case in cases]):
            tool, name, found, seconds = done.result()
            print(f"{tool:10} {name:28} {seconds:6.1f} s  {found or 'clean'}", flush=True)
            wrong += found is not None
    print(f"{len(cases) - wrong} of {len(cases)} clean")
    return 1 if wrong else 0

if __name__ == "__main__":
    sys.exit(main())
