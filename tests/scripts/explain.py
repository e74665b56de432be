#!/usr/bin/env python3
"""tandem explain: it names what binds in scenarios that are made so, and its numbers are those of runs with --set."""
import html
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TANDEM = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "tandem"
# On this machine 20 million parameters in fp16 are 4 ms of one way of the bus, 20 ms of the CPU's update and 14 ms of the
# device's arithmetic a step, alone.
SCENARIO = """\
machine: round_numbers
workload: {family: gpt, layers: 6, hidden: 512, heads: 8, vocabulary: 1024, sequence: 256, batch: 4, precision: fp16}
policy: {name: zero_offload}
"""
RESIDENT, STREAMED, ON_DEMAND = ("policy={name: %s}" % name for name in ("resident", "l2l", "on_demand"))
# What is made scarce, and what more of would then save most.
CASES = (
    ("a slow GPU", "compute", RESIDENT, "machine.compute.peak.fp16=1TFLOPS"),
    ("a large batch", "compute", "workload.batch=64"),
    ("all on the device", "compute", RESIDENT),
    ("fp32 where there is little of it", "compute", RESIDENT, "workload.precision=fp32", "machine.compute.peak.fp32=2TFLOPS"),
    ("slow device memory", "device_bandwidth", RESIDENT, "machine.tiers.device.bandwidth=10GB/s"),
    ("slow device memory under offloading", "device_bandwidth", "machine.tiers.device.bandwidth=12GB/s"),
    ("a slow bus", "pcie", "machine.copies.h2d.bandwidth=1GB/s", "machine.copies.d2h.bandwidth=1GB/s"),
    ("a slow way down", "d2h", "machine.copies.d2h.bandwidth=0.4GB/s"),
    ("a slow way up", "h2d", STREAMED, "machine.copies.h2d.bandwidth=0.5GB/s"),
    ("a limit on the way up", "h2d", STREAMED, "limits.h2d=0.5GB/s"),
    ("one core", "cpu", "limits.cores=1"),
    ("a slow CPU", "cpu", "machine.cpu.optimizer.rate=0.1Gparameters/s"),
    ("a CPU that moves all that its memory can", "host", "machine.tiers.host_pinned.bandwidth=20GB/s"),
    ("states on the disk", "disk", "policy={name: mlp_offload}", "limits.host_bytes=256MiB"),
    ("states on a slower disk", "disk", "policy={name: mlp_offload}", "limits.host_bytes=256MiB",
     "machine.copies.disk_read.bandwidth=0.5GB/s", "machine.copies.disk_write.bandwidth=0.5GB/s"),
    ("little device memory", "device_memory", ON_DEMAND, "limits.device_bytes=240MiB"),
    ("a device that is nearly large enough", "device_memory", ON_DEMAND, "limits.device_bytes=300MiB"),
    ("little host memory", "host_memory", ON_DEMAND, "limits.device_bytes=100MiB", "limits.host_bytes=200MiB"),
    ("slow links", "links", RESIDENT, "workload.devices=2", "machine.collective.bandwidth=0.2GB/s"),
    ("memory that copies both ways share", "dram", "policy={name: g10}", "limits.device_bytes=150MiB",
     "machine.tiers.host_pinned.bandwidth=10GB/s", "machine.cpu.optimizer.rate=0.4Gparameters/s"),
)
failures = []


def run(*arguments):
    return subprocess.run([str(a) for a in (TANDEM, *arguments)], capture_output=True, text=True, timeout=120)


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def setting_flags(settings):
    return [word for setting in settings for word in ("--set", setting)]


def explained(name, scenario, *words):
    result = run("explain", scenario, "--policies", "on_demand", "--json", "-", *words)
    check(name, result.returncode == 0, result.stderr)
    return json.loads(result.stdout) if result.returncode == 0 else None


def constructed(scenario):
    check("cases", len(CASES) == 20, len(CASES))
    for name, expected, *settings in CASES[::5] if os.environ.get("TANDEM_SANITIZED") else CASES:
        found = explained(name, scenario, *setting_flags(settings))
        if not found:
            continue
        saves = {of["resource"]: round(100 * of["saves_share"], 1) for of in found["resources"] if "saves_share" in of}
        check(name, found["worth_most"] == expected, f"{found['worth_most']}, not {expected}: {saves}")
        words = next(of["words"] for of in found["resources"] if of["resource"] == expected)
        check(name, f"10% more {words} would save" in found["sentence"], found["sentence"])


