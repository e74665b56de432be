"""Products that run the optimizer on the CPU: a share of it, or all of it."""
from published import Page, Row, mean_error, percent, simulate, table

CALIBRATED = {("hybrid optimizer", "0", "step"), ("hybrid optimizer", "100", "step"), ("hybrid optimizer", "0", "device memory"),
              ("ZeRO-3 offload", "8", "step")}


def run(system, key):
    if system == "hybrid optimizer":
        return simulate("hybrid_optimizer", f"policy.device_percent={100 - int(key.split()[0])}")
    return simulate("zero_3_offload", f"workload.batch={key}", f"workload.loss_tiles={int(key) // 2}")


def predicted(row):
    result = run(row["system"], row["key"])
    if row["metric"] == "step":
        return result["steady_step_s"]
    return result["peak_bytes"]["device0" if row["metric"] == "device memory" else "host"] / 1e9


def case(row):
    share, *flags = row["key"].split()
    return f"{share}% on the CPU{''.join(f', {flag}' for flag in flags)}" if row["system"] == "hybrid optimizer" else f"{share} sequences"


def rows():
        return [Row(row["system"], f"{case(row)}, {row['metric']}", row["unit"], float(row["value"]), predicted(row),
                (row["system"], row["key"], row["metric"]) in CALIBRATED) for row in table("optimizers")]


def answer(found):
    def of(system, metric):
        return [row for row in found if row.system == system and row.what.endswith(metric)]

    return (f"Megatron-Core's hybrid optimizer, 25% and more on the CPU: steps with a mean error of "
            f"{percent(mean_error([row for row in found if row.system == 'hybrid optimizer' and row.unit == 's']))}, device memory {percent(mean_error(of('hybrid optimizer', 'memory')))}. DeepSpeed ZeRO-3 offload of Llama 3.1 8B at 16 and 32 "
            f"sequences: {percent(mean_error(of('ZeRO-3 offload', 'step')))}; its host memory is {percent(mean_error(of('ZeRO-3 offload', 'host memory')))} off.")


NOTES = """Policies: split_update for Megatron-Core, zero_infinity (variant deepspeed) for ZeRO-3. Calibrated: the device's step and memory
with nothing on the CPU, the CPU's rate with all on it; for ZeRO-3 the CPU's rate, as its CPU is not named.

Why rows miss: split_update updates on both sides at once, and the next forward begins when the first layers are updated, where
Megatron-Core waits for all: at a quarter on the CPU most is hidden. Its copies are always overlapped, so that the row with
`overlap_cpu_optimizer_d2h_h2d` is predicted as the one without.
What leaves the device is 8 bytes a parameter in Megatron-Core, two moments; split_update moves the fp32 copy too.
ZeRO-3's simulated host memory is what the run's tensors hold, 16 bytes a parameter. Published are 22: pinned buffers that PyTorch
rounds up to powers of two, and what else the process has, are not simulated."""

PAGE = Page("optimizer_on_cpu", "The optimizer on the CPU: Megatron-Core and DeepSpeed", 0.10, rows, answer, NOTES)
