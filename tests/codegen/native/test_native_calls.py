"""Calls that go to native code at once: what fits it, what does not, and what a kernel stays."""

import copy
import gc
import inspect
import pickle
import shutil
import sys
import weakref

import numpy as np
import pytest

import primgraph as pg

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)


@pytest.fixture(autouse=True, scope="module")
def own_cache(native_cache):
    return native_cache


X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


@pytest.fixture(scope="module")
def alone(native_cache):
    return pg.compile(pg.trace(lambda x: pg.sin(x) + 1, X), target="c")


@pytest.fixture(scope="module")
def two(native_cache):
    return pg.compile(pg.trace(lambda x, y: (x * y, pg.sum(x, 0)), X, X), target="c")


def both(found, x, y):
    np.testing.assert_array_equal(found[0], x * y)
    np.testing.assert_allclose(found[1], x.sum(0), rtol=1e-15)


def lines_of_python(call):
    """What a call gives, and the functions of Python's that it has called."""
    names = []
    sys.setprofile(lambda frame, event, _: event == "call" and names.append(frame.f_code.co_name))
    try:
        found = call()
    finally:
        sys.setprofile(None)
    return found, names[1:]


def test_what_fits_goes_to_native_code_without_a_line_of_python(alone, two):
    assert issubclass(type(alone), pg.Kernel)
    mine, sums = np.empty_like(X), np.empty(4)
    for given in ({}, {"out": mine}, {"out": [mine], "borrow": False}, {"out": None}):
        found, called = lines_of_python(lambda given=given: alone(X, **given))
        assert called == []
        assert (found is mine) == (given.get("out") is not None)
        np.testing.assert_allclose(found, np.sin(X) + 1, rtol=1e-15)
    found, called = lines_of_python(lambda: two(X, X + 1, out=(None, sums)))
    assert called == []
    assert type(found) is tuple
    assert found[1] is sums
    both(found, X, X + 1)
    flat = two.flat
    found, called = lines_of_python(lambda: flat(X, X + 1, out=[mine, None]))
    assert called == []
    assert type(found) is list
    assert found[0] is mine
    both(found, X, X + 1)
    # One array may be given twice where nobody writes it.
    both(two(X, X), X, X)
    assert "__call__" in lines_of_python(lambda: alone(x=X))[1]


def test_numbers_go_to_native_code_without_a_line_of_python():
    kernel = pg.compile(pg.trace(lambda x, a: x * a, X, pg.spec(())), target="c")
    out = np.empty_like(X)
    for number in (0.3, np.float64(-0.0), float("nan"), np.array(0.3)):
        for given in ({}, {"out": out}):
            found, called = lines_of_python(lambda n=number, given=given: kernel(X, n, **given))
            assert called == []
            np.testing.assert_array_equal(found, X * number)
            assert (np.signbit(found) == np.signbit(X * number)).all()
    # Other numbers are converted, or refused, by Python.
    for number in (2, True, np.float32(0.5), np.int64(3)):
        np.testing.assert_array_equal(kernel(X, number), X * number)
    for number in (1j, 2**60 + 1, "0.3", None):
        with pytest.raises(pg.FeedError):
            kernel(X, number)
    with pytest.raises(pg.FeedError):
        kernel(0.3, X)
    # A result is never the array of a number.
    same = pg.compile(pg.trace(lambda a: a + 0.0, pg.spec(())), target="c")
    first, second = same(0.5), same(0.25)
    assert (first, second) == (0.5, 0.25)
    single = pg.compile(pg.trace(lambda a: a * 2, pg.spec((), "float32")), target="c")
    assert single(0.5) == 1.0
    assert single(0.5).dtype == np.float32


def test_what_does_not_is_converted_or_refused_as_ever(alone, two):
    expected = np.sin(X) + 1
    odd = np.asfortranarray(X)
    for given in (X.tolist(), odd, X[::-1][::-1], X.astype("f4").astype(">f8"), X.view(np.matrix)):
        np.testing.assert_allclose(alone(given), np.sin(np.asarray(given)) + 1, rtol=1e-15)
    np.testing.assert_allclose(alone(x=X), expected, rtol=1e-15)
    both(two(y=X, x=X + 1), X + 1, X)
    both(two(X, y=X), X, X)
    for wrong in ((), (X, X), (X[:2],), (X.astype(complex),)):
        with pytest.raises(pg.FeedError):
            alone(*wrong)
    with pytest.raises(pg.FeedError):
        alone(X, z=X)
    read_only = np.empty_like(X)
    read_only.setflags(write=False)
    x = X.copy()
    for out in (read_only, np.empty_like(odd), np.empty((3, 5)), np.empty((3, 4), "f4"), x, [x, x]):
        with pytest.raises(pg.ArgumentError):
            alone(x, out=out)
    one, sums = np.empty(20), np.empty(4)
    for out in (x, (x, None), (None, x[0]), (one[:12].reshape(3, 4), one[8:12]), (x, x, x)):
        with pytest.raises(pg.ArgumentError):
            two(x, X + 1, out=out)
    np.testing.assert_array_equal(x, X)
    # Neighbours share nothing.
    parts = one[:12].reshape(3, 4), one[12:16]
    both(two(X, X + 1, out=parts), X, X + 1)
    lent = two(X, X, borrow=True)
    assert two(X + 1, X, borrow=True)[0] is lent[0]
    assert two(X, X, out=(None, sums), borrow=True)[1] is sums


