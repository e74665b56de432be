#!/usr/bin/env python3
"""Processes that the commands start, and what they wait for: nothing outlives its parent, and no wait is for ever."""
import os
import pathlib
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
steps: 200000
"""
MOST_S = 10  # that an interrupt may take
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.01)
    return condition()


def children(pid):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def state(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def gone(pid):
    return state(pid) in ("", "Z", "X")


def program(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return ""


class Run:
    """A command in a folder for temporary files of its own, and the program that it has started."""

    def __init__(self, folder, *arguments, child):
        self.temporary = folder / "temporary"
        self.temporary.mkdir(exist_ok=True)
        self.environment = {**os.environ, "TMPDIR": str(self.temporary)}
        self.process = subprocess.Popen([str(word) for word in (TANDEM, *arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=self.environment)
        found = wait_for(lambda: [pid for pid in children(self.process.pid) if program(pid) == child])
        self.child = found[0] if found else 0

    def end(self):
        """Seconds until it has ended; its code and errors."""
        begin = time.monotonic()
        try:
            _, errors = self.process.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, errors = self.process.communicate()
        return time.monotonic() - begin, self.process.returncode, errors

    def left(self):
        return [path.name for path in self.temporary.iterdir()]


def end_with_their_parent(folder, scenario):
    commands = {"compare-policies": ("compare-policies", scenario, "--quiet")}
    if (BIN / "tandem-train").exists():
        commands["compare"] = ("compare", scenario, "--quiet")
    for name, command in commands.items():
        folders = 1 if name == "compare" else 0  # simulations alone tell their results through sockets
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            run = Run(folder, *command, child="tandem-simulate")
            case = f"{name} {number.name}"
            check(case, run.child != 0, "no simulation was started")
            check(case, len(run.left()) == folders, f"folders for intermediate files: {run.left()}")
            run.process.send_signal(number)
            seconds, code, errors = run.end()
            check(case, seconds < MOST_S, f"took {seconds} s")
            check(case, code == (-9 if number == signal.SIGKILL else 130), f"ended with {code}: {errors}")
            check(case, wait_for(lambda run=run: gone(run.child), 5), "the simulation outlives it")
            if number == signal.SIGKILL:
                # What a killed process leaves goes with the next run; what is in use stays.
                other = Run(folder, *command, child="tandem-simulate")
                check(case, len(other.left()) == folders, f"left over: {other.left()}")
                third = Run(folder, *command, child="tandem-simulate")
                check(case, len(third.left()) == 2 * folders, f"of two that run: {third.left()}")
                for one in (other, third):
                    one.process.terminate()
                    one.end()
            check(case, not run.left(), f"left over: {run.left()}")


def a_stopped_child_does_not_hold_up_an_interrupt(folder, scenario):
    run = Run(folder, "compare-policies", scenario, "--quiet", child="tandem-simulate")
    os.kill(run.child, signal.SIGSTOP)
    run.process.terminate()
    seconds, code, errors = run.end()
    check("stopped child", code == 130 and seconds < MOST_S + 1, f"{code} after {seconds} s: {errors}")
    check("stopped child", wait_for(lambda: gone(run.child), 5) and not run.left(), f"{state(run.child)} {run.left()}")


def trains(pid):
    """Whether a rank takes part in collectives: Gloo's threads are there, and those of lanes."""
    try:
        return len(list(pathlib.Path(f"/proc/{pid}/task").iterdir())) >= 6
    except OSError:
        return False


def stopped_ranks(folder, scenario):
    for name, settings, number, least, most, code, texts in (
            ("watchdog", ("--set", "watchdog=2s"), None, 1, 9, 4,
             ("nothing has finished for 2", "lane collective: command ", "waits for the other ranks", "waits for command")),
            ("interrupt", (), signal.SIGINT, 0, MOST_S, 130, ("interrupted", "lane collective")),
            ("interrupt with checkpoints", ("--set", f"checkpoint.directory={folder}/saved"), signal.SIGTERM, 0, MOST_S, 130,
             ("interrupted", "lane collective"))):
        run = Run(folder, "train", scenario, "--nproc", "2", "--quiet", *settings, child="tandem-train")
        check(name, wait_for(lambda run=run: trains(run.child)), "the second rank does not begin")
        time.sleep(0.5)
        os.kill(run.child, signal.SIGSTOP)
        if number:
            time.sleep(0.2)
            run.process.send_signal(number)
        seconds, ended, errors = run.end()
        check(name, ended == code, f"ended with {ended}: {errors}")
        check(name, least <= seconds < most, f"took {seconds} s")
        for text in texts:
            check(name, text in errors, f"no {text!r} in {errors!r}")
        check(name, wait_for(lambda run=run: gone(run.child), 5), "the other rank outlives it")
        check(name, not run.left(), f"left over: {run.left()}")


