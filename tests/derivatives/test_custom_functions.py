"""Functions with rules of their own: in programs, traced functions and tensors, at any order."""

import subprocess
import sys
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

import primgraph as pg
from primgraph.custom.function import Context
from primgraph.transforms import batch, lower

rng = np.random.default_rng(5)


# Functions, as they are declared, and the same without rules.


@pg.custom_jvp
def by_jvp(x):
    return pg.exp(x) * x


@by_jvp.defjvp
def by_jvp_rule(primals, tangents):
    (x,), (dx,) = primals, tangents
    return by_jvp(x), (by_jvp(x) + pg.exp(x)) * dx


@pg.custom_vjp
def by_vjp(x):
    return pg.exp(x) * x


by_vjp.defvjp(
    lambda x: (by_vjp(x), (x, pg.exp(x))),
    lambda kept, ct: (ct * kept[1] * (kept[0] + 1.0),),
)


@pg.custom_gradient
def by_gradient(x):
    y = pg.exp(x)
    return y * x, lambda ct: ct * (y * x + y)


class ByFunction(pg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, result := pg.exp(x) * x)
        return result

    @staticmethod
    def backward(ctx, ct):
        x, result = ctx.saved_tensors
        return ct * (result + pg.exp(x))


class ByBoth(ByFunction):
    @staticmethod
    def jvp(ctx, dx):
        x, result = ctx.saved_tensors
        return dx * (result + pg.exp(x))


@pg.custom_jvp
def product_by_jvp(x, w):
    return x @ w, (x**2).sum()


@product_by_jvp.defjvp
def product_rule(primals, tangents):
    (x, w), (dx, dw) = primals, tangents
    return product_by_jvp(x, w), (dx @ w + x @ dw, (2.0 * x * dx).sum())


@pg.custom_vjp
def product_by_vjp(x, w):
    return x @ w, (x**2).sum()


product_by_vjp.defvjp(
    lambda x, w: (product_by_vjp(x, w), (x, w)),
    lambda kept, cts: (cts[0] @ kept[1].T + cts[1] * 2.0 * kept[0], kept[0].T @ cts[0]),
)


class Product(pg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w, (x**2).sum()

    @staticmethod
    def backward(ctx, first, second):
        x, w = ctx.saved_tensors
        return first @ w.T + second * 2.0 * x, x.T @ first


def plain(x):
    return pg.exp(x) * x


def plain_product(x, w):
    return x @ w, (x**2).sum()


ONE = {
    "custom_jvp": by_jvp,
    "custom_vjp": by_vjp,
    "custom_gradient": by_gradient,
    "Function": ByFunction.apply,
    "Function with both": ByBoth.apply,
}
TWO = {"custom_jvp": product_by_jvp, "custom_vjp": product_by_vjp, "Function": Product.apply}
WEIGHTS = rng.normal(size=(2, 2))


def of_one(function):
    """A scalar of a matrix, which goes through the function twice."""
    return lambda x: (pg.sin(function(x)) * function(x * 0.5)).sum()


def of_two(function):
    def scalar(x):
        y, size = function(pg.tanh(x), WEIGHTS + x)
        return (y * y).sum() * size

    return scalar


PAIRS = {
    **{f"one by {name}": (of_one(f), of_one(plain)) for name, f in ONE.items()},
    **{f"two by {name}": (of_two(f), of_two(plain_product)) for name, f in TWO.items()},
}
each_pair = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
X = rng.normal(size=(2, 2)) * 0.5
DIRECTIONS = [rng.normal(size=(2, 2)) for _ in range(3)]


def reverse(y, x, direction):
    return (pg.grad(y, x) * direction).sum()


def forward(y, x, direction):
    return pg.forward_grad(y, x, direction)


def derivative(function, modes):
    """The derivative along fixed directions, one for each mode."""

    def along(x):
        return reduce(
            lambda y, both: both[0](y, x, both[1]),
            zip(modes, DIRECTIONS, strict=False),
            function(x),
        )

    return along


MODES = [
    (reverse,),
    (forward,),
    (reverse, reverse),
    (forward, forward),
    (reverse, forward),
    (forward, reverse),
    (reverse, reverse, reverse),
    (forward, reverse, forward),
    (reverse, forward, forward),
]
# The pairs whose derivatives of third order are taken each time: one for each kind of rule.
THIRD = {"one by custom_jvp", "two by custom_vjp", "one by Function with both"}


def in_all_modes():
    """All pairs in all modes."""
    cases = []
    for name, pair in PAIRS.items():
        for modes in MODES:
            words = " over ".join(m.__name__ for m in reversed(modes))
            marks = [pytest.mark.dense] * (len(modes) > 2 and name not in THIRD)
            cases.append(pytest.param(pair, modes, id=f"{name}, {words}", marks=marks))
    return cases


def run(function, *arrays):
    return pg.compile(pg.trace(function, *arrays))(*arrays)


# Programs and traced functions.


@pytest.mark.parametrize(("pair", "modes"), in_all_modes())
def test_derivatives_in_traced_functions(pair, modes):
    found, expected = (run(derivative(f, modes), X) for f in pair)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@each_pair
def test_values_are_those_of_the_function_bit_by_bit(pair):
    found, expected = (run(f, X) for f in pair)
    assert found == expected


@each_pair
def test_derivatives_in_programs(pair):
    results = []
    for function in pair:
        with pg.Program() as program:
            x = pg.data("x", (2, 2))
            y = function(x)
            first = pg.grad(y, x)
            second = pg.grad(first, x, DIRECTIONS[0])
            hessian = pg.hessian(function, x)
        results.append(pg.Executor().run(program, {"x": X}, [y, first, second, hessian]))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@each_pair
def test_it_is_differentiated_for_many_seeds_at_once(pair):
    seeds = rng.normal(size=(3, 2, 2))

    def derived(function):
        def rows(x):
            first = pg.grad(function(x), x)
            return pg.grad(first, x, seeds, is_grads_batched=True)

        return run(rows, X)

    found, expected = map(derived, pair)
    assert found.shape == (3, 2, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("axes", [(0,), (None, 0), (0, None), (0, 0)])
@pytest.mark.parametrize("name", TWO)
def test_samples_of_a_batch_are_what_they_are_alone(name, axes):
    """Also where an operand is the same for all samples."""
    function = TWO[name] if len(axes) == 2 else lambda x: TWO[name](x, WEIGHTS)
    size, arrays, types = 3, [], []
    for axis in axes:
        arrays.append(rng.normal(size=(2, 2) if axis is None else (size, 2, 2)))
        types.append(pg.spec((2, 2)))
    graph = lower(pg.trace(function, *types))
    many = batch(graph, size, axes)

    def derived(one):
        def all_of(*inputs):
            y, total = call(one, inputs)
            return pg.grad((y**2).sum() + (total**3).sum(), list(inputs))

        return all_of

    def call(inner, inputs):
        recorder = inputs[0].recorder
        values = recorder.inline(inner, [v.value for v in inputs])
        return [type(inputs[0])(recorder, v) for v in values]

    found = run(derived(many), *arrays)
    expected = [np.zeros(a.shape) for a in arrays]
    for i in range(size):
        parts = [a if axis is None else a[i] for a, axis in zip(arrays, axes, strict=True)]
        for k, part in enumerate(run(derived(graph), *parts)):
            if axes[k] is None:
                expected[k] += part
            else:
                expected[k][i] = part
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)
    forward_found = run(lambda *xs: pg.forward_grad(call(many, xs)[0], list(xs)), *arrays)
    assert forward_found.shape == (3, 2, 2)


@each_pair
def test_jacobians_by_both_modes(pair):
    def rows(function):
        return run(lambda x: pg.jacobian(pg.grad(function(x), x), x), X)

    np.testing.assert_allclose(rows(pair[0]), rows(pair[1]), rtol=1e-10)


@pytest.mark.parametrize("name", ONE)
def test_all_modes_agree_with_differences(name):
    pg.check_grads(ONE[name], [X], order=2)


@pytest.mark.parametrize("name", TWO)
def test_all_modes_agree_with_differences_for_several_arrays(name):
    pg.check_grads(TWO[name], [X, WEIGHTS], order=2)


def test_each_mode_takes_the_rule_that_is_given_for_it():
    @pg.custom_vjp
    def twice(x):
        return 2.0 * x

    twice.defjvp(lambda primals, tangents: (twice(*primals), 3.0 * tangents[0]))
    twice.defvjp(lambda x: (twice(x), None), lambda kept, ct: (5.0 * ct,))
    assert run(lambda x: pg.forward_grad(twice(x), x), np.ones(())) == 3.0
    assert run(lambda x: pg.grad(twice(x), x), np.ones(())) == 5.0
    x = pg.tensor(1.0, requires_grad=True)
    twice(x).backward()
    assert x.grad.item() == 5.0


def test_a_rule_may_be_no_derivative():
    @pg.custom_vjp(nondiff_argnums=(1,))
    def clipped(x, limit):
        return x

    clipped.defvjp(
        lambda x, limit: (x, None), lambda limit, kept, ct: (pg.clip(ct, -limit, limit),)
    )
    at = np.array([1.0, -4.0])
    np.testing.assert_array_equal(
        run(lambda x: pg.grad((clipped(x, 3.0) ** 2).sum(), x), at), [2.0, -3.0]
    )
    with pytest.raises(pg.MissingRuleError, match=r"forward mode of clipped.*not linear") as error:
        pg.trace(lambda x: pg.forward_grad(clipped(x, 3.0), x), at)
    assert "test_custom_functions.py" in str(error.value)
    x = pg.tensor(at, requires_grad=True)
    (clipped(x, 3.0) ** 2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, -3.0])


