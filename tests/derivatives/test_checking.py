"""check_grads passes on right rules and names what is wrong in wrong ones."""

import itertools
from importlib import import_module
from pkgutil import walk_packages

import numpy as np
import pytest

import primgraph as pg
from primgraph import primitives
from primgraph.codegen.ops.table import CARDS
from primgraph.inspect.complex_step import STEP, evaluate, is_known, knows
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Primitive, registered
from primgraph.operators.variable import emit
from primgraph.primitives import elementwise as table
from primgraph.primitives.elementwise import elementwise
from primgraph.transforms import lower

rng = np.random.default_rng(41)

PACKAGE = walk_packages(primitives.__path__, f"{primitives.__name__}.")
MODULES = [import_module(module.name) for module in PACKAGE]

numbers = itertools.count()

# A registry of its own, so that no other test meets what is registered here.
REGISTRY = dict(registered())


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr("primgraph.ir.facts.ops._registry", REGISTRY)


def primitive(name, impl, **rules):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("primgraph.ir.facts.ops._registry", REGISTRY)
        return elementwise(f"{name}_{next(numbers)}", impl, **rules)


def throw_away(impl, **rules):
    """A function on variables that applies a primitive of these rules."""
    op = primitive("throw_away", impl, **rules)
    return lambda x: emit(op, x)


sine = throw_away(np.sin, jvp=lambda z, x, d: d * table.cos(x))
wrong_slope = throw_away(np.sin, jvp=lambda z, x, d: 2.0 * d * table.cos(x))
wrong_transpose = throw_away(np.negative, linear=True, transpose=lambda ct, x: (ct,))

# A right slope, itself computed by a primitive with a wrong one.
bent = primitive("throw_away", np.cos, jvp=lambda z, x, d: d * table.sin(x))
wrong_second = throw_away(np.sin, jvp=lambda z, x, d: d * bent(x))


@pg.custom_jvp
def halved(x):
    """A function whose value is constant to differentiation, and whose slope is by a rule."""
    return pg.stop_gradient(0.5 * pg.sin(x))


halved.defjvp(lambda x, dx: (halved(*x), 0.5 * pg.cos(x[0]) * dx[0]))


# Right rules.


