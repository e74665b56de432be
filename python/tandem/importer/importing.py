"""Imports one module: traces it, once or for several batches, and writes its folder. Must not know the command line."""
import torch

from .by_batch import merged
from .capture import capture
from .network import network_of
from .refusal import Refusal
from .write import network_tree, program_tree, tensors_of, write_folder


def arguments_of(inputs):
    """Positional and named arguments of what a function gave as example inputs."""
    if isinstance(inputs, torch.Tensor):
        return (inputs,), {}
    if isinstance(inputs, dict):
        return (), dict(inputs)
    return tuple(inputs), {}


def _samples(args, kwargs):
    tensors = [t for t in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor) and t.dim() > 0]
    if not tensors:
        raise Refusal("", "is given no tensors", "example inputs whose first size is the batch")
    return tensors[0].shape[0]


def _with_batch(inputs, samples, batch):
    def resized(value):
        if not isinstance(value, torch.Tensor) or value.dim() == 0 or value.shape[0] != samples:
            return value
        return torch.cat([value] * (batch // samples + 1))[:batch].contiguous()

    return torch.utils._pytree.tree_map(resized, inputs)


def _trees(name, module, args, kwargs, split, samples, any_batch):
    network = network_of(capture(module, args, kwargs), module, split)
    programs = {kind: program_tree(kind, program) for kind, program in network.programs.items()}
    return network, (network_tree(name, network, samples, any_batch), programs)


def import_module(module, inputs, folder, name="module", split=None, any_batch=False):
    """Writes `folder`. Returns the network, and how many samples its example has. Raises Refusal for what cannot be imported."""
    args, kwargs = arguments_of(inputs)
    dtypes = {p.dtype for p in module.parameters()}
    if dtypes != {torch.float32}:
        raise Refusal("", f"has parameters of {', '.join(sorted(map(str, dtypes))) or 'no type'}", "float() makes them fp32")
    samples = _samples(args, kwargs)
    network, trees = _trees(name, module, args, kwargs, split, samples, any_batch)
    if any_batch:
        batches = [samples, samples + 2, samples + 5] if samples > 1 else [2, 3, 7]
        several = [_trees(name, module, *_with_batch((args, kwargs), samples, b), split, samples, True)[1] for b in batches]
        trees = tuple(merged([t[i] for t in several], batches) for i in range(2))
        trees[0]["samples"] = samples
    tensors, aliases = tensors_of(module, network)
    write_folder(folder, trees, tensors, aliases)
    return network, samples
