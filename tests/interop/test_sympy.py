"""Expressions of SymPy, beside SymPy's own numbers at 30 digits."""

import pickle
import random
import subprocess
import sys

import numpy as np
import pytest

import primgraph as pg

sympy = pytest.importorskip("sympy")
implemented_function = pytest.importorskip("sympy.utilities.lambdify").implemented_function
mechanics = pytest.importorskip("sympy.physics.mechanics")

from_sympy = pg.interop.from_sympy
x, y, z, n, k = sympy.symbols("x y z n k")
VALUES = {x: 0.7, y: 1.3, z: 0.4}

UNARY = """
    exp log sin cos tan cot sec csc asin acos atan acot sinh cosh tanh coth sech csch asinh atanh
    acsch asech erf erfc erfi gamma loggamma digamma sign Abs floor ceiling frac Ei Si Ci li
    LambertW elliptic_k elliptic_e factorial sinc trigamma erfinv erfcinv
"""
OF_TWO = {
    "atan2": sympy.atan2(x, y),
    "beta": sympy.beta(x, y),
    "Max": sympy.Max(x, y, z),
    "Min": sympy.Min(x, y * 2, z),
    "Mod": sympy.Mod(y, z),
    "lowergamma": sympy.lowergamma(x, y),
    "uppergamma": sympy.uppergamma(x, y),
    "besselj": sympy.besselj(2, y),
    "bessely": sympy.bessely(1, y),
    "besseli": sympy.besseli(0, y),
    "besselk": sympy.besselk(1, y),
    "jn": sympy.jn(1, y),
    "yn": sympy.yn(2, y),
    "expint": sympy.expint(3, y),
    "binomial": sympy.binomial(y + 3, x),
    "rising": sympy.RisingFactorial(x, y),
    "falling": sympy.FallingFactorial(y + 3, x),
    "zeta": sympy.zeta(y + 1, x),
    "polylog": sympy.polylog(2, x),
    "hyper": sympy.hyper((x, y), (z + 2,), 0.3),
    "polygamma": sympy.polygamma(3, y),
    "harmonic": sympy.harmonic(y),
    "erf2": sympy.erf2(x, y),
    "heaviside": sympy.Heaviside(x - z) + sympy.Heaviside(z - x),
    "delta": sympy.KroneckerDelta(x, y) + sympy.KroneckerDelta(x, x + 0 * y),
    "singularity": sympy.SingularityFunction(y, x, 2),
    "ite": sympy.Piecewise((x, sympy.Or(x > y, sympy.Not(y < z))), (y, True)),
    "powers": x**-2 * y ** sympy.Rational(-1, 2) + z ** sympy.Rational(3, 2) + x**y - 2**z,
    "constants": sympy.pi * x + sympy.E + sympy.EulerGamma + sympy.GoldenRatio + sympy.sqrt(2),
    "quotient": -x / (y * z**2) + sympy.Rational(1, 3),
    "unevaluated": sympy.UnevaluatedExpr(x + y) * z,
}


def exact(expr):
    """The value that SymPy computes with 30 digits, at the values of the symbols."""
    expr = (
        expr.doit()
        .rewrite(sympy.erf2, sympy.erf)
        .replace(sympy.erfcinv, lambda p: sympy.erfinv(1 - p))
    )
    return complex(sympy.N(expr.subs({s: sympy.Float(v, 40) for s, v in VALUES.items()}), 30)).real


def check(expr, rtol=1e-12):
    """Compare value and gradient of an expression with SymPy's; return how many were."""
    symbols = [x, y, z]
    found = from_sympy(expr, symbols)
    at = [np.float64(VALUES[s]) for s in symbols]
    np.testing.assert_allclose(found(*at), exact(expr), rtol=rtol, atol=rtol)
    slopes = pg.jit(pg.grad(found, argnums=(0, 1, 2)))(*at)
    for symbol, slope in zip(symbols, slopes, strict=True):
        np.testing.assert_allclose(slope, exact(expr.diff(symbol)), rtol=10 * rtol, atol=10 * rtol)


@pytest.mark.parametrize("name", UNARY.split())
def test_functions_of_one_number(name):
    function = getattr(sympy, name)
    inner = y - 0.4 if name in ("log", "asech", "loggamma") else x
    found = pg.jit(from_sympy(function(inner), [x, y]))(0.7, 1.3)
    np.testing.assert_allclose(found, exact(function(inner)), rtol=1e-12)


