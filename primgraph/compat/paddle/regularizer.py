"""Weight decay by the names that it has in `paddle.regularizer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.errors import CheckError, MissingMethodError
from primgraph.operators import sign

__all__ = ["L1Decay", "L2Decay"]


class WeightDecayRegularizer:
    """Base class of rules that return what is added to the gradient of a parameter."""

    def __call__(self, param: Any, grad: Any = None, block: Any = None) -> Any:
        """Return what is added to the gradient of `param`."""
        raise MissingMethodError(f"{type(self).__name__} does not define __call__")


class _Decay(WeightDecayRegularizer):
    """Decay by a coefficient."""

    def __init__(self, coeff: float = 0.0) -> None:
        if coeff is None:
            raise CheckError("coeff is a number, not None")
        self._coeff = coeff

    def __str__(self) -> str:
        return f"{type(self).__name__}, coeff={self._coeff:f}"


class L1Decay(_Decay):
    """Add `coeff * sign(w)`: the penalty is `coeff * sum(abs(w))`.

    >>> decay = paddle.regularizer.L1Decay(0.1)
    >>> print(decay)
    L1Decay, coeff=0.100000
    """

    def __call__(self, param: Any, grad: Any = None, block: Any = None) -> Any:
        """Return what is added to the gradient of `param`."""
        return sign(param) * self._coeff


class L2Decay(_Decay):
    """Add `coeff * w`: the penalty is `coeff / 2 * sum(w**2)`.

    >>> decay = paddle.regularizer.L2Decay(0.1)
    >>> print(decay)
    L2Decay, coeff=0.100000
    """

    def __call__(self, param: Any, grad: Any = None, block: Any = None) -> Any:
        """Return what is added to the gradient of `param`."""
        return param * self._coeff


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
