#!/usr/bin/env python3
"""Networks larger than the device that generate, under many placements: tokens a second beside what was predicted, and beside Hugging Face Accelerate.

    benchmarks/live/generate.py --tandem build/bin/tandem --machine hardware_profiles/h100_measured.yaml --output generate.json
    benchmarks/live/generate.py ... --accelerate     # the same shapes under Accelerate's cpu_offload, in the same run
    benchmarks/live/generate.py ... --images         # Stable Diffusion 1.5's unet
    benchmarks/live/generate.py ... --device cpu --small     # small shapes, to try this script

Shapes of OPT-6.7B with 8 GiB of the device, and of OPT-30B with 28 GiB (or with `--device-memory 16GiB`); weights are random. No placement is one that a profile was calibrated with.
Prints every row, those that miss by more than 10 % marked; then the median error and the 90th percentile. The rate is that of tokens behind the first.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

# Batch, micro-batches, policy.
PLACEMENTS = [
    (8, 1, "name: deepspeed_inference"), (8, 1, "name: deepspeed_inference, prefetch: 3"), (8, 1, "name: accelerate"), (32, 1, "name: deepspeed_inference"),
    (4, 3, "name: row_by_row"), (8, 1, "name: flexgen, wg: 30, cg: 100, hg: 100"), (8, 4, "name: flexgen, wg: 20, cg: 100, hg: 100"),
    (16, 2, "name: flexgen, wg: 10, cg: 0, hg: 100"), (16, 4, "name: flexgen, wg: 10, cg: 0, hg: 0"), (16, 4, "name: flexgen, wg: 10, cg: 0, hg: 100, cpu_attention: true"),
    (7, 5, "name: flexgen, wg: 25, cg: 40, hg: 60"), (1, 1, "name: flexgen, wg: 40, cg: 100, hg: 100"),
]
# Images: batch, micro-batches, guidance, policy.
IMAGES = [(4, 1, True, "name: resident"), (4, 2, True, "name: flexgen, wg: 30"), (8, 1, False, "name: flexgen, wg: 0"), (1, 1, True, "name: deepspeed_inference"),
          (2, 3, False, "name: row_by_row"), (1, 4, True, "name: accelerate")]
SHAPES = {"opt-6.7b": ("8GiB", "48GiB"), "opt-30b": ("28GiB", "110GiB")}  # of the device, and of the host
PROMPT, NEW = 300, 12
IMAGE_STEPS = 10
STEP = re.compile(r"([\d.]+) ms a step behind the first")
RATE = re.compile(r"([\d.]+) s of them once weights were there, then ([\d.]+) tokens/s")


def question(flags, model, batch, micro_batches, policy):
    workload = f"model: {model}, precision: fp16" if not flags.small else (
        "family: gpt, layers: 6, hidden: 192, heads: 6, vocabulary: 509, sequence: 400, precision: fp32")
    limits = "{device_bytes: 128MiB, host_bytes: 512MiB, cores: 2}" if flags.small else "{{device_bytes: {}, host_bytes: {}}}".format(flags.device_memory or SHAPES[model][0], SHAPES[model][1])
    return (f"machine: {flags.machine}\nlimits: {limits}\nworkload: {{{workload}, batch: {batch}, micro_batches: {micro_batches}}}\n"
            f"generate: {{prompt: {PROMPT}, new_tokens: {NEW}}}\npolicy: {{{policy}}}\n")


def ran(command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=580, check=False)


def measure(flags, folder, model, batch, micro_batches, policy):
    path = folder / "question.yaml"
    path.write_text(question(flags, model, batch, micro_batches, policy))
    row = {"model": model, "batch": batch, "micro_batches": micro_batches, "policy": policy}
    said = ran([flags.tandem, "simulate", path, "--json", "-", "--quiet"])
    if said.returncode != 0:
        return {**row, "error": said.stderr[-500:]}
    row["predicted"] = batch * micro_batches / json.loads(said.stdout)["generation"]["token_s"]
    done = ran([flags.tandem, "generate", path, "--tokens", "--device", flags.device])
    rate = RATE.search(done.stderr)
    if done.returncode != 0 or rate is None:
        return {**row, "error": done.stderr[-500:]}
    return {**row, "first_s": float(rate[1]), "measured": float(rate[2])}


def measure_images(flags, folder, batch, micro_batches, guided, policy):
    path = folder / "question.yaml"
    path.write_text(f"machine: {flags.machine}\nlimits: {{host_bytes: 8GiB}}\npolicy: {{{policy}}}\n"
                    f"workload: {{model: stable-diffusion-1.5-unet, precision: fp16, batch: {batch}, micro_batches: {micro_batches}}}\n"
                    f"generate: {{steps: {IMAGE_STEPS}{', guidance: 7.5' if guided else ''}}}\n")
    row = {"model": "sd-1.5", "batch": batch, "micro_batches": micro_batches, "policy": policy + (", guided" if guided else "")}
    said, done = ran([flags.tandem, "simulate", path, "--json", "-", "--quiet"]), ran([flags.tandem, "generate", path, "--device", flags.device])
    step = STEP.search(done.stderr)
    if said.returncode != 0 or step is None:
        return {**row, "error": said.stderr[-300:] + done.stderr[-500:]}
    images = batch * micro_batches / IMAGE_STEPS  # a step's share
    return {**row, "predicted": images / json.loads(said.stdout)["generation"]["step_s"], "measured": 1e3 * images / float(step[1]), "unit": "images/s"}


def accelerate(flags, model, batch):
    """Greedy, with a cache; weights on the host, brought module by module."""
    import torch
    import transformers
    from accelerate import cpu_offload
    sizes = {"opt-6.7b": (32, 4096, 32), "opt-30b": (48, 7168, 56)}[model] if not flags.small else (6, 192, 6)
    config = transformers.OPTConfig(num_hidden_layers=sizes[0], hidden_size=sizes[1], word_embed_proj_dim=sizes[1], ffn_dim=4 * sizes[1], num_attention_heads=sizes[2])
    torch.set_default_dtype(torch.float16 if flags.device == "cuda" else torch.float32)
    with torch.device("meta"):
        network = transformers.OPTForCausalLM(config)
    network = network.to_empty(device="cpu").eval()
    for weight in network.parameters():
        weight.data.zero_()  # what it takes does not depend on numbers
    cpu_offload(network, execution_device=torch.device(flags.device))
    prompt = torch.zeros((batch, PROMPT), dtype=torch.long, device=flags.device)
    times = [time.perf_counter()]
    with torch.no_grad():
        cache, tokens = transformers.DynamicCache(), prompt
        for _ in range(4):
            logits = network(tokens, past_key_values=cache, use_cache=True).logits[:, -1]
            tokens = logits.argmax(-1, keepdim=True)
            tokens.cpu()
            times.append(time.perf_counter())
    return {"model": model, "batch": batch, "policy": "Accelerate's cpu_offload", "first_s": times[1] - times[0], "measured": batch * 3 / (times[4] - times[1])}


def line(row):
    what = f"{row['model']:9} {row['batch']:3} x {row.get('micro_batches', 1)}  {row['policy']:66}"
    if "error" in row:
        return f"{what} failed: {row['error']}"
    if "predicted" not in row:
        return f"{what} {row['measured']:9.2f} tokens/s; first token after {row['first_s']:.2f} s"
    error = row["predicted"] / row["measured"] - 1
    return f"{what} {row['measured']:9.2f} {row.get('unit', 'tokens/s')}, predicted {row['predicted']:9.2f}: {error:+.1%}{'  <-- miss' if abs(error) > 0.1 else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tandem", default="build/bin/tandem")
    parser.add_argument("--machine", required=True)
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--models", default=",".join(SHAPES))
    parser.add_argument("--accelerate", action="store_true")
    parser.add_argument("--placements", default=",".join(str(i + 1) for i in range(len(PLACEMENTS))), help="by their numbers, from 1")
    parser.add_argument("--device-memory", help="instead of 8 and 28 GiB: with 16GiB for opt-30b, placements 6 and 12 do not fit")
    parser.add_argument("--images", action="store_true", help="Stable Diffusion's unet instead of text")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=pathlib.Path)
    flags = parser.parse_args()
    rows = []

    def add(row):
        rows.append(row)
        print(line(row), flush=True)
        if flags.output:
            flags.output.write_text(json.dumps(rows, indent=1) + "\n")

    if flags.images:
        with tempfile.TemporaryDirectory() as name:
            for case in IMAGES:
                add(measure_images(flags, pathlib.Path(name), *case))
    for model in [] if flags.images else flags.models.split(","):
        if flags.accelerate:
            for batch in (8, 32):
                add(accelerate(flags, model, batch))
        with tempfile.TemporaryDirectory() as name:
            for number in flags.placements.split(","):
                add(measure(flags, pathlib.Path(name), model, *PLACEMENTS[int(number) - 1]))
    errors = sorted(abs(row["predicted"] / row["measured"] - 1) for row in rows if "predicted" in row and "measured" in row)
    if errors:
        print(f"{len(errors)} placements: median error {statistics.median(errors):.1%}, 90th percentile {errors[int(0.9 * (len(errors) - 1))]:.1%}")
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
