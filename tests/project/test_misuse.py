"""Every argument of every operator gets what it does not take: never a bare Python exception."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph.errors import PrimgraphError


class Unknown:
    """An object of a class that nobody has heard of."""


WRONG: dict[str, Any] = {
    "none": None,
    "text": "abc",
    "bytes": b"a",
    "fraction": 1.5,
    "negative": -7,
    "huge": 10**30,
    "nan": math.nan,
    "complex": 1j,
    "flag": True,
    "objects": np.array([object()]),
    "matrix": np.ones((2, 2)),
    "ragged": [1, [2, 3]],
    "texts": ["a", "b"],
    "empty": [],
    "mapping": {},
    "set": {1},
    "slice": slice(1, 2),
    "type": int,
    "function": len,
    "object": Unknown(),
}

# What the other arguments are, by their names; those of one operator alone after its own.
RIGHT: dict[str, Any] = {
    "shape": (3, 4), "axis": 0, "axes": (0, 1), "pad_width": 1, "repeats": 2, "reps": 2,
    "shift": 1, "indices_or_sections": 3, "start": 1, "stop": 3, "depth": 3, "N": 3, "value": 1.0,
    "fill_value": 1.0, "dtype": "float64", "key": 1, "source": 0, "destination": 1, "axis1": 0,
    "axis2": 1, "starts": [0, 0], "ends": [1, 1], "index": [0, 1], "indices": [0, 1],
    "labels": [0, 1, 2], "updates": np.ones((2, 4)), "subscripts": "ij->i",
    "linear.weight": np.ones((4, 2)), "take_along_axis.indices": np.zeros((1, 4), int),
    "getitem.index": 0, "set_slice.index": 0, "set_slice.y": 1.0,
}  # fmt: skip


def right(name: str, parameter: str, x: pg.Variable) -> Any:
    """A value that the operator takes for that parameter."""
    if parameter in ("arrays", "inputs"):
        return [x, x]
    return RIGHT.get(f"{name}.{parameter}", RIGHT.get(parameter, x))


@pytest.mark.parametrize("name", pg.operators.__all__)
def test_an_operator_tells_what_is_wrong_with_each_argument(name: str) -> None:
    function = getattr(pg, name)
    parameters = inspect.signature(function).parameters
    refused: list[str] = []
    for wrong in parameters:
        for value in (*WRONG.values(), "a list of variables"):
            with pg.Program():
                x = pg.data("x", (3, 4))
                given = [x, x] if isinstance(value, str) and " " in value else value
                arguments = {
                    p.name: given if p.name == wrong else right(name, p.name, x)
                    for p in parameters.values()
                    if p.name == wrong or p.default is p.empty
                }
                several = {"einsum": "operands", "ix_": "args"}.get(name)
                operands = [arguments.pop(several)] if several else []
                if name == "einsum":
                    operands.insert(0, arguments.pop("subscripts"))
                try:
                    function(*operands, **arguments)
                except PrimgraphError as error:
                    refused.append(str(error))
    assert len(refused) >= len(parameters)
    assert [m for m in refused if "written here:  test_misuse.py:" not in m] == []
