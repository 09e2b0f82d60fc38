"""What readable source calls values, and how it writes axes of one element and long lines."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.targets.text.layout import result, signature, statement
from primgraph.codegen.targets.text.ordering import order_by_source
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse


def source(program: pg.Program, fetches: list[pg.Variable]) -> str:
    return pg.Executor().kernel(program, fetches).source


def assigned(text: str) -> list[str]:
    """The names that statements of a source give."""
    return re.findall(r"^    (\w+) = ", text, re.MULTILINE)


def test_plain_lines_name_what_they_end_in():
    with pg.Program() as program:
        x, w, m = pg.data("x", (4, 3)), pg.data("w", (3,)), pg.data("m", (3, 3))
        total = pg.sum(x)
        average = pg.mean(x, axis=0)
        scores = x @ w
        first = pg.sin(x)[0]
        turned = (x @ m).T
        weights = pg.softmax(x)
        quarter = x / 4.0
        squares: pg.Variable = x**2
        length = pg.norm(m)
        largest = pg.max(m, axis=1)
        both = pg.concatenate([x, m])
        chosen = pg.where(x > 0, x, 0.1 * x)
        w += 1.0
    fetches = [total, average, scores, first, turned, weights, quarter, squares, length, largest]
    names = assigned(source(program, [*fetches, both, chosen, w]))
    assert set(names) >= {
        "total", "average", "scores", "first", "turned", "weights", "quarter", "squares",
        "length", "largest", "both", "chosen", "w_2",
    }  # fmt: skip


def test_no_value_has_the_name_of_another():
    def twice(z: pg.Variable) -> pg.Variable:
        return z * z

    with pg.Program() as program:
        x = pg.data("x", (4,))
        unused = pg.tanh(x) + 1.0
        product = pg.exp(x) * x * 3.0
        used = pg.tanh(x) * 2.0
        other = (pg.exp(x) * x) + 4.0
        helped = twice(x + 7.0)
        pair = [pg.sin(x), pg.cos(x)]
        later = (lambda: x + 5.0)()
    names = assigned(source(program, [used, other, helped, pair[0], later]))
    assert {"used", "other"} <= set(names)
    assert not {"unused", "product", "helped", "pair", "later"}.intersection(names)
    assert unused is not product


def test_tangents_and_cotangents_have_the_names_of_values():
    with pg.Program() as program:
        x, w = pg.data("x", (5, 3)), pg.data("w", (3, 3))
        s = pg.tanh(x @ w)
        t = pg.sin(s) @ w
        y = pg.sum(t * t * s)
        by_x, by_w = pg.grad(y, [x, w])
        along = pg.forward_grad(y, x)
        second = pg.forward_grad(by_x, x)
    assert assigned(source(program, [by_x, by_w]))[-1] in ("x_bar", "w_bar")
    assert {"s", "t", "t_bar", "s_bar", "x_bar", "w_bar"} <= set(
        assigned(source(program, [by_x, by_w]))
    )
    assert {"s_dot", "t_dot"} <= set(assigned(source(program, [y, along])))
    assert {"t_bar", "t_bar_dot"} <= set(assigned(source(program, [y, second])))


def test_new_values_of_states_are_named_by_them():
    with pg.Program() as program:
        x = pg.data("x", (8, 3))
        w, b = pg.create_parameter((3, 2), name="w"), pg.create_parameter((2,), name="b")
        loss = pg.mean((pg.tanh(x @ w) + b) ** 2)
        pg.optimizer.SGD(0.1).minimize(loss)
    names = assigned(source(program, [loss]))
    assert {"loss", "w_bar", "b_bar", "new_w", "new_b"} <= set(names)


def test_a_docstring_tells_what_is_the_gradient_of_what():
    with pg.Program("slope") as program:
        x = pg.data("x", (3,))
        y = pg.sum(pg.sin(x) * x)
        dy = pg.grad(y, x)
        ddy = pg.grad(pg.sum(dy), x)
    assert re.search(r'"""Gradient of `y` \(test_readable.py:\d+\) by x\.\n', source(program, [dy]))
    assert '"""Compute y, and its gradient by x.\n' in source(program, [y, dy])
    assert "    Returns x_bar: float64" not in source(program, [dy])
    assert '    x: float64, shape (3,)\n    Returns float64, shape (3,)\n    """' in source(
        program, [ddy]
    )


