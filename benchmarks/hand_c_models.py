"""The workloads of hand_models.c: which sizes they have, and their arrays."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from cases import BENDING, EPSILON, STEEPNESS, VISCOSITY, Array, Case
from hand_c_build import Built, compiled, pointers

SOURCE = Path(__file__).with_name("hand_models.c")


def _function(name: str, variant: str, array: Array, **sizes: float) -> Any:
    macros = {name.upper(): 1, **sizes}
    if array.dtype.itemsize == 4:
        macros["SINGLE"] = 1
    head = "".join(f"#define {key} {value}\n" for key, value in macros.items())
    function = getattr(compiled(head + SOURCE.read_text(), variant), name)
    function.restype = ctypes.c_double
    return function


def _built(name: str, variant: str, inputs: list[Array], wanted: slice, **sizes: float) -> Built:
    """`double name(inputs, outputs)` of hand_models.c; there is an output for each `wanted` input.

    `sizes` are its macros.
    """
    function = _function(name, variant, inputs[0], **sizes)
    outputs = [np.empty_like(a) for a in inputs[wanted]]
    bound = pointers(*inputs, *outputs)

    def run(*_: Array) -> list[Any]:
        return [function(*bound), *outputs]

    run.keeps = inputs  # type: ignore[attr-defined]
    return run, inputs


def classifier(case: Case, variant: str) -> Built:
    inputs = case.arrays()
    (count, width), (hidden, classes) = inputs[0].shape, inputs[4].shape
    sizes = {"B": count, "IN": width, "HIDDEN": hidden, "OUT": classes}
    return _built("classifier", variant, inputs, slice(2, None), **sizes)


def mixture(case: Case, variant: str) -> Built:
    inputs, sizes = case.arrays(), {name: case[name] for name in ("K", "N")}
    return _built("mixture", variant, inputs, slice(0, 3), D=case["d"], **sizes)


def atoms(case: Case, variant: str) -> Built:
    return _built("atoms", variant, case.arrays(), slice(0, 1), N=case["n"])


def block(case: Case, variant: str) -> Built:
    numbers = {"EPSILON": EPSILON, "STEEPNESS": STEEPNESS, "BENDING": BENDING}
    sizes = {"R": case["rows"], "D": case["d"], "HEADS": case["heads"]}
    return _built("block", variant, case.arrays(), slice(2, None), **sizes, **numbers)


def lstm(case: Case, variant: str) -> Built:
    sizes = {name: case[name] for name in "TBH"}
    return _built("lstm", variant, case.arrays(), slice(2, None), **sizes)


def pinn(case: Case, variant: str) -> Built:
    """W2, and W12, whose inputs begin with points inside and what is known of the edge."""
    inputs = case.arrays()
    points, *edge = inputs[:3] if case.workload == "W12" else inputs[:1]
    weights = inputs[1 + len(edge) :]
    sizes = {"N": len(points), "M": weights[0].shape[1], "HIDDEN": len(weights) // 2 - 1}
    if edge:
        sizes["EDGE"] = len(edge[0])
    function = _function("pinn", variant, points, VISCOSITY=VISCOSITY, **sizes)
    outputs = [np.empty_like(a) for a in weights]
    given, places = pointers(points, *(edge or [points, points])), ctypes.c_void_p * len(weights)
    both = places(*pointers(*weights)), places(*pointers(*outputs))

    def run(*_: Array) -> list[Any]:
        return [function(*given, *both), *outputs]

    run.keeps = inputs  # type: ignore[attr-defined]
    return run, inputs
