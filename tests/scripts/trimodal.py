#!/usr/bin/env python3
"""Training on files of pictures and sounds, for real: the same losses to the bit wherever inputs are made and kept and
whichever policy places them; files that are damaged, missing or changed. On media that are made here; and, where Tux
Paint's stamps are installed, that a loss falls on them."""
import csv
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

try:
    import numpy
    from PIL import Image
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TANDEM = Path(os.environ["TANDEM_BUILD"]) / "bin/tandem"
SOURCE = Path(os.environ["TANDEM_SOURCE"])
STAMPS = Path("/usr/share/tuxpaint/stamps")
if not TANDEM.with_name("tandem-train").exists():
    print("skipped: no tandem-train")
    sys.exit(77)
TOWERS = {"image": 16, "patch": 8, "image_layers": 1, "image_hidden": 16, "image_heads": 2, "vocabulary": 257,
          "sequence": 12, "text_layers": 1, "text_hidden": 16, "text_heads": 2, "projection": 8}
SOUND = {"mels": 10, "frames": 20, "audio_layers": 1, "audio_hidden": 16, "audio_heads": 2}
SAMPLES, BATCH = 24, 8
failures = []


def check(name, condition, detail=""):
    print(("ok      " if condition else "FAILED  ") + name)
    if not condition:
        failures.append(f"{name}: {detail}")


def scenario(manifest, **changes):
    base = {"machine": "cpu_2_cores",
            "workload": {"family": "trimodal", **TOWERS, **SOUND, "batch": BATCH, "micro_batches": 2, "precision": "fp32"},
            "data": {"manifest": str(manifest), "pipeline": {"workers": 2}}, "policy": {"name": "resident"},
            "optimizer": {"learning_rate": 1e-3}, "steps": 6}
    for path, value in changes.items():
        *parts, last = path.split("__")
        at = base
        for part in parts:
            at = at.setdefault(part, {})
        at[last] = value
    return base


