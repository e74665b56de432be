#!/usr/bin/env python3
"""Training that begins with weights of Hugging Face's transformers has their loss: tiny random models of each
architecture are saved as the hub has them, whole and in parts, in fp32 and in 16 bits, and one step is trained on a batch
that Python makes, too.
"""
import hashlib
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
sys.path[:0] = [str(SOURCE / "tests" / "weights"), str(SOURCE / "tests" / "imports")]
os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1", TQDM_DISABLE="1", TRANSFORMERS_VERBOSITY="error")

import numpy  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import hf_models  # noqa: E402
import token_rows  # noqa: E402
from batches import batch as made_up  # noqa: E402

ROWS, SEQUENCE, CLOSE = 3, 16, 1e-5
failures = []


def check(name, condition, detail):
    if not condition:
        failures.append(f"{name}: {detail}")


def scenario(folder, data, keys="", steps=1, precision="fp32", more=""):
    path = folder / "question.yaml"
    path.write_text(
        "machine: round_numbers\nlimits: {device_bytes: 64MiB, host_bytes: 256MiB, cores: 2}\n"
        f"workload: {{config: config.json, batch: {ROWS}, precision: {precision}{keys}}}\n"
        f"weights: .\n{data}policy: {{name: resident}}\nsteps: {steps}\n{more}")
    return path


def run(path, *flags):
    return subprocess.run([str(BIN / "tandem"), "train", str(path), "--device", "cpu", "--json", "-", *flags],
                          capture_output=True, text=True, timeout=300)


def losses(name, path, *flags):
    result = run(path, *flags)
    check(name, result.returncode == 0, result.stderr.strip()[-1500:])
    return json.loads(result.stdout)["loss"] if result.returncode == 0 else []


def tokens_file(folder, words):
    """Token numbers without the mask, which is the last one."""
    tokens = numpy.random.default_rng(3).integers(0, words - 1, 4000).astype(numpy.uint16)
    tokens.tofile(folder / "tokens.bin")
    return tokens


def text_batch(folder, masked):
    tokens = tokens_file(folder, hf_models.WORDS)
    if masked:
        return token_rows.masked_tokens(tokens, ROWS, SEQUENCE, hf_models.WORDS)
    return token_rows.next_tokens(tokens, ROWS, SEQUENCE)


def made_up_batch(*tensors):
    return made_up([dict(name=name, shape=list(shape), **({"below": below} if below else {})) for name, shape, below in tensors],
                   ROWS, 0)


TEXT = ("data: {tokens: tokens.bin}\n", f", sequence: {SEQUENCE}")
WORDS = hf_models.WORDS
# By model: what it is given, and how the scenario says so.
NEXT = ["gpt2", "opt", "bloom", "gptj", "falcon", "falcon_two_norms", "llama", "mistral", "qwen2", "gemma2", "mixtral"]
CASES = {name: (lambda folder: text_batch(folder, False), *TEXT) for name in NEXT}
CASES["mixtral"] = (CASES["mixtral"][0], TEXT[0], TEXT[1] + ", capacity_factor: 5")
CASES["bert"] = CASES["bert_pretraining"] = (lambda folder: text_batch(folder, True), *TEXT)
CASES["vit"] = (lambda _: made_up_batch(("images", (ROWS, 3, 12, 12), 0), ("labels", (ROWS,), 7)), "", ", classes: 7")
T5 = [(name, (ROWS, length), WORDS) for name, length in (("sources", SEQUENCE), ("inputs", 10), ("targets", 10))]
CASES["t5"] = CASES["t5_gated"] = (lambda _: made_up_batch(*T5), "", f", sequence: {SEQUENCE}, target_sequence: 10")
CASES["whisper"] = (lambda _: made_up_batch(("mels", (ROWS, 8, 3000), 0), ("tokens", (ROWS, 11), WORDS), ("targets", (ROWS, 11), WORDS)),
                    "", ", sequence: 11")
CASES["clip"] = (lambda _: made_up_batch(("images", (ROWS, 3, 12, 12), 0), ("tokens", (ROWS, 20), WORDS)), "", ", sequence: 20")


def save(model, folder, **how):
    folder.mkdir(parents=True)
    model.save_pretrained(folder, **how)


