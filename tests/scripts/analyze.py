#!/usr/bin/env python3
"""tandem analyze: golden tables, what it refuses, suggestions that simulations bear out, and a page that parses."""
import html.parser
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
TANDEM = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "tandem"
GOLDEN = SOURCE / "tests" / "data" / "analyze"
CLIP = """\
machine: round_numbers
workload: {family: clip, image: 64, patch: 16, vision_layers: 3, vision_hidden: 192, vision_heads: 3, text_layers: 2,
  text_hidden: 128, text_heads: 2, vocabulary: 20000, sequence: 32, projection: 64, batch: 16, precision: fp32}
policy: {name: zero_offload}
steps: 4
"""
WHISPER = """\
machine: round_numbers
workload: {family: whisper, layers: 2, hidden: 96, heads: 3, mels: 40, frames: 400, vocabulary: 5000, sequence: 48,
  batch: 4, precision: fp32}
policy: {name: resident}
steps: 4
"""
# A small GPU beside many cores.
BIG_CPU = """\
machine:
  derive_from: gtx_1650
  name: gtx_1650_beside_64_cores
  tiers: {host_pinned: {capacity: 256GiB, bandwidth: 300GB/s}}
  cpu: {cores: 64, peak: 2.5TFLOPS, optimizer: {rate: 4Gparameters/s}}
workload: {model: clip-vit-b-32, batch: 16, precision: fp32}
policy: {name: zero_offload}
steps: 4
"""
CAPPED = """\
machine: gtx_1650
limits: {device_bytes: 800MiB}
workload: {model: gpt2, batch: 1, precision: fp32}
policy: {name: on_demand}
steps: 4
"""
DECODE = """\
machine: round_numbers
workload: {family: gpt_decode, layers: 2, hidden: 64, heads: 2, vocabulary: 256, sequence: 32, prompt: 8, new_tokens: 4, batch: 1}
policy: {name: on_demand}
"""
LAYERS = """\
machine: round_numbers
workload: {family: layers, layers: 2, layer_bytes: 6400B, forward: 1us, backward: 2us, optimizer: 3us, precision: bf16}
policy: {name: on_demand}
"""
failures = []


def run(*arguments):
    return subprocess.run([str(a) for a in (TANDEM, *arguments)], capture_output=True, text=True, timeout=300)


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def analysed(name, scenario, *words):
    result = run("analyze", scenario, "--json", "-", *words)
    check(name, result.returncode == 0, f"{result.returncode} {result.stderr}")
    return json.loads(result.stdout) if result.returncode == 0 else None


def golden(folder):
    for name, text in (("clip", CLIP), ("whisper", WHISPER)):
        scenario = folder / f"{name}.yaml"
        scenario.write_text(text)
        result = run("analyze", scenario)
        check(name, result.returncode == 0 and result.stderr == "", result.stderr)
        widest = max(len(line) for line in result.stdout.splitlines())
        check(name, widest <= 80, f"{widest} columns")
        file = GOLDEN / f"{name}.txt"
        if os.environ.get("TANDEM_RECORD"):
            file.write_text(result.stdout)
        check(name, file.read_text() == result.stdout, f"{file} differs; TANDEM_RECORD=1 writes it anew:\n{result.stdout}")
        check(name, run("analyze", scenario).stdout == result.stdout, "it says something else the second time")
        check(name, "moves in" not in result.stdout and "copied in" in run("analyze", scenario, "--wide").stdout, "--wide")


def figures(folder):
    """Of a step, what modules have of the critical path comes to all of it; figures agree with a simulation's."""
    scenario = folder / "clip.yaml"
    found = analysed("figures", scenario)
    if not found:
        return
    path = sum(m["critical_path_s"] for m in found["modules"]) + found["no_module"]["critical_path_s"]
    check("critical path", abs(path / found["step_s"] - 1) < 0.02, f"{path} of {found['step_s']}")
    simulated = json.loads(run("simulate", scenario, "--json", "-", *(f"--set={s}" for s in found["set"])).stdout)
    check("step", simulated["step_time_s"]["median"] == found["step_s"], found["step_s"])
    check("memory", found["device_bytes"]["peak"] == simulated["peak_bytes"]["device0"], found["device_bytes"])
    of = {m["modules"]: m for m in found["modules"]}
    block = of["vision_block0..2"]
    # 3 blocks, 16 samples of 17 tokens, 192 wide: per token 2 x 12 x 192^2 in products, and 4 x 17 x 192 in attention.
    check("flops", block["flops"]["forward"] == 3 * 16 * 17 * (24 * 192**2 + 4 * 17 * 192), block["flops"])
    check("parameters", of["text_embedding"]["memory"]["parameter_bytes"] == 4 * 128 * (20000 + 32),
          of["text_embedding"]["memory"])
    check("states", of["text_embedding"]["memory"]["state_bytes"] == 8 * 128 * (20000 + 32), of["text_embedding"]["memory"])
    check("meeting", [b["module"] for b in found["meetings"][0]["branches"]] == ["vision_projection", "text_projection"]
          or [b["module"] for b in found["meetings"][0]["branches"]] == ["text_projection", "vision_projection"],
          found["meetings"])
    check("input", found["input"]["load_s"] > 0 and found["input"]["bytes"] > 0, found["input"])


