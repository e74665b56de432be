"""What `tandem import` starts: MODULE:FUNCTION --output DIR. Exit codes are the command's: 2 for what cannot be done."""
import argparse
import importlib
import os
import sys

from .importing import DTYPES, import_module
from .refusal import Refusal


def _function(text):
    module, _, name = text.partition(":")
    if not module or not name:
        raise Refusal(text, "names no function", "allowed: package.module:function")
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise Refusal(module, f"cannot be imported ({error})", "allowed: a module that this Python finds") from error
    if not callable(found):
        raise Refusal(text, "is no function", f"allowed: a function of {module}")
    return found


def _count(number, what):
    return f"{number} {what}{'' if number == 1 else 's'}"


def main():
    parser = argparse.ArgumentParser(prog="tandem import", description="Writes a PyTorch module as a folder that trains.")
    parser.add_argument("function", metavar="MODULE:FUNCTION", help="returns a module, and example inputs")
    parser.add_argument("--output", required=True, metavar="DIR")
    parser.add_argument("--split", action="append", metavar="PATH", help="a list of blocks, or a submodule; by default the "
                        "longest list of equal blocks")
    parser.add_argument("--dynamic", action="append", default=[], choices=["batch", "sequence"],
                        help="sizes go by the batch, or by the length of inputs [batch, length], which a scenario then chooses")
    parser.add_argument("--dtype", choices=list(DTYPES), help="what the module's parameters are turned to first")
    parser.add_argument("--quiet", action="store_true")
    flags = parser.parse_args()
    try:
        module, inputs = _function(flags.function)()
        network, samples = import_module(module, inputs, flags.output, flags.function.partition(":")[2], flags.split,
                                         "batch" in flags.dynamic, flags.dtype, "sequence" in flags.dynamic)
    except Refusal as refusal:
        print(f"tandem import: {flags.function}: {refusal}", file=sys.stderr)
        return 2
    if not flags.quiet:
        kinds = [m.kind for m in network.modules]
        print(f"{flags.output}: {_count(len(kinds), 'module')}, {_count(len(set(kinds)), 'program')}, "
              f"{_count(sum(len(m.weights) for m in network.modules), 'weight')}")
        keys = "" if "batch" in flags.dynamic else f", batch: {samples}"  # the only one that it can have
        precision = next(name for name, dtype in DTYPES.items() if dtype in {p.dtype for p in module.parameters()})
        if precision != "fp32":
            keys += f", precision: {precision}"
        print(f"workload: {{family: imported, path: {flags.output}{keys}}}")
    return 0
