#!/usr/bin/env python3
"""`tandem generate` with imported modules: tokens are those of a loop over the same module in PyTorch, under policies that
move weights, for prompts of several lengths; simulations of them say that there is no cache; what cannot generate is
refused in words.

It takes 40 s: each import by command is a process that loads PyTorch.
"""
import json
import os
import pathlib
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
if not (BIN / "tandem-train").exists():
    sys.exit(77)
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests" / "imports")]

import torch  # noqa: E402

from imported_runs import failures, import_by_command, run  # noqa: E402

import decoders  # noqa: E402
import transformers_models  # noqa: E402
from tandem.importer.importing import import_module  # noqa: E402

NEW = 7
ANY = ("--dynamic", "batch", "--dynamic", "sequence")


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def scenario(folder, policy="{name: resident}", batch=2, generating="", more=""):
    path = pathlib.Path(f"{folder}.yaml")
    path.write_text(f"machine: round_numbers\nlimits: {{device_bytes: 64MiB, host_bytes: 256MiB, cores: 2}}\n"
                    f"workload: {{family: imported, path: {folder}, batch: {batch}}}\n"
                    f"generate: {{prompt: 4, new_tokens: {NEW}{generating}}}\npolicy: {policy}\n{more}")
    return path


def own_tokens(logits, prompt):
    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(NEW):
            tokens.append(int(logits(torch.tensor([tokens]))[0, -1].argmax()))
    return tokens[len(prompt):]


def texts_are_pytorchs(root):
    """`logits`: of the module that `make` gives, for token numbers [1, length]."""
    prompts = [torch.randint(30, (length,), generator=torch.Generator().manual_seed(length)).tolist() for length in (5, 3, 5)]
    given = root / "prompts.txt"
    given.write_text("".join(" ".join(map(str, prompt)) + "\n" for prompt in prompts))
    for where, make, logits, policy in (
            ("transformers_models", transformers_models.llama, lambda m, ids: m(input_ids=ids).logits, "{name: resident}"),
            ("transformers_models", transformers_models.gemma2, lambda m, ids: m(input_ids=ids).logits, "{name: accelerate}"),
            ("transformers_models", transformers_models.mixtral, lambda m, ids: m(input_ids=ids).logits, "{name: flexgen, wg: 50, cg: 100, hg: 0}"),
            ("decoders", decoders.running_means, lambda m, ids: m.logits(ids), "{name: deepspeed_inference}")):
        name = make.__name__
        folder = import_by_command(f"{where}:{name}", root / name, *ANY)
        module = make()[0].eval()
        result = run("generate", scenario(folder, policy), "--prompts", given, "--tokens", "--texts", "-", "--quiet")
        check(name, result.returncode == 0, result.stderr)
        texts = [json.loads(line)["tokens"] for line in result.stdout.splitlines()]
        expected = [own_tokens(lambda ids, m=module, f=logits: f(m, ids), prompt) for prompt in prompts]
        check(name, texts == expected, f"{texts} is not {expected}")
        simulated = run("simulate", folder.with_suffix(".yaml"), "--json", "-")
        found = json.loads(simulated.stdout) if simulated.returncode == 0 else {}
        check(name, found and not found["generation"]["has_cache"], simulated.stderr)
        if name == "llama":  # the longer a text is, the longer it takes
            times = found["step_time_s"]["all"]
            check(name, times == sorted(times) and times[-1] > times[0], times)
        print(f"{name:14} {len(prompts)} prompts, PyTorch's tokens", flush=True)


def other_ways(root):
    """Drawn tokens are the same for the same seed; a policy and a stop token change nothing before it."""
    folder, prompt = root / "llama", root / "prompt.txt"
    prompt.write_text("5 6 7\n")

    def tokens(path, *flags):
        result = run("generate", path, "--prompts", prompt, "--tokens", "--texts", "-", "--quiet", *flags)
        check(f"{path} {flags}", result.returncode == 0, result.stderr)
        return json.loads(result.stdout)["tokens"]

    drawn = scenario(folder, generating=", temperature: 1.5, top_k: 40", batch=1)
    one, again, other = tokens(drawn), tokens(drawn), tokens(drawn, "--seed", "5")
    check("drawn", one == again and one != other, (one, again, other))
    plain = tokens(scenario(folder, batch=1))
    stop = next(token for token in plain if token != plain[0])
    stopped = tokens(scenario(folder, batch=1, generating=f", stop_token: {stop}"))
    check("stop", stopped == plain[: plain.index(stop)], (plain, stopped))


def is_planned(root):
    """What codes of a cache would do is refused meanwhile, and the rest is searched."""
    result = run("plan", scenario(root / "llama"))
    check("plan", result.returncode == 0 and "Yes: " in result.stdout and "cache in 4 bits" not in result.stdout, result.stdout + result.stderr)


def refusals(root):
    def refused(name, path, *words, flags=()):
        result = run("simulate", path, *flags)
        check(name, result.returncode == 2 and all(word in result.stderr for word in words), result.stderr)

    refused("one length", scenario(import_by_command("transformers_models:llama", root / "fixed")), "--dynamic sequence")
    llama = scenario(root / "llama")
    refused("room", llama, "only 10", flags=("--set", "workload.sequence=10"))
    refused("pipeline", llama, "generates on one rank", flags=("--set", "parallel.pipeline=2"))
    refused("cache bits", llama, "without a cache", flags=("--set", "generate.cache_bits=4"))
    for make, word in ((decoders.with_mask, "beside"), (decoders.with_dropout, "eval()"), (decoders.squared, "cross_entropy")):
        import_module(*make(), str(root / make.__name__), any_batch=True, any_sequence=True)
        refused(make.__name__, scenario(root / make.__name__), "generate: ", word)


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        texts_are_pytorchs(root)
        other_ways(root)
        is_planned(root)
        refusals(root)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


sys.exit(main())
