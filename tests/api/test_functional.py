"""vjp, jvp, hvp and vhp on functions of variables, and differential operators."""

import itertools

import numpy as np
import pytest

import primgraph as pg

rng = np.random.default_rng(21)


def run(program, fetches, **feed):
    return pg.Executor().run(program, feed, fetches)


def test_a_tuple_of_integers_is_a_shape_for_trace():
    graph = pg.trace(lambda x, y, z: x + y + z, (3,), (2, 3), ())
    kinds = [(v.shape, str(v.dtype)) for v in graph.inputs]
    assert kinds == [((3,), "float64"), ((2, 3), "float64"), ((), "float64")]
    assert str(pg.trace(lambda x: x, np.array([3])).inputs[0].type) == "i64[1]"


# Values and forms.


def test_vjp_and_jvp_of_a_matrix_squared():
    seed = np.array([[1.0, 0], [0, 0]])
    with pg.Program() as program:
        x = pg.data("x", (2, 2))
        found = [f(lambda a: a @ a, x, v) for f in (pg.vjp, pg.jvp) for v in (None, seed)]
    for value, product in found:
        assert isinstance(value, pg.Variable)
        assert isinstance(product, pg.Variable)
    values = run(program, [v for pair in found for v in pair], x=np.ones((2, 2)))
    for i, known in enumerate((np.full((2, 2), 4.0), np.array([[2.0, 1], [1, 0]])) * 2):
        np.testing.assert_array_equal(values[2 * i], np.full((2, 2), 2.0))
        np.testing.assert_array_equal(values[2 * i + 1], known)


def test_forms_follow_inputs_and_outputs():
    with pg.Program():
        x, w = pg.data("x", (3,)), pg.data("w", (3,))
        value, back = pg.vjp(lambda a, b: (a * b, pg.sum(a)), [x, w], [np.ones(3), None])
        assert [v.shape for v in value] == [(3,), ()]
        assert [v.shape for v in back] == [(3,), (3,)]
        value, forward = pg.jvp(lambda a, b: (a * b, pg.sum(a)), (x, w), [None, np.ones(3)])
        assert [v.shape for v in forward] == [(3,), ()]
        assert isinstance(pg.jvp(lambda a: [a], x)[1], list)
        assert isinstance(pg.vjp(lambda a: [a], x)[1], pg.Variable)
        value, product = pg.hvp(lambda a, b: pg.sum(a * b), [x, w], [None, None])
        assert value.shape == ()
        assert [v.shape for v in product] == [(3,), (3,)]
        assert pg.vhp(lambda a: pg.sum(a * a), x, np.ones(3))[1].shape == (3,)


def test_products_agree_with_the_whole_matrices():
    at, w = rng.standard_normal(3), rng.standard_normal((3, 4))
    u, v = rng.standard_normal(4), rng.standard_normal(3)
    with pg.Program() as program:
        x, m = pg.data("x", (3,)), pg.data("m", (3, 4))
        rows = pg.jacobian(pg.tanh(x @ m), x)
        second = pg.hessian(pg.sum(pg.tanh(x @ m)), x)
        _, back = pg.vjp(lambda a: pg.tanh(a @ m), x, u)
        _, forward = pg.jvp(lambda a: pg.tanh(a @ m), x, v)
        _, right = pg.hvp(lambda a: pg.sum(pg.tanh(a @ m)), x, v)
        _, left = pg.vhp(lambda a: pg.sum(pg.tanh(a @ m)), x, v)
    rows, second, back, forward, right, left = run(
        program, [rows, second, back, forward, right, left], x=at, m=w
    )
    np.testing.assert_allclose(back, u @ rows, rtol=1e-12)
    np.testing.assert_allclose(forward, rows @ v, rtol=1e-12)
    np.testing.assert_allclose(right, second @ v, rtol=1e-12)
    np.testing.assert_allclose(left, v @ second, rtol=1e-12)


def test_the_product_with_a_hessian_is_one_pass():
    """Forward over reverse: its size does not grow with that of the input."""
    sizes = []
    for n in (3, 30):
        with pg.Program() as program:
            x, m = pg.data("x", (n,)), pg.data("m", (n, 4))
            _, product = pg.hvp(lambda a, m=m: pg.sum(pg.tanh(a @ m)), x, np.ones(n))
        sizes.append(len(pg.Executor().kernel(program, [product]).graph))
    assert sizes[0] == sizes[1] < 30


