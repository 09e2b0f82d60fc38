"""Random tensors, as in MegEngine; the numbers are not MegEngine's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph import random
from primgraph.compat.absent import absent
from primgraph.compat.megengine.tensor import Tensor
from primgraph.compat.randomness import (
    draw_normal,
    draw_permutation,
    draw_uniform,
    gumbel_categories,
)
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.inplace.adoption import stand_in_class
from primgraph.eager.node import array_node
from primgraph.eager.seeds import SeedStreams, seeded
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.ir.types import FLOAT32, INT64
from primgraph.operators.handle import Handle
from primgraph.operators.variable import in_manner

__all__ = [
    "RNG",
    "beta",
    "exponential",
    "gamma",
    "multinomial",
    "normal",
    "permutation",
    "poisson",
    "seed",
    "shuffle",
    "uniform",
]

_INT32 = np.dtype("int32")


class RNG:
    """Source of random numbers with a seed of its own; without one, the global source.

    >>> a, b = megengine.random.RNG(seed=3), megengine.random.RNG(seed=3)
    >>> bool((a.normal(size=(2,)) == b.normal(size=(2,))).numpy().all())
    True
    """

    def __init__(self, seed: int | None = None, device: str | None = None) -> None:
        self._streams = seeded if seed is None else SeedStreams(seed)

    def _tensor(self, drawn: Any) -> Any:
        """Return drawn numbers as a tensor, or the variable that stands for it."""
        if isinstance(drawn, np.ndarray):
            return Tensor(array_node(drawn))
        if isinstance(drawn, _Tensor):
            return Tensor(drawn.node)
        return in_manner(stand_in_class(Tensor), drawn)

    def _of_parameters(
        self, draw: Callable[..., Any], size: Any, *params: Any, dtype: Any = FLOAT32
    ) -> Any:
        """Return numbers of the shape `size`, followed by that of the parameters."""
        values = [p if isinstance(p, Handle) else np.asarray(p, FLOAT32) for p in params]
        shape = np.broadcast_shapes(*(tuple(v.shape) for v in values))
        with no_grad():
            drawn = draw(self._streams.key_tensor(), *values, (*_shape(size), *shape))
            return self._tensor(pg.astype(drawn, dtype))

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None) -> Any:
        """Return uniform numbers from `low` up to but without `high`."""
        return self._tensor(draw_uniform(self._streams, _shape(size), FLOAT32, low, high))

    def normal(self, mean: float = 0.0, std: float = 1.0, size: Any = None) -> Any:
        """Return normal numbers."""
        drawn = self._tensor(draw_normal(self._streams, _shape(size), FLOAT32))
        return drawn if (mean, std) == (0.0, 1.0) else drawn * std + mean

    def gamma(self, shape: Any, scale: Any = 1, size: Any = None) -> Any:
        """Return numbers of the gamma distribution of a shape and a scale."""

        def draw(key: Any, a: Any, b: Any, extents: tuple[int, ...]) -> Any:
            return random.gamma(key, a, extents) * b

        return self._of_parameters(draw, size, shape, scale)

    def beta(self, alpha: Any, beta: Any, size: Any = None) -> Any:
        """Return numbers of the beta distribution."""
        return self._of_parameters(random.beta, size, alpha, beta)

    def poisson(self, lam: Any, size: Any = None) -> Any:
        """Return numbers of the Poisson distribution."""
        return self._of_parameters(random.poisson, size, lam)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Return numbers of the exponential distribution of a scale, its mean."""

        def draw(key: Any, mean: Any, extents: tuple[int, ...]) -> Any:
            return random.exponential(key, extents, "float32") * mean

        return self._of_parameters(draw, size, scale)

    def multinomial(self, input: Any, num_samples: int, replacement: bool = False) -> Any:
        """Return indices along the last axis, with probabilities in proportion to `input`."""
        key = self._streams.key_tensor()
        drawn = gumbel_categories(key, input, num_samples, replacement)
        return self._tensor(pg.astype(drawn, _INT32))

    def permutation(self, n: Any, *, dtype: Any = "int32") -> Any:
        """Return the integers below `n` in random order, or the rows of a tensor in one."""
        count = n if isinstance(n, int) else n.shape[0]
        order = draw_permutation(self._streams, count, INT64)
        if isinstance(n, int):
            return self._tensor(pg.astype(self._tensor(order), dtype))
        return pg.take(n, order, 0)

    def shuffle(self, inp: Any) -> None:
        """Change the order of the rows of a tensor at random."""
        with no_grad():
            inp[:] = self.permutation(inp.detach())


def _shape(size: Any) -> Sequence[int]:
    """Return a size, a sequence of sizes or None as a shape."""
    if size is None:
        return ()
    return (int(size),) if np.ndim(np.asarray(size)) == 0 else tuple(int(n) for n in size)


_global = RNG()


def seed(seed: int) -> None:
    """Set the seed of the global source.

    >>> megengine.random.seed(3)
    """
    seeded.restart(int(seed))


def uniform(low: float = 0.0, high: float = 1.0, size: Any = None) -> Any:
    """Return uniform numbers from `low` up to but without `high`.

    >>> megengine.random.uniform(size=(2, 3)).shape
    (2, 3)
    """
    return _global.uniform(low, high, size)


def normal(mean: float = 0.0, std: float = 1.0, size: Any = None) -> Any:
    """Return normal numbers.

    >>> megengine.random.normal(0.0, 2.0, size=(2, 3)).shape
    (2, 3)
    """
    return _global.normal(mean, std, size)


def gamma(shape: Any, scale: Any = 1, size: Any = None) -> Any:
    """Return numbers of the gamma distribution of a shape and a scale.

    >>> megengine.random.gamma(2.0, 3.0, size=(4,)).shape
    (4,)
    """
    return _global.gamma(shape, scale, size)


def beta(alpha: Any, beta: Any, size: Any = None) -> Any:
    """Return numbers of the beta distribution.

    >>> megengine.random.beta(2.0, 3.0, size=(4,)).shape
    (4,)
    """
    return _global.beta(alpha, beta, size)


def poisson(lam: Any, size: Any = None) -> Any:
    """Return numbers of the Poisson distribution.

    >>> megengine.random.poisson(2.0, size=(4,)).shape
    (4,)
    """
    return _global.poisson(lam, size)


def exponential(scale: Any = 1.0, size: Any = None) -> Any:
    """Return numbers of the exponential distribution of a scale, its mean.

    >>> megengine.random.exponential(2.0, size=(4,)).shape
    (4,)
    """
    return _global.exponential(scale, size)


def multinomial(input: Any, num_samples: int, replacement: bool = False) -> Any:
    """Return indices along the last axis, with probabilities in proportion to `input`.

    >>> megengine.random.multinomial(megengine.tensor([0.0, 1.0]), 1).numpy().tolist()
    [1]
    """
    return _global.multinomial(input, num_samples, replacement)


def permutation(n: Any, *, dtype: Any = "int32") -> Any:
    """Return the integers below `n` in random order, or the rows of a tensor in one.

    >>> sorted(megengine.random.permutation(4).numpy().tolist())
    [0, 1, 2, 3]
    """
    return _global.permutation(n, dtype=dtype)


def shuffle(inp: Any) -> None:
    """Change the order of the rows of a tensor at random.

    >>> x = megengine.tensor([1.0, 2.0, 3.0])
    >>> megengine.random.shuffle(x)
    >>> sorted(x.numpy().tolist())
    [1.0, 2.0, 3.0]
    """
    _global.shuffle(inp)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
