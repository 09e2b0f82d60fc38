"""Second derivatives of functions of eigenvalues where some of these are equal."""

import numpy as np
import pytest
import scipy.linalg
from program_spectra import SpectralProgram, check_spectral

import primgraph as pg

rng = np.random.default_rng(11)


def turned(values, kind=float):
    """A symmetric or Hermitian matrix with these eigenvalues."""
    n = len(values)
    z = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if kind is complex else 0)
    q = np.linalg.qr(z)[0]
    a = (q * np.asarray(values)) @ q.conj().T
    return (a + a.conj().T) / 2


def even(n, kind=float):
    """A direction, symmetric or Hermitian."""
    d = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if kind is complex else 0)
    return d + d.conj().T


MATRICES = {
    "one": 2 * np.eye(1),
    "two": np.eye(2),
    "three": 1.5 * np.eye(3),
    "zero": np.zeros((3, 3)),
    "in part": np.diag([1.0, 2.0, 2.0]),
    "turned": turned([0.5, 0.5, 2.0, 2.0, 3.0]),
    "all turned": turned([1.25, 1.25, 1.25]),
    "none": turned([0.5, 1.0, 2.0]),
}

# Symmetric functions of eigenvalues, and the same by functions of matrices.
SYMMETRIC = {
    "sum": (lambda w: pg.sum(w), lambda a: pg.trace(a)),
    "square of sum": (lambda w: pg.sum(w) ** 2, lambda a: pg.trace(a) ** 2),
    "squares": (lambda w: pg.sum(w**2), lambda a: pg.trace(a @ a)),
    "cubes": (lambda w: pg.sum(w**3), lambda a: pg.trace(a @ a @ a)),
    "exp": (lambda w: pg.sum(pg.exp(w)), lambda a: pg.trace(pg.linalg.expm(a))),
    "logsumexp": (
        lambda w: pg.logsumexp(w),
        lambda a: pg.log(pg.trace(pg.linalg.expm(a))),
    ),
    "product": (lambda w: pg.prod(w), lambda a: pg.linalg.det(a)),
    "coupled": (
        lambda w: pg.sum(w**2) * pg.sin(pg.sum(w)) + pg.sum(w**3) ** 2,
        lambda a: pg.trace(a @ a) * pg.sin(pg.trace(a)) + pg.trace(a @ a @ a) ** 2,
    ),
    "variance": (
        lambda w: pg.var(w),
        lambda a: pg.trace(a @ a) / a.shape[0] - (pg.trace(a) / a.shape[0]) ** 2,
    ),
}


def symmetric(a):
    """Only what is symmetric of `a` counts, as in the gradient by eigenvalues."""
    return (a + pg.conj(a.T if a.ndim == 2 else pg.swapaxes(a, -1, -2))) / 2


def by_eigenvalues(f):
    return lambda a: f(pg.linalg.eigvalsh(a))


def forward_over_reverse(f, a, d):
    return pg.jvp(pg.grad(f), a, d)[1]


def reverse_over_reverse(f, a, d):
    return pg.grad(lambda x: pg.real(pg.sum(pg.grad(f)(x) * d)))(a)


def by_program(f, a, d):
    graph = pg.trace(lambda x: pg.forward_grad(pg.grad(f(x), x), x, d), pg.spec(a.shape, a.dtype))
    return pg.compile(graph)(a)


def by_tensors(f, a, d):
    x = pg.tensor(a, requires_grad=True)
    (slope,) = pg.grad(f(x), [x], create_graph=True)
    return pg.grad(pg.sum(slope * d), [x])[0].numpy()


def by_hessian(f, a, d):
    graph = pg.trace(lambda x: pg.hessian(f(x), x), pg.spec(a.shape, a.dtype))
    whole = np.asarray(pg.compile(graph)(a)).reshape(a.size, a.size)
    return (whole @ d.ravel()).reshape(a.shape)


