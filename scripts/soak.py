#!/usr/bin/env python3
"""A long live run takes no more memory than a short one: trains a tiny network for many steps and fails if the process
has grown by more than 1 MB after the first 1,000. Usage: scripts/soak.py [STEPS] [POLICY...]; `make soak`."""
import pathlib
import subprocess
import sys
import tempfile
import time

SETTLED, MOST_GROWTH_KB = 1000, 1024
SCENARIO = """machine: cpu_2_cores
workload: {family: gpt, layers: 2, hidden: 16, heads: 2, vocabulary: 256, sequence: 8, batch: 1}
"""
root = pathlib.Path(__file__).resolve().parent.parent
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
policies = sys.argv[2:] or ["balanced", "zero_offload"]


def resident_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def grown_kb(policy, folder):
    scenario, table = pathlib.Path(folder, "soak.yaml"), pathlib.Path(folder, "soak.csv")
    scenario.write_text(SCENARIO + f"policy: {{name: {policy}}}\nsteps: {steps}\n")
    command = [root / "build/bin/tandem", "train", scenario, "--quiet", "--csv", table]
    seen = []  # of memory, after the first 1,000 steps
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as run:
        while run.poll() is None:
            try:
                if seen or (table.exists() and table.read_text().count("\n") > SETTLED + 1):
                    seen.append(resident_kb(run.pid))
            except OSError:
                pass  # it has ended
            time.sleep(0.05 if not seen else 1)
    if run.returncode != 0 or len(seen) < 3:
        sys.exit(f"{policy}: the run ended with {run.returncode} after {len(seen)} looks")
    return max(seen) - seen[0], seen[0]


failed = False
for policy in policies:
    with tempfile.TemporaryDirectory() as folder:
        grown, before = grown_kb(policy, folder)
    failed |= grown > MOST_GROWTH_KB
    print(f"{policy}: {steps} steps, {before} kB after {SETTLED}, grown by {grown} kB since")
sys.exit(1 if failed else 0)
