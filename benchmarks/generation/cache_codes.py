#!/usr/bin/env python3
"""What is lost where keys and values are kept in 4 bits: a small GPT-2 of bytes is trained on the installed corpus with
PyTorch, and read by `tandem generate`. Each prompt of held-out text has two new tokens: the second one attends to the
prompt's keys and values as codes. Printed are how often it is the same one, and how far logits drift: those by transformers,
with the same codes of prompts made in Python. Ten minutes of CPU time.

  benchmarks/generation/cache_codes.py [--steps 800] [--prompts 300]
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTEXT, LAYERS, HIDDEN, HEADS = 160, 4, 256, 8
# NF4's levels (Dettmers et al., NeurIPS 2023, arXiv 2305.14314, appendix E).
LEVELS = torch.tensor([-1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0, 0.0795803, 0.1609302, 0.24611230,
                       0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0])
BLOCK = 64


def coded(rows):
    """[.., width] as numbers of 4 bits by blocks of 64: what Tandem's pages hold of a token of a text."""
    blocks = rows.reshape(*rows.shape[:-1], -1, BLOCK)
    scale = blocks.abs().amax(-1, keepdim=True).clamp_min(1e-30)
    nearest = ((blocks / scale).unsqueeze(-1) - LEVELS).abs().argmin(-1)
    return (LEVELS[nearest] * scale).reshape(rows.shape)


def trained(text, steps):
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=256, n_positions=CONTEXT, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, resid_pdrop=0, embd_pdrop=0,
                                     attn_pdrop=0, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    for step in range(steps):
        starts = torch.randint(0, len(text) - CONTEXT, (16,))
        batch = torch.stack([text[start:start + CONTEXT] for start in starts]).long()
        loss = model(batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)
    return model.eval()


def second_tokens(folder, prompts, generating):
    count, length = prompts.shape
    (folder / "prompts.txt").write_text("\n".join(" ".join(map(str, prompt)) for prompt in prompts.tolist()))
    question = folder / "question.yaml"
    question.write_text("machine: round_numbers\nlimits: {device_bytes: 2GiB, host_bytes: 4GiB, cores: 2}\n"
                        f"workload: {{config: {folder}/config.json, batch: {count}, precision: fp32}}\nweights: {folder}\n"
                        f"generate: {{prompt: {length}, new_tokens: 2{generating}}}\npolicy: {{name: resident}}\n")
    done = subprocess.run([ROOT / "build/bin/tandem", "generate", question, "--prompts", folder / "prompts.txt", "--tokens", "--texts", "-", "--quiet"],
                          capture_output=True, text=True, check=True)
    return numpy.array([json.loads(line)["tokens"] for line in done.stdout.splitlines()])


@torch.no_grad()
def logits(model, prompts, firsts, codes):
    """Of the second new token."""
    cache = transformers.DynamicCache()
    model(prompts, past_key_values=cache, use_cache=True)
    if codes:
        for layer in cache.layers:
            for name in ("keys", "values"):
                heads = getattr(layer, name)  # [texts, heads, tokens, size]
                rows = heads.transpose(1, 2).flatten(2)
                setattr(layer, name, coded(rows).unflatten(2, (HEADS, -1)).transpose(1, 2).contiguous())
    # The new token's own are as they are here.
    return model(firsts.unsqueeze(1), past_key_values=cache, use_cache=True).logits[:, -1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--prompts", type=int, default=300)
    flags = parser.parse_args()
    torch.set_num_threads(2)
    text = torch.frombuffer(bytearray((ROOT / ".cache" / "corpus.txt").read_bytes()), dtype=torch.uint8)
    held_out = text[-(len(text) // 20):]
    model = trained(text[:-len(held_out)], flags.steps)
    starts = torch.linspace(0, len(held_out) - CONTEXT, flags.prompts).long()
    for length in (16, 64, 128):
        prompts = torch.stack([held_out[start:start + length] for start in starts]).long()
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            model.save_pretrained(folder)
            plain, codes = (second_tokens(folder, prompts, more) for more in ("", ", cache_bits: 4"))
        same = (plain[:, 1] == codes[:, 1]).mean()
        firsts = torch.tensor(plain[:, 0])
        exact, drifted = (logits(model, prompts, firsts, kind) for kind in (False, True))
        agrees = (drifted.argmax(-1).numpy() == codes[:, 1]).mean()
        rms = ((drifted - exact).pow(2).mean() / (exact - exact.mean(-1, keepdim=True)).pow(2).mean()).sqrt()
        divergence = torch.nn.functional.kl_div(drifted.log_softmax(-1), exact.log_softmax(-1), log_target=True, reduction="batchmean")
        print(f"prompts of {length} bytes: {same:.1%} of {len(plain)} tokens are the same; logits drift by {rms:.1%} of their spread (rms), "
              f"{divergence:.4f} nats; the codes in Python choose Tandem's token in {agrees:.1%}", flush=True)


if __name__ == "__main__":
    main()
