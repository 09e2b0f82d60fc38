"""Random programs of batches of samples, which stay apart or meet, for forms with `is_batched`.

The oracle knows of no samples: it is the derivative of one sample of the result by all of the
batch, in which the others have slopes too if samples meet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from program_draft import Choices

import primgraph as pg

_STEPS = 4
_MIXED = 0.4
_LARGEST, _WIDEST = 4, 3

Step = Callable[[pg.Variable, "Given"], pg.Variable]


@dataclass(frozen=True, slots=True)
class Given:
    """What steps use beside the samples: what all share, constants, and samples of no interest."""

    w: pg.Variable
    other: pg.Variable
    table: np.ndarray
    order: np.ndarray


# Samples stay apart. All have the shape (samples, features), and are smooth.

_APART: dict[str, Step] = {
    "elementwise": lambda x, g: pg.tanh(x) + x * 0.5,
    "product": lambda x, g: x * pg.sin(x),
    "shared matrix": lambda x, g: x @ g.w,
    "matrix on the left": lambda x, g: pg.transpose(g.w @ pg.transpose(x)),
    "einsum": lambda x, g: pg.einsum("bi,ij->bj", x, g.w * g.w),
    "bilinear": lambda x, g: x * pg.einsum("bi,ij,bj->b", x, g.w, x)[:, None],
    "softmax": lambda x, g: pg.softmax(x, axis=1) * x,
    "logsumexp": lambda x, g: x - pg.logsumexp(x, axis=-1, keepdims=True),
    "layer norm": lambda x, g: (x - pg.mean(x, axis=1, keepdims=True))
    / pg.sqrt(pg.mean(x * x, axis=1, keepdims=True) + 0.1),
    "running sum": lambda x, g: pg.cumsum(x, axis=1),
    "running sum of what is turned": lambda x, g: pg.transpose(pg.cumsum(pg.transpose(x), axis=0)),
    "features turned round": lambda x, g: x[:, ::-1] * x,
    "features rolled": lambda x, g: pg.roll(x, 1, axis=1) + x * x,
    "features picked": lambda x, g: x[:, g.order] * 0.7,
    "sum of features": lambda x, g: x + pg.sum(x * x, axis=1, keepdims=True),
    "largest feature": lambda x, g: x * pg.max(x, axis=1, keepdims=True),
    "joined features": lambda x, g: pg.concatenate([x, x * x], axis=1) @ pg.concatenate(
        [g.w, g.w * 0.3]),
    "split features": lambda x, g: pg.concatenate(pg.split(pg.sin(x), [1], axis=1)[::-1], axis=1),
    "joined axes": lambda x, g: pg.reshape(pg.tanh(pg.reshape(x, (-1,))), x.shape),
    "joined axes in a product": lambda x, g: pg.reshape(
        pg.reshape(x, (-1, 1)) * pg.ones((1, x.shape[1])), (x.shape[0], -1, x.shape[1])
    ).sum(axis=1),
    "halves": lambda x, g: pg.concatenate([pg.sin(x[:1]), pg.cos(x[1:])]),
    "padded and cut": lambda x, g: pg.tanh(pg.pad(x, ((2, 1), (0, 0))) @ g.w)[2 : 2 + x.shape[0]],
    "joined with constants and cut": lambda x, g: pg.sin(
        pg.concatenate([np.ones((2, x.shape[1])), x]))[2:],
    "constants of samples": lambda x, g: x * g.table,
    "counted": lambda x, g: x[pg.arange(x.shape[0])] ** 2,
    "other samples": lambda x, g: x * g.other,
    "other samples that meet": lambda x, g: x * pg.mean(g.other * g.other, axis=0),
    "other samples turned round": lambda x, g: x + x * g.other[::-1],
    "a choice": lambda x, g: pg.where(x > pg.mean(x, axis=1, keepdims=True), x * x, pg.sin(x)),
    "what is held, of all": lambda x, g: x * pg.stop_gradient(pg.mean(x)),
    "of no slope, of all": lambda x, g: x * (1.5 + pg.sign(pg.sum(x))),
    "norm": lambda x, g: x / pg.norm(x, axis=1, keepdims=True),
    "products of stacks": lambda x, g: (x[:, None, :] @ (x[:, :, None] * g.w))[:, 0, :],
    "a part that is set": lambda x, g: pg.set_slice(x, (slice(None), 0), pg.sin(x[:, -1])),
    "along features": lambda x, g: pg.take_along_axis(
        x, pg.expand_dims(pg.argmax(x, axis=1), 1), axis=1) * x,
}  # fmt: skip

# Samples meet.

_MIXING: dict[str, Step] = {
    "mean of the batch": lambda x, g: x - pg.mean(x, axis=0),
    "normalised by the batch": lambda x, g: (x - pg.mean(x, axis=0))
    / pg.sqrt(pg.var(x, axis=0) + 0.1),
    "sum of all": lambda x, g: x * pg.sum(x),
    "turned round": lambda x, g: pg.sin(x) + x[::-1],
    "flipped": lambda x, g: pg.flip(x, axis=0) * x,
    "rolled": lambda x, g: x * pg.roll(x, 1, axis=0),
    "running sum of the batch": lambda x, g: pg.cumsum(x, axis=0),
    "largest of the batch": lambda x, g: x * pg.max(x, axis=0),
    "all pairs": lambda x, g: pg.softmax(x @ pg.transpose(x), axis=1) @ x,
    "the first for all": lambda x, g: x + x[0] * x,
    "picked": lambda x, g: x[np.arange(x.shape[0]) - 1] * 2.0,
    "neighbours": lambda x, g: pg.concatenate([x[1:], x[:1]]) * x,
    "shifted": lambda x, g: x + pg.pad(x, ((1, 0), (0, 0)))[:-1],
    "a part of another": lambda x, g: pg.set_slice(x, 0, x[1]),
    "axes in another order": lambda x, g: pg.reshape(pg.transpose(x), x.shape) * x,
    "softmax of the batch": lambda x, g: pg.softmax(x, axis=0),
    "product of all": lambda x, g: x + pg.prod(1.5 + pg.tanh(x), axis=0),
    "norm of all": lambda x, g: x / pg.norm(x),
    "deviation of the batch": lambda x, g: x * pg.std(x, axis=0),
}  # fmt: skip


@dataclass(frozen=True)
class BatchedProgram:
    """The program of a seed, less the steps in `left_out`."""

    seed: int
    left_out: frozenset[int] = frozenset()

    def draw(self, step: int) -> Choices:
        """What a step chooses at random does not depend on the steps before."""
        return Choices(np.random.default_rng((self.seed, 17, step)))

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Two samples or more, as one is never mixed."""
        draw = self.draw(0)
        return draw.below(_LARGEST + 1, 2), draw.below(_WIDEST + 1, 1)

    @cached_property
    def count(self) -> int:
        return self.draw(1).below(_STEPS + 1, 1)

    @cached_property
    def place(self) -> int | None:
        """At which step samples meet, if at any."""
        draw = self.draw(2)
        return draw.below(self.count) if draw.chance(_MIXED) else None

    @property
    def names(self) -> list[str]:
        """The steps that are made, in order."""
        return [
            self.draw(10 + i).choose(list(_MIXING if i == self.place else _APART))
            for i in range(self.count)
            if i not in self.left_out
        ]

    @property
    def mixing(self) -> Step | None:
        """The step at which samples meet."""
        return next((_MIXING[n] for n in self.names if n in _MIXING), None)

    def samples(self, x: pg.Variable, w: pg.Variable, other: pg.Variable) -> pg.Variable:
        """What is computed of each sample, in the shape of `x`."""
        draw = self.draw(3)
        table = draw.rng.normal(size=self.shape)
        given = Given(w, other, table, draw.rng.permutation(self.shape[1]))
        y = x
        for name in self.names:
            y = (_APART | _MIXING)[name](y, given)
        return y

    def feeds(self) -> list[np.ndarray]:
        draw, (_, k) = self.draw(4), self.shape
        shapes = (self.shape, (k, k), self.shape)
        return [np.asarray(draw.rng.normal(size=s) * 0.6) for s in shapes]

    def __str__(self) -> str:
        feeds = "\n".join(f"  {x!r}" for x in self.feeds())
        graph = pg.trace(self.samples, *[pg.spec(a.shape) for a in self.feeds()])
        return f"batched program {self.seed}: {', '.join(self.names)}\n{graph}\nfeeds:\n{feeds}"
