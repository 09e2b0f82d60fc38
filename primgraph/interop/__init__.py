"""Programs of other libraries as graphs, and graphs as programs of other libraries."""

from primgraph.interop.imported import Imported
from primgraph.interop.lacking import VersionWarning

__all__ = ["Imported", "VersionWarning"]