def test_a_line_that_differentiates_what_it_computes_gives_its_name_to_neither():
    def one(x, w):
        slope = pg.grad(pg.sum(pg.sin(x) * w), x)
        return slope

    def several(x, w):
        return pg.grad(pg.sum(x * w), x) + pg.grad(pg.sum(pg.sin(x)), x)

    def named(x, w):
        loss = pg.sum(pg.sin(x) * w)
        return pg.grad(loss, x)

    def twice(x, w):
        y = pg.sum(pg.sin(x) * w)
        size = pg.sum(pg.grad(y, x) ** 2)
        return pg.grad(size, x)

    def source(function):
        return pg.compile(pg.trace(function, pg.spec(3), pg.spec(3))).source

    assert re.search(r'"""Gradient of test_readable.py:\d+ by x\.\n', source(one))
    assert "`slope`" not in source(one)
    # The cosine is the gradient of the other sum: by `w` nothing is differentiated.
    assert "np.cos(x)" in source(several)
    assert "w_bar" not in source(several)
    assert '"""Gradient of `loss` (test' in source(named)
    assert '"""Gradient of `size` (test' in source(twice)


@pytest.mark.parametrize("shape", [(4, 3), (1, 3), (4, 1), (1, 1), (3, 3), (70, 130)])
def test_products_with_vectors_are_written_as_such_and_have_the_same_bits(shape):
    rng = np.random.default_rng(0)

    def products(a, x, y):
        z = pg.tanh(a @ x)
        return a @ x, y @ a, (z * 2.0) @ a, pg.sum(z * z), x @ x, pg.outer(x, y)

    graph = pg.trace(products, pg.spec(shape), pg.spec(shape[1]), pg.spec(shape[0]))
    kernel = pg.compile(graph, style="readable")
    if shape[1] > 1 and shape[0] > 1:
        assert "= a @ x\n" in kernel.source
        assert "reshape" not in kernel.source
    feeds = [rng.normal(size=s) for s in (shape, shape[1], shape[0])]
    feeds[0].flat[0] = -0.0
    for got, wanted in zip(kernel(*feeds), interpret(kernel.graph, *feeds), strict=True):
        assert got.tobytes() == wanted.tobytes()


def test_reductions_that_are_spread_out_again_keep_their_axes():
    def f(x):
        s = pg.softmax(x, axis=1)
        return s, x - pg.mean(x, axis=(1, 2), keepdims=True), pg.sum(x, axis=1) * 2.0

    kernel = pg.compile(pg.trace(f, pg.spec((3, 4, 5))), style="readable")
    assert "np.max(x, axis=1, keepdims=True)" in kernel.source
    assert "axis=(1, 2), keepdims=True)" in kernel.source
    assert kernel.source.count("None") == 0
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    for got, wanted in zip(kernel(x), interpret(kernel.graph, x), strict=True):
        assert got.tobytes() == wanted.tobytes()


# Operands that are not written as arrays of their shape: numbers, choices, casts of them.
OPERANDS = {
    "sum": "(x + pg.ones(x.shape, x.dtype))",
    "one": "pg.ones(x.shape, x.dtype)",
    "spread": "pg.broadcast_to(x[0, 0], x.shape)",
    "true": "pg.cast(pg.equal(x, x), x.dtype)",
    "negation": "pg.cast(pg.logical_not(x > 0), x.dtype)",
    "half": "pg.cast(pg.cast(x, 'float16'), x.dtype)",
    "new axes": "pg.reshape(pg.reshape(x, (x.size,)), x.shape)",
}
READING = [
    "pg.sum({0}, axis=1, keepdims=True)",
    "pg.max({0}, axis=(0, 1), keepdims=True)",
    "x - pg.prod({0}, axis=1, keepdims=True)",
    "pg.sum(pg.cast({0}, 'int64'), axis=1, keepdims=True)",
]
PRODUCTS = [
    "pg.reshape({0} @ {1}.T, (-1,))",
    "pg.reshape({0} @ {1}[0], (-1, 1))",
    "({0}[:1] @ {1}.T) * 2",
    "pg.reshape(pg.reshape({0}, (1, -1)) @ pg.reshape({1}, (-1, 1)), (1,))",
]


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64"])
@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (2, 3)])
@pytest.mark.parametrize("operand", OPERANDS)
def test_what_is_multiplied_or_reduced_is_written_in_the_shape_it_needs(operand, shape, dtype):
    """All of it in one line, as only expressions of one line are joined."""
    x = np.arange(-2, shape[0] * shape[1] - 2, dtype=dtype).reshape(shape)
    texts = [text.format(OPERANDS[operand]) for text in READING]
    texts += [t.format(OPERANDS[operand], o) for t in PRODUCTS for o in OPERANDS.values()]
    for text in texts:
        graph = pg.trace(eval(f"lambda x: {text}", {"pg": pg}), pg.spec(shape, dtype))
        kernel = pg.compile(graph, style="readable")
        got, wanted = kernel(x), interpret(kernel.graph, x)[0]
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype), kernel.source
        np.testing.assert_allclose(got, wanted, rtol=1e-2 if dtype == "float16" else 1e-9)


