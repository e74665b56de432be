"""What ranks of data parallel divide: ZeRO's table of memory, ZeRO-2 on DGX-2s, FSDP on A100s."""
from published import Row, simulate

FOLDER = "../parallel"


def run(scenario, changes):
    return simulate(f"{FOLDER}/{scenario}", *[f"{key}={value}" for key, value in changes.items()])


# Of ZeRO's Table 1: billions of parameters and a network of about as many (layers, width).
SIZES = {7.5: (37, 4096), 128: (80, 11520), 1000: (127, 25600)}
STAGES = {"optimizer": "ZeRO-1", "states": "ZeRO-2", "parameters": "ZeRO-3"}
# Billions, devices, stage, GB a device.
MEMORY = ((7.5, 1, "optimizer", 120), (7.5, 4, "optimizer", 52.5), (7.5, 4, "states", 41.3), (7.5, 4, "parameters", 30), (7.5, 16, "optimizer", 35.6),
          (7.5, 16, "states", 21.6), (7.5, 16, "parameters", 7.5), (7.5, 64, "optimizer", 31.4), (7.5, 256, "optimizer", 30.4),
          (7.5, 1024, "optimizer", 30.1), (7.5, 1024, "states", 15.1), (7.5, 1024, "parameters", 0.12), (128, 64, "optimizer", 536),
          (128, 64, "parameters", 32), (1000, 1024, "optimizer", 4011), (1000, 1024, "states", 2013), (1000, 1024, "parameters", 15.6))
MEMORY_NOTES = """ZeRO's Table 1 says what a device keeps of a model: parameters and gradients in 16 bits, Adam's states in 32 (Rajbhandari et al., SC
2020). Here it is the peak of a simulated step of a GPT of about as many parameters, scaled to as many. Its sequences have 16 tokens,
and a step two micro-batches, so that all gradients are there at once. Nothing is calibrated.

Why rows miss: ZeRO-3 gathers each layer before it computes, and the table does not count that. Of many devices it is most of what one
has."""


def memory_row(billions, devices, stage, published):
    layers, hidden = SIZES[billions]
    result = run("zero_memory", {"workload.layers": layers, "workload.hidden": hidden, "workload.partition": stage if devices > 1 else "none",
                                 "parallel.data": devices})
    predicted = result["peak_bytes"]["device0"] / 1e9 * billions * 1e9 / result["parameters"]
    return Row("ZeRO", f"{billions:g} billion parameters, {devices} device{'s' * (devices > 1)}, {STAGES[stage]}", "GB a device", float(published), predicted)


def memory(quick=False):
    return [memory_row(*row) for row in (MEMORY[1:4] if quick else MEMORY)]


# ZeRO-Offload's figures 10 and 11. Billions, layers, width, samples of a micro-batch, micro-batches, GPUs, partition, TFLOPS a GPU.
ON_V100 = ((1, 20, 2048, 32, 1, 16, "none", 26.9), (1, 20, 2048, 32, 1, 16, "states", 34.8), (2, 40, 2048, 32, 1, 16, "states", 35.2),
           (8, 72, 3072, 16, 2, 16, "states", 36.9), (10, 50, 4096, 10, 1, 32, "states", 30), (10, 50, 4096, 10, 1, 64, "states", 34.5),
           (10, 50, 4096, 10, 1, 128, "states", 40))
NAMES = {"none": "PyTorch", "states": "ZeRO-2"}
V100_NOTES = """ZeRO-Offload's authors measured plain PyTorch and ZeRO-2 on DGX-2s of 16 V100s (ATC 2021, figures 10 and 11, bars digitised to 0.5).
The machine is [dgx2_v100](../../hardware_profiles/dgx2_v100.yaml), whose efficiency is from another row, of ZeRO-Offload on one GPU; a
node has 800 Gb/s of InfiniBand. Flops are the paper's, 8 a parameter and token. Up to 16 GPUs a step has 512 samples.

Why rows miss: from 32 to 128 GPUs the paper's rates rise from 30 to 40. The more ranks divide the states, the more memory is left, so
batches may have grown: they are not printed, and here each GPU has 10 samples. PyTorch keeps all states on each GPU, which leaves
little room for a batch. That one is not printed either."""


def on_v100(quick=False):
    rows = []
    for billions, layers, hidden, batch, micro_batches, gpus, partition, published in ON_V100[-3:] if quick else ON_V100:
        step_s = run("zero_2", {"workload.layers": layers, "workload.hidden": hidden, "workload.heads": hidden // 128, "workload.batch": batch,
                                "workload.micro_batches": micro_batches, "workload.partition": partition, "parallel.data": gpus})["steady_step_s"]
        flops = 8 * 12 * layers * hidden ** 2 * batch * micro_batches * 1024
        rows.append(Row("ZeRO-2", f"{NAMES[partition]}, {billions} billion parameters, {gpus} GPUs", "TFLOPS a GPU", float(published), flops / step_s / 1e12))
    return rows


# FSDP's figure 7b: samples of a GPU, GPUs, TFLOPS a GPU.
ON_A100 = ((1, 128, 173.5), (1, 512, 170.4), (2, 128, 90), (2, 192, 186.5), (2, 512, 185))
FSDP_NOTES = """GPT-175B with divided parameters on DGX-like hosts of 8 A100s 80 GB (Zhao et al., VLDB 2023, figure 7b, digitised to 0.5). The machine
is [selene_a100](../../hardware_profiles/selene_a100.yaml) with another efficiency of products, from the first row: 54% of the peak,
where Megatron-LM's fused kernels and their profile have 80%. Flops are counted as by Megatron-LM, with recompute.

Why rows miss: with two samples on 128 GPUs the memory is full there, and PyTorch's allocator gives its cached blocks back again and
again. Times are judged here, not memory. Two samples a GPU also reach 7% more there than one, and here products of one sample are as
fast as larger ones."""


def on_a100(quick=False):
    rows = []
    for batch, gpus, published in ON_A100[:2] if quick else ON_A100:
        step_s = run("fsdp_gpt", {"workload.batch": batch, "parallel.data": gpus})["steady_step_s"]
        layers, hidden, vocabulary, sequence = 96, 12288, 50000, 2048
        flops = 96 * batch * sequence * layers * hidden ** 2 * (1 + sequence / (6 * hidden) + vocabulary / (16 * layers * hidden))
        rows.append(Row("FSDP", f"GPT-175B, {gpus} GPUs, {batch} sample{'s' * (batch > 1)} each", "TFLOPS a GPU", float(published), flops / step_s / 1e12,
                        (batch, gpus) == (1, 128)))
    return rows
