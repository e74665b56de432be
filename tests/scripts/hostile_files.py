#!/usr/bin/env python3
"""Hostile files through the real commands: logs, files of measurements, scenarios, checkpoints. Each is refused with
exit code 2 and one line that names it, in seconds and bounded memory, and nothing is written beside it."""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
SECONDS = 10
# The sanitizers reserve terabytes of addresses.
MEMORY = None if os.environ.get("TANDEM_SANITIZED") else 4 << 30
failures = []
tried = 0


def limits():
    if MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run(*arguments, stdin=None, pass_fds=()):
    try:
        return subprocess.run([BIN / "tandem", *map(str, arguments)], capture_output=True, timeout=SECONDS, stdin=stdin,
                              preexec_fn=limits, pass_fds=pass_fds, env={**os.environ, "OMP_NUM_THREADS": "1"})
    except subprocess.TimeoutExpired as hung:
        return subprocess.CompletedProcess(hung.args, "no end", b"", hung.stderr or b"")


def refused(name, path, *arguments, says=""):
    """The command ends with 2 and says which file, where and what is allowed."""
    global tried
    tried += 1
    result = run(*arguments)
    told = result.stderr.decode(errors="replace")
    if result.returncode != 2 or str(path) not in told or says not in told:
        failures.append(f"{name}: exit {result.returncode}, want 2 and {says!r}: {told[:300].strip()}")


def changed(lines, at, line):
    return [*lines[:at], line, *lines[at + 1:]]


def number_at(line, word, value):
    words = line.split(b" ")
    words[word] = value
    return b" ".join(words)


def log_cases():
    lines = (SOURCE / "tests/replay/zero_offload.log").read_bytes().split(b"\n")[:-1]
    first = {kind: next(i for i, line in enumerate(lines) if line.startswith(kind + b" 0 ") and i > 40)
             for kind in (b"e", b"r", b"c", b"f")}
    batch = next(i for i, line in enumerate(lines) if line == b"b 0")
    event, run_line, copy, release = (first[kind] for kind in (b"e", b"r", b"c", b"f"))
    events = [i for i, line in enumerate(lines) if line.startswith(b"e ")]
    yield "an empty log", [], "1:1"
    yield "no log", [b"hello"], ":1:1: log: expected 'tandem-log 2'"
    yield "binary", [bytes(range(256)) * 20], ":1:1"
    yield "a mode that is none", changed(lines, 1, b"mode guessed"), ":2:1: log: mode"
    yield "many ranks", changed(lines, 4, b"rank 0 2147483647"), "ranks"
    yield "a rank beyond the ranks", changed(lines, 4, b"rank 5 1"), ":5:1: log: rank 5 of 1"
    yield "a long scenario", changed(lines, 5, b"scenario 67108864"), "cut short"
    yield "a negative scenario", changed(lines, 5, b"scenario -1"), "allowed: 0 to"
    yield "a scenario that is none", [*lines[:5], b"scenario 4", b"a: 1", b"profile 0", b""], "its scenario"
    for value in (b"2147483647", b"1", b"-1", b"99999999999999999999"):
        yield f"an event of rank {value}", changed(lines, event, number_at(lines[event], 1, value)), "allowed:"
        yield f"a command of rank {value}", changed(lines, run_line, number_at(lines[run_line], 1, value)), "allowed:"
    for value in (b"-1", b"9223372036854775807", b"5000"):
        yield f"an event of command {value}", changed(lines, event, number_at(lines[event], 2, value)), "allowed:"
        yield f"a command {value}", changed(lines, run_line, number_at(lines[run_line], 2, value)), "allowed:"
        yield f"a part at {value}", changed(lines, copy, number_at(lines[copy], 5, value)), ""
        yield f"a place at {value}", changed(lines, release, number_at(lines[release], 8, value)), ""
    yield "an outcome that is none", changed(lines, event, number_at(lines[event], 3, b"3")), "allowed: 0 to 2"
    yield "a failure", changed(lines, event, number_at(lines[event], 3, b"1")), ""
    yield "a lane that is none", changed(lines, run_line, number_at(lines[run_line], 3, b"52")), "allowed: 0 to 51"
    yield "an event twice", [*lines[:event], lines[event], *lines[event:]], "has had one"
    yield "an event less", [*lines[:event], *lines[event + 1:]], "allowed:"
    yield "a command less", [*lines[:run_line], *lines[run_line + 1:]], "allowed:"
    yield "events the other way round", [*lines[:events[3]], *lines[events[3]:events[9]][::-1], *lines[events[9]:]], ""
    yield "an end before the beginning", changed(lines, event, number_at(lines[event], 6, b"1")), "before it begins"
    yield "a time without end", changed(lines, event, number_at(lines[event], 6, b"9223372036854775807")), "the time"
    yield "time that goes back", changed(lines, events[-1] - 1, b"b 1"), ""
    yield "events at once", [*lines[:batch + 1], b"e 0 0 0 0 1 2", *lines[batch + 1:]], "before any command"
    yield "commands before a batch", [*lines[:batch], b"f 0 0 0 0 0 0 0 0 0", *lines[batch:]], "expected a batch first"
    yield "more after the end", [*lines, b"b 99999999999"], "the run ends"
    yield "a line of a gigabyte's count", changed(lines, run_line, lines[run_line] + b" 1048577"), "allowed:"
    yield "an empty line", [*lines[:event], b"", *lines[event:]], "empty line"
    yield "an unknown record", [*lines[:event], b"x 1", *lines[event:]], "unknown record"


