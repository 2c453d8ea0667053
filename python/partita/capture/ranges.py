"""Which whole numbers a batch input may hold: read off the ops that use it as an index."""

import torch

aten = torch.ops.aten

# op -> positions of the arguments whose values its output repeats.
COPIES = {
    aten.view.default: (0,), aten.reshape.default: (0,), aten.slice.Tensor: (0,), aten.select.int: (0,),
    aten.unsqueeze.default: (0,), aten.squeeze.dim: (0,), aten.squeeze.dims: (0,), aten.squeeze.default: (0,),
    aten.expand.default: (0,), aten.clone.default: (0,), aten._to_copy.default: (0,), aten.copy.default: (1,),
    aten.permute.default: (0,), aten.transpose.int: (0,), aten.t.default: (0,), aten.repeat.default: (0,),
    aten.constant_pad_nd.default: (0,), aten.split.Tensor: (0,), aten.cat.default: (0,), aten.stack.default: (0,),
    aten.masked_fill.Scalar: (0,), aten.where.self: (1, 2), aten.slice_scatter.default: (0, 1),
    aten.select_scatter.default: (0, 1), aten.roll.default: (0,), aten.flip.default: (0,),
}

# op -> (position of the index, what it indexes: argument and dimension; None: the dimension is argument 1).
INDEXES = {
    aten.embedding.default: (1, 0, 0),
    aten.nll_loss_forward.default: (1, 0, -1),
    aten.nll_loss2d_forward.default: (1, 0, 1),
    aten.index_select.default: (2, 0, None),
    aten.gather.default: (2, 0, None),
}


def index_limit(node) -> int | None:
    """The smallest size that the values of `node` index, through copies; None when they index nothing.

    Example: token ids read by an embedding of 512 rows -> 512.
    """
    limits, pending, seen = [], [node], {node}
    while pending:
        value = pending.pop()
        for user in value.users:
            limits += _limits(user, value)
            if user not in seen and _repeats(user, value):
                seen.add(user)
                pending.append(user)
    return min(limits, default=None)


def _limits(user, value):
    if user.target in INDEXES:
        position, table, dim = INDEXES[user.target]
        if user.args[position] is value:
            return [user.args[table].meta["val"].shape[user.args[1] if dim is None else dim]]
    if user.target is aten.index.Tensor:
        shape = user.args[0].meta["val"].shape
        return [shape[dim] for dim, index in enumerate(user.args[1]) if index is value]
    return []


def _repeats(user, value):
    if user.op != "call_function":
        return False
    if getattr(user.target, "__name__", "") == "getitem":
        return True
    for position in COPIES.get(user.target, ()):
        argument = user.args[position] if position < len(user.args) else None
        if argument is value or (isinstance(argument, (list, tuple)) and value in argument):
            return True
    return False
