"""`tandem.train`: what is given, turned into a run, served, and its outcome."""
import itertools
import json
import tempfile
import threading
import warnings
from dataclasses import dataclass

import torch

from . import native
from .batches import Batches
from .loop import serve
from .module import ImportedModule
from .result import Result
from ..scenario import settings_of, source_of, text_of

MOST_STEPS = 1_000_000  # of a training that ends with its batches
_RUNNING = threading.Lock()  # the process has one LibTorch, which a run sets up for itself


@dataclass
class _How:
    device: str
    settings: list  # of --set
    resume: str


def train(scenario, batches=None, on_step=None, *, device="cpu", steps=None, seed=None, overrides=None, resume="",
          split=None, update=True, **sections):
    """Trains, and returns a Result (docs/python.md).

    `scenario`: a path, a YAML text, a dict, or a torch.nn.Module, whose scenario is then made of `sections` (machine=...,
    limits=..., policy=..., optimizer=..., workload={"micro_batches": 2}, ...). Of others, sections replace the scenario's.
    `batches`: an iterable, whose items are the batches of training steps: tensors by name, or tuples of them in order. They
    are taken ahead of their steps, and may not change until their step is reported. None: the scenario's own data.
    `on_step`: called with the Metrics of each step; where it returns False, the steps under way are the last.
    `steps`: at most so many; by default the scenario's, of a module as many as there are batches.
    `overrides`: {"optimizer.learning_rate": 1e-4}; `resume`: a directory of checkpoints; `split`: as of `tandem import`.
    `update`: a module's parameters are those that were trained, afterwards.
    Raises ValueError (ConfigError, where it is the scenario), DoesNotFit, DeviceError, and what `batches` and `on_step` do.
    """
    if steps is None and batches is not None and _names_no_steps(scenario, sections):
        steps = max(len(batches), 1) if hasattr(batches, "__len__") else MOST_STEPS
    how = _How(device, settings_of(overrides, steps, seed), str(resume))
    if not _RUNNING.acquire(blocking=False):
        raise RuntimeError("a run goes on in this process; allowed: one at a time")
    try:
        if isinstance(scenario, torch.nn.Module):
            return _train_module(scenario, batches, on_step, how, sections, split, update)
        return _train_scenario(scenario, batches, on_step, how, sections)
    finally:
        _RUNNING.release()


def _names_no_steps(scenario, sections):
    """Of files and texts the native half knows."""
    named = sections if isinstance(scenario, torch.nn.Module) else {**scenario, **sections} if isinstance(scenario, dict) else None
    return named is not None and "steps" not in named


def _train_scenario(scenario, batches, on_step, how, sections):
    if isinstance(scenario, dict):
        scenario, sections = {**scenario, **sections}, {}
    path, text, directory = source_of(scenario)
    how.settings[:0] = settings_of(sections, None, None)
    run = _begin(how, path, text, directory, batches is not None)
    if batches is None:
        return Result(*_outcome(run, None, None, on_step))
    return Result(*_outcome(run, iter(batches), Batches(run.batch, run.samples, run.micro_batches).lay_out, on_step))


def _train_module(module, batches, on_step, how, sections, split, update):
    if batches is None:
        raise TypeError("batches: a module is trained on batches that are given; allowed: an iterable")
    if "machine" not in sections:
        raise TypeError('machine: a module is trained for a machine; allowed: machine="rtx_4090", or another of '
                        "`tandem list machines`, a path, or a dict")
    items = iter(batches)
    first = next(items, None)
    if first is None:
        raise ValueError("batches: there are none; allowed: one for each training step")
    with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
        imported = ImportedModule(module, first, folder, dict(sections.get("workload", {})), split)
        run = _begin(how, "", text_of({**sections, "workload": imported.workload}), "", True)
        unread = imported.given - {name for name, *_ in run.batch}
        lay_out = Batches(run.batch, run.samples, run.micro_batches, imported.names or None, unread).lay_out
        metrics, summary, parameters = _outcome(run, itertools.chain([first], items), lay_out, on_step)
        trained = imported.state_of(parameters)
    if update:
        imported.update(trained)
    return Result(metrics, summary, trained, module)


def _begin(how, path, text, directory, batches_given):
    if how.device == "cuda" and not native.is_loaded("cuda") and torch.cuda.is_initialized():
        raise RuntimeError("device: this process has used CUDA, whose memory the run must give out from the start; allowed: "
                           "train before that, or in a process of its own")
    return native.load(how.device).Run(path=path, text=text, directory=directory, settings=how.settings, device=how.device,
                                       resume=how.resume, batches_given=batches_given)


def _outcome(run, items, lay_out, on_step):
    """Metrics, summary and parameters."""
    metrics = serve(run, items, lay_out, on_step)
    summary = json.loads(run.result())
    for text in run.warnings:
        warnings.warn(text, stacklevel=4)
    return metrics, summary, run.parameters()
