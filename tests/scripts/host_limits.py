#!/usr/bin/env python3
"""Too little memory (R14), at ten levels of the process's address space, of the host's limit and of the device's: a run
is refused up front (exit code 2 or 3), ends with exit code 4 and a message that says what to do, or trains to the same
bits; never by a signal, and no checkpoint is half a step's."""
import concurrent.futures
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

TANDEM = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "tandem"
SCENARIO = """\
machine: round_numbers
limits: {device_bytes: 16MiB, host_bytes: 128MiB, cores: 2}
workload: {family: gpt, layers: 2, hidden: 32, heads: 2, vocabulary: 256, sequence: 16, batch: 2, tied_embedding: false}
policy: {name: zero_offload}
checkpoint: {every: 1, keep: 9}
steps: 3
"""
MIB = 1 << 20
ADDRESS_SPACE_MIB = [64, 128, 384, 520, 600, 700, 800, 1000, 1500, 3000]
HOST_KIB = [4, 16, 64, 128, 256, 512, 1024, 2048, 8192, 65536]
DEVICE_KIB = [1, 16, 64, 128, 192, 256, 384, 512, 2048, 16384]
failures = []
if not (TANDEM.parent / "tandem-train").exists() or os.environ.get("TANDEM_SANITIZED"):
    sys.exit(77)


def train(folder, name, settings=(), address_space=None):
    saved = folder / name

    def limit():
        if address_space:
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

    command = [TANDEM, "train", folder / "run.yaml", "--quiet", f"--set=checkpoint.directory={saved}", *settings]
    result = subprocess.run([str(a) for a in command], capture_output=True, text=True, timeout=120, preexec_fn=limit)
    states = {f"{file.parent.name}/{file.name}": file.read_bytes() for file in saved.glob("step-????????/*.safetensors")}
    whole = {file.parent.name for file in saved.glob("step-????????/manifest.json")}
    return result, {name: data for name, data in states.items() if name.split("/")[0] in whole}


def look(name, result, states, clean):
    """What became of it, for the account."""
    error = result.stderr.strip()
    if any(states[file] != clean.get(file) for file in states):
        failures.append(f"{name}: a checkpoint is not that of a run with enough memory")
    if result.returncode == 0:
        if states != clean:
            failures.append(f"{name}: trained to other bits")
        return "trained"
    known = {2: "refused", 3: "refused", 4: "ended"}
    if result.returncode not in known:
        failures.append(f"{name}: exit code {result.returncode}: {error[-300:]}")
    elif not error.startswith("tandem: ") or len(error) < 40:
        failures.append(f"{name}: exit code {result.returncode} without advice: {error!r}")
    return known.get(result.returncode, "crashed")


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    (folder / "run.yaml").write_text(SCENARIO)
    result, clean = train(folder, "clean")
    if result.returncode != 0 or len({name.split("/")[0] for name in clean}) != 3:
        sys.exit(f"the run with enough memory: exit code {result.returncode}: {result.stderr}")
    cases = {f"{mib} MiB of address space": ((), mib * MIB) for mib in ADDRESS_SPACE_MIB}
    cases |= {f"{kib} KiB of host memory": ((f"--set=limits.host_bytes={kib}KiB",), None) for kib in HOST_KIB}
    cases |= {f"{kib} KiB of device memory": ((f"--set=limits.device_bytes={kib}KiB",), None) for kib in DEVICE_KIB}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = {name: pool.submit(train, folder, name.replace(" ", "_"), *case) for name, case in cases.items()}
        for name, run in runs.items():
            print(f"{name}: {look(name, *run.result(), clean)}")

for failure in failures:
    print("FAILED", failure)
sys.exit(1 if failures else 0)
