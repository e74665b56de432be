"""Questions to the simulator, one function a command. Each runs Tandem's own program in a process of its own."""
from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import native, programs
from .policy import Policy, is_policy
from .results import Explanation, PlanResult, PolicyComparison, PolicyRow, SimulationResult
from .scenarios import Scenario, ScenarioFile, file_of, settings_of, value_text

_DOES_NOT_FIT = 3


def simulate(scenario: Scenario, *, set: Mapping[str, Any] | None = None, seed: int | None = None,
             policy: str | Mapping[str, Any] | Policy | type[Policy] | None = None, fidelity: str = "shared",
             trace: str | os.PathLike | None = None, report: str | os.PathLike | None = None,
             log: str | os.PathLike | None = None) -> SimulationResult:
    """Predicts a run, as `tandem simulate` does.

    `scenario`: a path, a name of `tandem list scenarios`, a YAML text, or a dict with the same keys.
    `set`: keys that differ, by their paths: {"workload.batch": 4, "limits.device_bytes": "8GiB"}.
    `policy`: instead of the scenario's: a name, {"name": "cotrain", "separation": 4}, or a tandem.Policy of your own.
    `fidelity`: "shared" (all traffic shares memory) or "alone" (copies share the bus only).
    `trace`, `report`, `log`: files to write, for ui.perfetto.dev, a browser, and `tandem replay`; no log of your own policy.
    Raises ConfigError, DoesNotFit, DeviceError; of a policy of your own PolicyError, and what it raises itself.
    """
    own = is_policy(policy)
    changes = {**(set or {})} if own or policy is None else {**(set or {}), "policy": policy}
    if own:
        return native.simulate(scenario, changes, seed, policy, fidelity, {"trace": trace, "report": report, "log": log})
    files = [f"--{name}={os.fspath(path)}" for name, path in (("trace", trace), ("report", report), ("log", log)) if path]
    with file_of(scenario) as file:
        data, warnings = _ask("simulate", file, [*settings_of(changes, seed), f"--fidelity={fidelity}", *files])
    return SimulationResult.of(data, warnings)


def plan(scenario: Scenario | None = None, *, model: str | os.PathLike | None = None,
         machine: str | os.PathLike | None = None, host_memory: str | None = None, device_memory: str | None = None,
         disk: str | None = None, devices: int | None = None, most_devices: int | None = None, batch: int | None = None,
         exact: bool = False, free: Iterable[str] = (), price: str | float | None = None, time_budget: str | None = None,
         set: Mapping[str, Any] | None = None, seed: int | None = None) -> PlanResult:
    """Whether a model trains on a machine, how fast, and how: as `tandem plan` (docs/planning.md).

    `model` and `machine` are names (`tandem list models`, `machines`) or files; or `scenario`, as of simulate(), says what
    is fixed. Memory as text with a unit ("64GB"; disk="0B": none). `batch`: samples of a training step. `free`: keys of
    the scenario that are searched nevertheless. `price`: of a device an hour. `time_budget`: "60s"; by default a fixed
    amount of work, about 8 s of a core.
    Where nothing fits, `fits` is False and `verdict` says what is lacking. Raises ConfigError, DeviceError.
    """
    flags = {"model": model, "machine": machine, "host-memory": host_memory, "device-memory": device_memory, "disk": disk,
             "devices": devices, "most-devices": most_devices, "batch": batch, "free": ",".join(free) or None,
             "price": price, "time-budget": time_budget}
    words = [f"--{name}={value}" for name, value in flags.items() if value is not None] + (["--exact"] if exact else [])
    words += settings_of(set, seed)
    if scenario is None:
        return PlanResult.of(_ask("plan", None, words, refused_too=True)[0])
    with file_of(scenario) as file:
        return PlanResult.of(_ask("plan", file, words, refused_too=True)[0])


def explain(scenario: Scenario, *, policies: Sequence[str] | None = None, set: Mapping[str, Any] | None = None,
            seed: int | None = None) -> Explanation:
    """Why a scenario's steps take as long as they do, and what would shorten them: as `tandem explain` (docs/explain.md).

    `scenario`: as of simulate(), or the log of a run. `policies`: the others to ask for; by default all.
    Raises ConfigError, DoesNotFit, DeviceError.
    """
    words = settings_of(set, seed) + ([f"--policies={','.join(policies)}"] if policies else [])
    with file_of(scenario) as file:
        return Explanation.of(*_ask("explain", file, words))


def compare_policies(scenario: Scenario, *, policies: Sequence[str | Policy | type[Policy]] | None = None,
                     over: Mapping[str, Iterable[Any]] | None = None, largest: Mapping[str, range] | None = None,
                     set: Mapping[str, Any] | None = None, seed: int | None = None) -> PolicyComparison:
    """Simulates a scenario with every policy: as `tandem compare-policies`.

    `policies`: names, and policies of your own; by default all that come with Tandem. `over`: {"workload.batch": [1, 4]}, one
    key with its values. `largest`: {"workload.batch": range(1, 65)}, a key whose largest number that fits is looked for.
    What a policy cannot run is a row that says why. Raises ConfigError, DeviceError.
    """
    names = [one for one in policies or () if isinstance(one, str)]
    own = [one for one in policies or () if not isinstance(one, str)]
    if own and (over or largest):
        raise ValueError("policies: of your own go without `over` and `largest`; allowed: names")
    comparison = PolicyComparison([])
    if names or not own:
        words = settings_of(set, seed) + ([f"--policies={','.join(names)}"] if names else [])
        words += [f"--over={_one(key, over)}={','.join(value_text(key, v) for v in values)}"
                  for key, values in (over or {}).items()]
        words += [f"--largest={_one(key, largest)}={numbers[0]}..{numbers[-1]}" for key, numbers in (largest or {}).items()]
        with file_of(scenario) as file:
            data, warnings = _ask("compare-policies", file, words, refused_too=True)
        comparison = PolicyComparison([PolicyRow.of(row) for row in data["policies"]], data.get("over", ""),
                                      data.get("largest_of", ""), warnings, data.get("origin", {}))
    for one in own:
        comparison.rows.append(native.row(scenario, one, set, seed))
        if comparison.rows[-1].result:
            comparison.origin.update({**comparison.rows[-1].result.origin, **comparison.origin})
    if own:
        comparison.rows.sort(key=lambda row: row.result.step_time_s if row.result else float("inf"))
    return comparison


def _one(key: str, mapping: Mapping[str, Any]) -> str:
    if len(mapping) > 1:
        raise ValueError(f"over, largest: name {len(mapping)} keys; allowed: one, as {{{key!r}: ...}}; sweep() takes several")
    return key


def _ask(command: str, file: ScenarioFile | None, words: list[str], refused_too: bool = False) -> tuple[dict, list[str]]:
    """The JSON that a command prints, and its warnings. `refused_too`: its answer may be that nothing fits."""
    code, output, errors = programs.run([command, *([file.path] if file else []), *words, "--json=-"])
    if file:
        output, errors = file.in_words_of_the_caller(output), file.in_words_of_the_caller(errors)
    if code != 0 and not (refused_too and output.strip()):
        programs.raise_failure(code, errors)
    return json.loads(output), programs.warnings_in(errors)