@pytest.mark.parametrize("name", ["acsc", "asec", "acosh", "acoth"])
def test_functions_of_a_number_above_one(name):
    expr = getattr(sympy, name)(y)
    np.testing.assert_allclose(from_sympy(expr, [y])(1.3), exact(expr), rtol=1e-12)


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_numbers(name):
    expr = OF_TWO[name]
    found = from_sympy(expr, [x, y, z])(*VALUES.values())
    np.testing.assert_allclose(found, exact(expr), rtol=1e-12)


def random_expression(rng, depth):
    """An expression of smooth functions, with shared parts."""
    parts = [x, y, z, sympy.Rational(rng.randint(1, 9), 7)]
    for _ in range(depth):
        a, b = rng.choice(parts), rng.choice(parts)
        made = rng.choice(
            [
                a + b,
                a * b,
                a - 2 * b,
                a / (2 + b**2),
                sympy.sin(a),
                sympy.exp(-(a**2)),
                sympy.sqrt(1 + a**2),
                sympy.tanh(a) * b,
                sympy.atan2(a, 2 + b**2),
                sympy.erf(a),
                sympy.log(2 + sympy.cos(a)),
                sympy.Piecewise((a, b > sympy.Rational(1, 2)), (sympy.cos(b), True)),
                (1 + a**2) ** sympy.Rational(-3, 2),
            ]
        )
        parts.append(made)
    return parts[-1] + parts[-2]


@pytest.mark.parametrize("seed", range(25))
def test_random_expressions_and_their_gradients(seed):
    check(random_expression(random.Random(seed), 8))


def test_a_piecewise_expression_has_no_nan_of_other_pieces():
    bump = from_sympy(sympy.Piecewise((sympy.sin(x) / x, x > 0), (1, True)), [x])
    assert bump(0.0) == 1.0
    assert pg.grad(bump)(0.0) == 0.0
    root = from_sympy(sympy.Piecewise((sympy.sqrt(x), x > 0), (0, x < -1)), [x])
    assert np.isnan(root(-0.5))
    assert root(-2.0) == 0.0


def test_numbers_are_the_nearest_doubles():
    third, large = sympy.Rational(10**40 + 1, 3 * 10**40), sympy.Integer(2) ** 60 + 1
    digits = sympy.Float("0.1", 50)
    found = from_sympy([third, large, digits, sympy.pi / 3, sympy.oo, 2, 0.5], [x])(1.0)
    exactly = [float(sympy.N(sympy.pi / 3, 40)), np.inf, 2.0, 0.5]
    assert [float(value) for value in found] == [1 / 3, float(2**60), 0.1, *exactly]


def test_sums_and_products():
    found = from_sympy(sympy.Sum(x**k / k, (k, 1, n)), [x, n])
    expected = sum(0.5**i / i for i in range(1, 21))
    np.testing.assert_allclose(found(0.5, 20), expected, rtol=1e-14)
    np.testing.assert_allclose(pg.grad(found)(0.5, 20), sum(0.5**i for i in range(20)), rtol=1e-14)
    double = sympy.Sum(x * k + n, (k, 1, n), (n, 1, 3))
    assert from_sympy(double, [x])(2.0) == float(double.doit().subs(x, 2))
    assert from_sympy(sympy.Product(1 + x / k, (k, 1, 5)), [x])(0.5) == 2.70703125
    # SymPy's sums run backwards where the upper limit is below the lower one.
    back = sympy.Sum(k**2 + x, (k, 6, 2))
    assert from_sympy(back, [x])(1.0) == float(back.doit().subs(x, 1))


def test_arrays_of_any_size():
    data = sympy.IndexedBase("data", shape=(n,))
    mean = from_sympy(sympy.Sum(data[k], (k, 0, n - 1)) / n, [data])
    assert mean(np.array([1.0, 2.0, 6.0])) == 3.0
    assert pg.grad(mean)(np.ones(4)).tolist() == [0.25] * 4
    difference = from_sympy(sympy.Sum((data[k + 1] - data[k]) ** 2, (k, 0, n - 2)), [data])
    assert difference(np.array([1.0, 2.0, 6.0])) == 17.0


