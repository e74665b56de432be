#!/usr/bin/env bash
# docs/systems.md holds what the simulator predicts for the published comparisons: every third row, and at night all.
set -euo pipefail
every=3
[ -z "${TANDEM_NIGHTLY:-}" ] || every=1
[ -z "$TANDEM_SANITIZED" ] || every=30
exec "$TANDEM_SOURCE/.venv/bin/python" "$TANDEM_SOURCE/scripts/systems.py" --check --every "$every"