def test_matrices_of_what_has_no_forward_mode_are_had_by_rows():
    clipped = pg.custom_vjp(lambda x: 2.0 * x)
    clipped.defvjp(lambda x: (2.0 * x, None), lambda kept, ct: (pg.clip(2.0 * ct, -1.0, 1.0),))
    at = np.array([1.0, 2.0])
    tall = run(lambda x: pg.jacobian(pg.concatenate([clipped(x), clipped(x)]), x), at)
    np.testing.assert_array_equal(tall, np.vstack([np.eye(2)] * 2))
    np.testing.assert_array_equal(
        run(lambda x: pg.hessian(lambda v: 0.1 * (clipped(v) ** 2).sum(), x), at * 0.1),
        np.eye(2) * 0.8,
    )
    pg.check_grads(lambda x: clipped(x) * 0.0 + by_vjp(x), [at], modes=("reverse",))


def test_what_is_not_chosen_puts_no_nan_into_derivatives():
    """Where the rules are elementwise, guards pass a custom function as they pass a logarithm."""
    logarithm = pg.custom_vjp(lambda x: pg.log(x))
    logarithm.defvjp(lambda x: (pg.log(x), x), lambda x, ct: (ct / x,))

    def guarded(x):
        return pg.where(x > 0.0, logarithm(x), 0.0).sum()

    at = np.array([0.0, 2.0])
    np.testing.assert_array_equal(run(lambda x: pg.grad(guarded(x), x), at), [0.0, 0.5])
    hessian = run(lambda x: pg.hessian(guarded, x), at)
    np.testing.assert_array_equal(hessian, np.diag([0.0, -0.25]))


def test_samples_stay_apart_where_rules_keep_them_apart():
    @pg.custom_gradient
    def rows(x):
        y = x * x.sum(axis=1, keepdims=True)

        def gradient(ct):
            return ct * x.sum(axis=1, keepdims=True) + (ct * x).sum(axis=1, keepdims=True)

        return y, gradient

    @pg.custom_gradient
    def columns(x):
        return x * x.sum(axis=0), lambda ct: ct * x.sum(axis=0) + (ct * x).sum(axis=0)

    found = run(lambda x: pg.batched_jacobian(rows(by_jvp(x)), x), X)
    expected = run(lambda x: pg.jacobian(rows(by_jvp(x)), x), X)
    for i in range(2):
        np.testing.assert_allclose(found[i], expected[i, :, i], rtol=1e-12)
    for mixed in (columns, lambda x: product_by_vjp(x, WEIGHTS)[1] * x):
        with pytest.raises(pg.MixedSamplesError):
            pg.trace(lambda x, f=mixed: pg.batched_jacobian(f(x), x), X)
    apart = run(lambda x: pg.batched_jacobian(product_by_jvp(x, WEIGHTS)[0], x, check=False), X)
    assert apart.shape == (2, 2, 2)


