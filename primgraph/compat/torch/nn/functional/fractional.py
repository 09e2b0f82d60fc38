"""Maximum pools over windows at random places. (B. Graham, Fractional max-pooling, 2015.)"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch.creation import draw
from primgraph.errors import ArgumentError, ShapeError

__all__ = [
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]  # fmt: skip


def fractional_max_pool2d_with_indices(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> tuple[Any, Any]:
    """Return the largest elements of windows at random places, and their positions.

    >>> pool = torch.nn.functional.fractional_max_pool2d_with_indices
    >>> pool(torch.ones(1, 1, 5, 5), 2, output_size=3)[1].shape
    torch.Size([1, 1, 3, 3])
    """
    return _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> tuple[Any, Any]:
    """Return the largest elements of windows at random places, and their positions.

    >>> pool = torch.nn.functional.fractional_max_pool3d_with_indices
    >>> pool(torch.ones(1, 1, 4, 4, 4), 2, output_size=2)[1].shape
    torch.Size([1, 1, 2, 2, 2])
    """
    return _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Return the largest elements of windows at random places.

    `output_size` or `output_ratio`, a share of the input's, is given. Places are drawn for each
    sample and channel, or follow `_random_samples` between 0 and 1.

    >>> torch.nn.functional.fractional_max_pool2d(torch.ones(1, 1, 5, 5), 2, output_ratio=0.6).shape
    torch.Size([1, 1, 3, 3])
    """
    found = _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Return the largest elements of windows at random places; see `fractional_max_pool2d`.

    >>> torch.nn.functional.fractional_max_pool3d(torch.ones(1, 1, 4, 4, 4), 2, 2).shape
    torch.Size([1, 1, 2, 2, 2])
    """
    found = _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def _pool(
    count: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any
) -> tuple[Any, Any]:
    """Return maxima and positions over the last `count` axes."""
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError(
            f"fractional_max_pool{count}d requires specifying either an output_size or an "
            "output_ratio"
        )
    if input.ndim not in (count + 1, count + 2):
        raise ShapeError(
            f"fractional_max_pool{count}d: Expected {count + 1}D or {count + 2}D tensor, but got: "
            f"{tuple(input.shape)}"
        )
    lead, extents = tuple(input.shape[:-count]), tuple(input.shape[-count:])
    kernel = _tuple(kernel_size, count)
    if output_size is None:
        ratios = _tuple(output_ratio, count)
        sizes = tuple(int(n * r) for n, r in zip(extents, ratios, strict=True))
    else:
        sizes = _tuple(output_size, count)
    for n, k, size in zip(extents, kernel, sizes, strict=True):
        if size + k - 1 > n:
            raise ShapeError(f"fractional_max_pool{count}d: windows of {k} do not fit {n} elements")
    if samples is None:
        shape = (*(1,) * (count + 2 - input.ndim), *lead, count)
        samples = draw.rand(*shape, dtype=input.dtype)
    given = np.asarray(samples, input.type.dtype).reshape(-1, count)
    # torch's samples are of the last axis first in two dimensions.
    order = (1, 0) if count == 2 else (0, 1, 2)
    places = [_starts(given[:, order[i]], n, sizes[i], kernel[i]) for i, n in enumerate(extents)]
    positions = _positions(places, kernel, extents).reshape((*lead, math.prod(sizes), -1))
    flat = pg.reshape(input, (*lead, math.prod(extents)))
    taken = pg.take_along_axis(flat, positions.reshape((*lead, -1)), -1)
    windows = pg.reshape(taken, positions.shape)
    best = pg.argmax(windows, -1, True)
    chosen = pg.squeeze(pg.take_along_axis(positions, best, -1), -1)
    shape = (*lead, *sizes)
    return pg.reshape(pg.max(windows, -1), shape), pg.reshape(chosen, shape)


def _tuple(given: Any, count: int) -> tuple[Any, ...]:
    return (given,) * count if isinstance(given, int | float) else tuple(given)


def _starts(samples: Any, extent: int, size: int, kernel: int) -> Any:
    """Return the first positions of windows along an axis, for each sample and channel."""
    kind = samples.dtype.type
    step = kind((extent - kernel) / (size - 1)) if size > 1 else kind(0)
    places = np.arange(size - 1).astype(samples.dtype)
    inner = np.floor((places + samples[:, None]) * step) - np.floor(samples[:, None] * step)
    return np.concatenate([inner, np.full((len(samples), 1), extent - kernel)], 1).astype(np.int64)


def _positions(starts: list[Any], kernel: tuple[int, ...], extents: tuple[int, ...]) -> Any:
    """Return the flat positions of the elements of windows: planes, windows, elements."""
    total: Any = 0
    count = len(kernel)
    for axis, (start, k, n) in enumerate(zip(starts, kernel, extents, strict=True)):
        along = start[:, :, None] + np.arange(k)
        shape = [len(start), *(1,) * (2 * count)]
        shape[1 + axis], shape[1 + count + axis] = start.shape[1], k
        total = total * n + along.reshape(shape)
    return total.reshape(total.shape[0], math.prod(total.shape[1 : count + 1]), -1)
