"""GPT training with Megatron-DeepSpeed on A100s, step by step: 714 steps of one host, 58 of several, published with vTrain. The machine's
efficiencies are taken from a tenth of the rows, which a hash chooses; the others are held out.
"""
import concurrent.futures
import hashlib
import os
import statistics

import fit
import published
from published import Row

FOLDER = "../parallel"
MACHINE = published.HERE / FOLDER / "megatron_deepspeed_a100.yaml"
TOLERANCE = {"single": 0.06, "multi": 0.10}
HOSTS = {"single": "one host", "multi": "several hosts"}
FITTED_SHARE = 0.1
# Where a fit begins, and what no figure can exceed, or fall short of. Times in us, rates in GB/s.
START = {"gemm_1g": 0.8, "gemm_100g": 0.8, "memory_4m": 0.4, "memory_1g": 0.6, "forward": 1200, "backward": 2200, "part_forward": 150,
         "part_backward": 450, "head_memory": 1.6, "collective": 240, "collective_latency": 40, "network": 20, "network_latency": 10}
MOST = {"gemm_1g": 0.9, "gemm_100g": 0.9, "memory_4m": 0.9, "memory_1g": 0.9, "network": 25}
LEAST = {"collective_latency": 5, "network_latency": 5}
HEAD = """# A100s under Megatron-DeepSpeed. What is calibrated here is so on a tenth of the steps that vTrain's authors published
# (tables/megatron_deepspeed_*.csv), by `scripts/published_parallel.py --fit`, which writes this file. All else is
# selene_a100's, from specifications.
name: megatron_deepspeed_a100
derive_from: selene_a100
"""
RUNS = ("forward", "forward_light", "recompute", "backward")


def table(kind):
    """Rows in the order of a hash of what was asked, without the answer: the first tenth is fitted."""
    def by_hash(row):
        return hashlib.sha256(",".join(value for key, value in row.items() if key != "step_time_ms").encode()).hexdigest()
    return sorted(published.table(f"../{FOLDER}/tables/megatron_deepspeed_{kind}"), key=by_hash)


def fitted_rows(kind):
    rows = table(kind)
    return rows[:int(FITTED_SHARE * len(rows))]


def changes(row, kind):
    data, micro_batch = int(row["data_parallelism"]), int(row["micro_batch"])
    keys = {"workload.heads": row["attention_heads"], "workload.hidden": row["hidden_size"], "workload.layers": row["layers"],
            "workload.sequence": row["sequence_length"], "workload.batch": micro_batch,
            "workload.micro_batches": int(row["global_batch"]) // (data * micro_batch), "parallel.data": data,
            "parallel.tensor": row["tensor_parallelism"], "parallel.pipeline": row["pipeline_parallelism"],
            "workload.recompute": "none" if kind == "single" else "block", "machine.tiers.device.capacity": "400GiB"}
    return [f"{key}={value}" for key, value in keys.items()]


def steps_ms(rows, kind, more=()):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda row: published.simulate(f"{FOLDER}/megatron_deepspeed", *changes(row, kind), *more), rows)
        return [1e3 * result["steady_step_s"] for result in results]


def errors(rows, predicted):
    return [ms / float(row["step_time_ms"]) - 1 for row, ms in zip(rows, predicted)]


def machine_keys(f):
    """The figures as keys of a machine, with their values as YAML has them."""
    def us(name):
        return f"{{value: {f[name]:.2f}us, source: SOURCE}}"

    def rate(name):
        return f"{{value: {f[name]:.2f}GB/s, source: SOURCE}}"
    bodies = [f"{{body: gpt.{module}.{run}, op: {{value: 15us, source: SOURCE}}, dispatch: {us(prefix + ('backward' if run == 'backward' else 'forward'))}}}"
              for module, prefix in (("block", ""), ("block_part", "part_")) for run in RUNS]
    bodies += [f"{{body: gpt.{module}.{run}, op: {{value: 15us, source: SOURCE}}, memory: {{value: {f['head_memory']:.3f}, source: SOURCE}}}}"
               for module in ("head", "head_part") for run in RUNS]
    keys = {"compute.efficiency.gemm": f"{{value: [[10MFLOP, 0.03], [1GFLOP, {f['gemm_1g']:.4f}], [100GFLOP, {f['gemm_100g']:.4f}]], source: SOURCE}}",
            "compute.efficiency.memory": f"{{value: [[64KiB, 0.03], [4MiB, {f['memory_4m']:.4f}], [1GiB, {f['memory_1g']:.4f}]], source: SOURCE}}",
            "compute.bodies": f"[{', '.join(bodies)}]",
            "collective": f"{{bandwidth: {rate('collective')}, latency: {us('collective_latency')}}}",
            "network": f"{{bandwidth: {rate('network')}, latency: {us('network_latency')}}}"}
    return {key: value.replace("SOURCE", '"calibrated: see this file\'s first lines"') for key, value in keys.items()}


