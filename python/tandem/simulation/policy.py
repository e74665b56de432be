"""What a policy written in Python begins with. Must not know the native half: policies are written without it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .views import Decisions, Tensor, View

COMPUTE_AHEAD = 4  # commands kept queued on the compute lane, as the policies that come with Tandem do


class Policy:
    """Decides what runs or moves where, and in what order, in a simulation: simulate(scenario, policy=Mine()).

    The scheduler checks each decision, brings what an op lacks, and makes room by evicting, so that a policy can be slow
    but not wrong. The same views must give the same decisions. With several devices each rank has a copy of its own;
    what the first one's attributes are at the end, the object that was given has afterwards.
    docs/python.md has an example, and the tables of what `view` and `decisions` have.
    """

    may_evict: bool = True  # False: what does not fit at once ends the run with DoesNotFit

    def home(self, view: View, tensor: Tensor) -> str:
        """The tier that keeps a tensor that lives from step to step: "device", "host" or "disk". Asked once each."""
        return "host"

    def decide(self, view: View, decisions: Decisions) -> None:
        """Called after each batch of events. Must issue something whenever nothing is in flight and the run goes on."""
        raise NotImplementedError(f"{type(self).__name__} has no decide(view, decisions)")

    @staticmethod
    def feed_compute(view: View, decisions: Decisions, ahead: int = COMPUTE_AHEAD) -> bool:
        """Issues the next ops of the compute program until `ahead` commands are queued on its lanes. True if it stopped
        because the next op waits for an optimizer step that is not issued, or because the program is over.
        """
        while view.computing() < ahead:
            program = view.compute_program(1)
            if not program or decisions.run(program[0]) != "issued":
                return True
        return False


def is_policy(given: Any) -> bool:
    """An object of a policy's class, or the class."""
    return isinstance(given, Policy) or (isinstance(given, type) and issubclass(given, Policy))
