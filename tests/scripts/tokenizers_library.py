#!/usr/bin/env python3
"""Tandem's tokens of a text are those of Hugging Face's tokenizers library, for small BPE tokenizers of bytes and of characters, with the
patterns of published models, and texts that are hard to cut; and a run on a text with a tokenizer.json begins with the
loss that it has on the library's tokens.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
if not (BIN / "test_runtime").exists() or not (BIN / "tandem-train").exists():
    sys.exit(77)
sys.path.insert(0, str(SOURCE / "tests" / "weights"))
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy  # noqa: E402

from small_tokenizers import CHARACTERS, CUTS, NASTY, random_texts, train, train_characters  # noqa: E402

RANDOM_TEXTS = 400
failures = []


def learnt_from():
    """What comes with every checkout: prose, code, and many scripts."""
    files = [*sorted((SOURCE / "docs").glob("*.md")), *sorted((SOURCE / "core" / "scheduler").glob("*.cpp"))]
    return [file.read_text() for file in files]


def library_ids(tokenizer, text):
    return tokenizer.encode(text.decode("utf-8", errors="replace"), add_special_tokens=False).ids


def same_tokens(folder, tokenizers, texts):
    groups = []
    for name, tokenizer in tokenizers.items():
        path = folder / f"{name}.json"
        tokenizer.save(str(path))
        groups.append({"tokenizer": str(path), "cases": [{"text": t.hex(), "ids": library_ids(tokenizer, t)} for t in texts]})
        if name == "gpt2":  # merges as texts, as files of before 2024 have them
            old = json.loads(path.read_text())
            old["model"]["merges"] = [" ".join(pair) for pair in old["model"]["merges"]]
            del old["model"]["type"]
            (folder / "old.json").write_text(json.dumps(old))
            groups.append({"tokenizer": str(folder / "old.json"), "cases": groups[-1]["cases"]})
    cases = folder / "cases.json"
    cases.write_text(json.dumps(groups))
    result = subprocess.run([str(BIN / "test_runtime"), "--gtest_filter=Tokenizer.MakesTheTokensThatTheLibraryMakes"],
                            env={**os.environ, "TANDEM_TOKENIZER_CASES": str(cases)}, capture_output=True, text=True, timeout=600)
    if result.returncode != 0 or "[  PASSED  ] 1 test" not in result.stdout:
        failures.append(f"other tokens than the library's:\n{result.stdout[-4000:]}{result.stderr[-1000:]}")
    print(f"{len(groups)} tokenizers, {len(texts)} texts each", flush=True)


def same_run(folder, tokenizer, text):
    """A run on the text is the run on a file of the library's tokens."""
    (folder / "text.txt").write_bytes(text)
    ids = library_ids(tokenizer, text)
    numpy.array(ids, numpy.uint16).tofile(folder / "tokens.bin")
    losses = []
    for data in ("{text: text.txt, tokenizer: llama3.json}", "{tokens: tokens.bin}"):
        path = folder / "question.yaml"
        path.write_text("machine: round_numbers\nlimits: {device_bytes: 64MiB, host_bytes: 256MiB, cores: 2}\n"
                        f"workload: {{family: gpt, layers: 1, hidden: 32, heads: 2, vocabulary: {tokenizer.get_vocab_size()}, "
                        f"sequence: 16, batch: 4, precision: fp32}}\ndata: {data}\nvalidation: {{every: 2, batches: 1}}\n"
                        "policy: {name: resident}\nsteps: 3\n")
        result = subprocess.run([str(BIN / "tandem"), "train", str(path), "--device", "cpu", "--json", "-"], capture_output=True,
                                text=True, timeout=300)
        losses.append(json.loads(result.stdout)["loss"] if result.returncode == 0 else result.stderr)
    if losses[0] != losses[1] or isinstance(losses[0], str):
        failures.append(f"the text's run {losses[0]} is not that of its tokens, {losses[1]}")


def main():
    texts = learnt_from()
    tokenizers = {name: train(name, texts, 700) for name in CUTS} | {name: train_characters(name, texts, 700) for name in CHARACTERS}
    words = " ".join(texts).split()[:5000]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        same_tokens(folder, tokenizers, [*NASTY, *random_texts(RANDOM_TEXTS, words), texts[0].encode()])
        same_run(folder, tokenizers["llama3"], "\n".join(texts[:4]).encode())
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


sys.exit(main())
