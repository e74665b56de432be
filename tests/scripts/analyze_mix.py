#!/usr/bin/env python3
"""tandem analyze --mix: figures that simulations bear out, what it refuses, a page that parses, no line too wide."""
import html.parser
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from report_pages import MIX as SMALL

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
TANDEM = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "tandem"
failures = []


def check(fine, what):
    if not fine:
        failures.append(what)


def run(*arguments):
    return subprocess.run([str(a) for a in (TANDEM, *arguments)], capture_output=True, text=True, timeout=300)


class Balanced(html.parser.HTMLParser):
    VOID = {"meta", "link", "br", "line", "circle", "rect", "polyline"}

    def __init__(self):
        super().__init__()
        self.open, self.bad, self.polylines = [], [], 0

    def handle_starttag(self, tag, attributes):
        self.polylines += tag == "polyline"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.bad.append(tag)


def refuses(scenario, words, *arguments):
    done = run("analyze", scenario, *arguments)
    check(done.returncode == 2 and words in done.stderr, f"{arguments}: {done.returncode}, {done.stderr}")


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    scenario, page, result = folder / "mix.yaml", folder / "mix.html", folder / "mix.json"
    scenario.write_text(SMALL)
    done = run("analyze", scenario, "--mix", "image", "--points", 3, "--report", page, "--json", result)
    check(done.returncode == 0, f"exit {done.returncode}: {done.stderr}")
    check(all(len(line) <= 80 for line in done.stdout.splitlines()), "a line is too wide:\n" + done.stdout)
    again = run("analyze", scenario, "--mix", "image", "--points", 3)
    check(again.stdout == done.stdout, "a second run says something else")
    sweep = json.loads(result.read_text())["sweeps"][0]
    check([p["share"] for p in sweep["points"]] == [0, 0.5, 1], "shares")
    check(done.stdout.splitlines()[0].split()[0] in sweep["answer"], "the answer is not the same")

    # One figure again, by hand: of steps 9 to 30 of 32, each 2 x 16 samples.
    run("simulate", scenario, "--quiet", "--json", folder / "run.json", "--set", "steps=32", "--set",
        "workload.mix=[{from_step: 0, image: 0.5, audio: 0.1}]", "--set",
        "policy={name: static_best, states: resident, transforms: workers, cpu_micro_batches: 0}")
    times = json.loads((folder / "run.json").read_text())["step_time_s"]["all"][7:29]
    expected = 2 * 16 * len(times) / sum(times)
    told = sweep["points"][1]["placements"]["workers"]["samples_per_s"]
    check(abs(told / expected - 1) < 1e-9, f"workers at 0.5: {told}, simulated {expected}")
    best = sweep["points"][1]["placements"][sweep["points"][1]["best_fixed"]]["samples_per_s"]
    most = max(of["samples_per_s"] for name, of in sweep["points"][1]["placements"].items()
               if name not in ("adaptive", "static_best"))
    check(best > most * 0.99, f"best at 0.5: {best} of {most}")

    parsed = Balanced()
    parsed.feed(page.read_text())
    check(not parsed.bad and not parsed.open, f"tags do not match: {parsed.bad} {parsed.open}")
    check(parsed.polylines >= 8, "lines are missing in the page")
    check("http" not in page.read_text().replace("http-equiv", ""), "the page points outside")

    refuses(scenario, "--mix: 'video' is nothing that the scenario's samples have; allowed: image, audio", "--mix", "video")
    refuses(scenario, "--mix: '' is nothing", "--mix", "image,")
    refuses(scenario, "--points", "--points", "5")
    refuses(scenario, "--points", "--mix", "image", "--points", "1")
    other = folder / "layers.yaml"
    other.write_text("machine: round_numbers\nworkload: {model: gpt2, batch: 1}\npolicy: {name: resident}\n")
    refuses(other, "have no modalities to mix; allowed: a scenario of trimodal or multimodal_llm", "--mix", "image")

print("\n".join(failures) or "fine")
sys.exit(bool(failures))
