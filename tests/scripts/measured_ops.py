#!/usr/bin/env python3
"""Ops measured one by one, from the command line: calibrate --for writes a profile whose rows predictions go by, train --learn adds to one,
and what is wrong with either is refused in words. Structure alone: never how long an op takes."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
if not (BIN / "tandem-calibrate").exists() or not (BIN / "tandem-simulate").exists():
    sys.exit(77)
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def run(*arguments, code=0):
    done = subprocess.run([str(BIN / "tandem"), *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False)
    check(" ".join(map(str, arguments)), done.returncode == code, f"ended with {done.returncode}: {done.stderr[-800:]}")
    return done


def result(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def rows(profile):
    """Of a profile's ops: (body, kernels, processor) to the median in ns."""
    text = pathlib.Path(profile).read_text(encoding="utf-8")
    found = re.findall(r'- \{body: (\S+), .*?kernels: "(\w+)", processor: (\w+),\s+afresh: \{median: (\d+)ns', text, re.DOTALL)
    return {(body, kernels, processor): int(median) for body, kernels, processor, median in found}


GPT = "{{family: gpt, layers: 2, hidden: 64, heads: 2, vocabulary: 257, sequence: 32, batch: {}, precision: fp32}}"


def scenario(folder, name, workload, policy="resident", steps=8):
    path = folder / f"{name}.yaml"
    path.write_text(f"machine: cpu_2_cores\nworkload: {workload}\npolicy: {{name: {policy}}}\nsteps: {steps}\n"
                    f"data: {{text: {folder / 'text.txt'}}}\n", encoding="utf-8")
    return path


def compute_ns(log):
    """Durations of the commands on the compute lane of a log, of all steps."""
    lanes, durations = {}, set()
    for line in log.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[:1] == ["r"]:
            lanes[words[2]] = words[3]
        if words[:1] == ["e"] and lanes.get(words[2]) == "0":
            durations.add(int(words[6]) - int(words[5]))
    return durations


def calibrated(folder):
    small = scenario(folder, "small", GPT.format(2))
    imported = scenario(folder, "imported", f"{{family: imported, path: {SOURCE / 'tests/data/imported/small'}, batch: 3}}")
    offloaded = scenario(folder, "offloaded", GPT.format(3), "zero_offload")
    profile = folder / "mine.yaml"
    done = run("calibrate", "--device", "cpu", "--for", small, imported, offloaded, "--base", "cpu_2_cores", "--seconds", 0.3, "--output", profile)
    for path in (small, imported):
        check("coverage", re.search(rf"{path}: (\d+) of \1 ops measured\n", done.stderr), done.stderr)
    run("check", profile)
    measured = rows(profile)
    bodies = {body for body, _, _ in measured}
    check("rows", {"gpt.block.forward", "gpt.block.backward", "gpt.embedding.forward", "optimizer.adamw"} <= bodies, str(bodies))
    check("rows", any(body.startswith("imported.") and body.endswith(".backward") for body in bodies), str(bodies))
    check("rows", len({k for b, k, _ in measured if b == "gpt.block.forward"}) == 2, "two batches are two ops")
    base = (SOURCE / "hardware_profiles" / "cpu_2_cores.yaml").read_text(encoding="utf-8")
    written = profile.read_text(encoding="utf-8")
    check("base", written.startswith("name: mine\n") and all(line in written for line in base.splitlines() if not line.startswith("name:")),
          "the base's own lines are not all there")
    for path in (small, imported):
        log, out = folder / "out.log", folder / "out.json"
        done = run("simulate", path, "--set", f"machine={profile}", "--log", log, "--json", out)
        check(path.stem, re.search(r"rests on +100.0% of computing in \d+ measured ops\n", done.stdout), done.stdout)
        of = result(out)["measured_ops"]
        check(path.stem, of["share"] == 1 and of["modelled"] == {} and of["count"] >= 6, json.dumps(of))
        known = set(measured.values())
        # The first step moves its batch and weights up meanwhile: what copies beside them add is not in the rows.
        check(path.stem, len(compute_ns(log) & known) == of["count"], f"{compute_ns(log)} beside {known}")
    other = scenario(folder, "other", GPT.format(5))
    of = json.loads(run("simulate", other, "--set", f"machine={profile}", "--json", "-").stdout)["measured_ops"]
    check("other", of["share"] < 1 and "gpt.block.forward" in of["modelled"] and "optimizer.adamw" not in of["modelled"], json.dumps(of))
    return profile


