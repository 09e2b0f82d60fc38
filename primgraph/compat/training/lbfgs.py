"""Limited-memory BFGS with a line search for the strong Wolfe conditions.

The algorithm is that of minFunc (M. Schmidt, 2005), as torch and Paddle have it: directions, step
lengths and stopping rules are the same, so that losses agree step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.atomic import Call, call_all
from primgraph.eager.derivatives.differentiable import Alias
from primgraph.eager.derivatives.recording import enable_grad
from primgraph.eager.node import array_node
from primgraph.eager.tensor import Tensor

Array: TypeAlias = np.ndarray[Any, Any]

# A step length with the loss there, its gradient, and the derivative along the direction.
_ARMIJO, _CURVATURE, _MOST = 1e-4, 0.9, 25


@final
@dataclass(slots=True)
class Point:
    """A step length, and the loss, its gradient and its derivative along the direction there."""

    t: float
    loss: float
    gradient: Array
    slope: float


@final
class Objective:
    """The loss of `closure` as a function of all parameters, flattened and joined."""

    def __init__(self, parameters: Sequence[Tensor], closure: Callable[[], Any]) -> None:
        self.parameters = parameters
        self._closure = closure

    def evaluate(self) -> Any:
        """Return the loss; gradients are in the parameters then."""
        with enable_grad():
            return self._closure()

    def gradient(self) -> Array:
        """Return the gradient; that of a parameter without one is zero."""
        parts = [
            np.zeros(p.type.shape, p.type.dtype) if p.grad is None else p.grad._array()
            for p in self.parameters
        ]
        return np.concatenate([_flat(x) for x in parts])

    def position(self) -> list[Array]:
        """Return the elements of the parameters."""
        return [p._array() for p in self.parameters]

    def move(self, position: Sequence[Array], t: float, direction: Array) -> None:
        """Let the parameters be `position + t * direction`."""
        calls: list[Call] = []
        stored: dict[Alias, Any] = {}
        start = 0
        for parameter, array in zip(self.parameters, position, strict=True):
            flat = _flat(array)
            part = direction[start : start + flat.size]
            start += flat.size
            new = (flat + part.dtype.type(t) * part).astype(flat.dtype)
            if array.dtype.kind == "c":
                new = new.view(array.dtype)
            node = array_node(new.reshape(array.shape), parameter.requires_grad)
            calls += parameter.storing(node, stored)
        call_all(calls)

    def along(self, position: Sequence[Array], t: float, direction: Array) -> Point:
        """Return the point at step length `t`; the parameters are as before then."""
        self.move(position, t, direction)
        loss = float(self.evaluate())
        gradient = self.gradient()
        self.move(position, 0.0, direction)
        return Point(t, loss, gradient, float(gradient.dot(direction)))


def _flat(array: Array) -> Array:
    """Return the elements as a real vector, with both parts of complex numbers."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


@final
@dataclass(frozen=True, slots=True)
class Options:
    """Options of one step."""

    lr: float
    max_iter: int
    max_eval: int
    tolerance_grad: float
    tolerance_change: float
    history_size: int
    searches: bool


def minimize(objective: Objective, memory: dict[str, Any], options: Options) -> Any:
    """Run up to `max_iter` iterations; return the first loss. `memory` goes on between calls."""
    memory.setdefault("func_evals", 0)
    memory.setdefault("n_iter", 0)
    first = objective.evaluate()
    loss = float(first)
    memory["func_evals"] += 1
    evaluations = 1
    gradient = objective.gradient()
    if np.abs(gradient).max() <= options.tolerance_grad:
        return first
    for iteration in range(1, options.max_iter + 1):
        memory["n_iter"] += 1
        direction = memory["d"] = _direction(memory, gradient, options.history_size)
        memory["prev_flat_grad"], memory["prev_loss"] = gradient, loss
        length = 1.0
        if memory["n_iter"] == 1:
            length = min(1.0, 1.0 / float(np.abs(gradient).sum()))
        t = memory["t"] = length * options.lr
        slope = float(gradient.dot(direction))
        if slope > -options.tolerance_change:
            break
        position, before = objective.position(), loss
        count = 0
        if options.searches:
            start = Point(0.0, loss, gradient, slope)
            found, count = search(objective, position, direction, t, start, options)
            t, loss, gradient = found.t, found.loss, found.gradient
            memory["t"] = t
            objective.move(position, t, direction)
        else:
            objective.move(position, t, direction)
            if iteration < options.max_iter:
                loss = float(objective.evaluate())
                gradient, count = objective.gradient(), 1
        evaluations += count
        memory["func_evals"] += count
        if (
            evaluations >= options.max_eval
            or np.abs(gradient).max() <= options.tolerance_grad
            or np.abs(direction * t).max() <= options.tolerance_change
            or abs(loss - before) < options.tolerance_change
        ):
            break
    return first


