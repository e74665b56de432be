#!/usr/bin/env python3
"""Ranks beside parameter servers that are killed while they train: asynchronous servers go on without a worker, and the
run ends well and says so; without a server, or where servers wait for all, it ends at once."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

TANDEM = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "tandem"
STEPS = 600
SCENARIO = f"""\
machine: round_numbers
workload: {{family: gpt, layers: 2, hidden: 64, heads: 2, vocabulary: 256, sequence: 32, batch: 2, precision: fp32}}
parallel: {{data: 2, servers: 2, staleness: 1}}
policy: {{name: resident}}
watchdog: 20s
steps: {STEPS}
"""
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def ranks(pid):
    """Process by rank, of those that the run has started."""
    found = {}
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
        for word in words:
            if word.startswith("--rank="):
                found[int(word.removeprefix("--rank="))] = int(child)
    return found


def lines(table):
    return len(table.read_text().splitlines()) - 1 if table.exists() else 0


def killed(folder, name, rank, *settings):
    """Kills the rank once some steps are trained: the exit code, the errors, and the steps that the first rank made."""
    table = folder / f"{name}.csv"
    run = subprocess.Popen([str(TANDEM), "train", str(folder / "servers.yaml"), "--csv", str(table), *settings],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while lines(table) < 5 and run.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    others = ranks(run.pid)
    check(name, sorted(others) == [1, 2, 3], f"{others}")
    os.kill(others[rank], signal.SIGKILL)
    try:
        _, errors = run.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        run.kill()
        _, errors = run.communicate()
    left = [pid for pid in others.values() if pathlib.Path(f"/proc/{pid}").exists()]
    check(name, not left, f"left over: {left}")
    return run.returncode, errors, lines(table)


def main():
    if not TANDEM.with_name("tandem-train").exists():
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "servers.yaml").write_text(SCENARIO)
        code, errors, steps = killed(folder, "asynchronous", 1)
        check("asynchronous", code == 0 and steps == STEPS, f"{code} after {steps} steps: {errors}")
        for server in (2, 3):
            said = re.search(rf"rank 1 is lost: from training step (\d+) on, rank {server} updates without its gradients", errors)
            check("asynchronous", said and 5 <= int(said[1]) < STEPS, f"rank {server}: {errors}")
        check("asynchronous", "went on without some of its ranks: rank 1 was ended by signal 9" in errors, errors)
        for case, rank, settings in (("a server", 2, ()), ("synchronous", 1, ("--set", "parallel.staleness=0"))):
            code, errors, steps = killed(folder, case, rank, *settings)
            check(case, code == 4 and steps < STEPS, f"{code} after {steps} steps: {errors}")
            check(case, f"rank {rank} was ended by signal 9" in errors, errors)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