def test_results_are_new_and_inputs_are_overwritten_only_where_that_is_asked_for(alone):
    first, second = alone(X), alone(X)
    assert first is not second
    assert not np.may_share_memory(first, second)
    steps = pg.trace(lambda x: (x + 1, x * 2), X)
    kernel = pg.compile(steps, donated={0: 0}, target="c")
    x, other = X.copy(), np.empty_like(X)
    found = kernel(x)
    assert found[0] is x
    np.testing.assert_array_equal(x, X + 1)
    found = kernel(x, out=(None, other))
    assert found[0] is x
    assert found[1] is other
    np.testing.assert_array_equal(x, X + 2)
    np.testing.assert_array_equal(other, 2 * (X + 1))
    with pytest.raises(pg.ArgumentError):
        kernel(x, out=(np.empty_like(X), None))
    x.setflags(write=False)
    for given in ({}, {"out": (None, other)}):
        with pytest.raises(pg.FeedError, match="writable"):
            kernel(x, **given)


def test_containers_and_sizes_and_steps_of_numpys(two):
    nested = pg.compile(pg.trace(lambda p: {"s": p["a"] + p["b"], "d": -p["a"]},
                                 {"a": X, "b": X}), target="c")  # fmt: skip
    found = nested({"b": X, "a": X + 1})
    assert list(found) == ["s", "d"]
    np.testing.assert_array_equal(found["s"], 2 * X + 1)
    np.testing.assert_array_equal(nested.flat(X + 1, X)[0], 2 * X + 1)
    named = pg.compile(pg.trace(lambda x: {"s": x + 1, "d": -x}, X), target="c")
    mine = np.empty_like(X)
    assert named(X, out=[mine, None])["s"] is mine
    assert named(X, out={"s": mine, "d": None})["s"] is mine
    with_numpy = pg.compile(pg.trace(lambda x: pg.sort(x, axis=0) + pg.fft.fft(x).real, X),
                            target="c")  # fmt: skip
    expected = np.sort(X, 0) + np.fft.fft(X).real
    np.testing.assert_allclose(with_numpy(X), expected, atol=1e-14)
    np.testing.assert_allclose(with_numpy(X, out=mine), expected, atol=1e-14)
    sized = pg.compile(pg.trace(lambda x: x * 2, pg.spec(("N", 4))), target="c")
    for n in (1, 3, 3, 0):
        x, out = np.ones((n, 4)), np.empty((n, 4))
        np.testing.assert_array_equal(sized(x), 2 * x)
        assert sized(x, out=out) is out
        np.testing.assert_array_equal(out, 2 * x)
    with pytest.raises(pg.ArgumentError):
        sized.generic(np.ones((3, 4)), out=np.empty((2, 4)))
    nothing = pg.compile(
        pg.trace(
            lambda: pg.ones(3) * 2,
        ),
        target="c",
    )
    np.testing.assert_array_equal(nothing(), np.full(3, 2.0))


def test_it_is_a_kernel_in_every_other_way(two):
    assert isinstance(two, pg.Kernel)
    assert type(two).__name__ == "Kernel"
    assert list(inspect.signature(two).parameters) == ["feeds", "out", "borrow", "named"]
    both(two.__call__(X, X), X, X)
    assert copy.copy(two) is two
    assert copy.deepcopy(two) is two
    for other in (pickle.loads(pickle.dumps(two)), pg.Kernel(two.graph, "native"), two.flat):
        both(other(X, X), X, X)
    with pytest.raises(AttributeError):
        two._native = None
    with pytest.raises(TypeError):
        type(two)()
    assert not gc.is_tracked(X)
    kernel = pg.compile(pg.trace(lambda x: {"only": x + 1}, X), target="c")
    dead = weakref.ref(kernel)
    kernel(X)
    del kernel
    gc.collect()
    assert dead() is None
