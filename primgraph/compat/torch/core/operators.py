"""Operators of tensors with torch's promotion of dtypes, indices and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Self

import numpy as np

from primgraph.compat.promotion import promote_arguments
from primgraph.compat.torch import framework, functions
from primgraph.compat.torch.core.indices import as_masks, checked_index, in_two_steps, is_plain
from primgraph.errors import ArgumentError, DTypeError, UnsupportedDTypeError
from primgraph.operators.handle import Handle

# Products of one dtype: torch does not promote their operands.
_OF_ONE_DTYPE = ("matmul", "dot", "inner", "tensordot", "einsum", "linear")
_ARITHMETIC = frozenset((
    *("add", "subtract", "multiply", "divide", "power", "remainder", "floor_divide", "bitwise_and"),
    *("bitwise_or", "bitwise_xor", "less", "less_equal", "greater", "greater_equal", "matmul"),
))  # fmt: skip
# Functions of the order of numbers: torch has none for complex numbers.
_ORDERED = frozenset((
    *("less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "fmax", "fmin"),
    *("clip", "max", "min", "argmax", "argmin", "sort", "argsort", "searchsorted", "isin"),
))  # fmt: skip
_NUMBERS = (int, float, complex)
# Objects whose elements `x == other` compares; of others it is False.
_NUMERIC = (*_NUMBERS, Handle, np.ndarray, np.generic)


class Operators(Handle):
    """Operators and their dtypes, for tensors and for variables of programs."""

    __slots__ = ()

    @classmethod
    def operands(cls, function: Callable[..., Any], args: Sequence[Any]) -> Sequence[Any] | None:
        """Return arguments in the dtypes to which torch promotes them; None for the same.

        Raises `DTypeError` for products of different dtypes, and `UnsupportedDTypeError` for the
        order of complex numbers.
        """
        if function.__name__ in _ORDERED:
            _refuse_complex(function.__name__, args)
        if function.__name__ in _ARITHMETIC and any(isinstance(x, list | tuple) for x in args):
            kinds = " and ".join(repr(type(x).__name__) for x in args[:2])
            raise ArgumentError(
                f"unsupported operand type(s) for {function.__name__}: {kinds}",
                hint="torch.tensor([...]) makes a tensor of a list",
            )
        if function.__name__ in _OF_ONE_DTYPE:
            dtypes = {x.type.dtype for x in args if isinstance(x, Handle)}
            if len(dtypes) > 1:
                first, second = sorted(map(str, dtypes))
                raise DTypeError(
                    f"expected both operands of {function.__name__} to have the same dtype, but "
                    f"got: {first} and {second}",
                    hint="convert one of them: x.double(), or x.to(y.dtype)",
                )
            return None
        return promote_arguments(function, args, framework.dtype_or_default(None), is_ranked=True)

    def __getitem__(self, index: Any) -> Self:
        if is_plain(index):
            return super().__getitem__(index)
        known = checked_index(as_masks(index))
        steps = in_two_steps(known)
        if steps is None:
            return super().__getitem__(known)
        first, second = steps
        return super().__getitem__(first)[second]

    def __eq__(self, other: Any) -> Any:
        return super().__eq__(other) if isinstance(other, _NUMERIC) else NotImplemented

    def __ne__(self, other: Any) -> Any:
        return super().__ne__(other) if isinstance(other, _NUMERIC) else NotImplemented

    __hash__ = Handle.__hash__

    def __pos__(self) -> Self:
        return self

    def __matmul__(self, other: Any) -> Self:
        return NotImplemented if isinstance(other, _NUMBERS) else super().__matmul__(other)

    def __floordiv__(self, other: Any) -> Self:
        found: Self = functions.floor_divide(self, other)
        return found

    def __rfloordiv__(self, other: Any) -> Self:
        found: Self = functions.floor_divide(other, self)
        return found

    def __mod__(self, other: Any) -> Self:
        found: Self = functions.remainder(self, other)
        return found

    def __rmod__(self, other: Any) -> Self:
        found: Self = functions.remainder(other, self)
        return found

    def __lshift__(self, other: Any) -> Self:
        found: Self = functions.bitwise_left_shift(self, other)
        return found

    def __rlshift__(self, other: Any) -> Self:
        found: Self = functions.bitwise_left_shift(other, self)
        return found

    def __rshift__(self, other: Any) -> Self:
        found: Self = functions.bitwise_right_shift(self, other)
        return found

    def __rrshift__(self, other: Any) -> Self:
        found: Self = functions.bitwise_right_shift(other, self)
        return found

    def __delitem__(self, index: Any) -> NoReturn:
        raise ArgumentError(
            "Tensor does not support deleting items", hint="torch.cat joins the slices that remain"
        )

    def __rsub__(self, other: Any) -> Self:
        found: Self = functions.sub(other, self)
        return found

    def __sub__(self, other: Any) -> Self:
        found: Self = functions.sub(self, other)
        return found


def _refuse_complex(name: str, args: Sequence[Any]) -> None:
    """Raise `UnsupportedDTypeError` if there are complex numbers among the arguments."""
    for x in args:
        if isinstance(x, complex) or (isinstance(x, Handle) and x.type.is_complex):
            raise UnsupportedDTypeError(
                f"{name} is not implemented for complex numbers, which have no order",
                hint="compare x.real, or x.abs()",
            )
