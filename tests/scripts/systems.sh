#!/usr/bin/env bash
# docs/systems.md holds what the simulator predicts for the published comparisons.
set -euo pipefail
exec "$TANDEM_SOURCE/.venv/bin/python" "$TANDEM_SOURCE/scripts/systems.py" --check ${TANDEM_SANITIZED:+--every 30}
