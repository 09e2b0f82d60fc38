"""Random programs with equal expressions, differentiated by variables on the way.

The oracle is the same program as nested functions: what comes behind a variable is a function of
it, which is called on what the variable is. Equal expressions are drawn often, and so are
operations that leave elements as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from program_derivatives import demand
from program_draft import Choices

import primgraph as pg

_STEPS = 7
_AGAIN = 0.35
_LARGEST = 3
_CLOSE = 1e-9

# Of one variable.
_UNARY: dict[str, Callable[[Any], Any]] = {
    "twice": lambda x: x * 2.0,
    "plus zero": lambda x: x + 0.0,
    "times one": lambda x: x * 1.0,
    "assigned": pg.assign,
    "sliced": lambda x: x[:],
    "transposed twice": lambda x: x.T.T,
    "reshaped": lambda x: pg.reshape(x, x.shape),
    "sin": pg.sin,
    "tanh": pg.tanh,
    "softmax": pg.softmax,
    "standardised": lambda x: (x - pg.mean(x)) / (1.0 + pg.std(x)),
    "reversed": lambda x: x[::-1],
    "held": lambda x: pg.stop_gradient(x) * x,
    "cond": lambda x: pg.cond(pg.sum(x) > 0.0, lambda: x * x, lambda: x),
    "scan": lambda x: pg.scan(lambda c, _: (pg.sin(c), None), x, length=2)[0],
    "carried on": lambda x: pg.scan(lambda c, _: (c, None), x, length=2)[0],
    "while_loop": lambda x: pg.while_loop(lambda c: pg.sum(c * c) > 9.0, lambda c: c * 0.5, x),
    "vmap": lambda x: pg.vmap(lambda e: e * pg.cos(e))(x),
    "checkpoint": lambda x: pg.checkpoint(lambda v: pg.tanh(v) * v)(x),
    "gradient": lambda x: pg.grad(lambda v: pg.sum(pg.sin(v) * v))(x),
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, y: x * y,
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - 0.5 * y,
    "quotient": lambda x, y: x / (2.0 + y * y),
    "shared sine": lambda x, y: pg.sin(x) * pg.sin(y),
    "largest": lambda x, y: pg.logaddexp(x, y),
}
_CONSTANTS: dict[str, Callable[[int], Any]] = {
    "ones": lambda n: pg.ones(n),
    "full": lambda n: pg.full((n,), 0.5),
    "array": lambda n: pg.array(np.linspace(0.1, 1.0, n)),
}

# Where functions on variables run, by their names.
_WORLDS = ("program", "trace", "jit", "tensors", "loop", "branch")

Step = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class IdentityProgram:
    """The program of a seed, less the steps in `left_out`."""

    seed: int
    left_out: frozenset[int] = frozenset()

    @cached_property
    def _draw(self) -> Choices:
        return Choices(np.random.default_rng((self.seed, 29)))

    @cached_property
    def point(self) -> np.ndarray[Any, Any]:
        draw = Choices(np.random.default_rng((self.seed, 31)))
        return draw.rng.normal(size=draw.below(_LARGEST + 1, 1))

    @cached_property
    def steps(self) -> list[Step]:
        """For each step its function and the places of its operands, 0 that of the input."""
        draw, steps = self._draw, list[Step]()
        for place in range(1, draw.below(_STEPS + 1, 3) + 1):
            before = [*range(place)]
            if steps and draw.chance(_AGAIN):
                steps.append(draw.choose(steps))
            elif draw.chance(0.1):
                steps.append((draw.choose([*_CONSTANTS]), ()))
            elif draw.chance(0.4):
                steps.append((
                    draw.choose([*_BINARY]), (draw.choose(before), draw.choose(before))
                ))  # fmt: skip
            else:
                steps.append((draw.choose([*_UNARY]), (draw.choose(before[-2:]),)))
        return steps

    @property
    def count(self) -> int:
        return len(self.steps)

    def moves(self, place: int) -> bool:
        """Whether the variable of that place depends on the input, as tensors need."""
        operands = self.steps[place - 1][1] if place else ()
        return place == 0 or any(map(self.moves, operands))

    def values(self, x: Any, given: Mapping[int, Any]) -> list[Any]:
        """The variables of all places, those in `given` in the place of what steps compute."""
        values = [given.get(0, x)]
        for place, (name, operands) in enumerate(self.steps, 1):
            if place in given:
                values.append(given[place])
            elif place - 1 in self.left_out:
                values.append(values[operands[0]] if operands else values[0])
            elif not operands:
                values.append(_CONSTANTS[name](len(self.point)))
            else:
                function: Any = _UNARY.get(name) or _BINARY[name]
                values.append(function(*[values[o] for o in operands]))
        return values

    def loss(self, x: Any, given: Mapping[int, Any]) -> Any:
        return self.ending(self.values(x, given))

    def ending(self, values: list[Any]) -> Any:
        """One number that depends on all variables, each with a weight of its own."""
        total = pg.sum(values[0] * 0.3)
        for place, value in enumerate(values):
            total = total + pg.sum(value * value) * (0.1 + 0.07 * place)
        return total + pg.sum(values[-1] * values[len(values) // 2])

    def __str__(self) -> str:
        rows = [f"{i}: {name}{places}" for i, (name, places) in enumerate(self.steps, 1)]
        kept = [row for i, row in enumerate(rows) if i not in self.left_out]
        return "\n".join([f"input of {len(self.point)}", *kept])


def check_identity(program: IdentityProgram, seen: Counter[str]) -> None:
    """Derivatives by intermediate variables are those of nested functions, in all worlds."""
    draw = Choices(np.random.default_rng((program.seed, 37)))
    place = draw.below(program.count + 1)
    later = [*range(place + 1)]
    other = draw.choose([*later, place, place])

    def straight(x: Any) -> Any:
        values = program.values(x, {})
        loss = program.ending(values)
        by_place = slope_of(loss, values[place])
        return by_place, slope_of(pg.sum(by_place * 1.5), values[other])

    def nested(x: Any) -> Any:
        values = program.values(x, {})

        def behind_other(u: Any) -> Any:
            if other == place:
                return pg.grad(lambda v: program.loss(x, {**before(x, place), place: v}))(u)
            known = program.values(x, {**before(x, other), other: u})
            fixed = {i: known[i] for i in range(place)}
            return pg.grad(lambda v: program.loss(x, {**fixed, place: v}))(known[place])

        def before(x: Any, end: int) -> dict[int, Any]:
            return {i: values[i] for i in range(end)}

        second = pg.grad(lambda u: pg.sum(behind_other(u) * 1.5))(values[other])
        return behind_other(values[other]), second

    expected = computed("jit", nested, program.point)
    for world in draw.order(len(_WORLDS))[:3]:
        name = _WORLDS[world]
        if name == "tensors" and not (program.moves(place) and program.moves(other)):
            continue
        found = computed(name, straight, program.point)
        for what, a, b in zip(("first", "second"), found, expected, strict=True):
            close = np.allclose(a, b, rtol=_CLOSE, atol=_CLOSE)
            demand(close, f"{what} derivative by {place}, {other} in {name}: {a} and not {b}")
        seen[f"derivatives by intermediate variables, {name}"] += 1


def slope_of(y: Any, x: Any) -> Any:
    """The gradient, which can be taken again; zeros where there is none."""
    if isinstance(y, pg.Tensor):
        (found,) = pg.grad(y, [x], create_graph=True, allow_unused=True)
        return pg.zeros_like(x) if found is None else found
    return pg.grad(y, x, materialize_grads=True)


def computed(world: str, function: Callable[[Any], Any], point: Any) -> list[Any]:
    """What `function` gives for an array, where it is built or run as the name says."""
    if world == "program":
        with pg.Program() as program:
            found = function(pg.data("x", point.shape))
        return pg.Executor().run(program, {"x": point}, list(found))
    if world == "trace":
        return [*pg.compile(pg.trace(function, pg.spec(point.shape)))(point)]
    if world == "jit":
        return [*pg.jit(function)(point)]
    if world == "tensors":
        return [np.asarray(v.detach()) for v in function(pg.tensor(point, requires_grad=True))]
    if world == "branch":
        return [*pg.jit(lambda x: pg.cond(pg.sum(x * x) >= 0.0, function, function, x))(point)]
    stacks = pg.jit(lambda x: pg.scan(lambda c, _: (c, function(x)), 0.0, length=1)[1])(point)
    return [s[0] for s in stacks]
