"""Pages of every kind that a command writes, for report_browser.py: common ones, and those that are small, refuse, or have
long names."""
import json
import pathlib
import re
import subprocess

SMALL = """\
machine: round_numbers
limits: {device_bytes: 24MiB, host_bytes: 1GiB}
workload: {family: gpt, layers: 6, hidden: 256, heads: 8, vocabulary: 256, sequence: 128, batch: 4, precision: fp32}
policy: {name: cotrain, separation: auto}
steps: 6
"""
RANKS = """\
machine: dgx2_v100
workload: {family: gpt, layers: 4, hidden: 512, heads: 8, vocabulary: 512, sequence: 128, batch: 4, precision: fp16, devices: 4, partition: states}
policy: {name: zero_offload}
steps: 4
"""
MIX = """\
machine: round_numbers
workload: {family: trimodal, image: 32, patch: 8, image_layers: 1, image_hidden: 48, image_heads: 3, audio_layers: 1,
  audio_hidden: 48, audio_heads: 3, mels: 16, frames: 100, text_layers: 1, text_hidden: 48, text_heads: 3,
  vocabulary: 300, sequence: 20, projection: 32, batch: 16, micro_batches: 2, mix: [{from_step: 0, image: 0.2, audio: 0.1}]}
data: {pipeline: {workers: 4}}
policy: {name: resident}
steps: 4
"""
STAGES = """\
machine: round_numbers
workload: {family: gpt, layers: 8, hidden: 256, heads: 8, vocabulary: 512, sequence: 128, batch: 2, micro_batches: 8, precision: fp32}
parallel: {data: 2, pipeline: 4, schedule: 1f1b}
policy: {name: resident}
steps: 4
"""
TRAINED = """\
machine: round_numbers
limits: {device_bytes: 64MiB, host_bytes: 256MiB, cores: 2}
workload: {family: mlp, layers: 3, hidden: 64, inputs: 64, classes: 10, batch: 16, precision: fp32}
policy: {name: on_demand}
steps: 5
"""
SWEEP = """\
base: small.yaml
sweep: {workload.batch: [1, 2, 4], workload.layers: [2, 4, 6]}
"""
ONE = ("--set", "workload.layers=1", "--set", "steps=1")  # of each kind the smallest
LONG = "a_scenario_" + "whose_name_never_ends_" * 8
FEW = "on_demand,resident,cotrain,zero_offload,l2l,stronghold,balanced,delayed_update,prefetch_window,zero_infinity,patrickstar"


def commands_of(bin_folder, folder):
    """{page: command without its --report}"""
    known = subprocess.run([bin_folder / "tandem", "list", "policies"], capture_output=True, text=True, check=True).stdout
    few = ",".join(name for name in FEW.split(",") if f"{name} " in known)
    commands = {
        "run": ("simulate", "small.yaml", "--set", "optimizer.learning_rate=2e-3", "--log", "run.log"),
        "one_step": ("simulate", "small.yaml", *ONE),
        "long_names": ("simulate", f"{LONG}.yaml"),
        "ranks": ("simulate", "ranks.yaml"),
        "stages": ("simulate", "stages.yaml"),
        # A log of the simulator stands for a measured run: the page is the same.
        "compare": ("compare", "--measured", "run.log", "--set", "policy={name: on_demand}"),
        "policies": ("compare-policies", "small.yaml", "--policies", few),
        "one_step_policies": ("compare-policies", "small.yaml", "--policies", few, *ONE),
        "no_policy": ("compare-policies", "small.yaml", "--policies", "resident,one_bit_adam", "--set", "limits.device_bytes=1MiB"),
        "over": ("compare-policies", "small.yaml", "--policies", few, "--over", "workload.batch=1,2,4,8,16"),
        "largest": ("compare-policies", "small.yaml", "--policies", "on_demand,resident", "--largest", "workload.layers=1..40"),
        "sweep": ("sweep", "sweep.yaml"),
        "sweep_none": ("sweep", "sweep.yaml", "--set", "limits.device_bytes=1MiB", "--output", "none.sqlite"),
        "sweep_long": ("sweep", "long_sweep.yaml"),
        "explain": ("explain", "small.yaml", "--policies", few),
        "explain_one_step": ("explain", "small.yaml", "--policies", "resident", *ONE),
        "explain_log": ("explain", "run.log", "--policies", "on_demand"),
        "workload": ("analyze", "small.yaml"),
        "one_step_workload": ("analyze", "small.yaml", *ONE),
        "mix": ("analyze", "mix.yaml", "--mix", "image", "--points", "3"),
        "two_mixes": ("analyze", "mix.yaml", "--mix", "image,audio", "--points", "2"),
        "validate": ("validate", "--measured", "measured.jsonl")}
    if (bin_folder / "tandem-train").exists():
        commands["train"] = ("train", "trained.yaml", "--device", "cpu")
    return commands


