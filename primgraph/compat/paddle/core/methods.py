"""Attributes of Paddle's tensors and variables that mean something else than NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, overload

from primgraph.compat.dtypes import LibraryDType, dtypes_of
from primgraph.compat.paddle.core.assignments import current_operands
from primgraph.compat.paddle.core.defaults import dtype_or_default
from primgraph.compat.paddle.core.parameter_attributes import ParameterAttributes
from primgraph.compat.promotion import promote_arguments
from primgraph.errors import DTypeError, unknown_name
from primgraph.ir.types import NAME_OF_DTYPE
from primgraph.operators.handle import Handle

DTYPES: dict[str, LibraryDType] = dtypes_of("paddle")
_OF_NUMPY = {dtype: DTYPES[str(dtype)] for dtype in NAME_OF_DTYPE}

# Functions of two operands that must have one dtype, or the places of these.
_PAIRED: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "power", "remainder"), (0, 1)),
    **dict.fromkeys(("floor_divide", "maximum", "minimum", "fmax", "fmin", "matmul"), (0, 1)),
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal"), (0, 1)),
    "where": (1, 2),
}


def is_array(x: Any) -> bool:
    """Return whether `x` is a tensor or a variable."""
    return isinstance(x, Handle)


class Size(list[int]):
    """A shape: a list, as Paddle's tensors have it, that is equal to a tuple, too."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return list.__eq__(self, list(other)) if isinstance(other, tuple) else super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> Size: ...

    def __getitem__(self, index: SupportsIndex | slice) -> int | Size:
        found = super().__getitem__(index)
        return Size(found) if isinstance(found, list) else found

    def __repr__(self) -> str:
        return f"paddle.Size({super().__repr__()})"

    def numel(self) -> int:
        """Return the number of elements of an array of this shape."""
        return prod(self)

    def __add__(self, other: Iterable[int]) -> Size:  # type: ignore[override]
        return Size(chain(self, other))

    def __radd__(self, other: Iterable[int]) -> Size:
        return Size(chain(other, self))


class Methods(Handle):
    """Paddle's attributes, for tensors and for variables of programs.

    Its functions of a tensor are methods as well: see `primgraph.compat.paddle.functions`.
    """

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_name(self._called, name, dir(type(self)))

        @property
        def shape(self) -> Size:
            """Return the extents along the axes, in a list."""
            return Size(self.type.shape)

        @property
        def dtype(self) -> LibraryDType:
            """Return the dtype of the elements."""
            return _OF_NUMPY[self.type.dtype]

    @classmethod
    def operands(cls, function: Callable[..., Any], args: Sequence[Any]) -> Sequence[Any] | None:
        """Return arguments in the dtypes to which Paddle promotes them; None for the same.

        Raises `DTypeError` for tensors of an integer and a float dtype, and of different integers.
        """
        places = _PAIRED.get(function.__name__)
        if places is not None and len(args) > places[1]:
            x, y = args[places[0]], args[places[1]]
            if isinstance(x, Handle) and isinstance(y, Handle) and x.type.dtype != y.type.dtype:
                _require_promotable(function.__name__, x, y)
        return promote_arguments(function, args, dtype_or_default(None), is_ranked=True)

    def dim(self) -> int:
        """Return the number of axes."""
        return len(self.type.shape)

    ndimension = dim

    def element_size(self) -> int:
        """Return the number of bytes of an element."""
        return self.type.dtype.itemsize

    def cpu(self) -> Any:
        """Return the tensor itself, as there is no other place."""
        return self


def _require_promotable(name: str, x: Handle, y: Handle) -> None:
    """Raise for dtypes that Paddle does not promote."""
    first, second = x.type.dtype, y.type.dtype
    if first == second or not (x.type.shape and y.type.shape):
        return
    if first.kind not in "fc" or second.kind not in "fc":
        raise DTypeError(
            f"{name}: type promotion is between floats and complex numbers, or with a tensor of no "
            f"axes, not of {x.type} and {y.type}",
            hint="x.astype(...) converts one of them",
        )


class Variable(Methods, ParameterAttributes):
    """`pg.Variable` with Paddle's methods: what is computed with it has them, too."""

    __slots__ = ()

    @classmethod
    def operands(cls, function: Callable[..., Any], args: Sequence[Any]) -> Sequence[Any] | None:
        """Return arguments as `Methods.operands` does, with the values assigned to variables."""
        found = current_operands(args)
        return super().operands(function, found) or found

    @property
    def is_leaf(self) -> bool:
        """Return whether it is an input or a parameter, and not computed."""
        recorder: Any = self.recorder
        return recorder.definition(self.value) is None
