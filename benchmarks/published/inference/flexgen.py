"""FlexGen's table of offloaded generation on one T4, and its suite's rows: what each system generates a second."""
import csv
import dataclasses
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
GIB = 1 << 30
HOST_GIB = 204
# OPT's weights in fp16, in GiB.
WEIGHTS_GIB = {"opt-6.7b": 12.5, "opt-30b": 55.9, "opt-175b": 324}
POLICIES = {"FlexGen": "flexgen", "FlexGen(c)": "flexgen", "Accelerate": "accelerate", "DeepSpeed ZeRO-Inference": "deepspeed_inference", "Petals": "petals"}
# Requests of batch 1 that Petals' clients have under way.
REQUESTS = 6
# Rows that a figure was taken from: the rate of reading codes, and that of memory that is not pinned.
CALIBRATED = {("FlexGen(c)", "opt-6.7b", "256"), ("FlexGen(c)", "opt-30b", "256")}


@dataclasses.dataclass
class Pick:
    """What `tandem plan` chooses where FlexGen's authors chose, both simulated."""
    system: str
    model: str
    prompt: int
    published_placement: float
    tokens_per_s: float
    words: str


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
    elif name == "petals":
        words = []
    else:
        words = [f"weights: {'device' if row['w_gpu'] == '100' else 'host' if row['w_cpu'] == '100' else 'disk'}"]
    return "policy: {name: " + ", ".join([name, *words]) + "}"


def memory(row):
    """Which of the host's memory is pinned: weights where the system pins them, and buffers."""
    weights = WEIGHTS_GIB[row["model"]] * int(row["w_cpu"]) / 100 if row["pinned_weights"] == "1" else 0
    pinned = round(min(HOST_GIB - 1, 4 + 1.05 * weights))
    return f"{{host_pinned: {{capacity: {pinned}GiB}}, host_pageable: {{capacity: {HOST_GIB - pinned}GiB, bandwidth: 128GB/s}}}}"


def question(row):
    published = f"{row['tokens_per_s']} tokens a second are published" if row["tokens_per_s"] else "no figure is published"
    where = "one T4" if row["gpus"] == "1" else f"each of {row['gpus']} T4s"
    return (f"# Question: what does {row['system']} generate a second with {row['model'].upper()} on {where}, of prompts of {row['prompt']} tokens? "
            f"{published[0].upper()}{published[1:]}.\n")


def swarm(row):
    """Layers on Petals' servers, in the 8 bits without which they would not fit; embeddings and the head are the clients'."""
    return (f"{question(row)}machine: flexgen_t4_swarm\n"
            f"workload: {{model: {row['model']}, batch: {row['gpu_batch']}, micro_batches: {REQUESTS}, precision: fp16, compress: {{weights: 8, modules: ['block*']}}}}\n"
            f"parallel: {{pipeline: {row['gpus']}, cut: layers}}\ngenerate: {{prompt: {row['prompt']}, new_tokens: {row['new']}}}\n{policy(row)}\n")


def scenario(row):
    if row["system"] == "Petals":
        return swarm(row)
    codes = row["compress_cache"] == "1" or row["compress_weights"] == "1"
    workload = f"model: {row['model']}, batch: {row['gpu_batch']}, micro_batches: {row['gpu_batches']}, precision: fp16"
    generating = f"prompt: {row['prompt']}, new_tokens: {row['new']}"
    if row["compress_weights"] == "1":
        workload += ", compress: {weights: 4}"
    if row["compress_cache"] == "1":
        generating += ", cache_bits: 4"
    if codes:
        generating += ", codes: eager"
    return (f"{question(row)}machine: {{derive_from: flexgen_t4, tiers: {memory(row)}}}\nworkload: {{{workload}}}\ngenerate: {{{generating}}}\n{policy(row)}\n")


def cell(row):
    """The scenario's file, of a row of the lecture's table: a prompt of 512 tokens."""
    system = row["system"].replace("(c)", "_4_bits").split()[0].lower()
    return ROOT / "scenarios" / "flexgen_t4" / f"{row['model'].replace('-', '_').replace('.', '_')}_{system}.yaml"


def cells():
    return {cell(row): scenario(row) for row in table() if row["system"] in POLICIES and row["prompt"] == "512"}


def answer(row, command, *flags):
    """The JSON of a command on the row's scenario."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "row.yaml"
        path.write_text(scenario(row), encoding="utf-8")
        done = subprocess.run([ROOT / "build" / "bin" / "tandem", command, path, "--quiet", "--json", "-", *flags],
                              capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{row['system']} {row['model']} {row['prompt']}: {done.stderr}")
    return json.loads(done.stdout)


def simulate(row):
    """Petals' authors' rate is that of a GPU."""
    of = answer(row, "simulate")["generation"]
    of["tokens_per_s"] /= int(row["gpus"])
    return of


def picks(wanted=lambda row: True):
    """Of FlexGen's rows, whose block and placement are searched; bits are as they are."""
    found = []
    for row in table():
        if POLICIES.get(row["system"]) != "flexgen" or not wanted(row):
            continue
        best = answer(row, "plan", "--exact", "--free", "policy,workload.batch,workload.micro_batches")["best"][0]
        found.append(Pick(row["system"], row["model"], int(row["prompt"]), simulate(row)["tokens_per_s"], best["tokens_per_s"], best["words"]))
    return found


def rows(wanted=lambda row: True):
    found = []
    for row in table():
        if row["system"] not in POLICIES or not wanted(row):
            continue
        of = simulate(row)
        found.append(Row(row["system"], row["model"], int(row["prompt"]), float(row["tokens_per_s"]) if row["tokens_per_s"] else None,
                         of["tokens_per_s"], of["first_token_s"], (row["system"], row["model"], row["prompt"]) in CALIBRATED))
    return found
