#!/usr/bin/env python3
"""What the last ctest of a build folder ran, test by test: ctest runs a suite at a time, and prints one line for it.

    test_report.py BUILD           every test with its time, what failed or was skipped, and the ten slowest
    test_report.py BUILD --all     and fails if a test of the build did not run, other than those kept for the night
    test_report.py BUILD --names   the names of all tests of the build, whether they ran or not, and nothing else
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

SLOWEST = 10
# `3/88 Test: core.ProfileCurve`, its output, and then how long it took and how it ended.
HEAD = re.compile(r"^\d+/\d+ Test: (\S+)$")
TIME = re.compile(r"^Test time = +([\d.]+) sec$")
VERDICT = re.compile(r"^Test (Passed|Failed|Timeout|Skipped|Not Run).*\.$")
# tests/common/test_main.cpp, or GoogleTest through it.
LINE = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] ([^ ,:]+)(?:, where .*?)?(?: \((\d+) ms\)|: .*)$")
WORDS = {"OK": "passed", "Passed": "passed", "FAILED": "FAILED", "SKIPPED": "skipped", "Skipped": "skipped"}


def results(log):
    """(name, verdict, seconds) of every test and script, in the order in which they ended."""
    rows, name, inner, seconds = [], "", [], 0.0
    for line in log.splitlines():
        if head := HEAD.match(line):
            name, inner, seconds = head[1], [], 0.0
        elif one := LINE.match(line):
            inner.append((f"{name.split('.')[0]}.{one[2]}", WORDS[one[1]], int(one[3] or 0) / 1000))
        elif time := TIME.match(line):
            seconds = float(time[1])
        elif name and (verdict := VERDICT.match(line)):
            outer = WORDS.get(verdict[1], "FAILED")
            # A suite's own line only where it says what no line of a test does.
            if not inner or (outer == "FAILED" and not any(row[1] == "FAILED" for row in inner)):
                inner.append((name, outer, seconds))
            rows += inner
            name = ""
    return rows


def listed(program):
    """AREA.SUITE.TEST of a test program's tests that are not disabled."""
    area = program.name.removeprefix("test_")
    names, suite = [], ""
    done = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        word = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = word
        elif "DISABLED_" not in suite + word:
            names.append(f"{area}.{suite}{word}")
    return names


def all_names(build):
    names = [name for program in sorted(build.glob("bin/test_*")) for name in listed(program)]
    # `ctest -N` would list them, and empty the log.
    tests = build / "tests" / "CTestTestfile.cmake"
    return names + re.findall(r"^add_test\(\W*(scripts\.[\w.]+)", tests.read_text() if tests.exists() else "", re.MULTILINE)


def at_night(build):
    """True of a name whose suite the build keeps for the night (tests/CMakeLists.txt)."""
    words = {match for file in build.glob("tests/*_suites.cmake")
             for match in re.findall(r'^set\(NIGHTLY_SUITES "(.+)"\)$', file.read_text(), re.MULTILINE)}
    # AREA.SUITE.TEST, AREA.INSTANCE/SUITE.TEST/NUMBER or AREA.SUITE/NUMBER.TEST, as cmake/suites.cmake reads them.
    suite = re.compile(r"^\w+\.(?:\w+/)?([A-Za-z]\w*)(?:/\d+)?\.")
    return lambda name: any(re.search(word, found[1]) for word in words if (found := suite.match(name)))


def report(rows):
    width = max((len(f"{row[2]:.3f}") for row in rows), default=0)
    for name, verdict, seconds in rows:
        print(f"{verdict} {seconds:{width}.3f} s  {name}")
    print(f"\nThe {SLOWEST} slowest of {len(rows)} tests:")
    for name, _, seconds in sorted(rows, key=lambda row: -row[2])[:SLOWEST]:
        print(f"{seconds:8.1f} s  {name}")
    for what in ("skipped", "FAILED"):
        names = [row[0] for row in rows if row[1] == what]
        print(f"{len(names)} {what}{': ' if names else ''}{', '.join(names)}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", type=Path)
    p.add_argument("--all", action="store_true")
    p.add_argument("--names", action="store_true")
    arguments = p.parse_args()
    if arguments.names:
        print("\n".join(all_names(arguments.build)))
        return
    log = arguments.build / "Testing" / "Temporary" / "LastTest.log"
    rows = results(log.read_text(encoding="utf-8", errors="replace"))
    report(rows)
    if arguments.all:
        late = at_night(arguments.build)
        lost = sorted(name for name in set(all_names(arguments.build)) - {row[0] for row in rows} if not late(name))
        if lost:
            sys.exit(f"{len(lost)} tests did not run: {', '.join(lost)}")


if __name__ == "__main__":
    main()
