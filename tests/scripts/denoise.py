#!/usr/bin/env python3
"""`tandem generate` of images: a file of latents that others read, the same ones wherever weights are and by the seed, with what
is refused, and what an interrupted run leaves."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
if not (BIN / "tandem-train").exists():
    sys.exit(77)

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

IMAGES, TEXT = SOURCE / "scenarios" / "generate_images.yaml", SOURCE / "scenarios" / "generate_text.yaml"
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def generate(*arguments):
    return subprocess.run([str(BIN / "tandem"), "generate", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)


def latents(root, *settings):
    out = root / "latents.safetensors"
    out.unlink(missing_ok=True)
    result = generate(IMAGES, "--latents", out, "--set", "generate.steps=6", *(word for setting in settings for word in ("--set", setting)))
    check(str(settings), result.returncode == 0 and "4 images in" in result.stderr, f"{result.returncode} {result.stderr[-1000:]}")
    return load_file(out)["latents"] if out.exists() else torch.zeros(1)


def placements(root):
    expected = latents(root, "policy={name: resident}")
    check("a shape", expected.shape == (4, 4, 16, 16) and expected.dtype == torch.float32, (expected.shape, expected.dtype))
    check("numbers", expected.isfinite().all() and 0.01 < expected.std() < 100, expected.std())
    for policy in ("{name: flexgen, wg: 0, hg: 0}", "{name: accelerate}"):
        check(policy, torch.equal(latents(root, f"policy={policy}"), expected))
    for name, setting in (("a seed", "seed=1"), ("steps", "generate.steps=5"), ("guidance", "generate.guidance=2")):
        check(name, not torch.equal(latents(root, setting), expected), "the same latents")
    half = latents(root, "workload.precision=bf16")
    check("bf16", half.dtype == torch.bfloat16 and half.isfinite().all(), half.dtype)


# Each image of a block is computed by itself: which batch it is in changes nothing but roundings.
def batches(root):
    plain = "generate={steps: 3}"
    two, one = latents(root, plain), latents(root, plain, "workload.batch=4", "workload.micro_batches=1")
    check("batches", torch.allclose(two, one, rtol=1e-4, atol=1e-4), (two - one).abs().max())


def refusals(root):
    (root / "folder").mkdir()
    for name, arguments, words in (
            ("prompts", (IMAGES, "--prompts", TEXT), "--prompts: is of texts"),
            ("texts", (IMAGES, "--texts", root / "texts"), "--texts: is of texts"),
            ("tokens", (IMAGES, "--tokens"), "--tokens: is of texts"),
            ("a folder", (IMAGES, "--latents", root / "folder"), "--latents"),
            ("over the scenario", (IMAGES, "--latents", IMAGES), "--latents"),
            ("latents of text", (TEXT, "--latents", root / "latents"), "--latents: is of images"),
            ("ranks", (IMAGES, "--set", "parallel={pipeline: 2}"), "images are made of noise by one rank"),
            ("weights", (IMAGES, "--set", "weights=nowhere"), "weights"),
            ("a cache", (IMAGES, "--set", "policy.cg=50"), "policy.cg"),
            ("guidance of text", (TEXT, "--set", "generate.guidance=2"), "generate.guidance"),
            ("both", (IMAGES, "--set", "generate.prompt=4"), "generate.prompt: steps (")):
        result = generate(*arguments)
        check(name, result.returncode == 2 and words in result.stderr, f"{result.returncode} {result.stderr}")
    result = generate(IMAGES, "--set", "limits.device_bytes=100KiB")
    check("too little", result.returncode == 3 and "does not fit" in result.stderr, f"{result.returncode} {result.stderr}")
    plan = subprocess.run([str(BIN / "tandem"), "plan", str(IMAGES)], capture_output=True, text=True, timeout=60, check=False)
    check("plan", plan.returncode == 2 and "generate.steps: placements" in plan.stderr, f"{plan.returncode} {plan.stderr}")


def interrupted(root):
    out = root / "cut.safetensors"
    process = subprocess.Popen([str(BIN / "tandem"), "generate", str(IMAGES), "--latents", str(out), "--set", "generate.steps=999",
                                "--set", "workload.micro_batches=50"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stderr.readline()  # it has been loaded
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    check("interrupted", process.returncode == 130 and "interrupted: no latents" in errors, f"{process.returncode} {errors[-500:]}")
    check("interrupted", not out.exists(), "latents that are half noise")


def main():
    with tempfile.TemporaryDirectory() as name:
        for part in (placements, batches, refusals, interrupted):
            part(pathlib.Path(name))
    for failure in failures:
        print("FAILED", failure)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
