"""A traced part as a program: calls of forward and of backward, and what the first saves for the second. Must not know
files, or how a part was traced.
"""
import operator
from dataclasses import dataclass, field

import torch

from .dropout import seed_dropout
from .operators import base, call_of, is_cheap, is_same, is_view, name_of

TYPE_NAMES_OF_BATCH = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.float64: "fp64",
                       torch.int64: "int64", torch.bool: "bool", torch.uint8: "uint8"}

ARGUMENT = "placeholder"


def is_dense(tensor):
    """Each number has a place of its own, and there are no others between."""
    expected = 1
    for stride, size in sorted((tensor.stride(d), tensor.shape[d]) for d in range(tensor.dim()) if tensor.shape[d] > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def order_of(tensor):
    """Dimensions from the outermost in memory to the innermost; None: as they are, or it is not dense."""
    if tensor.is_contiguous() or not is_dense(tensor):
        return None
    return sorted(range(tensor.dim()), key=lambda d: (tensor.shape[d] > 1, -tensor.stride(d)))


@dataclass
class Value:
    """A named tensor at a border: `order` is None where it is contiguous."""

    name: str
    type: torch.dtype
    shape: list
    order: list
    shown: str = ""  # what the module calls it, of a weight
    is_loss: bool = False


@dataclass
class Program:
    inputs: list = field(default_factory=list)  # of (Value, gradient's name or None, so far's, gradient's order)
    weights: list = field(default_factory=list)  # of (Value, gradient's name or None, so far's or None)
    outputs: list = field(default_factory=list)  # of (Value, tangent's name or None, tangent's order)
    saved: list = field(default_factory=list)  # of Value
    forward: list = field(default_factory=list)  # of Call
    backward: list = field(default_factory=list)


def _value(name, tensor):
    return Value(name, tensor.dtype, list(tensor.shape), order_of(tensor))


class Cut:
    """Which nodes of a joint graph are forward's, which backward's, and what crosses."""

    def __init__(self, graph, outputs, gradients):
        self.position = {node: i for i, node in enumerate(graph.nodes)}
        self.forward = self._ancestors([n for n in outputs if n is not None], lambda _: False)
        self.forward |= {n for n in graph.nodes if base(n) in self.forward}  # items that nobody reads going forward
        self.saved = []
        wanted = self._ancestors([n for n in gradients if n is not None], self._is_kept)
        self.backward = {n for n in wanted if not self._is_kept(n)}
        for node in sorted(wanted, key=self.position.get):
            if self._is_kept(node) and node.op != ARGUMENT:
                self.saved.append(node)

    def _is_kept(self, node):
        """What forward makes and is not quickly made again from what it is made of."""
        return node in self.forward and (node.op == ARGUMENT or not (is_view(node) or is_cheap(node)))

    def _ancestors(self, roots, stop):
        seen, todo = set(), list(roots)
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            if not stop(node):
                todo += node.all_input_nodes
        return seen


def _simplify(graph):
    """Leaves out calls that change nothing: aliases, and a matrix that is transposed twice."""
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        source = node.args[0] if is_same(node) else None
        if name_of(node) == "t" and name_of(node.args[0]) == "t":
            source = node.args[0].args[0]
        if source is not None:
            node.replace_all_uses_with(source)
            graph.erase_node(node)


class _Names:
    def __init__(self):
        self.of, self._next = {}, 0

    def __getitem__(self, node):
        if node not in self.of:
            self.of[node] = f"v{self._next}"
            self._next += 1
        return self.of[node]


def _calls(graph, nodes, names, where):
    calls = []
    for node in graph.nodes:
        if node not in nodes or node.op != "call_function" or node.target is operator.getitem:
            continue
        outs = [node]
        if isinstance(node.meta["val"], (tuple, list)):
            users = {u.args[1]: u for u in node.users if u.target is operator.getitem}
            outs = [users.get(i) if users.get(i) in nodes else None for i in range(len(node.meta["val"]))]
        calls.append(call_of(node, [names[o] if o is not None else None for o in outs], names, where))
    return calls


def program_of(traced, part, arguments, wants, tangents, so_far):
    """`traced`: of joint_graph(), with the same other arguments."""
    graph = traced.graph
    _simplify(graph)
    seed_dropout(graph)
    flat = [n for n in graph.nodes if n.op == ARGUMENT]
    result = torch.utils._pytree.tree_leaves(next(n for n in graph.nodes if n.op == "output").args[0],
                                             is_leaf=lambda x: x is None)
    outputs, gradients = result[: len(part.outputs)], iter(result[len(part.outputs):])
    gradient_of = [next(gradients) if w else None for w in wants]
    names, count = _Names(), len(arguments)
    inputs = len(part.inputs)
    for i, node in enumerate(flat[:count]):
        names.of[node] = f"x{i}" if i < inputs else f"w{i - inputs}"
    given = [i for i, t in enumerate(tangents) if t is not None]
    for i, node in zip(given, flat[count:]):
        names.of[node] = f"d{i}"
    for i, node in zip(so_far, flat[count + len(given):]):
        names.of[node] = f"s{i}" if i < inputs else f"c{i - inputs}"
    so_far_name = {i: names[n] for i, n in zip(so_far, flat[count + len(given):])}
    cut = Cut(graph, outputs, gradient_of)
    where = part.path or part.name
    program = Program()
    program.forward = _calls(graph, cut.forward, names, where)
    for i, (node, output) in enumerate(zip(part.outputs, outputs)):
        tangent = tangents[i]
        program.outputs.append((_value(names[output], output.meta["val"]), None if tangent is None else f"d{i}",
                                None if tangent is None else order_of(tangent)))
    program.saved = [_value(names[n], n.meta["val"]) for n in cut.saved if n not in outputs]
    for node in cut.backward & cut.forward:  # made again, under a name of its own
        names.of.pop(node, None)
    program.backward = _calls(graph, cut.backward, names, where)
    for i, argument in enumerate(arguments):
        gradient = gradient_of[i]
        value = _value(flat[i].name, argument)
        value.name = names[flat[i]]
        entry = (value, None if gradient is None else names[gradient], so_far_name.get(i) if gradient is not None else None)
        if i < inputs:
            program.inputs.append(entry + (None if gradient is None else order_of(gradient.meta["val"]),))
        else:
            program.weights.append(entry)
    return program, gradient_of
