"""Random programs as functions that take and return containers: results are those without."""

from __future__ import annotations

import pickle
import runpy
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from program_derivatives import demand
from program_draft import Choices
from program_tolerance import differs

import primgraph as pg
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret

_DEEPEST = 3
_SAVED = 0.5


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Layer:
    weight: Any
    bias: Any


_CLASSES: tuple[type[Any], ...] = (Pair, Layer)


def form_of(draw: Choices, leaves: list[int], depth: int = 0) -> Any:
    """Containers of all `leaves`, in order; there may be empty ones and None among them."""
    if len(leaves) == 1 and (depth == _DEEPEST or draw.chance(0.6)):
        return leaves[0]
    if len(leaves) < 2 and draw.chance(0.5):
        parts = [leaves] if leaves else []
    else:
        middle = draw.below(len(leaves) + 1)
        parts = [leaves[:middle], leaves[middle:]]
    flat = depth == _DEEPEST
    made = [n for p in parts for n in p] if flat else [form_of(draw, p, depth + 1) for p in parts]
    # Lists and tuples of empty ones only stand for arrays without elements.
    kind = draw.below(5) if leaves or not made else 1
    if kind == 0 and len(made) == 2:
        return draw.choose(_CLASSES)(*made)
    if kind == 1:
        return {draw.choose(("w", "b b", "é"))[: 1 + i] + str(i): x for i, x in enumerate(made)}
    if kind == 2:
        return {7 - i: x for i, x in enumerate(made)}
    if not made and draw.chance(0.5):
        return None
    return made if kind == 3 else tuple(made)


def _parts(form: Any) -> Iterator[tuple[Any, Any]]:
    """The keys and parts of a container."""
    if isinstance(form, dict):
        yield from form.items()
    elif isinstance(form, Layer):
        yield from (("weight", form.weight), ("bias", form.bias))
    elif isinstance(form, list | tuple):
        yield from enumerate(form)


def filled(form: Any, items: Sequence[Any]) -> Any:
    """`form` with items in the places of their numbers."""
    if isinstance(form, int):
        return items[form]
    parts = {key: filled(part, items) for key, part in _parts(form)}
    if form is None or isinstance(form, dict):
        return None if form is None else parts
    if isinstance(form, _CLASSES):
        return type(form)(*parts.values())
    return type(form)(parts.values())


def leaves(form: Any, found: Any, alike: bool = True) -> Iterator[tuple[int, Any]]:
    """What `found` has in the places of numbers of `form`, which has the same containers.

    Unless `alike`, classes only have to have the same names and fields.
    """
    if isinstance(form, int):
        yield form, found
        return
    if isinstance(form, _CLASSES) and not alike:
        demand(type(found).__name__ == type(form).__name__, f"{found!r:.80} in place of {form!r}")
        names = ("left", "right") if isinstance(form, Pair) else ("weight", "bias")
        for name in names:
            yield from leaves(getattr(form, name), getattr(found, name), alike)
        return
    demand(type(found) is type(form), f"{found!r:.80} in the place of {form!r}")
    one, other = list(_parts(form)), list(_parts(found))
    demand([k for k, _ in one] == [k for k, _ in other], f"{found!r:.80} for {form!r}")
    for (_, part), (_, item) in zip(one, other, strict=True):
        yield from leaves(part, item, alike)


def _arrays(form: Any, found: Any, count: int, alike: bool = True) -> list[np.ndarray]:
    known = dict(leaves(form, found, alike))
    return [known[i] for i in range(count)]


def check_forms(
    graph: Graph, feeds: Sequence[np.ndarray], rng: np.random.Generator, seen: Counter[str]
) -> None:
    """The same with containers of arguments and results as without."""
    draw, count, total = Choices(rng), len(graph.inputs), len(graph.outputs)
    if not count:
        return
    ends = sorted({0, count, *(draw.below(count + 1) for _ in range(draw.below(3)))})
    groups = [list(range(i, k)) for i, k in pairwise(ends)]
    taken = [form_of(draw, group) for group in groups]
    given = form_of(draw, list(range(total)))
    names = [f"p{i}" for i in range(len(taken))]

    def function(*args: Any, **kwargs: Any) -> Any:
        passed = [*args, *kwargs.values()]
        known = dict(pair for f, a in zip(taken, passed, strict=True) for pair in leaves(f, a))
        builder = known[0].recorder
        values = builder.inline(graph, [known[i].value for i in range(count)])
        return filled(given, [pg.Variable(builder, v) for v in values])

    specs = [filled(form, [v.type for v in graph.inputs]) for form in taken]
    keywords = dict(zip(names, specs, strict=True))
    traced = pg.trace(function, **keywords)
    demand([v.type for v in traced.inputs] == [v.type for v in graph.inputs], "other inputs")
    arguments = [filled(form, feeds) for form in taken]
    expected = interpret(graph, *feeds)

    def require(what: str, found: Any, alike: bool = True) -> None:
        fault = differs(graph, feeds, expected, _arrays(given, found, total, alike))
        demand(not fault, f"{what}, which takes {taken} and returns {given}: {fault}")

    kernel = pg.compile(traced, style=draw.choose(("planned", "readable")))
    require("kernel", kernel(*arguments))
    named = dict(reversed(list(zip(names, arguments, strict=True))))
    require("kernel, called by name", kernel(**named))
    require("kernel after pickling", pickle.loads(pickle.dumps(kernel))(*arguments))
    out = filled(given, [np.empty(x.shape, x.dtype) for x in expected])
    result = kernel(*arguments, out=out)
    require("kernel that is given arrays", result)
    for i, array in leaves(given, out):
        demand(array is dict(leaves(given, result))[i], "another array than the one given")
    seen["functions of containers"] += 1
    if not graph.sizes and draw.chance(_SAVED):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "saved.py"
            kernel.save(path)
            with np.errstate(all="ignore"):
                saved = runpy.run_path(str(path))["function"](*arguments)
        require("saved file", saved, alike=False)
        seen["saved functions of containers"] += 1
