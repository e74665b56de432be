"""Ratios that papers print of pipelines and of divided layers: is the sign right, and the order?"""
import itertools
import sys

from published import Row, simulate

FOLDER = "../parallel"
NOTES = """Speed-ups and efficiencies that come without times. Equal layers that send nothing stand for DeepSpeed's and GPipe's pipelines
(DeepSpeed's blog, 2020-09; GPipe's Table 2, Transformer-48, over 2 stages and one micro-batch). VGG-16 runs on PipeDream's Cluster-A
(SOSP 2019, figure 13): hosts of 4 V100s, in fp32, over one GPU. PipeDream's pipeline never drains: 64 micro-batches a step stand for
that. Megatron-LM's first weak scaling (2019, figure 5) is of GPTs of 1.2 to 8.3 billion parameters on DGX-2s
([dgx2_v100](../../hardware_profiles/dgx2_v100.yaml)), against one V100. No figure was taken from these rows. A ratio misses beyond
25%. Each paper's rows have the published order (else the script says so), and what is said to lose against one GPU loses.

Why rows miss: GPipe's row on 4 stages is above what four micro-batches can give on equal stages, 2.3, so its batch may have grown with
the stages."""


def step_s(scenario, **changes):
    return simulate(f"{FOLDER}/{scenario}", *[f"{key.replace('__', '.')}={value}" for key, value in changes.items()])["steady_step_s"]


def equal(stages, micro_batches):
    """Micro-batches a second."""
    return micro_batches / step_s("pipeline_equal", parallel__pipeline=stages, workload__micro_batches=micro_batches)


def vgg(schedule, micro_batches):
    """Of 4 stages, over one GPU."""
    return micro_batches * step_s("pipedream") / step_s("pipedream", parallel__pipeline=4, parallel__schedule=schedule, workload__micro_batches=micro_batches)


# Tensor: layers, width, heads.
SIZES = {1: (40, 1536, 16), 2: (54, 1920, 20), 4: (64, 2304, 24), 8: (72, 3072, 32)}


def flops_of_gpu(tensor, data):
    layers, hidden, heads = SIZES[tensor]
    seconds = step_s("zero_2", workload__layers=layers, workload__hidden=hidden, workload__heads=heads, workload__batch=8, workload__partition="none",
                     parallel__tensor=tensor, parallel__data=data)
    return 8 * layers * hidden ** 2 * (1 + 1024 / (6 * hidden) + 51200 / (16 * layers * hidden)) / tensor / seconds


def weak_scaling(tensor, data):
    return 100 * flops_of_gpu(tensor, data) / flops_of_gpu(1, 1)


WEAK = ((2, 1, 95), (8, 1, 77), (1, 64, 96), (2, 64, 83), (4, 64, 79), (8, 64, 74))


def another_order(found):
    """Pairs of one paper's rows that stand in another order than published."""
    return [(a.what, b.what) for a, b in itertools.combinations(found, 2)
            if a.system == b.system and (a.published < b.published) != (a.predicted < b.predicted)]


def rows(quick=False):
    found = [Row("DeepSpeed", f"8 stages, {times} times as many micro-batches: % of the time busy", "", float(share),
                 100 * equal(8, 8 * times) / (8 * equal(1, 8 * times))) for times, share in ((4, 81), (8, 90))]
    if quick:
        return found
    found += [Row("GPipe", f"Transformer-48, {stages} stages, 4 micro-batches: speed-up", "", ratio, equal(stages, 4) / equal(2, 1))
              for stages, ratio in ((2, 1.7), (4, 3.2), (8, 4.8))]
    found += [Row("PipeDream", "VGG-16, 4 GPUs, one stage after another: speed-up", "", 0.9, vgg("naive", 1)),
              Row("PipeDream", "VGG-16, 4 GPUs, pipeline: speed-up", "", 2.6, vgg("1f1b", 64))]
    found += [Row("Megatron-LM", f"{tensor * data} GPUs, layers divided by {tensor}: % of one GPU's rate", "", float(share), weak_scaling(tensor, data))
              for tensor, data, share in WEAK]
    if wrong := another_order(found):
        sys.exit(f"ratios: another order than published: {wrong}")
    return found