def test_what_is_not_given_contributes_nothing():
    """None stands for a cotangent, or a tangent, of zero."""

    @pg.custom_vjp
    def first(x, y):
        return x * y

    first.defvjp(lambda x, y: (x * y, y), lambda y, ct: (ct * y, None))

    def slopes(x, y):
        return pg.grad(first(x, y), [x, y])

    assert run(slopes, np.array(3.0), np.array(5.0)) == [5.0, 0.0]
    assert run(lambda x, y: pg.forward_grad(first(x, y), y), np.array(3.0), np.array(5.0)) == 0.0


def test_tangents_of_each_argument_are_added():
    @pg.custom_jvp
    def scaled(x, y, z):
        return x * y

    scaled.defjvps(lambda d, value, x, y, z: d * y, lambda d, value, x, y, z: d * x, None)
    found = run(
        lambda x, y, z: pg.grad(scaled(x, y, z), [x, y, z]), *map(np.array, (2.0, 3.0, 4.0))
    )
    assert found == [3.0, 2.0, 0.0]


def test_integers_and_booleans_go_in_and_out():
    @pg.custom_vjp
    def picked(x, index):
        return x[index], index + 1

    def backward(kept, cts):
        ct, none = cts
        assert none is None
        return ct * (pg.arange(3) == kept), None

    picked.defvjp(lambda x, index: (picked(x, index), index), backward)

    def slope(x, index):
        value, following = picked(x, index)
        return pg.grad(value, x), following

    found, following = run(slope, np.array([1.0, 2.0, 3.0]), np.array(1))
    np.testing.assert_array_equal(found, [0.0, 1.0, 0.0])
    assert following == 2


def test_results_may_stand_in_containers():
    @pg.custom_vjp
    def parts(x):
        return {"square": x**2, "others": [x, 3.0 * x]}

    parts.defvjp(
        lambda x: (parts(x), x),
        lambda x, ct: (2.0 * x * ct["square"] + ct["others"][0] + 3.0 * ct["others"][1],),
    )

    def slope(x):
        found = parts(x)
        return pg.grad(found["square"] * found["others"][1], x)

    assert run(slope, np.array(2.0)) == pytest.approx(9 * 4.0)
    x = pg.tensor(2.0, requires_grad=True)
    found = parts(x)
    (found["square"] * found["others"][1]).backward()
    assert x.grad.item() == pytest.approx(36.0)


def test_python_numbers_and_objects_are_fixed():
    seen = []

    @pg.custom_vjp
    def power(x, n, mode="plain", axes=(0,)):
        seen.append((n, mode, axes))
        return x**n

    power.defvjp(
        lambda x, n, mode, axes: (x**n, x),
        lambda x, ct: (ct * 4.0 * x**3, None, None, None),
    )
    slope = run(lambda x: pg.grad(power(x, 4, axes=[0, 1]), x), np.array(2.0))
    assert slope == 32.0
    assert seen == [(4, "plain", [0, 1])]


def test_functions_are_fixed_arguments_as_well():
    @pg.custom_jvp(nondiff_argnums=(0,))
    def applied(function, x):
        return function(x)

    applied.defjvp(lambda f, primals, tangents: (f(*primals), 10.0 * f(tangents[0])))
    assert run(lambda x: pg.grad(applied(lambda v: 3.0 * v, x), x), np.array(1.0)) == 30.0
    assert run(lambda x: pg.grad(applied(lambda v: 4.0 * v, x), x), np.array(1.0)) == 40.0


SCALE = [1.0]


@pg.custom_vjp
def reversed_gradient(x):
    return x


reversed_gradient.defvjp(lambda x: (x, None), lambda kept, ct: (-SCALE[0] * ct,))


@pytest.mark.parametrize("world", ["trace", "tensors"])
def test_what_a_rule_finds_elsewhere_is_what_is_there_now(world):
    for scale in (1.0, 3.0):
        SCALE[0] = scale
        if world == "trace":
            found = run(lambda x: pg.grad(reversed_gradient(x) ** 2, x), np.array(1.0))
        else:
            x = pg.tensor(1.0, requires_grad=True)
            (reversed_gradient(x) ** 2).backward()
            found = x.grad.item()
        assert found == -2.0 * scale


def test_a_custom_function_may_be_a_method():
    class Model:
        scale = 3.0

        @pg.custom_gradient
        def called(self, x):
            return self.scale * x, lambda ct: (None, 7.0 * ct)

    model = Model()
    assert run(lambda x: pg.grad(model.called(x), x), np.array(1.0)) == 7.0


def test_custom_functions_call_each_other():
    @pg.custom_gradient
    def outer(x):
        y = by_vjp(x)
        return by_jvp(y), lambda ct: ct * ByFunction.apply(y)

    def other(x):
        return plain(plain(x))

    found = run(lambda x: outer(x).sum(), X)
    np.testing.assert_allclose(found, run(lambda x: other(x).sum(), X))
    slope = run(lambda x: pg.grad(pg.grad(outer(x), x), x), X)
    expected = run(lambda x: pg.grad(plain(plain(x)), x), X)
    np.testing.assert_allclose(slope, expected, rtol=1e-12)


def test_time_is_linear_in_the_number_of_calls():
    def sizes(count):
        def chain(x):
            for _ in range(count):
                x = ByFunction.apply(x * 0.01)
            return x

        graph = pg.trace(lambda x: pg.grad(chain(x), x), pg.spec(()))
        return len(lower(graph).body)

    small, large = sizes(20), sizes(80)
    assert large < 4.5 * small


# Text, files, kernels, training.


@each_pair
def test_text_has_the_rules_by_their_names(pair):
    graph = pg.trace(pair[0], X)
    again = pg.parse(str(graph), graph.constants)
    assert again == graph
    results = []
    for one in (graph, again):

        def slope(x, one=one):
            (value,) = x.recorder.inline(one, [x.value])
            return pg.grad(type(x)(x.recorder, value), x)

        results.append(run(slope, X))
    np.testing.assert_array_equal(*results)


@each_pair
def test_a_saved_program_has_derivatives_where_the_rules_are_declared(pair, tmp_path):
    with pg.Program() as program:
        x = pg.data("x", (2, 2))
        y = pair[0](x)
        y.name = "y"
    pg.save(program, tmp_path / "program")
    again = pg.load(tmp_path / "program")
    with pg.program_guard(again):
        slope = pg.grad(again.variable("y"), again.variable("x"))
    (found,) = pg.Executor().run(again, {"x": X}, [slope])
    np.testing.assert_allclose(found, run(lambda x: pg.grad(pair[1](x), x), X), rtol=1e-10)