def numbers(scenario):
    """Of each resource and policy: what the simulation with the settings that it names says."""
    settings = setting_flags(["limits.device_bytes=240MiB", ON_DEMAND])
    result = run("explain", scenario, *settings, "--policies", "zero_offload,balanced", "--json", "-")
    found = json.loads(result.stdout)

    def step(*changes):
        simulated = run("simulate", scenario, *settings, *setting_flags([*found["set"], *changes]), "--json", "-", "--quiet")
        return json.loads(simulated.stdout)["step_time_s"]["median"]

    now = step()
    check("as it is", found["simulated_step_s"] == now, (found["simulated_step_s"], now))
    for of in found["resources"]:
        with_more = step(*of["set"])
        check(of["resource"], of["step_s"] == with_more, (of, with_more))
        check(of["resource"], abs(of["saves_s"] - (now - with_more)) < 1e-12, of)
    check("policies", [of["policy"] for of in found["policies"]] == ["zero_offload", "balanced"], found["policies"])
    for of in found["policies"]:
        check(of["policy"], of["step_s"] == step(f"policy={{name: {of['policy']}}}"), of)
    best = min(found["policies"], key=lambda of: of["step_s"])
    check("the better policy", found["better_policy"] == best["policy"] and f"{best['policy']} would take" in found["sentence"], found["sentence"])
    run_of_its_own = json.loads(run("simulate", scenario, *settings, "--json", "-").stdout)
    for key in ("step_time_s", "limited_by", "critical_path", "roofline"):
        check("the run that is explained", found["run"][key] == run_of_its_own[key], key)
    path_s = sum(part["seconds"] for part in found["run"]["critical_path"])
    check("the critical path is the step", abs(path_s / found["run"]["steady_step_s"] - 1) < 1e-9, path_s)


def text(scenario):
    result = run("explain", scenario)
    check("text", result.returncode == 0, result.stderr)
    lines = result.stdout.splitlines()
    check("a sentence first", lines[0].startswith("The device waits "), lines[0])
    check("80 columns", all(len(line) <= 80 for line in lines), max(lines, key=len))
    for part in ("critical path of a step", "roofline of the device", "10% more ", "other policies"):
        check("parts", any(line.startswith(part) for line in lines), part)
    check("the same twice", run("explain", scenario).stdout == result.stdout)
    result = run("explain", pathlib.Path(os.environ["TANDEM_SOURCE"]) / "scenarios" / "demo.yaml", "--policies", "one_bit_adam", "--wide")
    check("other losses", "  other losses\n" in result.stdout, result.stdout)
    check("quiet", run("explain", scenario, "--quiet").stdout == "", "it prints")


def generating(scenario):
    """What generates is asked under what generates, as compare-policies has them."""
    texts = ("--set", "generate={prompt: 20, new_tokens: 4}", "--set", "policy={name: flexgen, wg: 50}")
    found = json.loads(run("explain", scenario, *texts, "--json", "-").stdout)
    compared = json.loads(run("compare-policies", scenario, *texts, "--json", "-", "--quiet").stdout)
    names = {of["policy"] for of in found["policies"]}
    check("policies that generate", {"accelerate", "row_by_row", "on_demand"} <= names and "zero_offload" not in names, names)
    check("those that are compared", names | {"flexgen"} == {of["policy"] for of in compared["policies"]}, compared)


def shipped():
    """Each resource of machines that were measured, and of those whose figures name their sources, can be larger."""
    kinds = (("two_devices", "h200"), ("h200_gpt_1_4b", "h200_measured"), ("llama_2_7b_rtx_4090", "rtx_4090"))
    for name, machine in kinds[:1] if os.environ.get("TANDEM_SANITIZED") else kinds:
        path = pathlib.Path(os.environ["TANDEM_SOURCE"]) / "scenarios" / f"{name}.yaml"
        found = explained(name, path, "--set", f"machine={machine}")
        check(name, found and all("saves_share" in of for of in found["resources"]), found and found["resources"])


def piped(scenario):
    """What a shell hands over is read once, and simulated all the same."""
    result = subprocess.run(["bash", "-c", f'{TANDEM} explain <(cat {scenario}) --policies on_demand --set workload.batch=2 --json -'],
                            capture_output=True, text=True, timeout=120)
    check("a pipe", result.returncode == 0, result.stderr)
    found = explained("no pipe", scenario, "--set", "workload.batch=2")
    check("a pipe", result.returncode == 0 and json.loads(result.stdout)["sentence"] == found["sentence"], result.stdout[:200])


