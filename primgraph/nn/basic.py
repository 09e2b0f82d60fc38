"""Layers that networks are made of: affine maps, sequences, normalisation, dropout."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, final

import numpy as np

from primgraph.defaults import get_default_dtype
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.seeds import next_key
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, BoundsError
from primgraph.initializers import Constant, Initializer
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.types import as_dtype, as_shape
from primgraph.nn.layer import Layer
from primgraph.operators import batch_norm, dropout, layer_norm, linear, mean, var
from primgraph.operators.handle import ArrayLike
from primgraph.operators.variable import Variable
from primgraph.program.program import Program, program_of, program_recorded_by


@final
@checked_methods()
class Linear(Layer):
    """`x @ weight + bias` along the last axis.

    `weight` is of shape (in_features, out_features), drawn by Xavier's rule unless `initializer`
    says otherwise, and `bias`, which can be left out, starts at zero.

    >>> layer = pg.nn.Linear(3, 2)
    >>> layer(np.ones((5, 3))).shape
    (5, 2)
    """

    weight: Any
    bias: Any

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        initializer: Initializer | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.weight = self.create_parameter((in_features, out_features), dtype, initializer)
        self.bias = None
        if bias:
            self.bias = self.create_parameter((out_features,), dtype, is_bias=True)

    def forward(self, x: ArrayLike) -> Any:
        """`x` of shape (..., in_features) becomes (..., out_features)."""
        return linear(x, self.weight, self.bias)


@checked_methods()
class Sequential(Layer):
    """Layers one after the other, each on what the one before gave; named '0', '1' and so on.

    >>> net = pg.nn.Sequential(pg.nn.Linear(3, 4), pg.nn.Tanh(), pg.nn.Linear(4, 1))
    >>> net(np.ones((5, 3))).shape
    (5, 1)
    """

    def __init__(self, *layers: Layer) -> None:
        super().__init__()
        for i, layer in enumerate(layers):
            self.add_sublayer(str(i), layer)

    def forward(self, x: Any) -> Any:
        """The last layer's result; `x` itself if there are no layers."""
        for layer in self._table("_sublayers").values():
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.children())

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.children())

    def __getitem__(self, index: int) -> Layer:
        layers = self.children()
        if not isinstance(index, int) or not -len(layers) <= index < len(layers):
            raise BoundsError(f"a Sequential of {len(layers)} layers has no layer {index!r:.60}")
        return layers[index]


@final
@checked_methods()
class LayerNorm(Layer):
    """`pg.layer_norm` over the last axes, which have the extents `shape`.

    `weight` starts at one and `bias` at zero, both of that shape.

    >>> layer = pg.nn.LayerNorm(4)
    >>> layer(np.ones((2, 4))).shape
    (2, 4)
    """

    weight: Any
    bias: Any

    def __init__(self, shape: Any, eps: float = 1e-5, *, dtype: Any = None) -> None:
        super().__init__()
        self.shape, self.eps = as_shape(shape), eps
        self.weight = self.create_parameter(self.shape, dtype, Constant(1.0))
        self.bias = self.create_parameter(self.shape, dtype, is_bias=True)

    def forward(self, x: ArrayLike) -> Any:
        """`x` normalised, in its shape."""
        axes = tuple(range(-len(self.shape), 0))
        return layer_norm(x, self.weight, self.bias, axis=axes, eps=self.eps)


