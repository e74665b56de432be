"""The made-up batches of an imported network, as runtime/made_up_data.cpp makes them."""
import numpy
import torch

MASK = numpy.uint64


def _mix(x):
    with numpy.errstate(over="ignore"):
        x = numpy.asarray(x, MASK) + MASK(0x9E3779B97F4A7C15)
        x = (x ^ (x >> MASK(30))) * MASK(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> MASK(27))) * MASK(0x94D049BB133111EB)
        return x ^ (x >> MASK(31))


def _row_key(seed, step, row, tensor):
    key = MASK(seed)
    for part in (step, 0, row, tensor):
        key = _mix(key ^ MASK(part))
    return key


def _integers(key, count, below):
    return (_mix(key ^ _mix(numpy.arange(count, dtype=MASK))) % MASK(below)).astype(numpy.int64)


def _normal(key, count):
    scale = numpy.float32(1) / numpy.sqrt(numpy.float32(4 * (256.0 * 256 - 1) / 12))
    hashes = _mix(key ^ _mix(numpy.arange(0, count, 2, dtype=MASK)))
    halves = numpy.stack([hashes & MASK(0xFFFFFFFF), hashes >> MASK(32)], 1).reshape(-1)[:count]
    pairs = (halves & MASK(0x00FF00FF)) + ((halves >> MASK(8)) & MASK(0x00FF00FF))
    sums = (pairs & MASK(0xFFFF)) + (pairs >> MASK(16))
    return ((sums.astype(numpy.float32)) - numpy.float32(510)) * scale


def batch(tensors, samples, step, micro_batch=0, seed=0):
    """`tensors`: of the batch in network.yaml, as maps of name, type, shape, below. By name, without constants."""
    out = {}
    for index, tensor in enumerate(tensors):
        if "constant" in tensor:
            continue
        shape = tensor["shape"]
        count = int(numpy.prod(shape)) // samples
        rows = []
        for sample in range(samples):
            key = _row_key(seed, step, micro_batch * samples + sample, index)
            rows.append(_integers(key, count, tensor["below"]) if "below" in tensor else _normal(key, count))
        out[tensor["name"]] = torch.from_numpy(numpy.concatenate(rows)).reshape(shape)
    return out
