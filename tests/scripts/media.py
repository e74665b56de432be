#!/usr/bin/env python3
"""Stages of the input pipeline against the libraries that people train with: JPEG and PNG as Pillow decodes them, equal;
resize, random crops and flips as Pillow's, within one grey level; boxes of crops as torchvision draws them, by their
shares; sounds, rates and log-mel spectrograms as formulas in numpy and
transformers' filters give them. Media are made here, of a seed."""
import os
import subprocess
import sys
import tempfile
import wave
from math import gcd
from pathlib import Path

try:
    import numpy
    from PIL import Image
    from transformers.audio_utils import mel_filter_bank
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

PROGRAM = Path(os.environ.get("TANDEM_BUILD", "build")) / "bin/media_stages"
failures = []


def stage(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, stdout=subprocess.PIPE).stdout


def picture(*arguments):
    data = stage(*arguments)
    height, width = numpy.frombuffer(data, numpy.int32, 2)
    return numpy.frombuffer(data, numpy.uint8, offset=8).reshape(height, width, 3)


def sound(*arguments):
    data = stage(*arguments)
    return int(numpy.frombuffer(data, numpy.int32, 1)[0]), numpy.frombuffer(data, numpy.float32, offset=4)


def expect(what, ours, theirs, most):
    if ours.shape != theirs.shape:
        failures.append(f"{what}: {ours.shape}, not {theirs.shape}")
        return
    difference = numpy.abs(ours.astype(numpy.float64) - theirs.astype(numpy.float64)).max()
    print(f"{what}: largest difference {difference:.3g}, at most {most:g}")
    if not difference <= most:
        failures.append(what)


def made_up_picture(random, height, width, channels):
    y, x = numpy.mgrid[0:height, 0:width]
    waves = [numpy.sin(x / (5 + c) + y / (9 - c) + c) for c in range(channels)]
    noise = random.normal(0, 12, (height, width, channels))
    return numpy.clip(128 + 90 * numpy.stack(waves, -1) + noise, 0, 255).astype(numpy.uint8)


def pictures(folder):
    random = numpy.random.default_rng(1)
    for name, height, width, channels, options in (
            ("halved.jpg", 211, 307, 3, {"quality": 85, "subsampling": 2}),
            ("full.jpg", 211, 307, 3, {"quality": 95, "subsampling": 0}),
            ("progressive.jpg", 120, 80, 3, {"quality": 75, "progressive": True}),
            ("grey.jpg", 64, 65, 1, {"quality": 80}),
            ("colour.png", 97, 131, 3, {}),
            ("grey.png", 97, 131, 1, {})):
        pixels = made_up_picture(random, height, width, channels)
        path = folder / name
        Image.fromarray(pixels.squeeze(-1) if channels == 1 else pixels).save(path, **options)
        with Image.open(path) as opened:
            theirs = opened.convert("RGB")
        expect(f"decode {name}", picture("decode", path), numpy.asarray(theirs), 0)
        for side in (32, 100, 224):
            short = min(height, width)
            left, top = (width - short) // 2, (height - short) // 2
            resized = theirs.resize((side, side), Image.BILINEAR, box=(left, top, left + short, top + short))
            expect(f"resize {name} to {side}", picture("resize", path, side), numpy.asarray(resized), 1)
    transparent = Image.fromarray(made_up_picture(random, 50, 60, 4))
    transparent.save(folder / "transparent.png")
    white = Image.alpha_composite(Image.new("RGBA", transparent.size, "white"), transparent).convert("RGB")
    expect("decode transparent.png", picture("decode", folder / "transparent.png"), numpy.asarray(white), 1)
    palette = Image.fromarray(made_up_picture(random, 50, 60, 3)).quantize(16)
    palette.save(folder / "palette.png")
    expect("decode palette.png", picture("decode", folder / "palette.png"), numpy.asarray(palette.convert("RGB")), 0)
    deep = (random.integers(0, 65536, (20, 30))).astype(numpy.uint16)
    Image.fromarray(deep).save(folder / "deep.png")
    theirs = numpy.repeat((deep >> 8).astype(numpy.uint8)[..., None], 3, -1)
    expect("decode deep.png", picture("decode", folder / "deep.png"), theirs, 0)


def crops(folder):
    random = numpy.random.default_rng(4)
    seen = set()
    for name, height, width in (("wide.png", 120, 210), ("tall.png", 180, 75), ("thin.png", 9, 140)):
        whole = Image.fromarray(made_up_picture(random, height, width, 3))
        whole.save(folder / name)
        for seed in range(6):
            data = stage("crop", folder / name, 48, seed)
            left, top, across, down, mirrored = map(int, numpy.frombuffer(data, numpy.int32, 5))
            theirs = whole.resize((48, 48), Image.BILINEAR, box=(left, top, left + across, top + down))
            theirs = theirs.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else theirs
            ours = numpy.frombuffer(data, numpy.uint8, offset=28).reshape(48, 48, 3)
            expect(f"crop {name} at {left}, {top} of {across} x {down}{' mirrored' if mirrored else ''}", ours, numpy.asarray(theirs), 1)
            seen.add((left, top, across, down, mirrored))
    if len(seen) < 14 or {mirrored for *_, mirrored in seen} != {0, 1}:
        failures.append(f"crops: not another one at each seed: {seen}")


