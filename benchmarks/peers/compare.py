#!/usr/bin/env python3
"""Trains one GPT with Tandem's policies and with other offload runtimes on the same GPU, interleaved, and prints a table.

    benchmarks/peers/compare.py scenarios/h200_gpt_1_4b.yaml --rounds 2 \\
        --tandem resident balanced zero_offload --peers plain ds2 torchao

Each round runs every contestant once, so that a drift of the machine meets all of them. The table gives the median of all
rounds' steps after each run's first few, and the 10th and 90th percentile of those steps. Peers run
through bench_deepspeed_offload.py (random tokens) and need their Python packages on the path; a contestant that cannot
run is listed with its reason. All train in bf16 with FP32 master parameters and moments and synchronous Adam, but for
zenflow. `--json FILE` keeps every run.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

WARM_UP, STEPS = 3, 12  # of each run
HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = {
    "plain": ["--mode", "plain"],
    "ds2": ["--mode", "ds2"],
    "ds3": ["--mode", "ds3"],
    "ds3_half": ["--mode", "ds3", "--ratio", "0.5"],
    "superoffload": ["--mode", "ds3-super"],
    "zenflow": ["--mode", "ds2-zen"],
    "fsdp2": ["--mode", "fsdp2"],
    "torchao": ["--mode", "torchao", "--torchao-grads", "--torchao-dtype", "fp32"],
}
GIB = 2.0**30


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("scenario")
    p.add_argument("--tandem", nargs="*", default=["resident", "balanced", "zero_offload"],
                   help="policies, each with options after colons: balanced:device_percent=45")
    p.add_argument("--peers", nargs="*", default=["plain", "ds2", "torchao"], choices=sorted(PEERS))
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--program", default=os.path.join(HERE, "../../build/bin/tandem-train"), help="tandem-train[-cuda]")
    p.add_argument("--set", action="append", default=[], help="KEY=VALUE, for Tandem's runs")
    p.add_argument("--timeout", type=int, default=300, help="seconds a run")
    p.add_argument("--json", help="every run's figures")
    return p.parse_args()


def run(command, timeout, env=None):
    """(standard output, reason of failure or None)."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env)
    except subprocess.TimeoutExpired:
        return "", f"took over {timeout} s"
    except OSError as error:
        return "", str(error)
    if done.returncode == 0:
        return done.stdout, None
    lines = (done.stderr or done.stdout).strip().splitlines()
    return "", (lines[-1] if lines else "no message")[:200]


def run_tandem(a, policy):
    name, *options = policy.split(":")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        policy = ", ".join([f"name: {name}"] + [o.replace("=", ": ") for o in options])
        settings = [f"steps={WARM_UP + STEPS + 1}"] + a.set + [f"policy={{{policy}}}"]
        command = [a.program, a.scenario, "--device", "cuda", "--quiet", "--json", path]
        for s in settings:
            command += ["--set", s]
        _, failure = run(command, a.timeout)
        if failure:
            return {"failure": failure}
        result = json.load(open(path))
    steps = result["step_time_s"]["all"][WARM_UP:]
    return {"step_s": statistics.median(steps), "steps_s": steps, "device_gib": result["peak_bytes"]["device0"] / GIB,
            "host_gib": result["peak_bytes"]["host"] / GIB, "loss": result["loss"]}


def shape_of(a):
    """The scenario's sizes, as the peers' flags."""
    import yaml
    w = yaml.safe_load(open(a.scenario))["workload"]
    flags = []
    for key, flag in [("layers", "layers"), ("hidden", "hidden"), ("heads", "heads"), ("sequence", "seq"),
                      ("batch", "batch"), ("vocabulary", "vocab"), ("micro_batches", "accum")]:
        if key in w:
            flags += ["--" + flag, str(w[key])]
    if w.get("tied_embedding", True):
        flags.append("--tie")
    if w.get("recompute", "none") != "none":
        flags.append("--ckpt")
    return flags


def run_peer(a, name, shape):
    script = os.path.join(HERE, "bench_deepspeed_offload.py")
    lengths = ["--warmup", str(WARM_UP), "--steps", str(STEPS)]
    out, failure = run([sys.executable, script] + PEERS[name] + shape + lengths, a.timeout)
    if failure:
        return {"failure": failure}
    d = json.loads(out.strip().splitlines()[-1])
    # Its "gb" are GiB.
    return {"step_s": d["step_s"], "steps_s": d["step_times"], "device_gib": d["gpu_peak_alloc_gb"], "host_gib": d["host_rss_peak_gb"], "loss": [d["loss_first"], d["loss_last"]]}


def spread(steps):
    """10th and 90th percentile."""
    deciles = statistics.quantiles(steps, n=10, method="inclusive")
    return deciles[0], deciles[-1]


def row(name, runs, plain):
    failures = [r["failure"] for r in runs if "failure" in r]
    if failures:
        return f"| {name} | did not run: {failures[0]} | | | |"
    steps = [step for r in runs for step in r["steps_s"]]
    median, (least, most) = statistics.median(steps), spread(steps)
    ratio = f"{median / plain:.2f}" if plain else ""
    return (f"| {name} | {median:.3f} ({least:.3f} to {most:.3f}) | {ratio} "
            f"| {runs[-1]['device_gib']:.1f} | {runs[-1]['host_gib']:.1f} |")


def main():
    a = parse()
    shape = shape_of(a) if a.peers else []
    contestants = [("tandem " + p, lambda p=p: run_tandem(a, p)) for p in a.tandem]
    contestants += [(p, lambda p=p: run_peer(a, p, shape)) for p in a.peers]
    runs = {name: [] for name, _ in contestants}
    for i in range(a.rounds):
        for name, contestant in contestants:
            runs[name].append(contestant())
            print(f"round {i + 1}: {name}: {runs[name][-1].get('step_s', runs[name][-1].get('failure'))}",
                  file=sys.stderr, flush=True)
            if a.json:
                json.dump(runs, open(a.json, "w"), indent=1)
    plain = [step for r in runs.get("plain", []) for step in r.get("steps_s", [])]
    print("| runtime | step, s: median (10th to 90th percentile) | of plain | device GiB | host GiB |")
    print("|---|---|--:|--:|--:|")
    for name, _ in contestants:
        print(row(name, runs[name], statistics.median(plain) if plain else 0))


if __name__ == "__main__":
    main()
