"""What tensors are made of: the elements of arrays and numbers. Variables have none yet."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from primgraph.base.user_lines import caller
from primgraph.errors import WRITTEN, BuildError
from primgraph.ir.types import as_dtype
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable


def elements_of(data: Any, dtype: Any = None) -> npt.NDArray[Any]:
    """The elements of an array, a number, or nested lists of them; in `dtype`, where one is given.

    Raises `ArgumentError` for what is no array, `BuildError` for a variable, with both lines.
    """
    if isinstance(data, Variable):
        raise BuildError(
            "a variable of a program has no elements before the program runs",
            origin=made_at(data),
            hint="run the program, and make a tensor of what it returns",
        )
    return array_of(data, None if dtype is None else as_dtype(dtype))


def made_at(variable: Variable) -> list[str]:
    """Lines for an error: the user's, and where a variable comes from."""
    place = caller()
    known = dict(variable.recorder.described(variable.value))
    made = f"{variable.type} was made at {known['line']}" if known.get("line") else ""
    return [f"{WRITTEN}  {place}   {place.text}".rstrip(), *filter(None, [made])]