def borne_out(name, scenario, found):
    """Each trial is what a simulation with that setting says."""
    trials = [t for m in found["modules"] for t in m["trials"]]
    check(name, trials, "no trials")
    for trial in trials + ([found["suggestion"]] if found["suggestion"] else []):
        words = [f"--set={s}" for s in (*found["set"], f'policy.cpu_modules="{trial["cpu_modules"]}"')]
        result = run("simulate", scenario, "--json", "-", "--no-trials", *words)
        if "step_s" in trial:
            step = json.loads(result.stdout)["step_time_s"]["median"]
            check(name, step == trial["step_s"], f"{trial['cpu_modules']}: {trial['step_s']}, not {step}")
        else:
            check(name, result.returncode in (2, 3), f"{trial['cpu_modules']}: {result.returncode}")
    for of in found["modules"]:
        faster = [t for t in of["trials"] if t.get("step_s", 1e9) < 0.99 * (found["step_s"] or 1e9)]
        on_cpu = of["suggested_on_cpu"] > of["on_cpu"]
        check(name, not on_cpu or faster or not found["fits"], f"{of['modules']} suggested without a reason: {of['trials']}")


def suggestions(folder):
    scenario = folder / "big_cpu.yaml"
    scenario.write_text(BIG_CPU)
    found = analysed("many cores", scenario)
    if found:
        check("many cores", found["suggestion"] and found["suggestion"]["step_s"] < 0.8 * found["step_s"], found["sentence"])
        check("many cores", "text_block0..11" in found["suggestion"]["cpu_modules"], found["suggestion"])
        borne_out("many cores", scenario, found)
    there = analysed("a block there already", scenario, "--set", 'policy.cpu_modules="head"')
    if there:
        head = there["modules"][-1]
        check("there already", head["on_cpu"] == 1 and head["trials"][0]["to"] == "device", head)
    other = analysed("H100", scenario, "--set", "machine=h100_measured", "--set", "policy={name: resident}", "--set",
                     "workload.precision=bf16")
    if other:
        check("H100", other["suggestion"] is None and all(m["suggested_on_cpu"] == 0 for m in other["modules"]),
              other["sentence"])
        blocks = next(m for m in other["modules"] if m["modules"] == "vision_block0..11")
        check("H100", not blocks["trials"] and blocks["cpu"]["seconds"] > 100 * blocks["device"]["seconds"], blocks)
        check("H100", "times as long" in blocks["reason"], blocks["reason"])
    scenario = folder / "capped.yaml"
    scenario.write_text(CAPPED)
    check("capped", run("simulate", scenario, "--no-trials").returncode == 3, "it fits without help")
    found = analysed("capped", scenario)
    if found:
        check("capped", not found["fits"] and found["suggestion"]["cpu_modules"] == "head", found["sentence"])
        borne_out("capped", scenario, found)
    result = run("analyze", scenario, "--set", "limits.device_bytes=400MiB")
    check("too little", result.returncode == 3 and "does not fit: device memory" in result.stderr, result.stderr)
    check("too little", "nor with modules on the CPU" in result.stdout.replace("\n", " "), result.stdout)


class Page(html.parser.HTMLParser):
    VOID = {"meta"}

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.texts, self.wrong, self.fetched = [], [], [], [], []
        self.labels = []  # of all pictures

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes), tuple(self.open)))
        self.fetched += [v for k, v in attributes if k in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes), tuple(self.open)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data.strip()))
        if self.open and self.open[-1] == "text" and data.strip():
            where = self.tags[-1][1]
            if "x" in where:
                self.labels.append((where["text-anchor"], float(where["x"]), float(where["y"]), data.strip()))


