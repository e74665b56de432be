#!/usr/bin/env python3
"""Models of transformers, imported without a change to their code, train as PyTorch eager does, to the bit."""
import os
import pathlib
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
if not (pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "tandem-train").exists():
    sys.exit(77)
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", PYTHONWARNINGS="ignore")
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests" / "imports")]

import transformers_models  # noqa: E402
from imported_runs import compare_with_eager, failures  # noqa: E402

WAYS = [{"policy": "resident"}, {"policy": "zero_offload", "micro_batches": 2, "clip_norm": 0.5},
        {"policy": "zero_infinity", "clip_norm": 0.5}]


def main():
    with tempfile.TemporaryDirectory() as name:
        for i, make in enumerate(transformers_models.ALL):
            compare_with_eager(make, pathlib.Path(name), **WAYS[i % len(WAYS)])
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


sys.exit(main())
