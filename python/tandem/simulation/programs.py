"""Finds Tandem's programs, runs one, and turns its exit code into what Python raises. Must not know what is asked."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence

from ..errors import ConfigError, DeviceError, DoesNotFit

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
BUNDLED = PACKAGE / "installed"  # by a wheel: bin, lib, share
_BAD_INPUT, _DOES_NOT_FIT, _INTERRUPTED = 2, 3, 130


def _folders() -> Iterator[pathlib.Path]:
    if build := os.environ.get("TANDEM_BUILD"):
        yield pathlib.Path(build) / "bin"
    if home := os.environ.get("TANDEM_HOME"):
        yield pathlib.Path(home) / "bin"
        yield pathlib.Path(home) / "build" / "bin"
    yield BUNDLED / "bin"
    yield PACKAGE.parents[1] / "build" / "bin"  # of a checkout
    if len(PACKAGE.parents) > 3:
        yield PACKAGE.parents[3] / "bin"  # of an installation: PREFIX/share/tandem/python/tandem
    if on_path := shutil.which("tandem"):
        yield pathlib.Path(on_path).resolve().parent


def program(name: str = "tandem") -> str:
    """Path of one of Tandem's programs. Raises FileNotFoundError where none is there."""
    for folder in _folders():
        if os.access(path := folder / name, os.X_OK):
            return str(path)
    raise FileNotFoundError(f"{name} is in none of {', '.join(map(str, _folders()))}, nor on the PATH; `make simulator` "
                            "builds it in a checkout, whose path TANDEM_HOME can name")


def home() -> pathlib.Path:
    """The folder that holds hardware_profiles, models and scenarios, as the programs look for it."""
    above = pathlib.Path(program("tandem-simulate")).parent.parent
    for folder in (os.environ.get("TANDEM_HOME"), above / "share" / "tandem", above.parent, PACKAGE.parents[1]):
        if folder and (pathlib.Path(folder) / "hardware_profiles").is_dir():
            return pathlib.Path(folder)
    return above.parent


def _text(errors: str, kind: str) -> list[str]:
    """What was told after "KIND: ", with the lines that go on from there."""
    lines, wanted = [], False
    for line in errors.splitlines():
        begins = line.startswith(("tandem: ", "warning: ", "tandem "))
        wanted = line.startswith(kind + ": ") if begins else wanted
        if wanted:
            lines.append(line.removeprefix(kind + ": "))
    return lines


def warnings_in(errors: str) -> list[str]:
    """What is odd but allowed, of what a program wrote to standard error."""
    return _text(errors, "warning")


def raise_failure(code: int, errors: str) -> None:
    """Raises what an exit code stands for, with the program's own words."""
    text = "\n".join(_text(errors, "tandem")) or errors.strip()
    if code == _BAD_INPUT:
        raise ConfigError(text)
    if code == _DOES_NOT_FIT:
        raise DoesNotFit(text)
    if code in (_INTERRUPTED, _INTERRUPTED - 256):
        raise KeyboardInterrupt(text)
    raise DeviceError(text or f"ended by signal {-code}" if code < 0 else text)


def run(arguments: Sequence[str], name: str = "tandem") -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a program. It ends with the caller's wait, however that ends."""
    child = subprocess.Popen([program(name), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
    try:
        output, errors = child.communicate()
    except BaseException:
        child.terminate()
        child.wait()
        raise
    return child.returncode, output, errors


def main() -> None:
    """The command `tandem` of a wheel: becomes the program that it brought."""
    path = str(BUNDLED / "bin" / "tandem")
    os.execv(path, [path, *sys.argv[1:]])
