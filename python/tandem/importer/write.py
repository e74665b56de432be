"""A network as the folder that Tandem reads: network.yaml, a YAML a program, and safetensors. Must not know tracing."""
import os

import torch

from ..flow import flow
from . import safetensors
from .operators import TYPE_NAMES

FORMAT = 1


def _value(value):
    return {"type": TYPE_NAMES[value.type], "shape": value.shape, "order": value.order}


def _calls(calls):
    return [{"call": c.name, "out": [o or "_" for o in c.out], "take": c.arguments} for c in calls]


def program_tree(kind, program):
    return {
        "format": FORMAT,
        "kind": kind,
        "inputs": [{"name": v.name, **_value(v), "gradient": g, "so_far": s, "gradient_order": o}
                   for v, g, s, o in program.inputs],
        "weights": [{"name": v.name, "of": v.shown, "type": None if v.type == torch.float32 else TYPE_NAMES[v.type],
                     "shape": v.shape, "gradient": g, "so_far": s}
                    for v, g, s in program.weights],
        "outputs": [{"name": v.name, **_value(v), "gradient": t, "gradient_order": o, "loss": v.is_loss or None}
                    for v, t, o in program.outputs],
        "saved": [{"name": v.name, **_value(v)} for v in program.saved],
        "forward": _calls(program.forward),
        "backward": _calls(program.backward),
    }


def _source(source):
    kind, name, *place = source
    return {kind: name, "output": place[0] if place else None}


def network_tree(name, network, sizes, dynamic, dtype, frozen):
    return {
        "format": FORMAT,
        "name": name,
        "torch": torch.__version__,
        "type": TYPE_NAMES[dtype],
        "samples": sizes[0],
        "any_batch": dynamic[0],
        **({"sequence": sizes[1], "any_sequence": dynamic[1]} if dynamic[1] else {}),
        "batch": [{"name": b.name, "type": TYPE_NAMES[b.value.dtype], "shape": list(b.value.shape),
                   "below": b.below or None, "constant": b.constant or None} for b in network.batch],
        "modules": [{"name": m.name, "program": m.kind, "block": m.is_block or None, "inputs": [_source(s) for s in m.inputs], "weights": m.weights}
                    for m in network.modules],
        "frozen": frozen,
        "aliases": [],
    }


def text_of(tree):
    lines = []
    for key, value in tree.items():
        if isinstance(value, list) and value:
            lines += [f"{key}:"] + [f"- {flow(item)}" for item in value]
        else:
            lines.append(f"{key}: {flow(value)}")
    return "\n".join(lines) + "\n"


def tensors_of(module, network):
    """All of the state dict, each tensor once, with what else it is called; and constants that are no part of it."""
    trained = {w for m in network.modules for w in m.weights}
    state = module.state_dict(keep_vars=True)
    first, aliases, tensors = {}, [], {}
    for key in sorted(state, key=lambda k: k not in trained):  # the name that the network uses is the tensor's own
        if not isinstance(state[key], torch.Tensor):
            continue
        own = first.setdefault(id(state[key]), key)
        if own == key:
            tensors[key] = state[key]
        else:
            aliases.append({"name": key, "of": own})
    for tensor in network.batch:
        if tensor.constant:
            tensors["constant." + tensor.name] = tensor.value
    return tensors, aliases


def write_folder(folder, trees, tensors, aliases):
    """`trees`: of the network, then of programs by their kinds."""
    network, programs = trees
    network["aliases"] = aliases
    os.makedirs(os.path.join(folder, "programs"), exist_ok=True)
    safetensors.write(os.path.join(folder, "tensors.safetensors"), tensors)
    files = {os.path.join("programs", kind + ".yaml"): tree for kind, tree in programs.items()}
    for name, tree in {**files, "network.yaml": network}.items():  # the network last: a folder is whole, or has none
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text_of(tree))
