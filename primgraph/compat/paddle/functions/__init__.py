"""Functions of tensors, with Paddle's names for them and for their arguments."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from primgraph.compat.paddle.core.methods import Methods, Variable
from primgraph.compat.paddle.functions import elementwise, indexing, others, products, reductions
from primgraph.compat.paddle.functions import shapes as shapes
from primgraph.compat.paddle.functions.elementwise import *  # noqa: F403
from primgraph.compat.paddle.functions.indexing import *  # noqa: F403
from primgraph.compat.paddle.functions.others import *  # noqa: F403
from primgraph.compat.paddle.functions.products import *  # noqa: F403
from primgraph.compat.paddle.functions.reductions import *  # noqa: F403
from primgraph.compat.paddle.functions.shapes import *  # noqa: F403

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = [
    *elementwise.__all__,
    *indexing.__all__,
    *others.__all__,
    *products.__all__,
    *reductions.__all__,
    *shapes.__all__,
]

# Functions whose first argument is no tensor that they are about; all others are methods, too.
_NO_METHODS = (
    "add_n", "block_diag", "broadcast_shape", "broadcast_shapes", "broadcast_tensors",
    "cartesian_prod", "cat", "clone", "column_stack", "complex", "concatenate", "dstack", "einsum",
    "finfo", "hstack", "iinfo", "is_tensor", "meshgrid", "polar", "row_stack", "searchsorted",
    "shape", "softmax", "tolist", "vstack",
)  # fmt: skip

for _name in __all__:
    if _name not in _NO_METHODS:
        setattr(Methods, _name, globals()[_name])


def _takes_several(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method take integers one by one, as well as in a list."""

    @wraps(function)
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 1 and builtins.all(isinstance(a, int) for a in args):
            return function(x, args, **kwargs)
        return function(x, *args, **kwargs)

    return call


def _transposed(x: Any, *perm: Any, **kwargs: Any) -> Any:
    """Permute the axes, or exchange two."""
    if len(perm) == 2 and builtins.all(isinstance(a, int) for a in perm):
        return globals()["swapaxes"](x, *perm)
    return globals()["transpose"](x, *perm, **kwargs)


for _name in ("expand", "permute", "reshape", "tile", "view"):
    setattr(Methods, _name, _takes_several(globals()[_name]))
setattr(Methods, "transpose", _transposed)  # noqa: B010
setattr(Methods, "astype", globals()["cast"])  # noqa: B010
setattr(Variable, "clone", globals()["clone"])  # noqa: B010
