"""Which ATen operators a program may call, and how a call is written. core/model/imported/operators.cpp has the same
names. Must not know parts or files.
"""
import functools
import operator
import os
from dataclasses import dataclass

import torch

from .refusal import Refusal

TYPE_NAMES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.float64: "fp64",
              torch.int64: "int64", torch.int32: "int32", torch.bool: "bool", torch.uint8: "uint8"}
MEMORY_FORMATS = {torch.contiguous_format: "contiguous", torch.preserve_format: "preserve"}
SAME = {"detach", "alias", "lift_fresh"}
VIEWS = {"view", "_unsafe_view", "t", "transpose.int", "permute", "unsqueeze", "squeeze.dim", "squeeze.dims", "squeeze",
         "expand", "slice.Tensor", "select.int", "split.Tensor", "split_with_sizes", "unbind.int", "chunk"}
# Made of nothing but sizes and numbers: made again rather than saved.
MAKERS = {"arange", "arange.start", "arange.start_step", "full", "zeros", "ones", "scalar_tensor", "empty.memory_format",
          "full_like", "zeros_like", "ones_like", "empty_like", "new_zeros", "new_ones", "new_full", "dropout_factors"}
RENAMED = {"_unsafe_view": "view", "_scaled_dot_product_flash_attention_for_cpu": "attention",
           "_scaled_dot_product_flash_attention_for_cpu_backward": "attention_backward"}
DROPPED = {"device", "layout", "pin_memory", "non_blocking"}


def dropout_factors(sizes, rate, stream, dtype):
    """Stands in a graph for what the runtime draws: 0 at that rate, else 1 / (1 - rate)."""


@functools.cache
def allowed_operators():
    with open(os.path.join(os.path.dirname(__file__), "operators.txt"), encoding="utf-8") as file:
        return set(file.read().split())


@dataclass
class Call:
    name: str
    out: list  # names; None: nobody reads it
    arguments: list  # as written


def name_of(node):
    if node.op == "call_function" and node.target is dropout_factors:
        return "dropout_factors"
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return ""
    name = node.target._schema.name.removeprefix("aten::")
    overload = node.target._schema.overload_name
    return f"{name}.{overload}" if overload else name


def base(node):
    """The operator whose results an item is of."""
    return node.args[0] if node.op == "call_function" and node.target is operator.getitem else node


def is_same(node):
    return name_of(node) in SAME


def is_view(node):
    return name_of(base(node)) in VIEWS


def is_cheap(node):
    return name_of(base(node)) in MAKERS


def _written(value, names):
    if isinstance(value, torch.fx.Node):
        return names[value]
    if isinstance(value, (list, tuple)):
        return [_written(v, names) for v in value]
    if isinstance(value, torch.dtype):
        return TYPE_NAMES[value]
    if isinstance(value, torch.memory_format):
        return MEMORY_FORMATS[value]
    return value


def refuse(node, where):
    name = name_of(node) or str(node.target)
    raise Refusal(where, f"calls {name}, which cannot be imported", "no operator of Tandem's performs it; docs/import.md "
                  "lists those that do")


def call_of(node, out, names, where):
    """`out`: names of its results."""
    name = name_of(node)
    if RENAMED.get(name, name) not in allowed_operators():
        refuse(node, where)
    if node.target is dropout_factors:
        return Call(name, out, [_written(a, names) for a in node.args])
    schema, written = node.target._schema, []
    for i, argument in enumerate(schema.arguments):
        if argument.name in DROPPED:
            continue
        value = node.args[i] if i < len(node.args) and not argument.kwarg_only else node.kwargs.get(
            argument.name, argument.default_value)
        if argument.name == "dtype" and value is None and isinstance(node.meta["val"], torch.Tensor):
            value = node.meta["val"].dtype if name.split(".")[0] in (
                "arange", "full", "zeros", "ones", "scalar_tensor", "empty", "full_like", "zeros_like", "ones_like",
                "empty_like", "new_zeros", "new_ones", "new_full", "_to_copy") else None
        try:
            written.append(_written(value, names))
        except KeyError:
            refuse(node, where)
    return Call(RENAMED.get(name, name), out, written)
