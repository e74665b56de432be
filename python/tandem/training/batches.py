"""Batches as Python gives them, checked and laid out as the run reads them. Must not know where they come from."""
from dataclasses import dataclass

import torch

TYPES = {"int64": torch.int64, "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16,
         "fp64": torch.float64, "int16": torch.int16, "uint8": torch.uint8}
IGNORED = -100  # a label that a loss leaves out, as torch.nn.functional.cross_entropy does


@dataclass(frozen=True)
class Entry:
    """A tensor of the network's batch, as one micro-batch has it."""

    name: str
    shape: tuple
    type: str
    below: int  # integers are of [0, below); 0: any
    constant: bool


class Batches:
    """What a run takes, of items that are dicts by name, tuples in order, or one tensor.

    `names`: what a tuple's items are called, by default the batch's tensors in order; `unread`: names that may be given
    and are of no use.
    """

    def __init__(self, entries, samples, micro_batches, names=None, unread=()):
        self.entries = [Entry(*e) for e in entries]
        self.samples, self.micro_batches = samples, micro_batches
        self.data = [e for e in self.entries if not e.constant]
        self.names = list(names) if names is not None else [e.name for e in self.data]
        self.unread = set(unread)
        self.count = 0

    def lay_out(self, item):
        """The tensors by place, None for constants; and which of them all micro-batches share."""
        self.count += 1
        given = self._by_name(item)
        tensors = [None if e.constant else self._checked(e, given[e.name]) for e in self.entries]
        return tensors, [not e.constant and self._is_shared(e) for e in self.entries]

    def _refuse(self, problem, expected):
        raise ValueError(f"batch {self.count}: {problem}; expected: {expected}")

    def _by_name(self, item):
        if isinstance(item, torch.Tensor):
            item = (item,)
        if isinstance(item, (tuple, list)):
            if len(item) != len(self.names):
                self._refuse(f"has {len(item)} tensors", f"{len(self.names)} ({', '.join(self.names)})")
            item = dict(zip(self.names, item))
        if not hasattr(item, "keys"):
            self._refuse(f"is {type(item).__name__}", "a dict of tensors by name, or a tuple of tensors")
        expected = {e.name for e in self.data}
        if missing := sorted(expected - set(item.keys())):
            self._refuse(f"has no {', '.join(missing)} (it has {', '.join(map(str, item.keys()))})", ", ".join(sorted(expected)))
        if strange := sorted(set(item.keys()) - expected - self.unread):
            self._refuse(f"has {', '.join(map(str, strange))}, which the network does not read", ", ".join(sorted(expected)))
        return item

    def _is_shared(self, entry):
        return self.micro_batches > 1 and (not entry.shape or entry.shape[0] != self.samples)

    def _shape(self, entry):
        if self.micro_batches == 1 or self._is_shared(entry):
            return tuple(entry.shape)
        return (entry.shape[0] * self.micro_batches, *entry.shape[1:])

    def _checked(self, entry, value):
        tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
        shape, kind = self._shape(entry), TYPES[entry.type]
        if tuple(tensor.shape) != shape or tensor.dtype != kind:
            cut = f" ({self.micro_batches} micro-batches of {self.samples})" if shape != tuple(entry.shape) else ""
            self._refuse(f"{entry.name} is {_name(tensor.dtype)} of {list(tensor.shape)}", f"{_name(kind)} of {list(shape)}{cut}")
        tensor = tensor.detach().cpu().contiguous()
        if entry.below > 0 and tensor.numel() > 0:
            self._check_range(entry, tensor)
        return tensor

    def _check_range(self, entry, tensor):
        least, most = (int(v) for v in torch.aminmax(tensor))
        if most >= entry.below or (least < 0 and bool(((tensor < 0) & (tensor != IGNORED)).any())):
            self._refuse(f"{entry.name} has {most if most >= entry.below else least}",
                         f"integers of [0, {entry.below}), or {IGNORED} where a loss leaves it out")


def _name(kind):
    return str(kind).removeprefix("torch.")
