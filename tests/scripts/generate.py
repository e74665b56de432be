#!/usr/bin/env python3
"""`tandem generate`: texts of tiny models of Hugging Face's transformers are transformers' own, token by token; prompts of
several lengths; text by bytes and by a tokenizer; drawn tokens; several ranks; what is refused, and what a run leaves that
is interrupted, or loses a rank.

    generate.py --gpus 2 --machine machine.yaml     several ranks alone, on GPUs
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
if not (BIN / "tandem-train").exists():
    sys.exit(77)
sys.path[:0] = [str(SOURCE / "tests" / "weights")]
os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1", TQDM_DISABLE="1", TRANSFORMERS_VERBOSITY="error")

import torch  # noqa: E402

import hf_models  # noqa: E402
import small_tokenizers  # noqa: E402

NEW, WORDS = 9, hf_models.WORDS
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--gpus", type=int, default=0)
parser.add_argument("--machine", default="round_numbers")
GPUS, MACHINE = vars(parser.parse_args()).values()
DEVICE = ("--device", "cuda") if GPUS else ()
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def generate(*arguments, **more):
    return subprocess.run([str(BIN / "tandem"), "generate", *map(str, arguments), *DEVICE], capture_output=True, text=True, timeout=120, check=False, **more)


def scenario(folder, workload, generating="", policy="{name: resident}", more=""):
    path = folder / "question.yaml"
    path.write_text(f"machine: {MACHINE}\nlimits: {{device_bytes: 64MiB, host_bytes: 256MiB, cores: 2}}\n"
                    f"workload: {{{workload}, precision: fp32}}\ngenerate: {{prompt: 4, new_tokens: {NEW}, page: 4{generating}}}\n"
                    f"policy: {policy}\n{more}")
    return path


def written(folder, *arguments, name=""):
    out = folder / "texts.jsonl"
    out.unlink(missing_ok=True)
    result = generate(*arguments, "--texts", out)
    check(name or str(arguments), result.returncode == 0, result.stderr[-1000:])
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else [], result


def prompts_of(lengths):
    numbers = torch.Generator().manual_seed(4)
    return [torch.randint(3, WORDS, (length,), generator=numbers).tolist() for length in lengths]


def own_tokens(model, prompt):
    """Greedy, whole passes: no cache, no stop."""
    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(NEW):
            tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
    return tokens[len(prompt):]


def transformers_texts(root):
    prompts = prompts_of([5, 3, 5, 5, 3, 7])
    for name, policy in (("gpt2", "{name: resident}"), ("opt", "{name: flexgen, wg: 50, cg: 0, hg: 0}"), ("llama", "{name: accelerate}"),
                         ("qwen2", "{name: flexgen, wg: 0, cg: 0, cpu_attention: true}"), ("mixtral", "{name: resident}")):
        model = hf_models.randomise(getattr(hf_models, name)())
        folder = root / name
        folder.mkdir()
        model.save_pretrained(folder)
        (folder / "prompts.txt").write_text("\n".join(" ".join(map(str, prompt)) for prompt in prompts) + "\n")
        more = ", capacity_factor: 5" if name == "mixtral" else ""
        path = scenario(folder, f"config: config.json, batch: 2, micro_batches: 2{more}", policy=policy, more="weights: .\n")
        texts, result = written(folder, path, "--prompts", folder / "prompts.txt", "--tokens", name=name)
        by_number = {text["text"]: text for text in texts}
        check(name, [text["text"] for text in texts] == list(range(len(prompts))), texts)
        for number, prompt in enumerate(prompts):
            expected = own_tokens(model, prompt)
            check(f"{name}, prompt {number}", by_number[number]["tokens"] == expected, f"{by_number[number]['tokens']} is not {expected}")
        check(name, "2 runs: as many prompts" in result.stderr, result.stderr)
        if name in ("gpt2", "llama"):  # whose head has the embedding's weights, which another rank has; and one of its own
            path.write_text(path.read_text() + "parallel: {pipeline: 2}\n")
            by_stages = written(folder, path, "--prompts", folder / "prompts.txt", "--tokens", name=f"{name} in a pipeline")[0]
            check(f"{name} in a pipeline", by_stages == texts, (by_stages, texts))
        print(f"{name:10} {len(prompts)} prompts, transformers' tokens", flush=True)


BYTES = "family: gpt, layers: 2, hidden: 32, heads: 4, vocabulary: 256, sequence: 64, batch: 1"


def streams_bytes(root):
    path = scenario(root, BYTES)
    prompt = "Gr\u00fc\u00dfe"
    out = root / "texts.jsonl"
    result = generate(path, "--prompts", "-", "--texts", out, input=prompt + "\n")
    check("standard input", result.returncode == 0, result.stderr)
    text = json.loads(out.read_text())
    check("bytes", text["prompt"] == prompt and len(text["tokens"]) == NEW and not text["stopped"], text)
    check("bytes", text["generated"] == bytes(text["tokens"]).decode(errors="replace"), text)
    check("no escape codes", all(ord(c) >= 32 or c == "\n" for c in result.stdout), repr(result.stdout))
    # The token that came third ends the next one.
    again, _ = written(root, scenario(root, BYTES, f", stop_token: {text['tokens'][2]}"), "--prompts", prompt_file(root, prompt), name="stop")
    first = text["tokens"].index(text["tokens"][2])
    check("stop token", again[0]["tokens"] == text["tokens"][:first] and again[0]["stopped"], again)
    several, result = written(root, scenario(root, BYTES.replace("batch: 1", "batch: 2"), f", stop_token: {text['tokens'][2]}"), "--prompts",
                              prompt_file(root, prompt + "\n" + prompt), name="stop in a block")
    check("stop token of two", [one["tokens"] for one in several] == [again[0]["tokens"]] * 2 and "== text 1" in result.stdout, several)
    result = generate(scenario(root, BYTES), "--prompts", prompt_file(root, prompt), "--texts", "-")
    check("lines alone", json.loads(result.stdout)["tokens"] == text["tokens"], result.stdout)
    check("without prompts", len(written(root, scenario(root, BYTES))[0]) == 1)


def lengths(root):
    """Prompts of several lengths in one run, each with as many new tokens as it asks for: those of each by itself. Experts with
    room for some tokens alone take prompts of one length."""
    prompts = [" ".join(map(str, prompt)) for prompt in prompts_of([9, 2, 5, 5])]
    for family, codes in ((GPT, ""), (LLAMA, ", cache_bits: 4")):
        alone = [written(root, scenario(root, family, codes), "--prompts", prompt_file(root, one), "--tokens", name="alone")[0][0] for one in prompts]
        path = scenario(root, family, codes)
        path.write_text(path.read_text().replace(f"new_tokens: {NEW}", f"new_tokens: {{values: [3, {NEW}, 1, 4]}}"))
        texts, result = written(root, path, "--prompts", prompt_file(root, "\n".join(prompts)), "--tokens", name="lengths")
        for text, own, count in zip(texts, alone, (3, NEW, 1, 4), strict=True):
            check("lengths", text["tokens"] == own["tokens"][:count], (family, text, own))
        check("lengths", "runs" not in result.stderr and "4 texts, 17 tokens" in result.stderr, result.stderr)
    texts, result = written(root, scenario(root, MOE), "--prompts", prompt_file(root, "\n".join(prompts)), "--tokens", name="experts")
    check("experts", "3 runs" in result.stderr and len(texts) == 4, result.stderr)
    path = scenario(root, GPT)
    path.write_text(path.read_text().replace("prompt: 4", "prompt: {uniform: [2, 9]}").replace(f"new_tokens: {NEW}", "new_tokens: {values: [2, 3]}"))
    texts, _ = written(root, path, name="drawn lengths")
    check("drawn lengths", [len(text["tokens"]) for text in texts] == [2, 3, 2, 3], texts)


def prompt_file(root, text):
    path = root / "prompt.txt"
    path.write_text(text + "\n")
    return path


def by_tokenizer(root):
    tokenizer = small_tokenizers.train("gpt2", [(SOURCE / "docs" / "generation.md").read_text()], 400)
    tokenizer.save(str(root / "tokenizer.json"))
    prompt = "the scheduler is shared"
    path = scenario(root, BYTES.replace("vocabulary: 256", f"vocabulary: {tokenizer.get_vocab_size()}"), more="data: {tokenizer: tokenizer.json}\n")
    texts, _ = written(root, path, "--prompts", prompt_file(root, prompt), name="tokenizer")
    check("tokenizer", texts[0]["generated"] == tokenizer.decode(texts[0]["tokens"], skip_special_tokens=False), texts)


def draws(root):
    path = scenario(root, BYTES, ", temperature: 1.5, top_k: 40")
    prompts = prompt_file(root, "once upon")
    one, two = (written(root, path, "--prompts", prompts, name="drawn")[0][0]["tokens"] for _ in range(2))
    other = written(root, path, "--prompts", prompts, "--seed", "9", name="drawn")[0][0]["tokens"]
    check("drawn again", one == two, (one, two))
    check("drawn by another seed", one != other, one)
    few = written(root, scenario(root, BYTES, ", temperature: 1.5, top_k: 1"), "--prompts", prompts, name="top 1")[0][0]["tokens"]
    greedy = written(root, scenario(root, BYTES), "--prompts", prompts, name="greedy")[0][0]["tokens"]
    check("the likeliest of one", few == greedy, (few, greedy))


def refusals(root):
    def asks(text="x", generating="", tokens=()):
        return (scenario(root, BYTES, generating), "--prompts", prompt_file(root, text), *tokens)

    numbers = ("--tokens",)
    for name, arguments, words in (
            ("no file", lambda: (scenario(root, BYTES), "--prompts", root / "none"), "none cannot be opened"),
            ("an empty file", lambda: asks(""), "has no prompts"),
            ("a folder", lambda: (scenario(root, BYTES), "--prompts", root), "is a folder"),
            ("an unknown token", lambda: asks("1 2 300", tokens=numbers), "prompt.txt:1: the prompt has token 300"),
            ("no number", lambda: asks("1 2\n1 two", tokens=numbers), "prompt.txt:2: the prompt 'two' is no token"),
            ("too long", lambda: asks("x" * 60), "prompt and new tokens are 69"),
            ("no tokens to draw", lambda: asks(generating=", top_k: 3"), "generate.top_k"),
            ("a longer start of T5's text", lambda: (scenario(root, T5), "--prompts", prompt_file(root, "x")), "begins with one token, 0"),
            ("a training", lambda: (SOURCE / "scenarios" / "demo.yaml",), "generate: is missing"),
            ("texts over prompts", lambda: (*asks(), "--texts", root / "prompt.txt"), "--prompts"),
            ("a folder for texts", lambda: (*asks(), "--texts", root), "--texts")):
        result = generate(*arguments())
        check(name, result.returncode == 2 and words in result.stderr, f"{result.returncode} {result.stderr}")


def interrupted(root):
    path = scenario(root, BYTES.replace("sequence: 64", "sequence: 60000"))
    path.write_text(path.read_text().replace(f"new_tokens: {NEW}", "new_tokens: 50000"))
    process = subprocess.Popen([str(BIN / "tandem"), "generate", str(path), "--tokens", "--texts", str(root / "cut.jsonl")],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.read(40)  # some tokens are there
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    check("interrupted", process.returncode == 130 and "interrupted" in errors, f"{process.returncode} {errors[-500:]}")
    tokens = json.loads((root / "cut.jsonl").read_text())["tokens"]
    check("interrupted", 5 < len(tokens) < 50000 and rest.endswith("\n"), len(tokens))


GPT = "family: gpt, layers: 5, hidden: 48, heads: 6, vocabulary: 250, sequence: 64, batch: 2, micro_batches: 2"
LLAMA = "family: llama, layers: 4, hidden: 48, heads: 6, key_heads: 2, feed_forward: 88, vocabulary: 250, sequence: 64, batch: 2, micro_batches: 2"
SHARED = LLAMA.replace("key_heads: 2", "key_heads: 1")
MOE = "family: moe, layers: 2, hidden: 48, heads: 6, feed_forward: 88, experts: 3, experts_per_token: 1, vocabulary: 250, sequence: 64, batch: 2, micro_batches: 2"
T5 = "family: t5, layers: 2, hidden: 48, heads: 3, feed_forward: 88, vocabulary: 250, sequence: 9, target_sequence: 20, batch: 1"
MOVES = "{name: flexgen, wg: 50, cg: 0, hg: 50}"


def ranks(root):
    """Stages of a pipeline, and ranks that divide layers, choose one device's tokens. The embedding of one is tied."""
    divided = (("{pipeline: 2}", 2, GPT, MOVES), ("{pipeline: 3}", 3, GPT, "{name: row_by_row}"), ("{tensor: 2}", 2, GPT, "{name: resident}"),
               ("{tensor: 2}", 2, LLAMA, "{name: petals}"), ("{tensor: 2, pipeline: 2}", 4, LLAMA, "{name: petals}"),
               ("{tensor: 2}", 2, SHARED, "{name: resident}"), ("{tensor: 2, attention: batch}", 2, SHARED, "{name: resident}"),
               ("{tensor: 4, hidden: 2}", 4, GPT, "{name: resident}"), ("{tensor: 4, hidden: 2}", 4, LLAMA, "{name: resident}"),
               ("{tensor: 2, hidden: 2}", 2, LLAMA, "{name: resident}"), ("{tensor: 4, hidden: 2}", 4, SHARED, "{name: resident}"),
               ("{tensor: 4, hidden: 2, attention: batch}", 4, SHARED, "{name: resident}"),
               ("{tensor: 2, hidden: 2, pipeline: 2}", 4, LLAMA, "{name: resident}"))
    for family in (GPT, LLAMA, SHARED):
        lengths = [5, 5, 5, 5, 3] if family != SHARED else [5, 5, 5, 5, 3, 3]  # ranks divide each batch
        prompts = prompt_file(root, "\n".join(" ".join(map(str, prompt)) for prompt in prompts_of(lengths)))
        alone = written(root, scenario(root, family), "--prompts", prompts, "--tokens", name="alone")[0]
        check("alone", len({tuple(text["tokens"]) for text in alone}) > 2, alone)
        for division, processes, of, policy in divided:
            if of != family or (GPUS and processes > GPUS):
                continue
            path = scenario(root, family, policy=policy, more=f"parallel: {division}\n")
            texts = written(root, path, "--prompts", prompts, "--tokens", name=division)[0]
            check(f"{division} {policy}", texts == alone, (texts, alone))


def lost_rank(root):
    path = scenario(root, GPT.replace("sequence: 64, batch: 2, micro_batches: 2", "sequence: 60000, batch: 1"), more="parallel: {pipeline: 2}\n")
    path.write_text(path.read_text().replace(f"new_tokens: {NEW}", "new_tokens: 50000"))
    out = root / "lost.jsonl"
    process = subprocess.Popen([str(BIN / "tandem"), "generate", str(path), "--tokens", "--texts", str(out)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    process.stdout.read(40)  # some tokens are there
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False).stdout.split()
    os.kill(int(children[0]), signal.SIGKILL)
    _, errors = process.communicate(timeout=90)
    check("a lost rank", process.returncode == 4 and "rank 0 was ended by signal 9" in errors, f"{process.returncode} {errors[-500:]}")
    check("a lost rank", out.exists() and len(json.loads(out.read_text())["tokens"]) > 5, "no text is left")


def main():
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for part in (ranks,) if GPUS else (transformers_texts, streams_bytes, by_tokenizer, draws, lengths, ranks, refusals, interrupted, lost_rank):
            part(root)
    for failure in failures:
        print("FAILED", failure)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