_READER = """
import sys
import numpy as np
import primgraph as pg
program = pg.load(sys.argv[1])
print(pg.Executor().run(program, {"x": np.zeros(2)}, ["y"])[0])
try:
    with pg.program_guard(program):
        pg.grad(program.variable("y"), program.variable("x"))
except pg.MissingRuleError as error:
    print(error.message)
"""


def test_a_saved_program_runs_where_nobody_has_the_rules(tmp_path):
    with pg.Program() as program:
        by_vjp(pg.data("x", (2,))).name = "y"
    pg.save(program, tmp_path / "program")
    found = subprocess.run(
        [sys.executable, "-c", _READER, str(tmp_path / "program")],
        capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert "[0. 0.]" in found.stdout
    assert "test_custom_functions.by_vjp" in found.stdout


@each_pair
def test_kernels_are_plain_source(pair, tmp_path):
    def slope(x):
        return pg.grad(pair[0](x), x)

    kernel = pg.compile(pg.trace(slope, X))
    assert "as_custom" not in kernel.source
    kernel.save(tmp_path / "kernel.py")
    scope = {}
    exec((tmp_path / "kernel.py").read_text(), scope)
    function = scope["slope"]
    np.testing.assert_allclose(function(X), kernel(X), rtol=1e-12)


def test_a_training_step_is_that_of_the_function_without_rules():
    def losses(function):
        with pg.Program() as program:
            x = pg.data("x", (4, 2))
            w = pg.create_parameter((2, 2), initializer=pg.initializers.Assign(WEIGHTS))
            loss = (function(x @ w) ** 2).mean()
            pg.optimizer.SGD(0.05).minimize(loss)
        executor = pg.Executor()
        feed = {"x": np.arange(8.0).reshape(4, 2) / 8}
        return [executor.run(program, feed, [loss])[0] for _ in range(5)]

    expected = losses(plain)
    assert expected[-1] < expected[0]
    for function in ONE.values():
        np.testing.assert_allclose(losses(function), expected, rtol=1e-12)


def test_what_depends_on_no_input_is_computed_once():
    def slope(x):
        fixed = pg.ones((2, 2)) * 0.5
        return pg.grad((by_vjp(fixed) * by_vjp(x)).sum(), x) + by_jvp(fixed)

    kernel = pg.compile(pg.trace(slope, X))
    fixed = np.full((2, 2), 0.5)
    value = np.exp(fixed) * fixed
    expected = value * np.exp(X) * (X + 1.0) + value
    for _ in range(2):
        np.testing.assert_allclose(kernel(X), expected, rtol=1e-12)
    assert kernel.source.count("np.exp(") == 1


# Tensors.


@each_pair
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_tensors(pair, order):
    results = []
    for function in pair:
        x = pg.tensor(X, requires_grad=True)
        y = function(x)
        for direction in DIRECTIONS[:order]:
            (slope,) = pg.autograd.grad(y, x, create_graph=True)
            y = (slope * direction).sum()
        results.append(y.item())
    assert results[0] == pytest.approx(results[1], rel=1e-10)


@each_pair
def test_tensors_for_many_seeds_at_once(pair):
    seeds = pg.tensor(rng.normal(size=(3, 2, 2)))
    results = []
    for function in pair:
        x = pg.tensor(X, requires_grad=True)
        (first,) = pg.autograd.grad(function(x), x, create_graph=True)
        (rows,) = pg.autograd.grad(first, x, seeds, is_grads_batched=True)
        results.append(rows.numpy())
    np.testing.assert_allclose(*results, rtol=1e-10)


@each_pair
def test_other_derivatives_of_tensors(pair):
    """By forward mode and Jacobians, for which rules are traced."""
    results = []
    for function in pair:
        x = pg.tensor(X, requires_grad=True)
        (slope,) = pg.autograd.grad(function(x), x, create_graph=True)
        along = pg.forward_grad(function(x), x, DIRECTIONS[0])
        rows = pg.jacobian(slope, x)
        results.append([along.numpy(), rows.numpy()])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@each_pair
def test_functions_of_functions(pair):
    results = []
    for function in pair:
        slope = pg.grad(function)
        results.append([slope(X), pg.jit(slope)(X), pg.hessian(function)(X)])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@each_pair
def test_a_step_that_was_seen_is_not_compiled_again(pair):
    x = pg.tensor(X, requires_grad=True)
    counts = []
    for _ in range(6):
        x.grad = None
        pair[0](x).backward()
        x.grad.numpy()
        counts.append(len(pg.eager.log))
    assert counts[2:] == counts[2:3] * 4


@each_pair
def test_gradients_are_the_same_whenever_one_looks(pair):
    results = []
    for look in (False, True):
        x = pg.tensor(X, requires_grad=True)
        y = pair[0](x)
        if look:
            y.numpy()
        y.backward()
        results.append(x.grad.numpy())
    np.testing.assert_allclose(*results, rtol=1e-14)


class Sine(pg.Function):
    """By NumPy alone."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return np.sin(scale * x.numpy())

    @staticmethod
    def backward(ctx, ct):
        (x,) = ctx.saved_tensors
        return ct * (ctx.scale * np.cos(ctx.scale * x.numpy())), None


def test_forward_and_backward_may_look_at_numbers():
    x = pg.tensor([0.1, 0.2], requires_grad=True)
    Sine.apply(x, 3.0).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * np.cos(3 * x.numpy()))
    with pytest.raises(pg.PrimgraphError, match="a variable has nothing named 'numpy'"):
        pg.trace(lambda x: Sine.apply(x, 3.0), np.ones(2))


def test_what_looks_at_numbers_is_not_traced():
    x = pg.tensor([0.1, 0.2], requires_grad=True)
    with pytest.raises(pg.MissingRuleError, match="Sine cannot be traced") as error:
        pg.autograd.grad(Sine.apply(x, 3.0), x, pg.ones((2, 2)), is_grads_batched=True)
    assert "one seed at a time" in error.value.hint


def test_control_flow_may_depend_on_numbers():
    @pg.custom_gradient
    def halved(x):
        count = 0
        while x.item() > 1.0:
            x, count = x / 2.0, count + 1
        return x, lambda ct: ct * 0.5**count

    x = pg.tensor(5.0, requires_grad=True)
    halved(x).backward()
    assert x.grad.item() == 0.125


def test_rules_run_whenever_they_are_called():
    calls = []

    class Counted(pg.Function):
        @staticmethod
        def forward(ctx, x):
            calls.append("forward")
            return 2.0 * x

        @staticmethod
        def backward(ctx, ct):
            calls.append("backward")
            return 2.0 * ct

    x = pg.tensor(1.0, requires_grad=True)
    for _ in range(3):
        Counted.apply(x).backward()
    assert calls == ["forward", "backward"] * 3
    with pg.no_grad():
        assert not Counted.apply(x).requires_grad


def test_the_context_knows_which_gradients_are_needed():
    seen = []

    class Asked(pg.Function):
        @staticmethod
        def forward(ctx, x, y, n):
            seen.append(ctx.needs_input_grad)
            return x * y

        @staticmethod
        def backward(ctx, ct):
            return ct, ct, None

    Asked.apply(pg.tensor(1.0, requires_grad=True), pg.tensor(2.0), 3).backward()
    assert seen == [(True, False, False)]


def test_cotangents_of_unused_results():
    seen = []

    class Pair(pg.Function):
        materialize = True

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(Pair.materialize)
            return x * 2.0, x * 3.0

        @staticmethod
        def backward(ctx, first, second):
            seen.append(second if second is None else second.item())
            return first * 2.0

    for Pair.materialize in (True, False):
        x = pg.tensor(1.0, requires_grad=True)
        Pair.apply(x)[0].backward()
        assert x.grad.item() == 2.0
    assert seen == [0.0, None]


@pytest.mark.parametrize("world", ["trace", "tensors"])
def test_a_result_may_be_none(world):
    class Some(pg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0, None, x * 3.0

        @staticmethod
        def backward(ctx, first, none, last):
            assert none is None
            return first * 2.0 + last * 3.0

        @staticmethod
        def jvp(ctx, dx):
            return dx * 2.0, None, dx * 3.0

    def scalar(x):
        first, none, last = Some.apply(x)
        assert none is None
        return first * last

    if world == "tensors":
        x = pg.tensor(1.0, requires_grad=True)
        scalar(x).backward()
        assert x.grad.item() == 12.0
    else:
        assert run(lambda x: pg.grad(scalar(x), x), np.array(1.0)) == 12.0
        assert run(lambda x: pg.forward_grad(scalar(x), x), np.array(1.0)) == 12.0


def test_results_that_are_marked_are_constants():
    class Marked(pg.Function):
        @staticmethod
        def forward(ctx, x):
            index = pg.floor(x)
            ctx.mark_non_differentiable(index)
            return x * 2.0, index

        @staticmethod
        def backward(ctx, ct, other):
            return ct * 2.0

    x = pg.tensor(1.5, requires_grad=True)
    y, index = Marked.apply(x)
    assert y.requires_grad
    assert not index.requires_grad

    def slope(x):
        y, index = Marked.apply(x)
        return pg.grad(y * index, x)

    assert run(slope, np.array(1.5)) == 2.0


def test_the_context_may_be_set_up_apart():
    class Cube(pg.Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, ct):
            (x,) = ctx.saved_tensors
            return ct * 3.0 * x**2

    x = pg.tensor(2.0, requires_grad=True)
    Cube.apply(x).backward()
    assert x.grad.item() == 12.0
    assert run(lambda x: pg.grad(pg.grad(Cube.apply(x), x), x), np.array(2.0)) == 12.0


def test_what_is_kept_is_what_it_was():
    """Operations in place move handles on, and gradients go by the values of then."""

    class Square(pg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, ct):
            (x,) = ctx.saved_tensors
            return 2.0 * x * ct

    x = pg.tensor(3.0, requires_grad=True)
    y = x * 1.0
    z = Square.apply(y)
    y += 100.0
    z.backward()
    assert x.grad.item() == 6.0


def test_hooks_and_retained_gradients_beside_rules():
    x = pg.tensor(X, requires_grad=True)
    seen = []
    middle = by_vjp(x)
    middle.retain_grad()
    middle.register_hook(lambda g: seen.append(g.numpy()) or g * 2.0)
    late = pg.sin(middle)
    late.register_hook(lambda g: g * 3.0)
    (ByFunction.apply(late) + middle).sum().backward()
    value = np.exp(X) * X
    outer = np.exp(np.sin(value)) * (np.sin(value) + 1)
    expected = 3.0 * outer * np.cos(value) + 1.0
    np.testing.assert_allclose(seen[0], expected, rtol=1e-12)
    np.testing.assert_allclose(middle.grad.numpy(), 2.0 * expected, rtol=1e-12)
    inner = np.exp(X) * (X + 1)
    np.testing.assert_allclose(x.grad.numpy(), 2.0 * expected * inner, rtol=1e-12)


def test_many_ways_between_calls():
    """Residual connections around functions with rules: each way counts once."""

    def network(function, x):
        first = function(x)
        second = function(first * 0.5) + first + x
        third = function(second * 0.1) + second * first
        return (third * x).sum()

    results = []
    for function in (ByFunction.apply, plain):
        x = pg.tensor(X, requires_grad=True)
        middle = x * 2.0
        y = network(function, middle)
        results.append([g.numpy() for g in pg.autograd.grad(y, [x, middle])])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_nothing_is_kept_of_steps_that_are_done():
    class Token:
        alive = 0

        def __init__(self):
            Token.alive += 1

        def __del__(self):
            Token.alive -= 1

    class Plain(pg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.token = Token()
            ctx.save_for_backward(x, y := pg.exp(x))
            return y

        @staticmethod
        def backward(ctx, ct):
            return ct * ctx.saved_tensors[1]

    x = pg.tensor(X, requires_grad=True)
    for _ in range(5):
        y = Plain.apply(Plain.apply(x) * 0.1)
        y.sum().backward()
        assert np.all(np.isfinite(x.grad.numpy()))
    del y
    assert Token.alive == 0


def test_every_step_is_looked_at_in_debug_mode():
    x = pg.tensor([-1.0, 1.0], requires_grad=True)
    logarithm = pg.custom_gradient(lambda v: (pg.log(v), lambda ct: ct))
    with pg.eager.debug():
        by_vjp(x).sum().backward()
        with pytest.raises(pg.NumericalError):
            logarithm(x)
    np.testing.assert_allclose(x.grad.numpy(), np.exp(x.numpy()) * (x.numpy() + 1))


def test_a_record_that_is_used_up_is_refused_again():
    x = pg.tensor(X, requires_grad=True)
    y = by_vjp(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(pg.BuildError, match="second time"):
        y.backward()


def test_a_manager_goes_by_the_rules():
    SCALE[0] = 2.0
    x = pg.tensor(X)
    manager = pg.GradManager().attach(x)
    with manager:
        manager.backward((by_vjp(x) + reversed_gradient(x)).sum())
    np.testing.assert_allclose(x.grad.numpy(), np.exp(X) * (X + 1) - 2.0, rtol=1e-12)


def test_tensors_in_a_program_are_constants_of_a_call():
    with pg.Program() as program:
        x = pg.data("x", (2, 2))
        y, _ = product_by_vjp(x, pg.tensor(WEIGHTS))
        slope = pg.grad(y, x)
    (found,) = pg.Executor().run(program, {"x": X}, [slope])
    np.testing.assert_allclose(found, np.ones((2, 2)) @ WEIGHTS.T)


def test_numbers_alone_are_not_differentiated():
    assert by_vjp.__wrapped__ is not None
    assert pg.custom_vjp(lambda x: 2 * x).__name__ == "<lambda>"
    doubled = pg.custom_gradient(lambda x: (2 * x, lambda ct: ct))
    assert doubled(3) == 6


# What is wrong.


def declared(backward):
    @pg.custom_vjp
    def wrong(x):
        return x**3

    wrong.defvjp(lambda x: (x**3, x), backward)
    return wrong


WRONG = {
    "a shape": (lambda x, ct: (ct[:1],), pg.ShapeError, r"f64\[1\], but must be f64\[3\]"),
    "a dtype": (lambda x, ct: (ct.astype("float32"),), pg.DTypeError, r"f32\[3\]"),
    "a number of them": (
        lambda x, ct: (ct, ct),
        pg.ArgumentError,
        "2 cotangents in the place of 1",
    ),
    "no array": (lambda x, ct: ("text",), pg.ArgumentError, "'text', not an array"),
    "its arguments": (lambda x: (x,), pg.ArgumentError, "too many positional"),
}


@pytest.mark.parametrize("world", ["trace", "tensors"])
@pytest.mark.parametrize("name", WRONG)
def test_a_rule_that_gives_something_else_is_named(name, world):
    backward, kind, words = WRONG[name]
    function = declared(backward)

    def differentiate():
        if world == "trace":
            pg.trace(lambda x: pg.grad(function(x), x), np.ones(3))
        else:
            function(pg.tensor(np.ones(3), requires_grad=True)).sum().backward()

    with pytest.raises(kind, match=words) as error:
        differentiate()
    line = backward.__code__.co_firstlineno
    assert f"test_custom_functions.py:{line}" in str(error.value)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda primals, tangents: tangents[0], "a pair"),
        (
            lambda primals, tangents: (primals[0], tangents[0][:1]),
            r"f64\[1\], but must be f64\[3\]",
        ),
        (lambda primals, tangents: (primals[0].sum(), tangents[0]), "the function itself gives"),
        (
            lambda primals, tangents: ([primals[0]], tangents[0]),
            "the value of .*, not an array",
        ),
    ],
)
def test_a_rule_for_tangents_that_gives_something_else_is_named(rule, words):
    function = pg.custom_jvp(lambda x: 2.0 * x)
    function.defjvp(rule)
    with pytest.raises(pg.PrimgraphError, match=words) as error:
        pg.trace(lambda x: pg.grad(function(x), x), np.ones(3))
    assert f"test_custom_functions.py:{rule.__code__.co_firstlineno}" in str(error.value)


def test_a_rule_for_tangents_that_is_not_linear_has_no_transpose():
    function = pg.custom_jvp(lambda x: 2.0 * x)
    function.defjvp(lambda primals, tangents: (2.0 * primals[0], tangents[0] ** 2))
    with pytest.raises(pg.MissingRuleError, match=r"reverse mode of .*tangents is not linear"):
        pg.trace(lambda x: pg.grad(function(x), x), np.ones(3))


def test_a_function_without_rules_is_refused():
    with pytest.raises(pg.MissingRuleError, match=r"no rule") as error:
        pg.custom_vjp(lambda x: x)(pg.tensor(1.0))
    assert "defvjp" in error.value.hint

    class Nothing(pg.Function):
        pass

    with pytest.raises(pg.MissingMethodError, match="no forward"):
        Nothing.apply(pg.tensor(1.0))

    class Half(pg.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    with pytest.raises(pg.MissingMethodError, match="no backward"):
        Half.apply(pg.tensor(1.0))
    with pytest.raises(pg.ArgumentError, match="not called itself"):
        Half()


def test_values_of_the_program_around_have_no_derivative_by_the_rules():
    with pg.Program() as program:
        x, outside = pg.data("x", (3,)), pg.data("outside", (3,))
        y = pg.custom_gradient(lambda v: (v * outside, lambda ct: 7.0 * ct))(x)
        slope = pg.grad(y, x)
        with pytest.raises(pg.NotDifferentiable, match="its rules give no derivative") as error:
            pg.grad(y, outside)
        assert "make it an argument" in error.value.hint
    feed = {"x": [1.0, 2.0, 3.0], "outside": [2.0, 2.0, 5.0]}
    found = pg.Executor().run(program, feed, [y, slope])
    np.testing.assert_array_equal(found[0], [2.0, 4.0, 15.0])
    np.testing.assert_array_equal(found[1], [7.0, 7.0, 7.0])


def test_constants_of_the_program_around_do_not_hinder_derivatives_in_loops():
    """Scalars, so that all operands have one shape, in a loop whose masks look into the rules."""

    def looped(x, function):
        scale = pg.tanh(pg.stop_gradient(x) * 2.0)
        start = pg.where(x > 0, pg.sqrt(function(x, scale)), x)
        return pg.fori_loop(
            0, 3, lambda i, s: pg.where(s > 0, pg.log(function(s, scale)), s), start
        )

    def with_rule(x, scale):
        function = pg.custom_vjp(lambda v: pg.sin(v) * scale)
        function.defvjp(lambda v: (pg.sin(v) * scale, v), lambda v, ct: (ct * pg.cos(v) * scale,))
        return function(x)

    def plain(x, scale):
        return pg.sin(x) * scale

    for taken in (pg.grad, lambda f: lambda x: pg.jvp(f, (x,), (1.0,))[1]):
        found, expected = (
            pg.jit(taken(lambda x, f=f: looped(x, f)))(2.0) for f in (with_rule, plain)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_tensors_that_require_gradients_are_refused_in_a_program():
    weight = pg.tensor(np.ones(3), requires_grad=True)
    with pg.Program():
        x = pg.data("x", (3,))
        with pytest.raises(pg.BuildError, match="comes from outside") as error:
            pg.custom_gradient(lambda v: (v * weight, lambda ct: ct))(x)
        assert "as arguments" in error.value.hint
        layer = pg.nn.Linear(3, 3)
        layer(x)
        with pytest.raises(pg.BuildError, match="comes from outside") as error:
            pg.custom_gradient(lambda v: (layer(v), lambda ct: ct))(x)
        assert "weights of layers" in error.value.hint


def _scaled(scale, wrapped=pg.custom_vjp):
    """The identity, whose cotangent is multiplied by what only its rule finds around it."""

    @wrapped
    def f(v):
        return v * 1.0

    f.defvjp(lambda v: (v * 1.0, None), lambda _, ct: (ct * scale,))
    return f


def test_rules_use_values_of_a_trace_around_them():
    x, w = np.arange(3.0), np.array([2.0, 3.0, 5.0])
    slope = pg.jit(pg.grad(lambda x, w: pg.sum(_scaled(pg.exp(w))(x))))(x, w)
    np.testing.assert_allclose(slope, np.exp(w))
    many = pg.vmap(pg.grad(lambda x, w: pg.sum(_scaled(w)(x))), in_axes=(None, 0))
    rows = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(many(x, rows), rows)
    np.testing.assert_array_equal(pg.jit(many)(x, rows), rows)


def test_rules_use_values_of_the_body_of_a_loop():
    def loss(x, w):
        def step(carry, row):
            return _scaled(row)(carry), None

        return pg.sum(pg.scan(step, x, w)[0])

    x, w = np.arange(3.0), np.array([[2.0, 3.0, 5.0], [7.0, 1.0, 2.0]])
    np.testing.assert_array_equal(pg.jit(pg.grad(loss))(x, w), w.prod(0))


def test_rules_use_tensors_that_a_compiled_function_finds():
    w = pg.tensor([2.0, 3.0, 5.0])
    slope = pg.jit(pg.grad(lambda x: pg.sum(_scaled(w)(x))))
    np.testing.assert_array_equal(slope(np.zeros(3)), [2.0, 3.0, 5.0])
    w += 1.0
    np.testing.assert_array_equal(slope(np.zeros(3)), [3.0, 4.0, 6.0])


def test_an_error_of_a_rule_waits_for_the_derivative():
    def refuse(kept, ct):
        raise RuntimeError("not today")

    f = pg.custom_vjp(lambda v: 2.0 * v)
    f.defvjp(lambda v: (2.0 * v, None), refuse)
    assert pg.jit(f)(3.0) == 6.0
    with pytest.raises(RuntimeError, match="not today"):
        pg.jit(pg.grad(f))(3.0)


def test_rules_that_call_their_function_take_what_the_function_takes():
    def loss(x, w):
        @pg.custom_jvp
        def f(v):
            return pg.exp(v) * w

        f.defjvp(lambda primals, tangents: (f(*primals), f(*primals) * tangents[0]))
        return pg.sum(f(x))

    x, w = np.arange(3.0), np.array([2.0, 3.0, 5.0])
    second = pg.grad(lambda x, w: pg.sum(pg.grad(loss)(x, w)))
    np.testing.assert_allclose(pg.jit(second)(x, w), np.exp(x) * w)


def test_rules_of_closures_are_checked():
    def f(x, w):
        def ruled(slope):
            g = pg.custom_vjp(lambda v: v * w)
            g.defvjp(lambda v: (v * w, None), lambda _, ct: (ct * slope,))
            return g

        return ruled

    w = np.array([2.0, 3.0, 5.0])
    pg.check_rules(lambda x, w: f(x, w)(w)(x), [np.ones(3), w])
    with pytest.raises(pg.CheckError, match="the derivative by input 0"):
        pg.check_rules(lambda x, w: f(x, w)(w * w)(x), [np.ones(3), w])


def test_arguments_that_are_refused():
    with pytest.raises(pg.ArgumentError, match="not in a list"):
        by_vjp([pg.tensor(1.0)])
    fixed = pg.custom_vjp(lambda x: x, nondiff_argnums=(0,))
    fixed.defvjp(lambda x: (x, None), lambda x, kept, ct: ())
    with pytest.raises(pg.ArgumentError, match="nondiff_argnums"):
        fixed(pg.tensor(1.0))
    with pytest.raises(pg.ArgumentError, match="too many positional"):
        by_vjp(1.0, 2.0)
    context = Context(())
    with pytest.raises(pg.ArgumentError, match="save_for_backward takes"):
        context.save_for_backward(3.0)
    with pytest.raises(pg.ArgumentError, match="takes a function"):
        pg.custom_vjp(3)


# What checks rules.


@pytest.mark.parametrize("name", ONE)
def test_rules_that_are_right_pass(name):
    pg.check_rules(ONE[name], [X])


@pytest.mark.parametrize("name", TWO)
def test_rules_of_several_arrays_that_are_right_pass(name):
    pg.check_rules(TWO[name], [X, WEIGHTS])
    pg.check_rules(lambda x: by_vjp(TWO[name](x, WEIGHTS)[0]), [X])


def test_a_class_is_checked_as_well():
    pg.check_rules(Product, [X.astype("float32"), WEIGHTS.astype("float32")])


def test_rules_that_differ_are_told_with_their_line():
    def rule(kept, ct):
        return (ct * 2.0,)

    function = pg.custom_vjp(lambda x: 3.0 * x)
    function.defvjp(lambda x: (3.0 * x, None), rule)
    with pytest.raises(pg.CheckError, match="in reverse mode, but") as error:
        pg.check_rules(function, [X])
    assert f"test_custom_functions.py:{rule.__code__.co_firstlineno}" in str(error.value)
    function.defjvp(lambda primals, tangents: (3.0 * primals[0], 3.5 * tangents[0]))
    with pytest.raises(pg.CheckError, match="in forward mode, but"):
        pg.check_rules(function, [X])


def test_a_rule_that_is_no_derivative_is_told():
    function = pg.custom_vjp(lambda x: 1.0 * x)
    function.defvjp(lambda x: (1.0 * x, None), lambda kept, ct: (pg.clip(ct, -10.0, 10.0),))
    with pytest.raises(pg.CheckError):
        pg.check_rules(function, [X])


def test_a_value_that_a_rule_gives_is_compared():
    function = pg.custom_jvp(lambda x: x * x)
    function.defjvp(lambda p, t: (p[0] * p[0] + 1e-6, 2.0 * p[0] * t[0]))
    with pytest.raises(pg.CheckError, match="by the rule, but the function gives"):
        pg.check_rules(function, [X])


def test_what_looks_at_numbers_is_checked_on_tensors():
    pg.check_rules(Sine, [np.array([0.1, 0.2], "float32"), 3.0])

    class Wrong(Sine):
        @staticmethod
        def backward(ctx, ct):
            (x,) = ctx.saved_tensors
            return ct * np.cos(ctx.scale * x.numpy()), None

    with pytest.raises(pg.CheckError, match="argument 0 at element 0 is"):
        pg.check_rules(Wrong, [np.array([0.1, 0.2]), 3.0])
    with pytest.raises(pg.PrimgraphError, match="nothing named 'frobnicate'"):
        pg.check_rules(lambda x: by_vjp(x).frobnicate(), [X])


def test_where_nothing_is_to_be_checked():
    with pytest.raises(pg.ArgumentError, match="calls no custom function"):
        pg.check_rules(pg.sin, [X])
    with pytest.raises(pg.ArgumentError, match="takes a function"):
        pg.check_rules(3, [X])


_AFTER_OTHERS = """
import numpy as np
import primgraph as pg

pg.jit(pg.sin)(np.ones(3))
double = pg.custom_jvp(lambda x: pg.sin(x) * 2.0)
double.defjvp(lambda p, t: (double(*p), 2.0 * pg.cos(p[0]) * t[0]))

def loss(x):
    sums = pg.cumsum(pg.sin(pg.arange(200_000) * 1.0))
    return pg.sum(double(x) ** 3) * pg.sum(sums)

kernel = pg.compile(pg.trace(pg.grad(loss), pg.spec(5)))
x = np.linspace(0.0, 1.0, 5)
expected = 24.0 * np.sin(x) ** 2 * np.cos(x) * np.cumsum(np.sin(np.arange(200_000.0))).sum()
np.testing.assert_allclose(kernel(x), expected, rtol=1e-12)
assert not [e for e in kernel.graph.body if e.op.name in ("as_custom", "stop_gradient")]
"""


def test_programs_that_were_compiled_before_do_not_matter():
    """What depends on no input, beside a function with a rule, is computed once."""
    subprocess.run([sys.executable, "-c", _AFTER_OTHERS], check=True)


def test_a_call_with_captured_values_is_differentiated_at_sizes() -> None:
    """The function is not called again: what it captured is no argument of it."""

    def program(x: pg.Variable, w: pg.Variable) -> pg.Variable:
        @pg.custom_vjp
        def scaled(x):
            return pg.sin(x) * pg.sum(w)

        scaled.defvjp(lambda x: (scaled(x), x), lambda x, ct: (3.0 * ct * pg.cos(x) * pg.sum(w),))
        return pg.sum(pg.vmap(scaled)(x)) + pg.sum(scaled(x))

    graph = pg.trace(program, pg.spec(("N", "2*M")), pg.spec(("M",)))
    x, w = rng.normal(size=(3, 4)), rng.normal(size=2)
    for sizes in ({"N": 3, "M": 2}, {"M": 2}):
        at = lower(pg.transforms.instantiate(graph, sizes))
        with pytest.raises(pg.NotDifferentiable, match="around it"):
            pg.transforms.linearize(at, [0, 1])
        found = pg.interpret(pg.transforms.linearize(at, [0]), x, w, x)
        np.testing.assert_allclose(found[-1], 6.0 * w.sum() * (np.cos(x) * x).sum(), 1e-12)


def test_forward_mode_by_some_arguments_takes_the_rule_for_tangents():
    @pg.custom_jvp
    def product(x, y):
        return x * y

    product.defjvp(lambda xs, ds: (product(*xs), 2.0 * (ds[0] * xs[1] + xs[0] * ds[1])))
    product.defvjp(
        lambda x, y: (product(x, y), (x, y)), lambda kept, ct: (ct * kept[1], ct * kept[0])
    )
    x = np.array([1.0, 2.0])
    assert pg.jvp(lambda x: product(x, 3.0 * np.ones(2)), x, np.ones(2))[1].tolist() == [6.0, 6.0]
    assert pg.grad(lambda x: pg.sum(product(x, 3.0 * np.ones(2))))(x).tolist() == [3.0, 3.0]


def test_a_rule_for_tangents_that_calls_another_custom_function_is_transposed():
    @pg.custom_vjp
    def tripled(x):
        return 3.0 * x

    tripled.defvjp(lambda x: (tripled(x), ()), lambda kept, ct: (4.0 * ct,))

    @pg.custom_jvp
    def f(x):
        return x**2

    f.defjvp(lambda xs, ds: (f(*xs), tripled(ds[0]) * xs[0]))
    x = np.array([1.0, 2.0])
    assert pg.grad(lambda x: pg.sum(f(x)))(x).tolist() == [4.0, 8.0]


def test_a_rule_may_call_its_function_on_tangents():
    @pg.custom_jvp
    def doubled(x):
        return 2 * x

    @doubled.defjvp
    def _(primals, tangents):
        return doubled(primals[0]), doubled(tangents[0])

    x = np.array([0.5, 2.0])
    assert pg.grad(lambda x: pg.sum(doubled(x)))(x).tolist() == [2.0, 2.0]
    assert pg.jvp(doubled, x, x)[1].tolist() == [1.0, 4.0]
    np.testing.assert_allclose(pg.hessian(lambda x: pg.sum(doubled(x) ** 2))(x), 8 * np.eye(2))
    # Other functions than these keep their rules there.
    scaled = pg.custom_jvp(lambda x: 3 * x)
    scaled.defjvp(lambda primals, tangents: (scaled(*primals), by_jvp(primals[0]) * tangents[0]))
    slope = pg.grad(lambda x: pg.sum(scaled(x)))
    np.testing.assert_allclose(slope(x), np.exp(x) * x)