def compare(name, label, model, folder):
    make_batch, data, keys = CASES[name]
    expected = hf_models.loss_on(model, make_batch(folder))
    got = losses(label, scenario(folder, data, keys))
    difference = abs(got[0] - expected) / expected if got else 0.0
    check(label, difference < CLOSE, f"begins at {got} and not at {expected}")
    print(f"{label:24} transformers {expected:.7f}  tandem {got[0] if got else float('nan'):.7f}  apart {difference:.1e}", flush=True)


def every_architecture(root):
    for name in CASES:
        model = hf_models.randomise(getattr(hf_models, name)())
        save(model, root / name)
        compare(name, name, model, root / name)


def other_forms(root):
    """In parts with an index; in 16 bits; heads that are not the embedding's, or stored twice."""
    for name in ("gpt2", "llama", "mixtral"):
        model = hf_models.randomise(getattr(hf_models, name)())
        folder = root / f"{name}_parts"
        save(model, folder, max_shard_size="24KB")
        check(name, len(list(folder.glob("model-*.safetensors"))) > 2, "was not saved in parts")
        compare(name, f"{name} in parts", model, folder)
    for kind in (torch.float16, torch.bfloat16):
        for name in ("bloom", "gpt2"):
            model = hf_models.randomise(getattr(hf_models, name)()).to(kind)
            folder = root / f"{name}_{kind}"
            save(model, folder)
            compare(name, f"{name} of {str(kind)[6:]}", model.float(), folder)
    model = hf_models.randomise(hf_models.gpt2(tied=False))
    save(model, root / "untied")
    compare("gpt2", "gpt2 with its own head", model, root / "untied")
    model = hf_models.randomise(hf_models.llama(tied=True))
    save(model, root / "twice")
    file = root / "twice" / "model.safetensors"
    state = load_file(file)
    save_file(state | {"lm_head.weight": state["model.embed_tokens.weight"].clone(), "model.rotary_emb.inv_freq": torch.ones(4)}, file)
    compare("llama", "llama, head twice", model, root / "twice")
    model = hf_models.randomise(hf_models.bert())
    save(model, root / "old_names")
    file = root / "old_names" / "model.safetensors"
    save_file({k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
               for k, v in load_file(file).items()}, file)
    compare("bert", "bert, old names", model, root / "old_names")


def are_close(a, b, most):
    return len(a) == len(b) > 0 and all(abs(x - y) < most for x, y in zip(a, b))


def masters(root):
    """In bf16 the master has what is stored, and padded rows of the vocabulary are zero: two steps are those of plain ones."""
    folder = root / "llama"
    data, keys = TEXT
    plain = losses("bf16", scenario(folder, data, keys, 2, "bf16"))
    padded = losses("bf16 padded", scenario(folder, data, keys + ", vocabulary_multiple: 64", 2, "bf16"))
    fp32 = losses("fp32", scenario(folder, data, keys, 2))
    check("padded vocabulary", are_close(plain, padded, 1e-4), f"{plain} {padded}")
    check("bf16", are_close(plain, fp32, 0.05), f"{plain} {fp32}")
    check("training", fp32 and fp32[1] != fp32[0], fp32)


