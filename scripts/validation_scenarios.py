#!/usr/bin/env python3
"""Writes scenarios/validation/*.yaml, the held-out scenarios of a GPU, from the tables below; scenarios/stand_ins/*.yaml,
some of them on machines that limits make of the one at hand; and scenarios/systems/*.yaml, one network under every policy.

No hidden size is one of calibration/gpu_design.cpp. Host memory stays under 100 GiB. The names' numbers are the order in
which `tandem validate` measures: first a dozen that differ most, then by size of the model.
"""
from pathlib import Path

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"

# Model: layers, hidden, heads, vocabulary, GiB of host memory that its runs may take.
MODELS = {
    "127m": (12, 832, 13, 32768, 24),
    "151m": (12, 896, 14, 40960, 24),
    "377m": (24, 1088, 17, 32768, 24),
    "719m": (20, 1664, 13, 32768, 24),
    "1.2b": (24, 1920, 15, 50304, 24),
    "1.4b": (22, 2176, 17, 50304, 48),
    "2.9b": (32, 2688, 21, 50304, 48),
    "4.2b": (30, 3328, 26, 50304, 96),
    "7.9b": (36, 4224, 33, 50304, 96),
}
POLICIES = {
    "resident": "name: resident",
    "on_demand": "name: on_demand, home: host",
    "on_demand_cpu": "name: on_demand, home: host, optimizer: cpu",
    "zero_offload": "name: zero_offload",
    "zero_offload_delayed": "name: zero_offload, delayed_update: true",
    "zero_offload_deepspeed": "name: zero_offload, variant: deepspeed",
    "balanced": "name: balanced",
    "balanced_host": "name: balanced, resident_buckets: 0",
    "cotrain": "name: cotrain, separation: auto",
    "split_update": "name: split_update, device_percent: 50",
    "stronghold": "name: stronghold",
    "deep_optimizer_states": "name: deep_optimizer_states",
    "zero_infinity": "name: zero_infinity",
    "zero_infinity_disk": "name: zero_infinity, optimizer_states: disk",
    "mlp_offload_disk": "name: mlp_offload, optimizer_states: disk, buffers: 8",
    "protrain": "name: protrain",
    "ssdtrain": "name: ssdtrain",
    "patrickstar": "name: patrickstar",
    "l2l": "name: l2l",
    "g10": "name: g10",
    "lsp_offload": "name: lsp_offload",
    "one_bit_adam": "name: one_bit_adam, warmup_steps: 1",
    "balanced_tiles": "name: balanced",
} | {f"cotrain_k{k}": f"name: cotrain, separation: {k}" for k in (0, 4, 8, 12, 16, 24)}
# What some of them have besides.
WORKLOADS = {"balanced_tiles": ", loss_tiles: 8"}
# Family, model, batch, sequence, recompute, GiB of the device, policies; a star marks the first dozen.
GROUPS = [
    ("gpt", "127m", 1, 256, "none", 16, "*resident on_demand zero_offload balanced_host"),
    ("gpt", "127m", 8, 1024, "none", 16, "resident on_demand *zero_offload cotrain_k4"),
    ("gpt", "127m", 32, 512, "block", 16, "resident balanced_host cotrain_k8"),
    ("bert", "151m", 32, 256, "none", 24, "resident *zero_offload_deepspeed cotrain_k12"),
    ("bert", "151m", 4, 2048, "block", 16, "resident on_demand_cpu balanced_host"),
    ("gpt", "377m", 4, 2048, "block", 16, "*resident zero_offload cotrain"),
    ("gpt", "377m", 16, 1024, "none", 40, "resident zero_offload_delayed cotrain_k12"),
    ("bert", "377m", 16, 512, "none", 24, "resident *on_demand balanced_host"),
    ("gpt", "719m", 8, 1024, "none", 16, "on_demand zero_offload *cotrain_k8 balanced"),
    ("gpt", "719m", 1, 4096, "block", 16, "resident zero_offload_deepspeed balanced_host"),
    ("bert", "719m", 8, 512, "block", 16, "*resident zero_offload cotrain_k0"),
    ("gpt", "1.2b", 8, 1024, "block", 16, "zero_offload cotrain *balanced"),
    ("gpt", "1.2b", 4, 1024, "none", 40, "*resident zero_offload_delayed cotrain_k24 balanced_host"),
    ("gpt", "1.4b", 2, 2048, "none", 24, "on_demand *cotrain balanced"),
    ("bert", "1.4b", 16, 512, "block", 16, "zero_offload_deepspeed cotrain_k8 balanced_host"),
    ("gpt", "1.4b", 16, 512, "none", 80, "resident zero_offload cotrain_k16"),
    ("gpt", "2.9b", 8, 1024, "block", 24, "*zero_offload cotrain balanced"),
    ("gpt", "2.9b", 4, 512, "none", 80, "resident zero_offload_delayed balanced_host"),
    ("bert", "2.9b", 32, 256, "block", 40, "zero_offload cotrain_k16 *balanced"),
    ("gpt", "4.2b", 4, 2048, "block", 40, "zero_offload cotrain balanced"),
    ("bert", "4.2b", 8, 1024, "block", 80, "resident balanced_host"),
    ("gpt", "7.9b", 4, 1024, "block", 24, "cotrain_k0 balanced"),
]
# More limits, and the groups that run under them.
STAND_INS = {"4cores": "cores: 4", "8cores": "cores: 8", "pcie3": "h2d: 12GB/s, d2h: 12GB/s"}
STAND_IN_GROUPS = [
    ("gpt", "719m", 8, 1024, "none", 16, "zero_offload balanced"),
    ("gpt", "1.2b", 4, 1024, "none", 40, "zero_offload_delayed balanced_host"),
    ("bert", "1.4b", 16, 512, "block", 16, "cotrain_k8"),
]
# A network that fits on the device but for its optimizer states, under every policy that moves them; and where it fits.
SYSTEMS = [
    ("gpt", "1.4b", 8, 1024, "none", 24,
     "on_demand on_demand_cpu zero_offload zero_offload_delayed zero_offload_deepspeed cotrain stronghold "
     "deep_optimizer_states zero_infinity zero_infinity_disk mlp_offload_disk protrain patrickstar l2l g10 lsp_offload one_bit_adam split_update balanced_host "
     "balanced balanced_tiles"),
    ("gpt", "1.4b", 8, 1024, "none", 40, "resident ssdtrain"),
]


