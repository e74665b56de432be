#!/usr/bin/env python3
"""Simulates published comparisons of offload systems and prints predicted beside published figures.

Prints the table of docs/systems.md. With --check, ends with 1 where the page holds other rows.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "systems.md"

# A run: a scenario and what is set in it.
V100, H100 = "stronghold_v100_vm", "deep_optimizer_states_h100"
PLAIN = "policy={name: resident}"
# Nothing computes while gradients leave: in DeepSpeed 0.5.8, STRONGHOLD's baseline (runtime/zero/stage2.py: copies on the
# stream that computes, in reduce_ipg_grads, and a look at each gradient's sum, in update_overflow_tracker_for_param_grad),
# and in 0.13.3, that of Deep Optimizer States (runtime/zero/stage3.py, partition_grads: a copy_ that the thread waits for).
ZERO_OFFLOAD = "policy={name: zero_offload, variant: deepspeed, gradient_copies: blocking}"
# ZeRO-3 of 0.5.7 and 0.5.8 fetches module by module: at most a linear map of 4 h^2 parameters at once, as in
# zero_infinity_dgx2. Before a module computes it waits for all that the device does, gradients' copies as well
# (runtime/zero/stage3.py, _synchronize_communication); before each parameter's copy, too, prefetched or not, so that
# most of them leave the device idle (partition_parameters.py, _allgather_param, _allgather_params_coalesced).
ZERO_INFINITY = ("policy={name: zero_infinity, variant: deepspeed, gradient_copies: blocking, prefetch: 0, parameters: host, "
                 "gradients: host, optimizer_states: host}", "workload.linear_tiles=2")
INTERLEAVED = "policy={name: deep_optimizer_states, stride: 2}"


def gpt(layers, policy, *changes):
    return V100, f"workload.layers={layers}", policy, *changes


# What STRONGHOLD's CPU updates in a second: its Adam is compiled without vector instructions
# (SHv0/megatron/optimizer/__init__.py, load_utils), DeepSpeed's, of which the profile's rate is, with AVX-512. From its
# logs of 40 and 92 layers, which are no rows here: 252.1 ms for each further layer of 50.4 M parameters, of which 41.0
# are its forward (Megatron-LM's log).
SLOW_ADAM = "machine.cpu.optimizer.rate=0.238Gparameters/s"


def stronghold(layers, window=15):
    """A run of the artifact, whose window is so many blocks beside the embedding (there, gl_get_megatron_optimizer)."""
    return gpt(layers, f"policy={{name: stronghold, window: {window + 1}}}", SLOW_ADAM)


# What, figure, published samples/s, run.
THROUGHPUTS = [
    ("plain training, 1.7 B (calibrated)", "8a", 0.7496, gpt(32, PLAIN)),
    ("zero_offload, 1.7 B", "8a", 0.3711, gpt(32, ZERO_OFFLOAD)),
    ("zero_offload, 2.5 B", "7a", 0.2523, gpt(48, ZERO_OFFLOAD)),
    ("zero_infinity, 1.7 B", "8a", 0.3587, gpt(32, *ZERO_INFINITY)),
    ("zero_infinity, 2.5 B", "7a", 0.2439, gpt(48, *ZERO_INFINITY)),
    ("stronghold, 0.9 B", "8b", 4 / 2.6273, stronghold(16)),
    ("stronghold, 1.3 B", "8b", 4 / 4.1661, stronghold(24)),
    ("stronghold, 1.7 B", "8a", 0.6647, stronghold(32)),
    ("stronghold, 2.5 B", "7a", 0.3999, stronghold(48)),
    ("stronghold, 4.0 B", "7a", 0.2271, stronghold(78)),
    ("stronghold, 1.7 B, window 2", "9", 4 / 7.9089, stronghold(32, window=2)),
    ("stronghold, 1.7 B, window 8", "9", 4 / 7.2305, stronghold(32, window=8)),
    ("zero_offload, 6 B", "log", 1 / 9.4816, (H100, ZERO_OFFLOAD)),
    ("deep_optimizer_states, 6 B, stride 2", "log", 1 / 6.8183, (H100, INTERLEAVED)),
]

RTX_4090 = "lsp_offload_rtx_4090"
# LSP-Offload's run of GPT-2 Large.
GPT2_LARGE = ("workload.layers=36", "workload.hidden=1280", "workload.heads=20", "workload.vocabulary=50257",
              "workload.sequence=512", "workload.tied_embedding=true")
LSP_GPT2 = (RTX_4090, *GPT2_LARGE, "policy.rank=512", "policy.nonzeros=16")
# Its ZeRO-Offload looks for NaN in each gradient on the stream that copies (para_offload_modules.py, _d2h_comm).
BLOCKING = "policy={name: zero_offload, gradient_copies: blocking}"
LSP_ZERO, LSP_ZERO_GPT2 = (RTX_4090, BLOCKING), (RTX_4090, *GPT2_LARGE, BLOCKING)
THROUGHPUTS += [
    ("lsp_offload, 6.7 B", "LSP", 4 / 1.9677, (RTX_4090,)),
    ("zero_offload, 6.7 B", "LSP", 4 / 4.1077, LSP_ZERO),
    ("lsp_offload, 0.8 B (machine not stated)", "csv", 4 / 0.1105, LSP_GPT2),
    ("zero_offload, 0.8 B (machine not stated)", "csv", 4 / 0.124, LSP_ZERO_GPT2),
]



def bert_base(batch, *changes):
    """BERT-Base as G10's artifact simulates it."""
    return "g10_a100", f"workload.batch={batch}", *changes


