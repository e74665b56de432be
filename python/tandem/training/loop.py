"""Serves a run: gives it batches, tells of its steps. All of it on the caller's thread. Must not know scenarios."""
from .result import Metrics

PATIENCE_MS = 50  # then Python looks for signals


def serve(run, batches, lay_out, on_step):
    """Until the run is over. Returns the metrics of all steps. What `batches` and `on_step` raise ends the run, and is
    raised once it has ended; so does Ctrl-C.
    """
    metrics = []
    try:
        while True:
            need, value = run.next(PATIENCE_MS)
            if need == "over":
                return metrics
            if need == "batch":
                _give(run, batches, lay_out)
            if need == "report":
                metrics.append(Metrics(**value))
                if on_step is not None and on_step(metrics[-1]) is False:
                    run.end_at_border()
    except BaseException:
        _drain(run)
        raise


def _give(run, batches, lay_out):
    try:
        item = next(batches)
    except StopIteration:
        run.end_of_batches()
        return
    run.give(*lay_out(item))


def _drain(run):
    """What is in flight ends first. A second Ctrl-C ends a run that would save."""
    run.interrupt()
    while True:
        try:
            if run.next(PATIENCE_MS)[0] == "over":
                return
        except KeyboardInterrupt:
            run.interrupt()
