"""Methods of tensors that fill them with random numbers, with the arguments of torch."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from primgraph import operators as pg
from primgraph.compat.randomness import draw_integers, draw_normal, draw_uniform, streams_of
from primgraph.eager.inplace.in_place import change
from primgraph.eager.node import array_node
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError
from primgraph.ir.types import FLOAT64
from primgraph.operators.handle import Handle


class RandomMethods(_Tensor):
    """In-place random numbers; `generator` is their source."""

    __slots__ = ()

    def _fill(self, drawn: Any) -> Self:
        """Show `drawn` from now on, in the dtype of the tensor."""
        if isinstance(drawn, np.ndarray):
            drawn = _Tensor(array_node(drawn.astype(self.type.dtype, copy=False)))
        return change(self, drawn.astype(self.type.dtype))

    def _uniform(self, generator: Any) -> Any:
        """Uniform numbers of this shape, from 0 up to but without 1."""
        return draw_uniform(streams_of(generator), self.type.shape, FLOAT64)

    def uniform_(self, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Self:
        """Fill with uniform numbers between two bounds."""
        if from_ > to:
            raise ArgumentError(f"uniform_ expects from <= to, but found from={from_} > to={to}")
        streams, kind = streams_of(generator), self.type
        return self._fill(draw_uniform(streams, kind.shape, kind.dtype, float(from_), float(to)))

    def normal_(self, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Self:
        """Fill with normal numbers."""
        if std < 0.0:
            raise ArgumentError(f"normal_ expects std >= 0.0, but found std {std}")
        drawn = draw_normal(streams_of(generator), self.type.shape, self.type.dtype)
        return self._fill(drawn * std + mean)

    def log_normal_(self, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Self:
        """Fill with exponentials of normal numbers."""
        drawn = draw_normal(streams_of(generator), self.type.shape, FLOAT64)
        return self._fill(pg.exp(drawn * std + mean))

    def exponential_(self, lambd: float = 1.0, *, generator: Any = None) -> Self:
        """Fill with numbers of the exponential distribution of that rate."""
        if lambd <= 0.0:
            raise ArgumentError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
        return self._fill(-pg.log1p(-self._uniform(generator)) / lambd)

    def cauchy_(self, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Self:
        """Fill with numbers of the Cauchy distribution."""
        if sigma <= 0.0:
            raise ArgumentError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
        return self._fill(median + sigma * pg.tan(math.pi * (self._uniform(generator) - 0.5)))

    def geometric_(self, p: float, *, generator: Any = None) -> Self:
        """Fill with numbers of trials up to the first success, of probability `p`."""
        if not 0.0 < p < 1.0:
            raise ArgumentError(f"geometric_ expects p to be in (0, 1), but got p={p}")
        drawn = pg.log1p(-self._uniform(generator)) / math.log1p(-p)
        return self._fill(pg.floor(drawn) + 1.0)

    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Self:
        """Fill with 1, of probability `p`, and 0."""
        chance = p.detach() if isinstance(p, Handle) else p
        return self._fill(self._uniform(generator) < chance)

    def random_(self, *bounds: int, generator: Any = None) -> Self:
        """Fill with integers from a first bound, or 0, up to but without the last.

        Without bounds integers are as large as the dtype has them exactly.
        """
        dtype = self.type.dtype
        if bounds:
            low, high = (0, *bounds)[-2:]
        elif dtype.kind == "f":
            low, high = 0, 2 ** (np.finfo(dtype).nmant + 1)
        else:
            low, high = 0, 2 if dtype.kind == "b" else int(np.iinfo(dtype).max)
        streams = streams_of(generator)
        return self._fill(draw_integers(streams, self.type.shape, low, high, np.dtype("int64")))
