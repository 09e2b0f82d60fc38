"""Samples of the primitives of `primgraph.primitives.running`."""

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

from samples.rows import DIFFERENCES, NUMBERS, Row, along_axis, lines


def cumprod_by_loop(x: np.ndarray, *, axis: int) -> np.ndarray:
    return lines(lambda line: list(accumulate(line, lambda a, b: a * b)), x, axis)


def running_by_loop(extreme: Callable[..., Any]) -> Callable[..., np.ndarray]:
    return lambda x, *, axis: lines(lambda line: list(accumulate(line, extreme)), x, axis)


ROWS: dict[str, Row] = {
    "cumprod": along_axis(NUMBERS, reference=cumprod_by_loop),
    "cummax": along_axis(NUMBERS, reference=running_by_loop(max), analytic=DIFFERENCES),
    "cummin": along_axis(NUMBERS, reference=running_by_loop(min), analytic=DIFFERENCES),
}