@final
@checked_methods()
class BatchNorm(Layer):
    """Batch normalization of `features` channels, with running statistics: `pg.batch_norm`.

    Channels lie along axis 1 in layout `NCHW` and along the last axis in `NHWC`, for any number of
    axes. In training, the mean and the biased variance (divisor n) of the batch normalize, and
    every run or call ends with `running = momentum * running + (1 - momentum) * batch`; so
    `running_var` is biased too. In evaluation, and always with `use_global_stats`, the running
    statistics normalize and do not change. A layer that is called several times takes all batches
    into account in turn.

    >>> layer = pg.nn.BatchNorm(3)
    >>> layer(np.ones((5, 3))).shape
    (5, 3)
    """

    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any

    def __init__(
        self,
        features: int,
        momentum: float = 0.9,
        eps: float = 1e-5,
        layout: str = "NCHW",
        *,
        use_global_stats: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if layout not in ("NCHW", "NHWC"):
            raise ArgumentError(f"layout {layout!r:.60}", hint="use 'NCHW' or 'NHWC'")
        self.momentum, self.eps, self.axis = momentum, eps, 1 if layout == "NCHW" else -1
        self.use_global_stats = use_global_stats
        chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
        self.weight = self.create_parameter((features,), chosen, Constant(1.0))
        self.bias = self.create_parameter((features,), chosen, is_bias=True)
        self.register_buffer("running_mean", np.zeros(features, chosen))
        self.register_buffer("running_var", np.ones(features, chosen))

    def forward(self, x: ArrayLike) -> Any:
        """`x` normalised, in its shape. Raises `ShapeError` for another number of channels."""
        training = self.training and not self.use_global_stats
        result = batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.axis,
            self.eps,
            training,
        )
        if training:
            others = tuple(a for a in range(result.ndim) if a != self.axis % result.ndim)
            self._track("running_mean", mean(x, others))
            self._track("running_var", var(x, others))
        return result

    def _track(self, name: str, batch: Any) -> None:
        running = getattr(self, name)
        dtype = running.dtype
        if isinstance(running, Tensor):
            with no_grad():
                new = self.momentum * running + (1.0 - self.momentum) * batch.astype(dtype)
            setattr(self, name, new)
        else:
            program = program_of(running)
            kept = self.momentum * program.next_value(running)
            program.update(running, kept + (1.0 - self.momentum) * batch.astype(dtype))


@final
@checked_methods()
class Dropout(Layer):
    """`pg.dropout`: in training, sets elements to zero with probability `rate`.

    Each layer draws another mask, each run or call other ones, all from the `random_seed` of the
    program, or else from `pg.seed`. Mode `upscale_in_train` divides what is kept by `1 - rate` in
    training; `downscale_in_infer` multiplies by it in evaluation.

    >>> layer = pg.nn.Dropout(0.5).eval()
    >>> layer(np.ones(3))
    tensor([1., 1., 1.])
    """

    def __init__(self, rate: float = 0.5, mode: str = "upscale_in_train") -> None:
        super().__init__()
        self.rate, self.mode = rate, mode

    def forward(self, x: ArrayLike) -> Any:
        """`x` with its mask in training, scaled or unchanged in evaluation."""
        if not self.training:
            return dropout(x, 0, self.rate, self.mode, training=False)
        return dropout(x, key_for(x), self.rate, self.mode)


def key_for(x: ArrayLike) -> Variable | Tensor:
    """Return a key that is another one whenever what is computed from `x` is computed.

    In a loop of a program it is another one in each run, and in each iteration if the loop tells
    the number of that by `iteration`.
    """
    program = program_around(x.recorder) if isinstance(x, Variable) else None
    if program is not None:
        return key_of(program)
    if isinstance(x, Variable) and adopting.get() is None:
        return program_of(x).next_key()
    return next_key()


# The number of the iteration of the loop whose body is recorded, or None.
iteration: ContextVar[Variable | None] = ContextVar("primgraph_iteration", default=None)
# Keys of an iteration are less than this, as those of a run are.
_KEYS_OF_ITERATION = 2**40


def key_of(program: Program) -> Variable:
    """Return a new key of a program, another one in each iteration of a loop."""
    key, number = program.next_key(), iteration.get()
    return key if number is None else key + number * _KEYS_OF_ITERATION


def program_around(recorder: Any) -> Program | None:
    """Return the program that a recorder is of, or whose branch or loop it records, or None."""
    while recorder is not None:
        program = program_recorded_by(recorder)
        if program is not None:
            return program
        recorder = getattr(recorder, "outer", None)
    return None
