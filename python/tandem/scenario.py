"""What a scenario may be given as, turned into what the native half reads. Must not know modules or batches."""
import os
import pathlib

from .flow import flow


def settings_of(overrides, steps, seed):
    """--set's arguments: "path.to.key=value"."""
    all_of = dict(overrides or {})
    if steps is not None:
        all_of["steps"] = steps
    if seed is not None:
        all_of["seed"] = seed
    return [f"{key}={flow(value)}" for key, value in all_of.items()]


def source_of(scenario):
    """A path or a name of scenarios/, a YAML text (of several lines, or a map in braces), or a dict: as path, text and
    the folder that relative paths count from.
    """
    if isinstance(scenario, dict):
        return "", text_of(scenario), os.getcwd()
    if isinstance(scenario, pathlib.Path):
        return str(scenario), "", ""
    if not isinstance(scenario, str):
        raise TypeError(f"scenario: is {type(scenario).__name__}; allowed: a path, a YAML text, a dict, or a torch.nn.Module")
    if "\n" in scenario or scenario.lstrip().startswith("{"):
        return "", scenario, os.getcwd()
    return scenario, "", ""


def text_of(sections):
    """One line of YAML for each section; of a policy and an optimizer the name is enough."""
    sections = {key: {"name": value} if key in ("policy", "optimizer") and isinstance(value, str) else value
                for key, value in sections.items()}
    return "".join(f"{key}: {flow(value)}\n" for key, value in sections.items() if value is not None)
