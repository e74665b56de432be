#!/usr/bin/env python3
"""docs/evidence holds what is simulated of trainings on many devices: those rows that take seconds."""
import os
import subprocess
import sys

done = subprocess.run([sys.executable, os.path.join(os.environ["TANDEM_SOURCE"], "scripts", "published_parallel.py"), "--check"],
                      capture_output=True, text=True, timeout=300, check=False)
print(done.stdout + done.stderr)
rows = done.stdout.count("billion parameters")
if rows != 5:
    sys.exit(f"{rows} rows, not 5")
sys.exit(done.returncode)