def again(folder, profile):
    """Into the profile itself: rows of other scenarios stay."""
    before = rows(profile)
    run("calibrate", "--device", "cpu", "--for", scenario(folder, "more", GPT.format(4)), "--base", profile, "--seconds", 0.3, "--output", profile, "--quiet")
    after = rows(profile)
    check("again", before.keys() < after.keys(), f"{len(before)} rows, then {len(after)}")


def learnt(folder, profile):
    small = scenario(folder, "small", GPT.format(2))
    mine, plain, out = folder / "learnt.yaml", folder / "plain.json", folder / "learning.json"
    run("train", small, "--quiet", "--json", plain)
    done = run("train", small, "--learn", mine, "--json", out)
    check("learn", re.search(r"learnt \d+ ops from 4 steps: ", done.stderr), done.stderr)
    check("learn", result(out)["loss"] == result(plain)["loss"], "a run that learns has other losses")
    run("check", mine)
    check("learn", rows(mine).keys() <= rows(profile).keys() and len(rows(mine)) >= 8,
          f"the same ops as calibrate --for has: {rows(mine).keys() - rows(profile).keys()}")
    check("learn", 'source: "tandem train --learn"' in mine.read_text(encoding="utf-8"), "no provenance")
    of = json.loads(run("simulate", small, "--set", f"machine={mine}", "--json", "-").stdout)["measured_ops"]
    check("learn", of["share"] == 1, json.dumps(of))
    run("train", scenario(folder, "three", GPT.format(3)), "--learn", mine, "--quiet")
    check("learn more", len({k for b, k, _ in rows(mine) if b == "gpt.block.forward"}) == 2, "what was there is gone")
    short = folder / "short.yaml"
    done = run("train", small, "--set", "steps=3", "--learn", short)
    check("short", "no op to learn from" in done.stderr and not short.exists(), done.stderr)


def refusals(folder, profile):
    small = scenario(folder, "small", GPT.format(2))
    output = folder / "no.yaml"

    def refused(name, words, *arguments, code=2):
        done = run(*arguments, code=code)
        for word in words:
            check(name, word in done.stderr, f"no {word!r} in {done.stderr}")
        check(name, not output.exists(), "wrote a profile")

    calibrate = ("calibrate", "--device", "cpu", "--output", output)
    refused("no base", ["--for: needs --base"], *calibrate, "--for", small)
    refused("no for", ["--base: has no meaning without --for"], *calibrate, "--base", profile)
    refused("quick", ["--quick: has no meaning with --for"], *calibrate, "--for", small, "--base", profile, "--quick")
    refused("gpu", ["--base: h200", "is of a GPU", "allowed: a profile of this machine"], *calibrate, "--for", small, "--base", "h200")
    refused("no scenario", ["missing.yaml"], *calibrate, "--for", folder / "missing.yaml", "--base", profile)
    refused("no profile", ["nowhere"], *calibrate, "--for", small, "--base", "nowhere")
    refused("no folder", ["--output"], "calibrate", "--device", "cpu", "--output", folder / "none" / "no.yaml", "--for", small, "--base", profile)
    elsewhere = folder / "elsewhere.yaml"
    elsewhere.write_text(profile.read_text(encoding="utf-8") + 'fingerprint: {processor: "another machine\'s"}\n', encoding="utf-8")
    refused("other machine", ["--base: mine was measured on another machine: processor"], *calibrate, "--for", small, "--base", elsewhere)
    before = elsewhere.read_bytes()
    refused("learn elsewhere", ["--learn: mine was measured on another machine"], "train", small, "--learn", elsewhere)
    check("learn elsewhere", elsewhere.read_bytes() == before, "was changed")
    refused("learn a scenario", ["tiers"], "train", small, "--learn", folder / "imported.yaml")
    tiny = folder / "tiny.yaml"
    tiny.write_text("derive_from: cpu_2_cores\ntiers: {device: {capacity: 64KiB}}\n", encoding="utf-8")
    refused("too small", ["small.yaml: does not fit"], *calibrate, "--for", small, "--base", tiny, code=3)
    spoiled = folder / "spoiled.yaml"
    text = profile.read_text(encoding="utf-8")
    line = 1 + text[:text.index("processor: device")].count("\n")
    spoiled.write_text(text.replace("processor: device", "processor: tpu", 1), encoding="utf-8")
    refused("spoiled", [f"spoiled.yaml:{line}:", "ops.0.processor: 'tpu' is", "allowed: device, cpu"], "check", spoiled)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "text.txt").write_text("A text to train on, for a while. " * 400, encoding="utf-8")
        profile = calibrated(folder)
        again(folder, profile)
        learnt(folder, profile)
        refusals(folder, profile)
    if failures:
        sys.exit("\n".join(failures))
    print("ok")


main()
