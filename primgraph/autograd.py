"""Gradients of tensors, under the names that torch gives them."""

from primgraph.eager.backward import backward, grad

__all__ = ["backward", "grad"]
