"""Elements that a mask chooses which is known in the run only: `y[mask] = f(x[mask])`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primgraph as pg

X = np.array([1.5, -1.0, 0.0, 2.0, -0.25])
Y = np.array([0.3, 0.2, -4.0, 2.5, 1.0])


def assigned(x: Any, y: Any) -> Any:
    z = np.zeros_like(x)
    mask = x > 0
    z[mask] = np.log(x[mask]) * y[mask] + x[mask] ** 0.5
    return z


def assigned_twice(x: Any, y: Any) -> Any:
    z = np.empty_like(x)
    z[x > 0] = np.sqrt(x[x > 0])
    z[~(x > 0)] = np.exp(x[~(x > 0)]) / y[~(x > 0)]
    return z


def added(x: Any, y: Any) -> Any:
    z = y * 2.0
    z[y > 0] += np.log(y[y > 0])
    z[x < 0] *= 3.0
    return z


def placed(x: Any, y: Any) -> Any:
    z = np.full_like(x, -7.0)
    np.place(z, x > 0, np.log(np.extract(x > 0, x)) * np.extract(x > 0, y))
    np.putmask(z, y > 1, y)
    np.place(z, np.arange(z.size).reshape(z.shape) % 2 == 1, x.reshape(-1)[:1] * 2.0)
    np.place(z, np.arange(z.size).reshape(z.shape) > 2, x.reshape(-1))
    np.place(z, np.zeros(z.shape, bool), x)
    return z


def placed_one(x: Any, y: Any) -> Any:
    z = np.full_like(x, -7.0)
    np.place(z, x > 0, np.log(np.extract(x > 0, x)))
    return z


def chosen_again(x: Any, y: Any) -> Any:
    z = np.zeros_like(x)
    positive = x > 0
    part = x[positive] - 1.0
    inner = np.full_like(part, 5.0)
    inner[part > 0.7] = np.log(part[part > 0.7])
    z[positive] = inner
    return z


def summed(x: Any, y: Any) -> Any:
    part = x[x > 0] * y[x > 0]
    return (
        np.sum(part), np.prod(part), part.mean(), np.max(part), part.min(), np.var(part, ddof=1),
        np.std(part), part.sum(keepdims=True),
    )  # fmt: skip


def reduced(x: Any, y: Any) -> Any:
    part, other = x[x > 0], y[x > 0]
    return (
        np.ptp(part), np.average(part), np.average(part, weights=other), np.nansum(part),
        np.nanprod(part), part @ other, np.dot(part, other), np.inner(part, part),
        np.linalg.norm(part), np.linalg.norm(part, 3), np.linalg.norm(part, np.inf),
        np.sum(np.exp(part) * np.cumsum(part)),
    )  # fmt: skip


def looked_up(x: Any, y: Any) -> Any:
    z = np.zeros_like(x)
    mask = x > 0
    places = np.searchsorted(np.array([0.5, 1.0]), x[mask])
    table = y.reshape(-1) * 2.0
    z[mask] = (
        np.hypot(x[mask], y[mask]) + np.hypot(x[mask], 2.0) + table[places] * np.take(y, places)
    )
    z[mask] += np.interp(x[mask], np.array([0.0, 1.0, 3.0]), y.reshape(-1)[:3])
    z[mask] += np.max([x[mask], y[mask]], axis=0) * np.std([x[mask], y[mask], 2 * x[mask]], 0)
    z[mask] += np.digitize(x[mask], np.array([0.5, 1.0]))
    return z


def guarded(x: Any, y: Any) -> Any:
    z, large, small = np.zeros_like(x), x > 9, x < 1
    if large.any():
        z[large] = x[large] / np.mean(x[large])
    if np.any(small):
        z[small] += y[small]
        z[small] *= 2.0
    if x[large].size > 0:
        z[large] -= 1.0
    if y[small].size:
        z[small] = z[small] + 3.0
    return z


def counted(x: Any, y: Any) -> Any:
    part = x[x > 0]
    return part.size, np.count_nonzero(part > 1.7), np.any(part > 1.7), np.all(part > 1.7)


def scaled_by_size(x: Any, y: Any) -> Any:
    part = x[x > 0]
    n, total = part.size, np.sum(part)
    whole = (x * 4).astype(np.int32)
    # The largest of two numbers is one of NumPy, which is not weak.
    return (
        *(total * n, total / n, total / (n - 1), total * (0.5 / n) - n, np.where(y > 0, y, n)),
        *(whole * n, whole // (n + 1), whole / n, n, n / 2 * 3.0, total * np.maximum(n, 1)),
    )


def test_the_number_of_chosen_elements_is_promoted_like_a_python_number() -> None:
    for dtype in (np.float32, np.float64):
        x, y = X.astype(dtype), Y.astype(dtype)
        found, wanted = pg.jit(scaled_by_size)(x, y), scaled_by_size(x, y)
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == np.asarray(other).dtype
            np.testing.assert_allclose(one, other, 1e-6)

    def in_a_body(x: Any) -> Any:
        n = x[x > 0].size
        return pg.fori_loop(0, 2, lambda i, s: s * n, x)

    found = pg.jit(in_a_body)(X.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, X.astype(np.float32) * 4)


def of_conditions(x: Any, y: Any) -> Any:
    z = np.zeros_like(x)
    mask = x != 0
    z[mask] = np.where(x[mask] > 0, np.arctan2(x[mask], y[mask]), 1.0 / x[mask])
    return z


def changed_in_place(x: Any, y: Any) -> Any:
    z = y * 1.0
    mask = x > 0
    part = x[mask]
    same, before = part, part.copy()
    part -= 1.75
    part[part < 0] = 0.5
    same *= 2.0
    z[mask] = np.log(part) + same + before - np.copy(part)
    return z


FUNCTIONS: list[Callable[..., Any]] = [
    assigned, assigned_twice, added, placed, chosen_again, summed, of_conditions,
    changed_in_place, reduced, looked_up, guarded,
]  # fmt: skip


@pytest.mark.quick
@pytest.mark.parametrize("function", [*FUNCTIONS, counted])
@pytest.mark.parametrize("target", ["numpy", "c"])
def test_chosen_elements_are_those_of_numpy(function: Callable[..., Any], target: str) -> None:
    for x, y in ((X, Y), (X.reshape(5, 1), Y.reshape(5, 1)), (X[::-1], Y)):
        found, wanted = pg.jit(function, target=target)(x, y), function(x, y)
        if not isinstance(wanted, tuple):
            found, wanted = (found,), (wanted,)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, 1e-14)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_derivatives_have_no_nan_of_elements_that_are_left_out(
    function: Callable[..., Any],
) -> None:
    def total(x: Any, y: Any) -> Any:
        found = function(x, y)
        return sum(np.sum(np.sin(v)) for v in (found if isinstance(found, tuple) else [found]))

    # Away from the masks' edges.
    x, y = X + 0.01, Y + 0.005
    gradients = pg.jit(pg.grad(total, argnums=(0, 1)))(x, y)
    for k, gradient in enumerate(gradients):
        for i in range(x.size):
            ends = []
            for step in (1e-6, -1e-6):
                given = [x.copy(), y.copy()]
                given[k][i] += step
                ends.append(total(*given))
            np.testing.assert_allclose(gradient[i], (ends[0] - ends[1]) / 2e-6, 1e-6, 1e-8)


def test_parameters_have_no_nan_of_elements_that_are_left_out() -> None:
    def f(x: Any, p: Any) -> Any:
        z = np.zeros_like(x)
        z[x > 0] = np.log(x[x > 0]) * p + x[x > 0] ** p
        return np.sum(z)

    by_p = pg.jit(pg.grad(f, argnums=1))
    positive = X[X > 0]
    wanted = np.sum(np.log(positive) + positive**2.5 * np.log(positive))
    np.testing.assert_allclose(by_p(X, 2.5), wanted, 1e-14)
    assert by_p(-np.abs(X), 2.5) == 0.0
    second = pg.jit(pg.hessian(f, argnums=1))(X, 2.5)
    np.testing.assert_allclose(second, np.sum(positive**2.5 * np.log(positive) ** 2), 1e-14)


@pytest.mark.parametrize("function", [assigned, assigned_twice, placed_one, chosen_again])
def test_arrays_without_axes_are_chosen_from(function: Callable[..., Any]) -> None:
    for x in (2.5, -1.0):
        found = pg.jit(function)(np.array(x), np.array(0.3))
        np.testing.assert_allclose(found, function(np.array(x), np.array(0.3)), 1e-15)
    slope = pg.jit(pg.grad(function))
    assert np.isfinite(slope(2.5, 0.3))
    assert np.isfinite(slope(-1.0, 0.3))


def test_left_out_elements_warn_of_nothing() -> None:
    with np.errstate(all="raise"):
        for x in (X, -np.abs(X), X[:0]):
            np.testing.assert_array_equal(pg.jit(assigned)(x, Y[: x.size])[x <= 0], 0.0)
        # The first element that is chosen stands for those left out, and changes as it does.
        found = pg.jit(changed_in_place)(X, Y)
    np.testing.assert_allclose(found, changed_in_place(X, Y), 1e-15)


def test_chosen_elements_in_batches_and_of_named_sizes() -> None:
    rows = np.stack([X, -X])
    found = pg.jit(pg.vmap(assigned, in_axes=(0, None)))(rows, Y)
    np.testing.assert_allclose(found, [assigned(row, Y) for row in rows], 1e-14)
    kernel = pg.compile(pg.trace(assigned, pg.spec("n"), pg.spec("n")))
    for n in (0, 1, 4):
        np.testing.assert_allclose(kernel(X[:n], Y[:n]), assigned(X[:n], Y[:n]), 1e-14)


def test_chosen_elements_in_programs_and_loops() -> None:
    with pg.Program() as program:
        x = pg.data("x", (5,))
        mask = x > 0
        y = pg.set_slice(x * 0.0, mask, pg.log(x[mask]))
        total = pg.sum(x[mask])
    found, number = pg.Executor().run(program, feed={"x": X}, fetch_list=[y, total])
    np.testing.assert_allclose(found, np.where(X > 0, np.log(np.where(X > 0, X, 1.0)), 0.0), 1e-15)
    assert number == 3.5

    def step(s: Any, x: Any) -> Any:
        return s + pg.sum(pg.sqrt(x[x > s])), s

    def repeated(s: Any, x: Any) -> Any:
        mask = x > 0
        part = np.sqrt(x[mask])

        def step(i: Any, s: Any) -> Any:
            s = s.copy()
            s[mask] = s[mask] * part + x[mask]
            return s

        return pg.fori_loop(0, 3, step, s)

    expected = Y.copy()
    for _ in range(3):
        expected[X > 0] = expected[X > 0] * np.sqrt(X[X > 0]) + X[X > 0]
    np.testing.assert_allclose(pg.jit(repeated)(Y, X), expected, 1e-14)

    rows = np.stack([X, Y])
    wanted, _ = 0.5 + np.sum(np.sqrt(X[X > 0.5])), 0
    wanted = wanted + np.sum(np.sqrt(Y[wanted < Y]))
    np.testing.assert_allclose(pg.jit(lambda r: pg.scan(step, 0.5, r)[0])(rows), wanted, 1e-14)


def test_integers_and_booleans_are_chosen_too() -> None:
    def f(n: Any) -> Any:
        z = np.zeros_like(n)
        z[n > 1] = 12 // n[n > 1]
        return z, n[n > 1].max(), n[n > 1].sum(), (n == 3)[n > 1]

    with pytest.raises(pg.errors.UnknownSizeError, match="how many elements"):
        pg.jit(f)(np.array([3, 0, 4]))
    found = pg.jit(lambda n: f(n)[:3])(np.array([3, 0, 4]))
    for one, other in zip(found, f(np.array([3, 0, 4])), strict=False):
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def test_a_random_mask_is_another_one_each_time() -> None:
    def f(key: Any, x: Any) -> Any:
        z = np.zeros_like(x)
        z[pg.random.uniform(key, x.shape) > 0.5] = x[pg.random.uniform(key, x.shape) > 0.5]
        return z

    with pytest.raises(pg.ShapeError, match="name the mask once"):
        pg.jit(f)(3, X)


def test_masks_that_differ_by_the_sign_of_a_zero_are_two() -> None:
    def f(x: Any, y: Any) -> Any:
        z = np.zeros_like(x)
        z[x / 0.0 > 0] = y[x / -0.0 > 0]
        return z

    with pytest.raises(pg.ShapeError, match="name the mask once"):
        pg.jit(f)(X, Y)


def test_a_branch_that_does_more_than_assign_by_its_mask_is_refused() -> None:
    def counts(x: Any) -> Any:
        y, count, mask = np.zeros_like(x), 0, x > 0
        if mask.any():
            y[mask] = 1.0
            count = 1
        return y + count

    def otherwise(x: Any) -> Any:
        y, mask = np.zeros_like(x), x > 0
        if mask.any():
            y[mask] = 1.0
        else:
            y += 2.0
        return y

    def another(x: Any) -> Any:
        y, mask, other = np.zeros_like(x), x > 0, x < 0
        if mask.any():
            y[other] = 1.0
        return y

    for wrong in (counts, otherwise, another):
        with pytest.raises(pg.UnknownValueError, match="truth of a variable"):
            pg.jit(wrong)(X)


def test_arrays_in_lists_beside_chosen_elements_are_refused() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.sum(np.select([x[x > 0] > 1.7], [y], 0.0))

    with pytest.raises(pg.ShapeError, match=r"choose the elements of both arrays"):
        pg.jit(f)(X, Y)


@pytest.mark.parametrize("wrong", [
    lambda x: np.cumsum(x[x > 0]),
    lambda x: np.dot(x[x > 0], x),
    lambda x: np.cumsum(x[x > 0], axis=1),
    lambda x: np.linalg.norm(x[x > 0], -1),
    lambda x: pg.logsumexp(x[x > 0], b=x[x > 0]),
    lambda x: np.interp(x[x > 0], x[x > 0], x[x > 0]),
    lambda x: np.concatenate([x[x > 0], x]),
    lambda x: list(x[x > 0]),
    lambda x: len(x[x > 0]),
    lambda x: np.reshape(x[x > 0], (-1, 1)),
    lambda x: pg.softmax(x[x > 0]),
    lambda x: np.flip(x[x > 0]),
    lambda x: x[x > 0],
    lambda x: x[x > 0][::2],
])  # fmt: skip
def test_what_needs_the_number_of_elements_is_refused(wrong: Callable[..., Any]) -> None:
    with pytest.raises(pg.PrimgraphError, match="mask"):
        pg.jit(wrong)(X)