def test_matrices():
    a, b = sympy.MatrixSymbol("a", 3, 3), sympy.MatrixSymbol("b", 3, 1)
    block = sympy.BlockMatrix([[a, b]])
    exprs = [
        a.I * b,
        2 * a * a.T + sympy.Identity(3),
        sympy.det(a) * sympy.trace(a),
        a[0, 1],
        a[:2, 1:],
        a**3,
        sympy.Matrix([[x, 1, 0], [0, 2, x]]) * a * sympy.Matrix([1, 2, 3]),
        sympy.hadamard_product(a, a),
        block,
        a.applyfunc(sympy.sin),
        sympy.KroneckerProduct(a, b),
        sympy.ZeroMatrix(3, 3) + sympy.OneMatrix(3, 3) * a,
        sympy.DotProduct(a[:, 0], b),
    ]
    found = from_sympy(exprs, [a, b, x])
    rng = np.random.default_rng(0)
    m, v = rng.standard_normal((3, 3)), rng.standard_normal((3, 1))
    known = np.array([[0.5, 1.0, 0.0], [0.0, 2.0, 0.5]])
    wanted = [
        np.linalg.solve(m, v),
        2 * m @ m.T + np.eye(3),
        np.linalg.det(m) * np.trace(m),
        m[0, 1],
        m[:2, 1:],
        m @ m @ m,
        known @ m @ np.array([[1.0], [2.0], [3.0]]),
        m * m,
        np.hstack([m, v]),
        np.sin(m),
        np.kron(m, v),
        np.ones((3, 3)) @ m,
        m[:, 0] @ v[:, 0],
    ]
    for one, other in zip(found(m, v, 0.5), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_arguments_and_results_are_in_the_containers_that_were_given():
    q = mechanics.dynamicsymbols("q1:3")
    t = mechanics.dynamicsymbols._t
    rates = [angle.diff(t) for angle in q]
    expr = {"energy": rates[0] ** 2 + x, "both": (q[0] * q[1], sympy.Matrix([rates[1], 0]))}
    found = from_sympy(expr, {"angles": q, "rates": sympy.Array(rates), "mass": {"x": x}})
    got = found(angles=[2.0, 3.0], rates=np.array([4.0, 5.0]), mass={"x": 0.5})
    assert got["energy"] == 16.5
    assert got["both"][0] == 6.0
    assert got["both"][1].tolist() == [[5.0], [0.0]]
    positional = from_sympy(q[0] + q[1] + y, [q, [], y])
    assert [value.hint for value in positional.graph.inputs][:2] == ["q.0", "q.1"]
    assert positional([1.0, 2.0], [], 3.0) == 6.0
    assert from_sympy(x**2, x, dtype="float32").graph.output_types == (pg.spec((), "float32"),)
    assert from_sympy(sympy.exp(sympy.I * x), [x], dtype="complex128")(0.0) == 1.0


def test_functions_of_the_user():
    drag = sympy.Function("drag")
    found = from_sympy(drag(x) * 2, [x], functions={"drag": lambda v: v * pg.abs(v)})
    assert found(-3.0) == -18.0
    cubed = implemented_function("cubed", lambda v: v**3)
    assert pg.grad(from_sympy(cubed(x), [x]))(2.0) == 12.0


def test_curves_of_muscles():
    biomechanics = pytest.importorskip("sympy.physics.biomechanics")
    x = sympy.Symbol("x")
    names = [n for n in dir(biomechanics) if n.startswith(("FiberForce", "TendonForce"))]
    curves = [getattr(biomechanics, n).with_defaults(x) for n in names]
    assert len(curves) >= 6
    found = pg.interop.from_sympy(curves, [x])
    for at in (0.4, 1.1):
        expected = [float(c.doit().subs(x, at)) for c in curves]
        slopes = [float(c.doit().diff(x).subs(x, at)) for c in curves]
        np.testing.assert_allclose(found(at), expected, rtol=1e-12)
        np.testing.assert_allclose(pg.jacobian(lambda v: pg.stack(found(v)))(at), slopes, rtol=1e-9)


def test_everything_that_is_lacking_is_listed():
    gamma, f = sympy.Function("gamma"), sympy.Function("f")
    expr = sympy.Integral(f(x), x) + gamma(x) + sympy.Sum(x**k, (k, 0, sympy.oo)) + y
    with pytest.raises(pg.UnsupportedError) as raised:
        from_sympy(expr + sympy.Derivative(f(x), x), [x])
    said = str(raised.value)
    for part in (
        "Integral (once, at Integral(f(x), x))",
        "gamma (once",
        "Sum (once",
        "f (",
        "Deri",
    ):
        assert part in said
    with pytest.raises(pg.ArgumentError, match=r"not in args: y, z"):
        from_sympy(x + y * z + sympy.Sum(k * x, (k, 1, 3)), [x])


def test_wrong_arguments():
    for args, said in (
        ([x + 1], r"args has x \+ 1, which is Add"),
        ([x, sympy.Matrix([x, y])], "a symbol is in args twice"),
        ([sympy.IndexedBase("data")], "data of args has no shape"),
        ([sympy.IndexedBase("data", shape=(2 * n,))], "a size is an integer or a symbol"),
    ):
        with pytest.raises(pg.ArgumentError, match=said):
            from_sympy(x, args)


def test_deep_expressions_and_shared_parts():
    deep, shared = x, x
    for _ in range(5000):
        deep = sympy.Add(sympy.sin(deep, evaluate=False), y, evaluate=False)
    assert len(from_sympy(deep, [x, y]).graph.body) == 10000
    for _ in range(200):
        both = sympy.sin(shared, evaluate=False), sympy.cos(shared, evaluate=False)
        shared = sympy.Mul(*both, evaluate=False)
    assert len(from_sympy(shared, [x]).graph.body) == 600


def pendulum(links):
    """Kane's equations of a chain of particles on a cart, M u' = F: M, F, coordinates, speeds."""
    q, u = mechanics.dynamicsymbols(f"q:{links + 1}"), mechanics.dynamicsymbols(f"u:{links + 1}")
    gravity, t = sympy.symbols("g t")
    frame, point = mechanics.ReferenceFrame("I"), mechanics.Point("P")
    origin = mechanics.Point("O")
    origin.set_vel(frame, 0)
    point.set_pos(origin, q[0] * frame.x)
    point.set_vel(frame, u[0] * frame.x)
    bodies = [mechanics.Particle("cart", point, 2)]
    loads = [(point, -2 * gravity * frame.y)]
    for i in range(links):
        turned = frame.orientnew(f"B{i}", "Axis", [q[i + 1], frame.z])
        turned.set_ang_vel(frame, u[i + 1] * frame.z)
        tip = point.locatenew(f"P{i}", turned.x)
        tip.v2pt_theory(point, frame, turned)
        point = tip
        bodies.append(mechanics.Particle(f"mass{i}", point, 1))
        loads.append((point, -gravity * frame.y))
    rates = [angle.diff(t) - speed for angle, speed in zip(q, u, strict=True)]
    kane = mechanics.KanesMethod(frame, q_ind=q, u_ind=u, kd_eqs=rates)
    kane.kanes_equations(bodies, loads)
    return kane.mass_matrix, kane.forcing, q, u, gravity


def test_equations_of_motion_and_their_sparse_jacobian():
    mass, forcing, q, u, gravity = pendulum(2)
    rates = sympy.symbols("r:3")
    residual = sympy.Array(list(mass * sympy.Matrix(rates) - forcing))
    state = [*q, *u, *rates]
    found = from_sympy(residual, [sympy.Array(state), gravity])
    lambdified = sympy.lambdify([state, gravity], list(residual))
    by_sympy = sympy.lambdify([state, gravity], sympy.Matrix(list(residual)).jacobian(state))
    at = np.linspace(0.1, 0.9, len(state))
    np.testing.assert_allclose(found(at, 9.81), lambdified(at, 9.81), rtol=1e-13)
    matrix = pg.sparse_jacobian(found)(at, 9.81)
    np.testing.assert_allclose(matrix.to_dense(), by_sympy(at, 9.81), rtol=1e-12, atol=1e-14)
    assert matrix.data.size < 3 * len(state)


def test_a_graph_needs_no_sympy(tmp_path):
    found = from_sympy(sympy.sin(x) * y, [x, y], name="wave")
    (tmp_path / "wave.pickle").write_bytes(pickle.dumps(found))
    pg.compile(found.graph).save(tmp_path / "wave.py")
    assert "import sympy" not in (tmp_path / "wave.py").read_text()
    program = (
        "import pickle, sys, pathlib\n"
        "wave = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "assert round(float(wave(0.5, 2.0)), 12) == 0.958851077208\n"
        "assert 'sympy' not in sys.modules\n"
    )
    file = str(tmp_path / "wave.pickle")
    subprocess.run([sys.executable, "-c", program, file], check=True)
