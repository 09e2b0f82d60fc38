"""Calls of a primitive that has no card, through its own `impl`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.codegen.plan.schedule import Step
from primgraph.errors import InternalError


def caller_of(step: Step) -> Callable[..., Any]:
    """The primitive of `step` as a function of arrays; results have the declared types.

    They are copies, because `impl` may hand out its operand or an array that it keeps. There is
    one result, or a tuple of them for a primitive that has several.
    """
    op, params, types = step.op, step.params, step.results

    def call(*arrays: Any) -> Any:
        results = []
        for found, type in zip(op.evaluate(arrays, params), types, strict=True):
            array = np.array(found, type.dtype, order="C")
            if array.shape != type.shape:
                raise InternalError(f"{op.name} gave shape {array.shape}, not {type.shape}")
            results.append(array)
        return tuple(results) if op.multiple else results[0]

    return call
