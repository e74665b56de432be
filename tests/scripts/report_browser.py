#!/usr/bin/env python3
"""Every kind of HTML page in a real browser (Chromium, by Playwright): they open on one step, need no network, scroll with the wheel,
zoom with Ctrl and the wheel, work by keyboard, keep their colours apart, fit 400 pixels, and pass axe-core in light and
dark. With a folder as argument, screenshots of all pages go there. Skipped without a browser."""
import itertools
import math
import os
import pathlib
import sys
import tempfile

from report_pages import make_pages, with_duty_cycle

try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright
except ImportError:
    print("no playwright")
    sys.exit(77)

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
CHROMIUM = pathlib.Path("/usr/bin/chromium")
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 400, "height": 800}
LEAST_TEXT = 9.9  # pixels on the screen
WITH_SCRIPT = ("run", "ranks", "stages", "compare", "train", "one_step", "long_names")
failures = 0


def check(name, holds, told=""):
    global failures
    if not holds:
        failures += 1
        print(f"FAILED {name}: {str(told)[:600]}")


TEXTS_TOO_SMALL = """least => {
  const small = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    const box = e.getBoundingClientRect();
    if (!own || !box.width || getComputedStyle(e).visibility === 'hidden' || ['SCRIPT', 'STYLE', 'TITLE', 'title'].includes(e.tagName)) continue;
    const svg = e.ownerSVGElement;
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    if (parseFloat(getComputedStyle(e).fontSize) * scale < least) small.push(e.textContent.trim().slice(0, 40));
  }
  return small;
}"""
# Sections with a percentage that nothing says the whole of.
BARE_PERCENTAGES = """() => [...document.querySelectorAll('main > section, .charts > section')].filter(s => s.id !== 'origin' && /\\d%/.test(s.innerText))
  .filter(s => !/of the step|is shown|after the first|one step|over the whole run|of the timed steps|bound|of what|'s time|of the measured|of the best|of a simulated step|a step takes|Error:|outcome/.test(s.innerText))
  .map(s => s.querySelector('h2')?.innerText)"""


def every_page(browser, pages, shots):
    for scheme, size, name in itertools.product(("light", "dark"), (WIDE, PHONE), pages):
        if (scheme == "light") != (size == WIDE) and name != "run" and not shots:
            continue  # once on each side of both
        context = browser.new_context(viewport=size, color_scheme=scheme)
        page = context.new_page()
        told, asked = [], []
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(pages[name].as_uri())
        what = f"{name}, {scheme}, {size['width']} pixels"
        check(f"{what}: no errors", not told, told)
        check(f"{what}: one request", len(asked) == 1, asked)
        check(f"{what}: a headline", len(page.inner_text(".headline")) > 30, page.inner_text("header"))
        check(f"{what}: how it was made", "tandem " in page.inner_text("#origin") and "Machine" in page.inner_text("#origin"))
        across = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        check(f"{what}: no scrolling sideways", across <= 0, across)
        small = page.evaluate(TEXTS_TOO_SMALL, LEAST_TEXT)
        check(f"{what}: texts large enough", not small, small)
        if shots:
            page.evaluate("typeof drawStale === 'undefined' || drawStale(true)")
            page.screenshot(path=shots / f"{name}-{scheme}-{size['width']}.png", full_page=True)
        if name not in WITH_SCRIPT:
            tabs_through(page, what)
        if (scheme, size) == ("dark", PHONE) or ((scheme, size) == ("light", WIDE) and name in ("run", "over", "mix", "explain")):
            bare = page.evaluate(BARE_PERCENTAGES)
            check(f"{what}: percentages name their whole", not bare, bare)
            for violation in Axe().run(page).response["violations"]:
                check(f"{what}: axe {violation['id']}", False, [(n["html"][:120], n["any"][:1]) for n in violation["nodes"][:3]])
        context.close()


STOPS = ".chart, .scrolls, summary, pre, .plot .rest"


