"""Calls of primitives without a card, through their own `impl`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.codegen.ir.schedule import Step
from primgraph.errors import InternalError
from primgraph.ir.sizes import params_at, type_at


def caller_of(step: Step) -> Callable[..., Any]:
    """Return the primitive of `step` as a function of arrays; results have the declared types.

    Results are copies, as `impl` may return its operand or an array that it keeps. A primitive with
    several results returns a tuple. Symbolic sizes are passed by name.
    """
    op, params, types = step.op, step.params, step.results

    def call(*arrays: Any, **sizes: int) -> Any:
        known = params_at(params, sizes) if sizes else params
        expected = [type_at(t, sizes) for t in types]
        results = []
        for found, type in zip(op.evaluate(arrays, known), expected, strict=True):
            array = np.array(found, type.dtype, order="C")
            if array.shape != type.shape:
                raise InternalError(f"{op.name} gave shape {array.shape}, not {type.shape}")
            results.append(array)
        return tuple(results) if op.multiple else results[0]

    return call
