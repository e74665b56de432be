"""What a sample of a manifest becomes before it enters the network: by the project's own decoders, through the program
that tests/scripts/media.py compares with other libraries. Must not know networks."""
import csv
import hashlib
import random
import subprocess
import sys
from pathlib import Path

import numpy
import torch

SOURCE = Path(__file__).resolve().parent.parent
RATE, HOP, BYTES = 16000, 160, 256  # samples a second, samples a frame, tokens of a text that is read by bytes
MEAN = numpy.float32([0.48145466, 0.4578275, 0.40821073])  # CLIP's
DEVIATION = numpy.float32([0.26862954, 0.26130258, 0.27577711])


class Inputs:
    """images [1, 3, side, side] and mels [1, bands, frames] of files, tokens [1, sequence] of a text."""

    def __init__(self, stages, workload):
        self.stages, self.workload = stages, workload

    def stage(self, *arguments):
        done = subprocess.run([self.stages, *map(str, arguments)], capture_output=True)
        if done.returncode != 0:
            raise ValueError(done.stderr.decode(errors="replace").strip())
        return done.stdout

    def image(self, path):
        side = self.workload["image"]
        pixels = numpy.frombuffer(self.stage("resize", path, side), numpy.uint8, offset=8).reshape(side, side, 3)
        scaled = pixels.astype(numpy.float32) * (1 / (255 * DEVIATION)) - MEAN / DEVIATION
        return torch.from_numpy(scaled.transpose(2, 0, 1).copy())

    def mels(self, path):
        frames, bands = self.workload["frames"], self.workload["mels"]
        out = numpy.frombuffer(self.stage("log_mel", path, frames * HOP, bands), numpy.float32)
        return torch.from_numpy(out.reshape(bands, frames).copy())

    def tokens(self, text):
        """Bytes, an end behind them where the vocabulary has one, and ends for all that is left."""
        length, end = self.workload["sequence"], BYTES if self.workload["vocabulary"] > BYTES else 0
        out = torch.full((length,), end, dtype=torch.long)
        codes = list(text.encode())[:length - 1]
        out[:len(codes)] = torch.tensor(codes, dtype=torch.long)
        return out

    def of(self, row):
        return self.image(row["image"]), self.mels(row["audio"]), self.tokens(row["text"])


def stamps(folder, language, seed):
    """Rows of a manifest of Tux Paint's stamps that have image, sound and caption, in an order of the seed's: in the
    folder, neighbours are of one category."""
    listed = folder / "stamps.csv"
    subprocess.run([sys.executable, SOURCE / "scripts/tuxpaint_manifest.py", "--output", listed, "--audio-language",
                    language], check=True, stdout=subprocess.DEVNULL)
    with open(listed, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if all(row.values())]
    random.Random(seed).shuffle(rows)
    return rows


def groups_of(rows):
    """Rows that share a caption or a sound, directly or through others; in the order of their first."""
    by_key = {}
    for row in rows:
        keys = (row["text"], hashlib.sha256(Path(row["audio"]).read_bytes()).hexdigest())
        joined = {id(by_key[key]): by_key[key] for key in keys if key in by_key}
        group = [(row, keys)] + [member for members in joined.values() for member in members]
        by_key.update((key, group) for _, its in group for key in its)
    groups = {id(group): group for group in by_key.values()}
    return [[row for row, _ in group] for group in groups.values()]


def apart(rows, held_out):
    """The same rows, so that the last `held_out` share no caption and no sound with those before: a sample that is
    found by its twin's caption says nothing."""
    first, last = [], []
    for group in groups_of(rows):
        (last if len(last) + len(group) <= held_out else first).extend(group)
    if len(last) != held_out:
        raise ValueError(f"no {held_out} of {len(rows)} samples share nothing with the others")
    return first + last


def readable(inputs, rows):
    """The rows whose files can be decoded; what each became, by its sample; why the others cannot."""
    kept, made, refused = [], {}, []
    for row in rows:
        try:
            made[row["sample"]] = inputs.of(row)
            kept.append(row)
        except ValueError as error:
            refused.append(str(error))
    return kept, made, refused


def stacked(made, rows):
    """images, mels and tokens of the rows, [rows, ...] each."""
    return [torch.stack(part) for part in zip(*(made[row["sample"]] for row in rows))]


def write_manifest(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