# What functions see: arguments of their own, and variables from elsewhere.


def test_a_variable_passed_twice_counts_as_two():
    at = rng.standard_normal(3)
    with pg.Program() as program:
        x = pg.data("x", (3,))
        value, back = pg.vjp(lambda a, b: a * b * b, [x, x])
        _, forward = pg.jvp(lambda a, b: a * b * b, [x, x], [np.ones(3), np.zeros(3)])
    value, left, right, forward = run(program, [value, *back, forward], x=at)
    np.testing.assert_allclose(value, at**3, rtol=1e-12)
    np.testing.assert_allclose(left, at**2, rtol=1e-12)
    np.testing.assert_allclose(right, 2 * at**2, rtol=1e-12)
    np.testing.assert_allclose(forward, at**2, rtol=1e-12)


def test_what_a_function_finds_elsewhere_is_constant_here_and_not_outside():
    at, w = rng.standard_normal(3), rng.standard_normal(3)
    with pg.Program() as program:
        x, c = pg.data("x", (3,)), pg.data("c", (3,))
        h = pg.sin(c)
        _, back = pg.vjp(lambda a: a * x * h, x)
        outer = pg.grad(pg.sum(back * back), [x, c])
    back, dx, dc = run(program, [back, *outer], x=at, c=w)
    np.testing.assert_allclose(back, at * np.sin(w), rtol=1e-12)
    np.testing.assert_allclose(dx, 2 * at * np.sin(w) ** 2, rtol=1e-12)
    np.testing.assert_allclose(dc, 2 * at**2 * np.sin(w) * np.cos(w), rtol=1e-12)


def test_functions_nest_and_may_differentiate_by_outer_variables():
    at, w = rng.standard_normal(3), rng.standard_normal(3)
    with pg.Program() as program:
        x, c = pg.data("x", (3,)), pg.data("c", (3,))
        h = c * c
        _, third = pg.jvp(lambda a: pg.jvp(lambda b: pg.jvp(pg.sin, b)[1], a)[1], x, np.ones(3))
        _, mixed = pg.vjp(lambda a: pg.jvp(lambda b: a * b * b, a)[1], x)
        _, through = pg.vjp(lambda a: pg.grad(a * a * h, c), x)
    found = run(program, [third, mixed, through], x=at, c=w)
    np.testing.assert_allclose(found[0], -np.cos(at), rtol=1e-12)
    np.testing.assert_allclose(found[1], 4 * at, rtol=1e-12)
    np.testing.assert_allclose(found[2], 4 * at * w, rtol=1e-12)


def test_the_program_gets_what_the_function_records_and_nothing_else():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        before = len(program.operators())
        value, _ = pg.vjp(lambda a: pg.sin(a) * a, x)
        assert list(program.inputs) == ["x"]
        after = len(program.operators())
        pg.vjp(lambda a: pg.sin(a) * a, x)
        # Called again it adds the results, and nothing of what these are computed from.
        assert after > before
        assert len(program.operators()) <= after + 2
        assert len(program.graph([value]).inputs) == 1
        str(program)


def test_names_flags_inputs_and_updates_in_a_function_are_the_program_s():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        total = program.state("total", x.type, pg.initializers.Constant(0.0))

        def function(a):
            h = pg.sin(a)
            h.name = "hidden"
            h.stop_gradient = True
            extra = pg.data("extra", (3,))
            program.update(total, total + h)
            return h * a * extra

        value, back = pg.vjp(function, x)
        assert program.variable("hidden").stop_gradient
        assert not value.stop_gradient
        assert list(program.inputs) == ["x", "extra"]
    at, extra = rng.standard_normal(3), rng.standard_normal(3)
    hidden, back = run(program, ["hidden", back], x=at, extra=extra)
    np.testing.assert_allclose(hidden, np.sin(at), rtol=1e-12)
    np.testing.assert_allclose(back, np.sin(at) * extra, rtol=1e-12)
    np.testing.assert_allclose(program.state_dict()["total"], np.sin(at), rtol=1e-12)


