"""Python's `math` by its names, for programs: numbers as `math` has them, variables as NumPy."""

from __future__ import annotations

import math
from typing import Any, final

from primgraph.ir.dims import Dim
from primgraph.operators.lazy_loading import named_function
from primgraph.operators.variable import handles

# Functions of Python's that have another name here, or the same.
_NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "degrees": "rad2deg", "pow": "power",
    "comb": "elementwise.special_compositions.comb",
    "gamma": "elementwise.special_functions.gamma",
    "lgamma": "elementwise.special_functions.gammaln",
    "radians": "deg2rad",
    **{name: name for name in (
        "cbrt", "ceil", "copysign", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "fabs",
        "floor", "fmod", "hypot", "isclose", "isfinite", "isinf", "isnan", "ldexp", "log", "log10",
        "log1p", "log2", "modf", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    )},
}  # fmt: skip


@final
class _Mathematics:
    """The module `math`, whose functions record where they are given variables."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(math, name)
        if name not in _NAMES:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            args = tuple([named_function("asarray")(a) if type(a) is Dim else a for a in args])
            if not handles((*args, *kwargs.values())):
                return found(*args, **kwargs)
            if name == "log" and len(args) == 2:
                return named_function("log")(args[0]) / named_function("log")(args[1])
            return named_function(_NAMES[name])(*args, **kwargs)

        return call


mathematics = _Mathematics()
