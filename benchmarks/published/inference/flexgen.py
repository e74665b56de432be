"""FlexGen's table of offloaded generation on one T4, and its suite's rows: what each system generates a second."""
import csv
import dataclasses
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
GIB = 1 << 30
HOST_GIB = 204
# OPT's weights in fp16, in GiB.
WEIGHTS_GIB = {"opt-6.7b": 12.5, "opt-30b": 55.9, "opt-175b": 324}
POLICIES = {"FlexGen": "flexgen", "FlexGen(c)": "flexgen", "Accelerate": "accelerate", "DeepSpeed ZeRO-Inference": "deepspeed_inference"}
# Rows that a figure was taken from: the rate of reading codes, and that of memory that is not pinned.
CALIBRATED = {("FlexGen(c)", "opt-6.7b", "256"), ("FlexGen(c)", "opt-30b", "256")}


@dataclasses.dataclass
class Row:
    system: str
    model: str
    prompt: int
    published: float | None
    predicted: float
    first_token_s: float
    calibrated: bool

    @property
    def error(self):
        return None if self.published is None else self.predicted / self.published - 1


def table():
    path = ROOT / "benchmarks" / "published" / "inference" / "tables" / "flexgen.csv"
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def policy(row):
    name = POLICIES[row["system"]]
    if name == "flexgen":
        shares = {"wg": "w_gpu", "wc": "w_cpu", "cg": "c_gpu", "cc": "c_cpu", "hg": "h_gpu", "hc": "h_cpu"}
        words = [f"{key}: {row[column]}" for key, column in shares.items()]
        words.append("variant: flexllmgen")
        words.append(f"cpu_attention: {'true' if row['cpu_attention'] == '1' else 'false'}")
    else:
        words = [f"weights: {'device' if row['w_gpu'] == '100' else 'host' if row['w_cpu'] == '100' else 'disk'}"]
    return "policy={name: " + ", ".join([name, *words]) + "}"


def memory(row):
    """Which of the host's memory is pinned: weights where the system pins them, and buffers."""
    weights = WEIGHTS_GIB[row["model"]] * int(row["w_cpu"]) / 100 if row["pinned_weights"] == "1" else 0
    pinned = round(min(HOST_GIB - 1, 4 + 1.05 * weights))
    return [f"machine.tiers.host_pinned.capacity={pinned}GiB", f"machine.tiers.host_pageable.capacity={HOST_GIB - pinned}GiB",
            "machine.tiers.host_pageable.bandwidth=128GB/s"]


def settings(row):
    words = [f"workload.model={row['model']}", f"workload.batch={row['gpu_batch']}", f"workload.micro_batches={row['gpu_batches']}",
             f"generate.prompt={row['prompt']}", f"generate.new_tokens={row['new']}", policy(row), *memory(row)]
    if row["compress_cache"] == "1":
        words += ["generate.cache_bits=4", "generate.codes=eager"]
    if row["compress_weights"] == "1":
        words += ["workload.compress={weights: 4}", "generate.codes=eager"]
    return words


def simulate(row):
    flags = [flag for word in settings(row) for flag in ("--set", word)]
    scenario = ROOT / "benchmarks" / "published" / "inference" / "opt_t4.yaml"
    done = subprocess.run([ROOT / "build" / "bin" / "tandem", "simulate", scenario, "--quiet", "--json", "-", *flags],
                          capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{row['system']} {row['model']} {row['prompt']}: {done.stderr}")
    return json.loads(done.stdout)["generation"]


def rows(wanted=lambda row: True):
    found = []
    for row in table():
        if row["system"] not in POLICIES or not wanted(row):
            continue
        of = simulate(row)
        found.append(Row(row["system"], row["model"], int(row["prompt"]), float(row["tokens_per_s"]) if row["tokens_per_s"] else None,
                         of["tokens_per_s"], of["first_token_s"], (row["system"], row["model"], row["prompt"]) in CALIBRATED))
    return found
