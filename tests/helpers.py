"""What tests of operators share: building a program of one function and evaluating it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from density import drawn
from program_tolerance import differs

import primgraph as pg
from primgraph.codegen.ops.c.spellings import SPELLINGS
from primgraph.codegen.ops.table import CARDS
from primgraph.extend import registered
from primgraph.ir.builder import Builder
from primgraph.ir.facts import ops as registry
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse
from primgraph.ir.types import TensorType
from primgraph.ir.verify import verify
from primgraph.operators import lazy_loading
from primgraph.operators.numpy_overrides import implemented
from primgraph.operators.variable import Variable
from primgraph.transforms import lower
from primgraph.transforms.pipeline import PASSES

# Without bfloat16 and longdouble, which no graph holds.
DTYPES = [np.dtype(c) for c in ["?", "b", "h", "i", "q", "B", "H", "I", "Q", "e", "f", "d"]]


def traced(function: Callable[..., Any], *arrays: Any) -> Graph:
    """The graph of `function` on inputs of the types of `arrays`, verified and round-tripped."""
    builder = Builder()
    inputs = [
        Variable(builder, builder.input(TensorType(a.shape, a.dtype), f"x{i}"))
        for i, a in enumerate(map(np.asarray, arrays))
    ]
    with builder:
        result = function(*inputs)
    results = list(result) if isinstance(result, list | tuple) else [result]
    graph = verify(builder.graph([v.value for v in results]))
    assert parse(str(graph)) == graph
    return graph


def evaluate(function: Callable[..., Any], *arrays: Any) -> list[np.ndarray[Any, Any]]:
    """The results of `function`, written with handles, on `arrays`.

    With tensors they are equal: that is looked at for one graph in four, as it takes long.
    """
    graph = traced(function, *arrays)
    expected = interpret(graph, *arrays)
    if not drawn(str(graph), 4):
        return expected
    found = function(*map(pg.tensor, arrays))
    results = list(found) if isinstance(found, list | tuple) else [found]
    assert all(isinstance(t, pg.Tensor) for t in results)
    feeds = [np.asarray(a) for a in arrays]
    fault = differs(lower(graph), feeds, expected, [np.asarray(t) for t in results])
    assert not fault, fault
    return expected


def evaluate_one(function: Callable[..., Any], *arrays: Any) -> np.ndarray[Any, Any]:
    """The only result of `function` on `arrays`."""
    (result,) = evaluate(function, *arrays)
    return result


def sample(shape: Any, dtype: Any = np.float64, seed: int = 0, low: float = -2.0) -> Any:
    """Numbers of that shape and dtype: small integers, booleans, or floats down to `low`."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if kind in "iu":
        return np.asarray(rng.integers(-5 if kind == "i" else 0, 6, shape)).astype(dtype)
    return np.asarray(low + (2.0 - low) * rng.random(shape)).astype(dtype)


def same(found: Any, expected: Any, tolerance: float = 0.0) -> None:
    """Equal dtypes, shapes and elements, NaN included; within a relative tolerance if given."""
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype, f"{found.dtype} instead of {expected.dtype}"
    assert found.shape == expected.shape, f"{found.shape} instead of {expected.shape}"
    if tolerance:
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(found, expected)


@contextlib.contextmanager
def restored_tables() -> Iterator[None]:
    """Forget the primitives, operators, cards and passes that an example declares.

    All that load late are loaded first, so that only those of the example are forgotten.
    """
    registered()
    lazy_loading.all_functions()
    tables: list[dict[Any, Any]] = [
        registry._registry, CARDS, SPELLINGS, lazy_loading.functions, implemented
    ]  # fmt: skip
    before, passes = [dict(table) for table in tables], list(PASSES)
    try:
        yield
    finally:
        for table, entries in zip(tables, before, strict=True):
            table.clear()
            table.update(entries)
        PASSES[:] = passes


# Sums over pairs of points.


def lennard_jones(x: Any) -> Any:
    """The energy of points, and the forces."""
    apart = x[:, None] - x[None]
    s = (pg.sum(apart**2, axis=-1) + pg.eye(x.shape[0], dtype=x.dtype)) ** -3
    energy = pg.sum(s * s - s)
    return energy, pg.grad(energy, x)


def gravity(x: Any) -> Any:
    """The forces between points, and a gradient of them."""
    apart = x[None] - x[:, None]
    pull = (pg.sum(apart * apart, axis=-1) + 0.01) ** -1.5
    force = pg.sum(apart * pull[:, :, None], axis=1)
    return force, pg.grad(pg.sum(force * force), x)
