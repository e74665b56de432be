"""Refuses what no import may do, where its module is still known: sizes that depend on data, random numbers beside
dropout's, changes of inputs and buffers in place. Must not know parts.
"""
from .operators import name_of
from .refusal import Refusal


SIZES = "sizes that depend on data cannot be planned: "
BY_NAME = {
    "nonzero": SIZES + 'of experts, use the batched experts (transformers: experts_implementation="batched_mm")',
    "nonzero_numpy": SIZES + "use masks of a fixed size",
    "unique": SIZES + "use masks of a fixed size",
    "_unique2": SIZES + "use masks of a fixed size",
    "masked_select": SIZES + "multiply by the mask instead",
    "repeat_interleave.Tensor": SIZES + "repeat a fixed number of times",
}
RANDOM = ("rand", "normal", "bernoulli", "multinomial", "randperm", "uniform", "exponential")


def refuse_what_depends_on_data(captured):
    path = captured.path
    for node in captured.module.graph.nodes:
        name = name_of(node)
        if name in BY_NAME:
            raise Refusal(path[node], f"calls {name}", BY_NAME[name])
        if name.startswith(RANDOM):
            raise Refusal(path[node], f"calls {name}", "random numbers are drawn by dropout alone: use "
                          "torch.nn.functional.dropout, or give noise as an input")


def _origin(node):
    """The tensor that a view lies in."""
    while node.op == "call_function" and hasattr(node.target, "_schema"):
        aliased = [i for i, a in enumerate(node.target._schema.arguments) if a.alias_info is not None]
        if not aliased or aliased[0] >= len(node.args):
            break
        node = node.args[aliased[0]]
    return node


def refuse_changed_inputs(captured):
    for node in captured.module.graph.nodes:
        if node.op != "call_function" or not hasattr(node.target, "_schema") or not node.target._schema.is_mutable:
            continue
        for i, argument in enumerate(node.target._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write or i >= len(node.args):
                continue
            origin = _origin(node.args[i])
            if origin.op != "call_function":
                raise Refusal(captured.path[node], f"changes {captured.name_of(origin)} in place ({name_of(node)})",
                              "change a clone() of it; batch norm's running statistics are such a change: eval() it, or use "
                              "group norm")