def tabs_through(page, what):
    """A page without a script: Tab reaches what scrolls, what folds, and lines that are drawn when they have the keyboard."""
    in_sight = "e => e.checkVisibility({contentVisibilityAuto: true}) && e.getBoundingClientRect().height > 0"
    wanted = page.locator(STOPS).evaluate_all(f"all => all.filter({in_sight}).length")
    page.evaluate("document.activeElement?.blur(), window.scrollTo(0, 0)")
    reached = 0
    for _ in range(wanted):
        page.keyboard.press("Tab")
        reached += page.evaluate(f"stops => document.activeElement.matches(stops) && ({in_sight})(document.activeElement)", STOPS)
    check(f"{what}: Tab reaches all {wanted}", reached == wanted, reached)
    folded = page.locator("summary")
    if folded.count():
        folded.first.press("Enter")
        check(f"{what}: Enter unfolds", page.locator("details[open] pre").count() == 1)
        folded.first.press("Enter")


def settled(page, condition):
    """Waits up to 2 s. (Playwright's own waiting evaluates strings, which pages forbid.)"""
    for _ in range(40):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)


def opens_on_one_step(page):
    shown = page.evaluate("({from: view.from, to: view.to, typical: runs[0].typical})")
    check("opens on a step", shown["from"] == shown["typical"]["from"] and shown["to"] == shown["typical"]["to"], shown)
    check("a steady step", shown["typical"]["step"] == 2, shown)
    begins = page.evaluate("""() => { const lane = runs[0].lanes.find(l => l.name === 'device0/compute'), i = firstAfter(lane, view.from);
      return [data.colours[lane.colour[i]], lane.start[i] === view.from, lane.step[i]]; }""")
    check("begins with its first forward", begins == ["forward", True, 2], begins)


def wheel_and_buttons(page):
    at = "({from: view.from, to: view.to, y: scrollY})"
    page.locator("#timeline canvas").first.scroll_into_view_if_needed()
    box = page.locator("#timeline canvas").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    before = page.evaluate(at)
    page.mouse.wheel(0, 200)
    settled(page, f"scrollY !== {before['y']}")
    after = page.evaluate(at)
    check("the wheel scrolls", after["y"] > before["y"] and after["from"] == before["from"] and after["to"] == before["to"], after)
    box = page.locator("#timeline canvas").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    settled(page, f"view.to - view.from < {0.9 * (before['to'] - before['from'])}")
    page.keyboard.up("Control")
    zoomed = page.evaluate(at)
    check("Ctrl and the wheel zoom", zoomed["to"] - zoomed["from"] < 0.9 * (before["to"] - before["from"]) and zoomed["y"] == after["y"], zoomed)
    for name, holds in (("Zoom in", lambda a, b: b < 0.6 * a), ("Zoom out", lambda a, b: b > 1.5 * a), ("All", lambda a, b: b > a), ("One step", lambda a, b: b < a)):
        span = page.evaluate("view.to - view.from")
        button = page.get_by_role("button", name=name, exact=True)
        button.focus()
        page.keyboard.press("Enter")
        check(f"the button {name}, by keyboard", holds(span, page.evaluate("view.to - view.from")))


def keyboard(page):
    def press(key):
        page.keyboard.press(key)
        return page.evaluate("({from: view.from, span: view.to - view.from})")
    page.locator("#timeline canvas").first.focus()
    home = press("1")
    check("1 shows one step", home["from"] == page.evaluate("runs[0].typical.from"), home)
    check("+ zooms in", press("+")["span"] < home["span"])
    check("- zooms out", press("-")["span"] >= 0.99 * home["span"])
    check("the arrow moves", press("ArrowRight")["from"] > home["from"])
    check("0 shows all", press("0")["span"] > home["span"])
    press("1")
    press("n")
    said = page.inner_text("#said")
    check("N says what is waited for", "is idle for" in said and "waits for" in said, said)
    tabbed = []
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    for _ in range(40):
        page.keyboard.press("Tab")
        tabbed.append(page.evaluate("document.activeElement.ariaLabel || document.activeElement.innerText || document.activeElement.tagName"))
    for control in ("One step", "Zoom in", "Zoom out", "Next wait", "Timeline of", "The scenario"):
        check(f"Tab reaches {control}", any(str(name).startswith(control) for name in tabbed), tabbed)


