"""Number of equations of derivatives by order."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, final

from primgraph.base.plain_text import plain, shorten_text, width_of
from primgraph.derivatives.grad import forward_grad, grad
from primgraph.errors import ArgumentError, OptionError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import checked_late, checked_methods
from primgraph.ir.graph import Graph
from primgraph.operators.shape.creation import zeros
from primgraph.operators.variable import Variable
from primgraph.program.trace import trace
from primgraph.transforms.pipeline import optimize_graph
from primgraph.view.formats.svg import document, label_text, number
from primgraph.view.scene import LABEL_SIZE

_WIDTH, _HEIGHT = 420.0, 220.0
_LEFT, _TOP, _FOOT = 64.0, 44.0, 46.0
_BAR = 40
_MOST_TITLE = 60


@final
@checked_methods("__init__")
@dataclass(frozen=True, slots=True)
class Growth:
    """Number of equations for each order of derivative, from 0; it prints as a table."""

    name: str
    mode: str
    equations: tuple[int, ...]

    def __str__(self) -> str:
        most = max(self.equations)
        lines = [self._title(), "order  equations"]
        for order, n in enumerate(self.equations):
            bar = "█" * round(_BAR * n / most) if most else ""
            lines.append(f"{order:5}  {n:9}  {bar}".rstrip())
        return "\n".join(lines)

    def to_svg(self) -> str:
        """Return a plot of the numbers over the orders, as SVG."""
        most = max(1, *self.equations)
        step = _WIDTH / max(1, len(self.equations) - 1)
        places = [
            (_LEFT + i * step, _TOP + _HEIGHT * (1 - n / most))
            for i, n in enumerate(self.equations)
        ]
        body = [label_text("label left", 16, 24, self._title())]
        for n in _ticks(most):
            y = _TOP + _HEIGHT * (1 - n / most)
            body.append(_line("grid", [(_LEFT, y), (_LEFT + _WIDTH, y)]))
            body.append(label_text("note right", _LEFT - 8, y + 4, str(n)))
        every = -(-len(places) // 16)
        for i, (x, _) in enumerate(places):
            if i % every == 0:
                body.append(label_text("note", x, _TOP + _HEIGHT + 18, str(i)))
        body.append(label_text("note", _LEFT + _WIDTH / 2, _TOP + _HEIGHT + 36, "order"))
        body.append(_line("curve", places))
        for (x, y), n in zip(places, self.equations, strict=True):
            told = f"<title>{n}</title>"
            body.append(
                f'<circle class="dot" cx="{number(x)}" cy="{number(y)}" r="4">{told}</circle>'
            )
        needed = max(_LEFT + _WIDTH + 24, 32 + width_of(self._title(), LABEL_SIZE))
        return document(body, needed, _TOP + _HEIGHT + _FOOT, self._title())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plot to a file with the extension .svg, or the table to .txt.

        Raises `ArgumentError` for another extension.
        """
        forms = {".svg": self.to_svg, ".txt": self.__str__}
        form = Path(path).suffix.lower()
        if form not in forms:
            raise ArgumentError(f"growth is saved as .svg or .txt, not as {form!r}")
        Path(path).write_text(forms[form](), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _title(self) -> str:
        name = shorten_text(plain(self.name), _MOST_TITLE)
        return f"equations of the derivatives of {name}, {self.mode} mode"


@checked_late
def growth(
    function: Callable[..., Any] | Graph, *specs: Any, orders: int = 6, mode: str = "reverse"
) -> Growth:
    """Count the equations of the derivatives of `function`, from order 0 to `orders`.

    The function, with `specs` as in `trace`, or a graph, is differentiated repeatedly by its first
    input, in the mode "reverse" (`grad`) or "forward" (`forward_grad`), each time the sum of all
    elements along ones. Each derivative is counted by itself, lowered and cleaned up as for
    compilation.

    Raises `OptionError` for another mode and for negative orders, `ArgumentError` for a function
    without inputs, and otherwise as `trace` and `grad`.

    >>> pg.growth(pg.tanh, pg.spec(3), orders=3).equations
    (1, 4, 7, 11)
    """
    if mode not in ("reverse", "forward"):
        raise OptionError(f"mode is 'reverse' or 'forward', not {mode!r:.80}")
    if not isinstance(orders, int) or orders < 0:
        raise OptionError(f"the highest order is an integer and not negative, not {orders!r:.60}")
    if not isinstance(function, Graph) and not callable(function):
        raise ArgumentError(f"growth takes a function or a graph, not {function!r:.60}")
    graph = function if isinstance(function, Graph) else trace(function, *specs)
    if not graph.inputs:
        raise ArgumentError(f"{graph.name} has no input to differentiate by")
    builder = Builder(graph.name)
    inputs = [builder.input(v.type, v.hint) for v in graph.inputs]
    with builder:
        values = builder.inline(graph, inputs)
        outputs = [Variable(builder, v) for v in values]
        counts = []
        for order in range(orders + 1):
            if order:
                outputs = _differentiate(outputs, Variable(builder, inputs[0]), mode)
            ends = [v.value for v in outputs]
            counts.append(len(optimize_graph(builder.part(inputs, ends))))
    return Growth(graph.name, mode, tuple(counts))


def _differentiate(outputs: Sequence[Variable], x: Variable, mode: str) -> list[Variable]:
    """Return the derivatives of `outputs` by `x`; zeros if they no longer depend on it."""
    if mode == "reverse":
        return [grad(list(outputs), x, materialize_grads=True)]
    found = forward_grad(list(outputs), x)
    return [
        zeros(y.shape, y.dtype) if d is None else d for y, d in zip(outputs, found, strict=True)
    ]


def _ticks(most: int) -> list[int]:
    """Return a few round numbers from 0 to `most`."""
    unit = next(u for u in (b * 10**k for k in count() for b in (1, 2, 5)) if most <= 5 * u)
    return list(range(0, most + 1, unit))


def _line(style: str, points: Sequence[tuple[float, float]]) -> str:
    joined = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return f'<polyline class="{style}" points="{joined}"/>'
