"""The closed set of primitives; importing this package registers all of them."""

from primgraph.primitives import (
    bits,
    constants,
    control,
    elementwise,
    indexing,
    linalg,
    logic,
    parts,
    reductions,
    running,
    shapes,
    sorting,
    special,
    spectra,
    systems,
    windows,
)

__all__ = [
    "bits",
    "constants",
    "control",
    "elementwise",
    "indexing",
    "linalg",
    "logic",
    "parts",
    "reductions",
    "running",
    "shapes",
    "sorting",
    "special",
    "spectra",
    "systems",
    "windows",
]
