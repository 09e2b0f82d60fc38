"""Random programs in NumPy, traced unchanged, are what NumPy makes of them; and what they found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from density import starts
from program_numpy import NumpyProgram
from program_numpy_checks import check_numpy

import primgraph as pg
import primgraph.scipy.stats

pytest.importorskip("scipy.stats")
signal = pytest.importorskip("scipy.signal")
stats = pytest.importorskip("scipy.stats")
norm, gamma = stats.norm, stats.gamma

_PROGRAMS = 120
_CHUNK = 6


@pytest.mark.parametrize("start", starts(0, _PROGRAMS, _CHUNK, dense=12, long=6))
def test_programs_in_numpy_are_traced_as_numpy_runs_them(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + _CHUNK):
        program = NumpyProgram(seed)
        try:
            check_numpy(program, seen)
        except Exception as error:
            raise AssertionError(f"{program}\n{error}") from error
    assert seen["NumPy programs differentiated"]


def test_they_are_the_same_for_the_same_seed_and_depend_on_less_without_steps() -> None:
    program = NumpyProgram(3)
    assert str(program) == str(NumpyProgram(3)) != str(NumpyProgram(4))
    bare = replace(program, left_out=frozenset(range(program.count)))
    assert bare.source != program.source
    arrays = [bare.function(plain=True)(*feeds) for feeds in (program.feeds, program.others)]
    for one, other in zip(*arrays, strict=True):
        np.testing.assert_array_equal(one, other)


def put_at_largest(m: Any) -> Any:
    found = m * 1.0
    np.put_along_axis(found, np.argmax(m, axis=0)[None], 0.5, axis=0)
    return found


def put_at_all(m: Any) -> Any:
    found = m + 0.0
    np.put_along_axis(found, np.argsort(m, axis=1), m * 2.0, axis=1)
    np.put(found, np.argmin(m), 7.0)
    return found


def set_at_pairs(m: Any) -> Any:
    found = np.zeros((2, 3))
    found[np.arange(2), np.argmax(m, axis=1)] = m[:, 0]
    found[:, np.argmin(m[0])] = 2.0
    return found


def set_twice(m: Any) -> Any:
    """Of what goes to one place, the last stays; places count from the end, too."""
    found = np.zeros(4)
    places = np.argmax(m, axis=1) * 0 + np.array([1, 1])
    found[places] = m[:, 1]
    found[places[0] - 2] += m[0, 0]
    found[np.argsort(m[0])[:0]] = 3.0
    return found


@pytest.mark.parametrize("function", [put_at_largest, put_at_all, set_at_pairs, set_twice])
def test_elements_are_set_at_computed_places(function: Any) -> None:
    m = np.array([[0.3, -1.0, 2.0], [1.5, 0.2, -0.4]])
    graph = pg.trace(function, pg.spec((2, 3)))
    for style in ("planned", "readable"):
        np.testing.assert_array_equal(pg.compile(graph, style=style)(m), function(m))
    pg.check_grads(graph, [m])


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_places_of_an_array_of_unknown_size_are_computed(target: str) -> None:
    def assigned(x: Any, y: Any) -> Any:
        found = x + 0.0
        found[np.argsort(y)[:2]] = y[:2]
        return found

    graph = pg.trace(assigned, pg.spec(("N",)), pg.spec(3))
    kernel = pg.compile(graph, target=target)
    for size in (3, 7):
        x, y = np.arange(float(size)), np.array([0.5, -1.0, 0.2])
        np.testing.assert_array_equal(kernel(x, y), assigned(x, y))
        pg.check_grads(graph, [x, y])


@pytest.mark.parametrize(
    ("shape", "sizes", "axis"),
    [
        ((5,), 2, None),
        ((4, 3), (2, 2), None),
        ((4, 3), 3, 0),
        ((4, 3), (2, 2), (0, 0)),
        ((3,), 3, -1),
    ],
)
def test_windows_slide_as_numpys(shape: Any, sizes: Any, axis: Any) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    view = np.lib.stride_tricks.sliding_window_view
    found = pg.trace(lambda x: view(x, sizes, axis), pg.spec(shape))
    np.testing.assert_array_equal(pg.compile(found)(x), view(x, sizes, axis))
    np.testing.assert_array_equal(view(pg.tensor(x), sizes, axis).numpy(), view(x, sizes, axis))
    pg.check_grads(found, [x])


def test_windows_that_do_not_fit_are_refused() -> None:
    view = np.lib.stride_tricks.sliding_window_view
    with pytest.raises(pg.ArgumentError, match="no window of 4"):
        view(pg.tensor(np.ones(3)), 4)
    with pytest.raises(pg.ArgumentError, match="1 sizes for 2 axes"):
        view(pg.tensor(np.ones((3, 3))), 2)


def by_names(x: Any) -> Any:
    return norm.logpdf(x, 0.3) + gamma.cdf(x, 2.0) + signal.convolve(x, x, "same")


def by_module(x: Any) -> Any:
    return stats.norm.cdf(x) + stats.multivariate_normal.logpdf(x, np.zeros(3), np.eye(3))


@pytest.mark.parametrize("function", [by_names, by_module])
def test_distributions_of_scipy_are_followed(function: Any) -> None:
    x = np.array([0.3, 1.2, 0.8])
    graph = pg.trace(function, pg.spec(3))
    np.testing.assert_allclose(pg.compile(graph)(x), function(x), 1e-12)
    pg.check_grads(graph, [x])


def test_what_is_no_distribution_here_is_scipys() -> None:
    def standard(x: Any) -> Any:
        return x * stats.zscore([1.0, 2.0, 4.0])

    found = pg.compile(pg.trace(standard, pg.spec(3)))(np.ones(3))
    np.testing.assert_allclose(found, stats.zscore([1.0, 2.0, 4.0]))
    with pytest.raises(AttributeError, match="did you mean 'norm'"):
        _ = primgraph.scipy.stats.nrom


def test_numbers_take_the_dtype_of_what_they_are_joined_to() -> None:
    x = np.array([1.0, 2.0], "float32")
    for key in ((x, 0.5), (x, True, 3), (x, np.float64(2)), (x, [0.5]), (0, x, 2j)):
        found = pg.compile(pg.trace(lambda x, key=key: _with(x, key), pg.spec(2, "float32")))(x)
        assert found.dtype == np.r_[key].dtype
        np.testing.assert_array_equal(found, np.r_[key])


def _with(x: Any, key: Any) -> Any:
    return np.r_[tuple(x if isinstance(part, np.ndarray) else part for part in key)]


def in_order(u: Any, v: Any) -> Any:
    """As people write it: the method sorts in place."""
    whole = np.concatenate([u, v])
    whole.sort(kind="mergesort")
    return np.sum(np.diff(whole) ** 2) + np.sort(u)[0]


def changed_by_methods(u: Any, v: Any) -> Any:
    y = u * 1.0
    y.put([0, -1], [5.0, v[0]])
    z = u.copy()
    z[0] = 0.5
    return y * z


def without_a_name_of_numpys(u: Any, v: Any) -> Any:
    y = u.copy()
    y[0] = v[1]
    y[-1] *= 2.0
    return y


@pytest.mark.parametrize("function", [in_order, changed_by_methods, without_a_name_of_numpys])
def test_methods_of_arrays_change_them_as_numpys(function: Any) -> None:
    u, v = np.array([0.7, -0.3, 1.2]), np.array([0.4, 0.1])
    graph = pg.trace(function, pg.spec(3), pg.spec(2))
    np.testing.assert_allclose(pg.compile(graph)(u, v), function(u, v), 1e-15)
    np.testing.assert_allclose(pg.jit(function)(u, v), function(u, v), 1e-15)
    pg.check_grads(graph, [u, v])


def test_arrays_are_sorted_in_place_where_derivatives_are_taken() -> None:
    u, v = np.array([0.7, -0.3, 1.2]), np.array([0.4, 0.1])
    graph = pg.trace(in_order, pg.spec(3), pg.spec(2))
    expected = pg.compile(pg.trace(lambda u, v: pg.grad(in_order)(u, v), *graph.input_types))(u, v)
    np.testing.assert_allclose(pg.grad(in_order)(u, v), expected, 1e-14)
    step = 1e-6
    moved = [in_order(u + step * e, v) - in_order(u - step * e, v) for e in np.eye(3)]
    np.testing.assert_allclose(expected, np.array(moved) / (2 * step), 1e-6)


def test_what_a_method_gives_is_used_where_it_is_not_dropped() -> None:
    def squares(x: Any) -> Any:
        return np.sum(pg.sort(x) * x.sort())

    x = np.array([0.7, -0.3, 1.2])
    np.testing.assert_allclose(pg.grad(squares)(x), 2 * x)
    np.testing.assert_allclose(pg.compile(pg.trace(squares, pg.spec(3)))(x), np.sum(x**2))


def test_copies_of_tensors_are_no_views() -> None:
    x = pg.tensor([1.0, 2.0, 3.0])
    for copy in (x.copy(), np.copy(x), np.copy(x[:2])):
        copy[0] = 5.0
        assert copy.numpy()[0] == 5.0
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0, 3.0])


def test_arrays_keep_their_shape() -> None:
    def resized(x: Any) -> Any:
        y = np.zeros(4)
        y[:2] = x
        y.resize(2)
        return y

    with pytest.raises(pg.ArgumentError, match="changes the shape"):
        pg.trace(resized, pg.spec(2))
