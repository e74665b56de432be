#!/usr/bin/env python3
"""`tandem generate --prompts` of networks that read more than a text: T5 is asked by what its encoder reads, Whisper by sounds, a
multi-modal language model by pictures beside a text. Where transformers has the network, texts are its own."""
import csv
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import wave

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
if not (BIN / "tandem-train").exists():
    sys.exit(77)
sys.path[:0] = [str(SOURCE / "tests" / "weights")]
os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1", TQDM_DISABLE="1", TRANSFORMERS_VERBOSITY="error")

import torch  # noqa: E402
from PIL import Image  # noqa: E402
from transformers import WhisperFeatureExtractor  # noqa: E402

import hf_models  # noqa: E402

NEW, RATE = 9, 16000
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def generate(folder, workload, prompts, *more, prompt=1, policy="{name: resident}", keys=""):
    """Texts by their numbers, and what was said."""
    path, out = folder / "question.yaml", folder / "texts.jsonl"
    out.unlink(missing_ok=True)
    path.write_text(f"machine: cpu_2_cores\nlimits: {{device_bytes: 64MiB, host_bytes: 512MiB, cores: 2}}\nworkload: {{{workload}, precision: fp32}}\n"
                    f"generate: {{prompt: {prompt}, new_tokens: {NEW}, page: 4}}\npolicy: {policy}\n{keys}")
    result = subprocess.run([str(BIN / "tandem"), "generate", str(path), "--prompts", str(prompts), "--texts", str(out), *more], capture_output=True,
                            text=True, timeout=120, check=False)
    texts = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    return {text["text"]: text["tokens"] for text in texts}, result


def greedy(step, start):
    """Whole passes of a decoder: no cache, no stop."""
    tokens = list(start)
    with torch.no_grad():
        for _ in range(NEW):
            tokens.append(int(step(torch.tensor([tokens])).logits[0, -1].argmax()))
    return tokens[len(start):]


def saved(root, name, scale=1):
    model = hf_models.randomise(getattr(hf_models, name)()).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(scale if weight.dim() > 1 else 1)
    folder = root / name
    folder.mkdir()
    model.save_pretrained(folder)
    return model, folder


