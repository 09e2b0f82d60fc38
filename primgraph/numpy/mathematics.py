"""Python's `math` by its names, for programs: numbers as `math` has them, variables as NumPy."""

from __future__ import annotations

import math
from typing import Any, final

from primgraph.ir.dims import Dim
from primgraph.operators.lazy_loading import named_function
from primgraph.operators.names import rows
from primgraph.operators.variable import handles


@final
class _Mathematics:
    """The module `math`, whose functions record where they are given variables."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(math, name)
        row = rows("math").get(name)
        if row is None:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            args = tuple([named_function("asarray")(a) if type(a) is Dim else a for a in args])
            if not handles((*args, *kwargs.values())):
                return found(*args, **kwargs)
            if name == "log" and len(args) == 2:
                return named_function("log")(args[0]) / named_function("log")(args[1])
            return row.load()(*args, **kwargs)

        return call


mathematics = _Mathematics()
