"""Second derivatives of functions of singular values, where some of these are equal or zero."""

import numpy as np
import pytest
from test_ties import (
    WAYS,
    by_eigenvalues,
    forward_over_reverse,
    nested,
    reverse_over_forward,
    reverse_over_reverse,
)

import primgraph as pg

rng = np.random.default_rng(17)


def general(m, n, kind=float):
    return rng.normal(size=(m, n)) + (1j * rng.normal(size=(m, n)) if kind is complex else 0)


def matrix(m, n, values, kind=float):
    """A matrix with these singular values."""
    k = min(m, n)
    u, v = (np.linalg.qr(general(size, k, kind))[0] for size in (m, n))
    return (u * np.asarray(values)) @ v.conj().T


def by_values(f):
    return lambda a: f(pg.linalg.svdvals(a))


def gram(a):
    other = pg.conj(pg.swapaxes(a, -1, -2))
    return other @ a if a.shape[-2] > a.shape[-1] else a @ other


# Even functions of singular values, and the same by functions of `a.T @ a`.
EVEN = {
    "squares": (lambda s: pg.sum(s**2), lambda b: pg.trace(b)),
    "fourth powers": (lambda s: pg.sum(s**4), lambda b: pg.trace(b @ b)),
    "logarithms": (
        lambda s: pg.sum(pg.log(1 + s * s)),
        lambda b: pg.log(pg.linalg.det(b + np.eye(b.shape[0]))),
    ),
    "penalty": (
        lambda s: pg.sum((s**2 - 1) ** 2),
        lambda b: pg.trace((b - np.eye(b.shape[0])) @ (b - np.eye(b.shape[0]))),
    ),
    "coupled": (
        lambda s: pg.sum(s**2) * pg.sin(pg.sum(s**4)) + pg.sum(s**2) ** 2,
        lambda b: pg.trace(b) * pg.sin(pg.trace(b @ b)) + pg.trace(b) ** 2,
    ),
}
VALUES = {
    "equal": [1.5, 1.5, 1.5],
    "two": [2.0, 1.0, 1.0],
    "two and zero": [1.0, 1.0, 0.0],
    "zeros": [1.0, 0.0, 0.0],
    "all zero": [0.0, 0.0, 0.0],
    "none": [3.0, 2.0, 1.0],
}
SHAPES = [(3, 3), (5, 3), (3, 4)]


def seconds(f, shape, kind=float):
    """The gradient, and second derivatives along a direction in forward and in reverse mode."""

    def asked(x, d):
        slope = pg.grad(f(x), x)
        return slope, pg.forward_grad(slope, x, d), pg.grad(pg.real(pg.sum(slope * d)), x)

    return pg.compile(pg.trace(asked, pg.spec(shape, kind), pg.spec(shape, kind)))


def differences(kernel, a, d, h=1e-5):
    ahead, behind = (np.asarray(kernel(x, d)[0]) for x in (a + h * d, a - h * d))
    return (ahead - behind) / (2 * h)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", EVEN)
def test_even_functions_have_second_derivatives_at_ties_and_zeros(name, shape):
    f, other = EVEN[name]
    kernel, plain = seconds(by_values(f), shape), seconds(lambda x: other(gram(x)), shape)
    for values in VALUES.values():
        a, d = matrix(*shape, values), general(*shape)
        _, forward, reverse = kernel(a, d)
        expected = plain(a, d)[1]
        for found in (forward, reverse):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", EVEN)
def test_second_derivatives_of_complex_matrices_are_differences_of_the_gradient(name, shape):
    kernel = seconds(by_values(EVEN[name][0]), shape, complex)
    for values in VALUES.values():
        a, d = matrix(*shape, values, complex), general(*shape, complex)
        expected = differences(kernel, a, d)
        for found in kernel(a, d)[1:]:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("style", ["planned", "readable", "native"])
def test_the_hessian_of_the_sum_of_squares_is_twice_the_identity(style):
    functions = [
        by_values(EVEN["squares"][0]),
        lambda a: pg.sum(pg.linalg.svd(a)[1] ** 2),
        lambda a: pg.sum(pg.linalg.svd(a, full_matrices=True)[1] ** 2),
        lambda a: pg.linalg.norm(pg.linalg.svdvals(a)) ** 2,
    ]
    for shape in ((2, 2), (3, 2), (2, 3)):
        samples = [np.eye(*shape), matrix(*shape, [1.0, 0.0]), np.zeros(shape)]
        for f in functions[:1] if style == "native" else functions:
            graph = pg.trace(lambda x, f=f: pg.hessian(f(x), x), pg.spec(shape))
            kernel = pg.compile(graph, style=style)
            # The norm of a vector of zeros has slope zero.
            for a in samples[:2] if f is functions[3] else samples:
                found = np.asarray(kernel(a)).reshape(a.size, a.size)
                np.testing.assert_allclose(found, 2 * np.eye(a.size), atol=1e-12)


