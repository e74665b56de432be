"""A torch.nn.Module as a scenario: imported into a folder of its own, by its first batch. Must not know the loop."""
import os

import torch

from ..importer.importing import arguments_of, import_module
from ..importer.refusal import Refusal
from ..importer.state import trained_names


def _first_size(item):
    """Samples of a training step: the first size of the batch's first tensor."""
    for leaf in torch.utils._pytree.tree_leaves(item):
        if isinstance(leaf, torch.Tensor) and leaf.dim() > 0:
            return leaf.shape[0]
    raise ValueError("batch 1: has no tensor; expected: tensors whose first size is the batch")


def _micro_batch(item, samples, micro_batches):
    def cut(leaf):
        if not isinstance(leaf, torch.Tensor) or leaf.dim() == 0 or leaf.shape[0] != samples:
            return leaf
        return leaf[:samples // micro_batches].contiguous()

    return torch.utils._pytree.tree_map(cut, item)


class ImportedModule:
    """`workload`: the section of a scenario that trains it; `names`: what the items of a tuple are called; `given`: the
    names of all that the first batch has.
    """

    def __init__(self, module, first, folder, workload, split=None):
        self.module, self.folder = module, folder
        first = dict(first) if hasattr(first, "keys") else first  # of whatever class
        micro_batches = int(workload.get("micro_batches", 1))
        samples = _first_size(first)
        if samples % micro_batches != 0:
            raise ValueError(f"batch 1: has {samples} samples; expected: a multiple of the {micro_batches} micro-batches")
        if any(p.device.type != "cpu" for p in module.parameters()):
            raise ValueError("the module: is not on the CPU; expected: module.cpu(), as the run places what it trains")
        example = _micro_batch(first, samples, micro_batches)
        try:
            import_module(module, example, folder, type(module).__name__, split)
        except Refusal as refusal:
            raise ValueError(str(refusal)) from refusal
        self.workload = {**workload, "family": "imported", "path": os.path.abspath(folder), "batch": samples // micro_batches}
        args, kwargs = arguments_of(first)
        self.names = [f"input{i}" for i in range(len(args))]
        self.given = set(self.names) | set(kwargs)

    def state_of(self, parameters):
        """What was trained, under the module's own names."""
        return {name: parameters[of] for name, of in trained_names(self.folder).items()}

    def update(self, state):
        """In place: what else holds the module's parameters sees them trained."""
        own = self.module.state_dict(keep_vars=True)
        with torch.no_grad():
            for name, value in state.items():
                own[name].copy_(value)