WAYS = [forward_over_reverse, reverse_over_reverse, by_program, by_tensors, by_hessian]


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_functions_have_second_derivatives_at_ties(name, matrix):
    f, other = SYMMETRIC[name]
    a = MATRICES[matrix]
    d = even(len(a))
    found = forward_over_reverse(by_eigenvalues(f), a, d)
    if name == "product" and matrix == "zero":
        # The determinant has no second derivative at singular matrices, but cofactors are 0 here.
        expected = np.zeros((3, 3))
    else:
        expected = forward_over_reverse(lambda x: other(symmetric(x)), a, d)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("way", WAYS, ids=[w.__name__ for w in WAYS])
@pytest.mark.parametrize("name", ["squares", "logsumexp", "product", "coupled"])
def test_all_ways_to_second_derivatives_agree_at_ties(name, way):
    f, other = SYMMETRIC[name]
    a, d = MATRICES["turned"], even(5)
    expected = forward_over_reverse(lambda x: other(symmetric(x)), a, d)
    np.testing.assert_allclose(way(by_eigenvalues(f), a, d), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_second_derivatives_at_ties_are_differences_of_the_gradient(name):
    f, a = by_eigenvalues(SYMMETRIC[name][0]), MATRICES["in part"]
    d, h = even(3), 1e-5
    slope = pg.grad(f)
    expected = (np.asarray(slope(a + h * d)) - np.asarray(slope(a - h * d))) / (2 * h)
    np.testing.assert_allclose(forward_over_reverse(f, a, d), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_second_derivatives_at_ties_of_hermitian_matrices(name):
    f, _ = SYMMETRIC[name]
    for values in ([1.0, 1.0], [0.5, 0.5, 2.0]):
        a, d, h = turned(values, complex), even(len(values), complex), 1e-5
        slope = pg.grad(by_eigenvalues(f))
        expected = (np.asarray(slope(a + h * d)) - np.asarray(slope(a - h * d))) / (2 * h)
        for way in (forward_over_reverse, reverse_over_reverse):
            found = way(by_eigenvalues(f), a, d)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_second_derivatives_at_ties_in_float32(name):
    f, _ = SYMMETRIC[name]
    for a in (np.eye(3), turned([0.5, 0.5, 2.0])):
        d = even(3)
        expected = forward_over_reverse(by_eigenvalues(f), a, d)
        single = forward_over_reverse(by_eigenvalues(f), np.float32(a), np.float32(d))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("way", WAYS[:3], ids=[w.__name__ for w in WAYS[:3]])
@pytest.mark.parametrize("name", ["exp", "logsumexp", "sum"])
def test_second_derivatives_of_batches_with_and_without_ties(name, way):
    f, _ = SYMMETRIC[name]
    a = np.stack([np.eye(3), MATRICES["none"], MATRICES["in part"], MATRICES["all turned"]])
    d = np.stack([even(3) for _ in a])
    each = by_eigenvalues(f)
    expected = np.stack([forward_over_reverse(each, x, y) for x, y in zip(a, d, strict=True)])
    mapped = way(lambda x: pg.sum(pg.vmap(each)(x)), a, d)
    stacked = way(lambda x: sum(f(pg.linalg.eigvalsh(x)[k]) for k in range(4)), a, d)
    for found in (mapped, stacked):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_stacks_whose_eigenvalues_meet():
    a = np.stack([np.eye(2), 2 * np.eye(2)])
    d = np.stack([even(2), even(2)])
    found = forward_over_reverse(lambda x: pg.sum(pg.linalg.eigvalsh(x) ** 2) ** 2, a, d)
    total, slope = np.sum(a * a), np.sum(2 * a * d)
    np.testing.assert_allclose(found, 2 * slope * 2 * a + 2 * total * 2 * d)


def test_decompositions_of_what_others_gave():
    def chained(x):
        w = pg.linalg.eigvalsh(x)
        return pg.sum(pg.linalg.eigvalsh(x * pg.sum(w**2)) ** 3)

    def plain(x):
        y = symmetric(x)
        z = y * pg.trace(y @ y)
        return pg.trace(z @ z @ z)

    for a in (np.eye(3), MATRICES["in part"]):
        d = even(3)
        expected = forward_over_reverse(plain, a, d)
        for way in WAYS:
            np.testing.assert_allclose(way(chained, a, d), expected, rtol=1e-10, atol=1e-10)


def test_eigenvalues_taken_twice():
    def twice(x):
        return pg.sum(pg.linalg.eigh(x)[0] * pg.linalg.eigvalsh(x)) + pg.sum(
            pg.linalg.eigh(x)[0] ** 2 * pg.linalg.eigvalsh(x)
        )

    a, d = MATRICES["in part"], even(3)
    y = symmetric
    expected = forward_over_reverse(lambda x: pg.trace(y(x) @ y(x) + y(x) @ y(x) @ y(x)), a, d)
    for way in WAYS:
        np.testing.assert_allclose(way(twice, a, d), expected, rtol=1e-9, atol=1e-9)


WEIGHTS = np.array([1.0, 2.0, -1.0])
UNEVEN = {
    "smallest": lambda w: w[0],
    "weighted": lambda w: pg.sum(WEIGHTS * w),
    "weighted squares": lambda w: pg.sum(WEIGHTS * w**2),
    "difference": lambda w: (w[2] - w[0]) ** 3 + w[1],
}


@pytest.mark.parametrize("way", WAYS[:2], ids=[w.__name__ for w in WAYS[:2]])
@pytest.mark.parametrize("name", UNEVEN)
def test_other_functions_have_no_second_derivative_at_ties(name, way):
    f = by_eigenvalues(UNEVEN[name])
    for matrix in ("three", "all turned"):
        with pytest.raises(pg.LinAlgError, match=r"second derivative(.|\n)*pg\.trace"):
            way(f, MATRICES[matrix], even(3))
    assert np.all(np.isfinite(way(f, MATRICES["none"], even(3))))


def test_squares_with_weights_have_no_second_derivative_at_zero():
    # The gradient treats equal values alike, and how it moves does not.
    with pytest.raises(pg.LinAlgError, match="does not exist"):
        forward_over_reverse(by_eigenvalues(UNEVEN["weighted squares"]), np.zeros((3, 3)), even(3))


def test_the_largest_eigenvalue_at_a_tie():
    f = by_eigenvalues(lambda w: pg.max(w))
    # Exactly equal values share the slope evenly, and other ones do not.
    np.testing.assert_array_equal(forward_over_reverse(f, np.eye(3), even(3)), 0)
    a, d = np.diag([1.0, 1.0, 2.0]), even(3)
    part = d[:2, 2]
    expected = np.zeros((3, 3))
    expected[:2, 2] = expected[2, :2] = part
    np.testing.assert_allclose(forward_over_reverse(f, a, d), expected, atol=1e-12)


def nested(f, a, d):
    return pg.jvp(lambda x: pg.jvp(f, x, d)[1], a, d)[1]


def reverse_over_forward(f, a, d):
    return pg.grad(lambda x: pg.jvp(f, x, d)[1])(a)


@pytest.mark.parametrize("way", [nested, reverse_over_forward])
def test_forward_mode_first_is_refused_where_equal_values_part(way):
    f = by_eigenvalues(SYMMETRIC["squares"][0])
    with pytest.raises(pg.LinAlgError, match="forward mode alone"):
        way(f, np.eye(3), even(3))
    found = way(f, np.diag([1.0, 2.0, 2.0]), np.diag([1.0, 2.0, 3.0]))
    expected = 28.0 if way is nested else 2 * np.diag([1.0, 2.0, 3.0])
    np.testing.assert_allclose(found, expected)
    a, d = MATRICES["none"], even(3)
    expected = np.sum(2 * d * d) if way is nested else 2 * d
    np.testing.assert_allclose(way(f, a, d), expected, rtol=1e-10)


def reverse_slope(f, x, d):
    return pg.grad(lambda y: pg.sum(pg.grad(f)(y) * d))(x)


def test_forward_mode_alone_of_hermitian_matrices():
    f, d = by_eigenvalues(SYMMETRIC["squares"][0]), even(3, complex)
    with pytest.raises(pg.LinAlgError, match="forward mode alone"):
        nested(f, np.eye(3) + 0j, d)
    found = nested(f, turned([0.5, 1.0, 2.0], complex), d)
    np.testing.assert_allclose(found, np.sum(2 * np.abs(d) ** 2), rtol=1e-9)


@pytest.mark.parametrize("way", [nested, reverse_over_forward])
def test_functions_of_sums_have_second_derivatives_at_ties_in_forward_mode(way):
    a, d = np.eye(3), even(3)
    found = way(by_eigenvalues(lambda w: pg.sum(w) ** 2), a, d)
    expected = 2 * np.trace(d) ** 2 if way is nested else 2 * np.trace(d) * np.eye(3)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_third_derivatives_at_ties_are_refused():
    def third(f, a, d):
        return pg.jvp(lambda x: pg.jvp(pg.grad(f), x, d)[1], a, d)[1]

    cubes = by_eigenvalues(SYMMETRIC["cubes"][0])
    d = even(3)
    with pytest.raises(pg.LinAlgError, match=r"derivative of the tangents|third derivative"):
        third(cubes, np.eye(3), d)
    np.testing.assert_allclose(third(cubes, MATRICES["none"], d), 6 * d @ d, rtol=1e-8)
    sums = by_eigenvalues(lambda w: pg.sum(w) ** 3)
    found = reverse_over_reverse(lambda x: pg.sum(reverse_slope(sums, x, d) * d), np.eye(3), d)
    np.testing.assert_allclose(found, 0, atol=1e-12)
    found = pg.grad(lambda x: pg.sum(reverse_slope(sums, x, d) * d))(np.eye(3))
    np.testing.assert_allclose(found, 6 * np.trace(d) ** 2 * np.eye(3))


def test_second_derivatives_at_ties_within_bodies():
    def checked(x):
        return pg.sum(pg.checkpoint(lambda y: pg.linalg.eigvalsh(y) ** 2)(x))

    def sums(x):
        return pg.checkpoint(lambda y: pg.sum(pg.linalg.eigvalsh(y)) ** 2)(x)

    a, d = np.eye(3), even(3)
    for way in (forward_over_reverse, reverse_over_reverse):
        with pytest.raises(pg.LinAlgError, match="body"):
            way(checked, a, d)
        np.testing.assert_allclose(way(checked, MATRICES["none"], d), 2 * d, rtol=1e-8)
        np.testing.assert_allclose(way(sums, a, d), 2 * np.trace(d) * np.eye(3))


def test_second_derivatives_at_ties_in_every_style():
    f = by_eigenvalues(SYMMETRIC["exp"][0])
    a, d = MATRICES["turned"], even(5)
    graph = pg.trace(lambda x: pg.forward_grad(pg.grad(f(x), x), x, d), pg.spec(a.shape))
    expected = forward_over_reverse(lambda x: pg.trace(pg.linalg.expm(symmetric(x))), a, d)
    for style in ("planned", "readable", "native"):
        np.testing.assert_allclose(pg.compile(graph, style=style)(a), expected, rtol=1e-9)
    uneven = pg.trace(
        lambda x: pg.forward_grad(pg.grad(pg.linalg.eigvalsh(x)[0], x), x, d), pg.spec(a.shape)
    )
    for style in ("planned", "readable", "native"):
        with pytest.raises(pg.LinAlgError, match="does not exist"):
            pg.compile(uneven, style=style)(a)


def test_what_is_read_is_the_function_that_was_written():
    gradient = pg.trace(
        lambda x: pg.grad(by_eigenvalues(SYMMETRIC["exp"][0])(x), x), pg.spec((3, 3))
    )
    kernel = pg.compile(gradient)
    assert "unless_any" not in kernel.source
    np.testing.assert_allclose(kernel(np.eye(3)), np.e * np.eye(3))


def test_symmetric_matrices_of_scipy():
    a = np.diag([1.0, 2.0, 2.0])
    found = forward_over_reverse(by_eigenvalues(SYMMETRIC["exp"][0]), a, d := even(3))
    # The derivative of expm is that of the gradient, as matrices commute under a trace.
    np.testing.assert_allclose(found, scipy.linalg.expm_frechet(a, d)[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(12))
def test_random_symmetric_functions_of_spectra(seed):
    check_spectral(SpectralProgram(seed))
