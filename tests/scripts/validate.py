#!/usr/bin/env python3
"""tandem validate in two halves that meet in a file: resumed, with scenarios that fail, out of time, cut off."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
SCENARIO = """\
machine: round_numbers
limits: {{device_bytes: {device}, host_bytes: 64MiB, cores: 2}}
workload: {{family: mlp, layers: 3, hidden: 64, inputs: 64, classes: 10, batch: 16, precision: fp32}}
policy: {{name: {policy}}}
"""
failures = []


def run(*arguments, program="tandem"):
    return subprocess.run([str(a) for a in (BIN / program, *arguments)], capture_output=True, text=True, timeout=300)


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def expect(name, result, code, stderr="", stdout=""):
    check(name, result.returncode == code, f"exit code {result.returncode}, not {code}: {result.stderr.strip()}")
    check(name, stderr in result.stderr, f"no {stderr!r} in standard error: {result.stderr.strip()!r}")
    check(name, stdout in result.stdout, f"no {stdout!r} in standard output: {result.stdout.strip()!r}")


def lines_of(results):
    return [json.loads(line) for line in results.read_text().splitlines()]


def measure(folder, scenarios):
    """Returns the file of measurements, made in parts."""
    results = folder / "measured.jsonl"
    fits, other, too_large = scenarios
    expect("no time", run("validate", "--measure-only", results, "--minutes", "0", *scenarios), 0, "3 scenarios are left")
    check("no time", results.read_text() == "", results.read_text())
    # The training program alone does it: a machine with the device needs nothing else.
    alone = ("--measure-only", results, "--timed-steps=3")
    expect("first", run(*alone, fits, program="tandem-train"), 0, "[1/1] fits:")
    with open(results, "a", encoding="utf-8") as file:
        file.write('{"scenario": "cut o')
    expect("resumed", run("validate", *alone, fits, too_large, other), 0, "1 of 3 scenarios are in")
    again = ("--set", "machine=round_numbers")
    expect("done", run("validate", *alone, *again, fits, too_large, other), 0, "3 of 3 scenarios are in")
    lines = lines_of(results)
    check("order", [line["scenario"] for line in lines] == ["fits", "too_large", "other"], lines)
    check("failure", lines[1]["exit_code"] == 3 and "does not fit" in lines[1]["error"] and "result" not in lines[1], lines[1])
    check("steps", len(lines[0]["result"]["step_time_s"]["all"]) == 4 and lines[0]["warm_steps"] == 2, lines[0])
    check("machine", lines[0]["machine"]["cores"] >= 1 and lines[0]["machine"]["processor"], lines[0]["machine"])
    check("text", lines[0]["text"] == fits.read_text() and lines[0]["set"] == ["steps=5"], lines[0])
    return results


def predict(folder, results):
    table, figures, page = folder / "table.csv", folder / "table.json", folder / "table.html"
    result = run("validate", "--measured", results, "--csv", table, "--json", figures, "--report", page)
    expect("predicted", result, 0, stdout="step time, size of errors")
    check("predicted", "does not fit" in result.stdout, result.stdout)
    check("groups", "of 1 groups" in result.stdout, result.stdout)
    with open(table, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    check("CSV", [row["scenario"] for row in rows] == ["fits", "other"], rows)
    measured = sorted(lines_of(results)[0]["result"]["step_time_s"]["all"][1:])[1]
    check("median", abs(float(rows[0]["measured_s"]) - measured) < 1e-12, (rows[0], measured))
    numbers = json.loads(figures.read_text())
    check("JSON", len(numbers["scenarios"]) == 2 and len(numbers["failures"]) == 1, numbers)
    check("page", page.read_text().count("<circle") == 2 * 2, page)
    # The same scenario on a profile with slower compute is predicted slower.
    slow = run("validate", "--measured", results, "--set", "truth.compute_time=3", "--json", "-")
    slower = [s["predicted_s"] for s in json.loads(slow.stdout)["scenarios"]]
    check("--set", all(a > b["predicted_s"] for a, b in zip(slower, numbers["scenarios"], strict=True)), slower)


def as_probed(folder, results):
    """Predicted with the update's rate that was timed beside the run, where one was."""

    def predicted(rates, *flags):
        line = lines_of(results)[0]
        line["text"] = line["text"].replace("on_demand", "zero_offload")
        if rates:
            line["machine"]["cpu_optimizer"] = rates
        file = folder / "probed.jsonl"
        file.write_text(json.dumps(line) + "\n")
        return json.loads(run("validate", "--measured", file, "--json", "-", *flags).stdout)["scenarios"][0]["predicted_s"]

    calibrated = predicted([1e6, 3e6])
    check("without the flag", predicted([], "--as-probed") == calibrated and predicted([]) == calibrated, calibrated)
    slow, slower = predicted([1e6, 3e6], "--as-probed"), predicted([1e6, 1e6], "--as-probed")
    check("as probed", calibrated < slow < slower, (calibrated, slow, slower))


def wrong_input(folder, scenarios, results):
    broken = folder / "broken.jsonl"
    broken.write_text(results.read_text() + "{}\n")
    expect("a file of something else", run("validate", "--measured", broken), 2, "broken.jsonl:4:1: is no measurement")
    expect("no file", run("validate", "--measured", folder / "none.jsonl"), 2, "cannot be read")
    expect("both halves", run("validate", "--measured", results, "--measure-only", results), 2, "name one")
    expect("scenarios of its own", run("validate", "--measured", results, scenarios[0]), 2, "name no others")
    untouched = folder / "untouched.jsonl"
    bad = folder / "bad.yaml"
    bad.write_text("machine: round_numbers\n")
    expect("a bad scenario", run("validate", "--measure-only", untouched, scenarios[0], bad), 2, "bad.yaml")
    check("a bad scenario", untouched.read_text() == "", "a scenario ran before all were read")


def held_out_scenarios():
    """Those of a GPU fit, so that no minute of one is lost."""
    files = sorted((pathlib.Path(os.environ["TANDEM_SOURCE"]) / "scenarios" / "validation").glob("*.yaml"))
    check("held-out scenarios", len(files) >= 60, files)
    for file in files:
        expect(file.stem, run("simulate", file, "--quiet"), 0)


def main():
    if (BIN / "tandem-simulate").exists():
        held_out_scenarios()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenarios = []
        for stem, policy, device in (("fits", "on_demand", "4MiB"), ("other", "resident", "4MiB"), ("too_large", "resident", "64KiB")):
            scenarios.append(folder / f"{stem}.yaml")
            scenarios[-1].write_text(SCENARIO.format(policy=policy, device=device))
        if (BIN / "tandem-train").exists() and (BIN / "tandem-simulate").exists():
            results = measure(folder, scenarios)
            predict(folder, results)
            as_probed(folder, results)
            wrong_input(folder, scenarios, results)
            # A profile of one's own, found beside its scenario.
            (folder / "mine.yaml").write_text("derive_from: round_numbers\n")
            scenarios[0].write_text(scenarios[0].read_text().replace("round_numbers", "mine.yaml"))
            expect("both", run("validate", "--timed-steps", "2", *scenarios[:2]), 0, "[2/2] other:", "2 scenarios")
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
