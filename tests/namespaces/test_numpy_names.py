"""NumPy's names: every function is in the table or in the list of those that are not, and why."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import primgraph as pg
import primgraph.numpy as pnp
from primgraph.errors import ShapeError
from primgraph.operators.lazy_loading import function_named
from primgraph.operators.name_table import NOT_BECAUSE
from primgraph.operators.names import library
from primgraph.operators.numpy_calls import known_functions
from primgraph.operators.numpy_overrides import implemented

X = np.linspace(-1.0, 2.0, 6).reshape(2, 3)
ROOMS = {"": np, "linalg.": np.linalg, "fft.": np.fft}


def number_functions(module: ModuleType) -> list[str]:
    """The public names of a module of NumPy's that are functions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {name: getattr(module, name) for name in dir(module) if name[0] != "_"}
    return [n for n, f in found.items() if callable(f) and not inspect.isclass(f)]


@pytest.mark.parametrize("room", ROOMS)
def test_every_function_of_numpy_is_in_the_table_or_in_the_list_of_those_that_are_not(
    room: str,
) -> None:
    module = ROOMS[room]
    left = [
        name
        for name in number_functions(module)
        if getattr(module, name) not in known_functions() and room + name not in NOT_BECAUSE
    ]
    assert left == []


def test_no_function_is_in_both() -> None:
    assert not library("numpy").keys() & NOT_BECAUSE.keys()
    assert all(NOT_BECAUSE.values())


def test_every_row_of_numpy_is_a_function_here() -> None:
    for name, row in library("numpy").items():
        assert callable(row.load()), name
        assert function_named(row.target) is row.load(), name


def fetched(make: Any, *arrays: Any) -> Any:
    with pg.Program() as program:
        handles = [pg.data(f"a{i}", a.shape, str(a.dtype)) for i, a in enumerate(arrays)]
        found = make(*handles)
    feed = {f"a{i}": a for i, a in enumerate(arrays)}
    return pg.Executor().run(program, feed, [found])[0]


FIRST_DOOR = [
    lambda x: np.sin(x) + np.where(x > 0, 2.0, x),
    lambda x: np.linalg.norm(x, axis=1),
    lambda x: np.einsum("ij,kj->ik", x, x),
    lambda x: np.concatenate([x, np.ones((1, 3))]),
    lambda x: np.add.reduce(x, axis=1),
    lambda x: np.multiply.outer(x[0], np.arange(2.0)),
    lambda x: np.add.accumulate(x),
    lambda x: np.sum(x, axis=0, dtype="float32", keepdims=True),
    lambda x: np.exp(x, dtype=np.float32),
    lambda x: np.sum(a=x, where=X > 0),
    lambda x: np.mean(x, 0, None, None, True),
    lambda x: np.ones((1, 2)) @ x,
    lambda x: np.hstack([x, X]),
    lambda x: np.trace(x) + x.trace(),
    lambda x: np.diff(x),
    lambda x: np.gradient(x, 0.5, axis=1),
    lambda x: np.sort(x, axis=0) + np.median(x, axis=1, keepdims=True),
    lambda x: np.quantile(x, [0.2, 0.6], axis=1) + np.percentile(x, 30.0),
    lambda x: np.cumprod(x, axis=1)[:, np.argsort(x[0])],
    lambda x: np.searchsorted(np.arange(3.0), x, side="right"),
    lambda x: np.linalg.solve(x @ x.T + 2 * np.eye(2), x),
    lambda x: np.linalg.cholesky(x @ x.T + 2 * np.eye(2)) @ np.linalg.svd(x)[1],
    lambda x: np.linalg.norm(x, "nuc") * np.linalg.slogdet(x @ x.T)[1],
]


@pytest.mark.parametrize("function", FIRST_DOOR)
def test_numpys_functions_take_variables_and_tensors(function: Any) -> None:
    expected = function(_Array(X))
    for found in (fetched(function, X), function(pg.tensor(X)).numpy()):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 1e-12 if expected.dtype == "f8" else 1e-6)


class _Array(np.ndarray[Any, Any]):
    """An array with the one method of handles that arrays lack where it is used here."""

    def __new__(cls, x: Any) -> Any:
        return np.array(x).view(cls)