def test_one_number_is_spread_before_its_axes_are_told():
    """As no rule has joined the views before."""
    graph = parse("""graph f(%0: f64[2], %1: f64[], %2: f64[3,2,1]) {
      %3: f64[2] = broadcast(%1, new_axes=(0,), shape=(2,))
      %4: f64[1,2,1] = reshape(%3, shape=(1, 2, 1))
      %5: f64[2,1] = reshape(%4, shape=(2, 1))
      %6: f64[3,2,1] = broadcast(%5, new_axes=(0,), shape=(3, 2, 1))
      %7: f64[3,2,1] = mul(%2, %6)
      return %7
    }""")
    kernel = compile_graph(graph, style="readable")
    feeds = np.ones(2), np.array(3.0), np.arange(6.0).reshape(3, 2, 1)
    np.testing.assert_array_equal(kernel(*feeds)[0], interpret(graph, *feeds)[0])


def test_long_lines_are_broken_where_formatters_break_them():
    names = [f"a_long_argument_{i:02}" for i in range(9)]
    assert signature("f", names[:2]) == ["def f(a_long_argument_00, a_long_argument_01):"]
    assert signature("f", names) == ["def f(", *(f"    {n}," for n in names), "):"]
    assert signature("f", []) == ["def f():"]
    few, many = ", ".join(names[:4]), ", ".join(names)
    assert statement("x = ", f"g({few})") == ["x = g(", f"    {few}", ")"]
    assert statement("x = ", f"g({many})") == ["x = g(", *(f"    {n}," for n in names), ")"]
    first = f"        {names[0]},"
    assert statement("x = ", f"g([{many}], axis=1)")[1:3] == ["    [", first]
    assert statement("x = ", " + ".join(names[:4])) == [
        "x = (",
        f"    {' + '.join(names[:4])}",
        ")",
    ]
    assert result("x") == ["x"]
    assert result(f"g({few})") == ["g(", f"    {few}", ")"]
    assert statement("x = ", f"g({few}).sum(1)") == ["x = g(", f"    {few}", ").sum(1)"]


def test_elements_at_one_place_are_an_index():
    def f(x):
        return x[0], x[:, 1], x[-1, :, 2], x[1, 1, 1], pg.exp(x)[:, 0, 1:]

    kernel = pg.compile(pg.trace(f, pg.spec((4, 3, 5))), style="readable")
    for text in ("x[0]", "x[:, 1]", "x[3, :, 2]", "x[1, 1, 1]", "[:, 0, 1:]"):
        assert text in kernel.source
    assert "reshape" not in kernel.source
    x = np.random.default_rng(0).normal(size=(4, 3, 5))
    for got, wanted in zip(kernel(x), interpret(kernel.graph, x), strict=True):
        assert got.tobytes() == wanted.tobytes()
        assert got.shape == wanted.shape


def cosine(x, y):
    dots = pg.sum(x * y, axis=1)
    lengths = pg.sqrt(pg.sum(x * x, axis=1) * pg.sum(y * y, axis=1))
    return dots / lengths


def ridge(x, y, w):
    residual = x @ w - y @ w
    loss = pg.sum(residual**2) / 2.0
    return loss + 0.1 * pg.sum(w * w)


