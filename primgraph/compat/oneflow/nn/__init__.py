"""Networks: modules, layers and functions as in torch, and graphs, by the names of `oneflow.nn`."""

# Names come from torch's module as well.
# ruff: noqa: F821

from typing import TYPE_CHECKING, Any

from primgraph.compat.mirror import mirror

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    mirror(globals())
    from primgraph.compat.oneflow.nn import extras
    from primgraph.compat.oneflow.nn.graph import Graph as Graph

    _FROM_UTILS = ("clip_grad_norm_", "clip_grad_value_", "remove_weight_norm", "weight_norm")
    globals().update({name: getattr(extras, name) for name in extras.__all__})
    globals().update({name: getattr(utils, name) for name in _FROM_UTILS})
    globals()["__all__"] += [*extras.__all__, *_FROM_UTILS, "Graph"]
    for _name in extras.FUNCTIONS:
        setattr(functional, _name, getattr(extras, _name))
    functional.__all__ += extras.FUNCTIONS
