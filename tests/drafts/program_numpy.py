"""Random programs in NumPy: functions as people write them, which know nothing of primgraph.

A program is the text of a Python function that uses NumPy and SciPy by their own names. NumPy runs
it as it is, and what primgraph traces of it has to be the same. Each line is run as soon as it is
drafted: what is not finite, or large, or not an array is drafted again.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from string import Formatter
from typing import Any

import numpy as np
from program_draft import Choices
from program_numpy_rows import EXPRESSIONS, FOREIGN, PRELUDE, STATEMENTS, WIDE
from program_views import views_of

import primgraph as pg

LARGEST = 60
_HUGE = 40.0
_TRIES = 12
_NARROW = 0.12
_OF_STATEMENTS = 0.2
_OF_VIEWS = 0.06
_INTEGERS = 0.1
_SHAPES = ((3,), (4,), (2, 3), (3, 3), (2, 2), (5,), (2, 2, 2), (1, 3), (), (1,), (2, 3, 3))


@dataclass(frozen=True)
class NumpyProgram:
    """The program of a seed; steps in `left_out` give numbers that depend on nothing."""

    seed: int
    left_out: frozenset[int] = frozenset()

    @cached_property
    def drafted(self) -> _Draft:
        return _Draft(np.random.default_rng((self.seed, 91)))

    @property
    def count(self) -> int:
        return len(self.drafted.steps)

    @cached_property
    def source(self) -> str:
        """The text of the function `f`."""
        draft = self.drafted
        inputs = ", ".join(f"x{i}" for i in range(len(draft.feeds)))
        lines = [PRELUDE, f"def f({inputs}):"]
        for i, (name, step) in enumerate(draft.steps):
            if i in self.left_out:
                value = draft.known[name]
                step = [f"{name} = np.linspace(0.2, 0.9, {value.size}).reshape({value.shape})"]
            lines += [f"    {line}" for line in step]
        lines.append(f"    return ({', '.join(draft.outputs)},)")
        return "\n".join(lines) + "\n"

    def function(self, plain: bool) -> Callable[..., Any]:
        """The function, for NumPy if it is `plain`, else with what primgraph has of its own."""
        file = f"<numpy program {self.seed} {sorted(self.left_out)}>"
        names = {name: pair[not plain] for name, pair in FOREIGN.items()}
        space: dict[str, Any] = {"__name__": "numpy_program", **names}
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        exec(compile(self.source, file, "exec"), space)
        found: Callable[..., Any] = space["f"]
        return found

    @property
    def feeds(self) -> list[np.ndarray]:
        return self.drafted.feeds

    @property
    def others(self) -> list[np.ndarray]:
        return [np.asarray(x + x.dtype.type(0.05) * np.sin(3 * x + 1)) for x in self.feeds]

    @property
    def changes(self) -> bool:
        """Whether the function changes arrays in place."""
        return any(len(lines) > 1 for _, lines in self.drafted.steps)

    @property
    def types(self) -> list[Any]:
        return [pg.spec(x.shape, x.dtype) for x in self.feeds]

    def __str__(self) -> str:
        body = self.source.removeprefix(PRELUDE)
        return f"NumPy program {self.seed}\n{body}\nfeeds:\n{self.feeds!r}"


class _Draft(Choices):
    """Lines in the making, with the arrays that they give."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.is_narrow = self.chance(_NARROW)
        dtype = np.dtype("float32" if self.is_narrow else "float64")
        self.space: dict[str, Any] = {name: pair[0] for name, pair in FOREIGN.items()}
        exec(PRELUDE, self.space)
        self.known: dict[str, np.ndarray] = {}
        self.feeds = []
        for i in range(self.below(4, 1)):
            x = np.asarray(rng.normal(0, self.choose((0.5, 1.0)), self.choose(_SHAPES)), dtype)
            self.feeds.append(x)
            self.known[f"x{i}"] = x
        self.space |= self.known
        self.steps: list[tuple[str, list[str]]] = []
        for _ in range(self.below(8, 2)):
            self._step()
        made = [name for name, _ in self.steps]
        count = min(self.below(3, 1), len(made))
        self.outputs = made[-count:] if made else ["x0"]
        if self.chance(_INTEGERS) and self.known[self.outputs[0]].ndim:
            # What is equal up to rounding is told apart.
            first = self.outputs[0]
            self.outputs.append(f"np.argsort(distinct({first}), axis=-1)")

    def _step(self) -> None:
        for _ in range(_TRIES):
            name = f"v{len(self.steps)}"
            if self.chance(_OF_VIEWS):
                operand = self._operand("n", {})
                if operand in self.known:
                    lines = views_of(self, operand, self.known[operand], name, self.space)
                    if self._holds(name, lines):
                        self.steps.append((name, lines))
                        return
                continue
            if self.chance(_OF_STATEMENTS):
                text = self.choose(STATEMENTS).strip()
            else:
                text = f"{{out}} = {self.choose(self.choose(EXPRESSIONS))}"
                if self.is_narrow and any(word in text for word in WIDE):
                    continue
            lines = self._filled(text, name).split("\n")
            if self._holds(name, lines):
                self.steps.append((name, lines))
                return

    def _filled(self, text: str, out: str) -> str:
        """The text with operands in the place of their kinds; the same kind is the same operand."""
        chosen = {"out": out}
        for _, kind, _, _ in Formatter().parse(text):
            if kind and kind not in chosen:
                chosen[kind] = self._operand(kind, chosen)
        return text.format(**chosen)

    def _operand(self, kind: str, chosen: dict[str, str]) -> str:
        if kind == "k":
            return str(self.below(3))
        if kind in ("b", "w", "r"):
            first = {"b": "a", "w": "v", "r": "m"}[kind]
            if first not in chosen:
                chosen[first] = self._operand(first, chosen)
            other = chosen[first]
            like = self.known.get(other)
            shape = None if like is None else like.shape
            found = [n for n, x in self.known.items() if x.shape == shape and x.dtype.kind == "f"]
            return self.choose(found) if found and self.chance(0.7) else f"(0.5 * {other} + 0.1)"
        tests: dict[str, Callable[[np.ndarray], bool]] = {
            "a": lambda x: True,
            "n": lambda x: x.ndim > 0,
            "v": lambda x: x.ndim == 1 and len(x) > 2,
            "m": lambda x: x.ndim == 2 and min(x.shape) > 1,
            "q": lambda x: x.ndim == 2 and 1 < x.shape[0] == x.shape[1] < 5,
        }
        found = [n for n, x in self.known.items() if x.dtype.kind == "f" and tests[kind](x)]
        if not found:
            shape = {"n": "(3,)", "v": "(4,)", "m": "(2, 3)", "q": "(3, 3)"}[kind]
            return f"grown({self.choose(list(self.known))}, {shape})"
        return found[max(self.below(len(found)), self.below(len(found)))]

    def _holds(self, name: str, lines: list[str]) -> bool:
        """Whether the lines give an array of ordinary numbers; it is kept then."""
        with np.errstate(all="ignore"):
            try:
                exec("\n".join(lines), self.space)
            except (ValueError, np.linalg.LinAlgError, IndexError, TypeError):
                return False
        value = np.asarray(self.space[name])
        fine = value.dtype.kind == "f" and 0 < value.size <= LARGEST
        if not fine or not np.all(np.isfinite(value)) or np.max(np.abs(value)) > _HUGE:
            return False
        self.known[name] = value
        return True
