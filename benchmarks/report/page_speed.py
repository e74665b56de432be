#!/usr/bin/env python3
"""How fast a browser draws the page of a run, and how large the page is.

    TANDEM_BUILD=build .venv/bin/python benchmarks/report/page_speed.py [COMMANDS ...]

For each number of commands: simulates a run of about so many, opens its page in Chromium, and tells the page's size, the
time to the first paint with all charts drawn, and the longest frame of 60 that zoom in and out and move. What is aimed
at: under 5 MB for 10,000 commands; for 100,000 a first paint within 1 s and no frame over 50 ms."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]).resolve() / "bin"
SCENARIO = """\
machine: round_numbers
limits: {{device_bytes: 24MiB, host_bytes: 1GiB}}
workload: {{family: gpt, layers: 12, hidden: 256, heads: 8, vocabulary: 256, sequence: 128, batch: 4, precision: fp32}}
policy: {{name: zero_offload}}
steps: {}
"""
FRAMES = """() => {
  const took = [], span = end - first, frame = () => { const from = performance.now(); redrawNow(); took.push(performance.now() - from); };
  for (let i = 0; i < 60; ++i) {
    const width = span / 1.2 ** Math.abs(30 - i), from = first + (span - width) * (0.5 + 0.4 * Math.sin(i));
    view.from = from; view.to = from + width;
    frame();
  }
  return took;
}"""


def simulate(folder, steps):
    scenario, page, result = folder / "run.yaml", folder / "run.html", folder / "run.json"
    scenario.write_text(SCENARIO.format(steps))
    subprocess.run([BIN / "tandem", "simulate", scenario, "--quiet", "--report", page, "--json", result], check=True)
    return page, json.loads(result.read_text())["commands"]


def main():
    wanted = [int(word) for word in sys.argv[1:]] or [10_000, 100_000]
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = pathlib.Path(name)
        per_step = simulate(folder, 40)[1] / 40
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        print(f"{'commands':>10} {'page':>10} {'first paint':>12} {'all drawn':>10} {'longest frame':>14} {'median':>8}")
        for commands in wanted:
            page_file, made = simulate(folder, max(4, round(commands / per_step)))
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(page_file.as_uri())
            while not (paint := page.evaluate("performance.getEntriesByName('first-contentful-paint').map(e => e.startTime)[0]")):
                page.wait_for_timeout(20)
            drawn = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
            frames = sorted(page.evaluate(FRAMES))
            print(f"{made:>10} {page_file.stat().st_size / 1e6:>7.2f} MB {paint:>9.0f} ms {drawn:>7.0f} ms {frames[-1]:>11.1f} ms {frames[len(frames) // 2]:>5.1f} ms")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