def test_an_error_in_a_function_leaves_the_program_as_it_was():
    with pg.Program() as program:
        x = pg.data("x", (3,))

        def broken(a):
            pg.sin(a).name = "gone"
            raise RuntimeError("broken")

        with pytest.raises(RuntimeError, match="broken"):
            pg.vjp(broken, x)
        assert len(program.operators()) == 0
        assert program.variable("gone") is None
        kept = []
        pg.vjp(lambda a: kept.append(pg.sin(a)) or pg.cos(a), x)
        with pytest.raises(pg.BuildError, match="another program"):
            pg.exp(kept[0])


def test_dropout_and_normalisation_in_a_function():
    with pg.Program() as program:
        x = pg.data("x", (4, 3))
        _, back = pg.vjp(lambda a: pg.dropout(pg.tanh(a), program.next_key(), 0.5), x)
    first = run(program, [back], x=np.zeros((4, 3)))[0]
    assert set(np.unique(first)) <= {0.0, 2.0}


# Zeros, strictness, and errors.


def test_unused_inputs_and_independent_outputs_give_zeros():
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", (2,))
        c = pg.data("c", (2,))
        _, back = pg.vjp(lambda a, b: a * a, [x, w])
        _, forward = pg.jvp(lambda a: (a, c, 1.0), x)
        _, nothing = pg.vjp(lambda a: c, x)
        _, flat = pg.hvp(lambda a, b: pg.sum(a * 3.0), [x, w], [None, None])
    found = run(program, [*back, *forward, nothing, *flat], x=np.ones(3))
    expected = [np.full(3, 2.0), np.zeros(2), np.ones(3), np.zeros(2), 0.0, np.zeros(3)]
    expected += [np.zeros(3), np.zeros(2)]
    for value, known in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, known)


def test_strict_refuses_independence():
    with pg.Program():
        x, w = pg.data("x", (3,)), pg.data("w", (3,))  # their line
        for function in (pg.vjp, pg.jvp):
            with pytest.raises(pg.NotDifferentiable, match="no output depends on b") as e:
                function(lambda a, b: a * a, [x, w], strict=True)
            assert "# their line" in str(e.value)
            with pytest.raises(pg.NotDifferentiable, match=r"result\[1\] depends on no input"):
                function(lambda a: (a, w), x, strict=True)
            function(lambda a, b: a * b, [x, w], strict=True)
        for function in (pg.hvp, pg.vhp):
            with pytest.raises(pg.NotDifferentiable, match="no output depends on b"):
                function(lambda a, b: pg.sum(a * a), [x, w], [None, None], strict=True)
            function(lambda a: pg.sum(3.0 * a), x, None, strict=True)
            function(lambda a: pg.sum(a * a), x, None, strict=True)


@pytest.mark.parametrize("function", [pg.vjp, pg.jvp, pg.hvp, pg.vhp])
def test_wrong_arguments_are_refused(function):
    def total(a):
        return pg.sum(a * a)

    with pg.Program():
        x, n = pg.data("x", (3,)), pg.data("n", (3,), "int64")
        for wrong in (1, None, "f", x):
            with pytest.raises(TypeError, match="takes a function"):
                function(wrong, x, None)
        for wrong in ("f", object(), None, [x, None], []):
            with pytest.raises(TypeError):
                function(total, wrong, None)
        with pytest.raises(pg.ShapeError, match="shape"):
            function(total, x, np.ones(7))
        with pytest.raises(TypeError, match=r"v is \[\*, \*\], and there is \* in its place"):
            function(total, x, [None, None])
        with pytest.raises(TypeError, match="only floats"):
            function(lambda a: pg.sum(pg.astype(a, float)), n, None)
        with pytest.raises(pg.PrimgraphError):
            function(lambda a: None, x, None)
        with pytest.raises(pg.PrimgraphError, match="only floats"):
            function(lambda a: pg.argmax(a), x, None)
    with pg.Program():
        other = pg.data("x", (3,))
    with pytest.raises(pg.BuildError, match="two different programs"):
        function(total, [x, other], None)


@pytest.mark.parametrize("function", [pg.hvp, pg.vhp])
def test_second_order_needs_one_element(function):
    with pg.Program():
        x = pg.data("x", (3,))
        with pytest.raises(pg.NotScalarError, match=r"one element, not f64\[3\]"):
            function(lambda a: a * a, x, None)
        with pytest.raises(RuntimeError):
            function(lambda a: (pg.sum(a), pg.sum(a)), x, None)
        assert function(lambda a: [pg.sum(a * a)], x, None)[0].shape == ()
        assert function(lambda a: pg.sum(a * a, keepdims=True), x, None)[0].shape == (1,)


