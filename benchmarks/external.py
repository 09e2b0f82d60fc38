"""Tools whose programs lie in a folder of their own, as modules `tool_<name>`.

Such a module has `variants(workload, params)`, and `build(workload, variant, params, data)`,
which gives a function of no arguments, or None for what it does not have. `params` are those of
cases.py, and `data` are its arrays, weights in a list of their own. A tool may leave the value
of a function out of its results and give derivatives only.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Array, Case

# How many arrays come before the list of weights.
BEFORE_WEIGHTS = {"W2": 1, "W3": 2}


class External:
    """A module of such a folder."""

    def __init__(self, name: str, folder: str) -> None:
        sys.path.insert(0, folder)
        self.module = importlib.import_module(f"tool_{name}")

    def variants(self, case: Case) -> tuple[str, ...]:
        found = tuple(self.module.variants(case.workload, case.params) or ())
        # Where there is a variant that gives a new array, those that keep one do not compete.
        return ("fresh",) if "fresh" in found else found

    def build(self, case: Case, variant: str = "") -> tuple[Callable[..., list[Any]], list[Any]]:
        call = self.module.build(case.workload, variant, case.params, self._data(case))
        if call is None:
            raise NotImplementedError(f"{case.name} {variant}")

        def run() -> list[Any]:
            results = call()
            return list(results) if isinstance(results, list | tuple) else [results]

        return run, []

    def _data(self, case: Case) -> tuple[Any, ...]:
        arrays: list[Array] = case.arrays()
        if case.workload == "W5" and len(arrays) == 1:
            arrays.append(np.ones_like(arrays[0]))
        before = BEFORE_WEIGHTS.get(case.workload, len(arrays))
        weights = arrays[before:]
        return (*arrays[:before], weights) if weights else tuple(arrays)
