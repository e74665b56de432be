"""What a scenario may be given as, turned into what programs read: a path and --set arguments."""
from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

from ..flow import flow
from ..scenario import source_of
from .policy import is_policy

Scenario = Union[str, os.PathLike, Mapping[str, Any]]


@dataclass(frozen=True)
class ScenarioFile:
    """The file that stands for a scenario while a program reads it."""

    path: str
    folder: str = ""  # a temporary one

    def in_words_of_the_caller(self, text: str) -> str:
        """What was given is called "scenario", and what lies in the working folder by its name."""
        if not self.folder:
            return text
        return text.replace(self.path, "scenario").replace(self.folder + os.sep, "")


def settings_of(settings: Mapping[str, Any] | None, seed: int | None = None) -> list[str]:
    """--set's and --seed's arguments."""
    words = [f"--set={key}={value_text(key, value)}" for key, value in (settings or {}).items()]
    return words + ([f"--seed={seed}"] if seed is not None else [])


def value_text(key: str, value: Any) -> str:
    """A value as --set takes it; of a policy or an optimizer the name is enough."""
    if is_policy(value):
        raise TypeError(f"{key}: is a tandem.Policy; allowed here: names and dicts; simulate() and compare_policies() take it")
    if key in ("policy", "optimizer") and isinstance(value, str):
        value = {"name": value}
    return flow(dict(value) if isinstance(value, Mapping) else value)


def call_text(function: str, scenario: Any, **arguments: Any) -> str:
    """How a function of the module was called, for people: a dict, a text and a list are called "scenario"."""
    named = isinstance(scenario, os.PathLike) or (isinstance(scenario, str) and "\n" not in scenario)
    words = [repr(os.fspath(scenario)) if named else "scenario"]
    words += [f"{name}={value!r}" for name, value in arguments.items() if value not in (None, {}, ())]
    return f"tandem.{function}({', '.join(words)})"


@contextlib.contextmanager
def file_of(scenario: Scenario) -> Iterator[ScenarioFile]:
    """A path or a name as it is; a dict or a YAML text as a file, whose relative paths count from the working folder."""
    given = scenario if isinstance(scenario, (str, dict)) else dict(scenario) if isinstance(scenario, Mapping) else None
    path, text, _ = source_of(given if given is not None else pathlib.Path(os.fspath(scenario)))
    if path:
        yield ScenarioFile(path)
        return
    with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
        file = pathlib.Path(folder) / "scenario.yaml"
        file.write_text(text, encoding="utf-8")
        for name in os.listdir():  # profiles, models and data that it may name
            if os.path.splitext(name)[0] in text and name != file.name:
                (file.parent / name).symlink_to(pathlib.Path(name).absolute())
        yield ScenarioFile(str(file), folder)