REFUSED = {
    "np.packbits(v)": "packbits takes booleans or integers, not f64",
    "np.emath.sqrt(v)": "numpy.emath.sqrt has no counterpart here",
    "np.fft.rfft(v * 1j)": "rfft takes real numbers",
    "np.sin(v, out=np.zeros((2, 3)))": "cannot write to a NumPy array",
    "np.sum(v, out=np.zeros(()))": "cannot write to a NumPy array",
    "np.unpackbits(v)": "unpackbits takes uint8, not f64",
    "np.add.at(v, 0, 1.0)": "cannot be built into a program this way",
    "np.fill_diagonal(v, 0.0)": "writes to an array in place",
    "np.where(v > 0)": "the shape of what nonzero returns",
    "np.asarray(v)": "has no elements before the program runs",
    "np.mean([v, v])": "has no elements before the program runs",
    "np.sum(v, typo=1)": "typo",
    "np.matmul(v, v, axes=[(0, 1), (1, 0), (0, 1)])": "takes no axes=",
    "np.cumulative_prod(v)": "takes an axis",
    "np.clip(v, 0, 1, out=np.zeros((2, 3)))": "cannot write to a NumPy array",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused(case: str) -> None:
    with pg.Program():
        v = pg.data("v", (2, 3))
        with pytest.raises(TypeError, match=REFUSED[case]):
            eval(case, {"np": np, "v": v})


def test_what_does_not_fit_a_tensor_is_told_as_of_a_variable() -> None:
    with pytest.raises(ShapeError, match="axis 2 is out of bounds"):
        np.sum(pg.tensor(np.ones((2, 3))), axis=2)


def test_the_columns_of_a_single_row_are_variables_of_their_own() -> None:
    assert np.cov(pg.tensor(np.ones((1, 3))), rowvar=False).shape == (3, 3)


def test_a_covariance_without_freedom_is_infinite() -> None:
    weighted = np.cov(pg.tensor([1.0, 2.0, 4.0]), aweights=np.array([0.1, 0.2, 3.0]), ddof=2)
    assert weighted.item() == np.inf


def test_a_function_that_is_not_there_says_the_nearest_and_how_to_add_it() -> None:
    with pg.Program():
        v = pg.data("v", (3,))
        with pytest.raises(pg.ArgumentError) as caught:
            np.emath.sqrt(v)
        assert "pg.extend.implements(np.emath.sqrt)" in caught.value.hint

        @pg.extend.implements(np.emath.sqrt)
        def median(x: Any) -> Any:
            return pg.sum(x)

        try:
            assert np.emath.sqrt(v).shape == ()
        finally:
            del implemented[np.emath.sqrt]


def test_ufuncs_of_scipy_go_through_the_same_door() -> None:
    special = pytest.importorskip("scipy.special")
    for name in ("erf", "erfc", "expit", "log1p", "expm1"):
        function = getattr(special, name)
        np.testing.assert_allclose(fetched(function, X[1:]), function(X[1:]), 1e-14)
    with pg.Program(), pytest.raises(TypeError, match="no counterpart here"):
        special.struve(1, pg.data("v", (3,)))


# The second door.


def test_the_drop_in_is_numpy_itself_on_arrays() -> None:
    assert pnp.sin(0.5) == np.sin(0.5)
    assert type(pnp.zeros(3)) is np.ndarray
    assert pnp.array([1, 2]).dtype == np.array([1, 2]).dtype
    assert pnp.float64 is np.float64
    assert pnp.pi == np.pi
    assert pnp.testing is np.testing
    assert pnp.linalg.LinAlgError is np.linalg.LinAlgError
    assert pnp.linalg.det(np.eye(2)) == 1.0
    assert pnp.fft.fft(np.ones(4))[0] == 4.0
    assert pnp.random.default_rng(3).normal() == np.random.default_rng(3).normal()
    assert pnp.add.identity == 0
    np.testing.assert_array_equal(pnp.r_[1:3, 5], [1, 2, 5])
    np.testing.assert_array_equal(pnp.vectorize(lambda a: a + 1)(np.arange(3)), [1, 2, 3])
    with pytest.raises(pg.UnknownNameError, match="nothing named 'sinn'"):
        _ = pnp.sinn


def test_lists_of_variables_are_arrays() -> None:
    def matrix(x: Any, np: Any) -> Any:
        c, s = np.cos(x[0, 0]), np.sin(x[0, 1])
        turned = np.array([[c, -s], [s, c]]) @ np.array([x[0, 0], 1.0])
        return np.r_[turned, np.mean([c, s]), np.stack([c, 2.0]), np.c_[[c, s], [1.0, 2.0]][0]]

    found = fetched(lambda x: matrix(x, pnp), X)
    np.testing.assert_allclose(found, matrix(X, np), 1e-14)
    np.testing.assert_allclose(matrix(pg.tensor(X), pnp).numpy(), found, 1e-14)
    np.testing.assert_allclose(fetched(lambda x: pg.sum([x, 2 * x]), X), 3 * X.sum(), 1e-14)


def test_arrays_of_both_kinds_are_instances_of_ndarray() -> None:
    with pg.Program():
        assert isinstance(pg.data("v", (3,)), pnp.ndarray)
    assert isinstance(X, pnp.ndarray)
    assert isinstance(pg.tensor(X), pnp.ndarray)
    assert not isinstance([1.0], pnp.ndarray)


def test_random_numbers_are_not_drawn_by_variables() -> None:
    with pg.Program():
        v = pg.data("v", (3,))
        with pytest.raises(pg.ArgumentError, match="cannot draw by what is not computed"):
            pnp.random.gamma(v)


MOVED = {
    "normal": lambda random, a, b: random.normal(a, b, 3),
    "uniform": lambda random, a, b: random.uniform(low=a, high=b),
    "exponential": lambda random, a, b: random.exponential(b, size=(2, 3)),
    "laplace": lambda random, a, b: random.laplace(a, scale=b),
    "gumbel": lambda random, a, b: random.gumbel(a, b),
    "logistic": lambda random, a, b: random.logistic(1.0, b),
    "lognormal": lambda random, a, b: random.lognormal(a, b),
    "rayleigh": lambda random, a, b: random.rayleigh(b),
    "permutation": lambda random, a, b: random.permutation(a),
}


@pytest.mark.filterwarnings("ignore::primgraph.TracingWarning")
@pytest.mark.parametrize("name", MOVED)
def test_standard_numbers_are_moved_and_scaled_by_variables_as_by_arrays(name: str) -> None:
    a, b = np.array([0.3, -1.0, 2.0]), np.array([2.5, 1.5, 4.0])
    np.random.seed(7)  # noqa: NPY002
    expected = MOVED[name](np.random, a, b)
    np.random.seed(7)  # noqa: NPY002
    found = pg.trace(lambda a, b: MOVED[name](pnp.random, a, b), pg.spec(3), pg.spec(3))
    np.testing.assert_allclose(pg.compile(found)(a, b), expected, 1e-14)
    pg.check_grads(found, [a, b])


def test_arrays_made_of_arrays_are_laid_out_as_numpy_lays_them_out() -> None:
    for name in ("ascontiguousarray", "asfortranarray", "asarray_chkfinite", "asanyarray"):
        for given in (np.arange(6.0).reshape(2, 3)[:, ::2], 3.0):
            found, expected = getattr(pnp, name)(given), getattr(np, name)(given)
            assert found.flags.f_contiguous == expected.flags.f_contiguous
            assert (found.shape, type(found)) == (expected.shape, type(expected))
        assert isinstance(getattr(pnp, name)([pg.tensor(1.0)]), pg.Tensor)


def test_complex_numbers_are_sorted_in_numpys_dtype() -> None:
    for dtype in ("bool", "int8", "uint16", "int32", "float32", "float64", "complex64"):
        x = np.array([3, 1, 2]).astype(dtype)
        found, expected = np.sort_complex(pg.tensor(x)), np.sort_complex(x)
        assert found.dtype == expected.dtype, dtype
        np.testing.assert_array_equal(found.numpy(), expected)


def test_trace_and_diff_of_arrays_are_numpys_functions() -> None:
    m = np.arange(9.0).reshape(3, 3)
    np.testing.assert_allclose(fetched(lambda x: pg.trace(x, 1), m), np.trace(m, 1))
    np.testing.assert_allclose(fetched(lambda x: pg.diff(x, axis=0), m), np.diff(m, axis=0))
    assert pg.trace(pg.tensor(m)).item() == np.trace(m)
    graph = pg.trace(lambda x: pg.sin(x), pg.spec((3,)))
    assert pg.diff(graph, graph) is not None


def test_families_are_loaded_when_one_of_them_is_first_used() -> None:
    code = (
        "import sys, primgraph as pg\n"
        "late = lambda: [m for m in sys.modules if m.endswith(('.manipulation', '.numpy_calls'))]\n"
        "assert late() == [], late()\n"
        "pg.hstack\n"
        "assert late() == ['primgraph.operators.shape.manipulation'], late()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
