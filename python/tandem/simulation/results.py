"""What questions to the simulator are answered with. Each has all that the program printed in `data`, and a table."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .tables import figures_of, to_dataframe

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class SimulationResult:
    """A simulated run. Times are in seconds, sizes in bytes; "a step" is the mean over the timed steps."""

    scenario: str  # its path; "scenario" of a dict or a text
    machine: str
    policy: str
    steps: int
    step_time_s: float  # the median
    step_times_s: list[float]  # of each step but the first, whose begin is not known
    makespan_s: float  # from the start to the end of the run, with loading
    tokens_per_s: float  # over all devices; 0 where the workload has no tokens
    samples_per_s: float
    model_flop_use: float  # MFU, 0 to 1; 0 where the peak is not known
    peak_bytes: dict[str, int]  # device0, ..., host_pinned, host, disk
    bytes_a_step: dict[str, float]  # by lane: "device0/h2d"
    busy_share: dict[str, float]  # by lane, 0 to 1
    exposed_s: dict[str, float]  # a step: the compute lane waits, by what ran while it waited
    lower_bound_s: dict[str, float]  # a step, whatever the policy: by resource, and overall
    limited_by: str  # "compute", or what the device waits for longest
    data: dict[str, Any] = field(repr=False)  # docs/result.schema.json
    warnings: list[str] = field(default_factory=list)  # what is odd in the scenario, but allowed

    @classmethod
    def of(cls, data: dict[str, Any], warnings: list[str] | None = None) -> SimulationResult:
        """From what `tandem simulate --json` writes."""
        step, rates = data["step_time_s"], data["throughput"]
        return cls(data["scenario"], data["machine"], data["policy"], data["steps"], step["median"], step["all"],
                   data["makespan_s"], rates["tokens_per_s"], rates["samples_per_s"], data["model_flop_use"],
                   data["peak_bytes"], data["bytes_a_step"], data["busy_share"], data["exposed_s"], data["lower_bound_s"],
                   data["limited_by"]["cause"], data, warnings or [])

    @property
    def origin(self) -> dict[str, Any]:
        """What it was made of, as in the JSON of `tandem simulate`: version, command, scenario (with all that was set),
        machine {name, provenance, profile}."""
        return self.data.get("origin", {})

    @property
    def figures(self) -> dict[str, float]:
        """The columns of a sweep's table: step_s, tokens_per_s, device_bytes, gpu_idle_share, ..."""
        return figures_of(self.data)

    @property
    def critical_path(self) -> list[dict[str, Any]]:
        """What a step's critical path consists of, the largest first: cause, what, seconds."""
        return self.data.get("critical_path", [])

    def to_dataframe(self) -> pandas.DataFrame:
        """One row: scenario, machine, policy and figures."""
        return to_dataframe([{"scenario": self.scenario, "machine": self.machine, "policy": self.policy, **self.figures}])


@dataclass(frozen=True)
class PlannedRun:
    """One answer of a plan."""

    words: str  # "protrain, bf16, recompute, batch 8"
    settings: list[str]  # "path.to.key=value", which make it of the question
    exact: bool  # computes just what plain training does
    step_time_s: float | None
    tokens_per_s: float | None
    samples_per_s: float | None
    peak_bytes: dict[str, int]  # by memory
    capacity_bytes: dict[str, int]
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, data: dict[str, Any]) -> PlannedRun:
        memory = data["memory"]
        return cls(data["words"], data["settings"], data["exact"], data.get("step_time_s"), data.get("tokens_per_s"),
                   data.get("samples_per_s"), {name: m["peak_bytes"] for name, m in memory.items()},
                   {name: m["capacity_bytes"] for name, m in memory.items()}, data)


@dataclass(frozen=True)
class PlanResult:
    """Whether a model trains on a machine, how fast, and how."""

    fits: bool
    verdict: str  # a sentence
    best: list[PlannedRun]  # the fastest first; empty where nothing fits
    exact: PlannedRun | None  # the fastest that computes just what plain training does, where the best does not
    scenario: str  # the best one as a YAML text, which simulate() and train() take; "" where nothing fits
    candidates: dict[str, int]  # how many there were, were simulated, were ruled out by what
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, data: dict[str, Any]) -> PlanResult:
        exact = PlannedRun.of(data["exact"]) if "exact" in data else None
        return cls(data["fits"], data["verdict"], [PlannedRun.of(one) for one in data["best"]], exact, data["scenario"],
                   data["candidates"], data)

    @property
    def origin(self) -> dict[str, Any]:
        """What it was made of: as SimulationResult's; `scenario` is what was asked, without what was searched."""
        return self.data.get("origin", {})

    def to_dataframe(self) -> pandas.DataFrame:
        """A row for each of `best`."""
        return to_dataframe({"words": one.words, "exact": one.exact, "step_s": one.step_time_s,
                             "tokens_per_s": one.tokens_per_s, "samples_per_s": one.samples_per_s,
                             **{f"{name}_bytes": count for name, count in one.peak_bytes.items()}} for one in self.best)


