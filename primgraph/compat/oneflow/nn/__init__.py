"""Networks: modules, layers and functions as in torch, and graphs, by the names of `oneflow.nn`."""

from typing import TYPE_CHECKING, Any

from primgraph.compat.mirror import mirror

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    mirror(globals())
    from primgraph.compat.oneflow.nn.graph import Graph as Graph

    globals()["__all__"].append("Graph")
