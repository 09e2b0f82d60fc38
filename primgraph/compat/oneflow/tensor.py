"""The tensor of OneFlow: torch's, which tells its dtype."""

from typing import TYPE_CHECKING, Any

from primgraph.compat.mirror import mirror

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    mirror(globals())
    globals()["Tensor"]._shows_dtype = True
