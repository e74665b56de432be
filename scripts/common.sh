# What the scripts share: where the checkout is, how a step speaks and how it fails. Sourced, not run.
# shellcheck shell=bash
set -euo pipefail
if [ "$(uname -s)" != Linux ]; then
  echo "tandem: $(uname -s) is not supported. Tandem works on Linux (x86-64, aarch64): a Linux machine, a container, or WSL2 on Windows" >&2
  exit 2
fi
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf 'tandem: %s\n' "$*"; }

# die WHAT_FAILED WHAT_TO_DO
die() {
  printf 'tandem: %s failed: %s\n' "${STEP:-this step}" "$1" >&2
  if [ $# -gt 1 ]; then printf 'tandem: what to do: %s\n' "$2" >&2; fi
  exit 1
}

# run_logged LOG COMMAND...: output into LOG, its end shown where the command fails.
run_logged() {
  local log=$1
  shift
  "$@" >>"$log" 2>&1 && return 0
  local status=$?
  printf -- '--- the last lines of %s\n' "$log" >&2
  tail -n 15 "$log" >&2
  printf -- '---\n' >&2
  return "$status"
}
