"""The groups of rows of docs/evidence/published_devices.md, and what is left out of it."""
import dataclasses

import ddp
import megatron_sequence
import ratios
import torchgpipe
import zero


@dataclasses.dataclass(frozen=True)
class Group:
    """`rows(quick)` simulates them: all, or a few that take a second or two."""
    title: str
    unit: str
    tolerance: float
    rows: object
    notes: str

    def anchor(self):
        return "".join(c for c in self.title.lower().replace(" ", "-") if c.isalnum() or c == "-")


GROUPS = (
    Group("ZeRO: memory of a device", "GB a device", 0.05, zero.memory, zero.MEMORY_NOTES),
    Group("ZeRO-2 on DGX-2s", "TFLOPS a GPU", 0.08, zero.on_v100, zero.V100_NOTES),
    Group("FSDP on A100s", "TFLOPS a GPU", 0.08, zero.on_a100, zero.FSDP_NOTES),
    Group("Megatron-LM with divided tokens", "s a step", 0.08, megatron_sequence.rows, megatron_sequence.NOTES),
    Group("PyTorch DDP, one host of T4s", "s a step", 0.08, ddp.one_host, ddp.NOTES_ONE),
    Group("PyTorch DDP, several hosts", "s a step", 0.08, ddp.several_hosts, ddp.NOTES_SEVERAL),
    Group("PyTorch DDP, several hosts, the network as it was", "s a step", 0.08, ddp.several_hosts_as_measured, ddp.NOTES_MEASURED),
    Group("torchgpipe on P40s", "samples/s", 0.08, torchgpipe.rows, torchgpipe.NOTES),
    Group("Ratios", "ratio", 0.25, ratios.rows, ratios.NOTES),
)

LEFT_OUT = (
    ("ResNet-18 on CIFAR-10, DeepSpeech2, YOLOv3 under DDP (Pollux's artifact)", "no family has these networks: a stem without stride, a recurrent network, a detector"),
    ("AmoebaNet-D (GPipe, torchgpipe)", "no family has its cells, and its batch norm cannot be imported"),
    ("U-Net (5, 64), utilisation of GPUs (torchgpipe's timeline)", "steps and sizes are not stated for these rows"),
    ("VGG-16 on 8 GPUs (PipeDream)", "the family's network has 6 modules to cut"),
    ("ZeRO's throughputs on 400 V100s (SC 2020, figure 2)", "bars without printed figures; batches are not in the tables at hand"),
    ("ZeRO: largest model that fits (table 2)", "batch and width are not stated"),
    ("ZeRO-2 of 10 billion parameters on 32 V100s (DeepSpeed's tutorial, log)", "the batch is not stated: its forward takes a tenth of one GPU's with 10 samples"),
    ("ZeRO-Infinity, 0.5 to 20 trillion parameters on 512 V100s (figure 5a)", "degrees and batches are in a table that is not at hand"),
    ("ZeRO-Infinity, 8 billion on 4 to 64 GPUs (figure 6c)", "a backward's time alone; figure 6d, of the same runs, is in systems"),
    ("ZeRO-3 Offload, 0.4 to 2 trillion on 512 V100s; 200 billion on 64 to 512", "sizes and batches are not stated"),
    ("Megatron with model parallelism on one DGX-2 (ZeRO-Offload, figure 10)", "degrees are not stated"),
    ("DeepSpeed 3D, 1 trillion and 180 billion on 800 V100s", "numbers of stages are not stated"),
    ("FSDP: T5, RegNet, DeepViT", "how flops are counted, or the batch, is not stated"),
    ("Megatron-Core on H100s (README, 2024)", "micro-batches are not stated, and the machine has no profile with a network"),
    ("1-bit Adam on clusters", "not built across ranks"),
    ("AxoNN (620 to 1,423 petaflops)", "networks and batches are not stated"),
    ("APTMoE over Mobius", "no policy computes single experts on the CPU"),
    ("Hippie, DAPPLE: up to so much", "networks and machines are not stated"),
)
