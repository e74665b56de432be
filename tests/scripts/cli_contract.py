#!/usr/bin/env python3
"""Exit codes, messages and files of the tandem command, as a user meets them."""
import contextlib
import csv
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
TANDEM = BIN / "tandem"
SCENARIO = """\
machine: round_numbers
limits: {device_bytes: 64MiB}
workload: {family: gpt, layers: 2, hidden: 64, heads: 2, vocabulary: 256, sequence: 32, batch: 2, precision: fp32}
policy: {name: on_demand}
steps: 3
"""
failures = []


def run(*arguments, **options):
    return subprocess.run([str(a) for a in (TANDEM, *arguments)], capture_output=True, text=True, timeout=120, **options)


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def expect(name, result, code, stderr="", stdout=""):
    check(name, result.returncode == code, f"exit code {result.returncode}, not {code}: {result.stderr.strip()}")
    check(name, stderr in result.stderr, f"no {stderr!r} in standard error: {result.stderr.strip()!r}")
    check(name, stdout in result.stdout, f"no {stdout!r} in standard output: {result.stdout.strip()!r}")


def front_end(folder, scenario):
    expect("no command", run(), 2, "tandem simulate FILE")
    expect("help", run("--help"), 0, stdout="Exit codes")
    expect("misspelt command", run("simulte", scenario), 2, "did you mean simulate?")
    expect("generate", run("generate", scenario), 2, "generate: is missing" if (TANDEM.parent / "tandem-train").exists() else "is not built")
    expect("misspelt flag", run("check", "--sett", "a=b", scenario), 2, "did you mean --set?")
    expect("check", run("check", scenario), 0, stdout="a valid scenario")
    expect("--set before two scenarios", run("check", "--set", "seed=1", scenario, scenario), 0, stdout="a valid scenario")
    broken = folder / "broken.yaml"
    broken.write_text(SCENARIO.replace("layers", "layerz"))
    expect("check of a bad file", run("check", scenario, broken), 2, "broken.yaml:3:")
    all_errors(folder)
    for what, known in (("policies", "resident"), ("workloads", "gpt"), ("transforms", "recompute"), ("machines", "titan_rtx"),
                        ("scenarios", "does_not_fit")):
        expect(f"list {what}", run("list", what), 0, stdout=known)
    expect("list of nothing known", run("list", "policy"), 2)
    expect("replay of no log", run("replay", folder / "none.log"), 2, "cannot be read")


def all_errors(folder):
    """Every command that reads a scenario tells all errors of it, a line each, in file order, and ends with 2."""
    wrong = folder / "wrong.yaml"
    wrong.write_text("machine: {derive_from: round_numbers, tiers: {host_pinned: {bandwidth: 5GB/s}}}\n"
                     "workload: {family: gpt, layers: 2, hidden: 65, heads: 2, vocabulary: 256, sequence: 32x}\n"
                     "policy: {name: cotrain, separation: -1}\nstep: 3\n")
    starts = ["1:72: machine.tiers.host_pinned.bandwidth: 5GB/s is not plausible beside cpu.optimizer.rate of 1Gparameters/s (",
              "2:44: workload.hidden: 65 is not divisible by heads (2)", "2:85: workload.sequence: '32x' ",
              "3:37: policy.separation: '-1' ", "4:1: step: is not a key here, did you mean 'steps'?"]
    for command in (["check", wrong], ["simulate", wrong], ["simulate", wrong, "--json", "-"], ["compare-policies", wrong],
                    ["simulate", wrong, "--set", "steps=0"]):
        result = run(*command)
        name = " ".join(str(word) for word in command)
        expected = starts + (["--set steps: steps: '0' is zero"] if "--set" in command else [])
        lines = [line.removeprefix("tandem: ").replace(f"{wrong}:", "") for line in result.stderr.splitlines()]
        expect(name, result, 2)
        check(name, result.stdout == "", f"standard output holds {result.stdout!r}")
        check(name, len(lines) == len(expected) and all(map(str.startswith, lines, expected)), f"it told {lines}")


# Answers as `tandem-simulate --serve` does, but that one policy has a bug.
STAND_IN = """#!{python}
import json, os, socket, subprocess, sys
asked = socket.socket(fileno=int(sys.argv[1].removeprefix("--serve="))).makefile("rw")
for line in asked:
    arguments = json.loads(line)["arguments"]
    fails = any("name: resident" in word for word in arguments)
    program = ["sh", "-c", "echo a.cpp:1: bug: 'CHECK(x)' failed >&2; kill -ABRT $$"] if fails else ["{simulate}", *arguments]
    ended = subprocess.run(program, capture_output=True, text=True)
    code = ended.returncode if ended.returncode >= 0 else 128 - ended.returncode
    print(json.dumps(dict(exit_code=code, output=ended.stdout, errors=ended.stderr)), file=asked, flush=True)
"""


