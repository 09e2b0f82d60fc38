"""Values of graphs, whose arithmetic is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform, final

from primgraph.ir.dims import Dim
from primgraph.ir.types import DType, Shape, TensorType, scalar_of

T = TypeVar("T")

# The function that records an op by its name; the module of ops, which imports this one, adds it.
recorders: list[Callable[[str, Sequence[Value], dict[str, Any]], Value]] = []


@dataclass_transform(eq_default=False)
def record(cls: type[T]) -> type[T]:
    """Add slots and a constructor for the fields to a class, like a dataclass.

    It is not a dataclass, and so not a container that would be flattened.
    """
    made = dataclass(slots=True, eq=False, repr=False)(cls)
    delattr(made, "__dataclass_fields__")
    return made


@final
@record
class Value:
    """Value of a graph: a type, and a name hint. Compared by identity.

    The arithmetic operators record strict primitives (equal types, no promotion) into the
    active builder; a Python scalar becomes a constant of the other operand's type. Derivative
    rules are written with them.

    >>> value = pg.trace(pg.sin, pg.spec(3)).outputs[0]
    >>> print(value.type)
    f64[3]
    """

    type: TensorType
    hint: str = ""

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    def __repr__(self) -> str:
        return f"<value {self.hint or hex(id(self))}: {self.type}>"

    def __copy__(self) -> Value:
        return self

    def __deepcopy__(self, memo: Any) -> Value:
        return self

    def __add__(self, other: Value | complex) -> Value:
        return _strict("add", self, _constant_like(other, self))

    def __sub__(self, other: Value | complex) -> Value:
        return _strict("sub", self, _constant_like(other, self))

    def __rsub__(self, other: complex) -> Value:
        return _strict("sub", _constant_like(other, self), self)

    def __mul__(self, other: Value | complex) -> Value:
        return _strict("mul", self, _constant_like(other, self))

    def __truediv__(self, other: Value | complex) -> Value:
        return _strict("div", self, _constant_like(other, self))

    def __rtruediv__(self, other: complex) -> Value:
        return _strict("div", _constant_like(other, self), self)

    def __neg__(self) -> Value:
        return _strict("neg", self)

    __radd__ = __add__
    __rmul__ = __mul__


def _strict(name: str, *operands: Value) -> Value:
    return recorders[0](name, operands, {})


def _constant_like(other: Value | complex, value: Value) -> Value:
    """A Python scalar as a constant of the type of `value`."""
    if isinstance(other, Value):
        return other
    if isinstance(other, Dim):
        extent = {"size": other, "shape": value.shape, "dtype": value.dtype}
        return recorders[0]("extent", (), extent)
    number = scalar_of(other, value.dtype)
    params = {"value": number, "shape": value.shape, "dtype": value.dtype}
    return recorders[0]("full", (), params)
