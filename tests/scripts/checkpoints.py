#!/usr/bin/env python3
"""Checkpoints as a user meets them: saved, interrupted, damaged, resumed; read by the safetensors package."""
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
TANDEM = BIN / "tandem"
SCENARIO = """\
machine: round_numbers
limits: {device_bytes: 4MiB, host_bytes: 64MiB, cores: 2}
workload: {family: mlp, layers: 3, hidden: 64, inputs: 64, classes: 10, batch: 16, precision: fp32}
policy: {name: on_demand}
checkpoint: {every: 2}
steps: 6
"""
SMALL_GPT = "workload={family: gpt, layers: 2, hidden: 32, heads: 4, vocabulary: 80, sequence: 16, batch: 2, precision: fp32}"
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def command(*arguments):
    return [str(a) for a in (TANDEM, *arguments)]


def run(*arguments, **options):
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=120, **options)


def expect(name, result, code, *texts):
    check(name, result.returncode == code, f"exit code {result.returncode}, not {code}: {result.stderr.strip()}")
    for text in texts:
        check(name, text in result.stderr, f"no {text!r} in standard error: {result.stderr.strip()!r}")


def into(directory, *settings):
    return [word for setting in (f"checkpoint.directory={directory}", *settings) for word in ("--set", setting)]


def losses(result):
    return json.loads(result.stdout)["loss"]


def tensors(checkpoint):
    from safetensors.numpy import load_file

    return {name: tensor for path in sorted(checkpoint.glob("*.safetensors")) for name, tensor in load_file(path).items()}


def same(a, b):
    return a.keys() == b.keys() and all((a[name] == b[name]).all() for name in a)


def saves_and_resumes(folder, scenario):
    whole, parts = folder / "whole", folder / "parts"
    straight = run("train", scenario, *into(whole), "--json", "-")
    expect("train", straight, 0)
    check("keep", sorted(p.name for p in whole.iterdir()) == ["step-00000004", "step-00000006"], list(whole.iterdir()))
    first = run("train", scenario, *into(parts, "steps=3"), "--json", "-")
    log = folder / "resumed.log"
    second = run("train", scenario, *into(parts), "--resume", parts, "--json", "-", "--log", log)
    expect("resume", second, 0, "going on from", "training step 4 of 6")
    check("losses", losses(first) + losses(second) == losses(straight), (losses(first), losses(second), losses(straight)))
    figures = json.loads(second.stdout)
    check("first_step", figures["first_step"] == 3 and figures["checkpoint_s"] > 0, figures)
    expect("replay of a resumed run", run("replay", log), 0)
    a, b = tensors(whole / "step-00000006"), tensors(parts / "step-00000006")
    check("states", same(a, b), "a resumed run ended with other tensors")
    check("names", "layer1.relu.weight.adam_m" in a and a["layer1.relu.weight"].shape == (64, 64), sorted(a))
    expect("nothing left", run("train", scenario, *into(parts), "--resume", parts), 0, "nothing to do")
    expect("a second run from the start", run("train", scenario, *into(whole)), 2, "holds checkpoints of another run", "--resume")
    expect("nothing there", run("train", scenario, "--resume", folder), 2, "no complete checkpoint")
    expect("another network", run("train", scenario, "--resume", whole, "--set", "workload.hidden=32"), 2,
           "workload.hidden", "has 64", "has 32")
    weights = whole / "step-00000006" / "layer0.safetensors"
    damaged = bytearray(weights.read_bytes())
    damaged[-5] ^= 1
    weights.write_bytes(damaged)
    result = run("train", scenario, *into(whole, "steps=8"), "--resume", whole)
    expect("a damaged file", result, 2, "layer0.safetensors is damaged", f"--resume {whole}/step-00000004")
    result = run("train", scenario, *into(whole, "steps=8"), "--resume", whole / "step-00000004")
    expect("the one before it", result, 0)


def full_disk(folder, scenario):
    directory = folder / "full"
    expect("train", run("train", scenario, *into(directory, "steps=2")), 0)
    limited = run("train", scenario, *into(directory, "limits.disk_bytes=16KiB"), "--resume", directory, "--quiet",
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (32 << 10, 32 << 10)))
    expect("a write that fails", limited, 4, "step-00000004.partial/", "File too large", "complete stay",
           f"after training step 2 of 6 is in {directory}/step-00000002", f"--resume {directory}")
    check("no partial folder", [p.name for p in directory.iterdir()] == ["step-00000002"], list(directory.iterdir()))
    expect("the last good one", run("train", scenario, *into(directory), "--resume", directory), 0)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.005)
    return False


def interrupt(folder, scenario):
    directory = folder / "interrupted"
    log = folder / "interrupted.log"
    process = subprocess.Popen(command("train", scenario, *into(directory, "steps=1000000", "checkpoint.every=5"), "--log", log,
                                       "--quiet"), stderr=subprocess.PIPE, text=True)
    wait_for(lambda: list(directory.glob("step-*[0-9]")))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    check("interrupt", process.returncode == 130, f"{process.returncode}: {errors}")
    check("interrupt", f"--resume {directory}" in errors and "its state is in" in errors, errors)
    saved = max(directory.glob("step-*[0-9]"))
    check("interrupt", saved.name in errors, errors)
    expect("replay of an interrupted run", run("replay", log), 0)
    steps = int(saved.name[5:]) + 1
    result = run("train", scenario, "--resume", directory, "--set", f"steps={steps}", "--json", "-")
    expect("resume of an interrupted run", result, 0)
    check("interrupt", len(losses(result)) == 1, result.stdout)


