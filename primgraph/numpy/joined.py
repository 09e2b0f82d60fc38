"""Arrays joined by an index: `r_` and `c_`, with variables among what is joined."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.operators.lazy_loading import functions
from primgraph.operators.variable import handles

_WEAK = (bool, complex, float, int)


@final
class Joined:
    """Join the parts of an index along the first axis, or vectors as columns."""

    def __init__(self, numpys: Any, columns: bool) -> None:
        self._numpys = numpys
        self._columns = columns

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not handles(parts):
            return self._numpys[key]
        if any(isinstance(part, str) for part in parts):
            raise ArgumentError("directives in text are for arrays that hold no variables")
        axis = -1 if self._columns else 0
        shaped = [self._shape_part(p) for p in parts]
        # Python's numbers take the dtype of what they are joined to.
        kinds = [p if type(p) in _WEAK else x.dtype for p, x in zip(parts, shaped, strict=True)]
        dtype = np.result_type(*kinds)
        return functions["concatenate"]([functions["astype"](x, dtype) for x in shaped], axis)

    def _shape_part(self, part: Any) -> Any:
        found = np.r_[part] if isinstance(part, slice) else functions["array"](part)
        if not self._columns:
            return found if found.ndim else functions["reshape"](found, (1,))
        return found if found.ndim > 1 else functions["reshape"](found, (-1, 1))

    def __len__(self) -> int:
        return 0


r_ = Joined(np.r_, columns=False)
c_ = Joined(np.c_, columns=True)
