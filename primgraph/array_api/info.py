"""Inspection API of the standard: devices, dtypes and capabilities of this namespace."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from primgraph.array_api.types import require_cpu
from primgraph.defaults import get_default_dtype
from primgraph.ir.types import DTYPE_OF_NAME

__all__ = ["__array_namespace_info__"]

# The kinds of the standard, in its words.
_KINDS = (
    "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
    "numeric",
)  # fmt: skip


@final
class Info:
    """Devices, dtypes and what the namespace can do."""

    def capabilities(self) -> Any:
        """Return capabilities: boolean indexing, data-dependent shapes of known elements, and the
        maximum number of axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device of arrays for which none is given."""
        return "cpu"

    def default_dtypes(self, *, device: Any = None) -> Any:
        """The dtypes of arrays for which none is given."""
        require_cpu(device)
        real = np.dtype(get_default_dtype())
        return {
            "real floating": real,
            "complex floating": np.result_type(real, np.complex64),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.int64),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> Any:
        """The dtypes by name: all, or those of a kind, or of several."""
        require_cpu(device)
        found = {str(d): d for d in DTYPE_OF_NAME.values() if d != np.float16}
        if kind is None:
            return found
        return {name: d for name, d in found.items() if np.isdtype(d, kind)}

    def devices(self) -> Any:
        """All devices: there is one."""
        return ["cpu"]


def __array_namespace_info__() -> Info:
    """Return the inspection object for devices, dtypes and capabilities."""
    return Info()
