"""Sizes that go by the batch and by the length of its samples: what differs between imports of several sizes must be a sum of
whole numbers times b, s, bs, ss and bss. Must not know what any of it means.
"""
from fractions import Fraction

from .refusal import Refusal

# By what is dynamic: the terms, as how often b and s are in them, and the examples that decide them, and check them.
TERMS = {(True, False): [(0, 0), (1, 0)], (False, True): [(0, 0), (0, 1), (0, 2)],
         (True, True): [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]}


class BySizes(int):
    """Written as "16b+1"; the number of the first of the examples otherwise."""

    def __new__(cls, value, terms):
        self = super().__new__(cls, value)
        self.terms = terms  # (b, s): how many
        return self

    def __str__(self):
        text = ""
        for (b, s), times in sorted(self.terms.items(), reverse=True):
            if times:
                letters = "b" * b + "s" * s
                number = "" if letters and abs(times) == 1 else str(abs(times))
                text += ("-" if times < 0 else "+" if text else "") + number + letters
        return text or "0"

    __repr__ = __str__


def examples(batch, sequence, any_batch, any_sequence):
    """(batch, sequence) of imports that decide all terms, and check them; the first is the example itself."""
    batches = ([batch, batch + 2, batch + 5] if batch > 1 else [2, 3, 7]) if any_batch else [batch]
    lengths = ([sequence, sequence - 2, sequence - 6] if sequence >= 12 else [sequence, sequence + 1, sequence + 3]) \
        if any_sequence else [sequence]
    sizes = [(b, lengths[0]) for b in batches] + [(batches[0], s) for s in lengths[1:]]
    if any_batch and any_sequence:
        sizes += [(batches[1], lengths[1]), (batches[1], lengths[2]), (batches[2], lengths[2])]
    elif any_sequence:
        sizes.append((batches[0], lengths[0] - 1 if sequence >= 12 else lengths[0] + 4))
    return sizes


def _solve(rows, values):
    """The terms' numbers, by elimination; rows are independent."""
    table = [[Fraction(x) for x in row] + [Fraction(v)] for row, v in zip(rows, values)]
    for i in range(len(table)):
        pivot = next(k for k in range(i, len(table)) if table[k][i])
        table[i], table[pivot] = table[pivot], table[i]
        table[i] = [x / table[i][i] for x in table[i]]
        for k in range(len(table)):
            if k != i and table[k][i]:
                table[k] = [x - table[k][i] * y for x, y in zip(table[k], table[i])]
    return [row[-1] for row in table]


class Merging:
    """`sizes`: of the examples, in the order of trees; `terms`: those of TERMS."""

    def __init__(self, sizes, terms, flags):
        self.sizes, self.terms, self.advice = sizes, terms, f"import it without {flags}"
        self.rows = [[b ** i * s ** j for i, j in terms] for b, s in sizes]
        self.deciding = self._independent()

    def _independent(self):
        chosen, basis = [], []
        for k, row in enumerate(self.rows):
            rest = [Fraction(x) for x in row]
            for other in basis:
                lead = next(i for i, x in enumerate(other) if x)
                rest = [x - rest[lead] / other[lead] * y for x, y in zip(rest, other)]
            if any(rest):
                basis.append(rest)
                chosen.append(k)
        return chosen

    def _refuse(self, path, problem):
        raise Refusal(path, problem, self.advice)

    def _size(self, values, path):
        numbers = _solve([self.rows[k] for k in self.deciding], [values[k] for k in self.deciding])
        said = [sum(n * x for n, x in zip(numbers, row)) for row in self.rows]
        if any(n.denominator != 1 for n in numbers) or said != list(values):
            shown = ", ".join(f"{v} for {b} x {s}" for v, (b, s) in zip(values, self.sizes))
            self._refuse(path, f"is {shown}, batch x sequence: no sum of their products")
        return BySizes(values[0], {t: int(n) for t, n in zip(self.terms, numbers)})

    def merged(self, trees, path=""):
        """One tree of several that differ in sizes alone."""
        first = trees[0]
        if any(type(t) is not type(first) for t in trees):
            self._refuse(path, "is computed in another way for other sizes")
        if isinstance(first, dict):
            if any(t.keys() != first.keys() for t in trees):
                self._refuse(path, "is computed in another way for other sizes")
            return {k: self.merged([t[k] for t in trees], f"{path}.{k}".strip(".")) for k in first}
        if isinstance(first, (list, tuple)):
            if any(len(t) != len(first) for t in trees):
                self._refuse(path, "is computed in another way for other sizes")
            return [self.merged([t[i] for t in trees], f"{path}.{i}") for i in range(len(first))]
        if all(t == first for t in trees):
            return first
        if isinstance(first, int) and not isinstance(first, bool):
            return self._size(trees, path)
        self._refuse(path, f"is {', '.join(map(str, trees))} for other sizes")
