#!/usr/bin/env python3
"""The shipped programs with a call on their output files failing (libtandem_faults before libc, by LD_PRELOAD): they end with 0 or
say why not, and under an output's name is the old one or a whole one.

TANDEM_EVERY_FAULT: every call, and `tandem compare` as well; some calls of `tandem simulate` if unset."""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["TANDEM_BUILD"]).resolve()
TANDEM, LIBRARY = BUILD / "bin" / "tandem", BUILD / "tests" / "libtandem_faults.so"
SCENARIO = """\
machine: round_numbers
limits: {device_bytes: 4MiB, host_bytes: 64MiB, cores: 2}
workload: {family: mlp, layers: 3, hidden: 64, inputs: 64, classes: 10, batch: 16, precision: fp32}
policy: {name: on_demand}
steps: 3
"""
OLD = "of an earlier run\n"
FEW = 30
WRITING = ("open to make", "write", "fsync", "rename", "unlink", "fchmod")
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def run(words, folder, kind="", at=0):
    """The exit code, what was said, and the calls: name and path."""
    trace = folder.parent / "trace"
    trace.unlink(missing_ok=True)
    environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), "TANDEM_FAULT_FOLDER": str(folder), "TANDEM_FAULT_KIND": kind,
                   "TANDEM_FAULT_AT": str(at), "TANDEM_FAULT_TRACE": str(trace)}
    done = subprocess.run([str(word) for word in words], env=environment, capture_output=True, text=True, timeout=120, check=False)
    lines = trace.read_text(encoding="utf-8").splitlines() if trace.exists() else []
    return done.returncode, done.stderr, [line.split("\t") for line in lines]


def prepare(paths):
    for path in paths:
        path.write_text(OLD, encoding="utf-8")


def is_whole(path):
    text = path.read_text(encoding="utf-8")
    if text == OLD:
        return True
    if path.name in ("json", "trace"):
        try:
            return bool(json.loads(text))
        except ValueError:
            return False
    return text.endswith("</html>\n") if path.name == "report" else text.count("\ne ") == text.count("\nr ") + text.count("\nc ") > 20


def faults_of(calls, every):
    kinds = ("EIO", "ENOSPC", "EINTR", "short", "kill_before", "kill_after")
    all_faults = [(kind, int(call[0])) for call in calls for kind in kinds
                  if (kind != "short" or call[1] == "write") and (kind == "EIO" or call[1] in WRITING)]
    return all_faults if every else random.Random(3).sample(all_faults, FEW)


def command(name, folder, scenario, every):
    files = {f"--{output}": folder / output for output in ("json", "trace", "report", "log")}
    # tandem compare writes two logs, with endings of their own.
    paths = [path for flag, path in files.items() if name != "compare" or flag != "--log"]
    words = [TANDEM, name, scenario, "--quiet"] + [word for pair in files.items() for word in pair]
    prepare(paths)
    code, said, calls = run(words, folder)
    check(name, code == 0 and calls, f"{code}: {said}")
    check(name, all(path.read_text(encoding="utf-8") != OLD and is_whole(path) for path in paths), "no whole outputs")
    faults = faults_of(calls, every)
    for kind, at in faults:
        prepare(paths)
        code, said, met = run(words, folder, kind, at)
        what = next((call for call in met if call[3]), None)
        title = f"{name}, {kind} at call {at}, {what[1:2] + what[4:5] if what else ''}"
        goes_on = kind == "short" or kind == "EINTR" and what[1] not in ("rename", "unlink")
        allowed = (-signal.SIGKILL, 128 + signal.SIGKILL, 4) if kind.startswith("kill") else (0,) if goes_on else (0, 4)
        check(title, code in allowed, f"exit code {code}: {said}")
        check(title, code <= 0 or kind.startswith("kill") or ("; " in said and "failed: " not in said), said)
        for path in paths:
            check(title, is_whole(path), f"part of {path.name} is there")
        if code == 0:
            check(title, all(path.read_text(encoding="utf-8") != OLD for path in paths), "an output is missing")
    print(f"tandem {name}: {len(faults)} faults in {len(calls)} calls")


def main():
    if not LIBRARY.exists():
        return 77
    every = "TANDEM_EVERY_FAULT" in os.environ
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenario = folder / "small.yaml"
        scenario.write_text(SCENARIO, encoding="utf-8")
        (folder / "outputs").mkdir()
        if (BUILD / "bin" / "tandem-simulate").exists():
            command("simulate", folder / "outputs", scenario, every)
            if every and (BUILD / "bin" / "tandem-train").exists():
                command("compare", folder / "outputs", scenario, every)
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
