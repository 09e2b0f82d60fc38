"""Functions of samples are taken apart into sums over these, or refused with the line."""

import time
from functools import partial

import numpy as np
import pytest

import primgraph as pg
from primgraph.transforms.dataflow.batch_independence import Mixing, find_mixing
from primgraph.transforms.dataflow.sum_separability import split_samples

W, X, Y = pg.spec(3), pg.spec(("rows", 3)), pg.spec(("rows",), "int64")


def parts(function, *specs):
    graph = pg.transforms.lower(pg.trace(function, *specs))
    return split_samples(graph, [v for v in graph.inputs if v.type.names])


SUMS = {
    "sum": lambda w, x: pg.sum((x @ w) ** 2),
    "product of matrices": lambda w, x: pg.sum(x.T @ x),
    "product of vectors": lambda w, x: (x @ w) @ pg.tanh(x @ w),
    "sum with ones": lambda w, x: pg.ones((x.shape[0],)) @ (x @ w),
    "linear in sums": lambda w, x: 2.0 * pg.sum(x @ w) / 3.0 - pg.ravel(pg.sum(x)) @ pg.ones(1),
    "penalty": lambda w, x: pg.sum(x @ w) + 0.5 * pg.sum(w**2),
    "penalty first": lambda w, x: (pg.sum(w) - pg.sum(x @ w)) * pg.max(w),
    "constant of a sum": lambda w, x: pg.stop_gradient(pg.sum(x @ w)),
    "concatenated": lambda w, x: pg.concatenate([pg.sum(x, axis=0) * w, w]),
    "whole rows sorted": lambda w, x: pg.sum(pg.sort(x, axis=1) @ w),
    "joined axes": lambda w, x: pg.sum(pg.reshape(x * w, (-1,))),
    "branches": lambda w, x: pg.sum(pg.cond(w[0] > 0, lambda x: pg.sin(x), lambda x: pg.cos(x), x)),
    "trips": lambda w, x: pg.sum(pg.fori_loop(0, 3, lambda i, c: pg.tanh(c * w), x)),
    "largest of a row": lambda w, x: pg.sum(pg.argmax(x, axis=1) * (x @ w)),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_over_samples_is_that_of_its_chunks(name):
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal(3), rng.standard_normal((7, 3))
    found = parts(SUMS[name], W, X)
    assert not isinstance(found, Mixing), found
    assert not found.rows
    each = pg.compile(found.each)
    total = sum(each(w, part)[0] for part in (x[:3], x[3:6], x[6:]))
    if found.rest is not None:
        total = total + pg.compile(found.rest)(w, x[:1])[0]
    assert ("penalty" in name or name == "concatenated") == (found.rest is not None)
    whole = pg.compile(pg.trace(SUMS[name], W, X))(w, x)
    np.testing.assert_allclose(total, whole, rtol=1e-12, atol=1e-12)


ROWS = {
    "products": lambda w, x, y: x @ w,
    "largest of a row": lambda w, x, y: pg.argmax(x * w, axis=1),
    "chosen by samples": lambda w, x, y: w[y],
    "chosen in samples": lambda w, x, y: pg.take_along_axis(x, y[:, None], axis=1),
    "searched": lambda w, x, y: pg.searchsorted(w, x),
    "losses": lambda w, x, y: pg.cross_entropy(x * w, y, reduction="none"),
    "compared": lambda w, x, y: x > w,
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_stay_apart_are_known(name):
    found = parts(ROWS[name], W, X, Y)
    assert not isinstance(found, Mixing), found
    assert found.rows == {0}
    assert found.rest is None


def test_eight_times_as_many_equations_take_about_eight_times_as_long():
    def chain(count):
        def function(w, x):
            for i in range(count):
                x = pg.sin(x) + float(i)
            return pg.sum(x) + pg.sum(w)

        return pg.transforms.lower(pg.trace(function, W, X))

    def seconds(graph):
        found = []
        for _ in range(3):
            start = time.process_time()
            parts = split_samples(graph, graph.inputs[1:])
            found.append(time.process_time() - start)
        assert not isinstance(parts, Mixing)
        return min(found)

    assert seconds(chain(2_400)) < 20 * seconds(chain(300))


MIXED = {
    "curved": (lambda w, x: pg.log(pg.sum(x @ w)), "not linear"),
    "product of sums": (lambda w, x: pg.sum(x) * pg.sum(x @ w), "not linear"),
    "root": (lambda w, x: pg.linalg.norm(x @ w), "beside a sum over all"),
    "centred": (lambda w, x: pg.sum((x - pg.mean(x, axis=0)) ** 2), "beside a sum over all"),
    "held": (lambda w, x: pg.sum(x - pg.stop_gradient(pg.max(x, axis=0))), "reduces the axis"),
    "compared": (lambda w, x: pg.sum(x * (x > pg.sum(x, axis=0))), "beside a sum over all"),
    "largest": (lambda w, x: pg.max(x @ w), "reduces the axis"),
    "position": (lambda w, x: pg.argmax(x @ w) * pg.sum(w), "reduces the axis"),
    "sorted": (lambda w, x: pg.sum(pg.sort(x @ w) ** 2), "along the axis"),
    "running": (lambda w, x: pg.sum(pg.cumsum(x @ w)), "runs along"),
    "counted": (lambda w, x: pg.arange(x.shape[0]) @ (x @ w), "counts samples"),
    "drawn": (lambda w, x: pg.sum(x * pg.random.uniform(3, x.shape)), "counts samples"),
    "first left out": (lambda w, x: pg.sum(x[1:] @ w), "where they are"),
    "turned": (lambda w, x: (x @ w)[::-1], "another step than 1"),
    "neighbours": (lambda w, x: pg.sum(pg.diff(x @ w) ** 2), "where they are"),
    "branch by all": (
        lambda w, x: pg.cond(pg.sum(x) > 0, lambda x: pg.sum(x), lambda x: -pg.sum(x), x),
        "not linear",
    ),
    "until all": (
        lambda w, x: pg.while_loop(lambda c: pg.max(c) > 1.0, lambda c: c * 0.5, x),
        "reduces the axis",
    ),
    "along all": (lambda w, x: pg.sum(pg.scan(lambda c, r: (c + r, c), w, x)[1]), "along"),
    "moved": (lambda w, x: (x * w).T, "other places"),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_is_no_sum_over_samples_is_refused(name):
    function, why = MIXED[name]
    found = parts(function, W, X)
    assert isinstance(found, Mixing), found
    assert why in found.why
    assert found.equation.source.file.endswith("test_sampled.py")


def test_places_of_extrema_are_those_of_each_sample():
    for function in (pg.argmax, pg.argmin):
        for axis, apart in ((1, True), (0, False)):
            x = pg.spec((3, 3))
            graph = pg.trace(partial(function, axis=axis), x)
            assert (find_mixing(graph, graph.inputs) is None) == apart
