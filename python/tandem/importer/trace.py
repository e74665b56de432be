"""Forward and backward of one part as one list of the ATen calls that eager makes, with autograd's own kernels.

A gradient that later parts made of an input's is an argument of backward: autograd begins that input's sum with it, as
it would in the whole module. Must not know files, or where parts come from.
"""
import torch
from torch._subclasses.functional_tensor import FunctionalTensorMode, dispatch_functionalize
from torch.fx import Interpreter
from torch.fx.experimental.proxy_tensor import make_fx

def run(module, arguments):
    """The part's outputs, under autograd."""
    with torch.enable_grad():  # what the part changes of it ends with it
        return Interpreter(module).run(*arguments)


def part_module(owner, part):
    """The part as a GraphModule: inputs, then weights, to a tuple of its outputs."""
    graph, copies = torch.fx.Graph(), {}
    for node in part.inputs + part.weights:
        copies[node] = graph.placeholder(node.name)
    for node in part.nodes:
        copies[node] = graph.node_copy(node, lambda n: copies[n])
    graph.output(tuple(copies[n] for n in part.outputs))
    return torch.fx.GraphModule(owner, graph)


def joint_graph(module, arguments, wants, tangents, so_far, before):
    """The graph of (arguments, tangents, gradients so far) to (outputs, gradients).

    `arguments`: fake tensors, those of `wants` requiring gradients; `tangents`: of each output, or None where it has no
    gradient; `so_far`: places among `arguments`, `before`: tensors like the gradients that are there so far.
    """
    given = [t for t in tangents if t is not None]

    def joint(arguments, given, so_far_gradients):
        outputs = run(module, arguments)
        roots = [o for o, t in zip(outputs, tangents, strict=True) if t is not None]
        leaves = [a for a, wanted in zip(arguments, wants, strict=True) if wanted]
        gradients = [None] * len(leaves)
        if roots and leaves:
            roots += [arguments[i] for i in so_far]
            gradients = torch.autograd.grad(roots, leaves, list(given) + list(so_far_gradients), allow_unused=True)
        return [o.detach() for o in outputs], list(gradients)

    functional = dispatch_functionalize(joint, FunctionalTensorMode())
    return make_fx(functional)(arguments, given, before)