# Differential operators against the whole Hessian and Jacobian.


def cost(program, *fetches):
    return pg.cost(program, list(fetches)).flops


def network(x, *weights):
    for w in weights[:-1]:
        x = pg.tanh(x @ w)
    return x @ weights[-1]


def with_network(*shape, width=16, outputs=1):
    program = pg.Program()
    with program:
        x = pg.data("x", shape)
        sizes = [shape[-1], width, width, outputs]
        weights = [pg.data(f"w{i}", pair) for i, pair in enumerate(itertools.pairwise(sizes))]
        y = network(x, *weights)
    feed = {n: rng.standard_normal(v.shape) for n, v in program.inputs.items()}
    return program, x, y, feed


def test_laplacian_and_diagonal_of_a_network():
    program, x, y, feed = with_network(10)
    with program:
        full = pg.hessian(y, x)
        diagonal, total = pg.hessian_diagonal(y, x), pg.laplacian(y, x)
    assert (diagonal.type, total.type) == (x.type, y.type)
    whole, found, trace = run(program, [full, diagonal, total], **feed)
    np.testing.assert_allclose(found, np.diag(whole), rtol=1e-10)
    np.testing.assert_allclose(trace[0], np.trace(whole), rtol=1e-10)
    costs = [cost(program, v) for v in (total, diagonal, full)]
    assert costs[0] < 0.75 * costs[1] < costs[1] < 0.9 * costs[2], costs


def test_laplacian_and_diagonal_of_independent_samples(monkeypatch):
    # Without samples the pattern tells that these are apart.
    monkeypatch.setattr("primgraph.derivatives.differential_operators._SMALL", 10**9)
    program, x, y, feed = with_network(6, 10)
    with program:
        full = pg.Hessian(y, x, is_batched=True)
        whole = full[:]
        diagonal, total = pg.hessian_diagonal(y, x, True), pg.laplacian(y, x, True)
        flat = pg.laplacian(y[:, 0], x, True)
        slow = pg.hessian_diagonal(pg.sum(y), x)
    assert full.passes.forward == 10, "one pass for each element of a sample"
    assert (diagonal.type, total.type, flat.shape) == (x.type, y.type, (6,))
    matrix, found, trace, same = run(program, [whole, diagonal, total, flat], **feed)
    np.testing.assert_allclose(found, np.diagonal(matrix, axis1=1, axis2=2), rtol=1e-10)
    np.testing.assert_allclose(trace[:, 0], np.trace(matrix, axis1=1, axis2=2), rtol=1e-10)
    np.testing.assert_array_equal(same, trace[:, 0])
    costs = [cost(program, v) for v in (total, diagonal, whole, slow)]
    assert costs[0] < 0.75 * costs[1] < costs[1] < 0.9 * costs[2], costs
    assert costs[1] < costs[3] / 4, "directions are of a sample, not of the batch"


def test_operators_of_elementwise_gradients_are_one_pass():
    at = rng.standard_normal((3, 4))
    with pg.Program() as program:
        x = pg.data("x", (3, 4))
        y = pg.sum(pg.sin(x) * x * x)
        found = [pg.hessian_diagonal(y, x), pg.laplacian(y, x), pg.hessian(y, x)]
        flow = pg.divergence(pg.sin(x) * x, x)
    diagonal, trace, whole, flux = run(program, [*found, flow], x=at)
    matrix = whole.reshape(12, 12)
    np.testing.assert_allclose(diagonal.reshape(-1), np.diag(matrix), rtol=1e-12)
    np.testing.assert_allclose(trace, np.trace(matrix), rtol=1e-12)
    np.testing.assert_allclose(flux, np.sum(np.cos(at) * at + np.sin(at)), rtol=1e-12)
    # Sine and cosine, which cost most, are worked out once by each of them.
    works = [pg.cost(pg.Executor().kernel(program, [v])).by_op() for v in found]
    costs = [sum(w.flops for op, w in ops.items() if op not in ("sin", "cos")) for ops in works]
    # The matrix takes a choice for each element beside its diagonal, which is one pass.
    assert costs[0] == costs[2] - matrix.size
    assert costs[1] <= costs[0] + diagonal.size
    assert all(v.shape != (12, 12) for e in pg.Executor().kernel(program, [flow]).graph.body
               for v in e.outputs)  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("text", ["x @ x", "x @ x * x", "pg.sin(x @ x) @ x", "x.T @ pg.exp(x)"])