class Runs:
    """Runs of scenarios in a folder, which is theirs for temporary files, too."""

    def __init__(self, folder):
        self.folder = folder

    def train(self, of, code=0, temporary=None, flags=()):
        path = self.folder / "scenario.yaml"
        path.write_text(json.dumps(of))  # JSON is YAML
        environment = {**os.environ, "TMPDIR": str(temporary or self.folder)}
        done = subprocess.run([TANDEM, "train", path, "--device", "cpu", "--quiet", "--json", "-", *flags], capture_output=True,
                              text=True, timeout=120, env=environment)
        if done.returncode != code:
            sys.exit(f"exit code {done.returncode}, not {code}: {done.stderr}\n{path.read_text()}")
        return done

    def losses(self, of, temporary=None):
        return json.loads(self.train(of, temporary=temporary).stdout)["loss"]

    def warning(self, of):
        """What a run says that is not quiet."""
        path = self.folder / "scenario.yaml"
        path.write_text(json.dumps(of))
        done = subprocess.run([TANDEM, "train", path, "--device", "cpu"], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stderr


def make_media(folder):
    """A picture and a sound for each sample, of a seed: JPEG and PNG by turns, and tones."""
    random = numpy.random.default_rng(3)
    rows = []
    for i in range(SAMPLES):
        picture = folder / f"{i}.{'png' if i % 2 else 'jpg'}"
        Image.fromarray(random.integers(0, 256, (20, 24 + i, 3), numpy.uint8)).save(picture)
        sound = folder / f"{i}.wav"
        with wave.open(str(sound), "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(8000)
            tone = [int(9000 * math.sin(t * (i + 2) / 9)) for t in range(1600)]
            file.writeframes(struct.pack(f"<{len(tone)}h", *tone))
        rows.append({"sample": f"s{i}", "image": picture.name, "audio": sound.name, "text": f"picture {i}"})
    return rows


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return path


def near(a, b, most):
    return len(a) == len(b) and all(abs(x - y) <= most for x, y in zip(a, b))


def check_many(runs, manifest):
    """From 60 pairs on LibTorch takes other ways, and other memory."""
    with open(manifest, newline="", encoding="utf-8") as file:
        rows = [{**row, "sample": f"{row['sample']} {copy}"} for row in csv.DictReader(file) for copy in range(3)]
    of = scenario(write(manifest.with_name("many.csv"), rows), workload__batch=64, workload__micro_batches=1, steps=1)
    losses = runs.losses(of)
    check("64 pairs: there is a loss", len(losses) == 1 and 0 < losses[0] < math.inf, losses)


def placements(runs, manifest):
    """Where inputs are made and kept and what a policy does is in no loss."""
    wanted = runs.losses(scenario(manifest))
    check("losses differ from step to step", len(set(wanted)) == len(wanted), wanted)
    once = scenario(manifest, workload__micro_batches=1)
    check("losses are those of the micro-batches", runs.losses(once) != wanted)
    check_many(runs, manifest)
    cases = {"1 worker": {"data__pipeline__workers": 1},
             "8 workers": {"data__pipeline__workers": 8},
             "4 steps ahead": {"data__pipeline__prefetch": 4},
             "decoded cache in memory": {"data__pipeline__cache": {"decoded": "64MiB"}},
             "decoded cache of a few items": {"data__pipeline__cache": {"decoded": "20KiB"}},
             "decoded cache on disk": {"data__pipeline__cache": {"decoded": "64MiB", "decoded_in": "disk"}},
             "transform on the device": {"data__pipeline__transform": "device"},
             "decoding on the device": {"data__pipeline__decode": "device"},
             "both, adaptive": {"data__pipeline__decode": "device", "data__pipeline__transform": "device", "policy__name": "adaptive"},
             "zero_infinity": {"policy__name": "zero_infinity"},
             "adaptive": {"policy__name": "adaptive"},
             "fusionflow": {"policy__name": "fusionflow"}}
    for name, changes in cases.items():
        losses = runs.losses(scenario(manifest, **changes))
        check(f"{name}: the same losses", losses == wanted, f"{losses}, not {wanted}")
    shared = json.loads(runs.train(scenario(manifest, policy={"name": "hyscale", "cpu_micro_batches": 1})).stdout)
    check("a micro-batch on the CPU: the same losses", shared["loss"] == wanted, f"{shared['loss']}, not {wanted}")
    check("a micro-batch on the CPU: it computes", shared["busy_share"]["device0/cpu_compute"] > 0, shared["busy_share"])


def features(runs, manifest):
    """What a frozen encoder made of an item before is as good as made again."""
    frozen = {"workload__trained": ["*_aligner.*", "head.*"], "steps": 9}
    made = runs.losses(scenario(manifest, **frozen))
    kept = runs.losses(scenario(manifest, **frozen, data__pipeline__cache={"features": "1MiB"}))
    check("features from a cache: losses within 1e-5", near(kept, made, 1e-5), f"{kept}, not {made}")


def held_out(runs, manifest):
    """Held-out batches have all their items, whatever a step of training has of them or finds in a cache."""
    def losses(**changes):
        of = scenario(manifest, workload__trained=["*_aligner.*", "head.*"], steps=8, validation={"every": 7, "batches": 2, "fraction": 0.4}, **changes)
        return [entry["loss"] for entry in json.loads(runs.train(of).stdout)["validation_loss"]]
    made, kept = losses(), losses(data__pipeline__cache={"features": "1MiB"})
    check("held out, beside a cache: losses within 1e-5", len(made) == 2 and min(made) > 0 and near(kept, made, 1e-5), f"{kept}, not {made}")
    few = losses(workload__mix=[{"from_step": 0, "image": 1, "audio": 1}, {"from_step": 3, "image": 0, "audio": 0}])
    check("held out, beside steps without pictures and sounds: by the mix of the first step", min(few) > 0, few)


def crops(runs, manifest):
    """Random crops and flips are of the seed, the sample and the epoch, whoever cuts, and whether a run is resumed."""
    def cut(**changes):
        return scenario(manifest, data__pipeline__image={"crop": "random", "crop_scale": 0.3, "flip": 0.5}, **changes)
    wanted = runs.losses(cut())
    check("crops: other losses than the middle's", wanted != runs.losses(scenario(manifest)), wanted)
    check("crops: other losses of another seed", wanted != runs.losses(cut(seed=1)), wanted)
    check("flips alone: other losses", runs.losses(scenario(manifest, data__pipeline__image={"flip": 1})) not in (wanted, runs.losses(scenario(manifest))))
    cases = {"1 worker": {"data__pipeline__workers": 1}, "8 workers": {"data__pipeline__workers": 8},
             "transform on the device": {"data__pipeline__transform": "device"}, "4 steps ahead": {"data__pipeline__prefetch": 4},
             "adaptive": {"policy__name": "adaptive"}, "zero_infinity": {"policy__name": "zero_infinity"},
             "a micro-batch on the CPU": {"policy": {"name": "hyscale", "cpu_micro_batches": 1}}}
    for name, changes in cases.items():
        losses = runs.losses(cut(**changes))
        check(f"crops, {name}: the same losses", losses == wanted, f"{losses}, not {wanted}")
    folder = str(runs.folder / "checkpoints")
    first = runs.losses(cut(steps=3, checkpoint={"directory": folder}))
    rest = json.loads(runs.train(cut(checkpoint={"directory": folder}), flags=("--resume", folder)).stdout)["loss"]
    check("crops: a run that goes on has the same losses", first + rest == wanted, f"{first} + {rest}, not {wanted}")

    def held_out(of):
        done = json.loads(runs.train({**of, "optimizer": {"learning_rate": 0}, "validation": {"every": 3, "batches": 2, "fraction": 0.4}}).stdout)
        return done["loss"], [entry["loss"] for entry in done["validation_loss"]]
    (cut_losses, cut_held), (losses, held) = held_out(cut()), held_out(scenario(manifest))
    check("crops: held-out losses are the middle's", cut_held == held and cut_losses != losses, f"{cut_held}, not {held}")
    frozen = {"workload__trained": ["*_aligner.*", "head.*"]}
    sounds = {"workload__trained": ["*_aligner.*", "head.*", "image_encoder*"], "steps": 9}
    made, kept = runs.losses(cut(**sounds)), runs.losses(cut(**sounds, data__pipeline__cache={"features": "1MiB"}))
    check("crops: features of sounds may be kept", near(kept, made, 1e-5), f"{kept}, not {made}")
    for cache, image, key in (("decoded", {"crop": "random"}, "image.crop"), ("decoded", {"flip": 0.5}, "image.flip"),
                              ("features", {"crop": "random", "flip": 1}, "image.crop"), ("features", {"flip": 0.5}, "image.flip")):
        of = scenario(manifest, data__pipeline__cache={cache: "1MiB"}, data__pipeline__image=image, **frozen)
        said = runs.train(of, code=2).stderr
        check(f"cache.{cache} beside {key}: refused", "scenario.yaml:1:" in said and f"cache.{cache} keeps" in said and f"and {key}" in said
              and "allowed: " in said and f", or no cache.{cache}" in said, said)


def damaged(runs, folder, rows):
    """A sample with a damaged file is one that lacks it."""
    (folder / "cut.png").write_bytes((folder / "1.png").read_bytes()[:60])
    (folder / "noise.wav").write_bytes(bytes(range(256)) * 8)
    bad, lacking = [dict(row) for row in rows], [dict(row) for row in rows]
    bad[1]["image"], bad[6]["audio"], bad[9]["image"] = "cut.png", "noise.wav", "nowhere.png"
    lacking[1]["image"] = lacking[6]["audio"] = lacking[9]["image"] = ""
    of = scenario(write(folder / "bad.csv", bad))
    code, said = runs.warning(of)
    check("damaged files: the run goes on", code == 0, said)
    check("damaged files: counted and told", "3 skipped" in said and '"s1"' in said and '"s6"' in said and '"s9"' in said, said)
    skipped, without = runs.losses(of), runs.losses(scenario(write(folder / "lacking.csv", lacking)))
    check("damaged files: as if the samples lacked them", near(skipped, without, 1e-5), f"{skipped}, not {without}")
    check("damaged files: losses without them are others", skipped != runs.losses(scenario(folder / "all.csv")))
    failed = runs.train(scenario(folder / "bad.csv", data__pipeline__on_error="fail"), code=4)
    check("on_error: fail names the sample", any(f'"{name}"' in failed.stderr for name in ("s1", "s6", "s9")), failed.stderr)


def damaged_inside(runs, folder, rows):
    """A JPEG that has its end and lacks some of its data: a worker skips it; a device finds it too late for that."""
    whole = (folder / "0.jpg").read_bytes()
    (folder / "inside.jpg").write_bytes(whole[:len(whole) * 2 // 3] + whole[-2:])
    rows = [dict(row, image="inside.jpg") if row["sample"] == "s0" else row for row in rows]
    of = scenario(write(folder / "inside.csv", rows))
    code, said = runs.warning(of)
    check("damaged inside: a worker skips it", code == 0 and "1 skipped" in said and '"s0"' in said, said)
    of["data"]["pipeline"]["decode"] = "device"
    failed = runs.train(of, code=4)
    check("damaged inside: on a device it ends the run", '"s0"' in failed.stderr and "decode: cpu" in failed.stderr, failed.stderr)


def replaced(runs, folder, rows):
    """Where a network takes pairs as they are, the next sample stands in the place of one that cannot be read."""
    rows = [{key: row[key] for key in ("sample", "image", "text")} for row in rows]
    bad, doubled = [dict(row) for row in rows], [dict(row) for row in rows]
    bad[1]["image"] = bad[2]["image"] = "cut.png"
    for i in (1, 2):
        doubled[i] = {**rows[3], "sample": f"again {i}"}
    towers = {key.replace("image_", "vision_"): size for key, size in TOWERS.items()}
    workload = {"family": "clip", **towers, "batch": BATCH, "micro_batches": 2, "precision": "fp32"}
    a = runs.losses(scenario(write(folder / "bad_pairs.csv", bad), workload=workload))
    b = runs.losses(scenario(write(folder / "doubled.csv", doubled), workload=workload))
    check("clip: a damaged sample is replaced by the next one", a == b, f"{a}, not {b}")
    only = [dict(row, image="cut.png") for row in rows]
    failed = runs.train(scenario(write(folder / "none.csv", only), workload=workload), code=4)
    check("clip: a manifest without a picture ends the run", "cannot be read" in failed.stderr, failed.stderr)


def damaged_cache(runs, folder, rows):
    """What a cache on disk holds is used only where it is what was put in, of the file as it is now."""
    temporary = folder / "cache"
    temporary.mkdir()
    of = scenario(folder / "all.csv", data__pipeline__cache={"decoded": "64MiB", "decoded_in": "disk"})
    wanted = runs.losses(of, temporary)
    entries = sorted((temporary / "tandem_decoded").glob("*.sample"))
    check("cache on disk: an entry for each file", len(entries) == 2 * SAMPLES, len(entries))
    for i, entry in enumerate(entries[:12]):
        held = bytearray(entry.read_bytes())
        held[-1] ^= 1
        entry.write_bytes(bytes(held) if i % 3 == 0 else bytes(held[:len(held) // 2]) if i % 3 == 1 else b"")
    check("cache on disk: damaged entries are made again", runs.losses(of, temporary) == wanted)
    others = [dict(row, image=rows[-1 - i]["image"]) for i, row in enumerate(rows)]
    apart = scenario(write(folder / "others.csv", others))
    beside = scenario(folder / "others.csv", data__pipeline__cache={"decoded": "64MiB", "decoded_in": "disk"})
    check("cache on disk: another manifest has its own entries", runs.losses(beside, temporary) == runs.losses(apart))


def stamps(runs, folder):
    """Real pictures, recorded speech and captions: the loss falls below what guessing gives, the log of the batch."""
    path = folder / "stamps.csv"
    subprocess.run([sys.executable, SOURCE / "scripts/tuxpaint_manifest.py", "--output", path, "--audio-language", "fr"],
                   check=True, stdout=subprocess.DEVNULL)
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if all(row.values()) and row["image"].endswith(".png")]
    random.Random(1).shuffle(rows)
    write(path, rows[:32])
    changes = {"workload__batch": 16, "workload__micro_batches": 1, "workload__frames": 100,
               "workload__image_hidden": 48, "workload__audio_hidden": 48, "workload__text_hidden": 48,
               "workload__projection": 32, "data__pipeline__cache": {"decoded": "64MiB"}, "steps": 60,
               "optimizer": {"learning_rate": 2e-3, "warmup_steps": 10, "betas": [0.9, 0.98], "clip_norm": 1}}
    losses = runs.losses(scenario(path, **changes))
    last = sum(losses[-8:]) / 8
    check(f"stamps: the loss falls from {losses[0]:.2f} to {last:.2f}", last < 0.75 * math.log(16), losses)
    eight = runs.losses(scenario(path, **changes, data__pipeline__workers=8))
    check("stamps: the same losses with 8 workers", eight == losses, f"{eight}, not {losses}")


with tempfile.TemporaryDirectory() as temporary:
    folder = Path(temporary)
    runs = Runs(folder)
    rows = make_media(folder)
    manifest = write(folder / "all.csv", rows)
    placements(runs, manifest)
    features(runs, manifest)
    crops(runs, manifest)
    held_out(runs, manifest)
    damaged(runs, folder, rows)
    damaged_inside(runs, folder, rows)
    replaced(runs, folder, rows)
    damaged_cache(runs, folder, rows)
    if STAMPS.is_dir():
        stamps(runs, folder)
    else:
        print("skipped: stamps, for want of tuxpaint-stamps-default")
if failures:
    sys.exit("failed: " + "\n".join(failures))
