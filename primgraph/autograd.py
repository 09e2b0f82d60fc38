"""Gradients of tensors, under the names that torch gives them."""

from primgraph.eager.derivatives.backward import backward, grad

__all__ = ["backward", "grad"]


def __dir__() -> list[str]:
    return sorted(__all__)