def test_unit_vectors_that_are_square_matrices_are_no_identity(text, n):
    """Products of an operand with itself: one direction is multiplied by another."""
    function = eval(f"lambda x: {text}", {"pg": pg})

    def asked(x):
        y = pg.sum(function(x))
        flux = pg.divergence(function(x), x), pg.jacobian(function(x), x)
        return pg.hessian_diagonal(y, x), pg.laplacian(y, x), pg.hessian(y, x), *flux

    x = rng.standard_normal((n, n))
    found, total, whole, flux, jacobian = pg.compile(pg.trace(asked, x))(x)
    diagonal = np.diag(whole.reshape(n * n, n * n))
    np.testing.assert_allclose(found.reshape(-1), diagonal, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(total, diagonal.sum(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(flux, np.trace(jacobian.reshape(n * n, n * n)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("batched", [False, True])
def test_divergence_of_a_network(batched):
    program, x, y, feed = with_network(*((6, 5) if batched else (5,)), outputs=5)
    with program:
        jacobian = pg.Jacobian(y, x, batched)
        whole, flow = jacobian[:], pg.divergence(y, x, batched)
    assert flow.shape == ((6,) if batched else ())
    matrix, found = run(program, [whole, flow], **feed)
    np.testing.assert_allclose(found, np.trace(matrix, axis1=-2, axis2=-1), rtol=1e-10)
    assert cost(program, flow) < 0.9 * cost(program, whole)


@pytest.mark.parametrize("lead", [(), (4,)])
@pytest.mark.parametrize("sample", [(6,), (2, 3), (1,), (0,)])
def test_divergence_of_products_in_every_place(lead, sample):
    n = int(np.prod(sample))
    ends = {
        "right": lambda h, v: h @ v,
        "left": lambda h, v: pg.swapaxes(v.T @ pg.swapaxes(h, 0, -1), 0, -1),
        "reversed": lambda h, v: (h @ v)[..., ::-1],
        "scaled": lambda h, v: h @ v * 2.0 + 1.0,
        "square": lambda h, v: (h @ v) ** 2,
        "bias": lambda h, v: h @ v + pg.sum(h, axis=-1, keepdims=True),
        "turned": lambda h, v: pg.reshape(pg.swapaxes(pg.reshape(h @ v, (*lead, -1, n, 1)), -1, -2),
                                          (*lead, n)) if n else h @ v,
    }  # fmt: skip
    for name, end in ends.items():
        with pg.Program() as program:
            x, w, v = pg.data("x", (*lead, *sample)), pg.data("w", (n, 5)), pg.data("v", (5, n))
            y = pg.reshape(end(pg.tanh(pg.reshape(x, (*lead, n)) @ w), v), x.shape)
            flow = pg.divergence(y, x, bool(lead))
            whole = pg.Jacobian(y, x, bool(lead))[...]
        feed = {n: rng.standard_normal(i.shape) for n, i in program.inputs.items()}
        found, matrix = run(program, [flow, whole], **feed)
        expected = np.trace(matrix, axis1=-2, axis2=-1)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12, err_msg=name)


def test_the_divergence_of_a_gradient_is_the_laplacian():
    program, x, y, feed = with_network(4)
    with program:
        pair = pg.divergence(pg.grad(y, x), x), pg.laplacian(y, x)
        again = pg.grad(pair[1], x), pg.grad(pair[0], x)
    found = run(program, [*pair, *again], **feed)
    np.testing.assert_allclose(found[0], found[1][0], rtol=1e-10)
    np.testing.assert_allclose(found[2], found[3], rtol=1e-9, err_msg="differentiable again")


def test_a_residual_of_a_differential_equation():
    """u_t - u_xx for u = sin(x) exp(-t), samples (N, 2): zero."""
    with pg.Program() as program:
        p = pg.data("p", (7, 2))
        u = pg.sin(p[:, :1]) * pg.exp(-p[:, 1:])
        second = pg.hessian_diagonal(u, p, is_batched=True)
        residual = pg.grad(u, p)[:, 1:] - second[:, :1]
        total = pg.laplacian(u, p, True)
    at = rng.standard_normal((7, 2))
    found, zero = run(program, [residual, total], p=at)
    np.testing.assert_allclose(found, 0, atol=1e-12)
    np.testing.assert_allclose(zero, 0, atol=1e-12)


def test_operators_of_what_is_independent_or_tiny():
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", ())
        zeros = [
            pg.laplacian(pg.sin(w), x),
            pg.hessian_diagonal(pg.sin(w), x),
            pg.divergence(pg.zeros(3), x),
        ]
        one = [pg.laplacian(pg.sin(w), w), pg.hessian_diagonal(w**3, w), pg.divergence(w * w, w)]
        linear = pg.laplacian(pg.sum(x * 2.0), x)
        rank = pg.hessian_diagonal(pg.sum(x) ** 3, x)
    found = run(program, [*zeros, *one, linear, rank], x=[1.0, 2, 3], w=0.5)
    for value, shape in zip(found, [(), (3,), ()], strict=False):
        np.testing.assert_array_equal(value, np.zeros(shape))
    np.testing.assert_allclose(found[3:6], [-np.sin(0.5), 3.0, 1.0], rtol=1e-12)
    assert found[6] == 0
    np.testing.assert_allclose(found[7], np.full(3, 36.0), rtol=1e-12)


def test_operators_with_a_flagged_or_guarded_function():
    at = np.array([0.0, 0.5, 2.0])
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.sum(pg.where(x > 0, pg.log(x), 0.0)) * pg.sum(x)
        total, diagonal = pg.laplacian(y, x), pg.hessian_diagonal(y, x)
        slope = pg.grad(total, x)
    total, diagonal, slope = run(program, [total, diagonal, slope], x=at)
    first, second = np.r_[0, 1 / at[1:]], np.r_[0, -1 / at[1:] ** 2]
    np.testing.assert_allclose(diagonal, second * at.sum() + 2 * first, rtol=1e-12)
    np.testing.assert_allclose(total, np.sum(diagonal), rtol=1e-12)
    assert np.all(np.isfinite(slope))


def test_wrong_arguments_of_operators_are_refused():
    with pg.Program():
        x, b = pg.data("x", (3,)), pg.data("b", (4, 3))
        for function in (pg.laplacian, pg.hessian_diagonal):
            with pytest.raises(pg.NotScalarError, match=r"one element, not f64\[3\]"):
                function(x * x, x)
            with pytest.raises(pg.NotScalarError, match=r"shape \(B,\) or \(B, 1\)"):
                function(b * b, b, True)
            with pytest.raises(pg.ShapeError, match="same samples"):
                function(pg.sum(x * x, keepdims=True), x, True)
            with pytest.raises(TypeError):
                function(1.0, x)
        with pytest.raises(pg.ShapeError, match="equal shapes"):
            pg.divergence(pg.sum(x), x)
        with pytest.raises(pg.NotDifferentiable):
            pg.laplacian(pg.argmax(x), x)


@pytest.mark.parametrize("of", [pg.hessian_diagonal, pg.laplacian, pg.divergence])
@pytest.mark.parametrize("given", ["[x]", "[x, z]", "(x,)", "lambda x: x", "np.ones(3)", "None"])
@pytest.mark.parametrize("place", ["y", "x"])
def test_operators_take_one_variable_each(of, given, place):
    """A list of variables is refused, also where one pass gives all second derivatives."""
    if (place, given[:6]) == ("y", "lambda"):
        pytest.skip("a function may be given for y")
    with pg.Program():
        x, z = pg.data("x", (3,)), pg.data("z", (3,))
        y = x**3 if of is pg.divergence else pg.sum(x**3 * z**2)
        asked = {"y": y, "x": x, place: eval(given, {"x": x, "z": z, "np": np})}
        with pytest.raises(pg.ArgumentError, match=f"takes one variable as {place}"):
            of(**asked)


def test_matrices_of_functions_are_those_of_what_they_give():
    with pg.Program():
        x = pg.data("x", (2, 3))
        for of in (pg.jacobian, pg.batched_jacobian):
            assert of(lambda x: x * x, x).shape == of(x * x, x).shape
            assert [j.shape for j in of(lambda x: [x * x], x)] == [of(x * x, x).shape]
        assert pg.hessian(lambda x: pg.sum(x * x), x).shape == (2, 3, 2, 3)


@pytest.mark.parametrize("chosen", [[1], [2, 1], [8], [7, 6], [8, 2, 7, 1, 1, 6]])
def test_second_derivatives_along_one_axis_do_not_meet_infinite_slopes_along_others(chosen):
    """What no path leads to is zero, though zeros come from a direction, a mask and a join."""

    def f(x):
        a = x * pg.cos(x[0])
        steep = pg.concatenate([x, (pg.sin(x[::-1]) - x[::-1]) * x[0]]) ** -2
        joined = pg.concatenate([pg.log(a[3:4]) * a[0], steep])
        masked = pg.where(np.arange(9) > 3, joined, joined * joined)
        return pg.sum(masked[np.array(chosen)])

    def asked(x):
        return pg.hessian_diagonal(f(x), x), pg.hessian(f(x), x)

    found, whole = pg.compile(pg.trace(asked, pg.spec(4)))(np.array([0.0, 0.7, 0.6, 1.0]))
    finite = np.isfinite(np.diag(whole))
    assert finite.any()
    np.testing.assert_allclose(found[finite], np.diag(whole)[finite])


def test_jit_and_vmap_are_decorators_with_options():
    @pg.jit(static_argnames="n", max_entries=3)
    def power(x, n):
        return x**n

    @pg.vmap(in_axes=(0, None))
    def shifted(x, y):
        return pg.sum(x) + y

    assert power.max_entries == 3
    np.testing.assert_array_equal(power(np.arange(3.0), n=2), [0.0, 1.0, 4.0])
    np.testing.assert_array_equal(shifted(np.ones((2, 3)), 1.0), [4.0, 4.0])


def test_a_traced_argument_that_is_to_be_a_number_tells_how_to_make_it_static():
    def repeated(x, count):
        for _ in range(count):
            x = x * 2.0
        return x

    with pytest.raises(pg.PrimgraphError) as error:
        pg.jit(repeated)(1.0, 3)
    assert "static_argnames='count'" in error.value.hint
    assert pg.jit(repeated, static_argnames="count")(1.0, 3) == 8.0
    with pytest.raises(pg.PrimgraphError) as error:
        pg.jit(lambda x, n: np.zeros(n) + x)(1.0, 3)
    assert "under pg.jit, static_argnames='n'" in error.value.hint


# Variables that leak from a function that is traced.


@pytest.mark.parametrize(
    "use",
    [
        lambda leaked: leaked + 1.0,
        lambda leaked: np.sin(leaked),
        lambda leaked: np.asarray(leaked),
        lambda leaked: float(leaked),
        lambda leaked: bool(leaked),
        lambda leaked: pg.jit(lambda x: x + leaked)(np.ones(3)),
        lambda leaked: pg.jit(lambda x: leaked)(np.ones(3)),
        lambda leaked: pg.jit(lambda x: pg.cond(x[0] > 0, lambda: leaked, lambda: x))(np.ones(3)),
        lambda leaked: pg.grad(lambda x: pg.sum(x * leaked))(np.ones(3)),
        lambda leaked: pg.vmap(lambda x: x * leaked)(np.ones(3)),
    ],
)
@pytest.mark.parametrize("trace", ["jit", "trace", "vmap"])
def test_a_variable_that_leaked_is_told_with_the_function_and_the_line(use, trace):
    kept = []

    def leaky(x):
        kept.append(x * 2.0)  # the line that made it
        return x

    if trace == "trace":
        pg.trace(leaky, pg.spec(3))
    else:
        (pg.jit if trace == "jit" else pg.vmap)(leaky)(
            np.ones((2, 3)) if trace == "vmap" else np.ones(3)
        )
    with pytest.raises(pg.BuildError) as caught:
        use(kept[0])
    assert "the function leaky" in str(caught.value)
    # What a sample is computed from is forgotten.
    if trace != "vmap":
        assert "kept.append(x * 2.0)  # the line that made it" in str(caught.value)
