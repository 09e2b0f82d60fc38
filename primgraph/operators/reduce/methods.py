"""Methods of arrays that take NumPy's options `dtype`, `initial`, `out` and `where`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from primgraph.base.providers import provider
from primgraph.ir.frontend.signature import checked_methods

_Axes = int | Sequence[int] | None
# Options of NumPy's `var` and `std`, for which these are called.
_OF_NUMPY = frozenset(("dtype", "out", "where"))


@checked_methods(late=True)
class NumpyMethods:
    """Reductions, `cumsum` and `clip`: NumPy's, for its options, or else the functions here."""

    __slots__ = ()

    @abstractmethod
    def _dispatch(self, name: str, *args: Any, **kwargs: Any) -> Self:
        """Call the public function of that name."""

    @abstractmethod
    def _instead(self, name: str, called: str) -> str:
        """Return the hint for a NumPy function that is missing here, if any."""

    def _reduce(self, name: str, axis: _Axes, keepdims: bool, **options: Any) -> Self:
        """Call a reduction, by NumPy's function of that name for options that only it has."""
        given = {n: v for n, v in options.items() if v is not None and v is not True}
        if not given:
            return self._dispatch(name, self, axis, keepdims)
        return self._call_numpy(
            name, axis=axis, **({"keepdims": True} if keepdims else {}), **given
        )

    def _call_numpy(self, name: str, *args: Any, **options: Any) -> Self:
        original = getattr(np, name)
        called = provider("calls of NumPy").call_function
        found: Self = called(original, (self, *args), options, self._instead)
        return found

    def sum(
        self,
        axis: _Axes = None,
        keepdims: bool = False,
        *,
        keepdim: bool = False,
        dtype: Any = None,
        out: Any = None,
        initial: Any = None,
        where: Any = True,
    ) -> Self:
        """Return the sum over `axis`; see `pg.sum`."""
        return self._reduce(
            "sum", axis, keepdims or keepdim, dtype=dtype, out=out, initial=initial, where=where
        )

    def mean(
        self,
        axis: _Axes = None,
        keepdims: bool = False,
        *,
        keepdim: bool = False,
        dtype: Any = None,
        out: Any = None,
        where: Any = True,
    ) -> Self:
        """Return the mean over `axis`; see `pg.mean`."""
        return self._reduce("mean", axis, keepdims or keepdim, dtype=dtype, out=out, where=where)

    def max(
        self,
        axis: _Axes = None,
        keepdims: bool = False,
        *,
        keepdim: bool = False,
        out: Any = None,
        initial: Any = None,
        where: Any = True,
    ) -> Self:
        """Return the maximum over `axis`; see `pg.max`."""
        return self._reduce("max", axis, keepdims or keepdim, out=out, initial=initial, where=where)

    def min(
        self,
        axis: _Axes = None,
        keepdims: bool = False,
        *,
        keepdim: bool = False,
        out: Any = None,
        initial: Any = None,
        where: Any = True,
    ) -> Self:
        """Return the minimum over `axis`; see `pg.min`."""
        return self._reduce("min", axis, keepdims or keepdim, out=out, initial=initial, where=where)

    def prod(
        self,
        axis: _Axes = None,
        keepdims: bool = False,
        *,
        keepdim: bool = False,
        dtype: Any = None,
        out: Any = None,
        initial: Any = None,
        where: Any = True,
    ) -> Self:
        """Return the product over `axis`; see `pg.prod`."""
        return self._reduce(
            "prod", axis, keepdims or keepdim, dtype=dtype, out=out, initial=initial, where=where
        )

    def var(
        self, axis: _Axes = None, keepdims: bool = False, *, keepdim: bool = False, **options: Any
    ) -> Self:
        """Return the variance over `axis`; see `pg.var`."""
        if _OF_NUMPY.isdisjoint(options):
            return self._dispatch("var", self, axis, keepdims or keepdim, **options)
        return self._call_numpy("var", axis=axis, keepdims=keepdims or keepdim, **options)

    def std(
        self, axis: _Axes = None, keepdims: bool = False, *, keepdim: bool = False, **options: Any
    ) -> Self:
        """Return the standard deviation over `axis`; see `pg.std`."""
        if _OF_NUMPY.isdisjoint(options):
            return self._dispatch("std", self, axis, keepdims or keepdim, **options)
        return self._call_numpy("std", axis=axis, keepdims=keepdims or keepdim, **options)

    def any(
        self,
        axis: _Axes = None,
        keepdims: bool = False,
        *,
        keepdim: bool = False,
        out: Any = None,
        where: Any = True,
    ) -> Self:
        """Return whether an element over `axis` is nonzero; see `pg.any`."""
        return self._reduce("any", axis, keepdims or keepdim, out=out, where=where)

    def all(
        self,
        axis: _Axes = None,
        keepdims: bool = False,
        *,
        keepdim: bool = False,
        out: Any = None,
        where: Any = True,
    ) -> Self:
        """Return whether all elements over `axis` are nonzero; see `pg.all`."""
        return self._reduce("all", axis, keepdims or keepdim, out=out, where=where)

    def argmax(
        self,
        axis: int | None = None,
        keepdims: bool = False,
        *,
        keepdim: bool = False,
        out: Any = None,
    ) -> Self:
        """Return the index of the first maximum; see `pg.argmax`."""
        return self._reduce("argmax", axis, keepdims or keepdim, out=out)

    def argmin(
        self,
        axis: int | None = None,
        keepdims: bool = False,
        *,
        keepdim: bool = False,
        out: Any = None,
    ) -> Self:
        """Return the index of the first minimum; see `pg.argmin`."""
        return self._reduce("argmin", axis, keepdims or keepdim, out=out)

    def cumsum(self, axis: int | None = None, *, dtype: Any = None, out: Any = None) -> Self:
        """Return the cumulative sum along `axis`; see `pg.cumsum`."""
        if dtype is None and out is None:
            return self._dispatch("cumsum", self, axis)
        return self._call_numpy("cumsum", axis, dtype=dtype, out=out)

    def clip(
        self, min: Any = None, max: Any = None, *, out: Any = None, casting: str = "same_kind"
    ) -> Self:
        """Limit elements to an interval; see `pg.clip`."""
        if out is None:
            return self._dispatch("clip", self, min, max)
        return self._call_numpy("clip", min, max, out=out, casting=casting)

    def choose(self, choices: Any, out: Any = None, mode: str = "raise") -> Self:
        """Choose from arrays by the integers of this one; see `pg.choose`."""
        if out is None:
            return self._dispatch("choose", self, choices, mode)
        return self._call_numpy("choose", choices, out=out, mode=mode)

    def take(
        self, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise"
    ) -> Self:
        """Return parts along an axis, in the order of `indices`; see `pg.take`."""
        if out is None and mode == "raise":
            return self._dispatch("take", self, indices, axis)
        return self._call_numpy("take", indices, axis, out=out, mode=mode)

    @property
    def flat(self) -> Any:
        """Elements in row-major order, for reading and assignment; see `numpy.ndarray.flat`."""
        return provider("elements in a row").FlatElements(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        provider("elements in a row").FlatElements(self)[:] = values

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Set elements of the array as it is in one row, as `np.put` does."""
        self._call_numpy("put", indices, values, mode)