def ranks(folder, scenario):
    directory = folder / "ranks"
    straight = run("train", scenario, "--nproc", "2", "--set", "steps=4", "--json", "-")
    expect("two ranks", straight, 0)
    first = run("train", scenario, "--nproc", "2", *into(directory, "steps=2"), "--json", "-")
    second = run("train", scenario, "--nproc", "2", *into(directory, "steps=4"), "--resume", directory, "--json", "-")
    expect("two ranks resume", second, 0)
    check("two ranks", losses(first) + losses(second) == losses(straight), (first.stdout, second.stdout))
    # Ctrl-C reaches both processes; the leading one needs the other for the steps that it finishes.
    both = subprocess.Popen(command("train", scenario, "--nproc", "2", *into(directory, "steps=1000000"), "--resume", directory,
                                    "--quiet"), stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(lambda: (directory / "step-00000006").exists())
    os.killpg(both.pid, signal.SIGINT)
    _, errors = both.communicate(timeout=60)
    check("two ranks interrupted", both.returncode == 130 and "its state is in" in errors, f"{both.returncode}: {errors}")
    check("two ranks interrupted", "failed" not in errors, errors)
    expect("one rank for two", run("train", scenario, "--resume", directory), 2, "workload.devices")


def ranks_that_save_together(folder, scenario):
    """Ctrl-C: each rank has a part of what is saved, so all end after the same step, and go on to the same losses."""
    for name, keys in (("stages", ("workload.micro_batches=2", "parallel.pipeline=2")), ("divided states", ("workload.devices=2", "workload.partition=optimizer")),
                       ("divided layers", ("parallel.tensor=2",))):
        directory, table = folder / name.replace(" ", "_"), folder / f"{name}.csv"
        settings = [word for key in (SMALL_GPT, "policy.name=resident", *keys) for word in ("--set", key)]
        process = subprocess.Popen(command("train", scenario, *settings, *into(directory, "steps=1000000", "checkpoint.every=0"), "--quiet", "--csv", table),
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        wait_for(lambda: table.exists() and table.read_text().count("\n") > 5)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        check(f"{name} interrupted", process.returncode == 130 and "its state is in" in errors, f"{process.returncode}: {errors}")
        saved = sorted(directory.glob("step-*[0-9]"))
        check(f"{name} interrupted", len(saved) == 1, f"{saved}: {errors}")
        if not saved:
            continue
        steps = int(saved[0].name[5:]) + 2
        straight = run("train", scenario, *settings, "--set", f"steps={steps}", "--json", "-")
        resumed = run("train", scenario, *settings, "--resume", directory, "--set", f"steps={steps}", "--json", "-")
        expect(f"{name} resumed", resumed, 0)
        check(f"{name} resumed", len(losses(resumed)) == 2 and losses(resumed) == losses(straight)[-2:], (resumed.stdout[-500:], steps))


def on_request(folder, scenario):
    """SIGUSR1: it saves and goes on, to the losses of a run that nobody asked."""
    directory, figures, plain = folder / "asked", folder / "asked.json", folder / "plain.json"
    asked = subprocess.Popen(command("train", scenario, *into(directory, "steps=3000", "checkpoint.every=0"), "--quiet", "--csv", folder / "asked.csv",
                                     "--json", figures), stderr=subprocess.PIPE, text=True)
    table = folder / "asked.csv"
    wait_for(lambda: table.exists() and table.read_text().count("\n") > 5)
    asked.send_signal(signal.SIGUSR1)
    wait_for(lambda: any(re.fullmatch(r"step-\d+", path.name) for path in directory.glob("step-*")) or asked.poll() is not None)
    saved = sorted(path.name for path in directory.glob("step-*"))
    check("on request", asked.poll() is None and saved and saved[0] < "step-00003000", f"{asked.poll()}: {saved}")
    _, errors = asked.communicate(timeout=120)
    check("on request", asked.returncode == 0, f"{asked.returncode}: {errors}")
    expect("nobody asked", run("train", scenario, *into(folder / "unasked", "steps=3000", "checkpoint.every=0"), "--quiet", "--json", plain), 0)
    check("on request", json.loads(figures.read_text())["loss"] == json.loads(plain.read_text())["loss"], "other losses")


def simulated(folder, scenario):
    trace, directory = folder / "trace.json", folder / "simulated"
    result = run("simulate", scenario, *into(directory), "--json", "-", "--trace", trace)
    expect("simulate", result, 0)
    figures = json.loads(result.stdout)
    check("simulate", figures["checkpoint_s"] > 0 and figures["first_step"] == 0, figures)
    check("simulate", "layer0.save" in trace.read_text(), "no op that saves in the trace")
    check("simulate", not directory.exists(), "a simulation wrote a checkpoint")
    expect("decoding", run("check", scenario, "--set", "workload={family: gpt_decode, layers: 1, hidden: 8, heads: 1, vocabulary: 9,"
                           " sequence: 8, prompt: 2, new_tokens: 2, batch: 1}", *into(directory)), 2, "checkpoint.directory")
    expect("misspelt", run("check", scenario, "--set", "checkpoint.evry=2"), 2, "did you mean 'every'?")
    expect("too few", run("check", scenario, "--set", "checkpoint.keep=0"), 2, "checkpoint.keep")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenario = folder / "small.yaml"
        scenario.write_text(SCENARIO)
        if (BIN / "tandem-simulate").exists():
            simulated(folder, scenario)
        if (BIN / "tandem-train").exists():
            saves_and_resumes(folder, scenario)
            full_disk(folder, scenario)
            interrupt(folder, scenario)
            on_request(folder, scenario)
            ranks(folder, scenario)
            ranks_that_save_together(folder, scenario)
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
