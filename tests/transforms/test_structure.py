"""What is known of matrices: the methods that it chooses, and what is declared and not so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primgraph as pg

RNG = np.random.default_rng(5)
SIZE = 70
A = RNG.normal(size=(SIZE, SIZE))
SPREAD = A @ A.T + SIZE * np.eye(SIZE)
LOWER = np.tril(A) + 3 * SIZE * np.eye(SIZE)
Y = RNG.normal(size=SIZE)
SCALE = np.array(0.3)


def calls(function: Callable[..., Any], *arrays: np.ndarray) -> dict[str, int]:
    """How often the code of a function calls what; its values are those of the interpreter."""
    graph = pg.trace(function, *arrays)
    with pg.transforms.debug(False):
        kernel = pg.compile(graph)
    for found, expected in zip(kernel.flat(*arrays), pg.interpret(graph, *arrays), strict=True):
        size = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * size)
    lines = kernel.source[kernel.source.rindex("def ") :].splitlines()
    code = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    names = ("solve", "inv", "cholesky", "slogdet", "det")
    found = {name: code.count(f"np.linalg.{name}(") for name in names}
    found["triangular"] = code.count("triangular_solve(")
    return {name: count for name, count in found.items() if count}


def as_declared(k: Any) -> Any:
    return pg.assume(k, "positive_definite")


def as_made(a: Any) -> Any:
    return a @ a.T + pg.exp(SCALE) * pg.eye(SIZE)


def by_solving(k: Any, y: Any) -> Any:
    return 0.5 * y @ pg.linalg.solve(k, y) + 0.5 * pg.linalg.slogdet(k)[1]


def by_inverse(k: Any, y: Any) -> Any:
    return 0.5 * y @ pg.linalg.inv(k) @ y + 0.5 * pg.linalg.slogdet(k)[1]


def by_factor(k: Any, y: Any) -> Any:
    factor = pg.linalg.cholesky(k)
    white = pg.linalg.solve_triangular(factor, y, lower=True)
    return 0.5 * pg.sum(white**2) + pg.sum(pg.log(pg.diagonal(factor)))


@pytest.mark.parametrize("likelihood", [by_solving, by_inverse, by_factor])
@pytest.mark.parametrize(("matrix", "given"), [(as_declared, SPREAD), (as_made, A)])
def test_a_gaussian_process_with_its_gradient_has_one_cholesky(
    likelihood: Any, matrix: Any, given: np.ndarray
) -> None:
    def whole(x: Any, y: Any) -> Any:
        value = likelihood(matrix(x), y)
        return value, *pg.grad(value, [x, y])

    found = calls(whole, given, Y)
    assert found.pop("cholesky") == 1
    assert set(found) <= {"triangular"}


METHODS = {
    "a triangle": (lambda a, y: pg.linalg.solve(pg.tril(a), y), (LOWER, Y), {"triangular": 1}),
    "its transpose": (
        lambda a, y: pg.linalg.solve(pg.swapaxes(pg.tril(a), 0, 1), y),
        (LOWER, Y),
        {"triangular": 1},
    ),
    "a factor": (
        lambda a, y: pg.linalg.solve(pg.linalg.cholesky(a).T, y),
        (SPREAD, Y),
        {"cholesky": 1, "triangular": 1},
    ),
    "an upper triangle": (
        lambda a, y: pg.linalg.solve(pg.linalg.qr(a)[1], y),
        (SPREAD, Y),
        {"triangular": 1},
    ),
    "a diagonal": (
        lambda a, y: pg.linalg.solve(pg.assume(a, "diagonal"), y),
        (np.diag(1 + Y**2), Y),
        {},
    ),
    "determinants of triangles": (
        lambda a: (pg.linalg.det(pg.triu(a) / SIZE), pg.linalg.slogdet(pg.tril(a))),
        (LOWER,),
        {},
    ),
    "a determinant": (
        lambda a: pg.linalg.det(pg.assume(a, "positive_definite") / SIZE),
        (SPREAD,),
        {"cholesky": 1},
    ),
    "an inverse times": (
        lambda a, y: (pg.linalg.inv(a) @ y, y @ pg.linalg.inv(a)),
        (SPREAD, Y),
        {"solve": 2},
    ),
    "an inverse that is there": (
        lambda a, y: (pg.linalg.inv(a), pg.linalg.inv(a) @ y),
        (SPREAD, Y),
        {"inv": 1},
    ),
    "what is not known": (lambda a, y: pg.linalg.solve(a, y), (SPREAD, Y), {"solve": 1}),
    "differences": (
        lambda a, y: pg.linalg.solve(a @ a.T - pg.eye(SIZE), y),
        (A, Y),
        {"solve": 1},
    ),
    "a small one": (
        lambda a, y: pg.linalg.solve(pg.assume(a, "positive_definite"), y),
        (SPREAD[:3, :3], Y[:3]),
        {"solve": 1},
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_chosen_by_what_is_known(name: str) -> None:
    function, arrays, expected = METHODS[name]
    assert calls(function, *arrays) == expected


def test_the_gradient_of_an_inverse_times_a_vector_solves_twice() -> None:
    def whole(a: Any, y: Any) -> Any:
        value = pg.sum((pg.linalg.inv(a) @ y) ** 2)
        return value, pg.grad(value, a)

    assert calls(whole, SPREAD, Y) == {"solve": 2}


def test_what_is_assumed_is_looked_at_in_debug_mode_only() -> None:
    wrong = {
        "symmetric": A[:3, :3],
        "positive_definite": -np.eye(3),
        "diagonal": A[:3, :3],
        "lower_triangular": A[:3, :3],
        "upper_triangular": A[:3, :3],
    }
    for fact, array in wrong.items():
        graph = pg.trace(lambda x, fact=fact: pg.assume(x, fact) * 2.0, array)
        with pg.transforms.debug(False):
            np.testing.assert_array_equal(pg.compile(graph)(array), 2 * array)
        with pg.transforms.debug():
            kernel = pg.compile(graph)
            right = np.eye(3)
            np.testing.assert_array_equal(kernel(right), 2 * right)
            with pytest.raises((pg.RunError, pg.LinAlgError)) as caught:
                kernel(array)
        assert "test_structure.py" in str(caught.value)


def test_the_slope_of_what_is_assumed_is_that_of_the_value() -> None:
    def function(a: Any, y: Any) -> Any:
        return pg.linalg.solve(pg.assume(a + a.T, "symmetric", "positive_definite"), y)

    pg.check_grads(function, (SPREAD[:3, :3], Y[:3]), order=2)
    many = pg.vmap(lambda a: pg.linalg.solve(pg.assume(a, "symmetric"), Y[:3]))
    stack = np.stack([SPREAD[:3, :3], SPREAD[1:4, 1:4]])
    np.testing.assert_allclose(many(stack), np.linalg.solve(stack, Y[:3, None])[..., 0])
    text = str(pg.trace(lambda a: pg.assume(a, "symmetric"), stack))
    assert str(pg.parse(text)) == text


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: pg.assume(x, "symmetric"), pg.ShapeError, "assume takes square matrices"),
        (lambda x: pg.assume(x @ x.T, "large"), pg.ArgumentError, "one or more of diagonal"),
        (lambda x: pg.assume(x @ x.T), pg.ArgumentError, "one or more of diagonal"),
        (lambda x: pg.assume(pg.astype(x @ x.T, int), "diagonal"), pg.DTypeError, "of floats"),
    ],
)
def test_what_cannot_be_assumed(call: Any, error: Any, message: str) -> None:
    with pg.Program(), pytest.raises(error, match=message) as caught:
        call(pg.data("x", (2, 3)))
    assert "test_structure.py" in str(caught.value)


def test_matrices_of_unknown_size_have_one_factor() -> None:
    n = pg.dim("n")

    def whole(k: Any, y: Any) -> Any:
        value = by_solving(pg.assume(k, "positive_definite"), y)
        return value, pg.grad(value, k)

    kernel = pg.compile(pg.trace(whole, pg.spec((n, n)), pg.spec((n,))))
    for size in (1, 3, 70):
        k, y = SPREAD[:size, :size], Y[:size]
        inverse = np.linalg.inv(k)
        value, slope = kernel(k, y)
        expected = 0.5 * y @ inverse @ y + 0.5 * np.linalg.slogdet(k)[1]
        np.testing.assert_allclose(value, expected, rtol=1e-10)
        expected = 0.5 * inverse - 0.5 * np.outer(inverse @ y, inverse @ y)
        np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-12)


def test_a_selection_between_matrices_is_not_symmetric_unless_its_condition_is() -> None:
    """Symmetric and definite operands say nothing about the elements that a condition mixes."""
    condition = np.random.default_rng(6).random((SIZE, SIZE)) < 0.5
    other = SPREAD[::-1, ::-1] + 2 * SIZE * np.eye(SIZE)

    def solved(a: Any, b: Any, y: Any) -> Any:
        return pg.linalg.solve(pg.where(condition, as_declared(a), as_declared(b)), y)

    found = pg.jit(solved)(SPREAD, other, Y)
    expected = np.linalg.solve(np.where(condition, SPREAD, other), Y)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
