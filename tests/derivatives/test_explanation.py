"""Explanations: why a derivative is None, zero, or not finite, each with the line."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph.transforms import clean_up, lower


def line() -> str:
    """File and number of the line above the caller's."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return f"test_explanation.py:{frame.f_back.f_lineno - 1}"


@pytest.fixture
def inputs() -> Any:
    with pg.Program() as program:
        x, z = pg.data("x", (3,)), pg.data("z", (3,))
        yield program, x, z


FEED = {"x": np.array([1.0, 0.0, 4.0]), "z": np.ones(3)}


def test_nothing_leads_there(inputs: Any) -> None:
    _, x, z = inputs
    unused = pg.sin(x)
    place = line()
    found = pg.explain(pg.sum(z * z), x)
    assert (found.kind, found.cuts, found.paths) == ("independent", (), 0)
    text = str(found)
    assert "by 'x' f64[3] is None: nothing leads there" in text
    assert f"the input is used in sin at {place}" in text
    assert "the output depends on 'z' of test_explanation.py" in text
    assert pg.explain(unused, x).kind == "present"
    assert "the output is a constant" in str(pg.explain(pg.ones(3), x))
    assert "the input is used nowhere" in str(pg.explain(x, pg.data("other", ())))


@pytest.mark.parametrize(
    ("build", "op", "why", "none"),
    [
        (lambda x, z: pg.floor(x) * z, "floor", "constant between jumps", False),
        (lambda x, z: pg.round(x, 1) * z, "round", "constant between jumps", False),
        (lambda x, z: pg.sign(x) * z, "sign", "constant between jumps", False),
        (lambda x, z: pg.where(x > 0, z, 1.0), "greater", "gives booleans", True),
        (lambda x, z: z[pg.argmax(x)], "argmax", "gives integers, i64[]", True),
        (lambda x, z: x.astype("int32") * z, "cast", "gives integers, i32[3]", True),
        (lambda x, z: pg.stop_gradient(x) * z, "stop_gradient", "counts as a constant", True),
    ],
)
def test_what_leads_there_is_cut(inputs: Any, build: Any, op: str, why: str, none: bool) -> None:
    _, x, z = inputs
    y = build(x, z)
    found = pg.explain(y, x)
    assert found.kind == "cut"
    (cut,) = found.cuts
    assert cut.op == op
    assert why in cut.why
    assert cut.source is not None
    assert str(cut.source).startswith("test_explanation.py:")
    assert ("is None" in str(found)) is none
    (gradient,) = pg.grad([y, pg.sum(z)], [x], materialize_grads=True)
    np.testing.assert_array_equal(pg.Executor().run(inputs[0], FEED, [gradient])[0], np.zeros(3))


def test_flags_cut_too(inputs: Any) -> None:
    _, x, z = inputs
    h = x * 2.0
    place = line()
    h.stop_gradient = True
    (cut,) = pg.explain(h * z, x).cuts
    assert str(cut.source) == place
    z.stop_gradient = True
    assert "the input has stop_gradient set" in str(pg.explain(h * z, z))


def test_zero_whatever_the_feeds(inputs: Any) -> None:
    _, x, z = inputs
    for y in (x - x, pg.zeros(3) * pg.floor(z) + x - x):
        assert pg.explain(y, x).kind == "zero"
    assert "zero everywhere: what the ways contribute cancels" in str(pg.explain(x - x, x))


def test_ways_and_equations_are_counted(inputs: Any) -> None:
    _, x, z = inputs
    found = pg.explain(pg.tanh(x) * pg.sin(x) + x, x)
    assert (found.kind, found.paths, found.equations) == ("present", 3, 4)
    assert "3 ways lead from input to output, through 4 equations" in str(found)
    for _ in range(200):
        x = x * x + x
    assert pg.explain(x, inputs[1]).paths == 3**200
    partly = pg.explain(z * pg.floor(z), z)
    assert (partly.kind, partly.paths, partly.cuts[0].op) == ("present", 1, "floor")
    assert "other ways end for derivatives at" in str(partly)


def test_at_a_feed_the_first_bad_equation_is_named(inputs: Any) -> None:
    _, x, z = inputs
    y = pg.sqrt(x) * z
    place = line()
    text = str(pg.explain(y, x, FEED))
    assert f"at the feed: div makes inf at [1] of 0.5 and 0.0, in the gradient of {place}" in text
    assert "operand 1:     f64[3] from 0.0 to 2.0, 0.0 at [1]   from sqrt" in text
    assert "at the feed: it is from" in str(pg.explain(pg.sin(x), x, FEED))
    assert "2.0, 1 of 3 elements are zero" in str(
        pg.explain(pg.where(x > 0, 2.0 * x, 1.0), x, FEED)
    )
    forward = pg.explain(x * pg.log(z - 1.0), x, FEED)
    assert "at the feed: log makes -inf at [0] of 0.0" in str(forward)


def test_at_a_feed_the_equation_that_makes_it_zero_is_named(inputs: Any) -> None:
    _, x, z = inputs
    y = pg.relu(-x - 1.0) * z
    place = line()
    text = str(pg.explain(pg.sum(y), x, FEED))
    assert "at the feed: all of it is zero\n  select makes it zero" in text
    assert f"written here:  in the gradient of {place}" in text


def test_states_are_read_and_nothing_changes(inputs: Any) -> None:
    program, x, _ = inputs
    w = pg.create_parameter((3,), name="w", initializer=pg.initializers.Constant(0.0))
    program.update(w, w + 1.0)
    y = x * w
    before, count = program.state_dict(), len(program.operators())
    text = str(pg.explain(y, x, {"x": FEED["x"]}))
    assert "mul makes it zero" in text
    assert "operand 1:     f64[3] from 0.0 to 0.0   w" in text
    assert len(program.operators()) == count
    np.testing.assert_array_equal(program.state_dict()["w"], before["w"])


def test_traced_functions_are_explained() -> None:
    found: list[pg.Explanation] = []
    zeros = np.zeros(2)

    def function(x: Any) -> Any:
        y = pg.log(x)
        found.append(pg.explain(y, x, {"x": zeros}))
        return y

    pg.trace(function, pg.spec(2))
    assert "makes" in str(found[0])


def test_long_chains() -> None:
    with pg.Program():
        x = pg.data("x", ())
        y = x
        for _ in range(1_200):
            y = pg.sin(y) + 0.5
        found = pg.explain(y, x)
    assert (found.paths, found.equations) == (1, 2_400)


def test_it_tells_how_derivatives_of_derivatives_are_taken():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        gradients = [pg.sum(pg.softmax(x) ** 2)]
        for _ in range(4):
            gradients.append(pg.grad(gradients[-1], x))
        asked = [str(pg.explain(y, x)) for y in (*gradients, pg.sum(gradients[1] * x))]
        elementwise = str(pg.explain(pg.tanh(x), x))
    assert "it is taken by" not in asked[0]
    assert "forward mode through a gradient" in asked[1]
    assert "Taylor mode, as derivative 4 along one line" in asked[4]
    assert "takes less than" in asked[5]
    assert "forward mode: each element depends on one" in elementwise
    # What is told is what is done, but for what several derivatives share.
    for after, text in zip(gradients[2:], asked[1:], strict=False):
        told = int(text.split("takes ")[1].split()[0])
        done = len(clean_up(lower(program.graph([after]))))
        assert 0.8 * done <= told <= 1.25 * done