def linear(channel):
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def oklab(rgb):
    """Where a colour lies in a space in which distances are as large as they look (Ottosson 2020)."""
    r, g, b = (linear(c / 255) for c in rgb)
    l, m, s = (x ** (1 / 3) for x in (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b,
                                      0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b,
                                      0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b))
    return (0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s, 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s)


SAME = ({"optimizer_step", "cpu_optimizer"}, {"load", "loader"}, {"reduce", "collective"})  # one meaning, one colour


def palette(page, scheme):
    page.emulate_media(color_scheme=scheme)
    colours = page.evaluate("""() => { newScheme(); return Object.fromEntries([...new Set([...data.colours, 'workspace', 'compute', ...CAUSES])]
      .map(name => [name, colour(name).match(/[\\d.]+/g).slice(0, 3).map(Number)])); }""")
    check("all colours are given", [136, 136, 136] not in colours.values(), colours)
    far = {pair: math.dist(oklab(colours[pair[0]]), oklab(colours[pair[1]])) for pair in itertools.combinations(sorted(colours), 2)}
    close = {pair: round(distance, 3) for pair, distance in far.items() if distance < 0.04 and set(pair) not in SAME}
    check(f"colours are apart, {scheme}", not close, close)
    for pair in (("activation", "compute"), ("batch", "load"), ("forward", "h2d")):
        check(f"{pair} differ, {scheme}", far[pair] > 0.12, far[pair])


def pictures(page):
    # The envelope of copies has the rates of copies, at any zoom: no column is lower than the slowest copy.
    lows = page.evaluate("""() => { const lanes = lanesOf(runs[0], ['h2d']), rate = (lane, i) => lane.bytes[i] / Math.max(1, lane.end[i] - lane.start[i]);
      const least = Math.min(...lanes.flatMap(lane => [...lane.bytes.keys()].map(i => rate(lane, i))));
      const lows = [];
      for (const factor of [1, 3.7, 11.3]) { all(); zoom(middle(), 1 / factor); const {most} = envelope(lanes, 1200, rate); lows.push([least, Math.min(...most.filter(m => m > 0))]); }
      oneStep();
      return lows; }""")
    check("pulses keep their height", all(low >= least * (1 - 1e-9) for least, low in lows), lows)
    arrows = page.evaluate("longestWaits(runs[0], 1200).length")
    check("arrows from idle time", arrows > 0, arrows)


# Of a lane, which share of its row has the colour.
PAINTED = """name => {
  const scale = devicePixelRatio, c = document.querySelector('#timeline canvas'), width = c.width - LABEL_WIDTH * scale;
  const pixels = c.getContext('2d').getImageData(LABEL_WIDTH * scale, 2 * scale, width, (ROW - 4) * scale).data;
  const wanted = colour(name).match(/[\\d.]+/g).map(Number);
  let found = 0;
  for (let i = 0; i < pixels.length; i += 4) found += [0, 1, 2].every(k => Math.abs(pixels[i + k] - wanted[k]) < 40);
  return found / (pixels.length / 4);
}"""


def duty_cycle(browser, run, folder):
    """A lane that is busy for a fifth of the time looks so, whether a pixel holds a hundred commands or a command ten pixels;
    one command that stands alone is seen."""
    for share in (0.05, 0.2, 0.8):
        page = browser.new_page(viewport=WIDE, device_scale_factor=4)
        page.goto(with_duty_cycle(run, folder / "duty.html", share).as_uri())
        painted = {}
        for pixels in (0.01, 0.1, 0.37, 0.9, 1.7, 4, 25):  # of the time from command to command
            page.evaluate(f"show(1e8, 1e8 + 10000 * (document.querySelector('#timeline canvas').clientWidth - LABEL_WIDTH) / {pixels}); redrawNow()")
            painted[pixels] = page.evaluate(PAINTED, "forward")
        # What is neither colour, at edges, is not counted: little of it, of four pixels each.
        check(f"{share:.0%} busy look so", all(abs(found - share) < 0.005 + 0.15 * share for found in painted.values()), painted)
        said = page.evaluate("all(), crowdText(runs[0].lanes[0], 5e8, 1200)")
        check(f"{share:.0%} are said", abs(float(said.rpartition("busy ")[2].rstrip("%")) / 100 - share) < 0.01, said)
        page.close()
    page = browser.new_page(viewport=WIDE, device_scale_factor=4)
    page.goto(with_duty_cycle(run, folder / "alone.html", 1e-5, period=100_000_000).as_uri())
    page.evaluate("all(), redrawNow()")
    seen = page.evaluate(PAINTED, "forward")
    check("commands that stand alone are seen", 0 < seen < 0.05, seen)
    page.close()


