#!/usr/bin/env python3
"""What the commands write: all of it or an error, one file for one flag, and tables that a kill does not shorten."""
import csv
import json
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
limits: {device_bytes: 4MiB, host_bytes: 64MiB, cores: 2}
workload: {family: mlp, layers: 3, hidden: 64, inputs: 64, classes: 10, batch: 16, precision: fp32}
policy: {name: on_demand}
steps: 3
"""
KILLS = 6
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def command(*arguments):
    return [str(word) for word in (TANDEM, *arguments)]


def run(*arguments, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 120, **options}
    return subprocess.run(command(*arguments), check=False, **options)


def expect(name, result, code, *texts):
    check(name, result.returncode == code, f"exit code {result.returncode}, not {code}: {result.stderr}")
    for text in texts:
        check(name, text in result.stderr, f"no {text!r} in {result.stderr!r}")


def standard_output(folder, scenario):
    words = [("--help",), ("--version",), ("list", "policies"), ("list", "machines"), ("check", scenario), ("simulate", "--help"),
             ("simulate", scenario), ("simulate", scenario, "--json", "-"),
             ("compare-policies", scenario, "--policies", "on_demand"), ("explain", scenario, "--policies", "on_demand")]
    for word in words:
        with open("/dev/full", "w") as full:
            expect(f"{word} on a full disk", run(*word, stdout=full), 4, "cannot write to standard output")
        closed = subprocess.run(["bash", "-c", '"$@" >&-', "-", *command(*word)], stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        expect(f"{word} with a closed output", closed, 4, "cannot write to standard output")
    # No file gets the number of a closed descriptor, and what needs none of them does not miss them.
    figures = folder / "figures.json"
    for closing in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        result = subprocess.run(["bash", "-c", f'"$@" {closing}', "-", *command("simulate", scenario, "--quiet", "--json", figures)],
                                timeout=60, check=False)
        check(f"{closing}", result.returncode == 0 and json.loads(figures.read_text())["steps"] == 3, result)
        result = subprocess.run(["bash", "-c", f'"$@" {closing}', "-", *command("simulate", scenario, "--set", "steps=0", "--json", figures)],
                                timeout=60, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        check(f"{closing}, bad input", result.returncode == 2 and json.loads(figures.read_text())["steps"] == 3, result)


def one_fails(folder, scenario):
    """A full device for each output in turn: the others are there, and two that fail are both told."""
    flags = ("--json", "--trace", "--report", "--log")
    for broken in [(flag,) for flag in flags] + [("--json", "--log")]:
        paths = {flag: "/dev/full" if flag in broken else folder / f"all{flag}" for flag in flags}
        result = run("simulate", scenario, *[word for pair in paths.items() for word in pair])
        expect(f"full {broken}", result, 4)
        check(f"full {broken}", result.stderr.count("cannot write /dev/full: No space left on device") == len(broken), result.stderr)
        check(f"full {broken}", "step time" in result.stdout, result.stdout)
        for flag in set(flags) - set(broken):
            check(f"full {broken}", paths[flag].stat().st_size > 100, f"no {flag}")
            paths[flag].unlink()


def same_files(folder, scenario):
    profile, target = folder / "machine.yaml", folder / "target"
    profile.write_text("derive_from: round_numbers\n")
    target.write_text("x")
    (folder / "link").symlink_to(target)
    (folder / "dangling").symlink_to(folder / "not-there")
    os.link(target, folder / "hard")
    (folder / "sub").mkdir()
    before = {path: path.read_text() for path in (scenario, profile, target)}
    os.symlink(scenario, folder / "scenario-link")
    for name, words in {
            "two flags": ("--json", target, "--trace", target),
            "by another spelling": ("--json", target, "--log", folder / "sub" / ".." / "target"),
            "by a link": ("--report", target, "--log", folder / "link"),
            "by a hard link": ("--report", target, "--log", folder / "hard"),
            "a new file twice": ("--json", folder / "new", "--trace", folder / "." / "new"),
            "a new file by a link": ("--json", folder / "not-there", "--trace", folder / "dangling"),
            "the scenario": ("--log", scenario),
            "the scenario by a link": ("--json", folder / "scenario-link"),
            "the profile": ("--set", f"machine={profile}", "--json", profile)}.items():
        expect(name, run("simulate", scenario, *words), 2, "name another")
        check(name, not (folder / "new").exists() and not (folder / "not-there").exists(), "a file was made")
    for path, text in before.items():
        check("what was refused", path.read_text() == text, f"{path} has changed")
    expect("a table and a result", run("compare-policies", scenario, "--csv", target, "--json", target), 2, "name another")
    expect("a result over measurements", run("validate", "--measured", target, "--csv", target), 2, "which is read")
    expect("a log over the one that is compared", run("compare", "--measured", f"{target}.measured", "--log", target), 2)
    expect("a device twice", run("simulate", scenario, "--quiet", "--json", "/dev/null", "--log", "/dev/null"), 0)
    for name, words in {"simulate": ("simulate", scenario, "--trace"), "compare-policies": ("compare-policies", scenario, "--csv"),
                        "validate": ("validate", scenario, "--csv"), "compare": ("compare", scenario, "--log")}.items():
        expect(f"{name} into no folder", run(*words, folder / "none" / "x"), 2, "create the folder first")
    expect("a folder", run("compare-policies", scenario, "--csv", folder), 2, "is a folder")


def text_that_is_read(folder, scenario):
    text = folder / "text.txt"
    text.write_text("to be or not to be\n" * 400)
    gpt = ("--set", "workload={family: gpt, layers: 1, hidden: 32, heads: 2, vocabulary: 256, sequence: 16, batch: 2}", "--set", "data.text=text.txt")
    expect("the data", run("train", scenario, *gpt, "--json", text), 2, "data.text, which is read")
    others = {name: folder / name for name in ("tokens.bin", "tokenizer.json", "model.safetensors", "parts/model.safetensors")}
    (folder / "parts").mkdir()
    for file in others.values():
        file.write_text("kept")
    for key, name, says in (("data", "tokens.bin", "data.tokens"), ("data", "tokenizer.json", "data.tokenizer"),
                            ("weights", "model.safetensors", "a file of weights"), ("weights", "parts/model.safetensors", "a file of weights")):
        value = f"{{{name.split('.')[0]}: {name}}}" if key == "data" else name.replace("/model.safetensors", "")
        expect(name, run("train", scenario, *gpt[:2], "--set", f"{key}={value}", "--json", others[name]), 2, says, "which is read")
        check(name, others[name].read_text() == "kept", "has changed")
    expect("the table over the result", run("train", scenario, "--csv", folder / "t", "--json", folder / "t"), 2, "name another")
    expect("the table over the scenario", run("train", scenario, "--csv", scenario), 2, "which is read")
    check("the data", text.read_text().startswith("to be"), "has changed")


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def tables(folder, scenario):
    """Killed over and over, also while it goes on from a checkpoint: the rows up to the latest checkpoint are there."""
    table, saved = folder / "rows.csv", folder / "saved"
    settings = [word for change in (f"checkpoint.directory={saved}", "checkpoint.every=1", "steps=1000000",
                                    "validation={every: 3, batches: 1}") for word in ("--set", change)]
    for kill in range(KILLS):
        complete = sorted(saved.glob("step-*[0-9]/manifest.json"))
        resume = ("--resume", saved) if complete else ()
        process = subprocess.Popen(command("train", scenario, *settings, *resume, "--quiet", "--csv", table), stderr=subprocess.PIPE, text=True)
        if kill % 2 == 0:
            wait_for(lambda: sorted(saved.glob("step-*[0-9]/manifest.json"))[-1:] != complete[-1:] or process.poll() is not None)
            time.sleep(0.02 * kill)
        else:
            time.sleep(0.1 * kill)  # before it begins, or as it does
        if kill == 0:
            second = run("train", scenario, "--csv", table, timeout=30)
            expect("a second run on one table", second, 2, "another run writes it")
        process.kill()
        _, errors = process.communicate()
        check("killed", process.returncode == -signal.SIGKILL, f"{process.returncode}: {errors}")
        latest = max(int(path.parent.name[5:]) for path in saved.glob("step-*[0-9]/manifest.json"))
        steps = [int(row["step"]) for row in rows_of(table) if row["loss_scale"] is not None]
        check("rows after a kill", steps[:latest] == list(range(1, latest + 1)), f"{len(steps)} rows, and the checkpoint is of {latest}")
        losses = [row["validation_loss"] for row in rows_of(table)[:latest]]
        check("validation after a kill", all((loss != "") == (step % 3 == 0) for step, loss in enumerate(losses, 1)), losses)
    latest = max(int(path.parent.name[5:]) for path in saved.glob("step-*[0-9]/manifest.json"))
    os.chmod(table, 0o640)
    expect("the rest", run("train", scenario, *settings, "--set", f"steps={latest + 2}", "--resume", saved, "--quiet", "--csv", table), 0)
    check("all rows", [int(row["step"]) for row in rows_of(table)] == list(range(1, latest + 3)), len(rows_of(table)))
    check("the table's mode", table.stat().st_mode & 0o777 == 0o640, oct(table.stat().st_mode))
    check("no temporary file", not list(folder.glob("*partial*")), list(folder.glob("*partial*")))


def bad_checkpoints(folder, scenario):
    (folder / "file").write_text("x")
    (folder / "loop").symlink_to(folder / "loop")
    for path in (folder / "nowhere", folder / "file", folder / "file" / "x", folder / "loop", folder / ("n" * 300)):
        expect(f"--resume {path.name[:9]}", run("train", scenario, "--resume", path), 2, "--resume: ")
        if path.name != "nowhere":
            expect(f"checkpoint.directory {path.name[:9]}", run("train", scenario, "--set", f"checkpoint.directory={path}"), 2,
                   "checkpoint.directory: ")


def hints(folder, scenario):
    odd = folder / "two words; $(touch x)'s"
    odd.mkdir()
    named = odd / "it's a net.yaml"
    named.write_text(SCENARIO)
    saved = odd / "saved"
    process = subprocess.Popen(command("train", named, "--quiet", "--set", f"checkpoint.directory={saved}", "--set", "steps=1000000"),
                               stderr=subprocess.PIPE, text=True)
    wait_for(lambda: saved.exists())
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    check("hint", process.returncode == 130, f"{process.returncode}: {errors}")
    hint = next((line.strip() for line in errors.splitlines() if line.strip().startswith("tandem train")), "")
    words = subprocess.run(["bash", "-c", f'printf "%s\\n" {hint}'], capture_output=True, text=True, check=False).stdout.splitlines()
    settings = [f"--set=checkpoint.directory={saved}", "--set=steps=1000000"]
    check("hint", words == ["tandem", "train", str(named), *settings, "--resume", str(saved)], (hint, words))


def no_scratch(folder, scenario):
    """A disk that nothing is put on costs no file: none could be made under this limit."""
    scratch = folder / "scratch"
    scratch.mkdir()
    result = run("train", scenario, "--quiet", "--json", "-", preexec_fn=lambda: __import__("resource").setrlimit(
        __import__("resource").RLIMIT_FSIZE, (1 << 20, 1 << 20)), env={**os.environ, "TANDEM_SCRATCH": str(scratch)})
    expect("no scratch file", result, 0)
    expect("no scratch folder", run("train", scenario, env={**os.environ, "TANDEM_SCRATCH": str(folder / "none")}), 4, "TANDEM_SCRATCH")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenario = folder / "small.yaml"
        scenario.write_text(SCENARIO)
        if (BIN / "tandem-simulate").exists():
            standard_output(folder, scenario)
            one_fails(folder, scenario)
            same_files(folder, scenario)
        if (BIN / "tandem-train").exists():
            text_that_is_read(folder, scenario)
            tables(folder, scenario)
            bad_checkpoints(folder, scenario)
            hints(folder, scenario)
            no_scratch(folder, scenario)
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
