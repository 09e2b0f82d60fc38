"""NaNs and infinities: the first equation that makes one is found, wherever it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primgraph as pg

run = pg.Executor().run


def stopped(build: Callable[[Any], Any], array: Any, **options: Any) -> pg.NumericalError:
    """The error of a run with debug="nan" of what `build` makes of an input `x`."""
    with pg.Program() as program:
        x = pg.data("x", np.shape(array))
        fetched = build(x)
    with pytest.raises(pg.NumericalError) as caught:
        run(program, {"x": array}, [fetched], debug="nan", **options)
    return caught.value


def fine(build: Callable[[Any], Any], array: Any) -> np.ndarray[Any, Any]:
    """What a run with debug="nan" gives, which is what one without gives."""
    with pg.Program() as program:
        x = pg.data("x", np.shape(array))
        fetched = [build(x)]
    feed = {"x": np.asarray(array)}
    (checked,), (plain,) = run(program, feed, fetched, debug="nan"), run(program, feed, fetched)
    assert checked.tobytes() == plain.tobytes()
    return checked


X = np.array([1.0, 0.0, -2.0])


def test_the_message_has_the_equation_the_line_and_the_operands() -> None:
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.log(pg.tanh(x))
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    with pytest.raises(pg.NumericalError) as caught:
        run(program, {"x": X}, [pg.sum(y)], debug="nan")
    rows = str(caught.value).splitlines()
    assert rows[0] == "log makes -inf at [1] of 0.0"
    assert rows[1] == f"  written here:  test_numerics.py:{line}   y = pg.log(pg.tanh(x))"
    assert rows[2] == "  equation:      %1: f64[3] = log(%0: f64[3])"
    assert rows[3].startswith("  operand 0:     f64[3] from -0.964027580075816")
    assert rows[3].endswith(f"0.0 at [1]   from tanh at test_numerics.py:{line}")
    assert "1 NaN, 1 -inf" in rows[4]
    assert "pg.where on the operand" in rows[5]
    assert isinstance(caught.value, pg.RunError)


@pytest.mark.parametrize(
    ("build", "array", "words"),
    [
        (lambda x: 1.0 / x, X, "div makes inf at [1] of 1.0 and 0.0"),
        (lambda x: pg.sqrt(x), X, "sqrt makes NaN at [2] of -2.0"),
        (lambda x: 1.0 / (1.0 + pg.exp(-x)), [0.0, -800.0], "exp makes inf at [1] of 800.0"),
        (lambda x: pg.sum(x), [1e308, 1e308], "reduce_sum makes inf of what has none"),
        (lambda x: x @ x, [1e200, 1.0], "matmul makes inf"),
        (lambda x: x.astype("float16"), [1e6], "cast makes inf at [0] of 1000000.0"),
        (lambda x: x - x, [np.inf], "sub makes NaN at [0] of inf and inf"),
        (lambda x: pg.cumsum(1.0 / x)[0], [1.0, 0.0], "div makes inf at [1]"),
        (lambda x: pg.stack([x, 1.0 / x])[1, ::-1], X, "div makes inf at [1]"),
    ],
)
def test_what_makes_one_is_named(build: Any, array: Any, words: str) -> None:
    assert words in stopped(build, np.asarray(array, float)).message


@pytest.mark.parametrize(
    ("build", "array", "words"),
    [
        (lambda x: pg.grad(pg.sqrt(x), x), [4.0, 0.0], "div makes inf at [1] of 0.5 and 0.0"),
        (
            lambda x: pg.grad(x ** np.full(2, 0.5), x),
            [4.0, 0.0],
            "power makes inf at [1] of 0.0 and -0.5",
        ),
        (lambda x: pg.grad(pg.sqrt(pg.var(x)), x), [1.0, 1.0], "div makes inf of 0.5 and 0.0"),
        (lambda x: pg.grad(pg.grad(pg.sum(x**1.5), x), x), [0.0], "power makes inf"),
    ],
)
def test_derivatives_say_so(build: Any, array: Any, words: str) -> None:
    error = stopped(build, np.asarray(array))
    assert words in error.message
    assert ", in the gradient of test_numerics.py:" in error.message
    assert "\n  written here:  in the gradient of test_numerics.py:" in str(error)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: pg.where(x > 0, pg.log(x), 0.0),
        lambda x: pg.grad(pg.where(x > 0, pg.log(x), 0.0), x),
        lambda x: pg.grad(pg.grad(pg.where(x > 0, pg.sqrt(x), 0.0), x), x),
        lambda x: pg.where(pg.isfinite(pg.log(x)), pg.log(x), 7.0),
        lambda x: pg.softmax(pg.where(x > 0, x, -np.inf)),
        lambda x: pg.grad(pg.logsumexp(pg.where(x > 0, x, -np.inf)), x),
        lambda x: pg.max(pg.full((3,), np.inf)) + x,
        lambda x: pg.grad(pg.norm(x * 0.0), x),
        lambda x: (1.0 / x) > 0.0,
        lambda x: pg.where(x > 0, pg.sum(pg.stack([pg.log(x), x]), axis=0), 0.0),
        lambda x: pg.sigmoid(x * 1e6),
    ],
)
def test_what_is_by_design_does_not_stop(build: Any) -> None:
    fine(build, X)


def test_of_several_results_the_first_equation_is_named() -> None:
    with pg.Program() as program:
        x = pg.data("x", (3,))
        first, second = pg.log(x), 1.0 / x
    with pytest.raises(pg.NumericalError, match=r"log makes -inf at \[1\]"):
        run(program, {"x": X}, [second, first], debug="nan")


def test_what_is_fed_is_not_made() -> None:
    found = fine(lambda x: pg.sum(pg.exp(x) * 2.0), [1.0, np.nan])
    assert np.isnan(found)
    assert fine(lambda x: x * 2.0, [np.inf, 1.0])[0] == np.inf
    # At another element it is.
    assert "log makes -inf at [1]" in stopped(pg.log, np.array([np.nan, 0.0])).message


def test_nothing_is_stored_when_it_stops() -> None:
    with pg.Program() as program:
        x = pg.data("x", (2,))
        w = pg.create_parameter((2,), name="w", initializer=pg.initializers.Constant(1.0))
        loss = pg.sum(pg.log(x) * w)
        pg.optimizer.Adam(0.1).minimize(loss)
    before = program.state_dict()
    with pytest.raises(pg.NumericalError, match="log makes NaN"):
        run(program, {"x": [1.0, -1.0]}, [loss], debug="nan")
    for name, array in program.state_dict().items():
        np.testing.assert_array_equal(array, before[name])
    run(program, {"x": [1.0, 2.0]}, [loss], debug="nan")
    assert program.state_dict()["adam.step"] == 1


def test_updates_are_looked_at_too() -> None:
    with pg.Program() as program:
        w = pg.create_parameter((), name="w", initializer=pg.initializers.Constant(1e200))
        program.update(w, w * w)
    with pytest.raises(pg.NumericalError, match=r"mul makes inf of 1e\+200 and 1e\+200"):
        run(program, debug="nan")


def test_an_index_out_of_range_is_told_as_in_a_run() -> None:
    with pg.Program() as program:
        x, i = pg.data("x", (3,)), pg.data("i", (), "int64")
        y = pg.sin(x)[i]
    with pytest.raises(pg.RunError, match=r"gather failed: IndexError: index 3") as caught:
        run(program, {"x": X, "i": 3}, [y], debug="nan")
    assert "written here:  test_numerics.py:" in str(caught.value)


def test_functions_graphs_and_kernels_are_checked() -> None:
    graph = pg.trace(lambda x: pg.log(x), pg.spec(3))
    for checked in (pg.log, graph, pg.compile(graph)):
        np.testing.assert_array_equal(pg.check_finite(checked, np.ones(3))[0], np.zeros(3))
        with pytest.raises(pg.NumericalError, match=r"log makes -inf at \[1\] of 0.0"):
            pg.check_finite(checked, np.array([1.0, 0.0, 1.0]))
    with pytest.raises(pg.FeedError, match="1 arrays, 2 given"):
        pg.check_finite(graph, 1.0, 2.0)


@pytest.mark.long
def test_long_chains_take_linear_time_and_no_recursion() -> None:
    def chain(x: Any) -> Any:
        for _ in range(8_000):
            x = pg.sin(x) + 0.5
        return pg.log(x - x)

    with pytest.raises(pg.NumericalError, match="log makes -inf"):
        pg.check_finite(chain, np.ones(2))


def gathered(n: int = 3) -> tuple[pg.Program, list[pg.Variable], str]:
    """A program of which a gather, and the scatter of its gradient, fail at a bad index."""
    with pg.Program("rows") as program:
        x, i = pg.data("x", (n,)), pg.data("i", (n,), "int64")
        y = pg.sum(pg.sin(x)[i])
        place = f"test_numerics.py:{inspect.currentframe().f_lineno - 1}"  # type: ignore[union-attr]
        return program, [y, pg.grad(y, x)], place


@pytest.mark.parametrize("style", ["planned", "readable"])
@pytest.mark.parametrize("size", [3, 200_000])
@pytest.mark.parametrize("derived", [False, True])
def test_a_failure_at_run_time_names_all_three(style: str, size: int, derived: bool) -> None:
    program, fetched, place = gathered(size)
    kernel = pg.compile(program.graph([fetched[derived]]), style=style)
    feeds = {"x": np.ones(size), "i": np.full(size, size)}
    with pytest.raises(pg.RunError, match="IndexError: index") as caught:
        kernel(*(feeds[v.hint] for v in kernel.graph.inputs))
    text = str(caught.value)
    op = "scatter_add" if derived else "gather"
    assert text.startswith(f"{op} failed in kernel rows: ")
    assert "\n  equation:      %" in text
    assert f" = {op}(" in text
    assert "%i: i64[" in text
    assert "\n  kernel line:   <primgraph kernel " in text
    role = "in the gradient of " if derived else ""
    assert f"\n  written here:  {role}{place}   y = pg.sum(pg.sin(x)[i])" in text
    # The kernel is as good as before.
    assert len(kernel(*({**feeds, "i": feeds["i"] - 1}[v.hint] for v in kernel.graph.inputs))) == 1


def test_a_saved_file_names_the_line_beside_its_own(tmp_path: Any) -> None:
    program, fetched, place = gathered()
    pg.compile(program.graph(fetched[:1])).save(tmp_path / "rows.py")
    source = (tmp_path / "rows.py").read_text()
    namespace: dict[str, Any] = {}
    exec(compile(source, str(tmp_path / "rows.py"), "exec"), namespace)
    with pytest.raises(IndexError, match="index 7 is out of bounds") as caught:
        namespace["rows"](np.ones(3), [0, 1, 7])
    number = caught.traceback[-1].lineno
    above = source.splitlines()[:number]
    assert next(row.strip() for row in reversed(above) if "#" in row).startswith(f"# {place}")
