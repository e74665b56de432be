#!/usr/bin/env python3
"""Imports as a user meets them: modules by hand train as PyTorch eager does, to the bit, under policies that move what
they need; checkpoints, resumes, names of the state dict; what cannot be imported is refused in words.

It takes 25 s: each run, and each import by command, is a process of its own that loads PyTorch.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
if not (BIN / "tandem-train").exists():
    sys.exit(77)
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests" / "imports")]

from imported_runs import compare_with_eager, failures, import_by_command, run, scenario_of, train  # noqa: E402

import hand_written  # noqa: E402
import refused  # noqa: E402
from tandem.importer.importing import import_module  # noqa: E402
from tandem.importer.refusal import Refusal  # noqa: E402


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def refusals(folder):
    for name, (given, words) in refused.CASES.items():
        try:
            import_module(*given(), str(folder / name))
        except Refusal as refusal:
            for word in words:
                check(name, word in str(refusal), f"no {word!r} in {refusal}")
        else:
            check(name, False, "was imported")
        check(name, not (folder / name / "network.yaml").exists(), "left a folder that looks whole")


def any_batch(folder):
    """An import with --dynamic batch is, at another batch, what an import of that batch is."""
    path = import_by_command("hand_written:gpt", folder / "any", "--dynamic", "batch")
    scenario = scenario_of(path, batch=7)
    with_any = train(scenario, folder / "any_checkpoints")
    module, inputs = hand_written.gpt()
    seven = tuple(value.repeat(2, 1)[:7] for value in inputs)
    import_module(module, seven, str(folder / "seven"))
    check("any batch", train(scenario_of(folder / "seven", batch=7), folder / "seven_checkpoints") == with_any, "differs")
    result = run("check", scenario_of(import_by_command("hand_written:gpt", folder / "fixed"), batch=7))
    check("fixed batch", result.returncode == 2 and "allowed: 4" in result.stderr, result.stderr)


def any_sequence(folder):
    """An import with --dynamic sequence is, at another length and batch, what an import of those is."""
    import transformers_models
    inputs = transformers_models.llama()[1]
    path = import_by_command("transformers_models:llama", folder / "lengths", "--dynamic", "batch", "--dynamic", "sequence")
    scenario = scenario_of(path, batch=3)
    longer = train(scenario, folder / "longer_checkpoints", "--set", "workload.sequence=17")
    torch = transformers_models.torch
    inputs = {key: torch.zeros(3, 17, dtype=torch.int64) for key in inputs}
    import_module(transformers_models.llama()[0], inputs, str(folder / "fixed_length"))
    fixed = train(scenario_of(folder / "fixed_length", batch=3), folder / "fixed_length_checkpoints")
    check("any sequence", fixed == longer, f"differs: {fixed} and {longer}")
    result = run("check", scenario_of(folder / "fixed_length", batch=3), "--set", "workload.sequence=18")
    check("fixed sequence", result.returncode == 2 and "--dynamic sequence" in result.stderr, result.stderr)


def sixteen_bits(folder):
    """In bf16, with fp32 masters: losses are near those of the same steps in fp32, and every policy's are the same."""
    import_by_command("hand_written:gpt", folder / "narrow", "--dtype", "bf16")
    wide = train(scenario_of(import_by_command("hand_written:gpt", folder / "wide"), batch=4, steps=12), folder / "wide_checkpoints")
    ways = [train(scenario_of(folder / "narrow", batch=4, steps=12, policy=policy), folder / f"narrow_{policy}", "--set",
                  "workload.precision=bf16") for policy in ("resident", "zero_infinity")]
    check("16 bits", ways[0] == ways[1], "policies differ")
    check("16 bits", all(abs(a - b) < 0.02 * a for a, b in zip(wide, ways[0])), f"{wide} and {ways[0]}")
    result = run("check", scenario_of(folder / "narrow", batch=4))
    check("16 bits", result.returncode == 2 and "allowed: bf16" in result.stderr, result.stderr)


def frozen(folder):
    """Parameters that require no gradient stay as they are; the others are those of eager, to the bit."""
    def some_frozen():
        module, inputs = hand_written.gpt()
        for name, parameter in module.named_parameters():
            parameter.requires_grad_(not ("qkv" in name or name.startswith("tokens")))
        return module, inputs
    compare_with_eager(some_frozen, folder, policy="zero_infinity", micro_batches=2, clip_norm=0.5)


def recorded(folder):
    """tests/data/imported/small is what the importer writes today."""
    path = import_by_command("hand_written:small", folder / "recorded", "--dynamic", "batch", "--split", "blocks")
    for file in sorted(path.rglob("*.yaml")):
        here, there = (
            [line for line in (root / file.relative_to(path)).read_text().splitlines() if not line.startswith("torch:")]
            for root in (path, SOURCE / "tests" / "data" / "imported" / "small"))
        check("recorded", here == there, f"{file.name} differs: import tests/imports/hand_written.py:small there again")


def documented():
    page = (SOURCE / "docs" / "import.md").read_text()
    names = (SOURCE / "python/tandem/importer/operators.txt").read_text().split()
    listed = page.partition("Operators that a program may call:\n\n```text\n")[2].partition("```")[0].replace(",", " ").split()
    check("docs/import.md", sorted(listed) == sorted(names), f"differs in {sorted(set(listed) ^ set(names))}")


def resumes(folder):
    path = import_by_command("hand_written:small", folder / "small")
    whole = train(scenario_of(path, batch=2, steps=6), folder / "whole")
    first = train(scenario_of(path, batch=2, steps=3), folder / "halves")
    second = train(scenario_of(path, batch=2, steps=6), folder / "halves", "--resume", str(folder / "halves"))
    check("resume", first + second == whole, f"{first} {second} {whole}")  # with dropout, whose factors go by the step


def every_policy(folder):
    path = import_by_command("hand_written:small", folder / "policies")
    result = run("compare-policies", scenario_of(path, batch=2), "--json", "-")
    check("policies", result.returncode == 0, result.stderr)
    runs = json.loads(result.stdout)["policies"] if result.returncode == 0 else []
    check("policies", len(runs) > 15 and all(r["exit_code"] == 0 for r in runs), [r for r in runs if r["exit_code"] != 0])


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        compare_with_eager(hand_written.gpt, folder, policy="zero_infinity", micro_batches=2, clip_norm=0.5)
        compare_with_eager(hand_written.running_sums, folder, policy="on_demand", clip_norm=0.3)
        compare_with_eager(hand_written.unet, folder, policy="zero_offload", split=["down", "pool", "middle", "up"])
        refusals(folder)
        any_batch(folder)
        any_sequence(folder)
        sixteen_bits(folder)
        frozen(folder)
        recorded(folder)
        documented()
        resumes(folder)
        every_policy(folder)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


sys.exit(main())