def goes_on(root):
    """A run that goes on needs its weights no more."""
    folder, data, keys = root / "llama", *TEXT
    whole = losses("whole", scenario(folder, data, keys, 4))
    saved = f"checkpoint: {{directory: {folder}/saved}}\n"
    first = losses("first", scenario(folder, data, keys, 2, more=saved))
    for file in folder.glob("*.safetensors"):
        file.unlink()
    second = losses("second", scenario(folder, data, keys, 4, more=saved), "--resume", f"{folder}/saved")
    check("resume", first + second == whole, f"{first} {second} {whole}")
    (numpy.fromfile(folder / "tokens.bin", numpy.uint16) // 2).tofile(folder / "tokens.bin")
    other = run(scenario(folder, data, keys, 5, more=saved), "--resume", f"{folder}/saved")
    check("resume on other tokens", other.returncode == 2 and "--resume: data.tokens" in other.stderr, other.stderr)


def refusals(root):
    folder, (data, keys) = root / "gpt2", TEXT
    file = folder / "model.safetensors"
    state = load_file(file)

    def refused(name, changed, *words, with_keys=keys):
        save_file(changed, file)
        result = run(scenario(folder, data, with_keys))
        check(name, result.returncode == 2, f"exit code {result.returncode}: {result.stderr[-500:]}")
        for word in words:
            check(name, word in result.stderr, f"no {word!r} in {result.stderr}")

    first = "transformer.h.1.mlp.c_fc.weight"
    refused("missing", {k: v for k, v in state.items() if k != first}, "weights: ", "h.1.mlp.c_fc.weight", "block1.up.weight")
    refused("surplus", state | {"extra.weight": torch.ones(3)}, "'extra.weight'", "[3]", "has no place in the network")
    refused("shape", state | {first: torch.ones(36, 140)}, f"'{first}'", "[36, 140]", "[144, 36]", "allowed: [36, 144]")
    refused("type", state | {first: torch.ones(36, 144, dtype=torch.int32)}, f"'{first}'", "I32", "F32, F16 or BF16")
    refused("other sizes", state, "workload.layers: is 2, and", "config.json says 3", with_keys=keys + ", layers: 2")
    refused("another head", state | {"lm_head.weight": state["transformer.wte.weight"] + 1}, "'lm_head.weight'", "is not equal to",
            "tied_embedding: false")
    refused("names of others", {"a.weight": torch.ones(2)}, "holds no tensor by a name that weights of gpt have")
    save_file(state, file)


def damaged(root):
    """A file with one bit flipped, whose checksum was published: refused before anything runs, by training and generating."""
    folder, (data, keys) = root / "gpt2", TEXT
    file, sums = folder / "model.safetensors", folder / "SHA256SUMS"
    sums.write_text(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n")
    whole = run(scenario(folder, data, keys))
    check("published", whole.returncode == 0 and "weights: 1 file, 0.00 GB, as published by their SHA-256" in whole.stderr, whole.stderr[-500:])
    content = bytearray(file.read_bytes())
    content[-5] ^= 4
    file.write_bytes(content)
    for name, path, command in (("train", scenario(folder, data, keys), "train"),
                                ("generate", scenario(folder, "", keys, more="generate: {prompt: 3, new_tokens: 2}\n"), "generate")):
        done = subprocess.run([str(BIN / "tandem"), command, str(path)], capture_output=True, text=True, timeout=60)
        check(f"{name} damaged", done.returncode == 2 and f"{file.name} is damaged, or another file: its SHA-256 is" in done.stderr,
              f"{done.returncode} {done.stderr[-500:]}")
    content[-5] ^= 4
    file.write_bytes(content)
    sums.unlink()


def an_import(root):
    """An import takes weights by its module's own names, second names and constants beside them or not."""
    network = SOURCE / "tests" / "data" / "imported" / "small"
    folder = root / "import"
    folder.mkdir()
    path = folder / "question.yaml"
    text = ("machine: round_numbers\nlimits: {device_bytes: 64MiB, host_bytes: 256MiB, cores: 2}\n"
            f"workload: {{family: imported, path: {network}, batch: 2}}\npolicy: {{name: resident}}\nsteps: 2\n")
    path.write_text(text)
    own = losses("import", path)
    state = load_file(network / "tensors.safetensors")
    path.write_text(text + "weights: w.safetensors\n")

    def begun_with(tensors):
        save_file(tensors, folder / "w.safetensors")
        return losses("import with weights", path)

    check("import", begun_with(state) == own, f"is not {own}")
    check("import, second name", begun_with(state | {"head.weight": state["tokens.weight"].clone()}) == own, f"is not {own}")
    constants = {k: v for k, v in state.items() if "constant" in k or k == "fade"}
    weights = {k: v for k, v in state.items() if k not in constants}
    check("import", begun_with({k: v * 1.01 for k, v in weights.items()} | constants) != own, "reads its own weights")
    halves = {k: v.to(torch.bfloat16) for k, v in weights.items()}
    check("import of bf16", begun_with(halves) == begun_with({k: v.float() for k, v in halves.items()}), "differs from its fp32")
    for name, changed, word in (("constant", state | {"fade": state["fade"] + 1}, "'fade'"), ("missing", {k: v for k, v in state.items() if k != "norm.weight"}, "'norm.weight'"),
                                ("surplus", state | {"other": torch.ones(2)}, "'other'")):
        save_file(changed, folder / "w.safetensors")
        result = run(path)
        check(f"import, {name}", result.returncode == 2 and word in result.stderr, result.stderr)


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        every_architecture(root)
        other_forms(root)
        refusals(root)
        damaged(root)
        masters(root)
        goes_on(root)
        an_import(root)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


sys.exit(main())
