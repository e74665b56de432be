#!/usr/bin/env bash
# Optimizer states of 8 and 4 bits train as well as those of 32, within the bounds that docs/systems.md states.
set -euo pipefail
if [ ! -x "$TANDEM_BUILD/bin/tandem-train" ]; then
  echo "skipped: tandem-train is not built here"
  exit 77
fi
exec "$TANDEM_SOURCE/.venv/bin/python" "$TANDEM_SOURCE/scripts/state_bits.py" --tandem "$TANDEM_BUILD/bin/tandem" --check
