"""Cuts the flat graph of a module's forward into parts: what stands before, between and after equal blocks, and each
block. Must not know backward passes or files.
"""
import operator
from dataclasses import dataclass, field

import torch

from .refusal import Refusal

SET_GRAD = torch._C._set_grad_enabled

@dataclass
class Part:
    """`inputs`: nodes of earlier parts and placeholders that it reads; `outputs`: nodes that later parts read."""

    path: str  # of the block; "" for what is none
    name: str
    nodes: list = field(default_factory=list)
    inputs: list = field(default_factory=list)
    weights: list = field(default_factory=list)  # placeholders of parameters that this part is the first to read
    outputs: list = field(default_factory=list)


def _kind(module):
    shapes = tuple((name, tuple(p.shape)) for name, p in module.named_parameters())
    return type(module), shapes


def _equal_blocks(children):
    return len(children) > 1 and all(_kind(c) == _kind(children[0]) for c in children)


def longest_lists(module):
    """Paths of the longest lists of equal blocks; of two lists one in the other, the outer one."""
    lists = {}
    for path, child in module.named_modules():
        if isinstance(child, (torch.nn.ModuleList, torch.nn.Sequential)) and _equal_blocks(list(child)):
            lists[path] = len(child)
    most = max(lists.values(), default=0)
    chosen = [path for path, count in lists.items() if count == most]
    return [p for p in chosen if not any(p.startswith(other + ".") for other in chosen)]


def block_paths(module, split):
    """`split`: paths of lists, whose children are blocks, or of single modules; None: the longest lists."""
    modules = dict(module.named_modules())
    paths = []
    for path in longest_lists(module) if split is None else split:
        if path not in modules:
            raise Refusal(path, "is no submodule, so that nothing can be split there", "allowed for --split: paths of "
                          "named_modules(), such as " + (", ".join(longest_lists(module)) or "none here"))
        child = modules[path]
        is_list = isinstance(child, (torch.nn.ModuleList, torch.nn.Sequential))
        paths += [f"{path}.{i}" for i in range(len(child))] if is_list else [path]
    return paths


def _block_of(path, blocks):
    found = [b for b in blocks if path == b or path.startswith(b + ".")]
    return max(found, key=len, default="")


def _cut(graph, path, blocks):
    """`path`: of each node's module."""
    parts, part_of = [], {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is operator.getitem:
            part_of[node] = part_of[node.args[0]]
        else:
            block = _block_of(path[node], blocks)
            if not parts or parts[-1].path != block:
                parts.append(Part(block, ""))
            part_of[node] = parts[-1]
        part_of[node].nodes.append(node)
    return parts, part_of


def _joined(parts, part_of):
    """Without parts that compute nothing: changes of the grad mode between blocks go to the part before."""
    kept = []
    for part in parts:
        if kept and all(n.target is SET_GRAD or n.target is operator.getitem for n in part.nodes):
            kept[-1].nodes += part.nodes
            part_of.update(dict.fromkeys(part.nodes, kept[-1]))
        else:
            kept.append(part)
    return kept


def _name(parts):
    others, used = [p for p in parts if not p.path], set()
    for part in parts:
        if part.path:
            name = part.path.replace(".", "_")
        elif part is parts[0]:
            name = "before"
        elif part is parts[-1]:
            name = "after"
        else:
            name = f"between{others.index(part)}"
        while name in used:  # a block that is called again
            name += "_again"
        used.add(name)
        part.name = name


def live_nodes(graph):
    """Nodes that the outputs depend on."""
    live, todo = set(), [n for n in graph.nodes if n.op == "output"]
    while todo:
        node = todo.pop()
        if node not in live:
            live.add(node)
            todo += node.all_input_nodes
    return live


def split(graph, path, blocks, parameters):
    """Parts in forward order. `parameters`: placeholders that are trained."""
    live = live_nodes(graph)
    for node in reversed(list(graph.nodes)):
        if node not in live and node.op != "placeholder" and node.target is not SET_GRAD:
            graph.erase_node(node)
    parts, part_of = _cut(graph, path, blocks)
    parts = _joined(parts, part_of)
    _name(parts)
    index = {id(p): i for i, p in enumerate(parts)}
    owner = {}
    result = torch.utils._pytree.tree_leaves(next(n for n in graph.nodes if n.op == "output").args[0])[0]
    for part in parts:
        for node in part.nodes:
            for read in node.all_input_nodes:
                if part_of.get(read) is part:
                    continue
                if read in parameters and owner.setdefault(read, part) is part:
                    if read not in part.weights:
                        part.weights.append(read)
                    continue
                if read not in part.inputs:
                    part.inputs.append(read)
                source = part_of.get(read)
                if source is not None and read not in source.outputs:
                    source.outputs.append(read)
    if result not in part_of:
        raise Refusal("", "computes nothing", "return a loss that depends on parameters")
    last = part_of[result]
    if index[id(last)] != len(parts) - 1:
        raise Refusal("", "goes on after its loss", "return the loss last")
    last.outputs.append(result)
    order = {node: i for i, node in enumerate(graph.nodes)}
    for part in parts:
        part.outputs.sort(key=order.get)
        part.weights.sort(key=order.get)
    return parts
