"""Complex numbers: values with NumPy's cuts, derivatives by the convention, both styles of code."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program_complex import check_complex
from program_tolerance import same_bits

import primgraph as pg
from primgraph.errors import DTypeError, FeedError, NotDifferentiable, OptionError
from primgraph.ir.interpret import interpret

RNG = np.random.default_rng(11)
Z = RNG.standard_normal(4) + 1j * RNG.standard_normal(4)
W = RNG.standard_normal(4) + 1j * RNG.standard_normal(4)

# Both sides of every cut, both zeros, and numbers between.
PARTS = (-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0)
GRID = np.array([complex(x, y) for x in PARTS for y in PARTS])
EDGES = np.array([complex(x, y) for x in (0.0, -1.0, np.inf, np.nan) for y in (-0.0, np.inf, 1.0)])


def made(function: Callable[..., Any], *arrays: np.ndarray) -> list[np.ndarray]:
    """What the interpreter and both kernels give."""
    graph = pg.trace(function, *(pg.spec(a.shape, a.dtype) for a in arrays))
    assert pg.parse(str(graph), graph.constants) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    with np.errstate(all="ignore"):
        kernels = [pg.compile(graph, style=style) for style in ("planned", "readable")]
        return [interpret(graph, *arrays)[0], *(k(*arrays) for k in kernels)]


FUNCTIONS = [
    "sqrt",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "exp2",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "arcsin",
    "arccos",
    "arctan",
    "arcsinh",
    "arccosh",
    "arctanh",
    "abs",
    "angle",
    "real",
    "imag",
    "conj",
    "conjugate",
    "negative",
    "positive",
    "square",
    "reciprocal",
    "sign",
    "isnan",
    "isinf",
    "isfinite",
    "isreal",
    "iscomplex",
    "logical_not",
    "round",
    "rint",
    "sinc",
]


def test_functions_have_numpys_values_and_cuts_on_both_sides() -> None:
    points = np.concatenate([GRID, EDGES])
    for dtype in (np.complex128, np.complex64):
        z = points.astype(dtype)
        calls = [getattr(np, name) for name in FUNCTIONS]
        graph = pg.trace(lambda v, calls=calls: [f(v) for f in calls], pg.spec(z.shape, dtype))
        with np.errstate(all="ignore"):
            expected = [f(z) for f in calls]
            ways = [interpret(graph, z), *(pg.compile(graph, style=s)(z) for s in
                                           ("planned", "readable"))]  # fmt: skip
        for name, wanted, *found in zip(FUNCTIONS, expected, *ways, strict=True):
            for each in found:
                assert each.dtype == wanted.dtype, name
                near = np.isclose(each, wanted, 4 * np.finfo(dtype).eps, 0, equal_nan=True)
                # NaN parts may be where a product with a zero has put them.
                far = ~np.isfinite(z) if name == "sign" else ~np.isfinite(wanted)
                assert np.all(near | far), (name, z[~near], each[~near])
                cut = np.isfinite(wanted) & (np.abs(wanted) > 0)
                if wanted.dtype.kind == "c" and name not in ("sign", "reciprocal", "sinc"):
                    signs = np.signbit(each.imag) == np.signbit(wanted.imag)
                    assert np.all(signs | ~cut | (np.abs(wanted.imag) < 1e-15)), name


def test_arithmetic_promotes_and_broadcasts_as_numpy_does() -> None:
    operations = [np.add, np.subtract, np.multiply, np.divide, np.power, np.equal, np.not_equal]
    kinds = [np.complex64, np.complex128, np.float16, np.float32, np.float64, np.int64, np.bool_]
    for function in operations:
        for dtype in kinds:
            other = np.array([[1.5], [2.0]]).astype(dtype)
            for z in (Z[:3], Z[:3].astype(np.complex64)):
                wanted = function(z, other)
                for found in made(function, z, other):
                    assert found.dtype == wanted.dtype
                    assert found.shape == wanted.shape
                    eps = 1e-5 if wanted.dtype == np.complex64 else 1e-13
                    np.testing.assert_allclose(found, wanted, eps)


def test_pythons_numbers_are_weak() -> None:
    x = np.ones(2, np.float32)
    z = Z[:2].astype(np.complex64)
    for function in (lambda v: v + 1j, lambda v: 2j * v - 1.5, lambda v: v / (1 + 1j)):
        for array in (x, z, x.astype(np.float64), np.arange(2)):
            wanted = function(array)
            for found in made(function, array):
                assert found.dtype == wanted.dtype
                np.testing.assert_allclose(found, wanted, 1e-6)
    assert pg.trace(lambda: pg.add(1j, 2.0)).outputs[0].dtype == np.complex128


def test_complex_is_put_together_bit_by_bit() -> None:
    parts = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5])
    x, y = (a.reshape(-1) for a in np.meshgrid(parts, parts))
    wanted = np.empty(x.shape, complex)
    wanted.real, wanted.imag = x, y
    for found in made(pg.complex, x, y):
        assert np.all(same_bits(found, wanted))
    for found in made(lambda v: pg.complex(v, -0.0), parts.astype(np.float32)):
        assert found.dtype == np.complex64
        assert np.all(np.signbit(found.imag))
    for constant in (wanted, wanted[:5], wanted[:1], wanted.astype(np.complex64)):
        # Nothing but the constant: text, source and files say every bit of it.
        for found in made(lambda x, c=constant: pg.assign(c) + 0 * x[:0].sum(), parts):
            assert np.all(same_bits(found, constant + 0.0)), constant


def test_constants_are_kept_to_the_bit(tmp_path: Path) -> None:
    edges = [complex(a, b) for a in (0.0, -0.0, np.inf, np.nan) for b in (0.0, -0.0, -np.inf, 2.5)]
    for array in (np.array(edges), *(np.array([z]) for z in edges), np.array(edges * 9)):
        for dtype in (np.complex128, np.complex64):
            constant = array.astype(dtype)
            graph = pg.trace(lambda c=constant: pg.conj(pg.assign(c)))
            assert pg.parse(str(graph), graph.constants) == graph
            for style in ("planned", "readable"):
                found = pg.compile(graph, style=style)()
                assert found.dtype == dtype
                assert np.all(same_bits(found, np.conj(constant)))
    with pg.Program() as program:
        z = pg.data("z", (2,), "complex64")
        result = z * (1 - 2j) + np.array([1j, -0.0])
        result.name = "result"
    pg.save(program, tmp_path / "p")
    feed = {"z": Z[:2].astype(np.complex64)}
    found = [pg.Executor().run(p, feed, ["result"])[0] for p in (program, pg.load(tmp_path / "p"))]
    assert found[0].dtype == np.complex128
    assert np.all(same_bits(*found))


ORDER_PARTS = (1.0, 2.0, 0.0, -np.inf, np.inf, np.nan)
COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.maximum, np.minimum,
               np.fmax, np.fmin)  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("target", ["numpy", "c"])
def test_complex_numbers_are_compared_by_real_parts_first(target: str) -> None:
    every = np.array([complex(a, b) for a in ORDER_PARTS for b in ORDER_PARTS])
    pair = [np.ascontiguousarray(z) for z in np.meshgrid(every, every)]

    def compared(x: Any, y: Any) -> Any:
        return [function(x, y) for function in COMPARISONS]

    for found, wanted in zip(pg.jit(compared, target=target)(*pair), compared(*pair), strict=True):
        np.testing.assert_array_equal(found.real, wanted.real)
        np.testing.assert_array_equal(found.imag, wanted.imag)


@pytest.mark.filterwarnings("ignore:All-NaN")
def test_extrema_of_complex_numbers() -> None:
    parts = np.random.default_rng(0).integers(0, 3, (2, 3, 4, 5)).astype(float)
    z = parts[0] + 1j * parts[1]
    with_nan = z.copy()
    with_nan[[0, 1], [1, 2], [3, 0]] = complex(np.nan, 1), complex(1, np.nan)
    functions = np.max, np.min, np.argmax, np.argmin, np.nanmax, np.nanmin, np.ptp, np.nanargmax
    for function, given in itertools.product(functions, (z, with_nan)):
        for axis in (None, 0, -1, *([(0, 2)] if "arg" not in function.__name__ else [])):
            found, wanted = (
                function(pg.tensor(given), axis=axis).numpy(),
                function(given, axis=axis),
            )
            np.testing.assert_array_equal(found.real, wanted.real)
            np.testing.assert_array_equal(found.imag, wanted.imag)
    mask = z.real != 1
    found = pg.jit(lambda v: np.max(v[mask]))(z)
    assert found == np.max(z[mask])


def test_derivatives_of_complex_extrema() -> None:
    apart = np.array([1 + 2j, 3 - 1j, 2.5 + 1j, 0.5j])
    graph = pg.trace(lambda v: (pg.max(v) ** 2, pg.minimum(v, v[::-1])), apart)
    pg.check_grads(graph, [apart], order=2)
    # The first of equal numbers has the derivative.
    slope = pg.grad(lambda v: pg.real(pg.max(v)))(np.array([1j, 2 + 1j, 2 + 1j]))
    np.testing.assert_array_equal(slope, [0, 1, 0])


def test_what_has_an_order_refuses_complex_numbers() -> None:
    z = pg.tensor(Z)
    with pytest.raises(DTypeError, match="no order"):
        pg.cummax(z)
    for function in (pg.floor, pg.special.erfinv, lambda v: pg.arctan2(v, v), lambda v: v % 2):
        with pytest.raises(DTypeError):
            function(z)
    for function in (lambda v: pg.astype(v, "float64"), lambda v: pg.zeros(4) + v.astype("i8")):
        with pytest.raises(DTypeError, match=r"pg\.real"):
            function(z)
    with pytest.raises(DTypeError, match="complex"):
        pg.complex(z, 1.0)
    assert pg.astype(z, bool).numpy().all()
    kernel = pg.compile(pg.trace(pg.sin, pg.spec(2)))
    with pytest.raises(FeedError, match=r"array\.real"):
        kernel(Z[:2])
    assert str(pg.compile(pg.trace(pg.sin, pg.spec(2, "complex128")))([1, 2]).dtype) == "complex128"


# Real functions of complex numbers, in NumPy's words.
REAL_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "abs": lambda z: np.sum(np.abs(z) ** 2) + np.sum(np.abs(z)),
    "parts": lambda z: np.sum(np.real(np.sin(z) * z) * np.imag(z)),
    "conj": lambda z: np.sum(np.real(np.conj(z) * z * z)),
    "angle": lambda z: np.sum(np.angle(z) * np.abs(z)),
    "powers": lambda z: np.sum(np.abs(z**3 + z**-1 + z**0.5 + z ** (1 + 2j) + 2.0**z)),
    "inverses": lambda z: np.sum(np.real(
        np.arcsin(z) + 1j * np.arccos(z) + np.arctan(z) * (2 + 1j) + np.arcsinh(z)
        + np.arccosh(z) + 1j * np.arctanh(z)
    )),
    "functions": lambda z: np.sum(np.real(
        np.tan(z) + np.tanh(z) * 1j + np.sinh(z) * np.cosh(z) + 1j * np.log(z) + np.log1p(z)
        + 1j * np.expm1(z)
    )),
    "matmul": lambda z: np.sum(np.abs(np.reshape(z, (2, 2)) @ np.reshape(z, (2, 2)))),
    "statistics": lambda z: np.var(z) + np.std(z) + np.linalg.norm(z) + np.real(np.mean(z)),
    "running": lambda z: np.sum(np.abs(np.cumsum(z) * np.cumprod(z))) + np.abs(np.prod(z)),
    "where": lambda z: np.sum(np.real(np.where(np.abs(z) > 1, np.log(z), 1j * z))),
    "sign": lambda z: np.sum(np.real(1j * np.sign(z))),
    "vdot": lambda z: np.real(np.vdot(z, z * z) + 1j * np.einsum("i,i->", z, z)),
    "indexing": lambda z: np.sum(np.abs(z[1:] * z[:-1])) + np.real(np.sum(z[[0, 0, 2]] * 1j)),
    "joining": lambda z: np.sum(np.abs(np.concatenate([z, np.conj(z)])[::-1] + 1j)),
    "mixed": lambda z: np.sum(np.imag(np.real(z) * z) + np.exp(np.imag(z))),
    "convolution": lambda z: np.sum(np.abs(np.convolve(z, z[:2]))),
}  # fmt: skip


def by_differences(function: Callable[[Any], Any], z: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """`df/dx - i df/dy`, by central differences of the sixth order."""
    weights = {1: 0.75, 2: -0.15, 3: 1 / 60}
    found = np.zeros(z.shape, complex)
    for place in np.ndindex(z.shape):
        for along, factor in ((1.0, 1.0), (1j, -1j)):
            unit = np.zeros(z.shape, complex)
            unit[place] = along * step
            slope = sum(c * (function(z + k * unit) - function(z - k * unit))
                        for k, c in weights.items()) / step  # fmt: skip
            found[place] += factor * slope
    return found


@pytest.mark.parametrize("name", REAL_FUNCTIONS)
def test_a_gradient_is_by_the_real_part_less_i_times_by_the_imaginary_one(name: str) -> None:
    function = REAL_FUNCTIONS[name]
    wanted = by_differences(function, Z)
    graph = pg.trace(lambda z: pg.grad(function(z), z), pg.spec(4, "complex128"))
    planned, readable = (pg.compile(graph, style=s) for s in ("planned", "readable"))
    found = [planned(Z), readable(Z), interpret(graph, Z)[0]]
    tensor = pg.tensor(Z, requires_grad=True)
    function(tensor).backward()
    found.append(tensor.grad.numpy())
    for each in found:
        assert each.dtype == np.complex128
        np.testing.assert_allclose(each, wanted, 1e-9, 1e-9)
    value, slope = pg.jvp(function, Z, W)
    assert slope.dtype == np.float64
    np.testing.assert_allclose(slope, np.sum(wanted * W).real, 1e-9)
    np.testing.assert_allclose(value, function(Z), 1e-12)


def test_all_derivatives_to_order_two_against_differences() -> None:
    together = list(REAL_FUNCTIONS.values())
    pg.check_grads(lambda z: sum(f(z) for f in together[:5]), [Z[:2]])
    pg.check_grads(lambda z, x: pg.exp(z * x) / (z + 2j), [Z[:2], np.array([0.5, -1.0])])
    pg.check_grads(lambda z: pg.abs(pg.cumprod(z)).sum(), [Z[:3].astype(np.complex64)])


def test_a_wrong_rule_for_complex_numbers_is_found() -> None:
    @pg.custom_vjp
    def squared(z: Any) -> Any:
        return z * z

    # As torch has it: conjugated.
    squared.defvjp(lambda z: (z * z, z), lambda z, ct: (ct * pg.conj(2 * z),))
    with pytest.raises(pg.CheckError):
        pg.check_grads(lambda z: pg.real(squared(z)), [Z[:1]], order=1, modes=["reverse"])


def test_rules_of_custom_functions_of_complex_numbers_are_checked() -> None:
    """By real and imaginary parts: where they are traced, and where they look at numbers."""

    def rules(factor: Any, looks: bool = False) -> Any:
        @pg.custom_vjp
        def squared(z: Any) -> Any:
            return z * z

        squared.defvjp(lambda z: (z * z, z), lambda z, ct: (ct * factor(2 * z),))

        def looking(z: Any) -> Any:
            return squared(z) if float(pg.abs(z[0])) > 0 else z

        return looking if looks else squared

    for looks in (False, True):
        pg.check_rules(rules(lambda z: z, looks), [Z[:2]])
        with pytest.raises(pg.CheckError, match=r"element 0|at \(0,\)"):
            pg.check_rules(rules(pg.conj, looks), [Z[:2]])

    @pg.custom_jvp
    def size(z: Any) -> Any:
        return pg.real(z * pg.conj(z))

    size.defjvp(lambda p, t: (size(*p), 2 * pg.real(pg.conj(p[0]) * t[0])))
    pg.check_rules(size, [Z[:2]])
    size.defjvp(lambda p, t: (size(*p), 2 * pg.real(p[0] * t[0])))
    with pytest.raises(pg.CheckError, match="forward mode"):
        pg.check_rules(size, [Z[:2]])


def test_at_zero_the_absolute_value_has_the_slope_zero() -> None:
    slopes = pg.grad(lambda z: pg.sum(pg.abs(z)))(np.array([0j, 3 + 4j]))
    np.testing.assert_allclose(slopes, [0, 0.6 - 0.8j])
    slopes = pg.grad(lambda z: pg.norm(z))(np.zeros(2, complex))
    assert not np.any(slopes)
    assert not np.any(pg.grad(lambda z: pg.real(pg.grad(lambda v: pg.sum(pg.abs(v)))(z)).sum())(
        np.zeros(2, complex)))  # fmt: skip


def test_a_complex_result_has_a_derivative_only_where_it_is_said_to_be_holomorphic() -> None:
    def cube(z: Any) -> Any:
        return z[0] ** 3 * 1j

    with pytest.raises(NotDifferentiable, match="holomorphic"):
        pg.grad(cube)(Z)
    slope = pg.grad(cube, holomorphic=True)(Z)
    np.testing.assert_allclose(slope, [3j * Z[0] ** 2, 0, 0, 0])
    with pytest.raises(NotDifferentiable, match="all is complex"):
        pg.grad(lambda z: pg.real(cube(z)), holomorphic=True)(Z)
    with pytest.raises(NotDifferentiable):
        pg.value_and_grad(lambda x: pg.sum(1j * x))(np.ones(2))
    with pg.Program() as program:
        z = pg.data("z", (4,), "complex128")
        y = pg.exp(z) * z[0]
        with pytest.raises(NotDifferentiable, match="direction"):
            pg.grad(y, z)
        with pytest.raises(NotDifferentiable, match="direction"):
            pg.jacobian(y, z)
        with pytest.raises(NotDifferentiable, match="real numbers"):
            pg.laplacian(pg.real(y[0]), z)
        slope = pg.grad(y[1], z, holomorphic=True)
        seeded = pg.grad(y, z, grad_outputs=W)
        matrix = pg.jacobian(y, z, holomorphic=True)
    found, given, whole = pg.Executor().run(program, {"z": Z}, [slope, seeded, matrix])
    jacobian = np.diag(np.exp(Z) * Z[0])
    jacobian[:, 0] += np.exp(Z)
    np.testing.assert_allclose(found, jacobian[1])
    np.testing.assert_allclose(given, W @ jacobian)
    np.testing.assert_allclose(whole, jacobian)


def test_jacobians_with_complex_numbers_on_one_side() -> None:
    def parts(z: Any) -> Any:
        return pg.stack([pg.real(z[0] * z[1]), pg.abs(z[1]), pg.imag(z[0])])

    z = Z[:2]
    wanted = np.array([by_differences(lambda v, i=i: np.asarray(
        [np.real(v[0] * v[1]), np.abs(v[1]), np.imag(v[0])])[i], z) for i in range(3)])  # fmt: skip
    for jacobian in (pg.jacrev(parts), pg.jacobian(parts)):
        np.testing.assert_allclose(jacobian(z), wanted, 1e-8, 1e-8)
    with pytest.raises(OptionError, match="reverse mode does"):
        pg.jacfwd(parts)(z)

    def turned(x: Any) -> Any:
        return pg.exp(1j * x) * x[::-1]

    x = np.array([0.3, -1.2, 2.0])
    step = 1e-6
    wanted = np.stack([(np.exp(1j * (x + step * e)) * (x + step * e)[::-1]
                        - np.exp(1j * (x - step * e)) * (x - step * e)[::-1]) / (2 * step)
                       for e in np.eye(3)], 1)  # fmt: skip
    for jacobian in (pg.jacfwd(turned), pg.jacobian(turned)):
        np.testing.assert_allclose(jacobian(x), wanted, 1e-8, 1e-8)
    with pytest.raises(OptionError, match="forward mode does"):
        pg.jacrev(turned)(x)
    tensor = pg.tensor(x, requires_grad=True)
    np.testing.assert_allclose(pg.jacobian(turned(tensor), tensor).numpy(), wanted, 1e-8, 1e-8)
    holomorphic = pg.jacrev(lambda z: z * z[::-1], holomorphic=True)(z)
    np.testing.assert_allclose(holomorphic, [[z[1], z[0]], [z[1], z[0]]])


def test_batches_loops_sizes_and_jit() -> None:
    def loss(z: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            carry = carry * row + pg.conj(carry)
            return carry, pg.abs(carry)

        last, sizes = pg.scan(step, pg.full((), 1 + 1j, "complex128"), z)
        return pg.real(last) + pg.sum(sizes)

    def by_hand(z: np.ndarray) -> float:
        carry, total = 1 + 1j, 0.0
        for row in z:
            carry = carry * row + np.conj(carry)
            total += abs(carry)
        return carry.real + total

    wanted = by_differences(by_hand, Z)
    slope = pg.grad(loss)
    np.testing.assert_allclose(slope(Z), wanted, 1e-8)
    np.testing.assert_allclose(pg.jit(slope)(Z), wanted, 1e-8)
    both = pg.vmap(slope)(np.stack([Z, W]))
    np.testing.assert_allclose(both, [wanted, by_differences(by_hand, W)], 1e-8)
    open_ = pg.compile(pg.trace(lambda z: pg.grad(loss(z), z), pg.spec(("N",), "complex128")))
    for array in (Z, Z[:1], np.tile(W, 3)):
        np.testing.assert_allclose(open_(array), by_differences(by_hand, array), 1e-7)
    where = pg.compile(pg.trace(lambda z: pg.cond(pg.abs(z) > 1, lambda v: v * 1j, pg.conj, z),
                                pg.spec((), "complex128")))  # fmt: skip
    np.testing.assert_allclose([where(2j), where(0.5j)], [-2, -0.5j])


def test_saved_code_needs_numpy_only(tmp_path: Path) -> None:
    def function(z: Any) -> Any:
        value = pg.sum(pg.abs(pg.sin(z) * pg.complex(pg.real(z), 2.0)) + pg.imag(z) * 3)
        return pg.grad(value, z)

    kernel = pg.compile(pg.trace(function, pg.spec(4, "complex128")))
    kernel.save(tmp_path / "saved.py")
    np.save(tmp_path / "z.npy", Z)
    code = (
        "import sys, numpy as np; sys.modules['primgraph'] = None; import saved; "
        "np.save('out.npy', saved.function(np.load('z.npy')))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), kernel(Z), 1e-14)


def test_rules_of_real_numbers_leave_complex_ones_alone() -> None:
    """At every level the same numbers, where they hold of real numbers only."""
    functions: list[Callable[[Any], Any]] = [
        lambda z: pg.sqrt(z * z) + pg.sqrt(z) * pg.sqrt(z) + pg.power(z, 0.5),
        lambda z: pg.log(pg.exp(z)) + pg.exp(pg.log(z)) + pg.arcsin(pg.sin(z)),
        lambda z: pg.abs(z) ** 2 + pg.abs(-z) * pg.abs(z),
        lambda z: z * 2 * 3 + z / (2 + 1j) + (0 * z - z) * -1 + (z - -z),
        lambda z: pg.sum(z * 2) * 1j + pg.sum(-z) + z @ (z * (1 + 1j)),
        lambda z: pg.real(pg.conj(z) * z) - pg.imag(pg.complex(pg.real(z), pg.imag(z))),
        lambda z: pg.conj(pg.conj(z)) + pg.astype(pg.real(z), "complex128") + 1 * z,
    ]
    z = 3 * RNG.standard_normal(40) + 3j * RNG.standard_normal(40)
    for function in functions:
        graph = pg.trace(function, pg.spec(40, "complex128"))
        gradient = pg.trace(lambda v, f=function: pg.grad(pg.sum(pg.real(f(v))), v),
                            pg.spec(40, "complex128"))  # fmt: skip
        for each in (graph, gradient):
            wanted = interpret(each, z)[0]
            for math in ("exact", "signs", "finite", "fast"):
                np.testing.assert_allclose(pg.compile(each, math=math)(z), wanted, 1e-10, 1e-10)
    # The gradient of |z|**2 through `z * conj(z)` is 2 conj(z).
    slope = pg.grad(lambda v: pg.sum(pg.real(v * pg.conj(v))))(z)
    np.testing.assert_allclose(slope, 2 * np.conj(z))


def test_slopes_where_nothing_is_chosen_put_no_nan_into_others() -> None:
    z = np.array([0j, 2 - 1j])
    slope = pg.grad(lambda v: pg.sum(pg.real(pg.where(v == 0, 0.0, pg.log(v) + 1 / v))))(z)
    np.testing.assert_allclose(slope, [0, 1 / z[1] - 1 / z[1] ** 2])


def test_sums_in_blocks_and_products_of_matrices() -> None:
    a, b = (RNG.standard_normal(s) + 1j * RNG.standard_normal(s) for s in ((300, 40), (40, 200)))
    for dtype, eps in ((np.complex128, 1e-11), (np.complex64, 2e-3)):
        x, y = a.astype(dtype), b.astype(dtype)

        def function(x: Any, y: Any) -> Any:
            h = pg.tanh(0.1 * (x @ y))
            return pg.grad(pg.sum(pg.abs(h * h + pg.sum(h, axis=0))), x)

        for found in made(function, x, y):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, made(function, a, b)[0], eps, eps)
    for shape in ((0,), (0, 3), ()):
        empty = np.zeros(shape, complex)
        for found in made(lambda z: pg.grad(pg.sum(pg.abs(z * z + 1j)), z), empty):
            assert found.shape == shape
            assert found.dtype == np.complex128


def test_random_programs_of_complex_numbers_agree_in_all_ways() -> None:
    compared = [check_complex(seed) for seed in range(20)]
    assert sum(compared) > 4
    # Most of these is linear algebra.
    compared = [check_complex(seed, linear=0.7) for seed in range(1000, 1008)]
    assert sum(compared) > 4