def write_machine(figures):
    """The file that scenarios read: a tree of the keys."""
    tree = {}
    for key, value in machine_keys(figures).items():
        *rooms, last = key.split(".")
        at = tree
        for room in rooms:
            at = at.setdefault(room, {})
        at[last] = value

    def lines(node, indent):
        for key, value in node.items():
            if isinstance(value, dict):
                yield f"{indent}{key}:"
                yield from lines(value, indent + "  ")
            else:
                yield f"{indent}{key}: {value}"
    MACHINE.write_text(HEAD + "\n".join(lines(tree, "")) + "\n", encoding="utf-8")


def fit_machine():
    """Writes the machine's figures, from the fitted rows alone, those of one host and of several by equal halves."""
    def loss(figures):
        more = [f"machine.{key}={value}" for key, value in machine_keys(figures).items()]
        return statistics.mean(statistics.mean(map(abs, errors(rows, steps_ms(rows, kind, more)))) for kind, rows in of_kind.items())
    of_kind = {kind: fitted_rows(kind) for kind in HOSTS}
    write_machine(fit.fitted(loss, START, MOST, LEAST, on_round=lambda text: print(text, flush=True)))


def rows(of_each=None):
    """All, or so many of one host and of several, with those that the machine's figures are from marked."""
    all_rows = []
    for kind in HOSTS:
        of_table, fitted = table(kind)[:of_each], len(fitted_rows(kind))
        for place, (row, ms) in enumerate(zip(of_table, steps_ms(of_table, kind))):
            size = f"{row['layers']} layers of {row['hidden_size']}, {row['global_batch']} samples by {row['micro_batch']}"
            degrees = f"tensor {row['tensor_parallelism']}, data {row['data_parallelism']}, pipeline {row['pipeline_parallelism']}"
            all_rows.append(Row(HOSTS[kind], f"{size}: {degrees}", "ms a step", float(row["step_time_ms"]), ms,
                                calibrated=place < fitted))
    return all_rows


NOTES = """One machine holds for all rows: [megatron_deepspeed_a100](../../benchmarks/published/parallel/megatron_deepspeed_a100.yaml). A tenth
of the rows, 71 of one host and 5 of several, say how fast products and element-wise kernels are. They say how much slower the loss's are,
which Megatron-LM computes in fp32, kernel by kernel. They also say what a host takes to launch a block's kernels, and the rates of all-reduces
and of the network. A hash of what a row asks for chooses them. All else is from specifications.
vTrain, whose authors measured the steps, predicts them with mean errors of 8.4% and 14.7% (MICRO 2024).

The tables do not say what is recomputed. On one host nothing is: else networks of width 2,048 would compute at 61% of the peak, more than
Megatron-LM reports of far wider ones. On several hosts blocks are, as the largest networks do not fit without. Attention is unfused. Times are judged, not memory.

Stages have equal numbers of layers, and the last one the logits besides (`cut: layers`), as Megatron-LM cuts.

Why rows miss, most likely. Where ranks divide layers, an op takes what its kernels or their launches take, whichever is more; there, launches run ahead
from one op to the next. Where both are near each other, as with 2 ranks and 4 samples, that is up to a quarter too slow. The 17 rows of
8 ranks and one sample have two heads a rank. Megatron-LM's fused softmax wants heads times samples to be a multiple of 4: those rows
launch several kernels in its place, and no fitted row is one of them."""
