"""Transforms of random variables of Paddle: torch's, with names of methods of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primgraph.compat.torch.distributions import transforms as core
from primgraph.errors import MissingMethodError


class Transform(core.Transform):
    """Transform `x -> y`, and its inverse.

    A subclass defines `_forward`, `_inverse` and `_forward_log_det_jacobian`.

    >>> y = paddle.distribution.ExpTransform().forward(paddle.zeros([1]))
    >>> float(y[0])
    1.0
    """

    bijective = True

    def forward(self, x: Any) -> Any:
        """Apply the transform."""
        return self(x)

    def inverse(self, y: Any) -> Any:
        """Apply the inverse."""
        return self._inv_call(y)

    def forward_log_det_jacobian(self, x: Any) -> Any:
        """Return the logarithm of the absolute value of the Jacobian determinant at `x`."""
        return self.log_abs_det_jacobian(x, self(x))

    def inverse_log_det_jacobian(self, y: Any) -> Any:
        """Return that of the inverse at `y`."""
        return -self.log_abs_det_jacobian(self._inv_call(y), y)

    def _call(self, x: Any) -> Any:
        return self._forward(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the absolute value of the Jacobian determinant."""
        return self._forward_log_det_jacobian(x)

    def _forward(self, x: Any) -> Any:
        raise MissingMethodError(f"{type(self).__name__} does not define _forward")

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        raise MissingMethodError(f"{type(self).__name__} does not define _forward_log_det_jacobian")


class AbsTransform(core.AbsTransform, Transform):
    """Absolute value, whose inverse is both numbers.

    >>> paddle.distribution.AbsTransform().forward(paddle.to_tensor([-1.0])).tolist()
    [1.0]
    """

    def inverse(self, y: Any) -> Any:
        """Return the two numbers of an absolute value."""
        return -y, y


class AffineTransform(core.AffineTransform, Transform):
    """Transform `loc + scale * x`.

    >>> paddle.distribution.AffineTransform(1.0, 2.0).forward(paddle.to_tensor([3.0])).tolist()
    [7.0]
    """

    def __init__(self, loc: Any, scale: Any) -> None:
        super().__init__(loc, scale)


class ChainTransform(core.ComposeTransform, Transform):
    """Transforms one after another, the first one first.

    >>> D = paddle.distribution
    >>> D.ChainTransform([D.ExpTransform()]).forward(paddle.zeros([1])).tolist()
    [1.0]
    """

    def __init__(self, transforms: Sequence[core.Transform]) -> None:
        super().__init__(transforms)
        self.transforms = self.parts


class ExpTransform(core.ExpTransform, Transform):
    """Exponential.

    >>> paddle.distribution.ExpTransform().inverse(paddle.ones([1])).tolist()
    [0.0]
    """


class IndependentTransform(core.IndependentTransform, Transform):
    """Transform whose last batch axes count as axes of events.

    >>> D = paddle.distribution
    >>> D.IndependentTransform(D.ExpTransform(), 1).forward(paddle.zeros([1])).tolist()
    [1.0]
    """

    def __init__(self, base: core.Transform, reinterpreted_batch_rank: int) -> None:
        super().__init__(base, reinterpreted_batch_rank)


class PowerTransform(core.PowerTransform, Transform):
    """Power of positive numbers.

    >>> paddle.distribution.PowerTransform(2.0).forward(paddle.to_tensor([3.0])).tolist()
    [9.0]
    """

    def __init__(self, power: Any) -> None:
        super().__init__(power)
        self.power = power


class ReshapeTransform(core.ReshapeTransform, Transform):
    """Reshape of events.

    >>> paddle.distribution.ReshapeTransform((4,), (2, 2)).forward_shape((3, 4))
    (3, 2, 2)
    """

    def __init__(self, in_event_shape: Any, out_event_shape: Any) -> None:
        super().__init__(in_event_shape, out_event_shape)
        self.in_event_shape, self.out_event_shape = self.in_shape, self.out_shape


class SigmoidTransform(core.SigmoidTransform, Transform):
    """Logistic function.

    >>> paddle.distribution.SigmoidTransform().forward(paddle.zeros([1])).tolist()
    [0.5]
    """


class SoftmaxTransform(core.SoftmaxTransform, Transform):
    """Softmax along the last axis.

    >>> paddle.distribution.SoftmaxTransform().forward(paddle.zeros([2])).tolist()
    [0.5, 0.5]
    """


class StackTransform(core.StackTransform, Transform):
    """Transforms of single slices along an axis.

    >>> D = paddle.distribution
    >>> D.StackTransform([D.ExpTransform()]).forward(paddle.zeros([1])).tolist()
    [1.0]
    """

    def __init__(self, transforms: Sequence[core.Transform], axis: int = 0) -> None:
        super().__init__(transforms, axis)
        self.axis = axis


class StickBreakingTransform(core.StickBreakingTransform, Transform):
    """Transform of vectors to the simplex, by breaking a stick.

    >>> paddle.distribution.StickBreakingTransform().forward(paddle.zeros([1])).tolist()
    [0.5, 0.5]
    """


class TanhTransform(core.TanhTransform, Transform):
    """Hyperbolic tangent.

    >>> paddle.distribution.TanhTransform().forward(paddle.zeros([1])).tolist()
    [0.0]
    """
