"""The forward of a module as one flat graph of the calls that Python makes, before autograd takes them apart.

The module really runs, on its real numbers, so that it takes the branches that it takes without us. Must not know
parts, passes or files.
"""
import re
from dataclasses import dataclass, field

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental import proxy_tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

from .refusal import CurrentModule, Refusal

BATCHED_EXPERTS = 'use the batched experts (transformers: experts_implementation="batched_mm")'
ADVICE = {
    "nonzero": "an expert loop over nonzero() depends on data: " + BATCHED_EXPERTS,
    "unique": "sizes that depend on data cannot be planned: use masks of a fixed size",
    "masked_select": "sizes that depend on data cannot be planned: multiply by the mask instead",
    "grouped_mm": "experts' sizes depend on data there: " + BATCHED_EXPERTS,
}
OTHERWISE = "what is computed may not depend on the values of tensors: use torch.where, masks and fixed sizes"


@dataclass
class Captured:
    """`given`: placeholders and constants of the graph, by what they are; `path`: of each node's module."""

    module: torch.fx.GraphModule
    parameters: dict = field(default_factory=dict)  # node: name in the state dict
    frozen: set = field(default_factory=set)  # names of those parameters that require no gradient
    inputs: dict = field(default_factory=dict)  # node: (name, example)
    constants: dict = field(default_factory=dict)  # node: (name, tensor)
    path: dict = field(default_factory=dict)
    mode: FakeTensorMode = None

    def name_of(self, node):
        """What a person calls it."""
        return self.parameters.get(node) or (self.inputs.get(node) or self.constants.get(node) or (node.name,))[0]


def loss_of(output):
    """The scalar that is minimised: the output itself, its `loss`, or its first item."""
    if isinstance(output, torch.Tensor):
        loss = output
    elif isinstance(output, dict) or hasattr(output, "loss"):
        loss = output.get("loss") if isinstance(output, dict) else output.loss
    else:
        loss = output[0] if isinstance(output, (tuple, list)) and output else None
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.is_floating_point():
        raise Refusal("", "gives no loss", "return a scalar, or an output whose .loss or first item is one "
                      "(transformers: pass labels)")
    return loss.reshape(())


class WithLoss(torch.nn.Module):
    """The module, whose only output is its loss. Batches are fp32, and become what its parameters are."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        self.dtype = next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)

    def forward(self, *args, **kwargs):
        args, kwargs = tree_map(lambda t: t.to(self.dtype) if isinstance(t, torch.Tensor) and t.dtype == torch.float32
                                and self.dtype != torch.float32 else t, (args, kwargs))
        return loss_of(self.module(*args, **kwargs))


def _node_of(tensor):
    mode = proxy_tensor.get_proxy_mode()
    slot = proxy_tensor.get_proxy_slot(tensor, mode.tracer, None) if mode is not None else None
    return slot.proxy.node if slot is not None else None


class _Branches(TorchFunctionMode):
    """Numbers that Python takes out of tensors: those that follow from no data are what they are; others are refused."""

    ASKED = {torch.Tensor.__bool__, torch.Tensor.item, torch.Tensor.__int__, torch.Tensor.__float__,
             torch.Tensor.__index__, torch.Tensor.tolist, torch.Tensor.equal, torch.equal}

    def __init__(self, current):
        super().__init__()
        self.current = current

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func not in self.ASKED or _node_of(args[0]) is None:
            return func(*args, **(kwargs or {}))
        seen, todo = set(), [_node_of(args[0])]
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            if node.op == "placeholder":
                name = getattr(func, "__name__", "item")
                where = self.current.deepest
                raise Refusal(where, f"decides what to compute by a value of its data ({name})",
                              f"{OTHERWISE}; of experts, {BATCHED_EXPERTS}" if "expert" in where else OTHERWISE)
            todo += node.all_input_nodes
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            return func(*args, **(kwargs or {}))


class _Marks:
    """Notes after how many nodes of the graph a module begins or ends."""

    def __init__(self, current):
        self.at, self.current = [(0, "")], current

    def note(self):
        mode = proxy_tensor.get_proxy_mode()
        if mode is not None:
            self.at.append((len(mode.tracer.graph.nodes), self.current.deepest))

    def paths(self, graph):
        nodes, path = list(graph.nodes), {}
        for (begin, where), (end, _) in zip(self.at, self.at[1:] + [(len(nodes), "")]):
            path.update(dict.fromkeys(nodes[begin:end], where))
        return path


def refused(error, where):
    """What any failure of tracing is told as."""
    text = f"{type(error).__name__}: {error}"
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if isinstance(error, (AttributeError, IndexError, KeyError, NameError, TypeError, ValueError)):
        return Refusal(where, f"fails on its example inputs ({first.strip()[:200]})", "call the module on them by itself first")
    advice = next((advice for word, advice in ADVICE.items() if word in text), OTHERWISE)
    return Refusal(where, f"cannot be traced ({first.strip()[:200]})", advice)


def _named_tensors(module):
    tensors = dict(module.named_parameters())
    return tensors | dict(module.named_buffers())


def _trace(module, tensors, args, kwargs, current):
    """`tensors`: by the module's own names."""
    whole, names = WithLoss(module), ["module." + n for n in tensors]
    marks = _Marks(current)
    current.changed = marks.note

    def forward(values, inputs):
        with _Branches(current):
            return torch.func.functional_call(whole, dict(zip(names, values)), inputs[0], inputs[1], tie_weights=True)

    traced = proxy_tensor.make_fx(forward, pre_dispatch=True)(list(tensors.values()), (args, kwargs))
    return traced, marks.paths(traced.graph)


def _name_of(place):
    """"input0" of the first argument, "labels" of a named one."""
    words = [str(getattr(key, "key", getattr(key, "idx", key))) for key in place[1:]]
    return re.sub(r"[^A-Za-z0-9_]", "_", "_".join(("input" + w) if w.isdigit() else w for w in words))


def _fake(captured):
    with captured.mode:
        for node in captured.module.graph.nodes:
            value = node.meta.get("val")
            node.meta["val"] = torch.utils._pytree.tree_map_only(
                torch.Tensor, lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype), value)


def capture(module, args, kwargs):
    tensors, current = _named_tensors(module), CurrentModule(module)
    try:
        traced, path = _trace(module, tensors, args, kwargs, current)
    except Refusal:
        raise
    except Exception as error:  # whatever tracing meets is told as what it is: not traceable
        raise refused(error, current.deepest) from error
    finally:
        current.remove()
    captured = Captured(traced, path=path, mode=FakeTensorMode())
    placeholders = [n for n in traced.graph.nodes if n.op == "placeholder"]
    for node, (name, tensor) in zip(placeholders, tensors.items()):
        if isinstance(tensor, torch.nn.Parameter) and tensor.is_floating_point():
            captured.parameters[node] = name
            if not tensor.requires_grad:
                captured.frozen.add(name)
        else:
            captured.constants[node] = (name, tensor)
    leaves = torch.utils._pytree.tree_flatten_with_path((args, kwargs))[0]
    for node, (place, value) in zip(placeholders[len(tensors):], leaves, strict=True):
        if isinstance(value, torch.Tensor):
            captured.inputs[node] = (_name_of(place), value)
    for node in traced.graph.nodes:
        if node.op == "get_attr":
            value = getattr(traced, node.target)
            node.meta["val"] = value
            captured.constants[node] = (str(node.target), value)
    _fake(captured)
    return captured
