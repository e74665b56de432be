#!/usr/bin/env python3
"""Step time against device memory: one scenario under several caps and policies, simulated or live.

    benchmarks/live/memory_curve.py scenarios/h200_gpt_1_4b.yaml --gib 8 10 12 16 24 40 60 --policies balanced zero_offload
    ... --live build/bin/tandem-train-cuda      the same, trained for real

Prints a table (step: median, with the 10th and 90th percentile); `--svg FILE` draws it, `--json FILE` keeps the figures.
What does not fit is a gap, and its reason goes to standard error.
"""
import argparse, json, os, subprocess, sys, tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
BUILD = os.environ.get("TANDEM_BUILD", os.path.join(ROOT, "build"))
GIB = 2.0**30
COLOURS = ["#0b6e99", "#c4462b", "#4f8a10", "#7b4fa3", "#946200", "#444444"]


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("scenario")
    p.add_argument("--gib", nargs="+", type=float, default=[8, 10, 12, 16, 24, 40, 60])
    p.add_argument("--policies", nargs="+", default=["balanced", "zero_offload", "cotrain", "resident"],
                   help="each with options after colons: balanced:device_percent=45")
    p.add_argument("--live", metavar="PROGRAM", help="tandem-train-cuda; without it, the simulator")
    p.add_argument("--set", action="append", default=[], help="KEY=VALUE")
    p.add_argument("--timeout", type=int, default=300, help="seconds a run")
    p.add_argument("--svg")
    p.add_argument("--json")
    return p.parse_args()


def run(a, policy, gib):
    """The result's JSON, or the reason why there is none."""
    name, *options = policy.split(":")
    policy = ", ".join([f"name: {name}"] + [o.replace("=", ": ") for o in options])
    settings = a.set + [f"policy={{{policy}}}", f"limits.device_bytes={int(gib * GIB)}B"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        command = [a.live, a.scenario, "--device", "cuda"] if a.live else [
            os.path.join(BUILD, "bin/tandem"), "simulate", a.scenario]
        for s in settings:
            command += ["--set", s]
        try:
            done = subprocess.run(command + ["--quiet", "--json", path], capture_output=True, text=True, timeout=a.timeout)
        except subprocess.TimeoutExpired:
            return None, f"took over {a.timeout} s"
        if done.returncode != 0:
            return None, (done.stderr.strip().splitlines() or ["no message"])[-1][:160]
        return json.load(open(path)), None


def svg(a, rows):
    """Lines of step time over device memory, one a policy, on linear axes that begin at 0."""
    width, height, margin = 640, 400, 56
    most_x = max(a.gib)
    most_y = max(r["median"] for by in rows.values() for r in by.values() if r) * 1.1
    x = lambda gib: margin + (width - 2 * margin) * gib / most_x
    y = lambda s: height - margin - (height - 2 * margin) * s / most_y
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<path d="M{x(0)} {y(most_y)}V{y(0)}H{x(most_x)}" fill="none" stroke="#888"/>',
           f'<text x="{width / 2}" y="{height - 12}" text-anchor="middle">device memory, GiB</text>',
           f'<text x="14" y="{height / 2}" text-anchor="middle" transform="rotate(-90 14 {height / 2})">training step, s</text>']
    for gib in a.gib:
        out.append(f'<text x="{x(gib)}" y="{y(0) + 16}" text-anchor="middle">{gib:g}</text>')
    for i in range(1, 5):
        s = most_y * i / 5
        out.append(f'<path d="M{x(0)} {y(s)}H{x(most_x)}" stroke="#eee"/><text x="{x(0) - 6}" y="{y(s) + 4}" text-anchor="end">{s:.2g}</text>')
    for i, (policy, by) in enumerate(rows.items()):
        points = [(x(g), y(r["median"])) for g, r in by.items() if r]
        colour = COLOURS[i % len(COLOURS)]
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{px:.1f},{py:.1f}" for px, py in points)}"/>')
        out += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in points]
        out.append(f'<text x="{width - margin - 4}" y="{margin + 16 * i}" text-anchor="end" fill="{colour}">{policy}</text>')
    open(a.svg, "w").write("\n".join(out) + "\n</svg>\n")


def main():
    a = parse()
    rows = {}
    for policy in a.policies:
        rows[policy] = {}
        for gib in a.gib:
            result, reason = run(a, policy, gib)
            if reason:
                print(f"{policy} in {gib:g} GiB: {reason}", file=sys.stderr, flush=True)
            rows[policy][gib] = result and {**result["step_time_s"], "device_bytes": result["peak_bytes"]["device0"],
                                            "host_bytes": result["peak_bytes"]["host"]}
            if a.json:
                json.dump(rows, open(a.json, "w"), indent=1)
    print("| device GiB | " + " | ".join(rows) + " |")
    print("|--:|" + "--:|" * len(rows))
    for gib in a.gib:
        cells = [f'{r["median"]:.3f} ({r["p10"]:.3f} to {r["p90"]:.3f})' if (r := rows[p][gib]) else "does not fit" for p in rows]
        print(f"| {gib:g} | " + " | ".join(cells) + " |")
    if a.svg:
        svg(a, rows)


if __name__ == "__main__":
    main()
