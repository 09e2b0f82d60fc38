"""Loops without iterations raise no errors, although what may raise is computed before loops."""

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen.ops.table import CARDS
from primgraph.ir.facts.choices import RAISES
from primgraph.ir.interpret import interpret

la = pg.linalg
GOOD = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])


def while_loop(step, x, n):
    return pg.while_loop(lambda s: s[1] < n, lambda s: (step(s[0]), s[1] + 1), (x, 0))[0]


def bounded(step, x, n):
    return pg.fori_loop(0, n, lambda i, s: step(s), x, max_trips=9)


def nested(step, x, n):
    return pg.fori_loop(0, 2, lambda i, s: while_loop(step, s, n), x)


LOOPS = {"while": while_loop, "bounded": bounded, "nested": nested}
# Functions of a matrix and of a carry that raise for the matrix, and such a matrix.
FUNCTIONS = {
    "cholesky": (lambda a, x: la.cholesky(a) @ x, -GOOD),
    "a view of it": (lambda a, x: la.cholesky(a).T @ a @ x, -GOOD),
    "inv": (lambda a, x: la.inv(a) @ x, np.ones((3, 3))),
    "solve": (lambda a, x: la.solve(a, a[0]) * x, np.ones((3, 3))),
    "take": (lambda a, x: pg.tanh(a[pg.astype(a[0] / 2, "int64")]).sum() * x, GOOD * 9),
    "eigh": (lambda a, x: la.eigvalsh(a) * x, GOOD * np.nan),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_without_iterations_raises_nothing(loop, name):
    function, bad = FUNCTIONS[name]
    x = np.array([1.0, 2.0, 3.0])

    def program(a, x, n):
        end = LOOPS[loop](lambda v: function(a, v), x, n)
        return end, *pg.grad(pg.sum(end), [a, x])

    graph = pg.trace(program, GOOD, x, np.array(0))
    for target in ("numpy", "c"):
        kernel = pg.compile(graph, target=target)
        end, slope, other = kernel(bad, x, np.array(0))
        np.testing.assert_array_equal(end, x)
        np.testing.assert_array_equal(slope, np.zeros((3, 3)))
        np.testing.assert_array_equal(other, np.ones(3))
        with pytest.raises(pg.RunError):
            kernel(bad, x, np.array(2))
        for n in (1, 2):
            found = kernel(GOOD, x, np.array(n))
            for mine, theirs in zip(found, interpret(graph, GOOD, x, np.array(n)), strict=True):
                np.testing.assert_allclose(mine, theirs, 1e-10, 1e-12)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_a_scan_along_no_rows_of_a_symbolic_size_raises_nothing(target):
    def program(a, x, rows):
        return pg.scan(lambda c, row: (la.cholesky(a) @ c + row, None), x, rows)[0]

    x = np.array([1.0, 2.0, 3.0])
    kernel = pg.compile(pg.trace(program, GOOD, x, pg.spec(("T", 3))), target=target)
    np.testing.assert_array_equal(kernel(-GOOD, x, np.ones((0, 3))), x)
    with pytest.raises(pg.RunError, match="not positive definite"):
        kernel(-GOOD, x, np.ones((1, 3)))
    expected = np.linalg.cholesky(GOOD) @ x + 1
    np.testing.assert_allclose(kernel(GOOD, x, np.ones((1, 3))), expected, 1e-12)


def test_invariants_that_may_raise_are_computed_once():
    """In a branch before a loop that may not run, and plainly before one that runs."""
    x = np.ones(3)

    def ops(graph):
        return [e.op.name for e in graph.body]

    for loop, length in ((while_loop, None), (bounded, None), (None, 4)):

        def program(a, x, n, loop=loop, length=length):
            if length is None:
                return loop(lambda v: la.cholesky(a) @ v, x, n)
            return pg.scan(lambda c, _: (la.cholesky(a) @ c, None), x, None, length=length)[0]

        graph = pg.compile(pg.trace(program, GOOD, x, np.array(1))).graph
        inside = [name for e in graph.body for body in e.bodies for name in ops(body)]
        assert [*ops(graph), *inside].count("cholesky") == 1
        assert ("cholesky" in ops(graph)) == (length is not None)
        (loop_equation,) = [e for e in graph.body if e.op.name in ("scan", "while_loop")]
        assert "cholesky" not in [name for body in loop_equation.bodies for name in ops(body)]


@pytest.mark.parametrize("index", ["bool", "int64"])
def test_a_batch_computes_branches_that_may_raise_only_if_a_sample_takes_them(index):
    def chosen(k, a):
        return pg.switch(k, [lambda: a, lambda: la.cholesky(a), lambda: la.inv(a) * 2.0])

    def either(k, a):
        return pg.cond(k, lambda: la.cholesky(a), lambda: a)

    function, low = (either, 1) if index == "bool" else (chosen, 2)
    many = pg.vmap(function, in_axes=(0, None))
    none = np.zeros(3, index)
    np.testing.assert_array_equal(many(none, -GOOD), np.stack([-GOOD] * 3))
    some = np.array([0, low, 0]).astype(index)
    expected = np.linalg.cholesky(GOOD) if index == "bool" else 2 * np.linalg.inv(GOOD)
    np.testing.assert_allclose(many(some, GOOD), np.stack([GOOD, expected, GOOD]), 1e-12, 1e-14)
    with pytest.raises(pg.LinAlgError):
        many(some, -GOOD if index == "bool" else np.ones((3, 3)))


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_samples_that_do_not_take_a_branch_raise_nothing_in_it(target):
    """Neither in its derivatives; they have zeros by its operands, and not NaN."""

    def function(k, a, b):
        return pg.switch(
            k,
            [
                lambda: pg.sum(la.solve(a, b)),
                lambda: pg.sum(a * a) + pg.sum(b),
                lambda: pg.sum(la.cholesky(a)) * b[0],
            ],
        )

    k = np.array([1, 0, 2, 1])
    a = np.stack([np.zeros((3, 3)), GOOD, GOOD + np.eye(3), -GOOD])
    b = np.arange(12.0).reshape(4, 3) - 2.0
    slopes = pg.grad(function, argnums=(1, 2))
    known = [np.stack(rows) for rows in zip(*map(slopes, k, a, b), strict=True)]
    of_each = pg.jit(pg.vmap(slopes), target=target)
    of_all = pg.jit(
        pg.grad(lambda a, b: pg.sum(pg.vmap(function)(k, a, b)), argnums=(0, 1)), target=target
    )
    for found in (of_each(k, a, b), of_all(a, b)):
        for one, other in zip(found, known, strict=True):
            np.testing.assert_allclose(one, other, 1e-12, 1e-14)
    whole = pg.hessian(lambda b: pg.sum(pg.vmap(function)(k, a, b) ** 2.0))(b)
    assert np.isfinite(whole).all()
    independent = pg.batched_jacobian(lambda b: pg.vmap(function)(k, a, b), b)
    np.testing.assert_allclose(independent, known[1], 1e-12, 1e-14)
    # A sample that takes the branch raises as it does alone.
    with pytest.raises(pg.LinAlgError):
        of_each(np.array([0, 0, 2, 1]), a, b)


def solves_counted(a, b, n):
    def body(i, c):
        return la.solve(a - pg.astype(i, "float64") * np.eye(2), c)

    return pg.sum(pg.fori_loop(0, n, body, b) ** 2.0)


def solves_while(a, b, n):
    def body(v):
        return v[0] - np.eye(2), la.solve(v[0], v[1])

    return pg.sum(pg.while_loop(lambda v: v[0][0, 0] > 0, body, (a, b))[1] ** 2.0)


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("function", [solves_counted, solves_while])
def test_samples_whose_loop_has_ended_raise_nothing_in_it(function, target):
    """Their matrices are singular in the iterations that only others need."""
    n = np.array([3, 1, 0])
    a = np.stack([np.diag([3.0, 5.0]), np.diag([1.0, 6.0]), np.diag([0.0, 1.0])])
    b = np.arange(6.0).reshape(3, 2) + 1.0
    pair = pg.value_and_grad(function, argnums=(0, 1))
    values, slopes = pg.jit(pg.vmap(pair), target=target)(a, b, n)
    known = [pair(*given) for given in zip(a, b, n, strict=True)]
    np.testing.assert_allclose(values, [value for value, _ in known], 1e-12)
    for k in (0, 1):
        np.testing.assert_allclose(slopes[k], [slope[k] for _, slope in known], 1e-12)
    of_all = pg.grad(lambda b: pg.sum(pg.vmap(function)(a, b, n)))
    np.testing.assert_allclose(pg.jit(of_all, target=target)(b), slopes[1], 1e-12)
    # A sample that goes on raises as it does alone.
    with pytest.raises(pg.LinAlgError):
        pg.vmap(function)(a * np.array([1.0, 0.0]), b, n)


@pytest.mark.parametrize("steps", [3, None])
def test_a_loop_and_its_gradient_share_a_factor_that_the_loop_does_not_change(steps):
    def function(a, x, n):
        def body(c):
            i, y = c
            return i + 1, pg.tanh(la.cholesky(a) @ y)

        limit = n if steps is None else steps
        return pg.sum(pg.while_loop(lambda c: c[0] < limit, body, (0, x))[1])

    def ops(graph):
        inner = [name for e in graph.body for body in e.bodies for name in ops(body)]
        return [*inner, *(e.op.name for e in graph.body)]

    pair, x = pg.value_and_grad(function, argnums=(0, 1)), np.ones(3)
    kernel = pg.compile(pg.trace(pair, GOOD, x, np.array(3)))
    found = ops(kernel.graph)
    assert (found.count("cholesky"), found.count("while_loop")) == (1, 1)
    if steps is None:
        value, slopes = pg.jit(pair)(-GOOD, x, np.array(0))
        assert value == 3.0
        np.testing.assert_array_equal(slopes[0], np.zeros((3, 3)))


def test_primitives_whose_code_may_raise_say_so():
    """Else loops without iterations would fail. The exceptions call functions that never raise."""
    silent = {"reorder", "reorder_back", "det", "slogdet", "cofactors", "lu", "qr", "by_scipy"}
    fallible = {op.name for op, card in CARDS.items() if card.fallible}
    assert fallible - silent == {op.name for op in CARDS if op.fact(RAISES)}
