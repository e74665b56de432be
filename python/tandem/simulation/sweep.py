"""Many simulations at once, on this machine's cores or wherever an executor runs them."""
from __future__ import annotations

import itertools
import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import programs
from .results import SimulationResult
from .scenarios import Scenario, call_text, file_of, settings_of
from .tables import to_dataframe

if TYPE_CHECKING:
    import pandas

_OUTCOMES = {0: "done", 2: "refused", 3: "does not fit"}


@dataclass(frozen=True)
class SweepRow:
    """One simulation of a sweep."""

    values: dict[str, Any]  # by key; of a list of scenarios {"scenario": its name or number}
    outcome: str  # "done", "does not fit", "refused" (bad input), "failed" (a bug), "excluded" (by a file's condition)
    why_not: str  # "" where it is done
    figures: dict[str, float] = field(repr=False)  # step_s, tokens_per_s, device_bytes, ...; empty where it did not run
    result: SimulationResult | None = field(repr=False, default=None)  # None where it did not run, and of a sweep's file


@dataclass(frozen=True)
class SweepResult:
    """The rows of a sweep, in the order of the scenarios, or of the axes' values: the last axis changes fastest."""

    rows: list[SweepRow]
    # What it was made of: as SimulationResult's. Of a sweep's file the scenario is its base; with axes, and of a list, it
    # is that of the first row that ran. The result of each row has its own.
    origin: dict[str, Any] = field(repr=False, compare=False, default_factory=dict)

    def __iter__(self) -> Iterator[SweepRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def best(self, figure: str = "step_s", most: bool = False) -> SweepRow | None:
        """The row with the least (`most`: the largest) of a figure; None where none is done."""
        done = [row for row in self.rows if row.outcome == "done"]
        return (max if most else min)(done, key=lambda row: row.figures[figure]) if done else None

    def to_dataframe(self) -> pandas.DataFrame:
        """A row for each: the values that vary, outcome, figures (docs/sweep.md), why_not."""
        return to_dataframe({**row.values, "outcome": row.outcome, **row.figures, "why_not": row.why_not}
                            for row in self.rows)


@dataclass(frozen=True)
class _Task:
    """What one process is asked. It may run on another machine, which has Tandem as well: plain values alone."""

    scenario: Any
    settings: tuple[str, ...]


def sweep(scenarios: Scenario | Iterable[Scenario], axes: Mapping[str, Iterable[Any]] | None = None, *,
          where: Callable[[dict[str, Any]], bool] | None = None, executor: Executor | None = None,
          set: Mapping[str, Any] | None = None, seed: int | None = None) -> SweepResult:
    """Simulates many scenarios, and returns a row of each.

    With `axes`, `scenarios` is one scenario, as of simulate(), and all combinations are made of
    {"policy": ["resident", "cotrain"], "workload.batch": [1, 2, 4]}; keys are paths, a policy is a name (with its default
    options) or a dict. `where` says of each combination whether it is wanted: where=lambda v: v["workload.batch"] < 4.
    Without `axes`, `scenarios` is an iterable of scenarios, or the path of a sweep's file (docs/sweep.md), which
    `tandem sweep` carries out.
    `executor`: a concurrent.futures executor, or what has its submit(): ProcessPoolExecutor, Dask's
    Client.get_executor(), mpi4py.futures.MPIPoolExecutor. Its workers need Tandem, and files under the same paths. By
    default as many simulations run at a time as there are cores. Rows do not depend on the executor.
    `set` and `seed` are those of all. Raises ConfigError where no row can have an axis' key or value, or a file is wrong.
    """
    if axes is None and isinstance(scenarios, (str, os.PathLike, dict)):
        if executor is not None or where is not None:
            raise ValueError("executor, where: a sweep's file is run by `tandem sweep`; give a scenario and axes")
        return _sweep_file(scenarios, settings_of(set, seed))
    values, tasks = [], []
    for row, task in _points(scenarios, axes, set, seed):
        if where is None or where(row):
            values.append(row)
            tasks.append(task)
    rows = [_row(of, *answer) for of, answer in zip(values, _answers(tasks, executor))]
    if rows and axes and all(row.outcome == "refused" for row in rows):
        programs.raise_failure(2, "\n".join(dict.fromkeys(f"tandem: {row.why_not}" for row in rows[:8])))
    ran = next((row.result.origin for row in rows if row.result), {})
    return SweepResult(rows, {**ran, "command": call_text("sweep", scenarios, axes=_listed(axes), set=set, seed=seed)} if ran else {})


def _listed(axes: Mapping[str, Iterable[Any]] | None) -> dict[str, list[Any]] | None:
    return axes and {key: list(values) for key, values in axes.items()}


def _points(scenarios, axes, settings, seed) -> Iterator[tuple[dict[str, Any], _Task]]:
    common = dict(settings or {})
    if axes is None:
        for number, scenario in enumerate(scenarios):
            name = number if isinstance(scenario, Mapping) or "\n" in str(scenario) else str(scenario)
            yield {"scenario": name}, _task(scenario, common, seed)
        return
    for values in itertools.product(*map(list, axes.values())):
        row = dict(zip(axes, values))
        yield row, _task(scenarios, {**common, **row}, seed)


def _task(scenario, settings, seed) -> _Task:
    plain = dict(scenario) if isinstance(scenario, Mapping) else os.fspath(scenario)
    return _Task(plain, tuple(settings_of(settings, seed)))


def _answers(tasks: list[_Task], executor: Executor | None) -> list[tuple[int, str, str]]:
    if executor is None:
        with ThreadPoolExecutor(os.cpu_count()) as threads:  # each waits for a process
            return _answers(tasks, threads)
    futures = [executor.submit(_answer, task) for task in tasks]
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _answer(task: _Task) -> tuple[int, str, str]:
    """Exit code, result and errors of a task: plain text, which any executor brings back."""
    with file_of(task.scenario) as file:
        words = [file.path, *task.settings, "--json=-", "--quiet", "--no-trials"]
        code, output, errors = programs.run(words, "tandem-simulate")
        return code, file.in_words_of_the_caller(output), file.in_words_of_the_caller(errors)


def _row(values: dict[str, Any], code: int, output: str, errors: str) -> SweepRow:
    if code == 130:
        raise KeyboardInterrupt
    if code != 0:
        why = " / ".join(line.removeprefix("tandem: ") for line in errors.splitlines() if line.startswith("tandem: "))
        return SweepRow(values, _OUTCOMES.get(code, "failed"), why or errors.strip() or f"exit code {code}", {})
    data = json.loads(output)
    data.pop("simulator", None)  # how long it took is none of the scenario's
    result = SimulationResult.of(data)
    return SweepRow(values, "done", "", result.figures, result)


def _sweep_file(file: str | os.PathLike | dict[str, Any], words: list[str]) -> SweepResult:
    with tempfile.TemporaryDirectory(prefix="tandem-") as folder, file_of(file) as given:
        words = ["sweep", given.path, *words, "--json=-", f"--output={pathlib.Path(folder) / 'rows.sqlite'}"]
        code, output, errors = programs.run(words)
        if not output.strip():
            programs.raise_failure(code, given.in_words_of_the_caller(errors))
        data = json.loads(given.in_words_of_the_caller(output).replace(folder + os.sep, ""))
        return SweepResult([SweepRow(row["values"], row["outcome"], row.get("why_not", ""), row.get("figures", {}))
                            for row in data["rows"]], data.get("origin", {}))