def with_host(gib, batch):
    """What G10 may take of the host. Without any, its copies still pass through it: room for four of the largest values."""
    return (f"limits.host_bytes={gib}GiB",) if gib else ("policy.host=false", f"limits.host_bytes={batch // 64}GiB")


# Batch: the artifact's seconds a step with all on the device, and with G10. Host in GiB and batch: with G10.
IDEAL = ("machine.tiers.device.capacity=2TB", PLAIN)
G10_IDEAL_S = {128: 7.087, 256: 8.743, 512: 11.799, 768: 16.948, 1024: 20.929}
G10_S = {128: 7.087, 256: 8.773, 384: 13.858, 512: 17.607, 768: 26.63, 1024: 47.061}
G10_HOST_S = {(64, 512): 17.607, (32, 256): 8.773, (32, 384): 13.858, (32, 512): 28.774, (16, 256): 8.773, (16, 384): 20.348,
              (16, 512): 38.068, (0, 256): 12.342, (0, 384): 31.123, (0, 512): 51.286}
THROUGHPUTS += [
    *((f"plain training, BERT-Base, batch {batch:,}{' (calibrated)' if batch in (128, 1024) else ''}", "G10 15", batch / seconds,
       bert_base(batch, *IDEAL)) for batch, seconds in G10_IDEAL_S.items()),
    *((f"g10, BERT-Base, batch {batch:,}", "G10 15", batch / seconds, bert_base(batch)) for batch, seconds in G10_S.items()),
    *((f"g10, BERT-Base, batch {batch}, {gib} GiB of the host", "G10 16", batch / seconds, bert_base(batch, *with_host(gib, batch)))
      for (gib, batch), seconds in G10_HOST_S.items()),
]

# A node of 16 GPUs, each with a part of every parameter.
DGX2 = "zero_infinity_dgx2"


def model(layers, hidden, batch, home):
    """A model of figure 5c, with its parameters and gradients at home there."""
    policy = f"policy={{name: zero_infinity, variant: deepspeed, parameters: {home}, gradients: {home}, optimizer_states: disk}}"
    sizes = (f"workload.layers={layers}", f"workload.hidden={hidden}", f"workload.batch={batch}")
    return 12 * layers * hidden**2, (DGX2, *sizes, policy)


# Between nodes rings cross InfiniBand: 80% of its 800 Gb/s a node (ZeRO-Infinity, section 8).
BETWEEN_NODES = "machine.collective.bandwidth=80GB/s"
FOUR_NODES = ("workload.devices=64", BETWEEN_NODES)


def on_host(layers, hidden, batch, *changes, prefetch="auto"):
    """A model with all states on the host."""
    policy = f"policy={{name: zero_infinity, variant: deepspeed, parameters: host, gradients: host, optimizer_states: host, prefetch: {prefetch}}}"
    sizes = (f"workload.layers={layers}", f"workload.hidden={hidden}", f"workload.heads={hidden // 128}", f"workload.batch={batch}")
    return 12 * layers * hidden**2, (DGX2, *sizes, policy, *changes)


ONE_V100 = "zero_offload_dgx2"
# ZeRO-Offload's models (its table 3): layers, hidden, micro-batch of figure 8, where 512 sequences are a batch.
OFFLOADED = {"1 B": (20, 2048, 32), "2 B": (40, 2048, 32), "4 B": (64, 2304, 32), "6 B": (53, 3072, 16),
             "8 B": (72, 3072, 16), "10 B": (50, 4096, 10), "11 B": (55, 4096, 8), "13 B": (65, 4096, 4)}


