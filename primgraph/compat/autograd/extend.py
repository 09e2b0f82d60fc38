"""Functions with rules of their own, and vector spaces."""

from primgraph.compat.autograd.boxes import Box
from primgraph.compat.autograd.core import (
    VSpace,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
    vspace,
)
from primgraph.compat.autograd.tracer import notrace_primitive

__all__ = [
    "Box",
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "notrace_primitive",
    "primitive",
    "vspace",
]


def __dir__() -> list[str]:
    return sorted(__all__)
