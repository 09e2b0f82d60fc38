"""The base class of modules: torch's, with OneFlow's methods for places."""

from typing import TYPE_CHECKING, Any

from primgraph.compat.mirror import mirror

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    mirror(globals())


def _to_global(self: Any, placement: Any = None, sbp: Any = None) -> Any:
    """Return the module: there is one rank, which has all of it."""
    return self


Module.to_global = Module.to_local = Module.to_consistent = _to_global
