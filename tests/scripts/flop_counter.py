#!/usr/bin/env python3
"""Compares the flops and bytes that workloads state with what PyTorch counts for the same networks.

Flops: torch.utils.flop_counter. Activation bytes: the storages that autograd saves for backward, through saved-tensor
hooks. The stated figures come from test_core (WorkloadFigures), which writes them to the file that TANDEM_FIGURES names.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
try:
    import torch
except ImportError:
    python = SOURCE / ".venv" / "bin" / "python"
    if not python.exists() or pathlib.Path(sys.prefix) == SOURCE / ".venv":
        sys.exit("flop_counter.py: PyTorch is missing: run `make setup`")
    os.execv(python, [str(python), *sys.argv])

import torch.nn.functional as functional
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

# The CPU's fused attention counts like the GPU's; flop_counter knows only the latter by name.
ATTENTION = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: (
        lambda query, key, value, *_, **__: sdpa_flop_count(query, key, value)
    ),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        lambda grad, query, key, value, *_, **__: sdpa_backward_flop_count(grad, query, key, value)
    ),
}


class Parameters:
    """Makes parameters on first use, by name."""

    def __init__(self):
        self.tensors = {}

    def __call__(self, name, *shape):
        if name not in self.tensors:
            self.tensors[name] = torch.nn.Parameter(0.02 * torch.randn(shape))
        return self.tensors[name]

    def linear(self, name, x, outputs):
        weight = self(name + ".weight", outputs, x.shape[1])
        return torch.addmm(self(name + ".bias", outputs), x, weight.t())

    def norm(self, name, x):
        size = x.shape[1]
        return functional.layer_norm(x, (size,), self(name + ".weight", size), self(name + ".bias", size))


def unfused_attention(query, key, value, causal):
    size, sequence = query.shape[3], query.shape[2]
    merged = [heads.reshape(-1, sequence, size) for heads in (query, key, value)]
    mask = torch.full((sequence, sequence), float("-inf")).triu(1) if causal else torch.zeros(sequence, sequence)
    scores = torch.baddbmm(mask, merged[0], merged[1].transpose(1, 2), alpha=size**-0.5)
    return torch.bmm(functional.softmax(scores, 2), merged[2]).view(query.shape)


def attention(p, name, x, o, causal):
    batch, sequence, hidden, heads = o["batch"], o["sequence"], o["hidden"], o["heads"]
    parts = p.linear(name + ".qkv", x, 3 * hidden).split(hidden, 1)
    query, key, value = (t.view(batch, sequence, heads, hidden // heads).transpose(1, 2) for t in parts)
    if o["fused"]:
        out = functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
    else:
        out = unfused_attention(query, key, value, causal)
    return p.linear(name + ".projection", out.transpose(1, 2).reshape(-1, hidden), hidden)


def feed_forward(p, name, x, approximate):
    hidden = x.shape[1]
    return p.linear(name + ".down", functional.gelu(p.linear(name + ".up", x, 4 * hidden), approximate=approximate), hidden)


def gpt_block(p, name, x, o):
    x = x + attention(p, name, p.norm(name + ".ln1", x), o, True)
    return x + feed_forward(p, name, p.norm(name + ".ln2", x), "tanh")


def bert_block(p, name, x, o):
    x = p.norm(name + ".ln1", x + attention(p, name, x, o, False))
    return p.norm(name + ".ln2", x + feed_forward(p, name, x, "none"))


def transformer(p, o, block):
    vocabulary, hidden = o["vocabulary"], o["hidden"]
    tokens = torch.randint(vocabulary, (o["batch"], o["sequence"]))
    targets = torch.randint(vocabulary, (o["batch"] * o["sequence"],))
    wte = p("wte", vocabulary, hidden)
    x = (functional.embedding(tokens, wte) + p("wpe", o["sequence"], hidden)).view(-1, hidden)
    if o["family"] == "bert":
        x = p.norm("embedding.ln", x)
    for i in range(o["layers"]):
        if o["recompute"]:
            x = torch.utils.checkpoint.checkpoint(block, p, f"block{i}", x, o, use_reentrant=False)
        else:
            x = block(p, f"block{i}", x, o)
    if o["family"] == "bert":
        x = p.norm("ln", functional.gelu(p.linear("transform", x, hidden)))
    else:
        x = p.norm("ln_f", x)
    output = wte if o["tied"] else p("output", vocabulary, hidden)
    logits = torch.addmm(p("bias", vocabulary), x, output.t()) if o["family"] == "bert" else x.mm(output.t())
    return (tokens, targets), functional.cross_entropy(logits, targets)


def perceptron(p, o):
    x = images = torch.rand(o["batch"], o["inputs"])
    labels = torch.randint(o["classes"], (o["batch"],))
    for i in range(o["layers"]):
        x = functional.relu(p.linear(f"layer{i}", x, o["hidden"]))
    return (images, labels), functional.cross_entropy(p.linear("output", x, o["classes"]), labels)


def run(p, o):
    if o["family"] == "mlp":
        return perceptron(p, o)
    return transformer(p, o, gpt_block if o["family"] == "gpt" else bert_block)


def saved_bytes(p, o):
    """Bytes of the storages saved for backward, without parameters and the batch."""
    saved, alive = {}, []

    def pack(tensor):
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)  # so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        batch, loss = run(p, o)
    for tensor in (*batch, *p.tensors.values()):
        saved.pop(tensor.untyped_storage().data_ptr(), None)
    loss.backward()
    return sum(saved.values())


def measure(o):
    p = Parameters()
    run(p, o)  # makes the parameters
    with FlopCounterMode(display=False, custom_mapping=ATTENTION) as forward:
        _, loss = run(p, o)
    with FlopCounterMode(display=False, custom_mapping=ATTENTION) as backward:
        loss.backward()
    measured = {
        "forward_flops": forward.get_total_flops(),
        "backward_flops + recompute_flops": backward.get_total_flops(),
        "parameter_bytes": sum(t.nbytes for t in p.tensors.values()),
        "gradient_bytes": sum(t.grad.nbytes for t in p.tensors.values()),
    }
    # Checkpointed blocks save through hooks of their own, which hide what they hold.
    if not o["recompute"]:
        measured["activation_bytes"] = saved_bytes(p, o)
    return measured


def stated_figures():
    build = pathlib.Path(os.environ.get("TANDEM_BUILD", SOURCE / "build"))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "figures.json"
        command = [str(build / "bin" / "test_core"), "--gtest_filter=WorkloadFigures.*", "--gtest_brief=1"]
        subprocess.run(command, env={**os.environ, "TANDEM_FIGURES": str(path)}, check=True)
        return [json.loads(line) for line in path.read_text().splitlines()]


def main():
    import torch.utils.checkpoint  # noqa: F401  (used through torch.utils)

    failures = 0
    figures = stated_figures()
    if not figures:
        sys.exit("flop_counter.py: test_core wrote no figures")
    for o in figures:
        for key, measured in measure(o).items():
            stated = sum(o[part] for part in key.split(" + "))
            if stated != measured:
                print(f"{o['name']}: {key}: stated {stated}, PyTorch counts {measured}")
                failures += 1
    print(f"{len(figures)} networks compared, {failures} figures differ")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