def logs(folder, scenario):
    log = folder / "run.log"
    run("simulate", scenario, "--log", log, "--quiet")
    of_log, of_file = explained("a log", log), explained("its scenario", scenario)
    for key in ("sentence", "limited_by", "resources", "policies", "simulated_step_s"):
        check("a log says what its scenario does", of_log[key] == of_file[key], (key, of_log[key], of_file[key]))
    check("critical path of a log", of_log["run"]["critical_path"] == of_file["run"]["critical_path"])
    recorded = pathlib.Path(os.environ["TANDEM_SOURCE"]) / "tests" / "replay" / "zero_offload.log"
    real = explained("a real run's log", recorded)
    check("a real run's log", real["run"]["mode"] == "measured" and "by simulation" in real["sentence"], real["sentence"])
    path_s = sum(part["seconds"] for part in real["run"]["critical_path"])
    check("a real run's critical path", abs(path_s / real["run"]["steady_step_s"] - 1) < 1e-9, path_s)
    result = run("explain", recorded, "--policies", "balanced")
    check("a real run's log", "measured, under zero_offload" in result.stdout and "% off:" in result.stdout, result.stdout)


def refused(folder, scenario):
    small = folder / "small.log"
    small.write_text("tandem-log 2\nmode simulated\n")
    unfit = folder / "unfit.yaml"
    unfit.write_text(SCENARIO.replace("zero_offload", "resident") + "limits: {device_bytes: 20MiB}\n")
    broken = folder / "broken.yaml"
    broken.write_text(SCENARIO.replace("layers", "layerz"))
    log = folder / "run.log"
    run("simulate", scenario, "--log", log, "--quiet")
    for name, words, code, message in (
            ("no file", (), 2, "FILE is required"),
            ("a file that is not there", (folder / "none.yaml",), 2, "none.yaml"),
            ("a bad key", (broken,), 2, "broken.yaml:2:"),
            ("a bad setting", (scenario, "--set", "workload.layers=none"), 2, "workload.layers"),
            ("half a log", (small,), 2, "small.log:"),
            ("a setting of a log", (log, "--set", "steps=5"), 2, "have no meaning for a log"),
            ("an unknown policy", (scenario, "--policies", "balancd"), 2, "did you mean balanced?"),
            ("an unknown flag", (scenario, "--jsn", "-"), 2, "did you mean --json?"),
            ("no folder", (scenario, "--json", folder / "none" / "x.json"), 2, "create the folder first"),
            ("the scenario as an output", (scenario, "--json", scenario), 2, "scenario"),
            ("what does not fit", (unfit,), 3, "does not fit: needs about ")):
        result = run("explain", *words)
        check(name, result.returncode == code and message in result.stderr, (result.returncode, result.stderr))
        check(name, result.stdout == "", result.stdout)


def same_on_pages(folder, scenario):
    """The page of a simulation and what explain says of the same scenario begin with the same words; explain's own page has its
    own sentence."""
    headline = re.compile(r'<p class="headline">(.*?)</p>')
    page = folder / "page.html"
    seen = set()
    for name, *settings in (("a slow GPU", RESIDENT, "machine.compute.peak.fp16=1TFLOPS"), ("a slow bus", "machine.copies.h2d.bandwidth=1GB/s", STREAMED),
                            ("a slow way down", "machine.copies.d2h.bandwidth=0.4GB/s"), ("one core", "limits.cores=1"), ("one step", "steps=1", "workload.layers=1"),
                            ("many steps", "steps=20"), ("disk", "policy={name: mlp_offload}", "limits.host_bytes=256MiB"),
                            ("links", RESIDENT, "workload.devices=2", "machine.collective.bandwidth=0.2GB/s")):
        words = setting_flags(settings)
        run("simulate", scenario, *words, "--quiet", "--report", page)
        text = page.read_text()
        simulated = html.unescape(headline.search(text)[1])
        check(name, "`tandem explain FILE` measures" in text, simulated)
        found = explained(name, scenario, *words, "--report", page)
        held = found["sentence"].partition(";")[0].partition(", ")[0].removesuffix(".")
        cause = re.sub(r"[\d.]+% of", "", held.removeprefix("The "))
        check(name, cause in re.sub(r"[\d.]+% of", "", simulated), (simulated, found["sentence"]))
        check(name, settings == ["steps=20"] or held.removeprefix("The ") in simulated, (simulated, found["sentence"]))
        check(name, html.unescape(headline.search(page.read_text())[1]) == found["sentence"], found["sentence"])
        seen.add(found["limited_by"]["cause"])
    check("scenarios that differ", len(seen) >= 5, seen)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenario = folder / "case.yaml"
        scenario.write_text(SCENARIO)
        refused(folder, scenario)
        text(scenario)
        generating(scenario)
        numbers(scenario)
        shipped()
        piped(scenario)
        logs(folder, scenario)
        same_on_pages(folder, scenario)
        constructed(scenario)
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