def cross_entropy(x, y):
    shifted = x - pg.max(x, axis=1, keepdims=True)
    total = pg.log(pg.sum(pg.exp(shifted), axis=1))
    picked = pg.sum(shifted * y, axis=1)
    return pg.mean(total - picked)


def distances(x, y):
    difference = x[:, None, :] - y[None, :, :]
    return pg.sqrt(pg.sum(difference**2, axis=-1))


@pytest.mark.parametrize(
    ("function", "lines"), [(cosine, 3), (ridge, 3), (cross_entropy, 4), (distances, 2)]
)
def test_a_function_of_some_lines_has_no_more_statements(function, lines):
    shapes = [(8, 3), (8, 3), (3,)][: function.__code__.co_argcount]
    text = pg.compile(pg.trace(function, *map(pg.spec, shapes))).source
    body = text.rpartition('"""\n')[2].splitlines()
    assert len([row for row in body if row.strip() and not row.strip().startswith("#")]) == lines


@pytest.mark.parametrize("function", [pg.exp, pg.sin, lambda x: pg.cosh(x) * 1.0])
def test_values_may_be_gradients_of_themselves(function):
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = function(x)
        found = [y]
        for _ in range(6):
            found.append(pg.grad(found[-1], x))
    results = pg.Executor().run(program, {"x": np.ones(3)}, found)
    saved = pg.compile(program.graph(found))(np.ones(3))
    for a, b in zip(results, saved, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_one_line_makes_stands_together():
    """Also where derivatives of others were recorded in between."""
    with pg.Program() as program:
        x, w = pg.data("x", (4, 3)), pg.data("w", (3, 3))
        found = []
        for _ in range(3):
            h = pg.tanh(x @ w)
            loss = pg.sum(h * h)
            found += [pg.grad(loss, x), pg.grad(loss, w)]
            x = x + 1.0
    text = source(program, found)
    said = re.findall(r"^    # (.*)$", text, re.MULTILINE)
    places = [line.partition("  ")[0] for line in said]
    assert places.count(places[0]) <= 3
    kernel = pg.Executor().kernel(program, found)
    arrays = [np.linspace(0.1, 0.9, t.size).reshape(t.shape) for t in kernel.graph.input_types]
    readable = pg.compile(kernel.graph, style="readable")
    for got, wanted in zip(readable(*arrays), kernel(*arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_lines_are_ordered_in_linear_time_and_without_recursion():
    """Steps of two lines that take turns are put into two groups, as far as that is possible."""

    def turns(count: int) -> pg.Graph:
        def function(x: pg.Variable, y: pg.Variable) -> tuple[pg.Variable, pg.Variable]:
            for _ in range(count):
                x = pg.sin(x)
                y = pg.cos(y)
            return x, y

        return pg.trace(function, pg.spec(3), pg.spec(3))

    ordered = order_by_source(schedule(turns(50)))
    names = [step.op.name for step in ordered.steps]
    assert names == ["sin"] * 50 + ["cos"] * 50
    assert ordered.last[0] == 0
    long = schedule(turns(10_000))
    assert [s.op.name for s in order_by_source(long).steps] == ["sin"] * 10_000 + ["cos"] * 10_000
    same = order_by_source(ordered)
    assert same is ordered


def test_parts_of_all_shapes_are_put_at_their_positions() -> None:
    rng = np.random.default_rng(0)
    parts = [(), (1,), (3,), (2, 2), (1, 3), (3, 1), (2, 1, 2), (1, 1), (0,)]
    written = 0
    for _ in range(300):
        shape = [(24,), (4, 4), (3, 5), (2, 3, 4), (5, 1)][rng.integers(5)]
        part = parts[rng.integers(len(parts))]
        strides = rng.integers(1, 9, size=len(part)).tolist()
        last = sum(s * max(n - 1, 0) for s, n in zip(strides, part, strict=True))
        start = int(rng.integers(0, max(1, math.prod(shape) - last)))
        if start + last >= math.prod(shape):
            continue
        sizes, whole = (",".join(map(str, s)) for s in (part, shape))
        graph = pg.parse(
            f"graph f(%x: f64[{sizes}]) {{\n  %0: f64[{whole}] = placed(%x, shape={shape}, "
            f"starts=({start},), strides=({tuple(strides)},))\n  return %0\n}}"
        )
        x = rng.normal(size=part)
        kernel = pg.compile(graph, style="readable")
        np.testing.assert_array_equal(kernel(x)[0], pg.interpret(graph, x)[0])
        written += "placed(" not in kernel.source
    assert written > 30


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("shape", "axis"), [((3, 5), None), ((3, 5), 1), ((4, 8), 0)])
def test_sums_over_the_number_of_their_terms_are_means_of_the_same_bits(shape, axis, dtype):
    kernel = pg.compile(pg.trace(lambda x: pg.mean(x * x, axis=axis), pg.spec(shape, dtype)))
    assert "np.mean(" in kernel.source
    assert " / " not in kernel.source
    assert " * 0." not in kernel.source
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    space: dict[str, object] = {}
    exec(kernel.source, space)
    found, known = space["f"](x), pg.interpret(kernel.graph, x)[0]
    assert np.asarray(found).tobytes() == known.tobytes()
    assert np.asarray(found).dtype == known.dtype


def test_other_quotients_of_sums_and_named_sums_stay():
    def function(x):
        total = pg.sum(x)
        return total, pg.sum(x, axis=0) / 5.0, pg.sum(x, axis=1) / 3.0

    source = pg.compile(pg.trace(function, pg.spec((3, 5)))).source
    assert "np.mean" not in source


def test_a_mean_that_becomes_a_statement_is_not_divided_again():
    def function(first_operand_of_a_mean, second_operand_of_a_mean):
        x, y = first_operand_of_a_mean, second_operand_of_a_mean
        return pg.mean(x * y * y * y * x + y) * (x + y * x * x * y * y + x * y * x) - pg.mean(x)

    kernel = pg.compile(pg.trace(function, *[pg.spec(3)] * 2))
    x, y = np.random.default_rng(0).normal(size=(2, 3))
    space: dict[str, object] = {}
    exec(kernel.source, space)
    assert space["function"](x, y).tobytes() == pg.interpret(kernel.graph, x, y)[0].tobytes()


def test_carries_of_a_transposed_loop_are_named_as_cotangents():
    def loss(xs, w, v):
        def cell(h, x):
            gate = x + h @ w
            h = pg.tanh(gate)
            return h, h @ v

        return pg.sum(pg.scan(cell, pg.zeros((2, 3)), xs)[1])

    graph = pg.trace(pg.grad(loss, 1), *map(pg.spec, ((5, 2, 3), (3, 3), (3, 1))))
    source = pg.compile(graph).source
    assert "    h_bar_next = np.zeros((2, 3))\n" in source
    assert "        h_bar = h_bar_next + " in source
    assert "        gate_bar_stack[k] = gate_bar\n" in source
    assert "        h_bar_next = gate_bar @ w.T\n" in source


def test_positions_that_differ_are_assigned_in_derivatives():
    def loss(x, labels, rows):
        own = pg.take_along_axis(x, labels[:, None], axis=1)
        return pg.sum(own) + 2.0 * pg.sum(x[rows])

    specs = (pg.spec((4, 3)), pg.spec(4, "int64"), pg.spec(5, "int64"))
    kernel = pg.compile(pg.trace(pg.grad(loss), *specs))
    assert "] = 1.0\n" in kernel.source
    # Rows may occur twice.
    assert kernel.source.count("np.add.at(") == 1
    x, labels, rows = np.zeros((4, 3)), np.array([2, -1, 0, 2]), np.array([1, 1, 3, 0, 1])
    expected = np.zeros((4, 3))
    expected[np.arange(4), labels] = 1.0
    np.add.at(expected, rows, 2.0)
    for style in ("planned", "readable"):
        found = compile_graph(kernel.graph, style=style)(x, labels, rows)
        assert np.array_equal(found, expected)


def test_results_in_containers_are_named_without_their_positions():
    def step(w, b):
        return pg.sum(w) + b, {"w": w * 2.0, "b": -b}

    source = pg.compile(pg.trace(step, pg.spec(3), pg.spec(()))).source
    assert "        w: float64, shape (3,)\n        b: float64, shape ()\n" in source
    twice = pg.compile(pg.trace(lambda w: ({"w": w * 2.0}, {"w": -w}), pg.spec(3))).source
    assert "0.w, 1.w: float64, shape (3,)\n" in twice
