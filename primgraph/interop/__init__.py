"""Programs of other libraries as graphs, and graphs as programs of other libraries."""

from primgraph.interop.imported import Imported
from primgraph.interop.lacking import VersionWarning
from primgraph.interop.sympy import from_sympy

__all__ = ["Imported", "VersionWarning", "from_sympy"]
