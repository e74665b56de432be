"""A simulation under a policy that is written in Python, in a forked process: there is one SimGrid engine a process, and a
scheduler that finds a bug ends it. Must not know what the policy does.
"""
from __future__ import annotations

import copy
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import pickle
import signal
import sys
import tempfile
import traceback
import warnings as python_warnings
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ConfigError, DoesNotFit, PolicyError
from ..scenario import source_of
from . import programs
from .policy import Policy
from .results import PolicyRow, SimulationResult
from .scenarios import Scenario, call_text, settings_of

_MODULE = "_tandem_sim"


class _InTheProcess(Exception):
    """Where an exception came from, in the process that ended: its traceback there."""

    def __str__(self) -> str:
        return "\n" + self.args[0]


def _folders() -> Iterator[pathlib.Path]:
    if build := os.environ.get("TANDEM_BUILD"):
        yield pathlib.Path(build) / "python"
    yield programs.PACKAGE  # installed
    yield programs.BUNDLED / "share" / "tandem" / "python" / "tandem"
    yield programs.PACKAGE.parents[1] / "build" / "python"


def load() -> Any:
    """The native module. Raises ImportError where it is not built."""
    for folder in _folders():
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            if (path := folder / (_MODULE + suffix)).is_file():
                spec = importlib.util.spec_from_file_location(_MODULE, path)
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    raise ImportError(f"{_MODULE} is not built for Python {sys.version.split()[0]}: it is in none of "
                      f"{', '.join(map(str, _folders()))}; `make build` builds it where Python's headers and nanobind are")


def simulate(scenario: Scenario, settings: Mapping[str, Any], seed: int | None, policy: Policy | type[Policy], fidelity: str,
             files: Mapping[str, Any]) -> SimulationResult:
    """As commands.simulate(), under a policy of the caller's."""
    if files.get("log"):
        raise ValueError("log: a log is replayed by the policy that made it, which Tandem lacks; allowed: trace, report")
    instance = policy() if isinstance(policy, type) else policy
    given = dict(scenario) if isinstance(scenario, Mapping) else scenario
    path, text, folder = source_of(given if isinstance(given, (str, dict)) else pathlib.Path(os.fspath(given)))
    how = {"path": path, "text": text, "directory": folder or ".", "fidelity": fidelity, "name": type(instance).__name__,
           "settings": [word.partition("=")[2] for word in settings_of({**settings, **({} if seed is None else {"seed": seed})})],
           "trace": os.fspath(files.get("trace") or ""), "report": os.fspath(files.get("report") or ""),
           "command": call_text("simulate", scenario, policy=type(instance).__name__, set=settings, seed=seed, fidelity=fidelity)}
    output, told, state = _in_a_process(how, instance)
    vars(instance).update(state)
    return SimulationResult.of(json.loads(output), told)


def row(scenario: Scenario, policy: Policy | type[Policy], settings: Mapping[str, Any] | None,
        seed: int | None) -> PolicyRow:
    """The line of a comparison. What the policy does wrong is raised."""
    name = (policy if isinstance(policy, type) else type(policy)).__name__
    try:
        return PolicyRow(name, "", None, "", simulate(scenario, settings or {}, seed, policy, "shared", {}))
    except (ConfigError, DoesNotFit) as error:
        return PolicyRow(name, "", None, str(error).partition("\n")[0], None)


def _in_a_process(how: dict[str, Any], policy: Policy) -> tuple[str, list[str], dict[str, Any]]:
    """What _perform() returns, or raises."""
    program_home = str(programs.home())
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as errors:
        with python_warnings.catch_warnings():
            python_warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child only computes and ends
            child = os.fork()
        if child == 0:
            _child(how, policy, program_home, reader, writer, errors.fileno())
        os.close(writer)
        try:
            with os.fdopen(reader, "rb") as pipe:
                answer = pipe.read()
            _, status = os.waitpid(child, 0)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        errors.seek(0)
        written = errors.read().decode(errors="replace")
    if not answer:
        raise PolicyError(_bug(written) or f"the simulation ended with exit code {os.waitstatus_to_exitcode(status)}")
    sys.stderr.write(written)  # what the policy printed there
    ended, value, where = pickle.loads(answer)
    if ended == "raised":
        raise value from _InTheProcess(where)
    return value


def _bug(written: str) -> str:
    """What a check of the scheduler's says: "FILE:LINE: bug: CHECK(CONDITION) failed: WHAT"."""
    for line in reversed(written.splitlines()):
        if ": bug: CHECK(" in line:
            condition, _, what = line.partition(": bug: CHECK(")[2].partition(") failed")
            words = what.removeprefix(": ").strip()
            return words if condition == "false" and words else f"{words} (not so: {condition})" if words else condition
    return written.strip()


def _child(how, policy, program_home, reader, writer, errors) -> None:
    """The forked process, from which nothing returns."""
    code = 1
    try:
        os.close(reader)
        os.dup2(errors, 2)
        os.environ["TANDEM_HOME"] = program_home
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(line_buffering=True)  # what a policy prints is there if the process is ended
        try:
            answer = ("returned", _perform(how, policy), "")
        except BaseException as error:  # Ctrl-C, too: the parent has its own
            answer = _raised(error)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(pickle.dumps(answer))
        code = 0
    finally:
        os._exit(code)


def _raised(error: BaseException) -> tuple[str, BaseException, str]:
    """An exception as it can be brought back: itself where it can be pickled, else a PolicyError that says the same."""
    where = "".join(traceback.format_exception(error))
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return "raised", error.with_traceback(None), where
    except Exception:  # whatever a class of the caller's does when it is made anew
        pass
    return "raised", PolicyError(f"{type(error).__name__}: {error}"), where


def _perform(how: dict[str, Any], policy: Policy) -> tuple[str, list[str], dict[str, Any]]:
    """Result as JSON, warnings, and the attributes of the first rank's policy, where they can be brought back."""
    output, told = load().simulate(make=lambda rank: policy if rank == 0 else copy.deepcopy(policy), **how)
    return output, told, {name: value for name, value in vars(policy).items() if _comes_back(value)}


def _comes_back(value: Any) -> bool:
    """What cannot be pickled, such as a view or a lambda, stays behind."""
    try:
        pickle.dumps(value)
        return True
    except Exception:  # whatever a class of the caller's raises
        return False
