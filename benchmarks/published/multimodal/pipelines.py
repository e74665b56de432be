"""cedar's input pipelines, from the times of their operators on one core."""
from published import Page, Row, counted, mean_error, ns, percent, simulate, table

# What a sample takes longer where all eight hyper-threads of the four cores work: from PyTorch's loader on SimCLR (calibrated).
THREADS_SLOW_DOWN = 1.79
WORKERS, REMOTE_WORKERS, LINK = 8, 32, "2GB/s"  # n2-standard-8 and n2-standard-32; 16 Gb/s between them
CALIBRATED = ("SimCLR", "PyTorch DataLoader")


def operators(pipeline, reordered=False, place=None):
    """Seconds a sample of the operators that run there, or of all, on one core."""
    chosen = [row for row in table("cedar_operators") if row["pipeline"] == pipeline and place in (None, row["remote_place"])]
    return sum(float(row["ms"]) * (float(row["reordered_share"]) if reordered else 1) for row in chosen) / 1e3


def throughput(decode_s, stays_s, *changes):
    """Samples/s of a pipeline whose items take decode_s where they are sent, and then stays_s on this host."""
    result = simulate("pipeline", f"machine.input_stages.jpeg_decode.item={ns(decode_s)}",
                      f"machine.input_stages.normalise.item={ns(stays_s)}", *changes)
    return 320 / result["steady_step_s"]


def one_core(pipeline):
    return 1e3 / throughput(operators(pipeline), 0, "data.pipeline.workers=1")


def local(pipeline, reordered=False):
    return throughput(THREADS_SLOW_DOWN * operators(pipeline, reordered), 0, f"data.pipeline.workers={WORKERS}")


def remote(pipeline):
    """With cedar's plan: some operators on the remote host, the others on this one."""
    there, here = (THREADS_SLOW_DOWN * operators(pipeline, pipeline != "Common Voice", place) for place in ("remote", "local"))
    return throughput(there, here, f"data.pipeline.workers={WORKERS}", f"data.pipeline.remote_workers={REMOTE_WORKERS}",
                      "data.pipeline.remote_share=1", f"data.pipeline.remote_link={LINK}", "policy={name: fastflow}")


PREDICT = {
    "one core": one_core,
    "8 workers": local,
    "8 workers reordered": lambda pipeline: local(pipeline, reordered=True),
    "with 32 remote vCPUs": remote,
    "reordering": lambda pipeline: local(pipeline, reordered=True) / local(pipeline),
}


def rows():
    return [Row(row["system"], f"{row['pipeline']}, {row['what']}", row["unit"], float(row["value"]), PREDICT[row["what"]](row["pipeline"]),
                (row["pipeline"], row["system"]) == CALIBRATED) for row in table("cedar")]


def answer(found):
    sound = [row for row in counted(found) if not row.what.startswith("Common Voice")]
    return (f"Of pictures (SimCLR, COCO) the operators' times on one core predict a pipeline's time or throughput, local, reordered "
            f"or remote, with a mean error of {percent(mean_error(sound))} over {len(sound)} rows. With sound (Common Voice) the mean "
            f"over all {len(counted(found))} rows is {percent(mean_error(found))}.")


NOTES = """Each row is a simulation of `data.pipeline` whose stages take what cedar's profiles say of the operators on one core.
Where an operator is reordered, its time goes with the bytes that then enter it, as in cedar's own cost model.
With remote workers the operators that cedar's plan sends away run there, and the others stay on the eight local threads:
those bind. One figure is calibrated: what eight threads on four cores take longer, from PyTorch's loader on SimCLR.

Why rows miss: the operators of Common Voice add up to 56 ms a sample where the whole pipeline was measured at 37 ms on the
same core, so all that follows is too slow. PyTorch's loader on it runs at a third of what its eight workers would give (perhaps
because its operators have threads of their own). Reordering gives more here than in cedar's ablation: an operator's time does
not fall in proportion to its input's bytes. Profiles of TensorFlow's and of text pipelines are left out:
their operators' times overlap and add up to 3 to 21 times what was measured."""

PAGE = Page("cedar", "cedar: input pipelines from their operators", 0.10, rows, answer, NOTES)
