#!/usr/bin/env python3
"""Runs that are killed over and over, at any moment, alone or as two ranks: each time what was complete is there and no output is
half there, and what goes on comes to the tensors and the table of a run that nobody killed, to the bit. Interrupted ones (SIGINT)
too, which end by themselves in ten seconds.

TANDEM_KILLS, TANDEM_INTERRUPTS: how many; a few if unset."""
import csv
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
SCENARIO = """\
machine: round_numbers
limits: {device_bytes: 4MiB, host_bytes: 64MiB, cores: 2}
workload: {family: mlp, layers: 3, hidden: 64, inputs: 64, classes: 10, batch: 16, precision: fp32}
policy: {name: on_demand}
validation: {every: 5, batches: 1}
steps: 40
"""
STEPS = 40
FEW_KILLS, FEW_INTERRUPTS = 9, 6
MOST_S = 10  # from an interrupt to the end
OUTPUTS = ("json", "log", "trace")
OLD = "of an earlier run\n"
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


class Run:
    """A run of STEPS steps in a folder of its own, which is started again until it ends by itself."""

    def __init__(self, folder, scenario, ranks, every, keep):
        folder.mkdir()
        self.folder, self.saved, self.table = folder, folder / "saved", folder / "rows.csv"
        self.words = [str(BIN / "tandem"), "train", str(scenario), "--quiet", "--nproc", str(ranks), "--csv", str(self.table)]
        for setting in (f"checkpoint.directory={self.saved}", f"checkpoint.every={every}", f"checkpoint.keep={keep}"):
            self.words += ["--set", setting]
        for output in OUTPUTS:
            (folder / output).write_text(OLD)
            self.words += [f"--{output}", str(folder / output)]

    def complete(self):
        """The complete checkpoints' steps."""
        return sorted(int(path.parent.name[5:]) for path in self.saved.glob("step-*[0-9]/manifest.json"))

    def start(self):
        resume = ["--resume", str(self.saved)] if self.complete() else []
        return subprocess.Popen(self.words + resume, stderr=subprocess.PIPE, text=True)

    def tensors(self):
        """All bytes of the last checkpoint's files: every parameter and every optimizer state."""
        return {path.name: path.read_bytes() for path in (self.saved / f"step-{STEPS:08}").glob("*.safetensors")}

    def rows(self):
        """Of each whole line what is no time."""
        if not self.table.exists():
            return []
        with open(self.table, newline="", encoding="utf-8") as file:
            return [(row["step"], row["loss"], row["validation_loss"]) for row in csv.DictReader(file) if row["loss_scale"] is not None]


def ends_well(run, process):
    _, errors = process.communicate(timeout=120)
    check("ends", process.returncode == 0, f"{process.returncode}: {errors}")
    return process.returncode == 0


def others_of(process):
    """The processes that a run has started: other ranks."""
    try:
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(child) for child in children.split()]