def overlaps(labels):
    """Letters are 7 wide and 11 high at the most."""
    boxes = []
    for anchor, x, y, words in labels:
        wide = 7 * len(words)
        boxes.append((x - {"start": 0, "middle": wide / 2, "end": wide}[anchor], y - 9, wide, 11, words))
    return [(a[4], b[4]) for i, a in enumerate(boxes) for b in boxes[:i]
            if a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]]


def page(folder):
    crowded = folder / "crowded.yaml"  # 27 kinds of module, on a CPU that is nearly as fast as the device
    crowded.write_text("machine: {derive_from: h100_measured, name: m, cpu: {peak: 50TFLOPS}}\n"
                       "workload: {model: stable-diffusion-1.5-unet, batch: 1}\npolicy: {name: resident}\n")
    for scenario in (folder / "clip.yaml", folder / "whisper.yaml", folder / "big_cpu.yaml", crowded):
        file = folder / "page.html"
        result = run("analyze", scenario, "--quiet", "--report", file)
        check("labels", result.returncode == 0, result.stderr)
        for picture in file.read_text().split("<svg")[1:]:
            parsed = Page()
            parsed.feed("<svg" + picture.split("</svg>")[0] + "</svg>")
            names = [label for label in parsed.labels if label[0] != "middle"]
            check("labels", not overlaps(names), f"{scenario.name}: {overlaps(names)}")
            roofs = [words for *_, words in names if "FLOPS, " in words]
            check("labels", len(roofs) == 2 and len(names) > 8, f"{scenario.name}: {names}")
    scenario, file = folder / "clip.yaml", folder / "clip.html"
    found = analysed("page", scenario, "--report", file)
    parsed = Page()
    parsed.feed(file.read_text())
    check("page", not parsed.open and not parsed.wrong, f"tags left open {parsed.open}, closed wrongly {parsed.wrong}")
    check("page", not parsed.fetched and "<script" not in file.read_text(), f"it loads {parsed.fetched}")
    dots = [a for tag, a, _ in parsed.tags if tag == "circle"]
    with_flops = [m for m in found["modules"] if m["flops_a_byte"] > 0]
    check("page", len(dots) == 2 * len(with_flops), f"{len(dots)} dots of {len(with_flops)} kinds, in two sizes")
    texts = [text for _, text in parsed.texts]
    for name in ("vision_block x3", "text_block x2", "head"):
        check("page", texts.count(name) >= 3, f"{name} is not beside its dots and in tables: {texts.count(name)}")
    check("page", any(t.startswith("CPU 1.00 TFLOPS, 100 GB/s") for t in texts), "no roof of the CPU")
    hostile = folder / "<b>&.yaml"
    hostile.write_text(CLIP)
    check("hostile name", run("analyze", hostile, "--quiet", "--report", file).returncode == 0, "it fails")
    check("hostile name", "<b>&" not in file.read_text() and "&lt;b&gt;&amp;.yaml" in file.read_text(), "it is not escaped")


def refusals(folder):
    for name, text in (("gpt_decode", DECODE), ("layers", LAYERS)):
        scenario = folder / f"{name}.yaml"
        scenario.write_text(text)
        check(name, run("check", scenario).returncode == 0, "the scenario itself is wrong")
        result = run("analyze", scenario)
        check(name, result.returncode == 2 and f"workload.family: {name} has no modules to analyse" in result.stderr,
              result.stderr)
        check(name, "allowed: a family of models" in result.stderr and result.stdout == "", result.stdout)
    clip = folder / "clip.yaml"
    for words, what in (((), "FILE"), ((clip, "--nothing"), "--nothing"), ((folder / "none.yaml",), "cannot be opened"),
                        ((clip, "--set", "policy.cpu_modules=nobody"), "no module of this network is called 'nobody'"),
                        ((clip, "--json", folder / "none" / "a.json"), "none")):
        result = run("analyze", *words)
        check(str(words), result.returncode == 2 and what in result.stderr, f"{result.returncode} {result.stderr}")
    result = run("analyze", clip, "--quiet", "--json", folder / "a.json")
    check("quiet", result.stdout == "" and result.returncode == 0 and json.loads((folder / "a.json").read_text()), result.stdout)


with tempfile.TemporaryDirectory() as name:
    golden(pathlib.Path(name))
    figures(pathlib.Path(name))
    suggestions(pathlib.Path(name))
    page(pathlib.Path(name))
    refusals(pathlib.Path(name))
print("\n".join(failures))
sys.exit(1 if failures else 0)
