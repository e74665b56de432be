#!/usr/bin/env python3
"""The closed loop from the command line, simulated and, where LibTorch is built, live: a scenario where a switch pays, one where none
does, logs that replay, and the losses of an adapted run."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
TANDEM = BIN / "tandem"
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def run(*arguments, code=0):
    done = subprocess.run([str(TANDEM), *map(str, arguments)], capture_output=True, text=True, timeout=600)
    check(" ".join(map(str, arguments)), done.returncode == code, f"ended with {done.returncode}: {done.stderr[-800:]}")
    return done


def result(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


FEW = ("--adapt", "--adapt-policies", "balanced,protrain")  # forecasts of all take three times as long


CASES = {"adapt_pays": True, "adapt_stays": False}
if os.environ.get("TANDEM_SANITIZED"):
    del CASES["adapt_stays"]  # it runs the same code


def simulated(folder):
    for name, switches in CASES.items():
        out, log = folder / f"{name}.json", folder / f"{name}.log"
        done = run("simulate", SOURCE / "scenarios" / f"{name}.yaml", *FEW, "--json", out, "--log", log)
        decisions = result(out)["adaptation"]
        check(name, any(d["switches"] for d in decisions) == switches, json.dumps(decisions)[:500])
        check(name, ("policy balanced, balanced after step" in done.stdout) == switches, done.stdout[:200])
        check(name, "adapt: after step" in done.stderr, done.stderr[-300:])
        check(name, any(d["lane_times"] for d in decisions), "no change was learnt")
        for decision in decisions:
            if "measured_step_s" in decision:
                error = decision["measured_step_s"] / decision["forecast_step_s"] - 1
                check(name, abs(error) < 0.1, f"{decision['policy']}: {error:+.1%} from its forecast")
        check(name, "all as recorded" in run("replay", log).stdout, "its log does not replay")
        again = folder / "again.log"
        run("simulate", SOURCE / "scenarios" / f"{name}.yaml", *FEW, "--quiet", "--log", again)
        check(name, again.read_bytes() == log.read_bytes(), "another run decides otherwise")


SMALL = """\
machine: cpu_2_cores
workload: {family: gpt, layers: 2, hidden: 64, heads: 2, vocabulary: 257, sequence: 32, batch: 2, precision: fp32}
policy: {name: zero_offload}
steps: 200
"""


def live(folder):
    scenario = folder / "small.yaml"
    scenario.write_text(SMALL, encoding="utf-8")
    plain, adapted, log = folder / "plain.json", folder / "adapted.json", folder / "live.log"
    run("train", scenario, "--quiet", "--json", plain)
    run("train", scenario, "--adapt", "--quiet", "--json", adapted, "--log", log)
    check("live", result(plain)["loss"] == result(adapted)["loss"], "an adapted run has other losses")
    # Whether a forecast comes before the last step is a matter of the machine.
    for decision in result(adapted).get("adaptation", []):
        check("live", decision["candidates"][0]["policy"] == "zero_offload", json.dumps(decision))
    check("live", "\ni usage " in log.read_text(encoding="utf-8"), "no usage was logged")
    check("live", "all as recorded" in run("replay", log).stdout, "its log does not replay")


def refusals(folder):
    scenario = folder / "small.yaml"
    scenario.write_text(SMALL, encoding="utf-8")
    done = run("simulate", scenario, "--adapt", "--adapt-policies", "lsp_offload", code=2)
    check("refusal", "allowed: zero_offload" in done.stderr, done.stderr)
    done = run("simulate", scenario, "--adapt-policies", "balanced", code=2)
    check("refusal", "--adapt" in done.stderr, done.stderr)


def monitor(folder):
    file = folder / "usage.jsonl"
    run("monitor", "--samples", 2, "--interval", 0.1, "--quiet", "--json", file)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    check("monitor", len(lines) == 2 and all("cpu.busy_ppm" in line for line in lines), str(lines))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        simulated(folder)
        refusals(folder)
        monitor(folder)
        if (BIN / "tandem-train").exists():
            live(folder)
    if failures:
        sys.exit("\n".join(failures))
    print("ok")


main()
