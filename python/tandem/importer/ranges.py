"""What integers of a batch may be: rows of the table, or the classes, that they are looked up in. Must not know parts."""

SAME_NUMBERS = {"view", "reshape", "flatten.using_ints", "slice.Tensor", "select.int", "to.dtype", "to.dtype_layout", "to.device",
                "contiguous", "unsqueeze", "squeeze", "squeeze.dim", "expand", "clone", "pad", "constant_pad_nd", "transpose.int",
                "permute", "_to_copy", "cat", "roll"}


def _limit(node, user):
    from .operators import name_of

    name = name_of(user)
    if name == "embedding" and user.args[1] is node:
        return user.args[0].meta["val"].shape[0]
    if name in ("cross_entropy_loss", "nll_loss", "nll_loss_nd") and user.args[1] is node:
        return user.args[0].meta["val"].shape[1]
    return None


def integers_below(placeholder, example):
    from .operators import name_of

    limits, todo, seen = [], [placeholder], set()
    while todo:
        node = todo.pop()
        for user in node.users:
            limit = _limit(node, user)
            if limit is not None:
                limits.append(limit)
            elif name_of(user) in SAME_NUMBERS and user not in seen:
                seen.add(user)
                todo.append(user)
    return min(limits) if limits else max(int(example.max()) + 1 if example.numel() else 1, 1)