def torchvision_box(random, height, width, least):
    """RandomResizedCrop.get_params of torchvision 0.21, of numpy's generator."""
    for _ in range(10):
        area = height * width * random.uniform(least, 1)
        ratio = numpy.exp(random.uniform(numpy.log(3 / 4), numpy.log(4 / 3)))
        across, down = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < across <= width and 0 < down <= height:
            return random.integers(0, width - across + 1), random.integers(0, height - down + 1), across, down
    across, down = width, height
    if width / height < 3 / 4:
        down = round(width / (3 / 4))
    elif width / height > 4 / 3:
        across = round(height * 4 / 3)
    return (width - across) // 2, (height - down) // 2, across, down


def boxes(folder):
    """Means and deviations of area, sides and place are those of torchvision's boxes: of 20000 of each, within five errors."""
    random, count = numpy.random.default_rng(5), 20000
    for height, width, percent in ((120, 160, 8), (200, 90, 8), (100, 100, 50)):
        path = folder / "box.png"
        Image.new("RGB", (width, height)).save(path)
        ours = numpy.frombuffer(stage("boxes", path, count, percent), numpy.int32).reshape(count, 4).astype(float)
        theirs = numpy.array([torchvision_box(random, height, width, percent / 100) for _ in range(count)], float)

        def figures(box):
            left, top, across, down = box.T
            area = across * down / (height * width)
            shape = numpy.log(across / down)
            return {"area": area, "area squared": area ** 2, "shape": shape, "shape squared": shape ** 2,
                    "left": left, "top": top, "left by area": left * area}
        mine, other = figures(ours), figures(theirs)
        for name, values in mine.items():
            error = (values.var() / count + other[name].var() / count) ** 0.5
            expect(f"{name} of {percent}% and more of {height} x {width}", values.mean(), other[name].mean(), 5 * error)


def resampled(samples, old, new):
    """torchaudio's resample (sinc_interp_hann, width 6, rolloff 0.99), in double."""
    common = gcd(old, new)
    old, new = old // common, new // common
    base = min(old, new) * 0.99
    width = int(numpy.ceil(6 * old / base))
    t = (numpy.arange(-width, width + old)[None] / old - numpy.arange(new)[:, None] / new) * base
    t = t.clip(-6, 6)
    kernels = numpy.sinc(t) * numpy.cos(t * numpy.pi / 12) ** 2 * base / old
    padded = numpy.pad(samples.astype(numpy.float64), (width, width + old))
    starts = numpy.arange(0, len(samples), old)
    blocks = numpy.stack([padded[s:s + 2 * width + old] for s in starts])
    return (blocks @ kernels.T).reshape(-1)[:-(-new * len(samples) // old)]


def log_mel(samples):
    """Whisper's log_mel_spectrogram, in double."""
    window = numpy.hanning(401)[:-1]
    padded = numpy.pad(samples.astype(numpy.float64), 200, mode="reflect")
    frames = numpy.stack([padded[i:i + 400] * window for i in range(0, len(samples) - 159, 160)])
    power = numpy.abs(numpy.fft.rfft(frames)) ** 2
    filters = mel_filter_bank(num_frequency_bins=201, num_mel_filters=80, min_frequency=0.0, max_frequency=8000.0,
                              sampling_rate=16000, norm="slaney", mel_scale="slaney")
    level = numpy.log10(numpy.maximum(power @ filters, 1e-10)).T
    return (numpy.maximum(level, level.max() - 8) + 4) / 4


def sounds(folder):
    random = numpy.random.default_rng(2)
    for rate, seconds in ((16000, 1.5), (22050, 1.0), (44100, 0.5), (8000, 1.0), (48000, 0.3)):
        t = numpy.arange(int(rate * seconds)) / rate
        wanted = 0.5 * numpy.sin(2 * numpy.pi * 440 * t) * numpy.exp(-t) + random.normal(0, 0.02, len(t))
        whole = numpy.round(wanted * 32767).astype("<i2")
        path = folder / f"{rate}.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(rate)
            file.writeframes(whole.tobytes())
        samples = whole.astype(numpy.float32) / 32768
        back_rate, back = sound("decode", path)
        if back_rate != rate:
            failures.append(f"{path.name}: {back_rate} samples a second")
        expect(f"decode {path.name}", back, samples, 0)
        expect(f"resample {rate} to 16000", sound("resample", path, 16000)[1],
               samples if rate == 16000 else resampled(samples, rate, 16000), 2e-6)
    count = 32000  # longer than the file: silence follows
    _, samples = sound("decode", folder / "16000.wav")
    padded = numpy.zeros(count, numpy.float32)
    padded[:len(samples)] = samples
    ours = numpy.frombuffer(stage("log_mel", folder / "16000.wav", count), numpy.float32).reshape(80, -1)
    expect("log_mel beside numpy", ours, log_mel(padded), 1e-4)


def whisper(folder):
    """As a model's own extractor gives it, for its 30 s."""
    from transformers import WhisperFeatureExtractor
    _, samples = sound("decode", folder / "16000.wav")
    theirs = WhisperFeatureExtractor()(samples, sampling_rate=16000, return_tensors="np").input_features[0]
    ours = numpy.frombuffer(stage("log_mel", folder / "16000.wav", 480000), numpy.float32).reshape(80, -1)
    expect("log_mel beside transformers", ours, theirs, 1e-3)


with tempfile.TemporaryDirectory() as temporary:
    pictures(Path(temporary))
    crops(Path(temporary))
    boxes(Path(temporary))
    sounds(Path(temporary))
    whisper(Path(temporary))
if failures:
    sys.exit("failed: " + "; ".join(failures))
