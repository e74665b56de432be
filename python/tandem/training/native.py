"""Finds and loads the native half that `make build` makes. Must not know what it is used for."""
import importlib.machinery
import importlib.util
import os
import pathlib
import sys

import torch  # before the native half, which is linked to its libraries

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
HOME = PACKAGE.parents[1]  # a checkout, or share/tandem of an installation
MODULES = {"cpu": "_tandem", "cuda": "_tandem_cuda"}
_loaded = {}


def _folders():
    if build := os.environ.get("TANDEM_BUILD"):
        yield pathlib.Path(build) / "python"
    yield PACKAGE  # installed
    yield HOME / "build" / "python"


def _file(name):
    for folder in _folders():
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            if (path := folder / (name + suffix)).is_file():
                return path
    raise ImportError(f"{name} is not built for Python {sys.version.split()[0]}: it is in none of "
                      f"{', '.join(map(str, _folders()))}; `make build` builds it where Python's headers and nanobind are")


def is_loaded(device):
    return device in _loaded


def load(device):
    """The native module for "cpu" or "cuda". Raises ImportError where it is not built, or for another torch."""
    if device not in MODULES:
        raise ValueError(f"device: is {device!r}; allowed: {', '.join(MODULES)}")
    if device not in _loaded:
        os.environ.setdefault("TANDEM_HOME", str(HOME))  # where machines and scenarios lie, as the program is Python
        path = _file(MODULES[device])
        spec = importlib.util.spec_from_file_location(MODULES[device], path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if torch.__version__.partition("+")[0] != module.torch_version:
            raise ImportError(f"{path} is built for torch {module.torch_version}, and this is {torch.__version__}")
        _loaded[device] = module
    return _loaded[device]
