"""`paddle.summary`: the layers of a network, their results and parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.compat.paddle.dynamic import to_tensor
from primgraph.eager.derivatives.recording import no_grad

_RULE = "=" * 75


def summary(net: Any, input_size: Any = None, dtypes: Any = None, input: Any = None) -> Any:
    """Print the layers of `net` with the shapes of their results; return counts of parameters.

    `net` is called with `input`, or with zeros of `input_size`: a shape, or a list of shapes.

    >>> found = paddle.summary(paddle.nn.Linear(2, 3), (1, 2))  # doctest: +ELLIPSIS
    ---...
    >>> int(found["total_params"])
    9
    """
    lines: list[tuple[str, str, int]] = []
    leaves = [s for s in net.sublayers(include_self=True) if not s.sublayers()]
    handles = [layer.register_forward_post_hook(_noting(lines, layer)) for layer in leaves]
    was_training = net.training
    try:
        net.eval()
        with no_grad():
            net(*_arguments(input_size, dtypes, input))
    finally:
        if was_training:
            net.train()
        for handle in handles:
            handle.remove()
    total, trainable = _counts(net)
    print("-" * 75)
    print(f" {'Layer (type)':<20}{'Output Shape':<30}{'Param #':<20}")
    print(_RULE)
    for name, shape, count in lines:
        print(f" {name:<20}{shape:<30}{count:<20,}")
    print(_RULE)
    print(f"Total params: {total:,}")
    print(f"Trainable params: {trainable:,}")
    print(f"Non-trainable params: {total - trainable:,}")
    print("-" * 75)
    return {"total_params": np.int64(total), "trainable_params": np.int64(trainable)}


def _noting(lines: list[tuple[str, str, int]], layer: Any) -> Any:
    """Return a hook that notes a layer and the shape of its result."""

    def note(_: Any, inputs: Any, result: Any) -> None:
        first = result[0] if isinstance(result, list | tuple) else result
        name = f"{type(layer).__name__}-{len(lines) + 1}"
        lines.append((name, str(list(first.shape)), _counts(layer)[0]))

    return note


def _arguments(input_size: Any, dtypes: Any, input: Any) -> list[Any]:
    """Return the arguments that a network is called with."""
    if input is not None:
        return list(input) if isinstance(input, list | tuple) else [input]
    several = isinstance(input_size, list) and not all(isinstance(n, int) for n in input_size)
    shapes = input_size if several else [input_size]
    kinds = dtypes if isinstance(dtypes, list | tuple) else [dtypes or "float32"] * len(shapes)
    return [
        to_tensor(np.zeros([1 if n in (None, -1) else n for n in shape], str(kind)))
        for shape, kind in zip(shapes, kinds, strict=True)
    ]


def _counts(layer: Any) -> tuple[int, int]:
    """Return the numbers of elements of all parameters, and of those that are trained."""
    sizes = [(int(p.size), not p.stop_gradient) for p in layer.parameters()]
    return sum(n for n, _ in sizes), sum(n for n, trained in sizes if trained)
