#!/usr/bin/env python3
"""Items of a batch that a worker of another host decodes: losses are those of a run without one, to the bit, whether it answers, is
killed, stands still, is not there, has another manifest, or sends what it should not."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import wave

try:
    import numpy
    import torch.distributed as distributed
    from PIL import Image
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TANDEM = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin/tandem"
if not TANDEM.with_name("tandem-train").exists():
    print("skipped: no tandem-train")
    sys.exit(77)
SCENARIO = """\
machine: round_numbers
workload: {{family: trimodal, image: 32, patch: 8, image_layers: 1, image_hidden: 24, image_heads: 2, audio_layers: 1, audio_hidden: 24,
  audio_heads: 2, mels: 16, frames: 100, text_layers: 1, text_hidden: 24, text_heads: 2, vocabulary: 300, sequence: 20, projection: 16,
  batch: 8, micro_batches: 2, mix: [{{from_step: 0, image: 0.8, audio: 0.6}}]}}
data: {{manifest: {manifest}, pipeline: {{workers: 1, remote_workers: {workers}, remote_share: 0.5, remote_link: 1GB/s, image: {{{image}}}}}}}
limits: {{device_bytes: 256MiB, host_bytes: 256MiB}}
policy: {{name: resident}}
steps: {steps}
"""
STEPS = 6
MOST_S = 300  # no run takes as long; a hang does
WORDS, ANSWER_WORDS = 8, 5
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def make_samples(folder, seed, count=24):
    folder.mkdir()
    random = numpy.random.default_rng(seed)
    rows = ["sample,image,audio,text"]
    for i in range(count):
        image, sound = f"{i}.png" if i % 4 != 3 else "", f"{i}.wav" if i % 2 == 0 or i % 4 == 3 else ""
        if image:
            Image.fromarray(random.integers(0, 256, (40 + i, 50, 3), dtype=numpy.uint8)).save(folder / image)
        if sound:
            with wave.open(str(folder / sound), "wb") as out:
                out.setnchannels(1)
                out.setsampwidth(2)
                out.setframerate(16000)
                out.writeframes(random.integers(-9000, 9000, 8000 + 100 * i).astype("<i2").tobytes())
        rows.append(f"sample{seed}_{i},{image},{sound},sample {i}")
    (folder / "data.csv").write_text("\n".join(rows) + "\n")
    return folder / "data.csv"


class Runs:
    def __init__(self, folder, manifest):
        self.folder, self.manifest, self.count = folder, manifest, 0

    def scenario(self, workers, steps=STEPS, manifest=None, image=""):
        self.count += 1
        path = self.folder / f"{self.count}.yaml"
        path.write_text(SCENARIO.format(manifest=manifest or self.manifest, workers=workers, steps=steps, image=image))
        return path

    def start(self, *flags, workers=2, steps=STEPS, image=""):
        path = self.scenario(workers, steps, image=image)
        words = [str(TANDEM), "train", str(path), "--json", str(path) + ".json", "--csv", str(path) + ".csv", *map(str, flags)]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        process.results, process.table = pathlib.Path(str(path) + ".json"), pathlib.Path(str(path) + ".csv")
        return process

    def serve(self, manifest=None):
        path = self.scenario(2, manifest=manifest)
        process = subprocess.Popen([str(TANDEM), "train", str(path), "--serve-decoding", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                   text=True)
        return process, process.stdout.readline().split()[-1]


def finish(process):
    """Losses as the bits that JSON has, and what was said."""
    try:
        _, said = process.communicate(timeout=MOST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None, "it hung"
    if process.returncode != 0:
        return None, f"exit code {process.returncode}: {said}"
    losses = json.loads(process.results.read_text())["loss"]
    return losses, said


def compare(name, process, wanted, *texts):
    losses, said = finish(process)
    check(name, losses == wanted, f"losses {losses}, not {wanted}; {said}")
    for text in texts:
        check(name, text in said, f"{text!r} is not in: {said}")
    for line in said.splitlines():
        if "the worker at" in line:
            print(f"{name}: {line}")


def workers_of(process):
    """Processes that the training has started to decode: they have --serve-decoding."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or b"--serve-decoding" not in (entry / "cmdline").read_bytes():
                continue
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == process.pid:
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def after_some_steps(process, rows=3):
    end = time.monotonic() + MOST_S
    while time.monotonic() < end and process.poll() is None:
        if process.table.exists() and len(process.table.read_text().splitlines()) > rows:
            return
        time.sleep(0.02)


