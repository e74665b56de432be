"""Megatron-LM's weak scaling on 32 to 3,072 A100s: tensor, pipeline and data parallel together."""
import published
from published import Row, simulate

FOLDER = "../parallel"
TOLERANCE = 0.08
# Samples of a micro-batch, of which the paper's table says none: what keeps a rank of a small model busy; one in pipelines.
MICRO_BATCH = {1: 8, 2: 8, 4: 8, 8: 4}
SEQUENCE, VOCABULARY = 2048, 51200


def table():
    return published.table(f"../{FOLDER}/tables/megatron")


def sizes(row):
    return {key: int(row[key]) for key in ("heads", "hidden", "layers", "tensor", "pipeline", "gpus", "batch")}


def schedule(s):
    """Interleaved, as the paper says (section 5.1), not with how many pieces: as few as divide a stage's layers."""
    if s["pipeline"] == 1:
        return ()
    of_stage = s["layers"] // s["pipeline"]
    return ("parallel.schedule=interleaved", f"parallel.chunks={next(c for c in range(2, of_stage + 1) if of_stage % c == 0)}")


def step_s(s):
    data = s["gpus"] // (s["tensor"] * s["pipeline"])
    micro_batch = MICRO_BATCH[s["tensor"]] if s["pipeline"] == 1 else 1
    changes = {"workload.heads": s["heads"], "workload.hidden": s["hidden"], "workload.layers": s["layers"], "workload.batch": micro_batch,
               "workload.micro_batches": s["batch"] // (data * micro_batch), "parallel.data": data, "parallel.tensor": s["tensor"],
               "parallel.pipeline": s["pipeline"], "machine.tiers.device.capacity": "100GiB"}
    return simulate(f"{FOLDER}/megatron", *[f"{key}={value}" for key, value in changes.items()], *schedule(s))["steady_step_s"]


def flops(s):
    """Of a step, with recompute, as the paper counts them (section 5.1, equation 3)."""
    of_token = 96 * s["layers"] * s["hidden"] ** 2
    return s["batch"] * SEQUENCE * of_token * (1 + SEQUENCE / (6 * s["hidden"]) + VOCABULARY / (16 * s["layers"] * s["hidden"]))


def row(of_table):
    s = sizes(of_table)
    what = f"{of_table['billions']} billion parameters, {s['gpus']} GPUs: tensor {s['tensor']}, pipeline {s['pipeline']}"
    return Row("Megatron-LM", what, "TFLOPS a GPU", float(of_table["tflops"]), flops(s) / step_s(s) / s["gpus"] / 1e12)


NOTES = """Each layer is divided within a host; stages and copies are on hosts of their own. Blocks are recomputed, attention is unfused. One rank
of each stage is simulated for all that are like it (`parallel.fold`). The machine is
[selene_a100](../../hardware_profiles/selene_a100.yaml), from specifications.

The paper's table names no sizes of micro-batches, nor how many pieces a stage has. One rule holds for all rows. A micro-batch has 1 sample
in pipelines, else 8, and 4 where 8 ranks divide a layer. A stage has as few pieces as divide its layers, more than one.

Times are judged, not memory: all rows are simulated with 100 GiB a GPU, as the largest lacks 307 bytes in a row of the 78.7 GiB that
the driver leaves.

Why rows miss: the small models' element-wise kernels take longer on that software than at 88% of the memory's rate. The large ones'
products reach more than the 80% of the peak that the machine's profile grants to all. There, what stages send is divided among the ranks of
a layer; here each rank sends all."""
