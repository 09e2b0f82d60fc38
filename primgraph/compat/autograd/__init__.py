"""The API of HIPS autograd, by its names.

    from primgraph.compat import autograd
    import primgraph.compat.autograd.numpy as np

in place of `import autograd` and `import autograd.numpy as np` is meant to be the only change to a
program. Functions are called on tensors, so that Python may decide by what it computes, and
derivatives are those of `pg.grad` and its kind. These differences remain:

- What a function is called with are tensors and containers of them, and not boxes; `isinstance` and
  `type` of Python tell them apart.
- Tensors may be assigned to, which autograd refuses.
- Conventions of derivatives are primgraph's: ties are split evenly, guards of `where` hold.
- `Box`, `SparseObject` and nodes, of which autograd is made, are not here.
"""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.autograd.builtins import dict, isinstance, list, tuple, type
from primgraph.compat.autograd.core import primitive
from primgraph.compat.autograd.differential_operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)

__all__ = [
    "checkpoint",
    "deriv",
    "dict",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "isinstance",
    "jacobian",
    "list",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_vjp",
    "multigrad_dict",
    "primitive",
    "tensor_jacobian_product",
    "tuple",
    "type",
    "value_and_grad",
    "vector_jacobian_product",
]


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
