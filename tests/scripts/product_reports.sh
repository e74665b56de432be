#!/usr/bin/env bash
# What people reported of frameworks' memory lies within 15% of what is predicted, where it was held out.
set -euo pipefail
exec "$TANDEM_SOURCE/.venv/bin/python" "$TANDEM_SOURCE/scripts/product_reports.py" --check
