"""Imports one module: traces it, once or for several batches, and writes its folder. Must not know the command line."""
import torch

from .by_sizes import TERMS, BySizes, Merging, examples
from .capture import capture
from .network import network_of
from .refusal import Refusal
from .write import network_tree, program_tree, tensors_of, write_folder


DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def arguments_of(inputs):
    """Positional and named arguments of what a function gave as example inputs."""
    if isinstance(inputs, torch.Tensor):
        return (inputs,), {}
    if isinstance(inputs, dict):
        return (), dict(inputs)
    return tuple(inputs), {}


def _sizes(args, kwargs):
    """Samples of the example, and their length: the first two sizes of its first tensors that have so many."""
    tensors = [t for t in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor) and t.dim() > 0]
    if not tensors:
        raise Refusal("", "is given no tensors", "example inputs whose first size is the batch")
    return tensors[0].shape[0], next((t.shape[1] for t in tensors if t.dim() == 2), 0)


def _along(tensor, dim, size):
    return torch.cat([tensor] * (size // tensor.shape[dim] + 1), dim).narrow(dim, 0, size).contiguous()


def _with_sizes(inputs, samples, length, batch, sequence):
    """The example of another batch and length: its tensors cut, or repeated, along their first two sizes."""
    def resized(value):
        if not isinstance(value, torch.Tensor) or value.dim() == 0 or value.shape[0] != samples:
            return value
        value = _along(value, 0, batch)
        return _along(value, 1, sequence) if value.dim() > 1 and length and value.shape[1] == length else value

    return torch.utils._pytree.tree_map(resized, inputs)


def _require_constants(networks, merged, flags):
    """Constants are stored once: neither their sizes nor their numbers may go by what is dynamic."""
    for place, entry in enumerate(merged["batch"]):
        if entry["constant"] is None:
            continue
        values = [network.batch[place].value for network in networks]
        if any(isinstance(d, BySizes) for d in entry["shape"]) or not all(torch.equal(values[0], v) for v in values):
            raise Refusal(entry["constant"], "is a constant that differs by the sizes of the inputs", f"import it without {flags}")


def _trees(name, module, args, kwargs, split, sizes, dynamic):
    captured = capture(module, args, kwargs)
    network = network_of(captured, module, split)
    programs = {kind: program_tree(kind, program) for kind, program in network.programs.items()}
    dtype = next(p.dtype for p in module.parameters() if p.is_floating_point())
    return network, (network_tree(name, network, sizes, dynamic, dtype, sorted(captured.frozen)), programs)


def _trees_of_all(name, module, args, kwargs, split, sizes, dynamic):
    """What programs and sizes have in common, of imports with several batches and lengths."""
    several = examples(*sizes, *dynamic)
    made = [_trees(name, module, *_with_sizes((args, kwargs), *sizes, *of), split, sizes, dynamic) for of in several]
    flags = " and ".join(f"--dynamic {what}" for what, is_any in zip(("batch", "sequence"), dynamic) if is_any)
    merging = Merging(several, TERMS[dynamic], flags)
    trees = tuple(merging.merged([tree[i] for _, tree in made]) for i in range(2))
    _require_constants([network for network, _ in made], trees[0], flags)
    return trees


def _in_one_type(module, args, kwargs, dtype):
    """The module's parameters in it, if it is given; numbers of a batch are fp32 whatever the module's are. A tensor that is
    given twice, as token numbers that are labels, too, is two inputs.
    """
    if dtype is not None:
        module.to(DTYPES[dtype])
    dtypes = {p.dtype for p in module.parameters() if p.is_floating_point()}
    if len(dtypes) != 1 or not dtypes <= set(DTYPES.values()):
        raise Refusal("", f"has parameters of {', '.join(sorted(map(str, dtypes))) or 'no type'}",
                      "float() or bfloat16() makes them one type; so does --dtype")
    return torch.utils._pytree.tree_map(
        lambda t: (t.float() if t.is_floating_point() else t).clone() if isinstance(t, torch.Tensor) else t, (args, kwargs))


def import_module(module, inputs, folder, name="module", split=None, any_batch=False, dtype=None, any_sequence=False):
    """Writes `folder`. Returns the network, and how many samples its example has. `any_batch`, `any_sequence`: a scenario may
    choose how many samples, and the length of those whose inputs are [batch, length, ...]. `dtype`: what the module's parameters are
    turned to first, in place. Raises Refusal for what cannot be imported.
    """
    args, kwargs = arguments_of(inputs)
    args, kwargs = _in_one_type(module, args, kwargs, dtype)
    sizes, dynamic = _sizes(args, kwargs), (any_batch, any_sequence)
    if any_sequence and sizes[1] == 0:
        raise Refusal("", "is given no input [batch, length]", "a tensor of two sizes among the example inputs")
    network, trees = _trees(name, module, args, kwargs, split, sizes, dynamic)
    if any(dynamic):
        trees = _trees_of_all(name, module, args, kwargs, split, sizes, dynamic)
    tensors, aliases = tensors_of(module, network)
    write_folder(folder, trees, tensors, aliases)
    return network, sizes[0]
