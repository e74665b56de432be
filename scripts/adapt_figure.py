#!/usr/bin/env python3
"""Draws what a run with --adapt did: the time of each step, and where it decided what.

    tandem train FILE --adapt --json run.json
    scripts/adapt_figure.py run.json --output docs/adapting.svg [--neighbour 40:80]
"""
import argparse
import json
from html import escape
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 380, 64, 20, 92, 48
STYLE = """text { font: 13px sans-serif; fill: #24292f } .axis { stroke: #6e7781 } .grid { stroke: #d8dee4 }
.line { fill: none; stroke: #0969da; stroke-width: 1.6 } .switch { stroke: #bc4c00 } .stay { stroke: #8c959f; stroke-dasharray: 4 3 }
.neighbour { fill: #fff1e5 } .small { font-size: 12px } .forecast { stroke: #1a7f37; stroke-width: 2 } rect.page { fill: #ffffff }"""


def nice(most):
    """A step of the axis: 1, 2 or 5 times a power of ten, of which about five fit."""
    power = 10.0 ** (len(f"{int(most * 1e9)}") - 10)
    return min((s for s in (power / 5, power / 2, power, 2 * power, 5 * power, 10 * power) if most / s <= 6), default=power)


def svg(result, neighbour, title):
    times = [result["head_s"], *result["step_time_s"]["all"]]
    shown = times[1:]  # the first holds the loading
    top = max(shown) * 1.08
    x = lambda step: LEFT + (WIDTH - LEFT - RIGHT) * step / len(times)
    y = lambda seconds: TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(seconds, top) / top)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
           f"<style>{STYLE}</style>", f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
           f'<text x="{LEFT}" y="22">{escape(title)}</text>']
    if neighbour:
        begin, end = (int(word) for word in neighbour.split(":"))
        out += [f'<rect class="neighbour" x="{x(begin):.1f}" y="{TOP}" width="{x(end) - x(begin):.1f}" height="{HEIGHT - TOP - BOTTOM}"/>',
                f'<text class="small" x="{x(begin) + 4:.1f}" y="{HEIGHT - BOTTOM - 6}">a neighbour takes bandwidth</text>']
    step = nice(top)
    for i in range(int(top / step) + 1):
        out += [f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(i * step):.1f}" y2="{y(i * step):.1f}"/>',
                f'<text class="small" text-anchor="end" x="{LEFT - 6}" y="{y(i * step) + 4:.1f}">{i * step:g} s</text>']
    for number in range(0, len(times) + 1, max(10, len(times) // 100 * 10)):
        out.append(f'<text class="small" text-anchor="middle" x="{x(number):.1f}" y="{HEIGHT - BOTTOM + 18}">{number}</text>')
    out.append(f'<text class="small" text-anchor="middle" x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}">training step</text>')
    out.append('<polyline class="line" points="' + " ".join(f"{x(i + 0.5):.1f},{y(t):.1f}" for i, t in enumerate(times) if i) + '"/>')
    for place, decision in enumerate(result.get("adaptation", [])):
        at, kind = decision["decided_after_step"], "switch" if decision["switches"] else "stay"
        cause = "start" if decision["cause"] == "start" else "change seen"
        policy, before = decision["policy"], decision["candidates"][0]["policy"]
        words = f"{cause}: " + (f"stays with {policy}" if not decision["switches"] else f"plans {policy} anew" if policy == before else f"to {policy}")
        label_y = 44 + 16 * (place % 3)
        out += [f'<line class="{kind}" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{label_y + 4}" y2="{HEIGHT - BOTTOM}"/>',
                f'<text class="small" x="{min(x(at) + 3, WIDTH - 190):.1f}" y="{label_y}">{escape(words)}</text>']
        if decision["switches"]:
            out.append(f'<line class="forecast" x1="{x(at):.1f}" x2="{x(min(at + 12, len(times))):.1f}" '
                       f'y1="{y(decision["forecast_step_s"]):.1f}" y2="{y(decision["forecast_step_s"]):.1f}"/>')
    return "\n".join([*out, "</svg>"]) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("result", type=Path)
    p.add_argument("--output", type=Path, required=True)
    p.add_argument("--neighbour", help="FIRST:LAST steps during which something else ran")
    p.add_argument("--title", default="Time of each training step; green: the forecast that a switch was made by")
    a = p.parse_args()
    a.output.write_text(svg(json.loads(a.result.read_text(encoding="utf-8")), a.neighbour, a.title), encoding="utf-8")


main()
