#!/usr/bin/env bash
# Logs of live runs that were recorded once: the scheduler still answers what happened then with the same commands.
set -uo pipefail
cd "${TANDEM_SOURCE:?}" || exit 1
shopt -s nullglob
logs=(tests/replay/*.log)
[ "${#logs[@]}" -gt 0 ] || { printf 'there are no logs in tests/replay\n'; exit 1; }
status=0
for log in "${logs[@]}"; do
  "${TANDEM_BUILD:?}/bin/tandem" replay "$log" || status=1
done
[ "$status" -eq 0 ] || printf 'tests/replay/README.md says how to record them again\n'
exit "$status"
