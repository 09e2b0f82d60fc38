"""Calls of functions with custom derivative rules on the tape."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, final

import numpy as np

from primgraph.eager.steps import Arrays, Step
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.ir.types import TensorType
from primgraph.primitives.elementwise import stop_gradient


@final
class Held(Step):
    """One result of a call, as computed: `place` is its index among the inputs."""

    __slots__ = ("_results",)

    def __init__(self, types: tuple[TensorType, ...], results: int, place: int) -> None:
        reaching = tuple(i for i in range(results, len(types)) if types[i].is_inexact)
        super().__init__(types[place], reaching, (Held, results), place)
        self._results = results

    def __str__(self) -> str:
        return "a custom function"

    def record(self, builder: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        return [builder.emit(stop_gradient, [v], {})[0] for v in operands[: self._results]]

    def evaluate(self, arrays: Arrays) -> np.ndarray[Any, Any]:
        return arrays[self.place]


@lru_cache(maxsize=4096)
def held_step(types: tuple[TensorType, ...], results: int, place: int) -> Held:
    """Return the step of the result at `place`, whose inputs are all `results` and the
    arguments."""
    return Held(types, results, place)