def stages_that_end(folder, scenario):
    """A stage of a pipeline is killed, or stopped, once it trains: the run says so and ends, and no process outlives it."""
    for name, number, most, texts in (
            ("killed stage", signal.SIGKILL, MOST_S, ("rank 2 of 3", "a peer has stopped", "; rank 0 was ended by signal 9; ", "nothing was saved")),
            ("stopped stage", signal.SIGSTOP, 9, ("nothing has finished for 2", "waits for the other ranks", "rank 0 is stopped, by signal 19"))):
        run = Run(folder, "train", scenario, "--quiet", "--set", "parallel.pipeline=3", "--set", "workload.micro_batches=4",
                  "--set", "workload.layers=6", "--set", "watchdog=2s", child="tandem-train")
        others = wait_for(lambda run=run: [pid for pid in children(run.process.pid) if trains(pid)][1:] and children(run.process.pid))
        check(name, others and len(others) == 2, f"not all stages begin: {others}")
        time.sleep(0.5)
        os.kill(others[0], number)
        seconds, code, errors = run.end()
        check(name, code == 4 and seconds < most, f"{code} after {seconds} s: {errors}")
        for text in texts:
            check(name, text in errors, f"no {text!r} in {errors!r}")
        check(name, wait_for(lambda others=others: all(map(gone, others)), 5), "a stage outlives it")
        check(name, not run.left(), f"left over: {run.left()}")


def divided_layers(folder, scenario):
    """Two ranks with half of every layer train from the command line; where one is killed, both end."""
    tensor = ("train", scenario, "--quiet", "--set", "policy.name=resident", "--set", "parallel.tensor=2")
    saved = folder / "divided"
    run = Run(folder, *tensor, "--set", "steps=20", "--set", f"checkpoint.directory={saved}", child="tandem-train")
    _, code, errors = run.end()
    check("divided layers", code == 0 and not run.left(), f"{code}: {errors} {run.left()}")
    alone = ("train", scenario, "--quiet", "--set", "policy.name=resident", "--set", "steps=21", "--resume", saved)
    done = subprocess.run([TANDEM, *alone], capture_output=True, text=True, timeout=100, check=False)
    check("divided layers", done.returncode == 0, f"one device does not go on: {done.stderr}")
    for setting, word in ((f"weights={folder}", "weights"), ("workload.loss_tiles=2", "loss_tiles"),
                          ("optimizer.name=adafactor", "adafactor"),
                          ("policy.name=on_demand", "policy: resident")):
        done = subprocess.run([TANDEM, *tensor, "--set", setting], capture_output=True, text=True, timeout=100, check=False)
        check(setting, done.returncode == 2 and "parallel.tensor: " in done.stderr and word in done.stderr,
              f"{done.returncode}: {done.stderr}")
    run = Run(folder, *tensor, "--set", "watchdog=2s", child="tandem-train")
    others = wait_for(lambda: [pid for pid in children(run.process.pid) if trains(pid)])
    check("killed part", others, "the other rank does not begin")
    time.sleep(0.5)
    os.kill(others[0], signal.SIGKILL)
    seconds, code, errors = run.end()
    check("killed part", code == 4 and seconds < MOST_S, f"{code} after {seconds} s: {errors}")
    for text in ("rank 0 of 2", "a peer has stopped", "; rank 1 was ended by signal 9; ", "set checkpoint.directory"):
        check("killed part", text in errors, f"no {text!r} in {errors!r}")
    check("killed part", wait_for(lambda: all(map(gone, others)), 5) and not run.left(), f"left over: {run.left()}")


def ranks_that_differ(folder, scenario):
    """Rank 0 never comes: the others find out without it."""
    meeting = folder / "meeting"
    text = folder / "text.txt"
    for name, settings, part in (("seeds", ("seed=1", "seed=2"), "scenario"), ("data", (f"data.text={text}",) * 2, "data")):
        meeting.unlink(missing_ok=True)
        ranks = []
        for rank, setting in enumerate(settings, 1):
            text.write_text(f"to be or not to be {rank}\n" * 99)
            ranks.append(subprocess.Popen([BIN / "tandem-train", scenario, "--nproc", "3", f"--rank={rank}", f"--meeting-file={meeting}",
                                           "--set", setting], stderr=subprocess.PIPE, text=True))
            if rank == 1:
                wait_for(meeting.exists)
                time.sleep(0.2)
        for process in ranks:
            try:
                _, errors = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                _, errors = process.communicate()
            check(f"other {name}", process.returncode == 4 and f"have another {part}" in errors, f"{process.returncode}: {errors}")


def ranks_that_end(folder, scenario):
    run = Run(folder, "train", scenario, "--nproc", "2", "--quiet", child="tandem-train")
    os.kill(run.child, signal.SIGKILL)
    seconds, code, errors = run.end()
    check("a rank killed at the start", code == 4 and seconds < MOST_S, f"{code} after {seconds} s: {errors}")
    run = Run(folder, "train", scenario, "--nproc", "2", "--quiet", child="tandem-train")
    run.process.kill()
    run.end()
    check("the leading rank killed", wait_for(lambda: gone(run.child), 5), "the other rank outlives it")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenario = folder / "long.yaml"
        scenario.write_text(SCENARIO)
        if (BIN / "tandem-simulate").exists():
            end_with_their_parent(folder, scenario)
            a_stopped_child_does_not_hold_up_an_interrupt(folder, scenario)
        if (BIN / "tandem-train").exists():
            stopped_ranks(folder, scenario)
            ranks_that_end(folder, scenario)
            stages_that_end(folder, scenario)
            divided_layers(folder, scenario)
            ranks_that_differ(folder, scenario)
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
