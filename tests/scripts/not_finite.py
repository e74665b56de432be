#!/usr/bin/env python3
"""A number that is not finite as a user meets it: exit code 4, the step, the layer, what to do, and a command that works."""
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

TANDEM = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "tandem"
SCENARIO = """\
machine: round_numbers
limits: {device_bytes: 16MiB, host_bytes: 256MiB, cores: 2}
workload: {family: gpt, layers: 2, hidden: 32, heads: 2, vocabulary: 256, sequence: 16, batch: 2, tied_embedding: false}
policy: {name: zero_offload}
checkpoint: {every: 1, keep: 1}
steps: 6
"""
failures = []
if not (TANDEM.parent / "tandem-train").exists():
    sys.exit(77)


def run(*arguments):
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=120)


def settings(*values):
    return [f"--set={value}" for value in values]


def check(name, condition, detail):
    if not condition:
        failures.append(f"{name}: {detail}")


def expect(name, result, code, *texts):
    check(name, result.returncode == code, f"exit code {result.returncode}, not {code}: {result.stderr.strip()}")
    for text in texts:
        check(name, text in result.stderr, f"no {text!r} in standard error: {result.stderr.strip()!r}")


def steps_in(directory):
    return sorted(p.name for p in directory.glob("step-*"))


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    scenario = folder / "run.yaml"
    scenario.write_text(SCENARIO)
    train = [TANDEM, "train", scenario, "--quiet"]
    # 0 / 0 in the embeddings of tokens that have not come yet.
    for precision, devices in (("bf16", 1), ("fp16", 1), ("fp32", 2)):
        name, saved = f"{precision} on {devices}", folder / precision
        wrong = ["optimizer.epsilon=0", "optimizer.learning_rate=1000", f"workload.precision={precision}",
                 f"workload.devices={devices}", f"checkpoint.directory={saved}", "optimizer.initial_loss_scale=64"]
        result = run(*train, *settings(*wrong))
        expect(name, result, 4, "training step 1 of 6: ", "after its update, from a finite gradient",
               "lower optimizer.learning_rate (now 1000)", "a larger optimizer.epsilon (now 0; 1e-8 by default)")
        check(name, not steps_in(saved), f"{steps_in(saved)} were saved")
    # The last checkpoint stays, and the command that the message gives goes on from it. A rate that the update cannot
    # bear comes in a later step, by a run that goes on.
    saved = folder / "saved"
    common = ["workload.precision=fp16", "optimizer.initial_loss_scale=64", f"checkpoint.directory={saved}"]
    expect("good", run(*train, *settings(*common, "steps=3")), 0)
    result = run(*train, *settings(*common, "optimizer.learning_rate=1000"), "--resume", saved)
    check("later", result.returncode in (0, 4), result.stderr)
    check("later", steps_in(saved), "the last good checkpoint is gone")
    if result.returncode == 4:
        check("later", "training step " in result.stderr and " of 6: " in result.stderr, result.stderr)
        if "to go on: " in result.stderr:
            words = shlex.split(result.stderr.split("to go on: ", 1)[1].strip())
            check("later", words[:2] == ["tandem", "train"] and "--resume" in words, words)
    expect("empty", run(*train, "--resume", ""), 2, "--resume: is empty")

for failure in failures:
    print(failure)
sys.exit(bool(failures))
