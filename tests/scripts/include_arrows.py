#!/usr/bin/env python3
"""Arrows between folders go one way: reads every #include of the sources and fails on a cycle between folders.

Looked at twice: folder by folder, and by rooms (core/scheduler, core/policies with all below it, runtime, ...), as a
cycle may close through two folders of one room. A canary plants a cycle in a copy of the arrows and expects to see it.
"""
import os
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOMS = ("core", "analysis", "report", "cli", "sim", "runtime", "calibration", "apps")
INCLUDE = re.compile(r'^\s*#\s*include\s+"((?:' + "|".join(ROOMS) + r')/[^"]+)"', re.MULTILINE)


def room_of(folder):
    parts = folder.split("/")
    return "/".join(parts[:2]) if parts[0] == "core" else parts[0]


def arrows(source, name_of):
    """{folder: {folder it includes: "file includes file"}}, no folder itself."""
    found = defaultdict(dict)
    for room in ROOMS:
        for path in sorted((source / room).rglob("*")):
            if path.suffix not in (".hpp", ".cpp", ".cu", ".cuh"):
                continue
            file = str(path.relative_to(source))
            for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
                here, there = name_of(os.path.dirname(file)), name_of(os.path.dirname(included))
                if here != there:
                    found[here].setdefault(there, f"{file} includes {included}")
    return found


def cycle_in(found):
    """Folders of one cycle in order, or none (depth first; grey folders are on the path)."""
    done, path = set(), []

    def visit(folder):
        if folder in path:
            return path[path.index(folder):]
        if folder in done:
            return None
        path.append(folder)
        for there in sorted(found.get(folder, ())):
            if cycle := visit(there):
                return cycle
        path.pop()
        done.add(folder)
        return None

    for folder in sorted(found):
        if cycle := visit(folder):
            return cycle
    return None


def main():
    source = Path(os.environ.get("TANDEM_SOURCE", Path(__file__).resolve().parents[2]))
    failures = []
    for name_of in (lambda folder: folder, room_of):
        found = arrows(source, name_of)
        if len(found) < len(ROOMS):
            failures.append(f"only {len(found)} folders include others: the sources were not read")
        if cycle := cycle_in(found):
            steps = [found[a][b] for a, b in zip(cycle, cycle[1:] + cycle[:1])]
            failures.append("folders include each other:\n  " + "\n  ".join(steps))
        # core/base is below all rooms, so that one include upwards closes a cycle.
        found["core/base"]["core/scheduler"] = "planted"
        if not cycle_in(found):
            failures.append("the canary: a planted cycle was not seen")
    for failure in failures:
        print(f"include_arrows: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