def logs(folder):
    path = folder / "hostile.log"
    for name, lines, says in log_cases():
        path.write_bytes(b"\n".join(lines) + b"\n" if lines else b"")
        refused(f"log: {name}", path, "replay", path, says=says)
    endless = folder / "endless.log"
    with open(endless, "wb") as file:
        file.truncate(1 << 40)  # zeros without a line end
    refused("log: a terabyte without a line end", endless, "replay", endless)


def measurement(**changes):
    result = {"step_time_s": {"all": [1.0, 1.1], "median": 1.0, "p10": 1.0, "p90": 1.1}, "peak_bytes": {"device0": 1},
              "busy_share": {"device0/compute": 0.5}, "compute_s": 0.5, "exposed_s": {"h2d": 0.1}}
    line = {"schema": 1, "scenario": "x", "text": "machine: round_numbers\n", "set": [], "machine": {}, "warm_steps": 2,
            "result": result}
    for key, value in changes.items():
        if key in result:
            line["result"] = {**result, key: value}
        else:
            line[key] = value
    return json.dumps(line)


def measurement_cases():
    for name in ("../../x", "/tmp/x", "..", "", "a/b", "x" * 5000, "a\nb", "\x1b[2J", "x\0y"):
        yield f"the name {name[:10]!r}", measurement(scenario=name), "scenario: "
    for key, value in (("text", 5), ("set", "steps=1"), ("set", [1]), ("machine", []), ("machine", {"cpu_optimizer": "x"}),
                       ("machine", {"cpu_optimizer": [0]}), ("warm_steps", -1), ("warm_steps", 1e30), ("exit_code", 1e9),
                       ("exit_code", "2"), ("error", {}), ("result", []), ("compute_s", "1"), ("peak_bytes", [1]),
                       ("busy_share", {"x": None}), ("step_time_s", {"all": 1}), ("step_time_s", {"all": [0]})):
        yield f"{key} = {value}", measurement(**{key: value}), ":1:1: "
    yield "nothing but brackets", "[" * 200_000 + "]" * 200_000, "nested deeper than"
    yield "nested", measurement(machine=1).replace(': 1,', ": " + '{"a":' * 100_000 + "1" + "}" * 100_000 + ",", 1), "nested"
    yield "many keys", "{" + ",".join(f'"{i}":1' for i in range(50_000)) + "}", "keys"
    yield "no JSON", "hello", "is no JSON"
    yield "a number that is too large", measurement().replace("0.5", "1e999", 1), "too large"
    yield "bytes", "\udcff\udcfe", "is no JSON"


def measurements(folder):
    path = folder / "deep" / "down" / "measured.jsonl"
    path.parent.mkdir(parents=True)
    before = {p for p in folder.rglob("*")} | {path}
    for name, line, says in measurement_cases():
        path.write_text(line + "\n", errors="surrogateescape")
        refused(f"measurements: {name}", path, "validate", "--measured", path, says=says)
    written = {p for p in folder.rglob("*")} - before
    if written or pathlib.Path("/tmp/x.yaml").exists():
        failures.append(f"measurements: files were written: {written}")


def no_files(folder):
    pipe = folder / "pipe.yaml"
    os.mkfifo(pipe)
    for path in (pipe, folder, "/dev/zero", "/dev/random", "/dev/tty"):
        for command in (("replay",), ("check",), ("simulate",), ("compare", "--measured"), ("validate", "--measured")):
            refused(f"{command} {path}", path, *command, path)
        refused(f"machine={path}", "machine", "simulate", SOURCE / "scenarios/demo.yaml", "--set", f"machine={path}")


def pipes():
    """What a shell hands over is read, once."""
    text = (SOURCE / "scenarios/demo.yaml").read_bytes()
    reader, writer = os.pipe()
    os.write(writer, text)
    os.close(writer)
    result = run("check", f"/dev/fd/{reader}", pass_fds=(reader,))
    os.close(reader)
    if result.returncode != 0 or b"a valid scenario" not in result.stdout:
        failures.append(f"check of a pipe: exit {result.returncode}: {result.stderr[:300]}")
    with open("/dev/zero", "rb") as zero:
        endless = subprocess.Popen(["cat"], stdin=zero, stdout=subprocess.PIPE)
        result = run("check", "/dev/stdin", stdin=endless.stdout)
        endless.stdout.close()
        endless.wait()
    if result.returncode != 2:
        failures.append(f"check of a pipe without end: exit {result.returncode}: {result.stderr[:300]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        logs(folder)
        (folder / "m").mkdir()
        measurements(folder / "m")
        no_files(folder)
        pipes()
    for failure in failures:
        print(failure)
    print(f"{tried} hostile files, {len(failures)} failures")
    return 1 if failures or tried < 60 else 0


sys.exit(main())
