#!/usr/bin/env python3
"""Writes scenarios/validation/*.yaml, the held-out scenarios of a GPU, from the tables below; scenarios/stand_ins/*.yaml,
some of them on machines that limits make of the one at hand; scenarios/systems/*.yaml, one network under every policy;
and scenarios/named/*.yaml and scenarios/unseen/*.yaml, models by their names, with the sizes, precisions and batches that
people give them.

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


# Models by name, and networks of sizes like theirs: workload, precision, GiB of the device and of the host, policy. Fewer
# blocks where one card or the time wants it; 78 GiB are a card's.
MOE = "family: moe, layers: 6, hidden: 1024, heads: 16, key_heads: 4, feed_forward: 2816, vocabulary: 32000, sequence: 1024, experts: 8"
LLAMA = "family: llama, layers: 16, hidden: 2048, heads: 32, key_heads: 8, feed_forward: 8192, vocabulary: 128256, sequence: 2048"
NAMED = [
    ("gpt2", "model: gpt2, batch: 12", "bf16", 70, 24, "resident"),
    ("gpt2_unpadded", "model: gpt2, vocabulary_multiple: 1, batch: 12", "bf16", 70, 24, "resident"),
    ("gpt2_xl", "model: gpt2-xl, batch: 4, recompute: block", "bf16", 24, 48, "zero_offload"),
    ("bert_large", "model: bert-large, batch: 16", "fp16", 12, 24, "balanced"),
    ("gpt_j_4_blocks", "model: gpt-j-6b, layers: 4, batch: 1", "bf16", 24, 48, "zero_offload"),
    ("gpt2", "model: gpt2, batch: 4", "fp32", 70, 24, "resident"),
    ("opt_1_3b", "model: opt-1.3b, batch: 2, recompute: block", "bf16", 16, 48, "zero_infinity"),
    ("llama_1b", LLAMA + ", batch: 1", "bf16", 14, 48, "balanced"),
    ("t5_base", "model: t5-base, batch: 8", "bf16", 70, 24, "resident"),
    ("vit_l_16", "model: vit-l-16, batch: 32", "bf16", 70, 24, "resident"),
    ("gpt2", "model: gpt2, batch: 1", "bf16", 70, 24, "resident"),
    ("gpt2", "model: gpt2, batch: 8", "fp16", 70, 24, "resident"),
    ("gpt2", "model: gpt2, batch: 1", "bf16", 8, 24, "zero_offload"),
    ("gpt2", "model: gpt2, batch: 8", "fp32", 24, 24, "zero_offload"),
    ("gpt2_unpadded", "model: gpt2, vocabulary_multiple: 1, batch: 2", "fp16", 70, 24, "resident"),
    ("gpt2_medium", "model: gpt2-medium, batch: 4", "bf16", 16, 24, "zero_offload"),
    ("gpt2_medium", "model: gpt2-medium, batch: 6", "fp16", 10, 24, "balanced"),
    ("gpt2_xl", "model: gpt2-xl, batch: 2, recompute: block", "bf16", 70, 48, "resident"),
    ("gpt2_xl", "model: gpt2-xl, batch: 1", "bf16", 12, 48, "balanced"),
    ("gpt2_xl_8_blocks", "model: gpt2-xl, layers: 8, batch: 1", "fp32", 24, 48, "zero_infinity"),
    ("gpt_4096_wide", "family: gpt, layers: 4, hidden: 4096, heads: 32, vocabulary: 50257, sequence: 1024, batch: 1, micro_batches: 4",
     "bf16", 24, 48, "zero_offload"),
    ("bert_large", "model: bert-large, batch: 8", "bf16", 70, 24, "resident"),
    ("bert_large", "model: bert-large, batch: 4", "fp32", 24, 24, "zero_offload"),
    ("bert_base", "model: bert-base, batch: 32", "bf16", 40, 24, "zero_infinity"),
    ("gpt_j_6_blocks", "model: gpt-j-6b, layers: 6, batch: 2, recompute: block", "bf16", 14, 48, "balanced"),
    ("opt_1_3b", "model: opt-1.3b, batch: 1", "bf16", 70, 48, "resident"),
    ("llama_1b_8_blocks", LLAMA.replace("layers: 16", "layers: 8") + ", batch: 2", "bf16", 70, 48, "resident"),
    ("t5_base", "model: t5-base, batch: 4", "fp32", 24, 24, "zero_offload"),
    ("vit_l_16", "model: vit-l-16, batch: 16", "fp16", 6, 24, "balanced"),
    ("whisper_small", "model: whisper-small, batch: 4", "bf16", 70, 24, "resident"),
    ("whisper_small", "model: whisper-small, batch: 2", "fp16", 24, 24, "zero_offload"),
    ("resnet_50", "model: resnet-50, batch: 64", "bf16", 70, 24, "resident"),
    ("clip_vit_b_32", "model: clip-vit-b-32, batch: 64", "bf16", 70, 24, "resident"),
    ("moe_8_experts", MOE + ", batch: 4", "bf16", 70, 48, "resident"),
    ("moe_8_experts", MOE + ", batch: 2", "bf16", 16, 48, "zero_offload"),
]


# Others, which nothing was mended by: what is told of how good predictions are comes from these.
UNSEEN = [
    ("bloom_560m", "model: bloom-560m, sequence: 1024, batch: 4", "bf16", 70, 24, "resident"),
    ("bloom_560m", "model: bloom-560m, sequence: 700, batch: 2", "fp16", 8, 24, "zero_offload"),
    ("bloom_1b7", "model: bloom-1b7, sequence: 1024, batch: 1", "bf16", 70, 48, "resident"),
    ("opt_125m", "model: opt-125m, batch: 8", "bf16", 70, 24, "resident"),
    ("opt_125m", "model: opt-125m, sequence: 1000, batch: 3", "fp32", 24, 24, "zero_offload"),
    ("opt_2_7b", "model: opt-2.7b, batch: 1, recompute: block", "bf16", 20, 64, "zero_offload"),
    ("gpt2_large", "model: gpt2-large, batch: 4", "bf16", 70, 24, "resident"),
    ("gpt2_large", "model: gpt2-large, batch: 2", "fp16", 12, 24, "balanced"),
    ("gpt2_medium", "model: gpt2-medium, batch: 1", "bf16", 70, 24, "resident"),
    ("gpt2_medium", "model: gpt2-medium, sequence: 500, batch: 5", "fp32", 70, 24, "resident"),
    ("qwen_0_5b", "model: qwen2.5-0.5b, sequence: 1500, batch: 2", "bf16", 70, 24, "resident"),
    ("qwen_1_5b", "model: qwen2.5-1.5b, sequence: 1000, batch: 1, recompute: block", "bf16", 14, 48, "balanced"),
    ("qwen_3b_12_blocks", "model: qwen2.5-3b, layers: 12, sequence: 2048, batch: 1", "bf16", 24, 48, "zero_offload"),
    ("gemma_2b_8_blocks", "model: gemma-2-2b, layers: 8, sequence: 1024, batch: 1", "bf16", 70, 48, "resident"),
    ("mistral_7b_4_blocks", "model: mistral-7b, layers: 4, sequence: 2048, batch: 1", "bf16", 24, 48, "zero_offload"),
    ("falcon_7b_4_blocks", "model: falcon-7b, layers: 4, sequence: 1024, batch: 1", "bf16", 24, 48, "zero_infinity"),
    ("llama_3_8b_3_blocks", "model: llama-3-8b, layers: 3, sequence: 1024, batch: 1", "bf16", 20, 48, "balanced"),
    ("bert_base", "model: bert-base, batch: 9", "fp16", 70, 24, "resident"),
    ("bert_base", "model: bert-base, batch: 7", "fp32", 24, 24, "zero_offload"),
    ("bert_large", "model: bert-large, batch: 3", "bf16", 10, 24, "zero_infinity"),
    ("t5_small", "model: t5-small, batch: 16", "bf16", 70, 24, "resident"),
    ("t5_large", "model: t5-large, batch: 2", "bf16", 16, 24, "zero_offload"),
    ("vit_b_16", "model: vit-b-16, batch: 50", "bf16", 70, 24, "resident"),
    ("vit_h_14", "model: vit-h-14, batch: 8", "bf16", 16, 24, "balanced"),
    ("whisper_base", "model: whisper-base, batch: 6", "bf16", 70, 24, "resident"),
    ("whisper_medium", "model: whisper-medium, batch: 2", "bf16", 24, 48, "zero_offload"),
    ("resnet_101", "model: resnet-101, batch: 32", "bf16", 70, 24, "resident"),
    ("resnet_18", "model: resnet-18, batch: 100", "bf16", 70, 24, "resident"),
    ("vgg_16", "model: vgg-16, batch: 24", "bf16", 70, 24, "resident"),
    ("clip_vit_l_14", "model: clip-vit-l-14, batch: 16", "bf16", 70, 24, "resident"),
    ("moe_7_experts", "family: moe, layers: 4, hidden: 896, heads: 14, key_heads: 2, feed_forward: 2432, vocabulary: 49152, sequence: 700, experts: 7, batch: 3",
     "bf16", 70, 48, "resident"),
    ("moe_7_experts", "family: moe, layers: 4, hidden: 896, heads: 14, key_heads: 2, feed_forward: 2432, vocabulary: 49152, sequence: 700, experts: 7, batch: 1",
     "bf16", 12, 48, "zero_offload"),
]


def named(runs):
    for number, (name, workload, precision, device, host, policy) in enumerate(runs, 1):
        batch = workload.split(", batch: ")[1].split(",")[0]
        yield f"{number:02}_{name}_b{batch}_{precision}_{device}gib_{policy}", (
            "# Held out of calibration; written by scripts/validation_scenarios.py.\n"
            "machine: h100_measured\n"
            f"limits: {{device_bytes: {device}GiB, host_bytes: {host}GiB}}\n"
            f"workload: {{{workload}, precision: {precision}}}\n"
            "optimizer: {name: adamw, learning_rate: 1e-4}\n"
            f"policy: {{{POLICIES[policy]}}}\n"
            "steps: 7\n"
        )


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
    write("named", named(NAMED))
    write("unseen", named(UNSEEN))


if __name__ == "__main__":
    main()
