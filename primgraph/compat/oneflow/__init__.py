"""OneFlow's API for tensors and their derivatives.

    import primgraph.compat.oneflow as flow

Use it in place of `import oneflow as flow`; the rest of the program stays as it is. OneFlow's
functions and methods are torch's: see `primgraph.compat.torch` for them and for the differences.
Modules such as `oneflow.nn.functional` have the code of torch's: see `primgraph.compat.mirror`.
"""

from typing import TYPE_CHECKING, Any

from primgraph.compat.mirror import mirror

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    # OneFlow has no transforms of functions.
    mirror(globals(), without=("func", "vmap"))
