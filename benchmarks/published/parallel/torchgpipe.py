"""torchgpipe's benchmarks: ResNet-101 and U-Net in pipelines of 1 to 8 P40s."""
import functools
import shutil
import subprocess
import sys

import published
from published import Row, simulate

FOLDER = "../parallel"
# Network, experiment, samples of a micro-batch, micro-batches, stages, samples/s.
TABLE = (("resnet_101", "baseline", 118, 1, 1, 95.862), ("resnet_101", "pipeline-1", 110, 2, 1, 81.796), ("resnet_101", "pipeline-2", 15, 1667, 2, 135.539),
         ("resnet_101", "pipeline-4", 22, 256, 4, 265.958), ("resnet_101", "pipeline-8", 36, 150, 8, 411.662), ("unet", "baseline", 40, 1, 1, 28.5),
         ("unet", "pipeline-1", 40, 2, 1, 24.456), ("unet", "pipeline-2", 16, 32, 2, 35.502), ("unet", "pipeline-4", 32, 16, 4, 67.042),
         ("unet", "pipeline-8", 16, 40, 8, 88.497))
NAMES = {"resnet_101": "ResNet-101", "unet": "U-Net (5, 64)"}
# U-Net's convolutions are all of 3 x 3, which cuDNN computes with fewer multiplications than are counted (Winograd): an efficiency of its own.
EFFICIENCY = {"resnet_101": (), "unet": ("machine.compute.efficiency.gemm=[[10MFLOP, 0.5], [1GFLOP, 1]]",)}
NOTES = """GPipe in PyTorch on 8 Tesla P40s, fp32 (github kakaobrain/torchgpipe, docs/benchmarks.rst; micro-batches and their numbers from its
scripts). The machine is [p40_node](../../hardware_profiles/p40_node.yaml); each network has one efficiency of products, from its plain
training on one GPU. U-Net's is 1, as cuDNN computes convolutions of 3 x 3 with fewer multiplications than are counted. The networks
are [imported](../../benchmarks/published/parallel/pipelined_networks.py), with group norm for batch norm. Pipelines recompute
each piece for all micro-batches but the last (`recompute: except_last`), as torchgpipe does unless told otherwise.

Why rows miss: torchgpipe's scripts name how many layers each stage has. Here stages are made as even as this machine's times allow.
At 8 stages that is more even than what was measured."""


@functools.lru_cache(maxsize=None)
def imported(network):
    """The folder of an imported network, made once for a process."""
    folder = published.BUILD / "published" / network
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    command = [str(published.BUILD / "bin" / "tandem"), "import", f"pipelined_networks:{network}", "--output", str(folder), "--dynamic", "batch",
               "--split", "layers", "--python", sys.executable]
    done = subprocess.run(command, cwd=published.HERE / FOLDER, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr.strip()}")
    return folder


def row(network, experiment, batch, micro_batches, stages, rate):
    changes = {"workload.path": imported(network), "workload.batch": batch, "workload.micro_batches": micro_batches, "parallel.pipeline": stages,
               "workload.recompute": "none" if experiment == "baseline" else "except_last"}
    result = simulate(f"{FOLDER}/torchgpipe", *[f"{key}={value}" for key, value in changes.items()], *EFFICIENCY[network])
    return Row("torchgpipe", f"{NAMES[network]}, {experiment}: {micro_batches} of {batch}", "samples/s", rate, batch * micro_batches / result["steady_step_s"],
               experiment == "baseline")


def rows(quick=False):
    """Importing takes a minute, so no row is quick."""
    return [] if quick else [row(*of_table) for of_table in TABLE]