def _direction(memory: dict[str, Any], gradient: Array, size: int) -> Array:
    """Return the direction of descent, by the two-loop recursion over the kept pairs."""
    if memory["n_iter"] == 1:
        memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
        return -gradient
    changes, moves, factors = memory["old_dirs"], memory["old_stps"], memory["ro"]
    change = gradient - memory["prev_flat_grad"]
    move = memory["d"] * gradient.dtype.type(memory["t"])
    product = float(change.dot(move))
    if product > 1e-10:
        if len(changes) == size:
            del changes[0], moves[0], factors[0]
        changes.append(change)
        moves.append(move)
        factors.append(1.0 / product)
        memory["H_diag"] = product / float(change.dot(change))
    kind = gradient.dtype.type
    direction: Array = -gradient
    weights = [0.0] * len(changes)
    for i in reversed(range(len(changes))):
        weights[i] = float(moves[i].dot(direction)) * factors[i]
        direction = direction - kind(weights[i]) * changes[i]
    direction = direction * kind(memory["H_diag"])
    for i in range(len(changes)):
        weight = weights[i] - float(changes[i].dot(direction)) * factors[i]
        direction = direction + kind(weight) * moves[i]
    return direction


def interpolate(a: Point, b: Point, low: float, high: float) -> float:
    """Return the minimum of the cubic through two points and their slopes, within bounds."""
    first = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = first**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    second = sqrt(square)
    if a.t <= b.t:
        ratio = (b.slope + second - first) / (b.slope - a.slope + 2 * second)
        found = b.t - (b.t - a.t) * ratio
    else:
        ratio = (a.slope + second - first) / (a.slope - b.slope + 2 * second)
        found = a.t - (a.t - b.t) * ratio
    return min(max(found, low), high)


def search(
    objective: Objective,
    position: Sequence[Array],
    direction: Array,
    t: float,
    start: Point,
    options: Options,
) -> tuple[Point, int]:
    """Return a point that meets the strong Wolfe conditions, and the number of evaluations."""
    new = objective.along(position, t, direction)
    count, last = 1, start
    bracket: list[Point] = []
    rounds = 0
    while rounds < _MOST:
        is_high = new.loss > start.loss + _ARMIJO * new.t * start.slope
        if is_high or (rounds > 1 and new.loss >= last.loss):
            bracket = [last, new]
            break
        if abs(new.slope) <= -_CURVATURE * start.slope:
            return new, count
        if new.slope >= 0:
            bracket = [last, new]
            break
        t = interpolate(last, new, new.t + 0.01 * (new.t - last.t), new.t * 10)
        last, new = new, objective.along(position, t, direction)
        count += 1
        rounds += 1
    return _zoom(
        objective, position, direction, start, bracket or [start, new], rounds, count, options
    )


def _zoom(
    objective: Objective,
    position: Sequence[Array],
    direction: Array,
    start: Point,
    bracket: list[Point],
    rounds: int,
    count: int,
    options: Options,
) -> tuple[Point, int]:
    """Shrink a bracket until a point meets the conditions."""
    largest = float(np.abs(direction).max()) if direction.size else inf
    is_slow = False
    low, high = sorted(bracket, key=lambda p: p.loss)
    first, second = bracket
    while rounds < _MOST and abs(second.t - first.t) * largest >= options.tolerance_change:
        ends = sorted((first.t, second.t))
        t = interpolate(first, second, *ends)
        t, is_slow = _apart(t, ends, is_slow)
        new = objective.along(position, t, direction)
        count += 1
        rounds += 1
        place = 0 if low is first else 1
        if new.loss > start.loss + _ARMIJO * t * start.slope or new.loss >= low.loss:
            pair = [low, new] if place == 0 else [new, low]
            first, second = pair
            low, high = sorted(pair, key=lambda p: p.loss)
            continue
        is_done = abs(new.slope) <= -_CURVATURE * start.slope
        if not is_done and new.slope * (high.t - low.t) >= 0:
            high = low
        low = new
        first, second = (low, high) if place == 0 else (high, low)
        if is_done:
            break
    return low, count


def _apart(t: float, ends: Sequence[float], is_slow: bool) -> tuple[float, bool]:
    """Move `t` away from the ends of a bracket after slow progress; return it and whether it is."""
    low, high = ends
    margin = 0.1 * (high - low)
    if min(high - t, t - low) >= margin:
        return t, False
    if is_slow or t >= high or t <= low:
        return (high - margin if abs(t - high) < abs(t - low) else low + margin), False
    return t, True
