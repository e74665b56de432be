"""The simulator from Python: questions go to Tandem's programs, policies to the native half, each in a process of its own."""
from .commands import compare_policies, explain, plan, simulate
from .policy import Policy
from .results import Explanation, OtherRun, PlannedRun, PlanResult, PolicyComparison, PolicyRow, SimulationResult
from .sweep import SweepResult, SweepRow, sweep

__all__ = ["Explanation", "OtherRun", "PlanResult", "PlannedRun", "Policy", "PolicyComparison", "PolicyRow",
           "SimulationResult", "SweepResult", "SweepRow", "compare_policies", "explain", "plan", "simulate", "sweep"]