def measured_by_simulation(bin_folder, folder):
    """Measurements of three scenarios, one of which does not fit: results of the simulator under another seed stand for them."""
    lines = []
    for name, policy in (("fits_" + LONG[:90], "cotrain"), ("slower", "on_demand"), ("too_large", "resident")):
        text = SMALL.replace("{name: cotrain, separation: auto}", f"{{name: {policy}}}")
        line = {"schema": 1, "scenario": name, "text": text, "set": [], "machine": {}, "warm_steps": 2}
        (folder / "measured.yaml").write_text(text)
        done = subprocess.run([bin_folder / "tandem", "simulate", "measured.yaml", "--json", "-", "--set", "truth.copy_time=1.05"], cwd=folder,
                              capture_output=True, text=True, check=False)
        answer = {"result": json.loads(done.stdout)} if done.returncode == 0 else {"exit_code": done.returncode, "error": done.stderr}
        lines.append(json.dumps({**line, **answer}))
    (folder / "measured.jsonl").write_text("\n".join(lines) + "\n")


def make_pages(bin_folder, folder):
    """{name: file}"""
    for name, text in (("small", SMALL), ("ranks", RANKS), ("stages", STAGES), ("mix", MIX), ("trained", TRAINED), ("sweep", SWEEP), (LONG, SMALL)):
        (folder / f"{name}.yaml").write_text(text)
    # Values whose names are long, too.
    long_policies = ", ".join("{name: cotrain, separation: %d, cpu_modules: block%d}" % (n, n) for n in (1, 2))
    (folder / "long_sweep.yaml").write_text(f"base: {LONG}.yaml\nsweep: {{policy: [{long_policies}], workload.batch: [1, 2]}}\n")
    measured_by_simulation(bin_folder, folder)
    pages = {}
    for name, command in commands_of(bin_folder, folder).items():
        done = subprocess.run([bin_folder / "tandem", *command, "--quiet", "--report", f"{name}.html"], cwd=folder, capture_output=True,
                              text=True, timeout=300, check=False)
        pages[name] = folder / f"{name}.html"
        if not pages[name].exists():
            raise RuntimeError(f"{name}: exit code {done.returncode}: {done.stderr}")
    return pages


def with_duty_cycle(page, file, share, period=10_000):
    """The page of a run whose first lane alone has commands: all forward, one each `period` ns for a second, which take `share`
    of it."""
    text = pathlib.Path(page).read_text()
    match = re.search(r'(<script type="application/json" id="data">)(.*?)</script>', text, re.DOTALL)
    data = json.loads(match[2])
    run, count, busy = data["runs"][0], 1_000_000_000 // period, max(1, round(share * period))
    forward = data["colours"].index("forward")
    for lane in run["lanes"]:
        lane["s"], lane["w"] = [], []
    run["lanes"][0]["s"] = [x for _ in range(count) for x in (period - busy, busy, forward, 0, 0, 0)]
    run["makespan_ns"], run["step_ends_ns"] = count * period, []
    run["typical"] = {"step": -1, "from": 0, "to": count * period}
    run["window"].update({"from": 0, "to": count * period})
    file.write_text(text[:match.start(2)] + json.dumps(data) + text[match.end(2):])
    return file
