#!/usr/bin/env python3
"""Ranks that others start: shells that set torchrun's variables, and torchrun itself where it is. They train as one process that
starts the others does; and where one goes wrong, all end with 4 and say why."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
TANDEM = BIN / "tandem"
TORCHRUN = pathlib.Path(os.environ["TANDEM_SOURCE"]) / ".venv" / "bin" / "torchrun"
SCENARIO = """\
machine: round_numbers
limits: {device_bytes: 64MiB, host_bytes: 64MiB}
workload: {family: gpt, layers: 4, hidden: 16, heads: 2, vocabulary: 128, sequence: 8, batch: 2, micro_batches: 4, precision: fp32}
parallel: {pipeline: 2}
policy: {name: zero_offload}
validation: {every: 1, batches: 2}
watchdog: 60s
steps: 2
"""
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE")
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def clean():
    return {name: value for name, value in os.environ.items() if name not in VARIABLES}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(scenario, rank, ranks, port, *words, **variables):
    environment = {**clean(), "RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_PORT": str(port), **variables}
    return subprocess.Popen([str(word) for word in (TANDEM, "train", scenario, "--quiet", *words)], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process, seconds=120):
    try:
        out, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = process.communicate()
        errors += " (did not end by itself)"
    return process.returncode, out, errors


def alone(scenario, *words):
    result = subprocess.run([str(word) for word in (TANDEM, "train", scenario, "--quiet", "--json", "-", *words)], env=clean(),
                            capture_output=True, text=True, timeout=120)
    check("one process", result.returncode == 0, result.stderr)
    return figures(result.stdout)


def figures(text):
    try:
        known = json.loads(text)
    except ValueError:
        return None
    return known["loss"], known.get("validation_loss")


def train_as_one(scenario):
    """2 ranks are a pipeline's stages, 4 are two copies of it; the leading one reports."""
    for ranks, words in ((2, ()), (4, ("--set", "workload.batch=1"))):
        expected = alone(scenario, "--nproc", ranks, *words)
        port = free_port()
        processes = [start(scenario, rank, ranks, port, "--json", "-", *words) for rank in range(ranks)]
        ends = [end(process) for process in processes]
        check(f"{ranks} ranks", all(code == 0 for code, _, _ in ends), ends)
        reports = [out for _, out, _ in ends if out.strip()]
        check(f"{ranks} ranks", len(reports) == 1 and figures(reports[0]) == expected, (reports, expected))


def real_torchrun(scenario):
    if not TORCHRUN.exists():
        return
    expected = alone(scenario)
    result = subprocess.run([str(word) for word in (TORCHRUN, "--no-python", "--standalone", "--nproc-per-node", 2, TANDEM, "train",
                                                    scenario, "--quiet", "--json", "-")],
                            env=clean(), capture_output=True, text=True, timeout=180)
    check("torchrun", result.returncode == 0 and figures(result.stdout) == expected, (result.stdout, result.stderr[-2000:]))


def errors_of_all(name, processes, texts, codes=(4,), seconds=120):
    for rank, (process, text) in enumerate(zip(processes, texts)):
        code, _, errors = end(process, seconds)
        check(f"{name}, rank {rank}", code in codes and text in errors, f"{code}: {errors}")


def go_wrong(scenario):
    port = free_port()
    errors_of_all("other scenarios", [start(scenario, rank, 2, port, "--set", f"seed={rank}") for rank in range(2)],
                  ["have another scenario"] * 2)
    port = free_port()
    errors_of_all("never comes", [start(scenario, 0, 2, port, "--set", "watchdog=2s")], ["rank 1, to begin"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        errors_of_all("port in use", [start(scenario, rank, 2, port, "--set", "watchdog=2s") for rank in range(2)],
                      ["Address already in use", "the ranks' meeting"])
    for name, variables, text in (("half of them", {"WORLD_SIZE": ""}, "WORLD_SIZE (environment): is unset"),
                                  ("no rank of it", {"RANK": "2"}, "allowed: 0 to 1"),
                                  ("no pipelines", {"WORLD_SIZE": "3"}, "no whole number of copies of 2 stages")):
        errors_of_all(name, [start(scenario, 0, 2, port, **variables)], [text], codes=(2,))


def a_killed_peer(scenario, folder):
    port = free_port()
    processes = [start(scenario, rank, 2, port, "--set", "steps=200000", "--set", f"checkpoint.directory={folder / 'saved'}", "--set",
                       "checkpoint.every=5") for rank in range(2)]
    limit = time.monotonic() + 60
    while time.monotonic() < limit and processes[1].poll() is None and not list((folder / "saved").glob("step-*[0-9]/manifest.json")):
        time.sleep(0.02)
    # The command's own child is the rank: both are of this process's.
    for child in pathlib.Path(f"/proc/{processes[0].pid}/task/{processes[0].pid}/children").read_text(encoding="ascii").split():
        os.kill(int(child), signal.SIGKILL)
    processes[0].kill()
    processes[0].communicate()
    code, _, errors = end(processes[1], 30)
    check("killed peer", code == 4 and "a peer has stopped" in errors and "to go on" in errors, f"{code}: {errors}")
    check("killed peer", list((folder / "saved").glob("step-*[0-9]/manifest.json")), "no checkpoint is left")


def main():
    if not (BIN / "tandem-train").exists():
        print("ok")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenario = folder / "ranks.yaml"
        scenario.write_text(SCENARIO)
        train_as_one(scenario)
        real_torchrun(scenario)
        go_wrong(scenario)
        a_killed_peer(scenario, folder)
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
