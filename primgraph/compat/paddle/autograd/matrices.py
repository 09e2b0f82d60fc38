"""Jacobians and Hessians of tensors and variables, as `paddle.autograd` has them."""

from __future__ import annotations

from typing import Any

from primgraph import operators as pg
from primgraph.compat.paddle.autograd.gradient import grad
from primgraph.compat.paddle.framework import paddles
from primgraph.derivatives.matrices.jacobian import Jacobian as _Matrix
from primgraph.eager.tensor import Tensor
from primgraph.errors import OptionError
from primgraph.operators.handle import Handle


class Jacobian:
    """The derivatives of `ys` by `xs`, computed when they are indexed.

    The shape is `(N, M)`, for `ys` of N and `xs` of M elements, without the axis of a tensor that
    has none; with `is_batched`, `(B, N, M)` of batches. Arithmetic with it is that of the whole
    tensor.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.autograd.jacobian(x * x, x)[1].tolist()
    [0.0, 4.0]
    """

    def __init__(self, ys: Any, xs: Any, is_batched: bool = False) -> None:
        first = 1 if is_batched else 0
        for name, x in (("ys", ys), ("xs", xs)):
            rank = len(x.shape)
            if not first <= rank <= first + 1:
                raise OptionError(
                    f"{name}.ndim should be {first} or {first + 1} when is_batched={is_batched} "
                    f"but got {rank}"
                )
        self._ys, self._xs, self._is_batched = ys, xs, is_batched
        lead = [xs.shape[0]] if is_batched else []
        self.shape = [*lead, *tuple(ys.shape)[first:], *tuple(xs.shape)[first:]]
        self._matrix: Any = None
        self._whole: Any = None

    def _lazy(self) -> Any:
        """Return the matrix of which single rows can be computed."""
        if self._matrix is None:
            self._matrix = _Matrix(self._ys, self._xs, self._is_batched, check=False)
        return self._matrix

    def evaluate(self) -> Any:
        """Return all entries."""
        if self._whole is None:
            if isinstance(self._ys, Tensor) and not (
                self._ys.requires_grad and self._xs.requires_grad
            ):
                self._whole = pg.multiply(pg.zeros(self.shape, self._xs.dtype), 1.0)
                self._whole = type(self._xs)(self._whole.node)
            else:
                self._whole = pg.reshape(self._lazy()[:], tuple(self.shape))
        return self._whole

    def __getitem__(self, index: Any) -> Any:
        is_plain = len(self.shape) == 2 and not self._is_batched and self._whole is None
        if is_plain and self._tracked() and _is_basic(index):
            return self._lazy()[index]
        return self.evaluate()[index]

    def _tracked(self) -> bool:
        return not isinstance(self._ys, Tensor) or (
            self._ys.requires_grad and self._xs.requires_grad
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.evaluate(), name)

    def __add__(self, other: Any) -> Any:
        return self.evaluate() + _whole(other)

    def __sub__(self, other: Any) -> Any:
        return self.evaluate() - _whole(other)

    def __mul__(self, other: Any) -> Any:
        return self.evaluate() * _whole(other)

    def __truediv__(self, other: Any) -> Any:
        return self.evaluate() / _whole(other)

    def __matmul__(self, other: Any) -> Any:
        return self.evaluate() @ _whole(other)

    def __radd__(self, other: Any) -> Any:
        return _whole(other) + self.evaluate()

    def __rsub__(self, other: Any) -> Any:
        return _whole(other) - self.evaluate()

    def __rmul__(self, other: Any) -> Any:
        return _whole(other) * self.evaluate()

    def __rmatmul__(self, other: Any) -> Any:
        return _whole(other) @ self.evaluate()


class Hessian(Jacobian):
    """The Jacobian of a gradient.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.autograd.hessian((x * x * x).sum(), x)[:].tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """


def _whole(other: Any) -> Any:
    return other.evaluate() if isinstance(other, Jacobian) else other


def _is_basic(index: Any) -> bool:
    entries = index if isinstance(index, tuple) else (index,)
    return len(entries) <= 2 and all(isinstance(e, int | slice) for e in entries)


def _is_batched(batch_axis: int | None) -> bool:
    if batch_axis not in (None, 0):
        raise OptionError(f"batch_axis should be None or 0, but got {batch_axis}.")
    return batch_axis is not None


@paddles
def jacobian(ys: Any, xs: Any, batch_axis: int | None = None) -> Any:
    """Return the `Jacobian` of `ys` by `xs`; for several, tuples of these.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.autograd.jacobian(x * x, x)[:].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    is_batched = _is_batched(batch_axis)
    if isinstance(ys, list | tuple) and isinstance(xs, list | tuple):
        return tuple(tuple(Jacobian(y, x, is_batched) for x in xs) for y in ys)
    if isinstance(ys, list | tuple):
        return tuple(Jacobian(y, xs, is_batched) for y in ys)
    if isinstance(xs, list | tuple):
        return tuple(Jacobian(ys, x, is_batched) for x in xs)
    return Jacobian(ys, xs, is_batched)


@paddles
def hessian(ys: Any, xs: Any, batch_axis: int | None = None) -> Any:
    """Return the `Hessian` of `ys`, one element or one per sample; tuples of these for several.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.autograd.hessian((x * x * x).sum(), x)[:].tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    is_batched = _is_batched(batch_axis)
    elements = ys.type.size // (xs_first(xs).shape[0] if is_batched else 1)
    if elements != 1:
        raise OptionError(f"Only support ys.numel()({elements})==1 when batch_axis is None.")
    several = isinstance(xs, list | tuple)
    inputs = list(xs) if several else [xs]
    seed = pg.sum(ys) if is_batched else pg.reshape(ys, ())
    gradients = grad(seed, inputs, create_graph=True, allow_unused=True)
    kinds = [pg.zeros_like(x) if g is None else g for g, x in zip(gradients, inputs, strict=True)]
    rows = tuple(tuple(Hessian(g, x, is_batched) for x in inputs) for g in kinds)
    return rows if several else rows[0][0]


def xs_first(xs: Any) -> Handle:
    """Return the first of several inputs."""
    found: Handle = xs[0] if isinstance(xs, list | tuple) else xs
    return found