def scenarios(groups, limits=""):
    for family, model, batch, sequence, recompute, device, policies in groups:
        layers, hidden, heads, vocabulary, host = MODELS[model]
        for marked in policies.split():
            policy = marked.lstrip("*")
            block = "_recompute" if recompute == "block" else ""
            name = f"{family}_{model.replace('.', '_')}_b{batch}_s{sequence}{block}_{device}gib_{policy}"
            yield marked.startswith("*"), name, (
                "# Held out of calibration; written by scripts/validation_scenarios.py.\n"
                "machine: h200_measured\n"
                f"limits: {{device_bytes: {device}GiB, host_bytes: {host}GiB{limits}}}\n"
                f"workload: {{family: {family}, layers: {layers}, hidden: {hidden}, heads: {heads}, "
                f"vocabulary: {vocabulary}, sequence: {sequence}, batch: {batch}, precision: bf16, recompute: {recompute}{WORKLOADS.get(policy, '')}}}\n"
                "optimizer: {name: adamw, learning_rate: 1e-4}\n"
                f"policy: {{{POLICIES[policy]}}}\n"
                "steps: 7\n"
            )


def write(folder, named):
    (SCENARIOS / folder).mkdir(exist_ok=True)
    for old in (SCENARIOS / folder).glob("*.yaml"):
        old.unlink()
    for name, text in named:
        (SCENARIOS / folder / f"{name}.yaml").write_text(text)


def main():
    rows = sorted(scenarios(GROUPS), key=lambda row: not row[0])
    write("validation", [(f"{number:02}_{name}", text) for number, (_, name, text) in enumerate(rows, 1)])
    write("stand_ins", [(f"{machine}_{name}", text) for machine, limits in STAND_INS.items()
                        for _, name, text in scenarios(STAND_IN_GROUPS, ", " + limits)])
    write("systems", [(name, text) for _, name, text in scenarios(SYSTEMS)])


if __name__ == "__main__":
    main()
