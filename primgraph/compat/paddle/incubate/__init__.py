"""The part of `paddle.incubate` that is about derivatives."""

from primgraph.compat.paddle.incubate import autograd

__all__ = ["autograd"]


def __dir__() -> list[str]:
    return sorted(__all__)
