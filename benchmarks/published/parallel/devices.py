"""The groups of rows of docs/evidence/published_devices.md, and what is left out of it."""
import dataclasses

import ddp


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
    Group("PyTorch DDP, one host of T4s", "s a step", 0.08, ddp.one_host, ddp.NOTES_ONE),
    Group("PyTorch DDP, several hosts", "s a step", 0.08, ddp.several_hosts, ddp.NOTES_SEVERAL),
    Group("PyTorch DDP, several hosts, the network as it was", "s a step", 0.08, ddp.several_hosts_as_measured, ddp.NOTES_MEASURED),
)

LEFT_OUT = (
    ("DDP: ResNet-18 on CIFAR-10, DeepSpeech2, YOLOv3 (Pollux's artifact)", "no family has these networks: a stem without stride, a recurrent network, a detector"),
)
