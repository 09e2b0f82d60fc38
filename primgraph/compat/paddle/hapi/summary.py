"""`paddle.summary`: the layers of a network, their arguments, results and parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from primgraph.compat.paddle.dynamic import to_tensor
from primgraph.compat.paddle.nn.layer import LayerList, Sequential
from primgraph.eager.derivatives.recording import no_grad

_HEADS = ("Layer (type)", "Input Shape", "Output Shape", "Param #")
_WIDTHS = (15, 20, 20, 15)
_MEGABYTE = 1024.0**2


@dataclass(slots=True)
class _Row:
    """A layer: its name, the shapes of arguments and results, and its parameters."""

    name: str
    given: Any
    result: Any
    count: int

    def cells(self) -> list[str]:
        return [self.name, str(self.given), str(self.result), f"{self.count:,}"]


def summary(net: Any, input_size: Any = None, dtypes: Any = None, input: Any = None) -> Any:
    """Print the layers of `net` with the shapes of their results; return counts of parameters.

    `net` is called with `input`, or with zeros of `input_size`: a shape, or a list of shapes.

    >>> found = paddle.summary(paddle.nn.Linear(2, 3), (1, 2))  # doctest: +ELLIPSIS
    ---...
    >>> int(found["total_params"])
    9
    """
    arguments = _arguments(input_size, dtypes, input)
    rows = _rows(net, arguments)
    total, trainable = _counts(net)
    cells = [row.cells() for row in rows]
    widths = [
        max(w, *(len(row[k]) for row in cells), 0) if cells else w for k, w in enumerate(_WIDTHS)
    ]
    width = max(75, sum(widths) + 5)
    rule = "-" * width
    print(rule, _line(_HEADS, widths), "=" * width, sep="\n")
    for row in cells:
        print(_line(row, widths))
    print("=" * width)
    print(f"Total params: {total:,}")
    print(f"Trainable params: {trainable:,}")
    print(f"Non-trainable params: {total - trainable:,}")
    print(rule)
    _print_sizes(arguments, rows, total)
    print(f"{rule}\n")
    return {"total_params": np.int64(total), "trainable_params": np.int64(trainable)}


def _rows(net: Any, arguments: list[Any]) -> list[_Row]:
    """Return the rows of the layers that a call of `net` calls, in this order."""
    rows: dict[str, _Row] = {}
    inner = net.sublayers()
    shown = [s for s in inner if not isinstance(s, Sequential | LayerList)] or [net]
    handles = [layer.register_forward_post_hook(_noting(rows)) for layer in shown]
    was_training = net.training
    try:
        net.eval()
        with no_grad():
            net(*arguments)
    finally:
        if was_training:
            net.train()
        for handle in handles:
            handle.remove()
    return list(rows.values())


def _noting(rows: dict[str, _Row]) -> Any:
    """Return a hook that notes a layer and the shapes of its arguments and results."""

    def note(layer: Any, inputs: Any, result: Any) -> None:
        number = layer.full_name().rpartition("_")[2]
        index = int(number) if number.isdigit() else len(rows)
        name = f"{type(layer).__name__}-{index + 1}"
        own = sum(int(p.size) for p in layer.parameters(include_sublayers=False))
        rows[name] = _Row(name, _shapes(list(inputs)), _shapes(result), own)

    return note


def _shapes(found: Any) -> Any:
    """Return the shape of an array, or those of the arrays in lists."""
    if isinstance(found, list | tuple):
        return [_shapes(item) for item in found]
    return list(map(int, getattr(found, "shape", ())))


def _line(cells: Any, widths: list[int]) -> str:
    return " ".join(f"{cell:^{width}}" for cell, width in zip(cells, widths, strict=True))


def _print_sizes(arguments: list[Any], rows: list[_Row], total: int) -> None:
    """Print the memory of arguments, of results with their gradients, and of parameters."""
    given = sum(4.0 * int(np.prod(a.shape)) for a in arguments if hasattr(a, "shape"))
    results = 8.0 * sum(_elements(row.result) for row in rows)
    found = given, results, 4.0 * total
    names = ("Input size", "Forward/backward pass size", "Params size", "Estimated Total Size")
    for name, size in zip(names, (*found, sum(found)), strict=True):
        print(f"{name} (MB): {size / _MEGABYTE:0.2f}")


def _elements(shape: Any) -> int:
    """Return the number of elements of a shape, or of all shapes in a list."""
    if any(isinstance(n, list) for n in shape):
        return sum(_elements(n) for n in shape)
    return int(np.prod(shape))


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