RIGHT = {
    "product": (lambda x, w: x @ w, [(2, 3), (3, 2)]),
    "network": (lambda x, w: pg.tanh(pg.tanh(x @ w) @ w.T), [(2, 3), (3, 2)]),
    "softmax": (lambda x: pg.softmax(x) ** 2, [(2, 3)]),
    "norm": (lambda x: (pg.norm(x), pg.layer_norm(x)), [(2, 3)]),
    "pieces": (lambda x: pg.where(x > 0.5, x**3, pg.exp(x)) * pg.max(x), [(5,)]),
    "moves": (lambda x: pg.concatenate([x[::-1], pg.cumsum(x) * x])[[0, 2, 2]], [(4,)]),
    "scalar": (lambda x: pg.sin(x) / x, [()]),
    "empty": (lambda x, e: pg.sum(x * x) + pg.sum(e), [(2,), (0,)]),
    "unused": (lambda x, w: x * x, [(2,), (2,)]),
    "constant": (lambda x: pg.floor(x * 10) * x, [(3,)]),
    "throw_away": (lambda x: sine(x * x) * x, [(3,)]),
    "stopped": (lambda x: x * pg.stop_gradient(x * x), [(3,)]),
    "stopped_throw_away": (lambda x: sine(x) * pg.stop_gradient(sine(x)), [(3,)]),
    "stopped_in_a_custom_function": (lambda x: halved(x * x) * pg.stop_gradient(x), [(3,)]),
    "loop": (
        lambda x, w: pg.scan(lambda c, r: (pg.tanh(c * w + r), c), x[0], x),
        [(3, 2), (2,)],
    ),
    "branch": (lambda x: pg.cond(pg.sum(x) > 0, pg.sin, pg.cos, x), [(3,)]),
    "stopped_in_a_loop": (
        lambda x: pg.fori_loop(0, 2, lambda i, v: v * pg.stop_gradient(v), x),
        [(2,)],
    ),
    "special": (lambda x: pg.erf(x) * pg.arctan2(x, x + 1) + pg.logaddexp(x, 2 * x), [(3,)]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_rules_pass(name):
    function, shapes = RIGHT[name]
    arrays = [rng.random(s) + 0.1 for s in shapes]
    pg.check_grads(function, arrays)
    for mode in ("forward", "reverse"):
        pg.check_grads(function, arrays, order=3, modes=[mode])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.long
def test_inputs_from_any_seed_pass(seed):
    # The second derivative of the norm along its argument is zero, but for rounding.
    pg.check_grads(pg.norm, [np.random.default_rng(seed).standard_normal(3)], order=3)


def test_products_that_cancel_are_equal_to_rounding(monkeypatch):
    monkeypatch.setattr("primgraph.inspect.check._SEED", 0)
    pg.check_grads(pg.norm, [np.random.default_rng(0).standard_normal(3)], order=3)


def test_all_dtypes_and_constant_inputs_pass():
    x = rng.random((3, 2)).astype(np.float32)
    index = np.array([0, 2, 2])
    pg.check_grads(lambda a, i: pg.take(pg.tanh(a), i, axis=0) * 3, [x, index])
    pg.check_grads(lambda a: pg.astype(a, "float16") * pg.astype(a, "float64"), [x])
    pg.check_grads(lambda a: pg.sin(a), x)
    pg.check_grads(lambda a: pg.sin(a), 0.5)


def test_graphs_and_programs_can_be_checked():
    x, w = rng.random(3), rng.random((3, 2))
    pg.check_grads(pg.trace(lambda a, b: pg.tanh(a @ b), x, w), [x, w])
    with pg.Program() as program:
        a, b = pg.data("a", (3,)), pg.create_parameter((3, 2))
        y = pg.tanh(a @ b)
        pg.grad(pg.sum(y), a)
    pg.check_grads(program, {"a": x}, order=1)
    with pytest.raises(pg.FeedError, match="missing 'a'"):
        pg.check_grads(program, {})
    with pytest.raises(pg.ArgumentError, match="by name"):
        pg.check_grads(program, [x])


@pytest.mark.parametrize("is_zero", [lambda z: z == 0.0, lambda z: ~pg.astype(z, "bool")])
def test_a_zero_that_moves_in_the_square_of_the_step_only_is_a_zero(is_zero):
    def branches(x):
        z = pg.log_softmax(x)
        return pg.where(is_zero(z), x * x, z)

    pg.check_grads(branches, [np.array([0.10773849])])


def test_derivatives_at_a_kink_agree_with_differences_where_they_are_symmetric():
    pg.check_grads(lambda x: pg.maximum(x, 1.0) + pg.abs(x - 1.0), [np.array([1.0, 2.0])], order=1)
    with pytest.raises(pg.CheckError, match=r"central differences give 0\.5"):
        pg.check_grads(pg.relu, [np.array([0.0, 2.0])], order=1)


# Wrong rules.


def test_wrong_slopes_within_bodies_are_found_by_a_complex_step():
    for loop in (
        lambda x: pg.fori_loop(0, 2, lambda i, v: wrong_slope(v), x),
        lambda x: pg.cond(pg.sum(x) > 0, wrong_slope, pg.cos, x),
    ):
        with pytest.raises(pg.CheckError):
            pg.check_grads(loop, [rng.random(2) + 0.1])
    narrow = rng.random((3, 2)).astype("f4")
    pg.check_grads(lambda x: pg.scan(lambda c, r: (c * r, pg.sin(c)), x[0], x), [narrow], order=2)
    graph = lower(pg.trace(lambda x: pg.map(pg.floor, x), rng.random(3)))
    assert knows(graph)
    assert not evaluate(graph, [np.array([0.5, 1.0, 0.5])], [np.ones(3)])[1]


def test_a_wrong_slope_is_found():
    at = np.array([[0.0, 0.25], [0.5, 0.75]])
    expected = r"order 1: the derivative of output 0 at \(0, 0\) by input 0 'x' at \(0, 0\) is 2.0 "
    with pytest.raises(pg.CheckError, match=expected + "in forward mode, but central differences"):
        pg.check_grads(lambda x: wrong_slope(x), [at])
    with pytest.raises(AssertionError, match=r"by input 0 'x' at \(0, 0\) is .* in reverse mode"):
        pg.check_grads(lambda x: wrong_slope(x), [at], modes=["reverse"])


def test_the_first_wrong_input_and_element_are_named():
    def function(x, w):
        return pg.sum(x * x), pg.concatenate([w[:1], wrong_slope(w[1:] * w[1:])])

    expected = r"derivative of output 1 at \(1,\) by input 1 'w' at \(1,\) is "
    with pytest.raises(pg.CheckError, match=expected) as error:
        pg.check_grads(function, [rng.random(3), np.array([1.0, 0.5])])
    numbers = [float(n) for n in error.value.message.split("is ")[1].split()
               if n[0].isdigit()]  # fmt: skip
    np.testing.assert_allclose(numbers, [2 * np.cos(0.25), np.cos(0.25)], rtol=1e-9)
    with pytest.raises(pg.CheckError, match=r"by input 1 'w' at \(1,\) is .* in reverse mode"):
        pg.check_grads(function, [rng.random(3), np.array([1.0, 0.5])], modes=("reverse",))


def test_a_wrong_transpose_is_found():
    with pytest.raises(pg.CheckError, match=r"order 1: the derivative by input 0 .* in reverse"):
        pg.check_grads(lambda x: wrong_transpose(x * x), [rng.random(3)])
    pg.check_grads(lambda x: wrong_transpose(x * x), [rng.random(3)], order=3, modes=["forward"])


def test_modes_that_are_not_transposes_of_each_other_are_found():
    """Off by less than differences tell, but far more than rounding."""
    almost = throw_away(np.negative, linear=True, transpose=lambda ct, x: (ct * (-1.0 - 1e-8),))
    with pytest.raises(pg.CheckError, match="not each other's transposes: <u, J v> is"):
        pg.check_grads(lambda x: almost(x * x), [rng.random(3)])


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_wrong_second_derivative_is_found(mode):
    at = [rng.random(3) + 0.5]
    pg.check_grads(lambda x: wrong_second(x), at, order=1)
    expected = f"order 2 of the {mode} derivative: the derivative .* in {mode} mode"
    with pytest.raises(pg.CheckError, match=expected):
        pg.check_grads(lambda x: wrong_second(x), at, modes=[mode])
    with pytest.raises(pg.CheckError, match="order 2"):
        pg.check_grads(lambda x: wrong_second(x), at)


def test_a_missing_rule_is_told():
    bare = throw_away(np.sin)
    with pytest.raises(pg.MissingRuleError, match="no jvp rule"):
        pg.check_grads(lambda x: bare(x), [rng.random(3)])


# Arguments, and what the complex step knows.


def test_wrong_arguments_are_refused():
    at = [rng.random(3)]
    for modes in ((), ("backward",), "forward", ("forward", 1)):
        with pytest.raises(pg.OptionError, match="modes"):
            pg.check_grads(pg.sin, at, modes=modes)
    with pytest.raises(ValueError, match="at least 1"):
        pg.check_grads(pg.sin, at, order=0)
    with pytest.raises(TypeError, match="takes a function, graph or program"):
        pg.check_grads(1, at)
    with pytest.raises(pg.ArgumentError, match="float inputs and outputs"):
        pg.check_grads(pg.argmax, at)
    with pytest.raises(pg.ArgumentError, match="float inputs and outputs"):
        pg.check_grads(lambda x: pg.astype(x, float), [np.arange(3)])
    with pytest.raises(pg.FeedError, match="takes 1 arrays, 2 given"):
        pg.check_grads(pg.trace(pg.sin, at[0]), at * 2)


def test_the_complex_step_knows_primitives_of_the_package_only():
    own = {op for m in MODULES for op in vars(m).values() if isinstance(op, Primitive)}
    assert own >= {op for op in CARDS if is_known(op)}


@pytest.mark.parametrize("name", ["cholesky_tangent", "cholesky_slope"])
def test_the_complex_step_turns_derivatives_of_cholesky_factors_without_conjugates(name):
    graph = pg.parse(f"""
        graph f(%l: f64[3,3], %d: f64[3,3]) {{
          %0: f64[3,3] = {name}(%l, %d)
          return %0
        }}""")
    assert knows(graph)
    factor, d, *along = np.random.default_rng(5).normal(size=(4, 3, 3))
    x = [np.tril(factor) + 3 * np.eye(3), d + d.T]
    found = evaluate(graph, x, along)[0][graph.outputs[0]]
    moved = [[x[i] + h * along[i] for i in range(2)] for h in (1e-6, -1e-6)]
    more, less = (interpret(graph, *arrays)[0] for arrays in moved)
    np.testing.assert_allclose(found.imag / STEP, (more - less) / 2e-6, rtol=1e-7)
    np.testing.assert_allclose(found.real, interpret(graph, *x)[0], rtol=1e-12)


def test_a_quotient_has_the_real_part_of_real_numbers_under_the_complex_step():
    """A number divided by itself is 1, which complex division misses in the last bit."""
    graph = lower(pg.trace(lambda x: x / x, pg.spec(1000)))
    x = np.random.default_rng(0).normal(size=1000)
    known, smooth = evaluate(graph, [x], [np.ones(1000)])
    found = known[graph.outputs[0]]
    assert smooth
    assert np.all(found.real == 1.0)
    np.testing.assert_allclose(found.imag, 0.0, atol=1e-215)


def test_functions_of_tensors_are_checked_as_they_were_recorded():
    own = np.random.default_rng(7)
    x = pg.tensor(own.standard_normal(3))
    w = pg.tensor(own.standard_normal((3, 3)), requires_grad=True)

    def iterated(p):
        x = p["x"]
        while pg.sum(x * x) < 5.0:
            x = 1.5 * x + pg.sin(w @ x)
        return {"last": x, "slope": pg.grad(lambda a: pg.sum(a**3 * x))(x)}

    pg.check_grads(iterated, [{"x": x}], order=1)


def test_a_wrong_slope_of_a_function_of_tensors_is_found():
    @pg.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, ct: (3.0 * x * ct,))
    with pytest.raises(pg.CheckError, match=r"by input 1 'q\[0\]' at \(2,\)"):
        pg.check_grads(
            lambda p, q: pg.sum(p) + square(q[0]),
            [pg.tensor(np.ones(3)), [pg.tensor(np.array([0.0, 0.0, 1.0]))]],
            order=1,
        )