def offloaded(size, *changes, batch=None):
    """Of ZeRO-Offload's figures: `batch` sequences at once, or 512 in micro-batches. Heads are 128 wide."""
    layers, hidden, micro_batch = OFFLOADED[size]
    sizes = {"layers": layers, "hidden": hidden, "heads": hidden // 128, "batch": batch or micro_batch,
             "micro_batches": 1 if batch else 512 // micro_batch}
    return 12 * layers * hidden**2, (ONE_V100, *(f"workload.{key}={value}" for key, value in sizes.items()), *changes)


def on_gpus(size, gpus, *changes, micro_batches=1):
    """The same on several GPUs, which divide gradients and states (ZeRO-2): a micro-batch of figure 8 on each."""
    network = (BETWEEN_NODES,) if gpus > 16 else ()
    return offloaded(size, f"workload.micro_batches={micro_batches}", f"workload.devices={gpus}", "workload.partition=states",
                     "machine.host.devices=16", *network, *changes)


# 512 sequences on a node of 16 are so many micro-batches, of 10 sequences 3.2.
ON_A_NODE = {"1 B": 1, "2 B": 1, "8 B": 2, "10 B": 3, "13 B": 8}

L2L = "policy={name: l2l, optimizer: device}"
DELAYED = "policy={name: zero_offload, delayed_update: true}"

# PatrickStar's models (its examples/model_builder.py; 30 B is not there: the width of 20 and 40 B): layers, hidden.
CHUNKED = {"1 B": (20, 2048), "2 B": (40, 2048), "4 B": (64, 2304), "6 B": (53, 3072), "8 B": (72, 3072),
           "10 B": (50, 4096), "12 B": (60, 4096), "15 B": (78, 4096), "20 B": (25, 8192), "30 B": (37, 8192),
           "40 B": (50, 8192), "50 B": (62, 8192), "60 B": (75, 8192)}
# Machine, its batches (a node of the first has no script of its own), the 90% that PatrickStar takes of what CUDA has.
SUPERPOD, YARD = ("superpod_a100", (4, 8, 16), "35.5GiB"), ("yard_v100", (4, 8, 16, 32), "28.5GiB")
# Of its baseline, DeepSpeed 0.5.7, the update is more than Adam alone, of which the profiles' rates are: what a log shows
# on a DGX-2 (dgx2_v100), in proportion to DRAM.
ZERO_3_V100 = (*ZERO_INFINITY, "limits.device_bytes=31GiB", "machine.cpu.optimizer.rate=1.64Gparameters/s")
ZERO_3_A100 = (*ZERO_INFINITY, "limits.device_bytes=39GiB", "machine.cpu.optimizer.rate=2.6Gparameters/s")


def best_batch(machine, size, *changes, gpus=1):
    """Of PatrickStar's benchmark, whose figures are of the best batch: parameters, with embeddings, and a run for each.

    Several GPUs divide every parameter and its states."""
    name, batches, device = machine
    layers, hidden = CHUNKED[size]
    run = ("patrickstar_a100", f"machine={name}", f"limits.device_bytes={device}", f"workload.layers={layers}",
           f"workload.hidden={hidden}", *changes)
    if gpus > 1:
        run = (*run, f"workload.devices={gpus}", "workload.partition=parameters")
    return 12 * layers * hidden**2 + 50257 * hidden, [(*run, f"workload.batch={batch}") for batch in batches]


# Published TFLOPS of PatrickStar on several GPUs together.
CHUNKS_ON_V100 = {2: {"2 B": 100.21, "8 B": 83.92, "10 B": 86.54, "12 B": 75.52}, 4: {"2 B": 212.31, "8 B": 211.96, "10 B": 237.25, "12 B": 224.59},
                  8: {"2 B": 425, "8 B": 467, "10 B": 494, "12 B": 482, "15 B": 465}}
CHUNKS_ON_A100 = {2: {"6 B": 237, "15 B": 210, "30 B": 137}, 4: {"6 B": 534, "15 B": 519, "30 B": 524, "60 B": 333},
                  8: {"6 B": 1180, "15 B": 1134, "30 B": 1132, "60 B": 920}}


# What nothing leaves: the step is all computing, and superpod_a100's efficiency is calibrated on it.
CALIBRATED_A100 = "patrickstar, 6 B, 8 A100"


def on_several(name, published, machine, *changes, gpu):
    """Rows of PatrickStar's benchmark on several GPUs."""
    rows_of = [(f"{name}, {size}, {gpus} {gpu}", f"PS {gpu}", rate / gpus, *best_batch(machine, size, *changes, gpus=gpus))
               for gpus, rates in published.items() for size, rate in rates.items()]
    return [(what + " (calibrated)" * (what == CALIBRATED_A100), *row) for what, *row in rows_of]


# What, figure, published TFLOPS a GPU, parameters, run, or several of which the fastest counts. The papers count 8 flops
# a parameter and token.
FLOPS_PER_PARAMETER, SEQUENCE = 8, 1024
RATES = [
    ("zero_offload, 2 B, batch 512", "ZO 8", 36, *offloaded("2 B")),
    ("zero_offload, 4 B, batch 512", "ZO 8", 37, *offloaded("4 B")),
    ("zero_offload, 6 B, batch 512", "ZO 8", 37.2, *offloaded("6 B")),
    ("zero_offload, 8 B, batch 512", "ZO 8", 41.7, *offloaded("8 B")),
    ("zero_offload, 10 B, batch 512 (calibrated)", "ZO 8", 41.1, *offloaded("10 B")),
    *((f"zero_offload, {size}, 16 GPUs, batch 512", "ZO 10", rate, *on_gpus(size, 16, micro_batches=ON_A_NODE[size]))
      for size, rate in (("1 B", 35.8), ("2 B", 35.8), ("8 B", 41.1), ("10 B", 41.1), ("13 B", 34.2))),
    ("plain training, ZeRO-2, 1 B, 16 GPUs, batch 512", "ZO 10", 34.8, *on_gpus("1 B", 16, PLAIN)),
    *((f"zero_offload, 10 B, {gpus} GPU{'s' if gpus > 1 else ''}, batch 10 on each", "ZO 11", rate, *on_gpus("10 B", gpus))
      for gpus, rate in ((1, 35), (2, 32), (4, 30), (8, 29.8), (16, 31), (32, 34), (64, 33.4), (128, 31.3))),
    *((f"l2l, {size}, batch 512, updates on the device", "ZO 8", rate, *offloaded(size, L2L))
      for size, rate in (("2 B", 30.8), ("4 B", 32), ("6 B", 33.9), ("8 B", 35.9), ("10 B", 35), ("11 B", 32.8), ("13 B", 29.5))),
    ("zero_offload, 2 B, batch 8", "ZO 9", 27, *offloaded("2 B", batch=8)),
    ("zero_offload, 2 B, batch 8, delayed update", "ZO 9", 31.2, *offloaded("2 B", DELAYED, batch=8)),
    ("zero_offload, 6 B, batch 8", "ZO 9", 29.3, *offloaded("6 B", batch=8)),
    ("zero_offload, 8 B, batch 8", "ZO 9", 34.6, *offloaded("8 B", batch=8)),
    ("zero_offload, 10 B, batch 8", "ZO 9", 34.8, *offloaded("10 B", batch=8)),
    ("zero_offload, 10 B, batch 8, delayed update", "ZO 9", 39, *offloaded("10 B", DELAYED, batch=8)),
    ("zero_infinity, 10 B, 16 GPUs, all on the host", "5c", 45, *on_host(50, 4096, 8)),
    ("zero_infinity, 100 B, 16 GPUs, states on NVMe", "5c", 41, *model(125, 8192, 24, "host")),
    ("zero_infinity, 0.5 T, 16 GPUs, all on NVMe", "5c", 33, *model(124, 18432, 8, "disk")),
    ("zero_infinity, 1 T, 16 GPUs, all on NVMe", "5c", 27, *model(128, 25600, 7, "disk")),
    ("plain training, 1 B, V100 (calibrated)", "PS V100", 55.5, *best_batch(YARD, "1 B", PLAIN, "limits.device_bytes=31GiB")),
    *((f"patrickstar, {size}, V100", "PS V100", rate, *best_batch(YARD, size))
      for size, rate in (("1 B", 54.6), ("2 B", 50.57), ("4 B", 48.39), ("6 B", 46.31), ("8 B", 42.24), ("10 B", 45.69), ("12 B", 33.78))),
    ("zero_infinity, 1 B, V100, all on the host", "PS V100", 43, *best_batch(YARD, "1 B", *ZERO_3_V100)),
    *((f"patrickstar, {size}, A100", "PS A100", rate, *best_batch(SUPERPOD, size))
      for size, rate in (("6 B", 114), ("10 B", 118), ("15 B", 113), ("20 B", 93), ("30 B", 57), ("40 B", 56), ("50 B", 67))),
    *((f"zero_infinity, {size}, A100, all on the host", "PS A100", rate, *best_batch(SUPERPOD, size, *ZERO_3_A100))
      for size, rate in (("6 B", 83.6), ("10 B", 87.6), ("15 B", 80.7))),
    *on_several("patrickstar", CHUNKS_ON_V100, YARD, gpu="V100"),
    *on_several("patrickstar", CHUNKS_ON_A100, SUPERPOD, gpu="A100"),
    *on_several("zero_infinity", {2: {"10 B": 181}, 4: {"10 B": 341}, 8: {"10 B": 738}}, SUPERPOD, *ZERO_3_A100, gpu="A100"),
]

# MLP-Offload's models, by its names, as GPTs of as many parameters as its logs count: layers, hidden, heads, layers whose
# states its buffers on the host hold, and seconds a step: of DeepSpeed with all but parameters on NVMe, and its own.
ON_NVME = {"40 B": (151, 5120, 40, 25, 242.281, 101.717), "52 B": (54, 8192, 64, 12, 238.598, 92.173),
           "70 B": (84, 8192, 64, 13, 370.562, 151.338), "100 B": (130, 8192, 64, 9, 572.027, 275.529),
           "120 B": (84, 10240, 80, 6, 550.361, 288.179)}
DEEPSPEED_NVME = ("machine=h100_node_nvme", "policy={name: zero_infinity, variant: deepspeed, parameters: device, "
                  "gradients: disk, optimizer_states: disk}")


def on_nvme(size, *changes):
    """A model of MLP-Offload's logs under it, or with other changes than its buffers."""
    layers, hidden, heads, buffers, _, _ = ON_NVME[size]
    sizes = (f"workload.layers={layers}", f"workload.hidden={hidden}", f"workload.heads={heads}")
    return "mlp_offload_h100", *sizes, *(changes or (f"policy.buffers={buffers}",))


# What, figure, published seconds a step, run with one sequence a step.
STEPS = [
    *((f"zero_infinity, {size}, all but parameters on NVMe" + (" (calibrated)" if size == "70 B" else ""), "MLP", sizes[4],
       on_nvme(size, *DEEPSPEED_NVME)) for size, sizes in ON_NVME.items()),
    *((f"mlp_offload, {size}", "MLP", sizes[5], on_nvme(size)) for size, sizes in ON_NVME.items()),
]

# What, figure, published ratio of throughputs, run, run it is compared with.
RATIOS = [
    *((f"zero_infinity / the same without prefetch, 8 B, 64 GPUs, batch {batch}", "6d", ratio,
       on_host(10, 8192, batch, *FOUR_NODES)[1], on_host(10, 8192, batch, *FOUR_NODES, prefetch=0)[1])
      for batch, ratio in ((2, 1.29), (4, 1.185), (8, 1.09), (10, 1.055))),
    ("stronghold / plain training, 1.7 B", "8a", 0.6647 / 0.7496, stronghold(32), gpt(32, PLAIN)),
    ("stronghold / zero_offload, 1.7 B", "8a", 0.6647 / 0.3711, stronghold(32), gpt(32, ZERO_OFFLOAD)),
    ("stronghold / zero_offload, 2.5 B", "7a", 0.3999 / 0.2523, stronghold(48), gpt(48, ZERO_OFFLOAD)),
    ("stronghold / zero_infinity, 2.5 B", "7a", 0.3999 / 0.2439, stronghold(48), gpt(48, *ZERO_INFINITY)),
    ("zero_offload / zero_infinity, 1.7 B", "8a", 0.3711 / 0.3587, gpt(32, ZERO_OFFLOAD), gpt(32, *ZERO_INFINITY)),
    ("deep_optimizer_states / zero_offload, 6 B", "log", 9.4816 / 6.8183, (H100, INTERLEAVED), (H100, ZERO_OFFLOAD)),
    ("delayed update / zero_offload, 2 B, batch 8", "ZO 9", 31.2 / 27, offloaded("2 B", DELAYED, batch=8)[1],
     offloaded("2 B", batch=8)[1]),
    ("delayed update / zero_offload, 10 B, batch 8", "ZO 9", 39 / 34.8, offloaded("10 B", DELAYED, batch=8)[1],
     offloaded("10 B", batch=8)[1]),
    ("zero_offload / l2l, 10 B, batch 512", "ZO 8", 41.1 / 35, offloaded("10 B")[1], offloaded("10 B", L2L)[1]),
    *((f"patrickstar / zero_infinity, {size}, {gpu}, each at its best batch", f"PS {gpu}", ratio, best_batch(machine, size)[1],
       best_batch(machine, size, *baseline)[1])
      for size, gpu, machine, baseline, ratio in (("1 B", "V100", YARD, ZERO_3_V100, 54.6 / 43),
                                                  ("6 B", "A100", SUPERPOD, ZERO_3_A100, 114 / 83.6))),
    *((f"mlp_offload / zero_infinity, {size}", "MLP", sizes[4] / sizes[5], on_nvme(size), on_nvme(size, *DEEPSPEED_NVME))
      for size, sizes in ON_NVME.items()),
    ("lsp_offload / zero_offload, 6.7 B", "LSP", 4.1077 / 1.9677, (RTX_4090,), LSP_ZERO),
    ("lsp_offload / zero_offload, 0.8 B (machine not stated)", "csv", 0.124 / 0.1105, LSP_GPT2, LSP_ZERO_GPT2),
    *((f"g10 / plain training, BERT-Base, batch {batch:,}", "G10 15", G10_IDEAL_S[batch] / G10_S[batch], bert_base(batch),
       bert_base(batch, *IDEAL)) for batch in (256, 512, 768, 1024)),
    ("deep_optimizer_states / zero_offload, up to", "abstract", 2.5, (H100, INTERLEAVED), (H100, ZERO_OFFLOAD)),
]



def product(device=0, host=0):
    """What a product keeps beside what its policy does, in bytes a parameter that a rank updates."""
    return f"product={{device_bytes_per_parameter: {device}, host_bytes_per_parameter: {host}}}"


# What, figure, published billions of parameters, hidden width, most layers that are tried, run without layers.
ON_HOST = "policy={name: zero_infinity, variant: deepspeed, parameters: host, gradients: host, optimizer_states: host}"
# ZeRO-Infinity, section 3: 20 bytes a parameter, fp16 gradients beside fp32 ones.
BOTH_GRADIENTS = product(host=2)
# Mixed precision in plain training and ZeRO-2: fp32 gradients beside fp16 ones, and all fp16 gradients in one buffer
# (Megatron-LM v1.1: fp16/fp16.py, model/distributed.py; DeepSpeed 0.3: runtime/zero/stage2.py, step; ZeRO, section 3.2).
FLAT_GRADIENTS = product(device=6)


def in_plain_training(hidden, *changes):
    """Of ZeRO-Offload's figure 7: its baselines with one sequence on a GPU."""
    return (ONE_V100, f"workload.hidden={hidden}", f"workload.heads={hidden // 128}", "workload.batch=1", "workload.micro_batches=1",
            "steps=1", PLAIN, FLAT_GRADIENTS, *changes)


def dividing_states(gpus):
    return f"workload.devices={gpus}", "workload.partition=states", "machine.host.devices=16"


SIZES = [
    ("largest model, zero_infinity, 16 GPUs, all on the host", "6a", 70, 8192, 256,
     (DGX2, "workload.hidden=8192", "workload.batch=1", "steps=1", "limits.disk_bytes=4KiB", ON_HOST, BOTH_GRADIENTS)),
    ("largest model, zero_offload, parameters on the device, micro-batch 4", "ZO 7", 13, 4096, 128,
     (ONE_V100, "workload.batch=4", "workload.micro_batches=1", "steps=1",
      "policy={name: zero_offload, parameters: device}")),
    ("largest model, zero_offload, 16 GPUs, parameters on the device, micro-batch 4", "6a", 13, 4096, 128,
     (ONE_V100, "workload.batch=4", "workload.micro_batches=1", "steps=1", *dividing_states(16),
      "policy={name: zero_offload, parameters: device}")),
    ("largest model, plain training, batch 1", "ZO 7", 1.4, 2048, 128, in_plain_training(2048)),
    ("largest model, ZeRO-2, 4 GPUs, batch 1", "ZO 7", 3.9, 2304, 128, in_plain_training(2304, *dividing_states(4))),
    ("largest model, ZeRO-2, 16 GPUs, batch 1", "ZO 7", 8, 3072, 128, in_plain_training(3072, *dividing_states(16))),
]

# What, figure, published ratio of parameters, embeddings included, most layers that are tried, run without layers, run it
# is compared with. Both of width 2,048.
LARGEST_HIDDEN = 2048
COTRAIN = ("cotrain_titan_rtx", "steps=1")
ON_DEVICE = "policy={name: zero_offload, variant: deepspeed, parameters: device}"
# The artifact's L2L updates on the CPU; all gradients are in one buffer on the device (megatron/model/distributed.py) and
# copied to the host for the update (megatron/optimizer/optimizer.py, CPU_FP32Optimizer).
L2L_6A = ("policy={name: l2l}", product(device=4, host=4))
# Its STRONGHOLD keeps pinned gradients of all layers (megatron/model/transformer.py). Its ZeRO-Offload updates with
# torch.optim.AdamW, which makes two temporaries of a whole tensor; DeepSpeed's ZeRO-3 has a copy of the parameters
# beside the masters, and PyTorch keeps the blocks that they were in before.
STRONGHOLD_6A = (V100, "policy={name: stronghold, window: 5}", product(host=4), "steps=1")
UNDER_OFFLOAD, UNDER_INFINITY = (V100, ON_DEVICE, product(host=8), "steps=1"), (V100, ON_HOST, product(host=8), "steps=1")
# The abstract's range is over systems that offload; the artifact's README has that machine's memory.
WHOLE_HOST = "machine.tiers.host_pinned.capacity=755GiB"
SIZE_RATIOS = [
    *((f"largest model, stronghold / {name}", "SH 6a", 5.141 / size, 256, STRONGHOLD_6A, run)
      for name, size, run in (("plain training", 1.717, (V100, PLAIN, "steps=1")), ("l2l", 4.033, (V100, *L2L_6A, "steps=1")),
                              ("zero_offload", 2.522, UNDER_OFFLOAD), ("zero_infinity", 2.522, UNDER_INFINITY))),
    *((f"largest model, stronghold / {name}, 755 GiB of the host", "SH", ratio, 1024, (*STRONGHOLD_6A, WHOLE_HOST), (*run, WHOLE_HOST))
      for name, ratio, run in (("zero_offload", 6.5, UNDER_OFFLOAD), ("zero_infinity", 1.9, UNDER_INFINITY))),
    ("largest model, cotrain / zero_offload, up to", "abstract", 1.07, 256, COTRAIN,
     (*COTRAIN, "policy={name: zero_offload, parameters: device}")),
]

# What, figure, peak of the artifact's log in GiB, tier, run.
PEAKS = [
    ("plain training, 1.7 B", "SH log", 29775.17 / 1024, "device0", gpt(32, PLAIN)),
    *((f"l2l, {size}", "SH log", peak / 1024, "device0", (*gpt(layers, L2L_6A[0]), L2L_6A[1]))
      for size, layers, peak in (("1.7 B", 32, 10785.59), ("4.0 B", 78, 21094.26))),
    *((f"zero_offload, {size}", "SH log", peak / 1024, "device0", gpt(layers, ON_DEVICE))
      for size, layers, peak in (("1.7 B", 32, 10359.84), ("2.5 B", 48, 13945.47))),
    *((f"zero_offload, {size}, host", "SH log", peak, "host", gpt(layers, ON_DEVICE))
      for size, layers, peak in (("1.7 B", 32, 29.88 - 3.17), ("2.5 B", 48, 42.12 - 3.07))),
    *((f"zero_infinity, {size}", "SH log", peak / 1024, "device0", gpt(layers, ON_HOST))
      for size, layers, peak in (("1.7 B", 32, 4971.76), ("2.5 B", 48, 5485.41))),
    *((f"stronghold, {size}, window {window}", "SH log", peak / 1024, "device0",
       stronghold(layers, window))
      for size, layers, window, peak in (("1.7 B", 32, 2, 7472.60), ("1.7 B", 32, 15, 23593.41), ("5.1 B", 100, 4, 12178.01))),
]

# What, figure, published ratio of gradients' bytes to what travels instead, from which step on, run. Of a training of
# 20 steps, with the warm-up of the announcement.
WARM_UP, TRAINING = 3, 20
BERT_LARGE = ("one_bit_adam_rtx_4090", f"policy.warmup_steps={WARM_UP}")
VOLUMES = [
    ("gradients / one_bit_adam, BERT-Large, warm-up of 15% and all", "1-bit", 5, 0, BERT_LARGE),
    ("gradients / one_bit_adam, BERT-Large, after the warm-up", "1-bit", 16, WARM_UP, BERT_LARGE),
]

# What the medians leave out: a row that the profile was fitted to, the best case of many, and times of a machine that
# may be another.
UNCOUNTED = ("(calibrated)", ", up to", "(machine not stated)")


DOES_NOT_FIT = 3


def simulate(run):
    """The run's result; None if it does not fit."""
    tandem = Path(os.environ.get("TANDEM_BUILD", ROOT / "build")) / "bin" / "tandem"
    scenario, *changes = run
    command = [tandem, "simulate", ROOT / "scenarios" / f"{scenario}.yaml", "--quiet", "--json", "-"]
    for change in changes:
        command += ["--set", change]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode == DOES_NOT_FIT:
        return None
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def most_layers(run, high):
    """Bisects for the most layers that fit, below `high`, which must not."""
    low = 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if simulate((*run, f"workload.layers={middle}")) else (low, middle)
    return low


def largest(run, high):
    """Parameters of the largest model of LARGEST_HIDDEN that fits."""
    return 12 * most_layers(run, high) * LARGEST_HIDDEN**2 + 50257 * LARGEST_HIDDEN


def volume_ratio(first, run):
    """Bytes that leave the device in plain training over those that leave it in the run, from step `first` on."""
    def bytes_out(steps):
        return simulate((*run, f"steps={steps}"))["bytes_moved"]["device0/d2h"]

    warm = bytes_out(WARM_UP)
    plain, compressed = warm - bytes_out(WARM_UP - 1), bytes_out(TRAINING) - warm
    return (TRAINING - first) * plain / ((WARM_UP - first) * plain + compressed)


def simulator():
    """One function that simulates each run once, and returns samples/s a GPU: of several runs, the most of those that fit."""
    known = {}

    def samples_per_s(run):
        runs = run if isinstance(run, list) else [run]
        for one in runs:
            if one not in known:
                result = simulate(one)
                gpus = sum(tier.startswith("device") for tier in result["peak_bytes"]) if result else 1
                known[one] = result["throughput"]["samples_per_s"] / gpus if result else 0
        most = max(known[one] for one in runs)
        if most == 0:
            sys.exit(f"{' '.join(runs[0])}: does not fit")
        return most

    return samples_per_s


def rows(every=1):
    """The table, or every so manieth row of each kind, without those that take dozens of runs each (what is the largest?)."""
    searches = slice(None) if every == 1 else slice(0)
    samples_per_s = simulator()
    orders = []
    lines, errors = ["| what | figure | published | predicted | error |", "|---|---|--:|--:|--:|"], {}

    def add(kind, what, figure, published, predicted):
        error = predicted / published - 1
        if not any(mark in what for mark in UNCOUNTED):
            errors.setdefault(kind, []).append(abs(error))
        lines.append(f"| {what} | {figure} | {published:.3f} | {predicted:.3f} | {error:+.0%} |")

    for what, figure, published, run in THROUGHPUTS[::every]:
        kind = "samples/s in G10's simulator" if figure.startswith("G10") else "samples/s"
        add(kind, what, figure, published, samples_per_s(run))
    for what, figure, published, run, other in RATIOS[::every]:
        predicted = samples_per_s(run) / samples_per_s(other)
        add("ratios", what, figure, published, predicted)
        orders.append((published > 1) == (predicted > 1))
    for what, figure, published, parameters, run in RATES[::every]:
        flops = FLOPS_PER_PARAMETER * parameters * SEQUENCE * samples_per_s(run)
        add("TFLOPS", f"{what}, TFLOPS a GPU", figure, published, flops / 1e12)
    for what, figure, published, run in STEPS[::every]:
        add("s a step", f"{what}, s a step", figure, published, 1 / samples_per_s(run))
    for what, figure, published, hidden, most, run in SIZES[searches]:
        add("sizes", f"{what}, B", figure, published, 12 * most_layers(run, most) * hidden**2 / 1e9)
    for what, figure, published, most, run, other in SIZE_RATIOS[searches]:
        predicted = largest(run, most) / largest(other, most)
        add("ratios of sizes", what, figure, published, predicted)
        orders.append((published > 1) == (predicted > 1))
    for what, figure, published, tier, run in PEAKS[::every]:
        add("peaks of memory", f"{what}, GiB", figure, published, simulate(run)["peak_bytes"][tier] / 2**30)
    for what, figure, published, first, run in VOLUMES[::every]:
        add("volumes", what, figure, published, volume_ratio(first, run))
    lines.append("")
    lines.append("Median error: " + ", ".join(f"{kind} {statistics.median(e):.0%}" for kind, e in errors.items()) + ".")
    lines.append(f"Which of two is faster: right in {sum(orders)} of {len(orders)} ratios.")
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true", help="compare with docs/systems.md")
    p.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth row of each kind, no largest sizes and no medians")
    arguments = p.parse_args()
    table = rows(arguments.every)
    print(table)
    pieces = [table] if arguments.every == 1 else [line for line in table.splitlines() if line.startswith("|")]
    page = PAGE.read_text(encoding="utf-8")
    if arguments.check and not all(piece in page for piece in pieces):
        sys.exit(f"{PAGE.name} holds other rows than these")


if __name__ == "__main__":
    main()
