"""The parts of a module as programs, and who reads what of whom. Must not know files."""
from dataclasses import dataclass, field

import torch

from .capture import refused
from .forbidden import refuse_changed_inputs, refuse_what_depends_on_data
from .parts import block_paths, split
from .program import TYPE_NAMES_OF_BATCH, is_dense, order_of, program_of
from .ranges import integers_below
from .refusal import Refusal
from .trace import joint_graph, part_module, run


@dataclass
class BatchTensor:
    name: str
    value: torch.Tensor  # as an example, or a constant
    below: int = 0
    constant: str = ""  # what the module calls it


@dataclass
class Module:
    name: str
    kind: str
    is_block: bool = False
    inputs: list = field(default_factory=list)  # of ("batch", name), ("module", name, output) or ("weight", name)
    weights: list = field(default_factory=list)  # names of the state dict


@dataclass
class Network:
    batch: list = field(default_factory=list)
    programs: dict = field(default_factory=dict)
    modules: list = field(default_factory=list)


def _batch_tensors(captured):
    """What the batch brings, by node: data, and constants."""
    batch = {}
    for node, (name, value) in captured.inputs.items():
        below = integers_below(node, value) if value.dtype == torch.int64 else 0
        batch[node] = BatchTensor(name, value, below)
    for number, (node, (name, value)) in enumerate(captured.constants.items()):
        batch[node] = BatchTensor(f"constant{number}", value, 0, name)
    return batch


def _like(node, requires_grad):
    value = node.meta["val"]
    return _like_tensor(value).requires_grad_(requires_grad)


class _Builder:
    def __init__(self, captured, blocks):
        self.captured, self.names = captured, captured.parameters
        self.batch = _batch_tensors(captured)
        refuse_what_depends_on_data(captured)
        refuse_changed_inputs(captured)
        self.parts = split(captured.module.graph, captured.path, blocks, captured.parameters)
        self.has_gradient = dict.fromkeys(captured.parameters, True)
        self.gradients = {}  # by node: what the latest reader so far made, as fake tensors
        self.network = Network()
        self.seen = {}  # programs by what they were traced of

    def build(self):
        modules = [part_module(self.captured.module, part) for part in self.parts]
        with self.captured.mode:
            for part, module in zip(self.parts, modules):
                self._find_gradients(part, module)
            named = [self._trace(part, module) for part, module in reversed(list(zip(self.parts, modules)))]
        named[0][1].outputs[0][0].is_loss = True
        self._connect(named[::-1])
        return self.network

    def _arguments(self, part):
        nodes = part.inputs + part.weights
        return [_like(n, self.has_gradient.get(n, False)) for n in nodes]

    def _find_gradients(self, part, module):
        try:
            outputs = run(module, self._arguments(part))
        except Exception as error:  # whatever it is, the part cannot be traced
            raise refused(error, part.path or part.name) from error
        for node, output in zip(part.outputs, outputs):
            self.has_gradient[node] = output.requires_grad
            node.meta["val"] = output.detach()

    def _trace(self, part, module):
        arguments = self._arguments(part)
        wants = [a.requires_grad for a in arguments]
        tangents = [self._tangent(n) if self.has_gradient[n] else None for n in part.outputs]
        read_later = {n for p in self.parts[self.parts.index(part) + 1:] for n in p.inputs}
        so_far = [i for i, n in enumerate(part.inputs + part.weights)
                  if wants[i] and (i < len(part.inputs) or n in read_later)]
        key = self._key(part, arguments, wants, tangents, so_far)
        if key not in self.seen:
            before = [self._like_gradient(n) for n in part.inputs + part.weights]
            traced = self._joint(part, (module, arguments, wants, tangents, so_far, [before[i] for i in so_far]))
            self.seen[key] = program_of(traced, part, arguments, wants, tangents, so_far)
        program, gradients = self.seen[key]
        for node, gradient, wanted in zip(part.inputs + part.weights, gradients, wants):
            if wanted and gradient is None and self.names.get(node) not in self.captured.frozen:
                raise Refusal(part.path or part.name, f"reads {self.names.get(node, node.name)} without a gradient",
                              "freeze it (requires_grad_(False)), or detach it where it is made")
        for i, (node, gradient) in enumerate(zip(part.inputs, gradients)):
            if gradient is not None:
                made = self.gradients.setdefault(node, gradient.meta["val"])
                program.inputs[i] = program.inputs[i][:3] + (order_of(made),)
        return key, program

    @staticmethod
    def _joint(part, arguments):
        try:
            return joint_graph(*arguments)
        except Exception as error:  # whatever it is, the part cannot be traced
            raise refused(error, part.path or part.name) from error

    def _like_gradient(self, node):
        """Contiguous, until a later part has made one that is not."""
        return _like_tensor(self.gradients[node]) if node in self.gradients else torch.empty(
            node.meta["val"].shape, dtype=node.meta["val"].dtype)

    _tangent = _like_gradient

    def _key(self, part, arguments, wants, tangents, so_far):
        number = {}
        for node in part.inputs + part.weights + part.nodes:
            number[node] = f"%{len(number)}"

        def written(value):
            if isinstance(value, torch.fx.Node):
                return number.get(value, value.name)
            if isinstance(value, (list, tuple)):
                return [written(v) for v in value]
            return str(value)

        calls = [(str(n.target), written(n.args), sorted((k, str(written(v))) for k, v in n.kwargs.items()))
                 for n in part.nodes]
        like = [(tuple(a.shape), a.stride(), a.dtype) if a is not None else None for a in arguments + tangents]
        names = [self._local(part, n) for n in part.weights]
        return str((calls, like, wants, so_far, names, [number[n] for n in part.outputs]))

    def _local(self, part, node):
        return self.names[node].removeprefix(part.path + ".") if part.path else self.names[node]

    def _connect(self, named):
        kinds = {}
        batch_used = []
        made_by = {n: (part.name, i) for part in self.parts for i, n in enumerate(part.outputs)}
        for part, (key, program) in zip(self.parts, named):
            kind = kinds.setdefault(key, self._kind(part, len(kinds)))
            for (value, *_), node in zip(program.weights, part.weights):
                value.shown = self._local(part, node)
            self.network.programs.setdefault(kind, program)
            module = Module(part.name, kind, bool(part.path), weights=[self.names[n] for n in part.weights])
            for node in part.inputs:
                if node in self.batch:
                    module.inputs.append(("batch", self.batch[node].name))
                    if node not in batch_used:
                        batch_used.append(node)
                elif node in self.names:
                    module.inputs.append(("weight", self.names[node]))
                else:
                    module.inputs.append(("module", *made_by[node]))
            self.network.modules.append(module)
        for node in [n for n in self.batch if n in batch_used]:
            tensor = self.batch[node]
            if tensor.value.dtype not in TYPE_NAMES_OF_BATCH:
                raise Refusal(tensor.name, f"is of {tensor.value.dtype}", "give floats or int64")
            self.network.batch.append(tensor)

    def _kind(self, part, count):
        stem = part.path.rsplit(".", 1)
        base = (stem[0] if len(stem) == 2 and stem[1].isdigit() else part.name).replace(".", "_")
        return base if base not in self.network.programs else f"{base}_{count}"


def _like_tensor(tensor):
    dense = tensor if is_dense(tensor) else torch.empty(tensor.shape, dtype=tensor.dtype)
    return torch.empty_strided(dense.shape, dense.stride(), dtype=tensor.dtype)


def network_of(captured, module, split_at):
    return _Builder(captured, block_paths(module, split_at)).build()
