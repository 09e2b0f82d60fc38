"""Random programs of `compat.torch`, with changes in place and views, eager and in transforms.

The oracle are pg's own functions: there each value is a cell, and a view a way to read and to write
another cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from program_derivatives import demand
from program_draft import Choices

import primgraph as pg
import primgraph.compat.torch as torch
import primgraph.compat.torch.nn.functional as F

_STEPS = 8
_SIDE = 3
_CLOSE = 1e-9

# The same function of torch's and of pg's values.
Pair = tuple[Callable[..., Any], Callable[..., Any]]
_UNARY: dict[str, Pair] = {
    "tanh": (torch.tanh, pg.tanh),
    "sin": (lambda x: x.sin(), pg.sin),
    "softmax": (lambda x: F.softmax(x, dim=0), lambda x: pg.softmax(x, 0)),
    "layer_norm": (
        lambda x: F.layer_norm(x, (_SIDE,), eps=0.1),
        lambda x: (x - pg.mean(x, -1, True)) / pg.sqrt(pg.var(x, -1, True) + 0.1),
    ),
    "cumsum": (lambda x: x.cumsum(1), lambda x: pg.cumsum(x, 1)),
    "flip": (lambda x: x.flip(0), lambda x: pg.flip(x, 0)),
    "std": (lambda x: x / (1 + x.std(dim=1, keepdim=True)), lambda x: x / (1 + _std(x))),
    "gelu": (F.gelu, lambda x: x * (0.5 + 0.5 * pg.erf(x * 0.5**0.5))),
    "roll": (lambda x: x.roll(1, 1), lambda x: pg.roll(x, 1, 1)),
    "cat": (lambda x: torch.cat([x[1:], x[:1]]), lambda x: pg.concatenate([x[1:], x[:1]])),
    "clone": (lambda x: x.clone(), pg.assign),
    "norm": (lambda x: x / (1 + x.norm(p=2)), lambda x: x / (1 + pg.sqrt(pg.sum(x * x)))),
    "gather": (
        lambda x: x.gather(1, torch.tensor([[2, 0, 1]] * _SIDE)),
        lambda x: pg.take(x, np.array([2, 0, 1]), 1),
    ),
    "einsum": (lambda x: torch.einsum("ij,ik->jk", x, x) / 4, lambda x: x.T @ x / 4),
}
_BINARY: dict[str, Pair] = {
    "add": (lambda x, y: torch.add(x, y, alpha=0.5), lambda x, y: x + 0.5 * y),
    "mul": (lambda x, y: x * y, lambda x, y: x * y),
    "matmul": (lambda x, y: x @ y / 3, lambda x, y: x @ y / 3),
    "where": (lambda x, y: torch.where(x > 0, x, y), lambda x, y: pg.where(x > 0, x, y)),
    "lerp": (lambda x, y: x.lerp(y, 0.3), lambda x, y: x + 0.3 * (y - x)),
    "mse": (lambda x, y: x - F.mse_loss(x, y), lambda x, y: x - pg.mean((x - y) ** 2)),
}
# Views: torch's, how one reads, and how one writes a new value of it to the base.
View = tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any, Any], Any]]
_VIEWS: dict[str, View] = {
    "t": (lambda x: x.t(), lambda b: b.T, lambda b, v: v.T),
    "view": (lambda x: x.reshape(_SIDE, 1, _SIDE)[:, 0], lambda b: b, lambda b, v: v),
    "all": (lambda x: x[:], lambda b: b, lambda b, v: v),
    "unsqueeze": (lambda x: x.unsqueeze(0).squeeze(0), lambda b: b, lambda b, v: v),
    "turned twice": (lambda x: x.permute(1, 0).transpose(0, 1), lambda b: b, lambda b, v: v),
}
# Changes in place of a value by another one.
_CHANGES: dict[str, Pair] = {
    "add_": (lambda x, y: x.add_(y, alpha=0.25), lambda x, y: x + 0.25 * y),
    "mul_": (lambda x, y: x.mul_(y), lambda x, y: x * y),
    "+=": (lambda x, y: x.__iadd__(y * 0.5), lambda x, y: x + y * 0.5),
    "tanh_": (lambda x, y: x.tanh_(), lambda x, y: pg.tanh(x)),
    "relu": (lambda x, y: F.relu(x, inplace=True), lambda x, y: pg.where(x > 0, x, 0.0)),
    "masked_fill_": (
        lambda x, y: x.masked_fill_(y.detach() > 0, 0.5),
        lambda x, y: pg.where(y > 0, 0.5, x),
    ),
    "row": (
        lambda x, y: x.__setitem__(0, y[1] * 2),
        lambda x, y: pg.concatenate([y[1:2] * 2, x[1:]]),
    ),
    "part": (
        lambda x, y: x[1:, 1:].mul_(y[0, 0]),
        lambda x, y: pg.set_slice(x, (slice(1, None), slice(1, None)), x[1:, 1:] * y[0, 0]),
    ),
    "copy_": (lambda x, y: x.copy_(y), lambda x, y: y * 1.0),
    "filled": (
        lambda x, y: x.copy_(_filled(x, y)),
        lambda x, y: pg.concatenate([x[:1] * y[:1], y[1:2], 0.0 * x[2:]]),
    ),
}
_KINDS: tuple[dict[str, Any], ...] = (_UNARY, _BINARY, _VIEWS, _CHANGES)
_WORLDS = ("eager", "grad", "vmap", "jit", "jacrev")

Step = tuple[int, str, int, int]


def _std(x: Any) -> Any:
    return pg.std(x, 1, True, ddof=1)


def _filled(x: Any, y: Any) -> Any:
    """A tensor of zeros, some of whose rows are set."""
    out = torch.zeros(_SIDE, _SIDE, dtype=torch.float64)
    out[0] = x[0] * y[0]
    out[1] += y[1]
    return out


@dataclass
class _Cell:
    """A value of the oracle: an array of its own, or a view of the cell `base`."""

    own: Any = None
    base: _Cell | None = None
    view: str = ""

    def read(self) -> Any:
        return self.own if self.base is None else _VIEWS[self.view][1](self.base.read())

    def write(self, value: Any) -> None:
        if self.base is None:
            self.own = value
        else:
            self.base.write(_VIEWS[self.view][2](self.base.read(), value))


@dataclass(frozen=True)
class TorchProgram:
    """The program of a seed, less the steps in `left_out`."""

    seed: int
    left_out: frozenset[int] = frozenset()

    @cached_property
    def point(self) -> np.ndarray[Any, Any]:
        return np.random.default_rng((self.seed, 41)).normal(size=(_SIDE, _SIDE))

    @cached_property
    def steps(self) -> list[Step]:
        """For each step its kind, its name, and the places of its operands."""
        draw = Choices(np.random.default_rng((self.seed, 43)))
        steps = list[Step]()
        values = 1
        for _ in range(draw.below(_STEPS + 1, 3) + 1):
            kind = draw.choose([0, 0, 1, 2, 2, 3, 3, 3])
            name = draw.choose([*_KINDS[kind]])
            steps.append((kind, name, draw.below(values), draw.below(values)))
            values += kind != 3
        return steps

    @property
    def count(self) -> int:
        return len(self.steps)

    def in_torch(self, x: Any) -> Any:
        """The loss, computed by torch's functions."""
        values = [x * 1.0]
        for number, (kind, name, one, other) in enumerate(self.steps):
            function = _KINDS[kind][name]
            if number in self.left_out:
                values += [] if kind == 3 else [values[one]]
            elif kind == 3:
                function[0](values[one], values[other].clone())
            else:
                operands = [values[one], values[other]] if kind == 1 else [values[one]]
                values.append(function[0](*operands))
        return sum(
            ((v * v).sum() * (0.1 + 0.07 * i) for i, v in enumerate(values)), values[0].sum()
        )

    def in_cells(self, x: Any) -> Any:
        """The loss, computed by pg's functions."""
        values = [_Cell(x * 1.0)]
        for number, (kind, name, one, other) in enumerate(self.steps):
            function = _KINDS[kind][name]
            if number in self.left_out:
                values += [] if kind == 3 else [values[one]]
            elif kind == 3:
                values[one].write(function[1](values[one].read(), values[other].read()))
            elif kind == 2:
                values.append(_Cell(None, values[one], name))
            else:
                places = [one, other] if kind == 1 else [one]
                values.append(_Cell(function[1](*[values[p].read() for p in places])))
        total = pg.sum(values[0].read())
        for i, cell in enumerate(values):
            total = total + pg.sum(cell.read() ** 2) * (0.1 + 0.07 * i)
        return total

    def __str__(self) -> str:
        rows = [f"{i}: {n}({a}, {b})" for i, (_, n, a, b) in enumerate(self.steps)]
        return "\n".join(row for i, row in enumerate(rows) if i not in self.left_out)


