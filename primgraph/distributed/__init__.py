"""Distributed computation over data larger than one machine, on the workers of dask clients."""

from typing import TYPE_CHECKING, NoReturn

from primgraph.distributed.chunks import Chunks, chunks
from primgraph.distributed.ensembles import vmap
from primgraph.distributed.mapped import jacobian, map
from primgraph.distributed.objective import (
    ChunkedObjective,
    gauss_newton_product,
    hessian_product,
    objective,
    plan,
    value_and_grad,
)
from primgraph.distributed.plans import Plan
from primgraph.errors import unknown_name

__all__ = [
    "ChunkedObjective",
    "Chunks",
    "Plan",
    "chunks",
    "gauss_newton_product",
    "hessian_product",
    "jacobian",
    "map",
    "objective",
    "plan",
    "value_and_grad",
    "vmap",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.distributed", name, __all__)

    def __dir__() -> list[str]:
        return sorted(__all__)
