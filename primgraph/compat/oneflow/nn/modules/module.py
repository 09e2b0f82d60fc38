"""The base class of modules: torch's, with OneFlow's methods for places."""

from typing import Any

from primgraph.compat.mirror import mirror

mirror(globals())


def _to_global(self: Any, placement: Any = None, sbp: Any = None) -> Any:
    """Return the module: there is one rank, which has all of it."""
    return self


_module = globals()["Module"]
_module.to_global = _module.to_local = _module.to_consistent = _to_global
