#!/usr/bin/env python3
"""Imported modules on a GPU: small ones beside PyTorch eager's losses, and a Llama of billions beside its speed and DeepSpeed's.

    benchmarks/live/imported.py check --tandem build/bin/tandem --machine machine.yaml
    benchmarks/live/imported.py speed --tandem build/bin/tandem --machine machine.yaml --output imported.json

`check` trains the models of tests/imports for 20 steps in fp32, and prints how far losses are from eager's with the fused AdamW beside how far
two plain runs are from each other (fused and unfused).
`speed` imports transformers' Llama in bf16 and trains it with all on the device, and with `balanced` and all states on the host; beside it eager
does (bf16, fp32 masters, fused AdamW), and DeepSpeed's ZeRO-2 with its optimizer offloaded where `import deepspeed` works. One after
another on one machine, each in a process of its own, `--rounds` times in turn.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests" / "imports")]
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TANDEM_SOURCE=str(SOURCE))
os.environ.setdefault("TANDEM_BUILD", str(SOURCE / "build"))


def tandem(args, scenario, *flags):
    done = subprocess.run([args.tandem, "train", scenario, "--device", args.device, "--quiet", "--json", "-", *flags],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return {"failed": done.stderr.strip()[-800:]}
    return json.loads(done.stdout)


# --- check ---

def eager_losses(make, tensors, steps, device, fused):
    import torch
    from batches import batch
    from tandem.importer.capture import loss_of
    module, inputs = make()
    module.to(device)
    data = [t for t in tensors if "constant" not in t]
    names, samples = [t["name"] for t in data], data[0]["shape"][0]
    optimizer = torch.optim.AdamW([p for p in module.parameters() if p.requires_grad], lr=1e-3, weight_decay=0.1,
                                  fused=fused, foreach=None if fused else False)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        values = {k: v.to(device) for k, v in batch(tensors, samples, step, 0).items()}
        if isinstance(inputs, dict):
            loss = loss_of(module(**{k: values[k] for k in inputs}))
        else:
            loss = loss_of(module(*[values[n] for n in names]))
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    return losses


def check(args):
    import hand_written
    import transformers_models
    from imported_runs import batch_of
    from tandem.importer.importing import import_module
    apart = lambda a, b: max(abs(x - y) for x, y in zip(a, b))  # noqa: E731
    makes = [*transformers_models.ALL, hand_written.unet, hand_written.gpt]
    print(f"{'model':14} {'policy':14} {'to eager':>10} {'two eager runs':>15}")
    with tempfile.TemporaryDirectory() as name:
        for make in makes:
            try:
                module, inputs = make()
                path = pathlib.Path(name) / make.__name__
                import_module(module, inputs, str(path), make.__name__)
            except Exception as error:  # another release of transformers has what this importer refuses
                print(f"{make.__name__:14} not imported: {str(error)[:120]}")
                continue
            tensors = batch_of(path)
            plain = eager_losses(make, tensors, args.steps, args.device, True)
            spread = apart(plain, eager_losses(make, tensors, args.steps, args.device, False))
            samples = next(t for t in tensors if "constant" not in t)["shape"][0]
            for policy in ("resident", "zero_infinity"):
                scenario = path.with_suffix(f".{policy}.yaml")
                scenario.write_text(json.dumps({
                    "machine": args.machine, "steps": args.steps, "limits": {"device_bytes": "2GiB", "host_bytes": "4GiB"},
                    "workload": {"family": "imported", "path": str(path), "batch": samples},
                    "optimizer": {"weight_decay": 0.1}, "policy": {"name": policy}}))
                result = tandem(args, scenario)
                text = result.get("failed") or f"{apart(result['loss'], plain):10.2e} {spread:15.2e}"
                print(f"{make.__name__:14} {policy:14} {text}", flush=True)


# --- speed ---

def llama(args):
    import torch
    import transformers
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=32000, hidden_size=args.hidden, intermediate_size=args.feed_forward, num_hidden_layers=args.layers,
        num_attention_heads=args.hidden // 128, num_key_value_heads=args.hidden // 128, use_cache=False,
        max_position_embeddings=args.sequence)
    return transformers.LlamaForCausalLM(config).to(torch.bfloat16)


def token_batches(args, device):
    import torch
    generator = torch.Generator().manual_seed(1)
    while True:
        ids = torch.randint(32000, (args.batch, args.sequence), generator=generator).to(device)
        yield {"input_ids": ids, "labels": ids}


def timed(args, step, synchronize):
    times = []
    for _ in range(args.steps):
        synchronize()
        begin = time.perf_counter()
        step()
        synchronize()
        times.append(time.perf_counter() - begin)
    print(json.dumps({"step_s": times[3:]}))


def eager(args):
    import torch
    model = llama(args).to(args.device)
    batches = token_batches(args, args.device)
    parameters = list(model.parameters())
    masters = [p.detach().float().clone().requires_grad_(True) for p in parameters]
    optimizer = torch.optim.AdamW(masters, lr=1e-4, fused=True)

    def step():
        model(**next(batches)).loss.backward()
        for p, m in zip(parameters, masters):
            m.grad = p.grad.float()
            p.grad = None
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(parameters, masters)

    timed(args, step, torch.cuda.synchronize if args.device == "cuda" else lambda: None)


def deepspeed(args):
    import torch
    import deepspeed
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
    model = llama(args)
    config = {"train_micro_batch_size_per_gpu": args.batch, "bf16": {"enabled": True}, "zero_allow_untested_optimizer": True,
              "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": True},
                                    "overlap_comm": True, "contiguous_gradients": True, "reduce_bucket_size": 5e8},
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0}}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    batches = token_batches(args, engine.device)

    def step():
        engine.backward(engine(**next(batches)).loss)
        engine.step()

    timed(args, step, torch.cuda.synchronize)


def import_llama(args, folder):
    from tandem.importer.importing import import_module
    model = llama(args)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e9:.2f} billion parameters", flush=True)
    begin = time.perf_counter()
    import_module(model, next(token_batches(args, "cpu")), str(folder), "llama")
    print(f"imported in {time.perf_counter() - begin:.0f} s", flush=True)


def peer(args, name):
    flags = [f"--{k}={getattr(args, k)}" for k in ("hidden", "layers", "feed_forward", "sequence", "batch", "steps", "device")]
    done = subprocess.run([sys.executable, __file__, name, *flags], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"step_s"')]
    return json.loads(lines[-1])["step_s"] if lines else done.stderr.strip()[-400:]


def speed(args):
    rows = {}
    with tempfile.TemporaryDirectory(dir=args.scratch) as name:
        folder = pathlib.Path(name) / "llama"
        import_llama(args, folder)
        scenario = pathlib.Path(name) / "llama.yaml"
        scenario.write_text(json.dumps({
            "machine": str(pathlib.Path(args.machine).resolve()), "steps": args.steps,
            "workload": {"family": "imported", "path": str(folder), "batch": args.batch, "precision": "bf16"},
            "optimizer": {"learning_rate": 1e-4}, "policy": {"name": "resident"}}))
        runs = {
            "eager": lambda: peer(args, "eager"),
            "tandem resident": lambda: tandem(args, scenario),
            "tandem balanced, states on the host": lambda: tandem(
                args, scenario, "--set", "policy.name=balanced", "--set", "policy.resident_buckets=0"),
            "deepspeed ZeRO-2 offload": lambda: peer(args, "deepspeed"),
        }
        for _ in range(args.rounds):
            for what, run in runs.items():
                result = run()
                if isinstance(result, dict):
                    result = result.get("failed") or result["step_time_s"]["all"][3:]
                if isinstance(result, str):
                    print(f"{what:38} failed: {result}", flush=True)
                    continue
                rows.setdefault(what, []).append(statistics.median(result))
                print(f"{what:38} {rows[what][-1]:.4f} s", flush=True)
    of = {what: statistics.median(times) for what, times in rows.items()}
    for a, b in (("tandem resident", "eager"), ("tandem balanced, states on the host", "deepspeed ZeRO-2 offload")):
        if a in of and b in of:
            print(f"{a} / {b}: {of[a] / of[b]:.3f}")
    if args.output:
        pathlib.Path(args.output).write_text(json.dumps(rows, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["check", "speed", "eager", "deepspeed"])
    parser.add_argument("--tandem", default=str(SOURCE / "build" / "bin" / "tandem"))
    parser.add_argument("--machine", default="cpu_2_cores")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--feed-forward", "--feed_forward", type=int, default=5504)
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--scratch", help="a folder for the import; by default the system's")
    parser.add_argument("--output")
    args = parser.parse_args()
    {"check": check, "speed": speed, "eager": eager, "deepspeed": deepspeed}[args.what](args)


main()
