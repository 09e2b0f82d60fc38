"""JAX's own cases of its primitives (`jax._src.internal_test_util`): their values here.

A case of every hundred runs, and one of every ten with dense tests. Signs of eigenvectors, the
order of equal keys, triangles that nothing is promised of, and generators of devices do not count.
"""

import numpy as np
import pytest
from density import DENSE

import primgraph as pg

jax = pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("absl", reason="JAX's cases need absl")

# What cases are about that have no value of their own: names begin so.
OTHERS = ("rng_bit_generator", "eig_", "eigh_", "svd_", "qr_", "cholesky_", "sort_multiple")
LEAST = 0.97
TOLERANCE = {2: 2e-2, 4: 2e-4, 8: 1e-9}


@pytest.fixture(autouse=True)
def float64():
    """JAX computes in float64 within each test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def cases():
    """The cases of CPUs without bfloat16, by names."""
    module = pytest.importorskip("jax._src.internal_test_util.test_harnesses")
    found = [
        case
        for case in module.all_harnesses
        if case.filter("cpu")
        and "bfloat16" not in case.fullname
        and np.dtype(case.dtype).name != "bfloat16"
        and not case.fullname.startswith(OTHERS)
    ]
    assert len(found) > 5000
    return found[:: 10 if DENSE else 100]


def is_equal(case):
    """Whether the values of the imported case are those of JAX; an error is none."""
    args = case.dyn_args_maker(np.random.RandomState(0))
    expected = jax.tree.leaves(jax.jit(case.dyn_fun)(*args))
    arrays = [np.asarray(a) if not hasattr(a, "dtype") else a for a in args]
    try:
        graph = pg.interop.from_jax(case.dyn_fun, *arrays).graph
        found = pg.interpret(graph, *map(words_of, arrays))
        for x, y in zip(found, map(words_of, expected), strict=True):
            assert x.dtype == y.dtype
            tolerance = TOLERANCE[y.real.dtype.itemsize] if y.dtype.kind in "fc" else 0
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)
    except (pg.PrimgraphError, AssertionError):
        return False
    return True


def words_of(array):
    """An array of NumPy; the words of keys of random numbers."""
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    return np.asarray(array)


def test_values_of_jaxs_own_cases():
    found = {case.fullname: is_equal(case) for case in cases()}
    wrong = [name for name, equal in found.items() if not equal]
    assert len(wrong) <= (1 - LEAST) * len(found), wrong
