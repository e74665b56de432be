#!/usr/bin/env python3
"""What scripts/check_wheel.py refuses: a wheel that is made up here is right, and wrong after each of these mistakes. (The
real one is made and checked by scripts/wheel.sh, a step of CI.)
"""
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
sys.path.insert(0, str(SOURCE / "scripts"))

import check_wheel  # noqa: E402

TEXT = "Permission is hereby granted, free of charge, to any person. " * 5
LIBRARIES, TEXTS = "tandem_offload.libs", "tandem_offload-0.1.0.dist-info/licenses"
failures = []


def library(folder, name, *needs):
    """A shared library with nothing in it, under its own name, linked with others."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-shared", "-nostdlib", "-Wl,--no-as-needed", f"-Wl,-soname,{name}", "-x", "c", "/dev/null", "-x", "none",
                    "-o", folder / name, *needs], check=True)
    return folder / name


def made_up(root):
    """A wheel's folder in which all is right; and its program, which needs the one library."""
    fmt = library(root / LIBRARIES, "libfmt-0123abcd.so.9.1.0")
    library(root / "tandem" / "installed" / "bin", "tandem", fmt)
    texts = root / TEXTS
    texts.mkdir(parents=True)
    for name in ("libfmt", *check_wheel.listed()[1]):
        (texts / f"{name}.txt").write_text(TEXT)


def boost_from_outside(root):
    outside = library(root.parent / "outside", "libboost_context.so.1.74.0")
    library(root / "tandem" / "installed" / "bin", "tandem-simulate", outside)


def unknown(root):
    library(root / LIBRARIES, "libgsl-0123abcd.so.27.0.0")


def forbidden(root):
    library(root / LIBRARIES, "libavcodec-0123abcd.so.59.37")
    (root / TEXTS / "libavcodec.txt").write_text(TEXT)


def without_source(root):
    library(root / LIBRARIES, "libsimgrid-0123abcd.so.3.32")
    (root / TEXTS / "libsimgrid.txt").write_text(TEXT)


MISTAKES = (
    ("a library from outside", boost_from_outside, "tandem-simulate needs libboost_context.so.1.74.0, which is neither"),
    ("a library that no table names", unknown, "libgsl is under a licence that linked_libraries.md does not name"),
    ("a licence that is not allowed", forbidden, "libavcodec is under GPL-2.0-or-later"),
    ("no text", lambda root: (root / TEXTS / "libfmt.txt").unlink(), "libfmt has no text"),
    ("an empty text", lambda root: (root / TEXTS / "libfmt.txt").write_text("MIT\n"), "libfmt has no text"),
    ("no text of what is compiled in", lambda root: (root / TEXTS / "nanobind.txt").unlink(), "nanobind has no text"),
    ("LGPL without its source", without_source, "libsimgrid's licence does not say where its source is"),
)


def told(check, root):
    problems = []
    check(root, problems)
    return problems


def main():
    with tempfile.TemporaryDirectory() as name:
        for number, (what, mistake, words) in enumerate((("nothing wrong", lambda root: None, None), *MISTAKES)):
            root = pathlib.Path(name) / str(number) / "wheel"
            made_up(root)
            mistake(root)
            problems = told(check_wheel.check_contents, root)
            if not (problems and words in problems[0] if words else not problems):
                failures.append(f"{what}: {problems}")
        # Nobody told the loader of this program where its library is.
        venv = pathlib.Path(name) / "venv"
        made_up(venv / "lib")
        problems = told(check_wheel.check_loading, venv)
        if problems != ["tandem loads libfmt-0123abcd.so.9.1.0 from not found"]:
            failures.append(f"a library that is not found: {problems}")
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    print(f"wheel_contents: {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
