"""The part of `paddle.incubate` that is about derivatives."""

from primgraph.compat.paddle.incubate import autograd

__all__ = ["autograd"]
