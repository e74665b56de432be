#!/usr/bin/env python3
"""Offloading changes no bit over a thousand training steps: each policy's losses and final tensors against those of training on
the device alone, for 1, 2, 4 and 8 micro-batches. Minutes; part of `make nightly`.

    parity.py                      all
    parity.py --steps 100 --policies zero_offload,balanced
"""
import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

TANDEM = pathlib.Path(__file__).resolve().parent.parent / "build" / "bin" / "tandem"
SCENARIO = """\
machine: round_numbers
workload: {family: gpt, layers: 3, hidden: 40, heads: 2, vocabulary: 131, sequence: 17, batch: 2, precision: bf16}
optimizer: {clip_norm: 1, learning_rate: 1e-3}
"""
AMPLE, TIGHT = "limits={device_bytes: 64MiB, host_bytes: 64MiB, cores: 2}", "limits={device_bytes: 1MiB, host_bytes: 16MiB, cores: 2}"
POLICIES = "on_demand,zero_offload,zero_infinity,balanced,cotrain,split_update,stronghold,deep_optimizer_states,patrickstar,protrain,l2l,g10"


def trained(folder, settings):
    """Losses, and a hash of the final tensors; a sentence where the run does not end well."""
    saved, figures = folder / "saved", folder / "figures.json"
    words = [str(TANDEM), "train", str(folder / "tiny.yaml"), "--quiet", "--json", str(figures)]
    for setting in settings + (f"checkpoint={{directory: {saved}, every: 1000000}}",):
        words += ["--set", setting]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return f"ended with {run.returncode}: {run.stderr.strip()[:200]}"
    total = hashlib.sha256()
    for path in sorted(saved.rglob("*.safetensors")):
        total.update(path.read_bytes())
    shutil.rmtree(saved)
    return json.loads(figures.read_text())["loss"], total.hexdigest()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--policies", default=POLICIES)
    arguments = p.parse_args()
    wrong = 0
    for micro_batches in (1, 2, 4, 8):
        common = (f"steps={arguments.steps}", f"workload.micro_batches={micro_batches}")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "tiny.yaml").write_text(SCENARIO)
            alone = trained(folder, (*common, AMPLE, "policy={name: resident}"))
            for policy in arguments.policies.split(","):
                found = trained(folder, (*common, TIGHT, f"policy={{name: {policy}}}"))
                same = not isinstance(found, str) and found == alone
                wrong += not same
                verdict = "the same bits" if same else found if isinstance(found, str) else "OTHER BITS"
                print(f"{policy:24} {micro_batches} micro-batches, {arguments.steps} steps: {verdict}", flush=True)
    print("ok" if wrong == 0 else f"{wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