@dataclass(frozen=True)
class OtherRun:
    """The scenario with one thing changed: more of a resource, or another policy."""

    name: str  # "cpu_flops"; "protrain"
    words: str  # "CPU speed"; of a policy its name
    step_time_s: float | None  # None: it does not run
    saves_s: float | None  # a step; negative: it is slower
    saves_share: float | None
    why_not: str = ""
    approximate: bool = False  # training under that policy gives other losses

    @classmethod
    def of(cls, data: dict[str, Any]) -> OtherRun:
        name = data.get("resource") or data["policy"]
        return cls(name, data.get("words", name), data.get("step_s"), data.get("saves_s"), data.get("saves_share"),
                   data.get("why_not", ""), data.get("approximate", False))


@dataclass(frozen=True)
class Explanation:
    """Why a step takes as long as it does, and what would shorten it."""

    sentence: str
    limited_by: str  # "compute", or what the device waits for longest
    worth_most: str | None  # the resource of which 10% more saves most; None: none saves half a per cent
    better_policy: str | None  # the fastest that trains the same and is faster
    resources: list[OtherRun]  # with 10% more of each
    policies: list[OtherRun]
    run: SimulationResult  # what is explained
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, data: dict[str, Any], warnings: list[str]) -> Explanation:
        return cls(data["sentence"], data["limited_by"]["cause"], data["worth_most"], data["better_policy"],
                   [OtherRun.of(one) for one in data["resources"]], [OtherRun.of(one) for one in data["policies"]],
                   SimulationResult.of(data["run"], warnings), data)

    @property
    def origin(self) -> dict[str, Any]:
        """What it was made of: as SimulationResult's."""
        return self.data.get("origin", {})

    def to_dataframe(self) -> pandas.DataFrame:
        """A row for each thing that was changed: kind ("resource" or "policy"), name, step_s, saves_s, saves_share."""
        return to_dataframe({"kind": kind, "name": one.name, "step_s": one.step_time_s, "saves_s": one.saves_s,
                             "saves_share": one.saves_share, "why_not": one.why_not}
                            for kind, others in (("resource", self.resources), ("policy", self.policies)) for one in others)


@dataclass(frozen=True)
class PolicyRow:
    """A policy on a scenario."""

    policy: str
    value: str  # of the key that varies; ""
    largest: int | None  # of the key whose largest value was looked for
    why_not: str  # "" where it ran
    result: SimulationResult | None = field(repr=False)

    @classmethod
    def of(cls, data: dict[str, Any]) -> PolicyRow:
        result = SimulationResult.of(data["result"]) if "result" in data else None
        return cls(data["policy"], data.get("value", ""), data.get("largest"), data.get("why_not", ""), result)


@dataclass(frozen=True)
class PolicyComparison:
    """Policies on one scenario, the fastest first, or, with `over`, value after value."""

    rows: list[PolicyRow]
    over: str = ""
    largest_of: str = ""
    warnings: list[str] = field(default_factory=list)
    # What it was made of: as SimulationResult's; the scenario is the one that was given.
    origin: dict[str, Any] = field(repr=False, compare=False, default_factory=dict)

    @property
    def best(self) -> PolicyRow | None:
        """The row of the shortest step; None: none ran."""
        ran = [row for row in self.rows if row.result]
        return min(ran, key=lambda row: row.result.step_time_s) if ran else None

    def __getitem__(self, policy: str) -> PolicyRow:
        """The first row of a policy. Raises KeyError."""
        for row in self.rows:
            if row.policy == policy:
                return row
        raise KeyError(policy)

    def __iter__(self) -> Iterator[PolicyRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dataframe(self) -> pandas.DataFrame:
        """A row for each policy (and value): figures, or why it does not run."""
        return to_dataframe(_policy_cells(row, self) for row in self.rows)


def _policy_cells(row: PolicyRow, comparison: PolicyComparison) -> Mapping[str, Any]:
    varied: dict[str, Any] = {comparison.over: row.value} if comparison.over else {}
    if comparison.largest_of:
        varied[f"largest {comparison.largest_of}"] = row.largest
    return {"policy": row.policy, **varied, **(row.result.figures if row.result else {}), "why_not": row.why_not}
