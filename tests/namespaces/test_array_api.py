"""The namespace of the array API standard, whose own tests `array_api_suite.py` runs."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from array_api_suite import EXCEPTIONS

import primgraph as pg
from primgraph import array_api as xp

X = np.array([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]])


def test_arrays_give_their_namespace() -> None:
    with pg.Program():
        v = pg.data("v", (3,))
        assert v.__array_namespace__(api_version="2023.12") is xp
    assert pg.tensor(X).__array_namespace__() is xp
    assert xp.__array_api_version__ == "2024.12"
    with pytest.raises(pg.ArgumentError, match="no version"):
        pg.tensor(X).__array_namespace__(api_version="2031.12")


def test_arrays_have_what_the_standard_asks_of_them() -> None:
    x = pg.tensor(X)
    assert x.device == "cpu"
    assert x.to_device("cpu") is x
    np.testing.assert_array_equal(x.mT, X.T)
    np.testing.assert_array_equal(np.from_dlpack(x), X)
    assert x.__dlpack_device__() == X.__dlpack_device__()
    shared = [np.from_dlpack(x), pg.from_dlpack(x).numpy(), xp.from_dlpack(x).numpy()]
    assert not any(np.shares_memory(y, np.asarray(x)) for y in shared)
    assert "dltensor" in repr(x.__dlpack__(copy=False))
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        seen = np.from_dlpack(x, copy=False)
        assert np.shares_memory(seen, np.asarray(x))
        assert not seen.flags.writeable
    with pytest.raises(pg.ArgumentError, match="no device 'cuda'"):
        x.to_device("cuda")
    own = xp.asarray(x, copy=True)
    own[0, 0] = 7.0
    assert (own[0, 0].item(), x[0, 0].item()) == (7.0, 3.0)


def standardised(x: Any) -> Any:
    """A function as array-API code is written: it knows nothing of primgraph."""
    xp = x.__array_namespace__()
    centered = x - xp.mean(x, axis=0, keepdims=True)
    spread = xp.std(centered, axis=0, correction=1.0) + xp.asarray(1e-3, dtype=x.dtype)
    score = centered / spread
    gram = xp.matmul(score, xp.matrix_transpose(score)) + 2.0 * xp.eye(x.shape[0])
    order = xp.argsort(x[:, 0])
    parts = xp.concat([xp.take(score, order, axis=0), xp.zeros((1, x.shape[1]))], axis=0)
    return (
        xp.linalg.slogdet(gram).logabsdet
        + xp.sum(xp.where(parts > 0, xp.atan2(parts, xp.ones_like(parts)), parts))
        + xp.linalg.vector_norm(xp.linspace(0.0, 1.0, 5))
    )


def test_code_for_the_standard_is_traced_and_differentiated_as_it_is() -> None:
    class OfNumpy(np.ndarray[Any, Any]):
        def __array_namespace__(self) -> Any:
            return np

    expected = standardised(X.view(OfNumpy))
    np.testing.assert_allclose(standardised(pg.tensor(X)).item(), expected, 1e-13)
    np.testing.assert_allclose(pg.jit(standardised)(X), expected, 1e-13)
    pg.check_grads(standardised, [X], order=2)


ALIKE = """
acos(x / 5)|cumulative_sum(x, axis=1, include_initial=True)|diff(x, axis=0)|permute_dims(x, (1, 0))
bitwise_left_shift(asarray([1, 2]), asarray([3, 1]))|repeat(x, asarray([1, 0, 2]), axis=1)
clip(x, 0.0, 2.0)|round(x)|tensordot(x, x, axes=((0, 1), (0, 1)))|sum(asarray([1, 2], dtype=uint8))
linspace(0, 1, 4, endpoint=False)|arange(1, 7, 2)|full((2,), 3)|eye(2, 3, k=1)|tril(x)|zeros((0, 2))
sort(x, axis=0)|count_nonzero(x, axis=1)|searchsorted(asarray([1.0, 2.0]), x)|prod(x, axis=1)
unique_inverse(x).inverse_indices|nonzero(x)[1]|result_type(x, float32)|can_cast(int8, x.dtype)
expand_dims(x, 0)|roll(x, 1, axis=1)|tile(x, (2, 1))|stack([x, x])|flip(x)|moveaxis(x, 0, 1)
reciprocal(x)|take_along_axis(x, argsort(x, axis=1), axis=1)|unstack(x)[1]|meshgrid(x[0], x[1])[1]
linalg.pinv(x)|linalg.svdvals(x)|linalg.trace(x)|linalg.qr(x).R|linalg.matrix_norm(x)
conj(asarray([1 + 2j]))|imag(asarray([1 + 2j], dtype=complex64))|real(x)|full((2,), 1j)|abs(x * 1j)
astype(x, int32)|isdtype(x.dtype, ("real floating", "bool"))|broadcast_to(x, (4, 2, 3))|max(x)
"""


@pytest.mark.parametrize("case", ALIKE.replace("|", "\n").split("\n")[1:-1])
def test_functions_mean_what_they_mean_in_numpy(case: str) -> None:
    expected = eval(case, {**vars(np), "x": X})
    found = eval(case, {**vars(xp), "x": pg.tensor(X)})
    assert getattr(found, "dtype", None) == getattr(expected, "dtype", None)
    if isinstance(expected, np.dtype):
        assert found == expected
    else:
        np.testing.assert_allclose(np.asarray(found), expected, 1e-12, 1e-14)


def test_elements_in_descending_order_stay_in_theirs_where_they_are_equal() -> None:
    x = xp.asarray([2, 3, 2, 1, 3])
    assert xp.argsort(x, descending=True).tolist() == [1, 4, 0, 2, 3]
    assert xp.sort(x, descending=True).tolist() == [3, 3, 2, 2, 1]


def test_a_pseudo_inverse_has_a_tolerance_for_each_matrix() -> None:
    stack = np.stack([np.diag([1.0, 0.1]), np.diag([1.0, 0.1])])
    found = xp.linalg.pinv(pg.tensor(stack), rtol=pg.tensor([0.5, 0.01]))
    np.testing.assert_allclose(found, [np.diag([1.0, 0.0]), np.diag([1.0, 10.0])], atol=1e-14)
    alone = xp.linalg.pinv(pg.tensor(stack[0]), rtol=pg.tensor(0.5))
    np.testing.assert_allclose(alone, np.diag([1.0, 0.0]), atol=1e-14)


def test_the_namespace_tells_of_itself() -> None:
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.capabilities()["data-dependent shapes"]
    assert info.default_dtypes()["real floating"] == xp.float64
    assert set(info.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32", "uint64"}
    assert info.dtypes()["bool"] == xp.bool
    assert xp.finfo(xp.float32).eps == float(np.finfo(np.float32).eps)
    assert xp.iinfo(pg.tensor([1])).max == 2**63 - 1
    for device in ("gpu", 0):
        with pytest.raises(pg.ArgumentError, match="no device"):
            xp.zeros(3, device=device)
    with pytest.raises(pg.ArgumentError, match="copy=False"):
        xp.asarray([1.0], copy=False)
    with pytest.raises(pg.DTypeError, match="takes numbers"):
        xp.conj(xp.asarray([True]))


def test_every_function_has_a_docstring_and_positions_of_its_own() -> None:
    functions = [f for n in xp.__all__ if inspect.isfunction(f := getattr(xp, n))]
    functions += [getattr(xp.linalg, n) for n in xp.linalg.__all__]
    functions += [getattr(xp.fft, n) for n in xp.fft.__all__]
    assert len(functions) > 150
    assert [f.__name__ for f in functions if not f.__doc__] == []
    taken = {f.__name__: inspect.signature(f).parameters for f in functions}
    assert list(taken["squeeze"]) == ["x", "axis"]
    assert taken["add"]["x1"].kind is inspect.Parameter.POSITIONAL_ONLY


def test_exceptions_of_the_suite_have_reasons() -> None:
    groups = EXCEPTIONS.read_text().strip().split("\n\n")[1:]
    assert all(group.startswith("# ") for group in groups)
    listed = [line for group in groups for line in group.split("\n") if line[0] != "#"]
    # There are 1,376 tests.
    assert len(listed) <= 0.03 * 1376


def test_a_new_axis_has_its_place_within_the_result() -> None:
    x = xp.zeros((2, 3))
    assert xp.expand_dims(x, axis=-3).shape == (1, 2, 3)
    for axis in (3, -4):
        with pytest.raises(IndexError, match="out of bounds"):
            xp.expand_dims(x, axis=axis)


def test_ranks_are_told_by_tolerances_of_their_own() -> None:
    x = xp.asarray(np.array([np.diag([1.0, 0.1, 0.01]), np.diag([2.0, 0.1, 0.0])]))
    found = xp.linalg.matrix_rank(x, rtol=xp.asarray([0.05, 0.001]))
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found.numpy(), [2, 2])
    assert xp.linalg.matrix_rank(x[0], rtol=xp.asarray(0.001)).item() == 3
    assert xp.linalg.matrix_rank(xp.zeros((2, 0, 3)), rtol=xp.asarray([0.1, 0.1])).shape == (2,)
