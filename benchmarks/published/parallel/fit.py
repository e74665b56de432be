"""Figures of a machine by measured times: coordinate descent on their logarithms. Deterministic."""
import math

GROWTH, SHRINKING, FIRST_STEP, LEAST_GAIN = 1.3, 0.5, 0.4, 1e-5


def fitted(loss, start, most, least, rounds=8, on_round=print):
    """The figures (a dict, all positive, none above `most`[its name] or below `least`[its name]) that `loss` likes best; each is tried up and down by turns, by a
    factor that grows where that helped.
    """
    figures, steps = dict(start), dict.fromkeys(start, FIRST_STEP)
    best = loss(figures)
    for number in range(rounds):
        for name in start:
            for direction in (1, -1):
                value = figures[name] * math.exp(direction * steps[name])
                tried = {**figures, name: max(min(value, most.get(name, math.inf)), least.get(name, 0))}
                if (error := loss(tried)) < best - LEAST_GAIN:
                    figures, best = tried, error
                    steps[name] *= GROWTH
                    break
            else:
                steps[name] *= SHRINKING
        on_round(f"round {number + 1}: mean error {best:.2%}")
    return figures
