#!/usr/bin/env bash
# On macOS and Windows everything that people begin with refuses, in one and the same line that says what works.
set -uo pipefail
cd "${TANDEM_SOURCE:?}" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
works='Tandem works on Linux (x86-64, aarch64): a Linux machine, a container, or WSL2 on Windows'
failures=0

# refuses SYSTEM COMMAND...: it fails, and prints that one line, whatever its frame.
refuses() {
  local system=$1
  shift
  "$@" >"$work/out" 2>&1
  local code=$?
  if [ "$code" = 0 ] || ! grep -qF -- "$system is not supported. $works" "$work/out" || [ "$(grep -c . "$work/out")" -gt "${LINES_AROUND:-1}" ]; then
    echo "FAILED: $*: exit code $code, and it printed:"
    head -n 20 "$work/out"
    failures=$((failures + 1))
  fi
}

unset MAKEFLAGS MAKELEVEL MFLAGS  # `make test` runs this, and a make within another says more
mkdir "$work/bin"
for system in Darwin MINGW64_NT-10.0 FreeBSD; do
  printf '#!/bin/sh\necho %s\n' "$system" >"$work/bin/uname"
  chmod +x "$work/bin/uname"
  for target in build setup simulator install test; do refuses "$system" env PATH="$work/bin:$PATH" make "$target"; done
  for script in setup download uninstall; do refuses "$system" env PATH="$work/bin:$PATH" "scripts/$script.sh" "$work/folder"; done
done
# CMake says where its message is from, and that it ends.
for system in Darwin Windows; do
  LINES_AROUND=4 refuses "$system" cmake -S . -B "$work/build-$system" -DCMAKE_SYSTEM_NAME="$system"
done
# pip asks scikit-build-core, which goes by this table. Where it is installed, it is asked itself.
"$TANDEM_SOURCE/.venv/bin/python" - "$works" <<'PYTHON' || failures=$((failures + 1))
import re
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    rules = tomllib.load(file)["tool"]["scikit-build"]["overrides"]
refusing = [rule for rule in rules if rule.get("fail")]
for platform, refused in (("darwin", True), ("win32", True), ("cygwin", True), ("linux", False)):
    found = [rule for rule in refusing if re.search(rule["if"]["platform-system"], platform)]
    if bool(found) != refused or not all(sys.argv[1] in rule["messages"]["after-failure"] for rule in found):
        sys.exit(f"FAILED: pyproject.toml: {platform}: {found}")
try:
    from scikit_build_core.build import build_wheel
except ImportError:
    sys.exit(print("setup_systems: no scikit-build-core here: its answer is not tried"))
sys.platform = "darwin"
try:
    build_wheel("/nowhere")
except SystemExit as end:
    sys.exit(0 if end.code else "FAILED: pip does not refuse macOS")
PYTHON

[ "$failures" = 0 ] || { echo "setup_systems: $failures failures"; exit 1; }
echo "setup_systems: all refuse in one line"
