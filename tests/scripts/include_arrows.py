#!/usr/bin/env python3
"""Arrows between folders go one way: reads every #include of the sources and fails on a cycle between folders, and on
an include of what stands below in the table of rooms of docs/architecture.md.

Cycles are looked for twice: folder by folder, and by rooms (core/scheduler, core/policies with all below it, runtime,
...), as a cycle may close through two folders of one room. Canaries plant a cycle, and an arrow that goes down the
table, in a copy of the arrows and expect to see them.
"""
import os
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOMS = ("core", "analysis", "report", "cli", "sweep", "adapt", "sim", "plan", "runtime", "calibration",
         "bindings", "apps")
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


def table_of_rooms(source):
    """{folder: row}, from rows like "| `sim`, `runtime` | ... |"."""
    rows = {}
    for line in (source / "docs/architecture.md").read_text(encoding="utf-8").splitlines():
        folders = re.findall(r"`([a-z_/]+)`", line.split("|")[1]) if line.startswith("| `") else []
        if all(folder.split("/")[0] in ROOMS for folder in folders):
            rows.update((folder, len(rows)) for folder in folders if folder not in rows)
    return rows


def downward(found, rows):
    """Includes of what stands below, by the row of the longest folder that holds a file."""
    def row(folder):
        while folder not in rows and "/" in folder:
            folder = folder.rsplit("/", 1)[0]
        return rows.get(folder, 0)

    return [found[a][b] for a in sorted(found) for b in sorted(found[a]) if a.startswith("core/") and row(a) < row(b)]


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
    rows, found = table_of_rooms(source), arrows(source, lambda folder: folder)
    if len(rows) < len(ROOMS):
        failures.append(f"the table of rooms has only {len(rows)} folders")
    rooms = sorted({room_of(folder) for folder in found})
    failures += [f"{room} has no row in the table of rooms" for room in rooms if room not in rows]
    failures += [f"stands below: {arrow}" for arrow in downward(found, rows)]
    found["core/step"]["core/policies/common"] = "planted"
    if "planted" not in downward(found, rows):
        failures.append("the canary: a planted arrow down the table was not seen")
    for failure in failures:
        print(f"include_arrows: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
