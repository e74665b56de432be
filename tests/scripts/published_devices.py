#!/usr/bin/env python3
"""docs/evidence/published_devices.md holds what is simulated: some rows of each group."""
import os
import re
import subprocess
import sys

SOURCE = os.environ["TANDEM_SOURCE"]
NOT_QUICK = {"torchgpipe on P40s"}  # imports its networks, which takes a minute
SCRIPT = os.path.join(SOURCE, "scripts", "published_devices.py")


def run(script):
    return subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=300, check=False)


done = run(SCRIPT)
print(done.stdout + done.stderr)
with open(os.path.join(SOURCE, "docs", "evidence", "published_devices.md"), encoding="utf-8") as file:
    groups = re.findall(r"^\| \[(.+?)\]\(#", file.read(), re.MULTILINE)
missing = [group for group in groups if group not in NOT_QUICK and f"[{group}]" not in done.stdout]
if not groups or missing:
    sys.exit(f"no rows of these groups were simulated: {missing or 'none on the page'}")
sys.exit(done.returncode)
