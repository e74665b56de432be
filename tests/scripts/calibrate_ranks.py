#!/usr/bin/env python3
"""`tandem calibrate --nproc`: what processes of this machine take to talk, as a profile that scenarios can name; and what of its flags is refused."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
TWO = """\
machine: ranks.yaml
workload: {family: mlp, layers: 3, hidden: 64, inputs: 64, classes: 10, batch: 16, precision: fp32, devices: 2}
policy: {name: resident}
steps: 3
"""
failures = []
if not (BIN / "tandem-calibrate").exists():
    sys.exit(77)


def run(*words, cwd):
    return subprocess.run([BIN / "tandem", *words], capture_output=True, text=True, timeout=300, check=False, cwd=cwd)


def expect(name, condition, detail):
    if not condition:
        failures.append(f"{name}: {detail}")


with tempfile.TemporaryDirectory() as folder:
    base = SOURCE / "hardware_profiles" / "cpu_2_cores.yaml"
    done = run("calibrate", "--device", "cpu", "--nproc", "2", "--base", base, "--output", "ranks.yaml", cwd=folder)
    expect("two ranks", done.returncode == 0, done.stderr)
    expect("its times are shown", "all-reduce of" in done.stderr and "transfer of" in done.stderr, done.stderr)
    check = run("check", "ranks.yaml", cwd=folder)
    expect("a profile", check.returncode == 0 and "a valid profile" in check.stdout, check.stdout + check.stderr)

    (pathlib.Path(folder) / "two.yaml").write_text(TWO)
    steps = {}
    for latency in ("", "--set=machine.collective.latency=50ms"):
        done = run("simulate", "two.yaml", *[latency][: bool(latency)], "--json", "out.json", "--quiet", cwd=folder)
        expect("a scenario names it", done.returncode == 0, done.stderr)
        if done.returncode == 0:
            steps[latency] = json.loads((pathlib.Path(folder) / "out.json").read_text())["step_time_s"]["median"]
    expect("its collectives count", len(steps) == 2 and steps[""] < 0.1 < steps["--set=machine.collective.latency=50ms"], steps)

    for flags, said in ((["--nproc", "2"], "--nproc: needs --base"), (["--nproc", "2", "--base", base, "--quick"], "--quick: has no meaning with --nproc"),
                        (["--nproc", "1", "--base", base], "--nproc")):
        done = run("calibrate", "--device", "cpu", *flags, "--output", "other.yaml", cwd=folder)
        expect(f"{flags} is refused", done.returncode == 2 and said in done.stderr, f"exit code {done.returncode}: {done.stderr}")
    expect("nothing is left of what was refused", sorted(os.listdir(folder)) == ["out.json", "ranks.yaml", "two.yaml"], sorted(os.listdir(folder)))

print("\n".join(failures) or "ok")
sys.exit(bool(failures))
