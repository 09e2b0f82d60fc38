"""Methods of Paddle's tensors that mean something else than NumPy's of the same name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product
from typing import Any, NoReturn, Self

from primgraph import operators as pg
from primgraph.compat.paddle.defaults import dtype_or_default
from primgraph.compat.paddle.parameter_attributes import ParameterAttributes
from primgraph.compat.promotion import promote_arguments
from primgraph.errors import UnknownNameError
from primgraph.ir.types import as_axis
from primgraph.operators.handle import Axes, Handle

# Paddle's methods whose namesakes of NumPy give something else, and that are not written here.
_LACKING = (
    "corrcoef",
    "cov",
    "cummax",
    "cummin",
    "histogram",
    "histogram_bin_edges",
    "nan_to_num",
    "nonzero",
    "repeat",
    "scatter_add",
    "swapaxes",
)


class Methods(Handle):
    """Paddle's methods and their arguments, for tensors and for variables of programs.

    Methods that are not here are those of all arrays, which mean the same in Paddle.
    """

    __slots__ = ()

    @classmethod
    def operands(cls, function: Callable[..., Any], args: Sequence[Any]) -> Sequence[Any] | None:
        """Return arguments in the dtypes to which Paddle promotes them; None for the same."""
        return promote_arguments(function, args, dtype_or_default(None))

    def std(  # type: ignore[override]
        self,
        axis: Axes = None,
        unbiased: bool = True,
        keepdim: bool = False,
        name: str | None = None,
    ) -> Self:
        """Return the standard deviation over `axis`: squares are divided by their number less 1."""
        return self._dispatch("std", self, axis, keepdim, ddof=int(unbiased))

    def var(  # type: ignore[override]
        self,
        axis: Axes = None,
        unbiased: bool = True,
        keepdim: bool = False,
        name: str | None = None,
    ) -> Self:
        """Return the variance over `axis`: squares are divided by their number less 1."""
        return self._dispatch("var", self, axis, keepdim, ddof=int(unbiased))

    def prod(
        self,
        axis: Axes = None,
        keepdim: bool = False,
        dtype: Any = None,
        name: str | None = None,
    ) -> Self:
        """Return the product over `axis`, or of all elements."""
        return self._dispatch("prod", self, axis, keepdim, dtype=dtype)

    def any(self, axis: Axes = None, keepdim: bool = False, name: str | None = None) -> Self:
        """Return whether an element over `axis` differs from zero."""
        return self._dispatch("any", self, axis, keepdim)

    def all(self, axis: Axes = None, keepdim: bool = False, name: str | None = None) -> Self:
        """Return whether all elements over `axis` differ from zero."""
        return self._dispatch("all", self, axis, keepdim)

    def argmax(
        self,
        axis: int | None = None,
        keepdim: bool = False,
        dtype: Any = "int64",
        name: str | None = None,
    ) -> Self:
        """Return the index of the first largest element."""
        return self._dispatch("argmax", self, axis, keepdim).astype(dtype)

    def argmin(
        self,
        axis: int | None = None,
        keepdim: bool = False,
        dtype: Any = "int64",
        name: str | None = None,
    ) -> Self:
        """Return the index of the first smallest element."""
        return self._dispatch("argmin", self, axis, keepdim).astype(dtype)

    def cumsum(self, axis: int | None = None, dtype: Any = None, name: str | None = None) -> Self:
        """Return running sums along `axis`, or of all elements in their order."""
        return self._dispatch("cumsum", self, axis, dtype=dtype)

    def dot(self, y: Any, name: str | None = None) -> Self:
        """Return the product of two vectors, or of each row with the other's."""
        found: Self = pg.sum(pg.multiply(self, y), -1)  # type: ignore[assignment]
        return found

    def squeeze(self, axis: Axes = None, name: str | None = None) -> Self:
        """Return the array without axes of extent one: all, or those in `axis` that have it."""
        if axis is None:
            return self._dispatch("squeeze", self)
        listed = [axis] if isinstance(axis, int) else axis
        axes = [as_axis(a, self.ndim) for a in listed]
        return self._dispatch("squeeze", self, tuple(a for a in axes if self.shape[a] == 1))

    def flatten(  # type: ignore[override]
        self, start_axis: int = 0, stop_axis: int = -1, name: str | None = None
    ) -> Self:
        """Return the array with the axes from `start_axis` to `stop_axis` as one."""
        shape = self.shape
        if not shape:
            return self._dispatch("reshape", self, (1,))
        first, last = as_axis(start_axis, len(shape)), as_axis(stop_axis, len(shape))
        middle = product(shape[first : last + 1])
        return self._dispatch("reshape", self, (*shape[:first], middle, *shape[last + 1 :]))


def _unsupported_method(name: str) -> Callable[..., NoReturn]:
    def method(self: Handle, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnknownNameError(
            f"Paddle's method {name!r} is not supported",
            hint=f"pg.{name}(x) is NumPy's, which gives something else",
        )

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Raise `UnknownNameError`: Paddle's {name} gives something else than NumPy's."
    return method


for _name in _LACKING:
    setattr(Methods, _name, _unsupported_method(_name))


class Variable(Methods, ParameterAttributes):
    """`pg.Variable` with Paddle's methods: what is computed with it has them, too."""

    __slots__ = ()