def check_torch(program: TorchProgram, seen: Counter[str]) -> None:
    """Values and gradients of torch's functions are those of pg's, wherever they are computed."""
    value, slope = pg.jit(pg.value_and_grad(program.in_cells))(program.point)
    for world in _WORLDS:
        found = computed(world, program.in_torch, program.point)
        for what, a, b in zip(("value", "gradient"), found, (value, slope), strict=True):
            close = np.allclose(a, b, rtol=_CLOSE, atol=_CLOSE)
            demand(close, f"{what} in {world}: {np.asarray(a)} and not {np.asarray(b)}")
        seen[f"programs of torch, {world}"] += 1


def computed(world: str, function: Callable[[Any], Any], point: Any) -> tuple[Any, Any]:
    """The value and the gradient of `function`, computed as the name says."""
    x = torch.tensor(point, requires_grad=world in ("eager", "jit"))
    if world in ("eager", "jit"):
        loss = pg.jit(function)(x) if world == "jit" else function(x)
        loss.backward()
        return loss.detach(), x.grad
    if world == "vmap":
        both = torch.func.grad_and_value(lambda b: torch.vmap(function)(b).sum())
        slopes, value = both(torch.stack([x, x]))
        return value / 2, slopes[1]
    if world == "jacrev":
        return function(x.clone()), torch.func.jacrev(function)(x)
    slope, value = torch.func.grad_and_value(function)(x)
    return value, slope
