"""Functions of tensors, with torch's names for them and for their arguments."""

from typing import TYPE_CHECKING, Any

from primgraph.compat.torch.functions import (
    arithmetic,
    compositions,
    cumulative,
    elements,
    elementwise,
    joining,
    matrices,
    ordering,
    places,
    products,
    properties,
    reductions,
    scatter,
    shapes,
)

_MODULES: tuple[Any, ...] = (
    *(elementwise, arithmetic, compositions, elements, products, reductions, cumulative),
    *(shapes, joining, ordering, scatter, properties, matrices, places),
)
__all__ = [name for module in _MODULES for name in module.__all__]
globals().update({name: getattr(m, name) for m in _MODULES for name in m.__all__})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

    flatten: Any
