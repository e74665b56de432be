#!/usr/bin/env python3
"""Trains the GPT of bench_deepspeed_offload.py on several ranks with PyTorch's own tensor or pipeline parallelism; prints one JSON line.

    torchrun --standalone --nproc_per_node 2 benchmarks/peers/bench_parallel.py --mode tensor --layers 24 --hidden 2048 --heads 16
    torchrun ... bench_parallel.py --mode pipeline --schedule 1f1b --accum 8 --batch 2

tensor    torch.distributed.tensor.parallel: queries, keys and values and the first feed-forward layer by columns, the other
          two by rows; the output layer by columns, with loss_parallel. The embedding is on all ranks.
pipeline  torch.distributed.pipelining: blocks in equal parts; gpipe, 1f1b, or interleaved with two parts a rank.

bf16 parameters with fp32 masters and Adam states (--master fp32), as Tandem has them, or bf16 states.
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module
from torch.nn import functional as F

import bench_deepspeed_offload as gpt

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B, "interleaved": ScheduleInterleaved1F1B}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--mode", required=True, choices=["tensor", "pipeline"])
    parser.add_argument("--schedule", default="1f1b", choices=sorted(SCHEDULES))
    for name, value in (("layers", 24), ("hidden", 2048), ("heads", 16), ("seq", 1024), ("batch", 8), ("accum", 1), ("vocab", 50304), ("steps", 8),
                        ("warmup", 3), ("seed", 1234)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--master", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    args.ckpt = args.tie = False
    return args


class LocalAdamW:
    """AdamW of what this rank has of each parameter, in fp32 or by the parameter itself."""

    def __init__(self, parameters, rate, wide):
        self.parameters, self.wide = list(parameters), wide
        with torch.no_grad():
            self.masters = [own(p).float().clone() if wide else own(p) for p in self.parameters]
        self.optimizer = torch.optim.AdamW(self.masters, lr=rate, fused=True)

    @torch.no_grad()
    def step(self):
        for master, parameter in zip(self.masters, self.parameters):
            master.grad = own(parameter.grad).to(master.dtype)
        self.optimizer.step()
        for master, parameter in zip(self.masters, self.parameters):
            master.grad = parameter.grad = None
            if self.wide:
                own(parameter).copy_(master)


def own(tensor):
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor.detach()


class TensorBlock(nn.Module):
    """The same block with queries, keys and values apart: each is divided by heads."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.size = hidden // heads
        self.ln1, self.ln2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.q, self.k, self.v, self.proj = (nn.Linear(hidden, hidden) for _ in range(4))
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, tokens, _ = x.shape
        y = self.ln1(x)
        q, k, v = (layer(y).view(batch, tokens, -1, self.size).transpose(1, 2) for layer in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, tokens, -1)
        x = x + self.proj(y)
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


def tensor_model(args, mesh):
    torch.manual_seed(args.seed)
    old, gpt.Block = gpt.Block, TensorBlock
    model = gpt.build(args, args.device, torch.bfloat16)
    gpt.Block = old
    columns, rows = ColwiseParallel(), RowwiseParallel()
    for block in model.blocks:
        parallelize_module(block, mesh, {"q": columns, "k": columns, "v": columns, "up": columns, "proj": rows, "down": rows})
    parallelize_module(model, mesh, {"head": ColwiseParallel(input_layouts=Replicate(), output_layouts=Shard(-1), use_local_output=False)})
    return model


def tensor_step(args, model, batch):
    tokens, targets = batch

    def step():
        x = model.wte(tokens) + model.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in model.blocks:
            x = block(x)
        with loss_parallel():
            loss = F.cross_entropy(model.head(model.lnf(x)).float().flatten(0, 1), targets.flatten())
            loss.backward()
        return loss.detach()

    return step


class Part(nn.Module):
    """Blocks [first, last) of the network, with what comes before and after all of them."""

    def __init__(self, args, first, last):
        super().__init__()
        self.first, self.last = first == 0, last == args.layers
        if self.first:
            self.wte, self.wpe = nn.Embedding(args.vocab, args.hidden), nn.Embedding(args.seq, args.hidden)
        self.blocks = nn.ModuleList(gpt.Block(args.hidden, args.heads) for _ in range(first, last))
        if self.last:
            self.lnf, self.head = nn.LayerNorm(args.hidden), nn.Linear(args.hidden, args.vocab, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, x):
        if self.first:
            x = self.wte(x) + self.wpe(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.lnf(x)) if self.last else x


def pipeline(args, rank, ranks, batch):
    """The parts of this rank and a step of all of them."""
    chunks = 2 if args.schedule == "interleaved" else 1
    parts = ranks * chunks
    torch.manual_seed(args.seed + rank)
    old = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(args.device):
        own = {part: Part(args, part * args.layers // parts, (part + 1) * args.layers // parts) for part in range(rank, parts, ranks)}
    torch.set_default_dtype(old)
    stages = [PipelineStage(module, part, parts, torch.device(args.device)) for part, module in own.items()]

    def loss_of(scores, targets):
        return F.cross_entropy(scores.float().flatten(0, 1), targets.flatten())

    schedule = SCHEDULES[args.schedule](stages if chunks > 1 else stages[0], args.accum, loss_fn=loss_of)
    tokens, targets = batch

    def step():
        losses = []
        given = [tokens] if rank == 0 else []
        if rank == ranks - 1:
            schedule.step(*given, target=targets, losses=losses)
        else:
            schedule.step(*given)
        return torch.stack(losses).mean().detach() if losses else None

    return nn.ModuleList(own.values()), step


def main():
    args = parse()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    cuda = args.device == "cuda"
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if cuda else "gloo")
    samples = args.batch * (args.accum if args.mode == "pipeline" else 1)
    generator = torch.Generator().manual_seed(args.seed)
    batch = [torch.randint(args.vocab, (samples, args.seq), generator=generator).to(args.device) for _ in range(2)]
    if args.mode == "tensor":
        model = tensor_model(args, init_device_mesh(args.device, (ranks,)))
        step = tensor_step(args, model, batch)
    else:
        model, step = pipeline(args, rank, ranks, batch)
    optimizer = LocalAdamW(model.parameters(), args.lr, args.master == "fp32")
    times, losses = [], []
    for number in range(args.warmup + args.steps):
        if cuda:
            torch.cuda.synchronize()
        dist.barrier()
        begin = time.perf_counter()
        loss = step()
        optimizer.step()
        if cuda:
            torch.cuda.synchronize()
        dist.barrier()
        if number >= args.warmup:
            times.append(time.perf_counter() - begin)
        if loss is not None:
            losses.append(round(float(loss), 4))
    if rank == ranks - 1:
        peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else None
        print(json.dumps({"mode": args.mode, "schedule": args.schedule if args.mode == "pipeline" else None, "ranks": ranks,
                          "step_s": round(statistics.median(times), 5), "step_min_s": round(min(times), 5), "step_max_s": round(max(times), 5),
                          "gpu_peak_gib": peak, "losses": losses[-3:]}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
