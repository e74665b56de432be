"""Megatron-LM with sequence parallelism and selective recompute: Korthikanti et al., 2022, table 5."""
from published import Row, simulate

FOLDER = "../parallel"
# Billions, layers, width, heads, stages, pieces a stage, samples of a micro-batch, micro-batches, whether all is recomputed, s a step.
TABLE = ((22, 48, 6144, 64, 1, 1, 4, 1, True, 1.42), (22, 48, 6144, 64, 1, 1, 4, 1, False, 1.10), (175, 96, 12288, 96, 8, 3, 1, 64, False, 13.75),
         (530, 105, 20480, 128, 35, 3, 1, 280, False, 37.83), (1000, 128, 25600, 160, 64, 1, 1, 512, False, 71.49))
NOTES = """Megatron-LM a year after its first table (Korthikanti et al., 2022, table 5), on one copy of 8 to 512 A100s: 8 ranks divide each layer,
and with sequence parallelism the tokens between. The machine is [selene_a100](../../hardware_profiles/selene_a100.yaml), as for
Megatron-LM's [own table](megatron.md). No figure was taken from these rows.

Why rows miss: the rows without full recompute do recompute attention's scores there, with their softmax and dropout. That is up to 2%
of a step's flops, and more of its time, the narrower the network the more. Here nothing is recomputed: no mode does that by itself."""


def row(billions, layers, hidden, heads, pipeline, chunks, batch, micro_batches, recompute, published):
    changes = {"workload.layers": layers, "workload.hidden": hidden, "workload.heads": heads, "workload.batch": batch,
               "workload.micro_batches": micro_batches, "workload.recompute": "block" if recompute else "none", "parallel.pipeline": pipeline,
               "parallel.chunks": chunks, "parallel.schedule": "interleaved" if chunks > 1 else "1f1b",
               "parallel.sequence_kind": "ulysses" if recompute else "megatron"}
    step_s = simulate(f"{FOLDER}/megatron_sequence", *[f"{key}={value}" for key, value in changes.items()])["steady_step_s"]
    how = "blocks recomputed" if recompute else "tokens divided, scores recomputed"
    return Row("Megatron-LM", f"{billions} billion parameters, {8 * pipeline} GPUs: {how}", "s a step", published, step_s)


def rows(quick=False):
    return [row(*of_table) for of_table in (TABLE[:2] if quick else TABLE)]
