#!/usr/bin/env python3
"""What a GPU's power limit makes of its clock: kernels without a pause, with the clock and the power drawn beside their times.

    benchmarks/live/power_limit.py                      all series of four seconds each: a minute and a half
    benchmarks/live/power_limit.py --only gemm mixed    those whose names begin so; --seconds 1.5; --json FILE

Needs PyTorch on a GPU and the driver's libnvidia-ml. Changes no setting of the GPU. Prints for each series, after a rest: the
milliseconds of a call at first (the clock is the full one), how many times as long it takes in each fifth of a second (at most 20 are
shown) and in the mean after 1.5 s, and in the same time the clock in MHz and the power drawn over the limit.
"""
import argparse, ctypes, json, statistics, threading, time


class Nvml:
    """The driver's own meter; clock and energy change ten times a second."""

    def __init__(self):
        self.lib, self.gpu = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        self.check(self.lib.nvmlInit_v2())
        self.check(self.lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.gpu)))

    @staticmethod
    def check(code):
        if code != 0:
            raise SystemExit(f"libnvidia-ml answers with error {code}: is there a GPU, and does the driver let it be read?")

    def read(self, function, *arguments, kind=ctypes.c_uint):
        value = kind()
        self.check(getattr(self.lib, function)(self.gpu, *arguments, ctypes.byref(value)))
        return value.value

    def clock_mhz(self):
        return self.read("nvmlDeviceGetClockInfo", 1)  # 1: of the multiprocessors

    def energy_j(self):
        return self.read("nvmlDeviceGetTotalEnergyConsumption", kind=ctypes.c_ulonglong) / 1000

    def limit_w(self):
        return self.read("nvmlDeviceGetEnforcedPowerLimit") / 1000


class Sampler(threading.Thread):
    def __init__(self, nvml):
        super().__init__(daemon=True)
        self.nvml, self.rows, self.on = nvml, [], True

    def run(self):
        while self.on:
            self.rows.append((time.time(), self.nvml.clock_mhz(), self.nvml.energy_j()))
            time.sleep(0.01)

    def stop(self):
        self.on = False
        self.join()
        return self.rows


def watts(rows):
    """Between the first and the last change of the energy's counter."""
    changes = [b for a, b in zip(rows, rows[1:]) if a[2] != b[2]]
    return (changes[-1][2] - changes[0][2]) / (changes[-1][0] - changes[0][0]) if len(changes) > 1 else float("nan")


def series(torch, nvml, call, seconds, pause=0.0, round_ms=8):
    """Rounds of calls without a pause (or with one of so many seconds between rounds), timed by events."""
    events = lambda: [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    call()
    torch.cuda.synchronize()
    start, end = events()
    start.record()
    for _ in range(3):
        call()
    end.record()
    torch.cuda.synchronize()
    calls = max(1, int(round_ms / (start.elapsed_time(end) / 3)))
    time.sleep(0.7)
    sampler, rounds, waiting, begun = Sampler(nvml), [], [], time.time()
    sampler.start()
    while time.time() - begun < seconds:
        start, end = events()
        start.record()
        for _ in range(calls):
            call()
        end.record()
        waiting.append((start, end))
        if len(waiting) > 1 or pause:  # the GPU always has a round ahead
            start, end = waiting.pop(0)
            end.synchronize()
            rounds.append((time.time() - begun, start.elapsed_time(end) / calls))
            time.sleep(pause)
    rows = [row for row in sampler.stop() if row[0] - begun > 0.375 * seconds]
    first = min(ms for _, ms in rounds[:3])
    late = [ms for at, ms in rounds if at > 0.375 * seconds]
    fifths = {}
    for at, ms in rounds:
        fifths.setdefault(int(at / 0.2), []).append(ms / first)
    return {"first_ms": first, "fifths": [statistics.mean(f) for _, f in sorted(fifths.items())],
            "mean": statistics.mean(late) / first, "clock_mhz": statistics.mean(row[1] for row in rows),
            "of_limit": watts(rows) / nvml.limit_w()}


def kernels(torch):
    """Name: call, and the pause between its rounds."""
    f, bf16 = torch.nn.functional, {"device": "cuda", "dtype": torch.bfloat16}
    fp32 = {"device": "cuda", "dtype": torch.float32}
    random = lambda *sizes, kind=bf16: torch.randn(*sizes, **kind)

    def gemm(m, n, k):
        left, right, out = random(m, k), random(k, n), torch.empty(m, n, **bf16)
        return lambda: torch.mm(left, right, out=out)

    def addition(elements):
        a, b, out = random(elements), random(elements), torch.empty(elements, **bf16)
        return lambda: torch.add(a, b, out=out)

    def in_turns(one, ones, other, others):
        def call():
            for _ in range(ones):
                one()
            for _ in range(others):
                other()
        return call

    query, activations = random(1, 16, 8192, 128), random(8192, 8192)
    parameter = torch.nn.Parameter(random(1 << 27, kind=fp32))
    parameter.grad = random(1 << 27, kind=fp32)
    adam = torch.optim.Adam([parameter], fused=True)
    large, middle, narrow, short = gemm(8192, 8192, 8192), gemm(8192, 6656, 1664), gemm(8192, 2048, 2048), addition(1 << 26)
    return {"gemm 8192 x 8192 x 8192": (large, 0), "gemm 8192 x 6656 x 1664": (middle, 0), "gemm 8192 x 2048 x 2048": (narrow, 0),
            "gemm 8192 x 8192 x 8192, with pauses": (large, 0.016), "addition": (short, 0), "adam": (adam.step, 0),
            "gelu": (lambda: f.gelu(activations, approximate="tanh"), 0),
            "attention, 16 heads of 128, 8192 tokens": (lambda: f.scaled_dot_product_attention(query, query, query), 0),
            "mixed: a middle product, an addition": (in_turns(middle, 1, short, 1), 0),
            "mixed: a middle product, three additions": (in_turns(middle, 1, short, 3), 0),
            "mixed: four narrow products, an addition": (in_turns(narrow, 4, short, 1), 0),
            "mixed: a large product, 14 additions": (in_turns(large, 1, short, 14), 0),
            "mixed: 5 ms of large products, 5 ms of additions": (in_turns(large, 4, short, 53), 0)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", nargs="+", default=[""])
    p.add_argument("--seconds", type=float, default=4.0)
    p.add_argument("--json")
    a = p.parse_args()
    import torch
    if not torch.cuda.is_available():
        raise SystemExit("PyTorch sees no GPU")
    torch.manual_seed(0)
    nvml, results = Nvml(), {}
    print(f"{torch.cuda.get_device_name()}, limit {nvml.limit_w():.0f} W", flush=True)
    for name, (call, pause) in kernels(torch).items():
        if not any(name.startswith(only) for only in a.only):
            continue
        r = results[name] = series(torch, nvml, call, a.seconds, pause)
        print(f"{name}: {r['first_ms']:.4f} ms, then x {' '.join(f'{x:.2f}' for x in r['fifths'][:20])}; "
              f"mean x {r['mean']:.3f} at {r['clock_mhz']:.0f} MHz, {r['of_limit']:.2f} of the limit", flush=True)
    if a.json:
        with open(a.json, "w") as out:
            json.dump(results, out, indent=1)


if __name__ == "__main__":
    main()