def missing_part(folder, scenario):
    alone = folder / "bin"
    alone.mkdir()
    shutil.copy(TANDEM, alone / "tandem")
    result = subprocess.run([alone / "tandem", "train", scenario], capture_output=True, text=True, timeout=60)
    expect("a part that is not built", result, 2, "tandem-train is not built")


def simulate(folder, scenario):
    out = {kind: folder / f"out.{kind}" for kind in ("json", "trace", "html", "log")}
    result = run("simulate", scenario, "--json", out["json"], "--trace", out["trace"], "--report", out["html"], "--log", out["log"])
    expect("simulate", result, 0, stdout="step time")
    figures = json.loads(out["json"].read_text())
    check("JSON", figures["steps"] == 3 and len(figures["step_time_s"]["all"]) == 2, figures)
    json.loads(out["trace"].read_text())
    check("HTML", out["html"].read_text().startswith("<!DOCTYPE html>"))
    expect("replay", run("replay", out["log"]), 0, stdout="all as recorded")
    lines = out["log"].read_text()
    tampered = folder / "tampered.log"
    tampered.write_text(lines[: len(lines) // 2])
    check("replay of half a log", run("replay", tampered).returncode in (0, 2), "crashed")
    result = run("simulate", scenario, "--json", "-", "--quiet")
    expect("JSON on standard output", result, 0)
    check("JSON on standard output", json.loads(result.stdout)["mode"] == "simulated")
    seeds = [json.loads(run("simulate", scenario, "--json", "-", "--seed", "3").stdout) for _ in range(2)]
    check("same seed", seeds[0]["step_time_s"] == seeds[1]["step_time_s"], seeds)
    steps = json.loads(run("simulate", scenario, "--set", "steps=5", "--json", "-").stdout)["steps"]
    check("--set", steps == 5, steps)
    plain = ("simulate", scenario, "--set", "policy={name: resident}")
    result = run(*plain, "--set", "limits.device_bytes=1MiB")
    expect("does not fit", result, 3, "would fit in")
    check("for people first", result.stderr.startswith("tandem: does not fit: needs about "), result.stderr)
    enough = re.search(r"would fit in (\d+) bytes", result.stderr).group(1)
    expect("what would fit", run(*plain, "--set", f"limits.device_bytes={enough}B"), 0)
    result = run("compare-policies", scenario, "--set", "limits.device_bytes=2MiB")
    expect("compare-policies", result, 0, stdout="does not fit")
    check("compare-policies", result.stdout.count("\n") >= 4, result.stdout)


def policies(folder, scenario):
    table, page = folder / "policies.csv", folder / "policies.html"
    two = ("compare-policies", scenario, "--policies", "on_demand,resident")
    expect("two policies", run(*two, "--wide", "--csv", table, "--report", page), 0, stdout="H2D idle")
    with open(table, newline="") as file:
        rows = {row["policy"]: row for row in csv.DictReader(file)}
    check("two policies", sorted(rows) == ["on_demand", "resident"], rows)
    check("figures", all(0 <= float(row["gpu_idle_share"]) < 1 and float(row["device_bytes"]) > 0 for row in rows.values()), rows)
    check("a page without network", "<svg" in page.read_text() and "http:" not in page.read_text())

    result = run(*two, "--over", "workload.batch=1,2,64", "--json", "-")
    expect("values of a key", result, 0)
    runs = json.loads(result.stdout)["policies"]
    check("values of a key", [(r["value"], r["policy"]) for r in runs[:3]] == [("1", "on_demand"), ("1", "resident"), ("2", "on_demand")], runs)
    check("larger batches take longer", runs[0]["result"]["steady_step_s"] < runs[2]["result"]["steady_step_s"], runs)

    # An option of the scenario's own policy varies that one, beside others only if they are asked for.
    for words, names in (((), ["on_demand"] * 2), (("--policies", "on_demand,resident"), ["on_demand", "resident"] * 2)):
        result = run("compare-policies", scenario, *words, "--over", "policy.optimizer=device,cpu", "--json", "-")
        expect("values of an option", result, 0)
        runs = json.loads(result.stdout)["policies"]
        check("values of an option", [r["policy"] for r in runs] == names, runs)
        check("the option has an effect", runs[0]["result"]["steady_step_s"] != runs[len(names) // 2]["result"]["steady_step_s"], runs)

    # One policy's bug loses no other's result, and is not passed over.
    programs = folder / "programs"
    programs.mkdir()
    shutil.copy(TANDEM, programs / "tandem")
    stand_in = programs / "tandem-simulate"
    stand_in.write_text(STAND_IN.format(python=sys.executable, simulate=BIN / "tandem-simulate"))
    stand_in.chmod(0o755)
    for words in ((), ("--largest", "workload.layers=1..3")):
        result = subprocess.run([str(word) for word in (programs / "tandem", *two, *words, "--csv", table)],
                                capture_output=True, text=True, timeout=120, env={**os.environ, "TANDEM_HOME": os.environ["TANDEM_SOURCE"]})
        expect("a policy that fails", result, 128 + signal.SIGABRT, "policy resident failed: ")
        check("a policy that fails", "bug: CHECK(x) failed" in result.stderr, result.stderr)
        with open(table, newline="") as file:
            ran = {row["policy"]: float(row["gpu_idle_share"] or -1) >= 0 for row in csv.DictReader(file)}
        check("a policy that fails", ran == {"on_demand": True, "resident": False}, ran)

    # What --largest finds fits, and one more does not.
    result = run("compare-policies", scenario, "--policies", "resident", "--set", "limits.device_bytes=3MiB", "--largest",
                 "workload.layers=1..200", "--json", "-")
    expect("largest", result, 0)
    largest = json.loads(result.stdout)["policies"][0]["largest"]
    for layers, code in ((largest, 0), (largest + 1, 3)):
        expect(f"{layers} layers", run("simulate", scenario, "--set", "policy={name: resident}", "--set", "limits.device_bytes=3MiB",
                                       "--set", f"workload.layers={layers}"), code)
    expect("all of a range", run(*two, "--largest", "workload.layers=1..3", "--over", "workload.batch=1,2"), 0, stdout="largest workload.layers")

    for name, words, message in (
            ("unknown key", ("--over", "workload.layerz=1,2"), "did you mean 'layers'"),
            ("no values", ("--over", "workload.layers="), "has no values"),
            ("an empty value", ("--over", "workload.layers=1,,2"), "a value that is empty"),
            ("no equals sign", ("--over", "workload.layers"), "has no '='"),
            ("a value that is refused", ("--over", "workload.layers=1,many"), "--over: --set workload.layers"),
            ("the policy as a key", ("--over", "policy.name=resident"), "--policies"),
            ("an option of a policy left out", ("--policies", "resident", "--over", "policy.optimizer=cpu"), "which --policies leaves out"),
            ("an option to make large", ("--largest", "policy.prefetch=1..2"), "policies are what is compared"),
            ("unknown policy", ("--policies", "residnt"), "did you mean resident?"),
            ("a policy twice", ("--policies", "resident,resident"), "named twice"),
            ("no range", ("--largest", "workload.layers=7"), "has no '..'"),
            ("no numbers", ("--largest", "workload.layers=a..7"), "no whole number"),
            ("a range upside down", ("--largest", "workload.layers=7..3"), "LOW is above HIGH"),
            ("unknown key to make large", ("--largest", "workload.layerz=1..3"), "did you mean 'layers'"),
            ("a number that is refused", ("--policies", "resident", "--largest", "workload.hidden=64..66"), "workload.hidden=65"),
            ("one key twice", ("--over", "workload.layers=1", "--largest", "workload.layers=1..2"), "name another")):
        expect(name, run("compare-policies", scenario, *words), 2, message)


def unwritable(folder, scenario):
    expect("missing folder", run("simulate", scenario, "--trace", folder / "none" / "t.json"), 2, "create the folder first")
    expect("a folder as a file", run("simulate", scenario, "--json", folder), 2, "is a folder")
    expect("full device", run("simulate", scenario, "--trace", "/dev/full"), 4, "No space left on device")
    with open("/dev/full", "w") as full:
        result = subprocess.run([TANDEM, "simulate", scenario], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    check("full standard output", result.returncode == 4 and "cannot write to standard output" in result.stderr, result)
    check("no partial files", not list(folder.glob("*partial*")), list(folder.glob("*partial*")))


def train(folder, scenario):
    table, figures = folder / "run.csv", folder / "run.json"
    changes = ("steps=5", "optimizer.schedule=linear", "optimizer.clip_norm=1", "validation={every: 2, batches: 2}")
    settings = [word for change in changes for word in ("--set", change)]
    expect("train", run("train", scenario, *settings, "--csv", table, "--json", figures), 0, stdout="validation")
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    result = json.loads(figures.read_text())
    check("steps of the table", [row["step"] for row in rows] == ["1", "2", "3", "4", "5"], rows)
    for column, key in (("loss", "loss"), ("gradient_norm", "gradient_norm")):
        check(f"{column} of the table", [float(row[column]) for row in rows] == result[key], (rows, result[key]))
    validation = [{"step": int(row["step"]), "loss": float(row["validation_loss"])} for row in rows if row["validation_loss"]]
    check("validation losses of the table", validation == result["validation_loss"], (rows, result["validation_loss"]))
    check("steps of validation", [at["step"] for at in validation] == [2, 4, 5], validation)
    check("learning rates", abs(float(rows[4]["learning_rate"]) - 1e-3 / 5) < 1e-15, rows)
    times = [float(row["step_time_s"]) for row in rows]
    differences = [abs(a - b) for a, b in zip(times[1:], result["step_time_s"]["all"], strict=True)]
    check("step times of the table", max(differences) < 1e-12, (times, result["step_time_s"]))
    check("tokens", all(float(row["tokens_per_s"]) > 0 for row in rows), rows)
    expect("a table in no folder", run("train", scenario, "--csv", folder / "none" / "a.csv"), 2, "cannot be written")
    expect("a table on a full disk", run("train", scenario, "--csv", "/dev/full", "--json", figures), 4, "the run itself is complete")
    check("a run with a full disk", json.loads(figures.read_text())["steps"] == 3, figures)
    expect("nothing to hold out", run("train", scenario, "--set", "validation={every: 2, fraction: 0.000001}"), 2,
           "validation.fraction: holds out")


def skipped_steps(folder, scenario):
    """A loss scale that overflows: counted, warned about, and no success."""
    table, figures, saved = folder / "skipped.csv", folder / "skipped.json", folder / "skipped"
    settings = [word for change in ("workload.precision=fp16", "optimizer.initial_loss_scale=1e30", f"checkpoint.directory={saved}")
                for word in ("--set", change)]
    result = run("train", scenario, *settings, "--set", "steps=12", "--csv", table, "--json", figures)
    expect("a loss scale that overflows", result, 4, "12 of 12 training steps were skipped", stdout="12 of 12 steps")
    for text in ("warning: 10 training steps in a row were skipped", "optimizer.initial_loss_scale", f"{saved}/step-00000012"):
        check("what skipped steps say", text in result.stderr, result.stderr)
    counted = json.loads(figures.read_text())
    check("skipped steps", counted["skipped_steps"] == 12 and abs(counted["loss_scale"] * 2**12 / 1e30 - 1) < 1e-6, counted)
    check("the checkpoint", (saved / "step-00000012" / "manifest.json").exists(), "is not there")
    result = run("train", scenario, *settings, "--set", "steps=14", "--resume", saved, "--csv", table, "--json", figures)
    expect("going on from it", result, 4, "2 of 2 training steps were skipped", stdout="2 of 2 steps")
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    check("skipped steps of the table", [row["skipped"] for row in rows] == ["1"] * 14, rows)
    scales = [float(row["loss_scale"]) for row in rows]
    check("loss scales of the table", all(abs(b / a - 0.5) < 1e-6 for a, b in zip(scales, scales[1:])), scales)
    check("the scale goes on", json.loads(figures.read_text())["loss_scale"] == scales[-1] / 2, (figures.read_text(), scales))
    expect("two ranks", run("train", scenario, *settings[:4], "--set", "steps=3", "--nproc", "2"), 4, "3 of 3 training steps were skipped")
    expect("a scale that fits", run("train", scenario, "--set", "workload.precision=fp16", "--set", "optimizer.initial_loss_scale=256",
                                    "--json", figures), 0)
    check("a scale that fits", json.loads(figures.read_text())["skipped_steps"] == 0, figures.read_text())


def odd_data(folder, scenario):
    text = folder / "text.txt"
    text.write_text("to be or not to be, that is the question\n" * 40)
    distinct = len(set(text.read_bytes()))
    for words, code, message in (
            ((f"data.text={text}", f"workload.vocabulary={distinct}"), 0, ""),
            ((f"data.text={text}", f"workload.vocabulary={distinct - 1}"), 2, f"workload.vocabulary: is {distinct - 1}, and "),
            (("workload.vocabulary=20",), 2, "characters (distinct bytes); allowed: ")):
        result = run("train", scenario, *[word for change in words for word in ("--set", change)])
        expect(f"train with {words}", result, code, message)
    packed = folder / "text.txt.gz"
    packed.write_bytes(gzip.compress(random.Random(1).randbytes(4000)))
    expect("compressed data", run("train", scenario, "--set", f"data.text={packed}"), 0, "warning: data.text: " + str(packed) + " looks like gzip")
    result = run("train", scenario, "--set", f"data.text={text}")
    check("no warning of a text", "looks like" not in result.stderr, result.stderr)


def no_files(folder, scenario):
    """Pipes that nobody writes to, endless devices and folders are refused, not waited for."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    commands = [("check",), ("simulate",), ("replay",), ("explain",), ("compare", "--measured"), ("validate", "--measured")]
    if (BIN / "tandem-train").exists():
        commands += [("train",), ("train", scenario, "--resume")]
        for path, what in ((pipe, "a named pipe"), (folder, "a folder"), ("/dev/zero", "a device")):
            expect(f"{path} as data", run("train", scenario, "--set", f"data.text={path}"), 2, f"is not a file but {what}")
        saved = folder / "broken"
        (saved / "step-00000001").mkdir(parents=True)
        os.mkfifo(saved / "step-00000001" / "manifest.json")
        check("a pipe in a checkpoint", run("train", scenario, "--resume", saved).returncode == 2)
    for command in commands:
        for path in (pipe, "/dev/zero"):
            expect(f"{command} of {path}", run(*command, path), 2)
    expect("a pipe as a machine", run("simulate", scenario, "--set", f"machine={pipe}"), 2, "machine")


def compare(folder, scenario):
    log, figures = folder / "real.log", folder / "compared.json"
    expect("compare", run("compare", scenario, "--json", figures, "--log", log), 0, stdout="other order")
    compared = json.loads(figures.read_text())
    difference = compared["difference"]
    explained = sum(difference["by_cause_s"].values()) + difference["other_order_s"]
    measured, predicted = (compared[which]["steady_step_s"] for which in ("measured", "predicted"))
    check("sum of the differences", abs(explained - (predicted - measured)) < 1e-9, difference)
    again = run("compare", "--measured", f"{log}.measured", "--json", figures)
    expect("compare with a recorded run", again, 0)
    compared_again = json.loads(figures.read_text())
    for key in ("difference", "errors"):
        check(f"{key} of a recorded run", compared_again[key] == compared[key], (compared_again[key], compared[key]))
    expect("compare of nothing", run("compare"), 2, "exactly one of them")
    expect("compare of both", run("compare", scenario, "--measured", log), 2, "exactly one of them")
    expect("compare with no log", run("compare", "--measured", scenario), 2, "small.yaml")


def serving(pid):
    """The processes that `pid` started to simulate for it, one question after another."""
    serving = []
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(FileNotFoundError):  # it has ended
            if b"--serve" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                serving.append(child)
    return serving


def explain_interrupted(folder, scenario):
    """Workers end with the command, and leave nothing behind."""
    temporary = folder / "temporary"
    temporary.mkdir()
    process = subprocess.Popen([TANDEM, "explain", scenario, "--set", "workload.micro_batches=400", "--set", "steps=12"], stderr=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(temporary)})
    while not (workers := serving(process.pid)):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    check("explain, interrupted", process.returncode == 130, f"{process.returncode}: {errors}")
    check("explain, interrupted", not any(pathlib.Path(f"/proc/{pid}").exists() for pid in workers), workers)
    check("explain, interrupted", not list(temporary.iterdir()), list(temporary.iterdir()))


def handles_interrupts(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    caught = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), 16)
    return caught >> (signal.SIGINT - 1) & 1


def interrupt(folder, scenario):
    target = folder / "interrupted.json"
    process = subprocess.Popen([TANDEM, "simulate", scenario, "--set", "steps=200000", "--trace", target], stderr=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    while not handles_interrupts(process.pid):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    check("interrupt", process.returncode == 130, f"{process.returncode}: {errors}")
    check("interrupt", not target.exists() and not list(folder.glob("*partial*")), "a file is left")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenario = folder / "small.yaml"
        scenario.write_text(SCENARIO)
        front_end(folder, scenario)
        missing_part(folder, scenario)
        if (BIN / "tandem-simulate").exists():
            simulate(folder, scenario)
            policies(folder, scenario)
            unwritable(folder, scenario)
            interrupt(folder, scenario)
            explain_interrupted(folder, scenario)
        if (BIN / "tandem-train").exists():
            train(folder, scenario)
            skipped_steps(folder, scenario)
            odd_data(folder, scenario)
        no_files(folder, scenario)
        if (BIN / "tandem-simulate").exists() and (BIN / "tandem-train").exists():
            compare(folder, scenario)
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
