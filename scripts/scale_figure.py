#!/usr/bin/env python3
"""Draws docs/scaling.svg: a step's time against devices, and what simulating that many takes, from docs/evidence/scaling.csv.

    scripts/scale_figure.py --simulate     simulates all of it anew, in minutes, and writes the table first
    scripts/scale_figure.py                draws the table
    scripts/scale_figure.py --check        ends with 1 where the picture is of another table, or a simulated row differs
"""
import argparse
import csv
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("TANDEM_BUILD", ROOT / "build"))
SCENARIO = ROOT / "scenarios" / "scaling_13b.yaml"
TABLE, PICTURE = ROOT / "docs" / "evidence" / "scaling.csv", ROOT / "docs" / "scaling.svg"
COLUMNS = ("line", "devices", "step_s", "wall_s", "memory_mib")
SAMPLES = 4096
DEVICES = [2 ** power for power in range(3, 13)]
CHECKED = ("copies divide parameters", 512)


def copies(devices):
    batch = min(8, SAMPLES // devices)
    return {"data": devices}, {"batch": batch, "micro_batches": SAMPLES // devices // batch}


def tensor(devices):
    return {"tensor": 8, "data": devices // 8}, {"batch": 8, "micro_batches": SAMPLES // devices, "partition": "optimizer"}


def pipeline(devices):
    return {"tensor": 8, "pipeline": 8, "data": devices // 64, "schedule": "1f1b"}, {"batch": 4, "micro_batches": SAMPLES * 16 // devices, "partition": "none"}


def same_work(fold):
    """As many micro-batches on each rank however many ranks there are: what simulating takes."""
    def keys(devices):
        return {"tensor": 8, "data": devices // 8, "fold": fold}, {"batch": 8, "micro_batches": 4, "partition": "optimizer"}
    return keys


# Which devices, keys of `parallel` and of `workload`; of the first three the step is drawn, of the others what simulating took.
STEPS = {"copies divide parameters": (DEVICES, copies), "layers by 8, copies": (DEVICES, tensor),
         "layers by 8, 8 stages, copies": (DEVICES[4:], pipeline)}
COSTS = {"folded": (DEVICES, same_work("true")), "all ranks": (DEVICES[:7], same_work("false"))}


def simulated(line, devices, keys):
    parallel, workload = keys(devices)
    changes = [f"parallel.{key}={value}" for key, value in parallel.items()] + [f"workload.{key}={value}" for key, value in workload.items()]
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        command = [BUILD / "bin" / "tandem-simulate", SCENARIO, "--json", result, "--quiet"] + [word for change in changes for word in ("--set", change)]
        begin = time.monotonic()
        with subprocess.Popen(command) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.monotonic() - begin
        if process.returncode:
            sys.exit(f"{' '.join(map(str, command))}: exit {process.returncode}")
        step_s = json.loads(result.read_text(encoding="utf-8"))["steady_step_s"]
    return dict(zip(COLUMNS, (line, str(devices), f"{step_s:.6g}", f"{wall_s:.2f}", f"{usage.ru_maxrss / 1024:.0f}")))


def simulate_all():
    rows = []
    for line, (devices, keys) in {**STEPS, **COSTS}.items():
        for count in devices:
            rows.append(simulated(line, count, keys))
            print(*rows[-1].values(), sep=", ", flush=True)
    with open(TABLE, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


WIDTH, HEIGHT, TOP, BOTTOM, PANELS = 1000, 420, 60, 58, ((70, 480), (580, 930))
COLOURS = ("#0969da", "#bc4c00", "#1a7f37")
STYLE = """text { font: 13px sans-serif; fill: #24292f } .small { font-size: 12px } .grid { stroke: #d8dee4 } .line { fill: none; stroke-width: 2 }
.ideal { fill: none; stroke: #8c959f; stroke-dasharray: 5 4 } .memory { stroke-dasharray: 2 3 } rect.page { fill: #ffffff }"""


class Panel:
    """Two logarithmic axes: devices, and powers of ten from `low` to `high`."""

    def __init__(self, left, right, low, high):
        self.left, self.right, self.low, self.high = left, right, low, high

    def x(self, devices):
        return self.left + (self.right - self.left) * (math.log2(devices) - 3) / 9

    def y(self, value):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (math.log10(value) - self.low) / (self.high - self.low))

    def axes(self, title, unit):
        out = [f'<text x="{self.left}" y="24">{title}</text>', f'<text class="small" text-anchor="middle" x="{(self.left + self.right) / 2}" y="{HEIGHT - 14}">devices</text>']
        for power in range(self.low, self.high + 1):
            out += [f'<line class="grid" x1="{self.left}" x2="{self.right}" y1="{self.y(10 ** power):.1f}" y2="{self.y(10 ** power):.1f}"/>',
                    f'<text class="small" text-anchor="end" x="{self.left - 6}" y="{self.y(10 ** power) + 4:.1f}">{10.0 ** power:,g} {unit}</text>']
        out += [f'<text class="small" text-anchor="middle" x="{self.x(devices):.1f}" y="{HEIGHT - BOTTOM + 18}">{devices:,}</text>' for devices in DEVICES[::3]]
        return out

    def line(self, points, style):
        return f'<polyline {style} points="{" ".join(f"{self.x(devices):.1f},{self.y(value):.1f}" for devices, value in points)}"/>'

    def legend(self, texts, top=TOP):
        """Texts with their styles, one below the other, at the right end."""
        out = []
        for number, (text, style) in enumerate(texts):
            y = top + 8 + 18 * number
            out += [f'<line {style} x1="{self.right - 226}" x2="{self.right - 198}" y1="{y}" y2="{y}"/>',
                    f'<text class="small" x="{self.right - 190}" y="{y + 4}">{text}</text>']
        return out


def drawn(rows):
    def points(line, column):
        return [(int(row["devices"]), float(row[column])) for row in rows if row["line"] == line]
    styles = [f'class="line" stroke="{colour}"' for colour in COLOURS]
    steps, costs = Panel(*PANELS[0], 0, 3), Panel(*PANELS[1], -1, 4)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">', f"<style>{STYLE}</style>",
           f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>', *steps.axes("Step of a 13B model, 4,096 samples", "s")]
    least = min(devices * seconds for line in STEPS for devices, seconds in points(line, "step_s"))
    out.append(steps.line([(devices, least / devices) for devices in DEVICES], 'class="ideal"'))
    out += [steps.line(points(line, "step_s"), style) for line, style in zip(STEPS, styles)]
    out += steps.legend([*zip(STEPS, styles), ("as many times faster as devices", 'class="ideal"')])
    out += costs.axes("What simulating it takes", "")
    for line, colour in zip(COSTS, COLOURS):
        out.append(costs.line(points(line, "wall_s"), f'class="line" stroke="{colour}"'))
        out.append(costs.line(points(line, "memory_mib"), f'class="line memory" stroke="{colour}"'))
    out += costs.legend([(f"{line}: {what}", f'class="line{style}" stroke="{colour}"') for line, colour in zip(COSTS, COLOURS)
                         for what, style in (("seconds", ""), ("MiB", " memory"))], 242)
    return "\n".join([*out, "</svg>"]) + "\n"


def table():
    with open(TABLE, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def check():
    rows = table()
    if drawn(rows) != PICTURE.read_text(encoding="utf-8"):
        sys.exit(f"{PICTURE} is of another table than {TABLE}")
    line, devices = CHECKED
    there = next(row for row in rows if (row["line"], row["devices"]) == (line, str(devices)))
    here = simulated(line, devices, STEPS[line][1])
    print(here)
    if here["step_s"] != there["step_s"]:
        sys.exit(f"{TABLE} has {there['step_s']} s for {line} on {devices} devices, simulated: {here['step_s']} s")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--simulate", action="store_true", help="simulate all anew and write the table")
    p.add_argument("--check", action="store_true", help="compare the picture with the table, and a row with its simulation")
    arguments = p.parse_args()
    if arguments.check:
        check()
        return
    if arguments.simulate:
        simulate_all()
    PICTURE.write_text(drawn(table()), encoding="utf-8")


if __name__ == "__main__":
    main()
