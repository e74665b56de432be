#!/usr/bin/env python3
"""Real runs warn where the machine is not the one that their profile was measured on, and only there."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
SCENARIO = """\
machine: {machine}
limits: {{device_bytes: 48MiB, host_bytes: 64MiB, cores: 2}}
workload: {{family: mlp, layers: 3, hidden: 64, inputs: 64, classes: 10, batch: 16, precision: fp32}}
policy: {{name: {policy}}}
steps: 2
"""
FIGURES = "h2d: {{rate: {rate}, spread: {spread}}}, d2h: {{rate: {rate}, spread: {spread}}}"
failures = []


def run(*arguments):
    return subprocess.run([str(a) for a in (BIN / "tandem", *arguments)], capture_output=True, text=True, timeout=300)


def expect(name, condition, detail):
    if not condition:
        failures.append(f"{name}: {detail}")


def warnings(name, result):
    """The lines that tell of another machine."""
    expect(name, result.returncode == 0, f"exit code {result.returncode}: {result.stderr.strip()}")
    return [line for line in result.stderr.splitlines() if line.startswith("warning: machine: ")]


def silent(name, result):
    found = warnings(name, result)
    expect(name, found == [], found)


def one_line(name, result, *texts):
    found = warnings(name, result)
    expect(name, len(found) == 1 and all(text in found[0] for text in texts), (found, texts, result.stderr))


class Folder:
    def __init__(self, path):
        self.path = pathlib.Path(path)

    def profile(self, name, text):
        (self.path / f"{name}.yaml").write_text(text)

    def scenario(self, machine, policy="on_demand"):
        file = self.path / f"{machine}_{policy}.scenario"
        file.write_text(SCENARIO.format(machine=f"{machine}.yaml", policy=policy))
        return file


def machine_here(folder):
    results = folder.path / "here.jsonl"
    result = run("validate", "--measure-only", results, folder.scenario("plain"))
    one_line("no fingerprint", result, "plain names no machine that it was measured on", "tandem calibrate --device cpu --quick")
    return json.loads(results.read_text().splitlines()[0])["machine"]


def write_profiles(folder, here):
    def fingerprint(cores, more=""):
        return f"fingerprint: {{processor: {json.dumps(here['processor'])}, cores: {cores}{more}}}\n"

    base = "derive_from: round_numbers\n"
    folder.profile("same", base + fingerprint(here["cores"]))
    folder.profile("other", base + fingerprint(here["cores"] + 1))
    folder.profile("busy", base + fingerprint(here["cores"], ", busy: others ran"))
    folder.profile("gpu", base + "compute: {processor: gpu}\n" + fingerprint(here["cores"] + 1))
    folder.profile("derived", "derive_from: other.yaml\n")
    # A stand-in's copies are far from 9 TB/s, and within a factor of a thousand of 9 GB/s.
    for name, rate, spread in (("fast", "9TB/s", 0.01), ("vague", "9GB/s", 1000)):
        figures = FIGURES.format(rate=rate, spread=spread)
        folder.profile(name, base + fingerprint(here["cores"], ", probe: {" + figures + "}"))


def training(folder, here):
    differs = f"cores: {here['cores'] + 1} in the profile, {here['cores']} here"
    silent("the same machine", run("train", folder.scenario("same")))
    one_line("another machine", run("train", folder.scenario("other")), differs, "tandem calibrate --device cpu --quick")
    silent("quiet", run("train", folder.scenario("other"), "--quiet"))
    one_line("busy", run("train", folder.scenario("busy")), "others ran")
    one_line("a machine that derives from it", run("train", folder.scenario("derived")), "names no machine")
    one_line("a machine that --set changes", run("train", folder.scenario("same"), "--set", "machine.host.dispatch=1us"), "names no machine")
    silent("the CPU as a GPU's stand-in", run("train", folder.scenario("gpu")))


def comparing(folder):
    """A prediction beside a measurement says whose it is, in words and in JSON, also where the CPU is a stand-in."""
    silent("compared with the same machine", run("compare", folder.scenario("same")))
    for machine, text in (("other", "cores: "), ("gpu", "is of a GPU, for which the CPU stands in"), ("derived", "names no machine")):
        result = run("compare", folder.scenario(machine), "--json", folder.path / "compared.json")
        one_line(f"compared with {machine}", result, f"machine: {machine} ", text, "the prediction is of another machine than was measured")
        measured = json.loads((folder.path / "compared.json").read_text())["measured"]
        expect(f"JSON with {machine}", text in measured["other_machine"], measured)
    log = folder.path / "measured.log"
    run("train", folder.scenario("derived"), "--log", log)
    one_line("a log", run("compare", "--measured", log), "names no machine")


def measuring(folder):
    results = folder.path / "results.jsonl"
    two = [folder.scenario("other"), folder.scenario("other", "resident")]
    one_line("two scenarios of a machine", run("validate", "--measure-only", results, *two), "cores: ")
    probe = ("validate", "--probe", "--measure-only")
    result = run(*probe, folder.path / "fast.jsonl", folder.scenario("fast"))
    one_line("other figures", result, "h2d: 9000 GB/s in the profile", "d2h: 9000 GB/s in the profile", " of it")
    expect("figures", result.stderr.count("probe: ") == 4, result.stderr)
    silent("within the spread", run(*probe, folder.path / "vague.jsonl", folder.scenario("vague")))
    silent("no figures asked for", run("validate", "--measure-only", folder.path / "no.jsonl", folder.scenario("fast")))


def main():
    if not (BIN / "tandem-train").exists():
        print("skipped: tandem-train is not built here")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(name)
        folder.profile("plain", "derive_from: round_numbers\n")
        here = machine_here(folder)
        write_profiles(folder, here)
        training(folder, here)
        comparing(folder)
        measuring(folder)
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
