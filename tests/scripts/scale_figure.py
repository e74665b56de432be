#!/usr/bin/env python3
"""docs/scaling.svg is of docs/evidence/scaling.csv, a row of which is simulated; a table that differs is noticed."""
import os
import shutil
import subprocess
import sys
import tempfile

if os.environ.get("TANDEM_SANITIZED"):  # simulations like others'
    sys.exit(77)
SOURCE = os.environ["TANDEM_SOURCE"]


def check(source):
    return subprocess.run([sys.executable, os.path.join(source, "scripts", "scale_figure.py"), "--check"], capture_output=True, text=True, timeout=300, check=False)


done = check(SOURCE)
print(done.stdout + done.stderr)
if done.returncode:
    sys.exit(done.returncode)
with tempfile.TemporaryDirectory() as copy:
    for folder in ("scripts", "docs", "scenarios", "hardware_profiles"):
        shutil.copytree(os.path.join(SOURCE, folder), os.path.join(copy, folder))
    table = os.path.join(copy, "docs", "evidence", "scaling.csv")
    with open(table, encoding="utf-8") as file:
        text = file.read()
    with open(table, "w", encoding="utf-8") as file:
        file.write(text.replace("copies divide parameters,512,", "copies divide parameters,512,1"))
    if check(copy).returncode == 0:
        sys.exit("another step in the table was not noticed")
