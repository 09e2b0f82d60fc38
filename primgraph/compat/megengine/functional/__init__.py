"""Functions of tensors by the names that they have in `megengine.functional`."""

# All that is imported is public.
# ruff: noqa: F401

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.megengine.functional import (
    elemwise,
    loss,
    math,
    metric,
    nn,
    tensor,
    utils,
    vision,
)
from primgraph.compat.megengine.functional.elemwise import *  # noqa: F403
from primgraph.compat.megengine.functional.loss import *  # noqa: F403
from primgraph.compat.megengine.functional.math import *  # noqa: F403
from primgraph.compat.megengine.functional.metric import topk_accuracy
from primgraph.compat.megengine.functional.nn import *  # noqa: F403
from primgraph.compat.megengine.functional.tensor import *  # noqa: F403
from primgraph.operators import einsum

__all__ = sorted({
    *elemwise.__all__,
    *math.__all__,
    *nn.__all__,
    *tensor.__all__,
    "einsum",
    "topk_accuracy",
})  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
