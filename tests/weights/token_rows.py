"""The batches that Tandem makes of a file of tokens, as runtime/token_batches.cpp makes them."""
import pathlib
import sys

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "imports"))
from batches import MASK, _row_key  # noqa: E402


def _row(tokens, count, seed, step, row):
    start = int(_row_key(seed, step, row, 0) % MASK(len(tokens) - count + 1))
    return tokens[start:start + count].astype(numpy.int64)


def next_tokens(tokens, rows, sequence, step=0, seed=0):
    values = torch.from_numpy(numpy.stack([_row(tokens, sequence + 1, seed, step, row) for row in range(rows)]))
    return {"inputs": values[:, :-1], "targets": values[:, 1:]}


def masked_tokens(tokens, rows, sequence, vocabulary, step=0, seed=0):
    inputs, targets = [], []
    for row in range(rows):
        values = _row(tokens, sequence, seed, step, row)
        draws = [int(_row_key(seed, step, row, 2 + i)) for i in range(sequence)]
        chosen = sorted(range(sequence), key=lambda i: draws[i])[:max(1, (sequence * 15 + 50) // 100)]
        target = numpy.full(sequence, -100)
        target[chosen] = values[chosen]
        values = values.copy()
        values[chosen] = vocabulary - 1
        inputs.append(values)
        targets.append(target)
    return {"inputs": torch.from_numpy(numpy.stack(inputs)), "targets": torch.from_numpy(numpy.stack(targets))}