@pytest.mark.parametrize("way", WAYS, ids=[w.__name__ for w in WAYS])
@pytest.mark.parametrize("name", ["squares", "coupled"])
def test_all_ways_to_second_derivatives_agree_at_ties(name, way):
    f, other = EVEN[name]
    a, d = matrix(4, 3, VALUES["two and zero"]), general(4, 3)
    expected = forward_over_reverse(lambda x: other(gram(x)), a, d)
    np.testing.assert_allclose(way(by_values(f), a, d), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("order", ["nuc", 2, "fourth"])
def test_second_derivatives_of_norms_are_differences_of_the_gradient(order, kind):
    def f(a):
        return pg.sum(pg.linalg.svd(a)[1] ** 4) if order == "fourth" else pg.linalg.norm(a, order)

    tied = [2.0, 1.0, 1.0], [2.0, 0.0, 0.0], [1.5, 1.5, 1.5]
    for shape in SHAPES:
        kernel = seconds(f, shape, kind)
        for values in {"nuc": (tied[0], tied[2]), 2: tied[:2], "fourth": tied}[order]:
            a, d = matrix(*shape, values, kind), general(*shape, kind)
            expected = differences(kernel, a, d)
            for found in kernel(a, d)[1:]:
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_the_nuclear_norm_has_a_kink_at_zero():
    a, d = np.diag([2.0, 0.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    found = forward_over_reverse(lambda x: pg.linalg.norm(x, "nuc"), a, d)
    np.testing.assert_allclose(found, np.array([[0.0, -0.5], [0.5, 0.0]]), atol=1e-15)
    found = forward_over_reverse(lambda x: pg.linalg.norm(x, "nuc"), np.zeros((3, 2)), d[[0, 1, 0]])
    np.testing.assert_array_equal(found, 0)


def test_second_derivatives_in_float32():
    f = by_values(EVEN["fourth powers"][0])
    double, kernel = seconds(f, (4, 3)), seconds(f, (4, 3), np.float32)
    for values in VALUES.values():
        a, d = matrix(4, 3, values), general(4, 3)
        expected, single = double(a, d)[1], kernel(np.float32(a), np.float32(d))[1]
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("way", WAYS[:3], ids=[w.__name__ for w in WAYS[:3]])
def test_second_derivatives_of_batches_with_and_without_ties(way):
    f, _ = EVEN["logarithms"]
    a = np.stack([matrix(4, 3, v) for v in VALUES.values()])
    d = np.stack([general(4, 3) for _ in a])
    each = by_values(f)
    kernel = seconds(each, (4, 3))
    expected = np.stack([kernel(x, y)[1] for x, y in zip(a, d, strict=True)])
    mapped = way(lambda x: pg.sum(pg.vmap(each)(x)), a, d)
    stacked = way(by_values(f), a, d)
    for found in (mapped, stacked):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_decompositions_of_what_others_gave():
    def chained(x):
        s = pg.linalg.svdvals(x)
        return pg.sum(pg.linalg.svdvals(x * pg.sum(s**2)) ** 4)

    def plain(x):
        b = gram(x) * pg.trace(gram(x)) ** 2
        return pg.trace(b @ b)

    a, d = matrix(3, 4, VALUES["two and zero"]), general(3, 4)
    expected = forward_over_reverse(plain, a, d)
    for way in WAYS:
        np.testing.assert_allclose(way(chained, a, d), expected, rtol=1e-9, atol=1e-9)


def test_singular_values_taken_twice():
    def twice(x):
        whole, some = pg.linalg.svd(x, full_matrices=True)[1], pg.linalg.svd(x)[1]
        return pg.sum(whole * some) + pg.sum(whole**2 * some * pg.linalg.svdvals(x))

    a, d = matrix(4, 3, VALUES["two and zero"]), general(4, 3)
    expected = forward_over_reverse(lambda x: pg.trace(gram(x) + gram(x) @ gram(x)), a, d)
    for way in WAYS[:3]:
        np.testing.assert_allclose(way(twice, a, d), expected, rtol=1e-9, atol=1e-9)


WEIGHTS = np.array([1.0, 2.0, -1.0])
UNEVEN = {
    "smallest": lambda s: s[2],
    "weighted": lambda s: pg.sum(WEIGHTS * s),
    "weighted squares": lambda s: pg.sum(WEIGHTS * s**2),
}


@pytest.mark.parametrize("way", WAYS[:2], ids=[w.__name__ for w in WAYS[:2]])
@pytest.mark.parametrize("name", UNEVEN)
def test_other_functions_have_no_second_derivative_at_ties(name, way):
    f = by_values(UNEVEN[name])
    for values in ("equal", "all zero"):
        with pytest.raises(pg.LinAlgError, match=r"second derivative(.|\n)*a\.T @ a"):
            way(f, matrix(3, 3, VALUES[values]), general(3, 3))
    assert np.all(np.isfinite(way(f, matrix(3, 3, VALUES["none"]), general(3, 3))))
    graph = pg.trace(lambda x: pg.forward_grad(pg.grad(f(x), x), x, np.eye(3)), pg.spec((3, 3)))
    with pytest.raises(pg.LinAlgError, match="does not exist"):
        pg.compile(graph, style="native")(np.eye(3))


def test_functions_that_are_not_even_have_no_second_derivative_at_zeros():
    # The size of the determinant: the gradient is 0 where two values are, and has a kink there.
    with pytest.raises(pg.LinAlgError, match="does not exist"):
        forward_over_reverse(by_values(lambda s: pg.prod(s)), np.diag([2.0, 0, 0]), general(3, 3))


@pytest.mark.parametrize("way", [nested, reverse_over_forward])
def test_forward_mode_first_is_refused_where_equal_values_part(way):
    f = by_values(EVEN["squares"][0])
    for shape in SHAPES:
        for values in ("equal", "all zero"):
            a = matrix(*shape, VALUES[values])
            with pytest.raises(pg.LinAlgError, match="forward mode alone"):
                way(f, a, general(*shape))
        a, d = matrix(*shape, VALUES["none"]), general(*shape)
        expected = np.sum(2 * d * d) if way is nested else 2 * d
        np.testing.assert_allclose(way(f, a, d), expected, rtol=1e-9)
    # One value that is 0 turns no vectors of a square matrix, but those of other ones.
    d = general(2, 2)
    np.testing.assert_allclose(nested(f, np.diag([1.0, 0.0]), d), np.sum(2 * d * d), rtol=1e-9)
    for shape in ((3, 2), (2, 3)):
        with pytest.raises(pg.LinAlgError, match="forward mode alone"):
            way(f, np.eye(*shape) * [1.0, 0.0, 0.0][: shape[1]], general(*shape))


@pytest.mark.parametrize("kind", [float, complex])
def test_sums_have_second_derivatives_at_ties_in_forward_mode(kind):
    def f(a):
        return pg.linalg.norm(a, "nuc") ** 2

    for shape in SHAPES:
        a, d = matrix(*shape, VALUES["two"], kind), general(*shape, kind)
        other = forward_over_reverse(f, a, d)
        expected = np.sum(np.real(np.asarray(other) * d))
        np.testing.assert_allclose(nested(f, a, d), expected, rtol=1e-9)


def test_third_derivatives_at_ties_and_zeros_are_refused():
    def third(f, a, d):
        return pg.jvp(lambda x: pg.jvp(pg.grad(f), x, d)[1], a, d)[1]

    f, other = EVEN["fourth powers"]
    d = general(4, 3)
    for values in ("equal", "two and zero", "all zero"):
        with pytest.raises(pg.LinAlgError, match=r"derivative of the tangents|third derivative"):
            third(by_values(f), matrix(4, 3, VALUES[values]), d)
    with pytest.raises(pg.LinAlgError, match="third derivative"):
        third(lambda x: pg.linalg.norm(x, "nuc"), matrix(4, 3, VALUES["two"]), d)
    a = matrix(4, 3, VALUES["none"])
    expected = third(lambda x: other(gram(x)), a, d)
    np.testing.assert_allclose(third(by_values(f), a, d), expected, rtol=1e-8)


@pytest.mark.parametrize("made", [by_eigenvalues, by_values])
def test_second_derivatives_at_ties_move_with_other_arguments(made):
    f, a, d = made(lambda w: pg.sum(w**4)), np.diag([1.0, 2.0, 2.0]), general(3, 3)
    d = d + d.T

    def second(t):
        return pg.sum(d * forward_over_reverse(lambda x: t**2 * f(x), a, d))

    np.testing.assert_allclose(pg.grad(second)(1.5), 2 * second(1.5) / 1.5, rtol=1e-10)


def test_second_derivatives_within_bodies():
    def checked(x):
        return pg.sum(pg.checkpoint(lambda y: pg.linalg.svdvals(y) ** 2)(x))

    def sums(x):
        return pg.checkpoint(lambda y: pg.linalg.norm(y, "nuc"))(x)

    d = general(3, 2)
    for way in (forward_over_reverse, reverse_over_reverse):
        for values in ([1.0, 1.0], [1.0, 0.0]):
            with pytest.raises(pg.LinAlgError, match="body"):
                way(checked, matrix(3, 2, values), d)
        np.testing.assert_allclose(way(checked, matrix(3, 2, [2.0, 1.0]), d), 2 * d, rtol=1e-8)
        a = matrix(3, 2, [1.0, 1.0])
        expected = way(lambda x: pg.linalg.norm(x, "nuc"), a, d)
        np.testing.assert_allclose(way(sums, a, d), expected, rtol=1e-9)


def test_one_factorisation_serves_first_and_second_derivatives():
    d = general(4, 3)
    f = by_values(EVEN["fourth powers"][0])
    first = pg.compile(pg.trace(lambda x: (f(x), pg.grad(f(x), x)), pg.spec((4, 3))))
    assert first.source.count("np.linalg") == 1
    assert "unless_any" not in first.source
    graph = pg.trace(lambda x: pg.forward_grad(pg.grad(f(x), x), x, d), pg.spec((4, 3)))
    assert pg.compile(graph).source.count("np.linalg.svd") == 1
