"""Hints of errors in compiled functions say what to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import primgraph as pg

X = np.array([0.1, 0.2, 0.3])


def flagged(p: Any, verbose: Any = False) -> Any:
    if verbose:
        return p
    return p * p


def converging(p: Any) -> Any:
    s = p
    for _ in range(10):
        s = s * 0.5
        if np.linalg.norm(s) < 1e-3:
            break
    return s


def noted(p: Any) -> Any:
    return np.sum(p * p), "a note"


def squared(p: Any) -> Any:
    return p * p


JITTED: Any = pg.jit(flagged)

# Calls, with parts of the message and of the hint.
CASES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a flag": (
        lambda: pg.jit(flagged)(X, verbose=True),
        "not known while a function is traced",
        "static_argnames='verbose' passes its value; without pg.jit",
    ),
    "a loop that ends": (
        lambda: pg.jit(converging)(X),
        "the truth of a variable is not known",
        "pg.while_loop(condition, body, state)",
    ),
    "an integer": (
        lambda: pg.jit(lambda p, n: p * range(5)[n])(X, 2),
        "no number before the compiled function runs",
        "static_argnames='n' passes its value; without pg.jit",
    ),
    "a shape": (
        lambda: pg.jit(lambda x, s: x.reshape(s))(np.ones(6), (2, 3)),
        "cannot be a variable",
        "static_argnames='s' passes",
    ),
    "zeros": (
        lambda: pg.jit(lambda n: np.zeros(n))(3),
        "numpy.zeros: a shape cannot depend on the value of a variable",
        "static_argnames='n'",
    ),
    "arange": (
        lambda: pg.jit(lambda n: np.arange(n))(3),
        "numpy.arange: a shape cannot depend on the value of a variable",
        "static_argnames='n'",
    ),
    "frompyfunc": (
        lambda: pg.jit(lambda p: np.frompyfunc(lambda v: v + 1, 1, 1)(p))(X),
        "is a Python function for arrays of objects",
        "write np.vectorize(f)(x)",
    ),
    "a spec": (lambda: JITTED(pg.spec(3)), "p is TensorType f64[3]", "f.kernel(pg.spec(shape))"),
    "source": (lambda: JITTED.source, "nothing named 'source'", "f.kernel(x0).source"),
    "save": (lambda: JITTED.save, "nothing named 'save'", "f.kernel(x0).save("),
    "a number": (
        lambda: pg.grad(3.0),  # type: ignore[call-overload]
        "grad takes a function, or outputs and inputs, not float alone",
        "pg.grad(f)(x)",
    ),
    "a string": (
        lambda: pg.jit(pg.grad(noted, has_aux=True))(X),
        "str 'a note'",
        "without pg.jit",
    ),
    "a target": (lambda: pg.jit(flagged, target="C"), "no target 'C'", "targets: numpy, c"),
    "a level": (lambda: pg.jit(flagged, math="quick"), "math='quick'", "choose one of"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_error_says_what_to_write(case: str) -> None:
    call, message, hint = CASES[case]
    with pytest.raises(RuntimeError) as caught:
        call()
    error: Any = caught.value
    assert message in str(error)
    assert hint in error.hint
    assert "pg.extend.implements" not in error.hint


def test_what_hints_say_works() -> None:
    np.testing.assert_array_equal(pg.jit(flagged, static_argnames="verbose")(X, verbose=True), X)
    np.testing.assert_allclose(pg.grad(lambda p: np.sum(converging(p)))(X), 0.5**9, atol=1e-2)
    found = pg.jit(lambda p: np.vectorize(lambda v: v + 1)(p))(X)
    np.testing.assert_array_equal(found, X + 1)
    assert "def squared(" in pg.jit(squared).kernel(X).source


def test_kernels_are_made_for_types() -> None:
    fast = pg.jit(lambda x, y: x * y["a"] + 1.0)
    kernel = fast.kernel(pg.spec(3), {"a": pg.spec((), "float32")})
    assert [str(v.type) for v in kernel.graph.inputs] == ["f64[3]", "f32[]"]
    np.testing.assert_array_equal(
        fast(X, {"a": np.float32(2.0)}), kernel(X, {"a": np.float32(2.0)})
    )
    assert len(fast.compilations) == 1
    sized = pg.jit(lambda x: x * 2.0).kernel(pg.spec(("N", 2)))
    np.testing.assert_array_equal(sized(np.ones((3, 2))), np.full((3, 2), 2.0))


def test_names_in_messages_are_as_the_user_wrote_them(tmp_path: Path) -> None:
    kernel = pg.compile(pg.trace(lambda θ: θ * 2.0, pg.spec(3)))
    with pytest.raises(pg.CompileError, match="is called 'θ', which is no name in C"):
        kernel.save(str(tmp_path / "f.c"))
