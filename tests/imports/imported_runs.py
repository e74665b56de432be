"""Imports a module, trains it with Tandem and with PyTorch eager, and compares both to the bit."""
import json
import os
import pathlib
import re
import subprocess
import sys

import torch

import eager
from tandem.importer.capture import loss_of
from tandem.importer.importing import import_module
from tandem.importer.state import state_dict

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
failures = []


def run(*arguments, **options):
    return subprocess.run([str(BIN / "tandem"), *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)


def import_by_command(function, folder, *flags):
    result = run("import", function, "--output", folder, "--python", sys.executable, *flags, cwd=SOURCE / "tests" / "imports")
    assert result.returncode == 0, result.stderr
    return folder


def scenario_of(folder, batch, steps=4, policy="resident", micro_batches=1, clip_norm=0.0):
    path = pathlib.Path(str(folder) + f"_{policy}_{batch}_{steps}.yaml")
    path.write_text(
        "machine: round_numbers\nlimits: {device_bytes: 64MiB, host_bytes: 256MiB, cores: 2}\n"
        f"workload: {{family: imported, path: {folder}, batch: {batch}, micro_batches: {micro_batches}}}\n"
        f"optimizer: {{learning_rate: 1e-3, weight_decay: 0.1, clip_norm: {clip_norm}}}\n"
        f"policy: {{name: {policy}}}\nsteps: {steps}\n")
    return path


def train(scenario, checkpoints, *flags):
    """Returns the losses."""
    result = run("train", scenario, "--device", "cpu", "--json", "-", "--set", f"checkpoint.directory={checkpoints}", *flags)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["loss"]


def batch_of(folder):
    """The tensors of network.yaml's batch, without a YAML reader."""
    text, tensors = (folder / "network.yaml").read_text(), []
    for line in re.findall(r"^- \{(name: \w+, type: [^}]*)\}$", text, re.M):
        entry = dict(re.findall(r"(\w+): (\[[^\]]*\]|[^,]+)", line))
        entry["shape"] = [int(n) for n in re.findall(r"\d+", entry["shape"])]
        if "below" in entry:
            entry["below"] = int(entry["below"])
        tensors.append(entry)
    return tensors


def compare_with_eager(make, folder, split=None, policy="resident", micro_batches=1, clip_norm=0.0, steps=20):
    """`make`: gives a module, the same one each time, and example inputs."""
    name = make.__name__
    module, inputs = make()
    path = folder / name
    import_module(module, inputs, str(path), name, split)
    tensors = batch_of(path)
    samples = next(t for t in tensors if "constant" not in t)["shape"][0]
    scenario = scenario_of(path, samples, steps, policy, micro_batches, clip_norm)
    losses = train(scenario, folder / f"{name}_checkpoints")
    torch.set_num_threads(1)  # as the device's lane has where a machine of two cores stands in for a GPU
    plain, inputs = make()
    expected = eager.train(plain, inputs, tensors, steps, micro_batches, clip_norm, 0.1, loss_of)
    trained = state_dict(str(path), str(folder / f"{name}_checkpoints"))
    other = [k for k, v in plain.state_dict().items() if not torch.equal(v, trained[k])]
    if losses != expected:
        failures.append(f"{name}: losses {losses} are not eager's {expected}")
    if other:
        failures.append(f"{name}: {len(other)} tensors are not eager's: {other[:5]}")
    make()[0].load_state_dict(trained, strict=True)
    print(f"{name}: {steps} steps {'differ' if losses != expected or other else 'are equal'}", flush=True)