def kill_one(process, ranks, seeded):
    """Kills the run, or one of its other ranks: then the run must say so and end."""
    others = others_of(process) if ranks > 1 and seeded.random() < 0.5 else []
    if not others:
        process.kill()
        process.communicate()
        check("killed", process.returncode in (-signal.SIGKILL, 0), process.returncode)
        return
    for other in others:
        os.kill(other, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    check("a killed rank", process.returncode in (0, 4), f"{process.returncode}: {errors}")
    check("a killed rank", process.returncode == 0 or "rank" in errors, errors)


def interrupt_one(process, _ranks, _seeded):
    process.send_signal(signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=MOST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        _, errors = process.communicate()
        check("interrupted", False, f"not ended in {MOST_S} s: {errors}")
        return
    # By the signal itself where the program had not begun.
    check("interrupted", process.returncode in (130, 0, -signal.SIGINT), f"{process.returncode}: {errors}")


def check_what_is_left(run, before, straight_rows, whole_outputs):
    after = run.complete()
    check("kept", not before or after and after[-1] >= before[-1], f"{before} before the kill, {after} after it")
    if after:
        rows = run.rows()[:after[-1]]
        check("rows", rows == straight_rows[:after[-1]], f"after a kill, {len(rows)} rows for the checkpoint {after[-1]}")
    for output in OUTPUTS if whole_outputs else ():
        text = (run.folder / output).read_text(encoding="utf-8")
        check("outputs", text == OLD or after and after[-1] == STEPS and len(text) > len(OLD), f"part of {output} is there")


def moment(run, process, before, seeded):
    """Waits until a random moment of the run: of its start, or from its first new file on."""
    if seeded.random() < 0.2:
        return time.sleep(seeded.uniform(0, 0.5))
    names = set(run.saved.iterdir()) if run.saved.exists() else set()
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        if run.saved.exists() and (set(run.saved.iterdir()) != names or run.complete() != before):
            break
        time.sleep(0.002)
    time.sleep(seeded.uniform(0, 0.15))
    return None


def end_until_it_ends(run, straight, ranks, seeded, most, end_one):
    """Ends a run early up to `most` times, then lets it end. Returns how often it was."""
    kills = 0
    while kills < most:
        before = run.complete()
        process = run.start()
        moment(run, process, before, seeded)
        if process.poll() is not None:
            if not ends_well(run, process):
                return kills
            break
        end_one(process, ranks, seeded)
        kills += 1
        # An interrupted run writes its outputs, of the steps that it made.
        check_what_is_left(run, before, straight.rows(), whole_outputs=end_one is kill_one)
    if STEPS not in run.complete() or (run.folder / "json").read_text(encoding="utf-8") == OLD:
        process = run.start()
        _, errors = process.communicate(timeout=120)
        check("the rest", process.returncode == 0, f"{process.returncode}: {errors}")
    return kills


def same_end(run, straight):
    check("tensors", run.tensors() == straight.tensors() and len(run.tensors()) == 4, f"{run.folder.name}: other tensors than the unbroken run's")
    check("table", run.rows() == straight.rows() and len(run.rows()) == STEPS, f"{run.folder.name}: {len(run.rows())} rows")
    result = (run.folder / "json").read_text(encoding="utf-8")
    check("result", result == OLD or json.loads(result)["mode"] == "measured", "no whole result")
    left = [path.name for path in run.folder.glob("*.partial-*")] if result != OLD else []
    check("swept", not left, left)


def ended_runs(folder, scenario, ranks, kills, end_one):
    word = "kills" if end_one is kill_one else "interrupts"
    straight = Run(folder / f"straight-{word}-{ranks}", scenario, ranks, every=7, keep=2)
    if not ends_well(straight, straight.start()):
        return
    seeded = random.Random(ranks)
    done = rounds = 0
    while done < kills and not failures:
        run = Run(folder / f"{word}-{ranks}-{rounds}", scenario, ranks, every=seeded.randint(1, 3), keep=seeded.randint(1, 2))
        done += end_until_it_ends(run, straight, ranks, seeded, kills - done, end_one)
        same_end(run, straight)
        rounds += 1
    print(f"{ranks} rank{'s' if ranks > 1 else ''}: {done} {word} in {rounds} runs, each with the unbroken run's tensors and table")


def main():
    if not (BIN / "tandem-train").exists():
        return 77
    kills = int(os.environ.get("TANDEM_KILLS", FEW_KILLS))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenario = folder / "small.yaml"
        scenario.write_text(SCENARIO, encoding="utf-8")
        interrupts = int(os.environ.get("TANDEM_INTERRUPTS", FEW_INTERRUPTS))
        for count, end_one in ((kills, kill_one), (interrupts, interrupt_one)):
            ended_runs(folder, scenario, 1, count - count // 3, end_one)
            ended_runs(folder, scenario, 2, count // 3, end_one)
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