def equal_ranks(page):
    devices = page.evaluate("runs[0].devices.map(d => [d.name, d.ranks])")
    check("equal ranks stand for each other", devices == [["device0-3", 4]], devices)
    check("and the page says so", "4 ranks whose commands are the same" in page.inner_text("#timeline"))
    check("each lane once", "device1/" not in page.inner_text("main"))


def pipeline(page):
    check("a row a stage, whatever copies there are", page.evaluate("runs[0].stages.map(s => [s.stage, s.ranks])") == [[n, 2] for n in range(4)])
    passes = page.evaluate("""runs[0].stages.map(s => passesOf(s).map(p => p.phase[0] + p.micro).filter(p => 'fb'.includes(p[0])).join(' '))""")
    check("the last stage has forwards and backwards by turns", passes[3] == " ".join(f"f{n} b{n}" for n in range(8)), passes)
    check("the first fills the others first", passes[0].startswith("f0 f1 f2 f3 b0 f4 b1"), passes)
    shown = page.inner_text("#pipeline")
    check("waiting and traffic by stage", "A stage waits" in shown and "p2p" in shown and "collective" in shown, shown)
    box = page.locator("#pipeline canvas").bounding_box()
    page.mouse.move(box["x"] + 70, box["y"] + 12)
    check("a pass says what it is", "stage 0: forward of micro-batch 0" in page.inner_text("#tooltip"), page.inner_text("#tooltip"))


def compared(page):
    tops = page.evaluate("runs.map(r => Math.round(topOf(r.memory.find(t => t.name.endsWith('/device')))))")
    check("equal axes of memory", len(tops) == 2 and tops[0] == tops[1], tops)
    check("both begin with their step", page.evaluate("runs.every(r => r.typical.from === 0)"))
    widths = page.evaluate("[...document.querySelectorAll('.bar:not(.thin)')].slice(0, 2).map(b => [...b.children].reduce((sum, c) => sum + c.getBoundingClientRect().width, 0))")
    steps = page.evaluate("runs.map(r => r.result.compute_s + Object.values(r.result.exposed_s).reduce((a, b) => a + b, 0))")
    check("bars of one scale", abs(widths[0] / widths[1] - steps[0] / steps[1]) < 0.02 * steps[0] / steps[1], (widths, steps))


def policies(page):
    rest = page.locator(".plot .rest")
    check("five lines at first", rest.count() > 0)
    line = rest.first.locator("polyline").first
    opacity = "e => getComputedStyle(e).opacity"
    check("others are hidden", line.evaluate(opacity) == "0")
    rest.first.focus()
    check("and shown with the keyboard", line.evaluate(opacity) == "1")
    check("no room is said where lines end", page.locator(".plot .ends-word", has_text="no room").count() > 0)


def main():
    if not CHROMIUM.exists() or not (BIN / "tandem-simulate").exists():
        print("no chromium, or no simulator")
        return 77
    shots = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = pathlib.Path(name)
        pages = make_pages(BIN, folder)
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        every_page(browser, pages, shots)
        page = browser.new_page(viewport=WIDE)
        for name, tests in (("run", (opens_on_one_step, pictures, wheel_and_buttons, keyboard, lambda p: palette(p, "light"), lambda p: palette(p, "dark"))),
                            ("ranks", (equal_ranks,)), ("stages", (pipeline,)), ("compare", (compared,)), ("over", (policies,))):
            page.goto(pages[name].as_uri())
            for test in tests:
                test(page)
        duty_cycle(browser, pages["run"], folder)
        browser.close()
    print("FAILED" if failures else "passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
