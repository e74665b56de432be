"""Sizes that go by the batch: what differs between imports with several batches must be a multiple of it, and so much
more. Must not know what any of it means.
"""
from .refusal import Refusal


class ByBatch(int):
    """Written as "16b+1"; the number of the first of the batches otherwise."""

    def __new__(cls, value, each, rest):
        self = super().__new__(cls, value)
        self.each, self.rest = each, rest
        return self

    def __str__(self):
        times = "" if self.each == 1 else str(self.each)
        return f"{times}b" + (f"{self.rest:+d}" if self.rest else "")

    __repr__ = __str__


def _line(values, batches, path):
    each, left = divmod(values[1] - values[0], batches[1] - batches[0])
    rest = values[0] - each * batches[0]
    if left or any(v != each * b + rest for v, b in zip(values, batches)):
        raise Refusal(path, f"is {', '.join(map(str, values))} for batches of {', '.join(map(str, batches))}",
                      "import it without --dynamic batch")
    return ByBatch(values[0], each, rest)


def merged(trees, batches, path=""):
    """One tree of several that differ in sizes alone."""
    first = trees[0]
    if any(type(t) is not type(first) for t in trees):
        raise Refusal(path, "is computed in another way for another batch", "import it without --dynamic batch")
    if isinstance(first, dict):
        if any(t.keys() != first.keys() for t in trees):
            raise Refusal(path, "is computed in another way for another batch", "import it without --dynamic batch")
        return {k: merged([t[k] for t in trees], batches, f"{path}.{k}".strip(".")) for k in first}
    if isinstance(first, (list, tuple)):
        if any(len(t) != len(first) for t in trees):
            raise Refusal(path, "is computed in another way for another batch", "import it without --dynamic batch")
        return [merged([t[i] for t in trees], batches, f"{path}.{i}") for i in range(len(first))]
    if all(t == first for t in trees):
        return first
    if isinstance(first, int) and not isinstance(first, bool):
        return _line(trees, batches, path)
    raise Refusal(path, f"is {', '.join(map(str, trees))} for batches of {', '.join(map(str, batches))}",
                  "import it without --dynamic batch")
