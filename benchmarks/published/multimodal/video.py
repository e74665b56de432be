"""torchcodec: is a video decoded faster on the CPU or on the GPU?"""
import math
import random

from published import Page, Row, counted, ns, simulate, table

CORES, ENGINES, AT_ONCE = 22, 5, 10  # of the machine; videos that are decoded at the same time
# Calibrated: the CPU's decoding and the GPU's on ten frames of each of 50 videos of 1080p and 10 s, and what the CPU
# takes to hand a frame out, one after the other, on the first 100 frames of that video.
CPU_PS_A_PIXEL, CPU_PS_A_PIXEL_OUT, GPU_S_A_FRAME = 11_060, 2_620, 1.906e-3
CALIBRATED = {("1080p 10 s", "uniform", 50), ("1080p 10 s", "first 100", 1)}
WANTED, DRAWS = 10, 200


def decoded(frames, between_keys, task):
    """Frames that are decoded of a video: from the last key frame, or on from the frame before, whichever is nearer."""
    def of(places):
        last, count = -1, 0
        for place in sorted(places):
            count += place - max(last, place - place % between_keys - 1)
            last = place
        return count

    if task == "first 100":
        return 100
    if task == "uniform":
        return of(i * frames // WANTED for i in range(WANTED))
    draw = random.Random(0)
    return round(sum(of(draw.sample(range(frames), WANTED)) for _ in range(DRAWS)) / DRAWS)


def seconds(frames, workers, frame_s, out_s):
    """Simulated seconds to decode so many frames, an item each, and to hand out those wanted (seconds for each item)."""
    items = workers * 32
    result = simulate("pipeline", f"data.pipeline.workers={workers}", f"workload.batch={items}",
                      f"machine.input_stages.jpeg_decode.item={ns(frame_s)}", f"machine.input_stages.normalise.item={ns(out_s)}")
    return result["steady_step_s"] * frames / items


def cpu(row, frames):
    pixels, videos = int(row["pixels"]), int(row["videos"])
    wanted = 100 if row["task"] == "first 100" else WANTED
    in_turn = CORES / min(videos, AT_ONCE)  # a video's frames are handed out by one thread, decoded by all
    out_s = CPU_PS_A_PIXEL_OUT * 1e-12 * pixels * wanted / frames * in_turn
    return seconds(frames * videos, CORES, CPU_PS_A_PIXEL * 1e-12 * pixels, out_s)


def gpu(row, frames):
    videos = int(row["videos"])
    return seconds(frames * videos, min(videos, ENGINES), GPU_S_A_FRAME, 0)


def rows():
    out = []
    for row in table("torchcodec"):
        frames = decoded(int(row["frames"]), int(row["between_keys"]), row["task"])
        what = f"{row['video']}, {row['task']}{', 50 videos' if row['videos'] == '50' else ''}"
        found = {"CPU": cpu(row, frames), "GPU": gpu(row, frames)}
        published = {"CPU": float(row["cpu_s"]), "GPU": float(row["cuda_s"])}
        key = (row["video"], row["task"], int(row["videos"]))
        for place in found:
            calibrated = key in CALIBRATED and (place == "CPU" or key[2] == 50)
            out.append(Row(f"torchcodec on the {place}", what, "s", published[place], found[place], calibrated))
        out.append(Row("faster place", what, "", min(published, key=published.get), min(found, key=found.get), key[2] == 50 and key in CALIBRATED))
    return sorted(out, key=lambda row: (row.system != "faster place", row.system))


def answer(found):
    places = [row for row in counted(found) if row.system == "faster place"]
    right = sum(row.published == row.predicted for row in places)
    ratios = [max(row.predicted / row.published, row.published / row.predicted) for row in found
              if row.error is not None and not row.calibrated]
    return (f"The faster of CPU and GPU is right in {right} of {len(places)} cases, beside the one that both rates are from. The times themselves are rough: "
            f"of {len(ratios)}, half are within a factor of {sorted(ratios)[math.ceil(len(ratios) / 2) - 1]:.2f}, the worst is off by {max(ratios):.1f} times.")


NOTES = """An item of the simulated pipeline is a decoded frame. On the CPU its time goes with its pixels, on 22 threads; on the GPU
five engines take the same for a frame of any size. Frames that are decoded but not wanted follow from the distance of key frames.
Three rates are calibrated, each on one row: the CPU's, the GPU's, and what the CPU takes to hand a frame out, one after the other.

Why rows miss: a frame's time on the CPU depends on what it shows and on how often the decoder must seek, which a rate by pixels does
not know. With 50 videos a frame of the NASA clip takes a third of what is predicted, one of the long synthetic clip 1.7 times it. What
opening a video takes on the GPU, 0.1 to 0.7 s, is not in the model. No placement turns on either; the closest call is the first 100
frames of the NASA clip, where the predictions differ by less than a fifth."""

PAGE = Page("torchcodec", "torchcodec: where to decode video", 0.10, rows, answer, NOTES)
