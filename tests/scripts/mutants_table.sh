#!/usr/bin/env bash
# `make mutants` knows where to plant its bugs: a file that moved or a line that changed is told at once. It plants none here.
set -euo pipefail
exec "${TANDEM_SOURCE:?}/.venv/bin/python" "$TANDEM_SOURCE/scripts/mutants.py" --check
