"""Tandem in Python (docs/python.md).

`simulate`, `plan`, `explain`, `compare_policies` and `sweep` ask the simulator, in processes of its own; `Policy` is what
policies written in Python begin with. They need nothing but Python.
`train` trains a scenario or a PyTorch module in this process, and needs torch. `tandem.importer` writes a module as a
folder that Tandem trains (docs/import.md), and needs torch alone.
"""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import ConfigError, DeviceError, DoesNotFit, PolicyError
    from .simulation import (Explanation, OtherRun, PlannedRun, PlanResult, Policy, PolicyComparison, PolicyRow,
                             SimulationResult, SweepResult, SweepRow, compare_policies, explain, plan, simulate, sweep)
    from .training import Metrics, Result, train

_TRAINING = ("Metrics", "Result", "train")
_ERRORS = ("ConfigError", "DeviceError", "DoesNotFit", "PolicyError")

__all__ = ["ConfigError", "DeviceError", "DoesNotFit", "Explanation", "Metrics", "OtherRun", "PlanResult", "PlannedRun",
           "Policy", "PolicyComparison", "PolicyError", "PolicyRow", "Result", "SimulationResult", "SweepResult",
           "SweepRow", "compare_policies", "explain", "plan", "simulate", "sweep", "train"]


def __getattr__(name: str):
    """What trains is loaded when it is first asked for: all else needs no torch."""
    if name not in __all__:
        raise AttributeError(f"module 'tandem' has no attribute {name!r}")
    if name in _ERRORS:
        from . import errors
        return getattr(errors, name)
    if name in _TRAINING:
        from . import training
        return getattr(training, name)
    from . import simulation
    return getattr(simulation, name)


def __dir__():
    return sorted(__all__)
