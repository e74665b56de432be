"""What a run tells, and what it leaves. Must not know how it was run."""
from dataclasses import dataclass, field

import torch


@dataclass(frozen=True)
class Metrics:
    """Of one training step, once all of it is done."""

    step: int  # counted from 1, from the training's start
    loss: float | None
    step_time_s: float
    learning_rate: float
    tokens_per_s: float | None = None  # where the workload has tokens
    validation_loss: float | None = None  # after an evaluation
    gradient_norm: float | None = None  # before clipping, where the update asks for it
    bytes: dict = field(default_factory=dict)  # that copies brought since the step before, by lane: "h2d", "d2h", ...


class Result:
    """`losses` and `step_times_s`: of each step; `summary`: what `tandem train --json` writes."""

    def __init__(self, metrics, summary, parameters, module=None):
        self.losses = [m.loss for m in metrics]
        self.step_times_s = [m.step_time_s for m in metrics]
        self.summary = summary
        self._parameters, self._module = parameters, module

    def state_dict(self):
        """Of a module: under its own names, for load_state_dict(strict=True). Of a scenario: the parameters in fp32 under
        Tandem's names, "block3.norm.weight".
        """
        if self._module is None:
            return dict(self._parameters)
        state = {name: value.detach() if isinstance(value, torch.Tensor) else value
                 for name, value in self._module.state_dict().items()}
        return state | self._parameters
