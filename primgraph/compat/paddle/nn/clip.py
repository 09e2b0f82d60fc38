"""Gradient clipping of optimizers, in both modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from primgraph.errors import ArgumentError, MissingMethodError
from primgraph.ir.types import FLOAT32, FLOAT64
from primgraph.operators import astype, clip, maximum, sqrt, square, sum

Pairs: TypeAlias = Sequence[tuple[Any, Any]]


class ClipGradBase:
    """Base class of clipping: called with pairs of a parameter and its gradient."""

    def __call__(self, params_grads: Pairs) -> list[tuple[Any, Any]]:
        """Return the pairs with clipped gradients; parameters of `need_clip` False keep theirs."""
        chosen = [
            i
            for i, (parameter, gradient) in enumerate(params_grads)
            if gradient is not None and getattr(parameter, "need_clip", True) is not False
        ]
        found = list(params_grads)
        if chosen:
            new = self.clip_gradients([params_grads[i][1] for i in chosen])
            for i, gradient in zip(chosen, new, strict=True):
                found[i] = (found[i][0], gradient)
        return found

    def clip_gradients(self, gradients: list[Any]) -> list[Any]:
        """Return the clipped gradients."""
        raise MissingMethodError(f"{type(self).__name__} does not define clip_gradients")


class ClipGradByValue(ClipGradBase):
    """Limit each element to [min, max]; `min` is by default `-max`.

    >>> clip = paddle.nn.ClipGradByValue(1.0)
    >>> print(clip)
    Clip Gradient By Value, min = -1.000000, max=1.000000
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        if min is None:
            if not max > 0.0:
                raise ArgumentError(f"max is positive where min is not given, not {max!r:.60}")
            min = -max
        self.max, self.min = float(max), float(min)

    def __str__(self) -> str:
        return f"Clip Gradient By Value, min = {self.min:f}, max={self.max:f}"

    def clip_gradients(self, gradients: list[Any]) -> list[Any]:
        """Return the clipped gradients."""
        return [clip(g, self.min, self.max) for g in gradients]


class ClipGradByNorm(ClipGradBase):
    """Scale each gradient whose 2-norm is above `clip_norm` down to it.

    >>> clip = paddle.nn.ClipGradByNorm(1.0)
    >>> print(clip)
    Gradient Clip By Norm, clip_norm=1.000000
    """

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = float(clip_norm)

    def __str__(self) -> str:
        return f"Gradient Clip By Norm, clip_norm={self.clip_norm:f}"

    def clip_gradients(self, gradients: list[Any]) -> list[Any]:
        """Return the clipped gradients."""
        return [g * self._factor(sqrt(sum(square(g)))) for g in gradients]

    def _factor(self, size: Any) -> Any:
        return self.clip_norm / maximum(size, self.clip_norm)


class ClipGradByGlobalNorm(ClipGradByNorm):
    """Scale all gradients by one factor if their 2-norm together is above `clip_norm`.

    `group_name` and `auto_skip_clip` make no difference.

    >>> clip = paddle.nn.ClipGradByGlobalNorm(1.0)
    >>> print(clip)
    Gradient Clip By GlobalNorm, global_norm=1.000000
    """

    def __init__(
        self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False
    ) -> None:
        super().__init__(clip_norm)
        self.group_name, self.auto_skip_clip = group_name, auto_skip_clip

    def __str__(self) -> str:
        return f"Gradient Clip By GlobalNorm, global_norm={self.clip_norm:f}"

    def clip_gradients(self, gradients: list[Any]) -> list[Any]:
        """Return the clipped gradients."""
        kind = FLOAT64 if any(g.dtype == FLOAT64 for g in gradients) else FLOAT32
        total: Any = 0.0
        for gradient in gradients:
            total = astype(sum(square(gradient)), kind) + total
        factor = self._factor(sqrt(total))
        return [g * astype(factor, g.dtype) for g in gradients]
