"""What belongs to no single part of Paddle's API: modes, places, default dtype, attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from primgraph import initializers
from primgraph.errors import ArgumentError, DTypeError
from primgraph.ir.types import FLOAT32, DType, as_dtype
from primgraph.operators.variable import Variable
from primgraph.program import create_parameter as _create_parameter
from primgraph.program import current_program

Initializer: TypeAlias = "initializers.Initializer | Callable[..., Any]"

_default_dtype: list[DType] = [FLOAT32]


def enable_static() -> None:
    """Nothing: programs are always built first and run later."""


def disable_static() -> None:
    """Nothing: there is no other mode, so computing with variables still builds a program."""


def in_dynamic_mode() -> bool:
    """False: programs are always built first and run later."""
    return False


def get_default_dtype() -> str:
    """The name of the dtype of what is declared without one: float32, as Paddle has it.

    It is apart from primgraph's own default dtype, which stays what it is.
    """
    return _default_dtype[0].name


def set_default_dtype(d: Any) -> None:
    """Set the dtype of what is declared through this package without one.

    Raises `DTypeError` for anything but a float dtype.
    """
    found = as_dtype(d)
    if found.kind != "f":
        raise DTypeError(f"the default dtype is a float dtype, not {found}")
    _default_dtype[0] = found


def dtype_or_default(dtype: Any) -> DType:
    """The dtype that `dtype` names; the default one for None."""
    return _default_dtype[0] if dtype is None else as_dtype(dtype)


def seed(value: int) -> None:
    """Set the `random_seed` of the program being built; each program has its own."""
    current_program().random_seed = value


@dataclass(frozen=True, slots=True)
class CPUPlace:
    """The processor, which is the only place where programs run."""


@dataclass(frozen=True, slots=True)
class ParamAttr:
    """How a parameter is made: its name and the rule for its first value."""

    name: str | None = None
    initializer: Initializer | None = None


def named_and_initialized(attr: Any, default: Any = None) -> tuple[str | None, Any]:
    """Name and initializer of a parameter with that attribute, None where it does not say.

    An attribute is a `ParamAttr`, a name, an initializer, or None for none of these. Raises
    `ArgumentError` for anything else.
    """
    if attr is None:
        return None, default
    if isinstance(attr, ParamAttr):
        return attr.name, attr.initializer or default
    if isinstance(attr, str):
        return attr, default
    if callable(attr):
        return None, attr
    raise ArgumentError(f"an attribute is a ParamAttr, a name or an initializer, not {attr!r:.60}")


def create_parameter(
    shape: Any,
    dtype: Any = None,
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Variable:
    """`pg.create_parameter` with the name and initializer of `attr`, if it has any."""
    given, rule = named_and_initialized(attr, default_initializer)
    return _create_parameter(shape, dtype_or_default(dtype), name or given, rule, is_bias)


float16 = np.dtype("float16")
float32 = np.dtype("float32")
float64 = np.dtype("float64")
int8 = np.dtype("int8")
int16 = np.dtype("int16")
int32 = np.dtype("int32")
int64 = np.dtype("int64")
uint8 = np.dtype("uint8")