class Liar(threading.Thread):
    """A worker that speaks as one does (runtime/decode_link.hpp), and answers every request with `words`(number, bytes)."""

    def __init__(self, words):
        super().__init__(daemon=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.words = words
        self.store = distributed.TCPStore("127.0.0.1", self.port, is_master=True, wait_for_workers=False)

    def run(self):
        try:
            self.store.wait(["1/manifest"])
            self.store.set("1/answer", "ok")
            store = distributed.TCPStore("127.0.0.1", self.port, is_master=False, wait_for_workers=False)
            options = distributed.ProcessGroupGloo._Options()
            options._devices = [distributed.ProcessGroupGloo.create_device(hostname="127.0.0.1")]
            group = distributed.ProcessGroupGloo(distributed.PrefixStore("1/group", store), 1, 2, options)
            while True:
                request = torch.zeros(WORDS, dtype=torch.int64)
                group.recv([request], 0, 0).wait()
                number, _, _, item_bytes, items, *_ = request.tolist()
                for _ in range(3):
                    group.recv([torch.zeros(items, dtype=torch.int64)], 0, 0).wait()
                answer, made = self.words(number, item_bytes * items)
                group.send([torch.tensor(answer, dtype=torch.int64)], 0, 0).wait()
                group.send([made], 0, 0).wait()
        except RuntimeError:
            pass  # the training is gone


def zeros(count):
    return torch.zeros(count, dtype=torch.uint8)


def lies(runs, wanted):
    for name, words, said in (
            ("wrong count", lambda number, count: ([number, 1, count - 1, 0, 0], zeros(count - 1)), "bytes, not"),
            ("wrong sum", lambda number, count: ([number, 1, count, 1, 2], zeros(count)), "another checksum"),
            ("too few", lambda number, count: ([number, 1, count, 1, 2], zeros(count // 2)), "another checksum"),
            ("another request", lambda number, count: ([number + 1, 1, count, 1, 2], zeros(count)), "another request")):
        liar = Liar(words)
        liar.start()
        compare(name, runs.start("--decode-workers", f"127.0.0.1:{liar.port}"), wanted, "given up", said)


def dead_workers(runs):
    long = 40
    wanted, said = finish(runs.start(workers=0, steps=long))
    check("long run", wanted is not None, said)
    # A worker has to start within the time, too, which a sanitizer makes long. Of a killed one the link says so at once.
    for name, kill, timeout in (("killed", signal.SIGKILL, 120), ("stopped", signal.SIGSTOP, 20)):
        process = runs.start("--decode-timeout", timeout, steps=long)
        after_some_steps(process)
        found = workers_of(process)
        check(name, len(found) == 1, f"workers: {found}")
        for worker in found:
            os.kill(worker, kill)
        compare(name, process, wanted, "given up", "of its share were decoded here")
        check(name, not any(pathlib.Path(f"/proc/{worker}").exists() for worker in found), "the worker outlived the training")


def random_crops(runs, centre, address):
    """Crops and flips are those that the training draws: the worker's scenario has none."""
    image = "crop: random, flip: 0.5"
    wanted, said = finish(runs.start(workers=0, image=image))
    check("random crops", wanted is not None and wanted != centre, said)
    process = runs.start("--decode-workers", address, image=image)
    compare("random crops, served", process, wanted, f"note: the worker at {address} decoded")


def absent_workers(runs, wanted, other):
    with socket.socket() as silent:  # accepts, and says nothing
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        flags = ("--decode-workers", f"127.0.0.1:{port}", "--decode-timeout", 2)
        compare("nobody", runs.start(*flags), wanted, "given up")
        silent.listen()
        compare("silent", runs.start(*flags), wanted, "given up: said nothing for 2 s")
    process, address = runs.serve(other)
    compare("another manifest", runs.start("--decode-workers", address), wanted, "given up: it serves another manifest")
    process.kill()
    process.wait()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        runs = Runs(folder, make_samples(folder / "samples", 1))
        wanted, said = finish(runs.start(workers=0))
        check("without", wanted is not None and len(wanted) == STEPS, said)
        compare("started here", runs.start(), wanted, "parts, ")
        process, address = runs.serve()
        for turn in (1, 2):  # it serves one training after another
            compare(f"served, {turn}", runs.start("--decode-workers", address), wanted, f"note: the worker at {address} decoded")
        random_crops(runs, wanted, address)
        process.kill()
        process.wait()
        dead_workers(runs)
        absent_workers(runs, wanted, make_samples(folder / "others", 2))
        lies(runs, wanted)
        refused = runs.start("--decode-workers", "nowhere")
        said = refused.communicate()[1]
        check("no address", refused.returncode == 2 and "allowed: HOST:PORT" in said, f"{refused.returncode}: {said}")


main()
for failure in failures:
    print(f"FAILED {failure}")
sys.exit(1 if failures else 0)
