"""Convert arrays, numbers and nested lists to the elements of a tensor."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from primgraph.base.user_lines import caller
from primgraph.errors import WRITTEN, BuildError
from primgraph.ir.types import as_dtype
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable


def elements_of(data: Any, dtype: Any = None) -> npt.NDArray[Any]:
    """Return the elements of an array, a number, or nested lists; in `dtype`, if given.

    Raises `ArgumentError` for other objects, `BuildError` with both lines for a variable.
    """
    if isinstance(data, Variable):
        raise BuildError(
            "a variable of a program has no elements before the program runs",
            origin=made_at(data),
            hint="run the program, and make a tensor of what it returns",
        )
    return array_of(data, None if dtype is None else as_dtype(dtype))


def made_at(variable: Variable) -> list[str]:
    """Return the lines for an error: the user's line, and the line that created a variable."""
    place = caller()
    known = dict(variable.recorder.described(variable.value))
    made = f"{variable.type} was made at {known['line']}" if known.get("line") else ""
    return [f"{WRITTEN}  {place}   {place.text}".rstrip(), *filter(None, [made])]
