"""Static arguments of custom functions: those that are not arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final
from weakref import WeakValueDictionary

import numpy as np

from primgraph.custom.primitives import Static
from primgraph.errors import ArgumentError
from primgraph.ir.params import Named
from primgraph.operators.handle import Handle
from primgraph.operators.variable import handles

# Types that can be parameters of equations unchanged.
_PLAIN = frozenset({bool, int, float, str, type(None)})


@final
class Opaque(Named):
    """Wrapper of any object as a parameter of an equation."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__(f"object {getattr(value, '__qualname__', type(value).__qualname__)}")
        self.value = value


# Marks a list among parameters, where it is a tuple with this first item.
_LIST = Named("list")
_opaque: WeakValueDictionary[int, Opaque] = WeakValueDictionary()


def is_operand(argument: Any) -> bool:
    """Return whether an argument is an array: a handle, or a NumPy array."""
    return isinstance(argument, Handle | np.ndarray | np.generic)


def split_arguments(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], fixed: Iterable[int] = ()
) -> tuple[Static, list[Any]]:
    """Split the arguments of a call into static ones and arrays, which are positional.

    Raises `ArgumentError` for arrays in containers, for arrays by name, and for arrays at the
    positions in `fixed`.
    """
    static: list[tuple[int | str, Any]] = []
    operands: list[Any] = []
    kept = set(fixed)
    for position, argument in enumerate(args):
        if not is_operand(argument):
            static.append((position, _freeze_argument(name, argument)))
        elif position in kept:
            raise ArgumentError(
                f"argument {position} of {name} is in nondiff_argnums, and an array is given",
                hint="leave it out there, and let its gradient be None",
            )
        else:
            operands.append(argument)
    for key, argument in kwargs.items():
        if is_operand(argument):
            raise ArgumentError(f"{name} takes arrays by position, and {key!r} is one")
        static.append((key, _freeze_argument(name, argument)))
    return tuple(static), operands


def _freeze_argument(name: str, argument: Any) -> Any:
    if isinstance(argument, list | tuple) and handles(argument):
        raise ArgumentError(
            f"{name} takes arrays as arguments of their own, not in a {type(argument).__name__}",
            hint="pass them one by one: f(*arrays)",
        )
    return freeze_value(argument)


def freeze_value(value: Any) -> Any:
    """Freeze `value` as a parameter of an equation; `thaw_value` inverts this."""
    if type(value) in _PLAIN or isinstance(value, np.dtype):
        return value
    if type(value) is tuple:
        return tuple([freeze_value(v) for v in value])
    if type(value) is list:
        return (_LIST, *[freeze_value(v) for v in value])
    found = _opaque.get(id(value))
    if found is None or found.value is not value:
        found = _opaque[id(value)] = Opaque(value)
    return found


def thaw_value(value: Any) -> Any:
    """Return the value of a frozen parameter."""
    if isinstance(value, Opaque):
        return value.value
    if type(value) is tuple:
        items = [thaw_value(v) for v in value if v is not _LIST]
        return tuple(items) if len(items) == len(value) else items
    if isinstance(value, Named):
        raise ArgumentError(
            f"{value.name!r}, which a custom function was given, is not known here",
            hint="only numbers, strings, tuples of them and dtypes are kept in texts and files",
        )
    return value


def arrange_arguments(static: Static, operands: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and keyword arguments of a call, with `operands` as the arrays."""
    fixed = {key: thaw_value(value) for key, value in static}
    waiting = iter(operands)
    total = len(operands) + sum(isinstance(key, int) for key in fixed)
    args = [fixed[i] if i in fixed else next(waiting) for i in range(total)]
    return args, {key: value for key, value in fixed.items() if isinstance(key, str)}
