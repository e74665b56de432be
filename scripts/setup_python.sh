#!/usr/bin/env bash
# Makes .venv with the packages of requirements.txt (torch carries LibTorch), or with those of requirements-sim.txt alone
# where SIM_ONLY=1. Quick where it stands already: a stamp tells that the last install finished for this very list, and
# the installed versions are compared with the pins.
source "$(dirname "$0")/common.sh"
source "$ROOT/scripts/offline.sh"
STEP="installing Python packages"
VENV=$ROOT/.venv
LIST=$ROOT/requirements.txt
NEEDED_KIB=$((9 * 1024 * 1024))  # torch 2.11.0 with its CUDA libraries: 4.7 GB, and as much again while it unpacks
WHAT="LibTorch: several GB, a minute on a fast network"
if [ "${SIM_ONLY:-0}" = 1 ]; then
  LIST=$ROOT/requirements-sim.txt
  NEEDED_KIB=$((256 * 1024))
  WHAT="without LibTorch"
fi
STAMP=$VENV/.tandem-$(basename "$LIST")
LOG=${TMPDIR:-/tmp}/tandem-setup-python.$UID.log

list_hash() { cat "$LIST" "$ROOT/requirements-sim.txt" | sha256sum | cut -d' ' -f1; }

# Prints each pin that is not installed in the version asked for; fails where there is one, or no working Python.
wrong_pins() {
  "$VENV/bin/python" - "$LIST" "$ROOT/requirements-sim.txt" <<'PYTHON'
import importlib.metadata as metadata
import sys

wrong = 0
lines = {line for path in sys.argv[1:] for line in open(path, encoding="utf-8")}
for line in sorted(lines):
    pin = line.split("#")[0].strip()
    if "==" not in pin:
        continue
    name, _, version = pin.partition("==")
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        found = "nothing"
    if found != version and not found.startswith(version + "+"):
        print(f"{pin} (found {found})")
        wrong = 1
sys.exit(wrong)
PYTHON
}

if [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$(list_hash)" ] && wrong_pins >/dev/null 2>&1; then exit 0; fi

: >"$LOG"
if ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
  free_kib=$(df -Pk "$ROOT" | awk 'NR == 2 {print $4}')
  [ "$free_kib" -ge "$NEEDED_KIB" ] || die "$((free_kib / 1024)) MiB free on the disk of $ROOT, $((NEEDED_KIB / 1024)) MiB needed ($WHAT)" \
    "free some space, or build without the live runtime: SIM_ONLY=1 make build"
  python=$(choose_python)
  say "making .venv with $python"
  run_logged "$LOG" "$python" -m venv --clear "$VENV" || die "$python -m venv (log: $LOG)" "apt-get install python3-venv"
fi
fact=$(python_fact "$VENV/bin/python")
if [ -n "$OFFLINE" ] && ! grep -qxF "$fact" "$OFFLINE/machine"; then
  die "$OFFLINE has wheels for $(grep python "$OFFLINE/machine"), and .venv has $fact" "$OFFLINE_CURE"
fi
say "pip install -r $(basename "$LIST") ($WHAT)"
from=() cure="check the network (PyPI must be reachable, proxies by HTTPS_PROXY) and run it again"
if [ -n "$OFFLINE" ]; then from=(--no-index --find-links "$OFFLINE/wheels") cure=$OFFLINE_CURE; fi
run_logged "$LOG" "$VENV/bin/python" -m pip install --disable-pip-version-check "${from[@]}" -r "$LIST" ||
  die "pip install -r $(basename "$LIST") (log: $LOG)" "$cure"
wrong_pins || die "a package has another version after the install (listed above)" "remove .venv and run it again"
list_hash >"$STAMP"