def write_rows(path, columns, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def sources(root):
    """Of one length in a run, and the text begins with token 0."""
    numbers = torch.Generator().manual_seed(4)
    asked = [torch.randint(3, hf_models.WORDS, (length,), generator=numbers).tolist() for length in (5, 8, 5, 5)]
    lines = "".join(" ".join(map(str, one)) + "\n" for one in asked)
    for name, policy in (("t5", "{name: resident}"), ("t5_gated", "{name: flexgen, wg: 0, cg: 0, hg: 0}")):
        model, folder = saved(root, name)
        (folder / "prompts.txt").write_text(lines)
        texts, result = generate(folder, "config: config.json, batch: 2, micro_batches: 1", folder / "prompts.txt", "--tokens", policy=policy, keys="weights: .\n")
        check(name, result.returncode == 0 and "3 runs" in result.stderr, result.stderr)
        for number, one in enumerate(asked):
            expected = greedy(lambda tokens, one=one: model(input_ids=torch.tensor([one]), decoder_input_ids=tokens), [0])
            check(f"{name}, prompt {number}", texts.get(number) == expected, f"{texts.get(number)} is not {expected}")
        _, result = generate(folder, "config: config.json, batch: 2", folder / "prompts.txt", "--tokens", prompt=2, keys="weights: .\n")
        check(name, result.returncode == 2 and "a text of t5 begins with one token, 0" in result.stderr, result.stderr)


def write_sound(path, pitch, seconds):
    samples = [int(9000 * torch.sin(torch.tensor(6.2832 * pitch * i / RATE)) + (i * 7919 % 4001) - 2000) for i in range(int(RATE * seconds))]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(RATE)
        file.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return samples


def sounds(root):
    """Each text goes by its own sound, whichever go together."""
    model, folder = saved(root, "whisper", scale=5)  # so that sounds make a difference
    seconds = model.config.max_source_positions * 2 / 100  # frames of a hundredth
    extract = WhisperFeatureExtractor(feature_size=model.config.num_mel_bins, sampling_rate=RATE, hop_length=160, chunk_length=int(seconds), n_fft=400)
    rows, expected = [], []
    for number, (pitch, start) in enumerate(((440, [1, 7]), (1250, [1, 7]), (90, [1, 9, 30]))):
        samples = torch.tensor(write_sound(folder / f"{number}, a sound.wav", pitch, 0.6)) / 32768
        features = extract(samples.numpy(), sampling_rate=RATE, return_tensors="pt").input_features
        rows.append([f"s{number}", f"{number}, a sound.wav", " ".join(map(str, start))])
        expected.append(greedy(lambda tokens, features=features: model(input_features=features, decoder_input_ids=tokens), start))
    check("sounds tell texts apart", len({str(text) for text in expected}) == 3, expected)
    prompts = write_rows(folder / "prompts.csv", ["sample", "audio", "text"], rows)
    texts, result = generate(folder, "config: config.json, batch: 2", prompts, "--tokens", keys="weights: .\n")
    check("whisper", result.returncode == 0 and "2 runs" in result.stderr, result.stderr)
    check("whisper", texts == dict(enumerate(expected)), f"{texts} is not {expected}")
    (folder / "1, a sound.wav").write_bytes(b"no sound")
    _, result = generate(folder, "config: config.json, batch: 2", prompts, "--tokens", keys="weights: .\n")
    check("a damaged sound", result.returncode == 4 and "1, a sound.wav" in result.stderr, f"{result.returncode} {result.stderr}")
    prompts = write_rows(folder / "prompts.csv", ["sample", "text"], [["s", "1"]])
    _, result = generate(folder, "config: config.json, batch: 2", prompts, "--tokens", keys="weights: .\n")
    check("no sound", result.returncode == 2 and "prompts.csv: the prompt \"s\" has no file in the column audio" in result.stderr, result.stderr)


PICTURES = ("family: multimodal_llm, layers: 2, hidden: 48, heads: 6, key_heads: 2, feed_forward: 88, vocabulary: 257, sequence: 64, image: 24, patch: 6, "
            "image_layers: 1, image_hidden: 36, image_heads: 3, mels: 10, frames: 20, audio_layers: 1, audio_hidden: 40, audio_heads: 5")


def pictures(root):
    """A text is the one that its prompt has alone, whatever is computed beside it, with pictures, sounds, both, or none."""
    for name, colour in (("red.png", (200, 30, 30)), ("blue.png", (10, 20, 220))):
        Image.linear_gradient("L").convert("RGB").resize((40, 30)).point(lambda v, c=colour: v).save(root / name)
        picture = Image.open(root / name).convert("RGB")
        Image.blend(picture, Image.new("RGB", picture.size, colour), 0.7).save(root / name)
    write_sound(root / "high.wav", 2000, 0.2)
    rows = [("a", "red.png", "", "what is it"), ("b", "blue.png", "", "what is it"), ("c", "", "", "a text alone, which is long"),
            ("d", "red.png", "high.wav", "0123456789"), ("e", "red.png", "", "what is it"), ("f", "", "high.wav", "sixteen and more")]
    columns = ["sample", "image", "audio", "text"]
    alone = {}
    for number, row in enumerate(rows):
        texts, result = generate(root, PICTURES + ", batch: 1", write_rows(root / "one.csv", columns, [row]))
        check(f"prompt {row[0]}", result.returncode == 0, result.stderr)
        alone[number] = texts.get(0)
    check("pictures tell texts apart", alone[0] == alone[4] != alone[1], alone)
    prompts = write_rows(root / "prompts.csv", columns, rows)
    for batch, policy in (("batch: 2, micro_batches: 2", "{name: resident}"), ("batch: 3", "{name: flexgen, wg: 0, cg: 50, hg: 0}")):
        texts, result = generate(root, f"{PICTURES}, {batch}", prompts, policy=policy)
        check(batch, result.returncode == 0 and texts == alone, f"{result.stderr}\n{texts} is not {alone}")
    _, result = generate(root, PICTURES + ", batch: 2", "-")
    check("standard input", result.returncode == 2 and "allowed: a CSV file of samples" in result.stderr, result.stderr)


def main():
    with tempfile.TemporaryDirectory() as name:
        for part in (sources, sounds, pictures):
            part(pathlib.Path(name))
            print(part.__name__, flush=True)
    for failure in failures:
        print("FAILED", failure)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
