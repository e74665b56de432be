"""Dropout's random numbers become factors that follow from the run's seed. Must not know programs."""
import torch

from .operators import dropout_factors, name_of


def _number(node, name):
    """The number that `node`, a call of `name`, was given; None: it is another call."""
    if name_of(node).split(".")[0] != name or not isinstance(node.args[1], (int, float)):
        return None
    return float(node.args[1])


def seed_dropout(graph):
    """bernoulli(empty, p) / p, as functional.dropout makes it, becomes one call with a number of its own."""
    count = 0
    for node in list(graph.nodes):
        if node.op != "call_function" or _number(node, "div") is None:
            continue
        drawn = node.args[0]
        keeps = _number(drawn, "bernoulli") if isinstance(drawn, torch.fx.Node) else None
        if keeps is None or keeps != _number(node, "div"):
            continue
        with graph.inserting_before(node):
            value = node.meta["val"]
            factors = graph.call_function(dropout_factors, (list(value.shape), 1 - keeps, count, value.dtype))
            factors.meta["val"] = value
        node.replace_all_uses_with(factors)
        count += 1
    graph.eliminate_dead_code()
