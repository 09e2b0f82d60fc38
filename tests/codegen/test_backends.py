"""A second back end: a printer of plans and a table, which computes what the interpreter does."""

import ast
from pathlib import Path

import numpy as np
import pytest
import toy_backend

import primgraph as pg
from primgraph.codegen.ir.limits import Options
from primgraph.codegen.ir.verify import verify
from primgraph.ir.interpret import interpret
from primgraph.ir.slices import drop_formal
from primgraph.transforms import lower
from primgraph.transforms.optimize.clean_up import clean_up


def runs_as_interpreted(graph, feeds, options=Options()):  # noqa: B008
    plan, run = toy_backend.compiled(drop_formal(graph), options)
    verify(plan)
    given = [x.reshape(-1).tolist() for x in feeds]
    expected = interpret(graph, *feeds)
    found = run(*given)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.reshape(one, other.shape), other, rtol=1e-12, atol=1e-12)
    return given, found


def classifier(x, labels, w, b):
    scores = pg.softmax(pg.tanh(x @ w) @ b, axis=1)
    loss = -pg.mean(pg.log(scores @ np.ones((2, 1))) + pg.sum(scores * labels, axis=1))
    return loss, *pg.grad(loss, [w, b])


def attention(q, k, v):
    s = pg.softmax((q @ k.T) / 4.0, axis=-1)
    out = pg.sum((s @ v) * v)
    return out, *pg.grad(out, [q, k, v])


def curvature(x, v):
    slope = pg.grad(pg.sum(pg.exp(pg.sin(x[::-1]) * pg.min(x))) + pg.max(abs(x)), x)
    return pg.forward_grad(slope, x, v), x.T, x


CASES = {
    classifier: ((4, 3), (4, 2), (3, 5), (5, 2)),
    attention: ((6, 4), (6, 4), (6, 4)),
    curvature: ((4,), (4,)),
}


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_derivatives_are_computed_on_lists(function):
    rng = np.random.default_rng(0)
    feeds = [rng.normal(size=s) for s in CASES[function]]
    runs_as_interpreted(clean_up(lower(pg.trace(function, *feeds))), feeds)


def test_donated_lists_are_written():
    graph = pg.parse("""graph step(%w: f64[3], %v: f64[3]) {
      %0: f64[3] = reverse(%w, axes=(0,))
      %1: f64[3] = mul(%0, %v)
      return %0, %1, %w
    }""")
    feeds = [np.arange(3.0), np.arange(3.0) + 2]
    given, found = runs_as_interpreted(graph, feeds, Options(donated=((0, 0), (1, 1))))
    assert found[0] is given[0]
    assert found[1] is given[1]


def test_the_back_end_is_short_and_knows_plans_only():
    text = Path(toy_backend.__file__).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    imported = {n.module for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom)}
    emitting = tuple(f"primgraph.codegen.{room}" for room in ("cards", "emit"))
    assert not [m for m in imported if m is not None and m.startswith(emitting)]


def test_what_has_no_card_is_a_call_that_a_back_end_has_to_print():
    graph = pg.parse("""graph f(%x: f64[3], %i: i64[2]) {
      %0: f64[2] = gather(%x, %i, axis=0)
      return %0
    }""")
    with pytest.raises(KeyError, match="Call"):
        toy_backend.compiled(graph, Options())
