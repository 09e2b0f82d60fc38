"""Jacobians and Hessians: values, indices, passes, forms, samples, and what is refused."""

import itertools

import numpy as np
import pytest
from derive import build

import primgraph as pg
from primgraph.derivatives.matrices.layout import Passes
from primgraph.ir.interpret import interpret
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.elementwise import as_function_of
from primgraph.primitives.logic import greater, select
from primgraph.transforms.jacobians.strong_zeros import strong_zeros

rng = np.random.default_rng(31)


def run(program, fetches, **feed):
    return pg.Executor().run(program, feed, fetches)


def rows_of(function, *arrays):
    """The Jacobian by central differences: all outputs by all inputs, one after the other."""

    def at(*values):
        with pg.Program() as program:
            found = function(*(pg.data(f"x{i}", v.shape) for i, v in enumerate(values)))
            found = list(found) if isinstance(found, tuple | list) else [found]
        results = run(program, found, **{f"x{i}": v for i, v in enumerate(values)})
        return np.concatenate([r.reshape(-1) for r in results])

    columns = []
    for i, array in enumerate(arrays):
        for element in range(array.size):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [a.copy() for a in arrays]
                moved[i].reshape(-1)[element] += step
                sides.append(at(*moved))
            columns.append((sides[0] - sides[1]) / 2e-6)
    return np.stack(columns, axis=1)


# Known values.


def test_jacobian_of_a_product_of_two_arguments():
    known = [
        [1, 3, 0, 0, 1, 0, 2, 0],
        [2, 4, 0, 0, 0, 1, 0, 2],
        [0, 0, 1, 3, 3, 0, 4, 0],
        [0, 0, 2, 4, 0, 3, 0, 4],
    ]
    with pg.Program() as program:
        x = pg.data("x", (2, 2))
        jacobian = pg.Jacobian(pg.matmul, [x, x])
        assert jacobian.shape == (4, 8)
        assert jacobian.dtype == np.float64
        assert len(jacobian) == 4
        found = [jacobian[:], jacobian[0, :], jacobian[:, 0], *jacobian]
    values = run(program, found, x=[[1.0, 2], [3, 4]])
    np.testing.assert_array_equal(values[0], known)
    np.testing.assert_array_equal(values[1], known[0])
    np.testing.assert_array_equal(values[2], [1, 2, 0, 0])
    np.testing.assert_array_equal(values[3:], known)


def test_batched_jacobian_of_a_product():
    a, b = rng.random((2, 2, 8))
    with pg.Program() as program:
        x, y = pg.data("x", (2, 8)), pg.data("y", (2, 8))
        jacobian = pg.Jacobian(pg.multiply, (x, y), is_batched=True)
        assert jacobian.shape == (2, 8, 16)
        assert jacobian.passes == Passes(0, 0), "nothing is evaluated before it is asked for"
        row = jacobian[:, 0, :]
        assert jacobian.passes == Passes(1, 0)
        rows = jacobian[:, 0:3, :]
        assert jacobian.passes == Passes(3, 0), "row 0 is there already"
        whole = jacobian[:]
        assert jacobian.passes == Passes(8, 0), "each row is evaluated once"
        jacobian[1, 2:5, ::-1]
        assert jacobian.passes == Passes(8, 0)
    row, rows, whole = run(program, [row, rows, whole], x=a, y=b)
    known = np.stack([np.hstack([np.diag(b[i]), np.diag(a[i])]) for i in range(2)])
    np.testing.assert_array_equal(whole, known)
    np.testing.assert_array_equal(row, known[:, 0])
    np.testing.assert_array_equal(rows, known[:, 0:3])


@pytest.mark.parametrize("function", [lambda x: x * x, lambda x: pg.flip(pg.flip(x * x, 0), 0)])
def test_jacobian_of_a_square(function):
    """An elementwise function takes one pass for all; another one a pass for each row."""
    at = rng.random((2, 3, 4))
    with pg.Program() as program:
        x = pg.data("x", (2, 3, 4))
        jacobian = pg.Jacobian(function, x)
        assert jacobian.shape == (24, 24)
        found = [jacobian[:], jacobian[5], jacobian[:, 7], jacobian[[3, 4], :]]
    assert jacobian.passes in (Passes(0, 1), Passes(24, 0))
    known = np.diag(2 * at.reshape(-1))
    for value, part in zip(
        run(program, found, x=at), (known, known[5], known[:, 7], known[3:5]), strict=True
    ):
        np.testing.assert_allclose(value, part, rtol=1e-7)


def test_hessians_of_quadratic_forms():
    at = np.array([[1.0, 2], [2, 1]])
    eye = np.eye(2)
    mixed = np.array([[2.0, 1, 1, 0], [1, 0, 2, 1], [1, 2, 0, 1], [0, 1, 1, 2]])
    table = [
        (lambda x: pg.sum(x * x), 2 * np.eye(4)),
        (lambda x: pg.sum(x @ x.T), 2 * np.block([[eye, eye], [eye, eye]])),
        (lambda x: pg.sum(x @ x), mixed),
    ]
    with pg.Program() as program:
        x, w = pg.data("x", (2, 2)), pg.data("w", (2, 2))
        hessians = [pg.Hessian(function, x) for function, _ in table]
        two = pg.Hessian(lambda a, b: pg.sum(a @ a), [x, w])
        assert two.shape == (8, 8)
        found = [*(h[:] for h in hessians), two[:]]
    assert hessians[0].passes == Passes(0, 1), "an elementwise gradient takes one pass"
    assert two.passes == Passes(0, 4), "what does not matter takes none"
    *values, whole = run(program, found, x=at)
    for value, (_, known) in zip(values, table, strict=True):
        np.testing.assert_allclose(value, known, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(whole, np.block([[mixed, np.zeros((4, 4))], [np.zeros((4, 8))]]))


def test_hessian_of_what_has_more_than_one_element():
    with pg.Program():
        x, b = pg.data("x", (3,)), pg.data("b", (3, 3))
        for arguments in ((lambda a: a * a, x), (lambda a: a * a, b, True), (x * x, x)):
            with pytest.raises(RuntimeError):
                pg.Hessian(*arguments)
            with pytest.raises(pg.NotScalarError, match=r"needs a function of"):
                pg.Hessian(*arguments)
        for shape in ((), (1,), (1, 1)):
            assert pg.Hessian(lambda a, s=shape: pg.reshape(pg.sum(a), s), x).shape == (3, 3)
        for f in (pg.sum(b * b, axis=1), pg.sum(b * b, axis=1, keepdims=True)):
            assert pg.Hessian(f, b, is_batched=True).shape == (3, 3, 3)


# Indices mean what they mean in NumPy.


SHAPE = (5, 7)
INDICES = [
    2, -1, slice(None), slice(1, 4), slice(None, None, -1), slice(4, 0, -2), slice(-2, None),
    slice(3, 3), slice(10, 20), ..., None, [0, 2], [4, 0, 0], [[0, 1], [2, 3]], [],
    np.array([1, 3]), [True, False, True, False, True], np.int64(3), True,
]  # fmt: skip


def indices():
    yield from ((i,) for i in INDICES)
    for pair in itertools.product(INDICES[:11], INDICES[:11]):
        if pair.count(...) < 2 and sum(i is None for i in pair) < 2:
            yield pair
    yield from [
        ([0, 2], slice(None)), (slice(None), [6, 0, 3]), ([0, 2], [1, 5]), (2, [1, 5]),
        ([0, 2], 3), ([[0], [2]], [1, 5]), (None, 1, ..., None), (..., [0, 0]),
        (np.arange(5) > 2, slice(1, 3)), ([3, 1], slice(None, None, 2)), (..., 1, 2), (1, 2, ...),
        (slice(2, 2), 0), (0, slice(2, 2)), ([0, 1], None, [2, 3]), ([2, 1], None, slice(None)),
    ]  # fmt: skip


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.long
def test_indexing_is_that_of_an_array(batched):
    weights = rng.standard_normal((7, 5))
    shape = (3, 7) if batched else (7,)
    at = rng.standard_normal(shape)
    expected, found = [], []
    with pg.Program() as program:
        x, w = pg.data("x", shape), pg.data("w", (7, 5))
        jacobian = pg.Jacobian(lambda a: pg.tanh(a @ w), x, batched)
        assert jacobian.shape == ((3, *SHAPE) if batched else SHAPE)
        whole = jacobian[...]
        for index in indices():
            for lead in [(slice(None),), (1,), (slice(None, None, -1),)] if batched else [()]:
                full = lead + index
                try:
                    part = np.empty(jacobian.shape)[full]
                except IndexError:
                    with pytest.raises(IndexError):
                        jacobian[full]
                    continue
                found.append(jacobian[full])
                assert found[-1].shape == part.shape, full
                expected.append(full)
    matrix, *values = run(program, [whole, *found], x=at, w=weights)
    known = np.swapaxes(weights * (1 - np.tanh(at @ weights) ** 2)[..., None, :], -1, -2)
    np.testing.assert_allclose(matrix, known, rtol=1e-10)
    for index, value in zip(expected, values, strict=True):
        np.testing.assert_allclose(value, known[index], rtol=1e-10, err_msg=str(index))
    assert len(values) > 100


@pytest.mark.long
def test_only_one_index_at_a_time_is_evaluated():
    """Each index alone, from a fresh Jacobian: nothing comes from what was there before."""
    weights, at = rng.standard_normal((7, 5)), rng.standard_normal(7)
    known = (weights * (1 - np.tanh(at @ weights) ** 2)).T
    found, expected = [], []
    with pg.Program() as program:
        x, w = pg.data("x", (7,)), pg.data("w", (7, 5))
        for index in indices():
            jacobian = pg.Jacobian(lambda a: pg.tanh(a @ w), x)
            found.append(jacobian[index])
            expected.append(known[index])
            rows, columns = (len(set(n.tolist())) for n in _numbers(index))
            passes = jacobian.passes
            if expected[-1].size:
                assert passes.reverse + passes.forward == min(rows, columns), index
            else:
                assert passes == Passes(0, 0), index
    for value, part in zip(run(program, found, x=at, w=weights), expected, strict=True):
        np.testing.assert_allclose(value, part, rtol=1e-10)


def _numbers(index):
    """The numbers of the rows and columns that an index takes elements from."""
    rows, columns = np.indices(SHAPE)
    return rows[index].reshape(-1), columns[index].reshape(-1)


def test_wrong_indices_are_refused_as_numpy_does():
    with pg.Program():
        x = pg.data("x", (3,))
        jacobian = pg.Jacobian(pg.cumsum, x)
        for index in (3, -4, (0, 3), (0, 0, 0), [0, 3], (..., ...), [True, False]):
            with pytest.raises(IndexError):
                np.empty((3, 3))[index]
            with pytest.raises(pg.BoundsError):
                jacobian[index]
        for index in ("a", 1.5, {1}, (0, "a"), [1.5], ["a"], object(), 1j, [[0], [1, 2]]):
            with pytest.raises(IndexError):
                jacobian[index]
            with pytest.raises(TypeError):
                jacobian[index]
        with pytest.raises(TypeError):
            jacobian[slice("a", None)]
        with pytest.raises(pg.PrimgraphError, match="step"):
            jacobian[::0]
        assert jacobian.passes == Passes(0, 0)


# Passes.


def test_the_cheaper_side_is_chosen():
    with pg.Program():
        x, w = pg.data("x", (20,)), pg.data("w", (20, 3))

        def function(a):
            return pg.tanh(a @ w)

        assert _passes(pg.Jacobian(function, x), ()) == Passes(3, 0)
        assert _passes(pg.Jacobian(function, x), 1) == Passes(1, 0)
        assert _passes(pg.Jacobian(function, x), (slice(None), 4)) == Passes(0, 1)
        assert _passes(pg.Jacobian(function, x), (slice(None), [4, 4, 9])) == Passes(0, 2)
        assert _passes(pg.Jacobian(function, x), (1, 4)) == Passes(1, 0)
        tall = pg.Jacobian(lambda a: pg.tanh(pg.tile(a, 5)), x[:2])
        assert tall.shape == (10, 2)
        assert _passes(tall, ()) == Passes(0, 2)
        assert _passes(tall, 7) == Passes(0, 2), "from the columns"
        assert _passes(pg.Jacobian(lambda a: pg.tanh(pg.tile(a, 5)), x[:2]), 7) == Passes(1, 0)


def _passes(jacobian, index):
    jacobian[index]
    return jacobian.passes


@pytest.mark.parametrize("columns", [False, True])
def test_passes_of_one_access_are_evaluated_together(columns):
    """The size of the graph does not grow with the number of rows or columns."""
    sizes = []
    for n in (12, 40):
        with pg.Program() as program:
            x, w = pg.data("x", (n,)), pg.data("w", (n, n))
            jacobian = pg.Jacobian(lambda a, w=w: pg.tanh(pg.tanh(a @ w) @ w), x)
            whole = jacobian[:, 1:] if columns else jacobian[1:]
        assert sum((jacobian.passes.reverse, jacobian.passes.forward)) == n - 1
        sizes.append(len(pg.Executor().kernel(program, [whole]).graph))
    assert sizes[0] == sizes[1] < 40, sizes


def test_what_was_evaluated_in_a_function_is_evaluated_again_outside():
    at = rng.standard_normal(3)
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", (3, 3))
        jacobian = pg.Jacobian(lambda a: pg.tanh(a @ w), x)
        _, inside = pg.vjp(lambda a: jacobian[0] * a, x)
        outside = jacobian[0]
    m = rng.standard_normal((3, 3))
    first, second = run(program, [inside, outside], x=at, w=m)
    np.testing.assert_allclose(first, second, rtol=1e-12)


# Several inputs and outputs, and forms.


def several(a, b):
    return pg.tanh(a @ b), pg.sum(a, axis=0) * 2.0, pg.exp(pg.sum(b))


@pytest.mark.long
def test_several_inputs_and_outputs_are_concatenated():
    a, b = rng.standard_normal((2, 3)), rng.standard_normal((3, 2))
    with pg.Program() as program:
        x, y = pg.data("x", a.shape), pg.data("y", b.shape)
        jacobian = pg.Jacobian(several, [x, y])
        assert jacobian.shape == (4 + 3 + 1, 12)
        whole = jacobian[:]
        assert jacobian.passes == Passes(8, 0)
        blocks = pg.Jacobian(several, [x, y], blocks=True)
        shaped = pg.Jacobian(several, [x, y], blocks=True, flat=False)
        assert blocks.shape == (((4, 6), (4, 6)), ((3, 6), (3, 6)), ((1, 6), (1, 6)))
        assert shaped.shape[0][1] == (2, 2, 3, 2)
        assert shaped.shape[2][0] == (2, 3)
        assert (len(blocks), len(blocks[0])) == (3, 2)
        assert blocks[1, 0].shape == blocks[1][0].shape == (3, 6)
        assert blocks[1, 0, 2].shape == (6,)
        assert shaped[0][1].ndim == 4
        nested = [[b[...] for b in row] for row in blocks]
        tensors = [[b[...] for b in row] for row in shaped]
        part = shaped[0][1][0, :, 1]
    flat = [v for row in (*nested, *tensors) for v in row]
    whole, part, *values = run(program, [whole, part, *flat], x=a, y=b)
    np.testing.assert_allclose(whole, rows_of(several, a, b), atol=1e-7)
    edges = np.split(np.arange(8), [4, 7]), np.split(np.arange(12), [6])
    known = [whole[np.ix_(r, c)] for r in edges[0] for c in edges[1]]
    for value, shaped_value, expected in zip(values[:6], values[6:], known, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(shaped_value.reshape(expected.shape), expected, rtol=1e-12)
    np.testing.assert_allclose(part, values[7][0, :, 1], rtol=1e-12)


def test_a_shaped_jacobian_is_indexed_by_all_axes():
    at = rng.standard_normal((2, 3))
    with pg.Program() as program:
        x = pg.data("x", (2, 3))
        jacobian = pg.Jacobian(lambda a: a @ a.T, x, flat=False)
        assert jacobian.shape == (2, 2, 2, 3)
        indices = [..., (0, 1), (0, ..., 2), (slice(None), 0, [1, 0]), ([0, 1], [1, 1])]
        found = [jacobian[i] for i in indices]
        with pytest.raises(ValueError, match="blocks=True"):
            pg.Jacobian(lambda a: (a, a), x, flat=False)
        with pytest.raises(pg.OptionError):
            pg.Jacobian(pg.add, [x, x], flat=False)
    whole, *values = run(program, found, x=at)
    np.testing.assert_allclose(whole.reshape(4, 6), rows_of(lambda a: a @ a.T, at), atol=1e-7)
    for index, value in zip(indices[1:], values, strict=True):
        np.testing.assert_allclose(value, whole[index], rtol=1e-12)


def test_what_is_built_already_may_be_given():
    at, m = rng.standard_normal(3), rng.standard_normal((3, 2))
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", (3, 2))
        h = pg.sin(x)
        y = pg.tanh(h @ w)
        jacobian = pg.Jacobian((y, pg.sum(y)), [x, h, x])
        assert jacobian.shape == (3, 9)
        second = pg.Hessian(pg.sum(y), [x, h])
        found = [jacobian[:], second[:]]
    whole, matrix = run(program, found, x=at, w=m)
    slope = (m * (1 - np.tanh(np.sin(at) @ m) ** 2)).T
    slope = np.vstack([slope, np.sum(slope, axis=0)])
    known = np.hstack([slope * np.cos(at), slope, slope * np.cos(at)])
    np.testing.assert_allclose(whole, known, rtol=1e-10)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-10)
    assert matrix.shape == (6, 6)


def test_mixed_dtypes_have_a_common_one():
    with pg.Program() as program:
        x, w = pg.data("x", (2,), "float32"), pg.data("w", (2,), "float64")
        jacobian = pg.Jacobian(lambda a, b: (a * a, pg.astype(a, "float64") * b), [x, w])
        assert jacobian.dtype == np.float64
        found = [jacobian[:], jacobian[0], jacobian[:, 3]]
        single = pg.Jacobian(lambda a: pg.cumsum(a * a), x)[:]
    values = run(program, [*found, single], x=np.float32([1, 2]), w=[3.0, 4.0])
    known = [[2, 0, 0, 0], [0, 4, 0, 0], [3, 0, 1, 0], [0, 4, 0, 2]]
    for value, expected in zip(values, (known, known[0], [0, 0, 0, 2]), strict=False):
        assert value.dtype == np.float64
        np.testing.assert_allclose(value, expected, rtol=1e-6)
    assert values[3].dtype == np.float32


def test_unused_inputs_and_independent_outputs_have_zero_blocks():
    at = rng.standard_normal(3)
    with pg.Program() as program:
        x, w, c = (pg.data(n, (3,)) for n in "xwc")
        jacobian = pg.Jacobian(lambda a, b: (pg.cumsum(a * a), c), [x, w])
        whole = jacobian[:]
        assert jacobian.passes == Passes(0, 3)
        nothing = pg.Jacobian(lambda a: c, x)
        zero = nothing[:]
        assert nothing.passes == Passes(0, 0)
        flat = pg.Hessian(lambda a: pg.sum(a) * 2.0, x)[:]
        helper = pg.jacobian(c, x)
    whole, *zeros = run(program, [whole, zero, flat, helper], x=at)
    known = np.zeros((6, 6))
    known[:3, :3] = np.tri(3) * 2 * at
    np.testing.assert_allclose(whole, known, rtol=1e-12)
    for value in zeros:
        np.testing.assert_array_equal(value, np.zeros((3, 3)))


def test_empty_inputs_and_outputs():
    with pg.Program() as program:
        x, e = pg.data("x", (3,)), pg.data("e", (0,))
        jacobians = [pg.Jacobian(lambda a: a[:0], x), pg.Jacobian(lambda a: pg.sum(a), e)]
        assert [j.shape for j in jacobians] == [(0, 3), (1, 0)]
        found = [j[:] for j in jacobians]
        mixed = pg.Jacobian(lambda a, b: (b * 1.0, a * a), [x, e])
        found.append(mixed[:])
    values = run(program, found, x=np.ones(3), e=np.ones(0))
    assert [v.shape for v in values] == [(0, 3), (1, 0), (3, 3)]
    np.testing.assert_array_equal(values[2], 2 * np.eye(3))


@pytest.mark.long
def test_results_can_be_differentiated_again():
    at, m = rng.standard_normal(3), rng.standard_normal((3, 3))
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", (3, 3))
        jacobian = pg.Jacobian(lambda a: pg.tanh(a @ w), x)
        hessian = pg.Hessian(lambda a: pg.sum(pg.tanh(a @ w) ** 2), x)
        first = pg.jacobian(pg.sum(jacobian[:] ** 2), [x, w])
        second = pg.jacobian(hessian[0, 1:] * 2.0, x)
        third = pg.Jacobian(lambda a: pg.Hessian(lambda b: pg.sum(b**3) * pg.sum(b), a)[:], x)[:]
        outer = pg.grad(pg.sum(hessian[:]), w)
    found = run(program, [*first, second, third, outer], x=at, w=m)

    def square(a, b):
        return pg.sum(pg.Jacobian(lambda c: pg.tanh(c @ b), a)[:] ** 2)

    known = rows_of(square, at, m)
    np.testing.assert_allclose(found[0], known[0, :3], atol=1e-7)
    np.testing.assert_allclose(found[1].reshape(-1), known[0, 3:], atol=1e-7)
    known = rows_of(lambda a: 2.0 * pg.Hessian(lambda c: pg.sum(pg.tanh(c @ m) ** 2), a)[0, 1:], at)
    np.testing.assert_allclose(found[2], known, atol=1e-7)
    known = rows_of(lambda a: pg.hessian(pg.sum(a**3) * pg.sum(a), a), at)
    np.testing.assert_allclose(found[3], known, atol=1e-7)
    known = rows_of(
        lambda b: pg.sum(pg.Hessian(lambda c: pg.sum(pg.tanh(c @ b) ** 2), at_(at))[:]), m
    )
    np.testing.assert_allclose(found[4].reshape(-1), known[0], atol=1e-7)


def at_(array):
    """A constant of the program being built."""
    return pg.array(array)


# Samples.


@pytest.mark.parametrize("sample_y", [(), (1,), (2,), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize("sample_x", [(2,), (2, 2), (1, 2, 1)])
@pytest.mark.long
def test_batched_axes_are_in_order_for_every_rank(sample_x, sample_y):
    size_x, size_y = int(np.prod(sample_x)), int(np.prod(sample_y))
    at, weights = rng.standard_normal((4, *sample_x)), rng.standard_normal((size_x, size_y))

    def function(a):
        flat = pg.reshape(a, (a.shape[0], size_x))
        return pg.reshape(pg.tanh(flat @ weights), (a.shape[0], *sample_y))

    with pg.Program() as program:
        x = pg.data("x", at.shape)
        y = function(x)
        shaped = pg.batched_jacobian(y, x)
        assert shaped.shape == (4, *sample_y, *sample_x)
        flat = pg.Jacobian(function, x, is_batched=True)[:]
        assert flat.shape == (4, size_y, size_x)
        forms = pg.Jacobian(y, x, is_batched=True, flat=False)
        assert forms.shape == shaped.shape
        pieces = [pg.jacobian(y[i], x) for i in range(4)]
    shaped, flat, *pieces = run(program, [shaped, flat, *pieces], x=at)
    for i, piece in enumerate(pieces):
        own = np.moveaxis(piece, len(sample_y), 0)[i]
        np.testing.assert_allclose(shaped[i], own, rtol=1e-10)
        np.testing.assert_allclose(flat[i], own.reshape(size_y, size_x), rtol=1e-10)


def test_batched_hessian_of_two_inputs():
    a, b = rng.standard_normal((3, 2)), rng.standard_normal((3, 2))
    with pg.Program() as program:
        x, y = pg.data("x", (3, 2)), pg.data("y", (3, 2))
        hessian = pg.Hessian(lambda p, q: pg.sum(p * p * q, axis=1), [x, y], is_batched=True)
        assert hessian.shape == (3, 4, 4)
        row = hessian[:, 1, :]
        assert hessian.passes == Passes(0, 1)
        whole = hessian[:]
        assert hessian.passes == Passes(0, 4)
    row, whole = run(program, [row, whole], x=a, y=b)
    for i in range(3):
        known = np.block(
            [[np.diag(2 * b[i]), np.diag(2 * a[i])], [np.diag(2 * a[i]), np.zeros((2, 2))]]
        )
        np.testing.assert_allclose(whole[i], known, rtol=1e-12)
        np.testing.assert_allclose(row[i], known[1], rtol=1e-12)


def apart(x, w):
    h = pg.layer_norm(pg.tanh(x @ w))
    h = pg.concatenate([h, pg.flip(h, 1)], axis=1)
    h = pg.transpose(pg.transpose(h)[1:])
    left, right = pg.split(pg.softmax(h, axis=1), [3], axis=1)
    joined = left @ w[:3, :2] + pg.cumsum(right, axis=1)[:, :2] * pg.max(
        left, axis=1, keepdims=True
    )
    picked = pg.reshape(joined, (x.shape[0], 1, 2))[:, :, [1, 0, 1]]
    return pg.where(picked > 0, picked, pg.pad(picked, 0) * 2.0)


MIXING = {
    "mean": lambda x: x - pg.mean(x, axis=0),
    "flip": lambda x: pg.flip(x, 0) * 1.0,
    "transpose": lambda x: x @ pg.transpose(x)[:, :1],
    "matmul": lambda x: np.tri(4) @ x,
    "cumsum": lambda x: pg.cumsum(x, axis=0),
    "shift": lambda x: pg.concatenate([x[1:], x[:1]]),
    "gather": lambda x: x[[1, 0, 3, 2]],
    "reshape": lambda x: pg.reshape(pg.transpose(x), x.shape),
    "scatter": lambda x: pg.scatter_add(pg.zeros(x.shape), [1, 0, 3, 2], x),
    "max": lambda x: x * pg.max(x),
}


def test_independent_samples_are_recognised_by_structure():
    with pg.Program():
        x, w = pg.data("x", (4, 3)), pg.data("w", (3, 4))
        pg.Jacobian(lambda a: apart(a, w), x, is_batched=True).check_independent()
        pg.Hessian(lambda a: pg.sum(apart(a, w), axis=(1, 2)), x, True).check_independent()
        pg.Jacobian(lambda a: pg.mean(w) * a, x, True).check_independent()
        pg.Jacobian(apart(x, w), x, True).check_independent()
        with pytest.raises(ValueError, match="is_batched"):
            pg.Jacobian(lambda a: a * a, x).check_independent()


@pytest.mark.parametrize("name", MIXING)
def test_samples_that_mix_are_found(name):
    with pg.Program():
        x = pg.data("x", (4, 3))
        jacobian = pg.Jacobian(MIXING[name], x, is_batched=True, check=False)
        before = jacobian.passes
        with pytest.raises(pg.MixedSamplesError, match="may mix in") as error:
            jacobian.check_independent()
        assert "test_jacobian.py" in str(error.value)
        with pytest.raises(pg.MixedSamplesError, match=r"sample . of the outputs changes with"):
            jacobian.check_independent({"x": rng.standard_normal((4, 3))})
        assert jacobian.passes == before


BATCHED = {
    "laplacian": lambda y, x, **more: pg.laplacian(y, x, True, **more),
    "hessian_diagonal": lambda y, x, **more: pg.hessian_diagonal(y, x, True, **more),
    "divergence": lambda y, x, **more: pg.divergence(x * y[:, None], x, True, **more),
    "batched_jacobian": pg.batched_jacobian,
    "Jacobian": lambda y, x, **more: pg.Jacobian(y, x, True, **more)[:],
    "Hessian": lambda y, x, **more: pg.Hessian(y, x, True, **more)[:],
}


@pytest.mark.parametrize("form", BATCHED)
def test_every_batched_form_refuses_samples_that_mix(form):
    ask = BATCHED[form]
    with pg.Program() as program:
        x = pg.data("x", (3, 2))
        y = pg.sum(x, axis=1) ** 2 * pg.mean(x)  # here
        with pytest.raises(pg.MixedSamplesError, match="may mix in reduce_sum") as error:
            ask(y, x)
        assert "y = pg.sum(x, axis=1) ** 2 * pg.mean(x)  # here" in str(error.value)
        assert "check=False" in str(error.value)
        found = ask(y, x, check=False)
        held = ask(pg.sum(x, axis=1) ** 2 * pg.stop_gradient(pg.mean(x)), x)
    at = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert all(np.all(np.isfinite(v)) for v in run(program, [found, held], x=at))


@pytest.mark.parametrize("form", BATCHED)
def test_samples_that_a_normalisation_mixes_are_refused(form):
    with pg.Program():
        x = pg.data("x", (6, 2))
        model = pg.nn.Sequential(pg.nn.Linear(2, 4), pg.nn.BatchNorm(4), pg.nn.Linear(4, 1))
        with pytest.raises(pg.MixedSamplesError, match=r"test_jacobian\.py"):
            BATCHED[form](model(x)[:, 0], x)
        model.eval()
        BATCHED[form](model(x)[:, 0], x)


@pytest.mark.parametrize("given", ["function", "variables"])
def test_a_hessian_looks_at_the_function_and_not_at_its_gradient_alone(given):
    """The gradient of the sum of squares over all samples keeps samples apart."""

    def y(x):
        return pg.sum(x**2, axis=1) + pg.mean(x**2)

    with pg.Program():
        x = pg.data("x", (3, 2))
        with pytest.raises(pg.MixedSamplesError, match="may mix in reduce_sum"):
            pg.Hessian(y if given == "function" else y(x), x, True)
        hessian = pg.Hessian(y if given == "function" else y(x), x, True, check=False)
        with pytest.raises(pg.MixedSamplesError, match=r"sample . of the outputs changes with"):
            hessian.check_independent({"x": np.ones((3, 2))})


# At places where some slope is infinite, and others are not.

W = np.array([[2.0, -1.0], [0.5, 3.0]])
SINGULAR = {
    "stacked": lambda x: pg.stack([pg.sqrt(x[0]), x[0] * x[1]]),
    "joined": lambda x: pg.concatenate([pg.sqrt(x), x * x[1], x[:1] / x[1:]]),
    "elementwise": lambda x: pg.sqrt(x) * 2.0,
    "with a function of all": lambda x: pg.concatenate([pg.sqrt(x), W @ x]),
    "behind a product": lambda x: pg.concatenate([pg.sqrt(x[:1]) * x[1], W @ (x * x)]),
    "of a cube root": lambda x: pg.stack([x[0] ** (1 / 3), x[1] ** 2, x[0] - x[1]]),
    "turned": lambda x: pg.flip(pg.pad(pg.sqrt(x), 1) - pg.pad(x, 1))[1:3],
    "of a part": lambda x: pg.set_slice(x * 3.0, slice(0, 1), pg.sqrt(x[:1])),
    "halves": lambda x: pg.concatenate(pg.split(pg.stack([pg.sqrt(x[0]), x[1] ** 2]), 2)),
    "picked": lambda x: pg.stack([pg.log1p(pg.sqrt(x)[0]), x[1]])[np.array([1, 0])],
    "several": lambda x: (pg.sqrt(x[0]), x[0] * x[1]),
    "summed": lambda x: pg.stack([pg.sum(pg.sqrt(x[:1])), pg.sum(x**2)]),
    "of a running sum": lambda x: pg.sqrt(pg.cumsum(x)),
    "of a running sum from the end": lambda x: pg.sqrt(pg.flip(pg.cumsum(x)))[::-1] * x[1],
    "of a quotient": lambda x: pg.stack([x[1] / x[0], x[0] * x[1]]),
    "of less precision": lambda x: pg.concatenate(
        [pg.sqrt(x.astype("float32")).astype("float64"), W @ x]),
}  # fmt: skip


@pytest.mark.parametrize("name", SINGULAR)
def test_rows_columns_and_gradients_agree_where_a_slope_is_infinite(name):
    """An element that no path leads to is zero, and nothing smooth is NaN."""
    function = SINGULAR[name]
    with pg.Program() as program:
        x = pg.data("x", (2,))
        rows, columns = pg.Jacobian(function, x), pg.Jacobian(function, x)
        count = rows.shape[0]
        by_rows = [rows[i] for i in range(count)]
        by_columns = [columns[:, j] for j in range(2)]
        whole, elements = pg.Jacobian(function, x)[:], function(x)
        if not isinstance(elements, tuple):
            elements = [elements[i] for i in range(count)]
        slopes = [pg.grad(e, x) for e in elements]
    found = run(program, [*by_rows, *by_columns, whole, *slopes], x=np.array([0.0, 2.0]))
    expected = np.stack(found[-count:])
    assert np.isinf(expected).any()
    assert not np.isnan(expected).any()
    np.testing.assert_array_equal(np.stack(found[:count]), expected)
    np.testing.assert_array_equal(np.stack(found[count : count + 2], axis=1), expected)
    np.testing.assert_array_equal(found[count + 2], expected)


@pytest.mark.parametrize("name", [n for n in SINGULAR if n != "several"])
def test_gradients_of_elements_of_a_jacobian_are_second_derivatives(name):
    """Also where an element beside it has an infinite slope, however the element is taken."""
    function = SINGULAR[name]
    with pg.Program() as program:
        x = pg.data("x", (2,))
        y = function(x)
        whole, matrix = pg.jacobian(y, x), pg.Jacobian(y, x)
        expected, found, forward = [], [], []
        for i, j in itertools.product(range(y.shape[0]), range(2)):
            element = pg.grad(y[i], x, materialize_grads=True)[j]
            expected.append(pg.grad(element, x, materialize_grads=True))
            taken = whole[i, j], matrix[i, j], matrix[i, :][j], matrix[:, j][i]
            found.append([pg.grad(v, x, materialize_grads=True) for v in taken])
            forward.append([pg.forward_grad(v, x, np.array([0.0, 1.0])) for v in taken])
    at = np.array([0.0, 2.0])
    right = run(program, expected, x=at)
    assert any(np.isinf(e).any() for e in right) or name in ("with a function of all",)
    for slope, ways, along in zip(right, found, forward, strict=True):
        assert not np.isnan(slope).any()
        for result in run(program, ways, x=at):
            np.testing.assert_array_equal(result, slope)
        if np.isfinite(slope).all():
            for result in run(program, [v for v in along if v is not None], x=at):
                np.testing.assert_array_equal(result, slope[1])


@pytest.mark.parametrize("mode", [pg.grad, pg.forward_grad])
def test_rows_and_columns_of_a_whole_jacobian_have_derivatives(mode):
    with pg.Program() as program:
        x = pg.data("x", (2,))
        whole = pg.jacobian(SINGULAR["stacked"](x), x)
        found = [mode(pg.sum(whole[1]), x), mode(pg.sum(whole[:, 1]), x), mode(whole[1, 0], x)]
    row, column, element = run(program, found, x=np.array([0.0, 2.0]))
    gradient = mode is pg.grad
    np.testing.assert_array_equal(row, [1.0, 1.0] if gradient else 2.0)
    np.testing.assert_array_equal(column, [1.0, 0.0] if gradient else 1.0)
    np.testing.assert_array_equal(element, [0.0, 1.0] if gradient else 1.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[0] ** 1.5 + x[0] * x[1] ** 2 + x[2] ** 3,
        lambda x: pg.sqrt(x[0]) * x[1] + x[2] ** 3 * x[1],
        lambda x: pg.sum(pg.tanh(np.arange(6.0).reshape(2, 3) @ x)) + pg.sqrt(x[0]),
        lambda x: pg.sum(x[1:] ** 3) - pg.sum(pg.sqrt(x)[:1] * x[2]),
    ],
)
def test_traces_of_second_derivatives_where_one_is_infinite(function):
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = function(x)
        slope = pg.grad(y, x)
        diagonal = pg.hessian_diagonal(y, x)
        traces = [pg.laplacian(y, x), pg.divergence(slope, x)]
        elements = [pg.grad(diagonal[i], x) for i in (1, 2)]
        expected = [pg.grad(pg.grad(slope[i], x)[i], x) for i in (1, 2)]
        found = [diagonal, pg.hessian(y, x), *traces, *elements, *expected]
    found = run(program, found, x=np.array([0.0, 2.0, 0.5]))
    parts, matrix, laplacian, divergence, *elements = found
    assert not any(np.isnan(v).any() for v in found)
    np.testing.assert_array_equal(np.diag(matrix), parts)
    assert np.isinf(parts).tolist() == [True, False, False]
    assert laplacian == divergence == np.sum(parts)
    np.testing.assert_allclose(elements[:2], elements[2:], rtol=1e-13)


def test_parts_of_second_derivatives_stay_apart_where_one_is_infinite():
    with pg.Program() as program:
        x = pg.data("x", (2,))
        y = pg.sqrt(x[0]) + x[1] ** 2 * 1.5
        found = [
            pg.hessian_diagonal(y, x),
            pg.hessian(y, x),
            pg.divergence(SINGULAR["stacked"](x), x),
        ]
    diagonal, matrix, trace = run(program, found, x=np.array([0.0, 2.0]))
    np.testing.assert_array_equal(diagonal, [-np.inf, 3.0])
    np.testing.assert_array_equal(matrix, [[-np.inf, 0.0], [0.0, 3.0]])
    np.testing.assert_array_equal(trace, np.inf)


def test_zeros_are_followed_only_where_a_factor_may_be_infinite():
    smooth = pg.transforms.linearize(pg.trace(lambda x: pg.tanh(x @ W) / (1 + x * x), pg.spec(2)))
    part = pg.transforms.lower(smooth.with_outputs(smooth.outputs[1:]))
    assert strong_zeros(part, 1) is part


def test_zeros_of_a_choice_are_followed_only_if_those_of_both_sides_are():
    def f(seed, w, other):
        along = seed / w
        one = select(greater(other, zeros_like(other)), along, other) / w
        both = select(greater(other, zeros_like(other)), along, seed) / w
        return [one, both]

    graph = strong_zeros(build(f, *["f64[3]"] * 3), 0)
    one, both = interpret(graph, np.array([0.0, 1.0, 0.0]), np.zeros(3), np.array([-1.0, 1.0, -1]))
    np.testing.assert_array_equal(one, [-np.inf, np.inf, -np.inf])
    np.testing.assert_array_equal(both, [0.0, np.inf, 0.0])


def test_a_sum_with_what_is_not_known_to_be_zero_anywhere_has_no_mask():
    def f(seed, w):
        along = seed / w
        return (along + as_function_of(along, w)) / w

    graph = strong_zeros(build(f, *["f64[2]"] * 2), 0)
    found = interpret(graph, np.array([0.0, 1.0]), np.array([0.0, 2.0]))[0]
    np.testing.assert_array_equal(found, [np.nan, 0.5])


def wide(x, w):
    """Samples joined with other axes by a reshape, and taken out of it again."""
    n, k = x.shape
    pairs = pg.reshape(x[:, :, None] * pg.ones((1, 1, 2)), (n * k, 2))
    return pg.sum(pg.reshape(pg.tanh(pairs @ w[:2, :]), (n, k, -1)), axis=(1, 2))


APART = {
    "joined axes": wide,
    "einsum": lambda x, w: pg.einsum("bi,ij,bj->b", x, w @ pg.transpose(w), x),
    "indices that count": lambda x, w: pg.log_softmax(x)[np.arange(4), [0, 1, 2, 0]],
    "computed indices that count": lambda x, w: x[pg.arange(4), pg.argmax(x, axis=1)] ** 2,
    "labels": lambda x, w: pg.cross_entropy(x, np.array([0, 1, 2, 0]), reduction="none"),
    "take_along_axis": lambda x, w: pg.take_along_axis(x, np.ones((4, 1), int), 1)[:, 0] ** 2,
    "embedding": lambda x, w: pg.sum(w[np.array([0, 1, 2, 1])][:, :3] * x, axis=1),
    "halves": lambda x, w: pg.sum(pg.concatenate([pg.sin(x[:2]), pg.cos(x[2:])]), axis=1),
    "padded": lambda x, w: pg.sum(pg.tanh(pg.pad(x, ((2, 1), (0, 0))) @ w)[2:6], axis=1),
    "joined with constants": lambda x, w: pg.sum(
        pg.tanh(pg.concatenate([np.ones((2, 3)), x]) @ w)[2:], axis=1
    ),
    "of whole batch, constant": lambda x, w: (
        pg.sum(x * pg.floor(pg.mean(x)), axis=1) + pg.sum(x, axis=1) * pg.max(pg.stop_gradient(x))
    ),
    "normalised": lambda x, w: pg.sum(pg.layer_norm(x @ w) ** 3, axis=1),
    "attention": lambda x, w: pg.sum(
        pg.softmax(x[:, :, None] * x[:, None, :], axis=-1) @ x[:, :, None], axis=(1, 2)
    ),
    "sums that run": lambda x, w: pg.cumsum(x, axis=1)[:, -1] * pg.prod(x, axis=1),
    "turned": lambda x, w: pg.sum(pg.transpose(pg.transpose(w) @ pg.transpose(x)), axis=1) ** 2,
    "set": lambda x, w: pg.sum(pg.set_slice(x * 1.0, (slice(None), 0), x[:, 1] ** 2), axis=1),
    "branches": lambda x, w: pg.where(x[:, 0] > pg.mean(x), pg.sum(x**2, axis=1), x[:, 1]),
    "gradient": lambda x, w: pg.grad(pg.sum(pg.tanh(x @ w)), x)[:, 0],
    "norm": lambda x, w: pg.norm(x, axis=1) * pg.std(x, axis=1),
    "split": lambda x, w: pg.sum(pg.split(x, 3, axis=1)[1] * x, axis=1),
}


@pytest.mark.parametrize("name", APART)
@pytest.mark.long
def test_samples_that_stay_apart_raise_no_alarm(name):
    """And the derivatives are those of each sample."""
    at, factor = rng.uniform(0.2, 1.0, (4, 3)), rng.standard_normal((3, 4))
    with pg.Program() as program:
        x, w = pg.data("x", (4, 3)), pg.data("w", (3, 4))
        y = APART[name](x, w)
        found = pg.batched_jacobian(y, x)
        total = pg.laplacian(y, x, True)
        whole, twice = pg.jacobian(y, x), pg.hessian(pg.sum(y), x)
    found, total, whole, twice = run(program, [found, total, whole, twice], x=at, w=factor)
    each = np.arange(4)
    np.testing.assert_allclose(found, whole[each, each], rtol=1e-9, atol=1e-12)
    for i in range(4):
        assert not np.any(np.delete(whole[i], i, axis=0))
        np.testing.assert_allclose(total[i], np.trace(twice[i, :, i]), rtol=1e-9, atol=1e-9)


def test_one_sample_is_never_mixed():
    with pg.Program() as program:
        x = pg.data("x", (1, 3))
        found = pg.laplacian(pg.sum(x**2, axis=1) * pg.mean(x), x, True)
    assert run(program, [found], x=np.ones((1, 3)))[0].shape == (1,)


def test_samples_that_do_not_mix_are_told_by_numbers():
    with pg.Program() as program:
        x, w = pg.data("x", (4, 3)), pg.create_parameter((3, 2))
        size = len(program.operators())

        def function(a):
            return pg.flip(pg.flip(pg.tanh(a @ w), 0), 0) + 1e3 * pg.sum(pg.stop_gradient(a))

        jacobian = pg.Jacobian(function, x, is_batched=True, check=False)
        with pytest.raises(pg.MixedSamplesError, match="may mix in reverse"):
            jacobian.check_independent()
        recorded = len(program.operators())
        jacobian.check_independent({"x": rng.standard_normal((4, 3))})
        assert len(program.operators()) == recorded > size, "the check leaves nothing behind"
        with pytest.raises(pg.FeedError, match="missing 'x'"):
            jacobian.check_independent({})


def test_everything_needs_the_axis_of_the_samples():
    with pg.Program():
        x = pg.data("x", (4, 3))
        for function in (pg.sum, lambda a: a[:2], lambda a: pg.sum(a, axis=0)):
            with pytest.raises(pg.ShapeError, match="axis 0 counts the samples"):
                pg.Jacobian(function, x, is_batched=True)


# Helpers of the shape of arrays.


def test_helper_of_an_affine_function():
    w, b = np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([7.0, 8, 9])
    with pg.Program() as program:
        x, r, s = pg.data("x", (2,)), pg.data("r", (1, 2)), pg.data("s", ())
        y = x @ w + b
        found = [y, pg.jacobian(y, x), pg.jacobian(r @ w + b, r), pg.jacobian(2 * s + 3, s)]
        assert [v.shape for v in found[1:]] == [(3, 2), (1, 3, 1, 2), ()]
    y, matrix, wide, number = run(program, found, x=[0.1, 0.2], r=[[0.1, 0.2]], s=1.0)
    np.testing.assert_allclose(y, [7.9, 9.2, 10.5], rtol=1e-12)
    np.testing.assert_array_equal(matrix, [[1, 4], [2, 5], [3, 6]])
    np.testing.assert_array_equal(wide[0, :, 0], w.T)
    assert number == 2
    assert number.shape == ()


def test_batched_helper_of_an_affine_function():
    w, b = np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([7.0, 8, 9])
    c = np.array([1.0, 2, 3])
    with pg.Program() as program:
        x, p = pg.data("x", (10, 2)), pg.data("p", (4, 2))
        ten = pg.batched_jacobian(x @ w + b, x)
        four = pg.batched_jacobian(p[:, :, None] * c, p)
        assert (ten.shape, four.shape) == ((10, 3, 2), (4, 2, 3, 2))
    ten, four = run(program, [ten, four], x=rng.random((10, 2)), p=rng.random((4, 2)))
    np.testing.assert_array_equal(ten, np.broadcast_to(w.T, (10, 3, 2)))
    known = np.einsum("pr,q->pqr", np.eye(2), c)
    np.testing.assert_array_equal(four, np.broadcast_to(known, (4, 2, 3, 2)))


def test_helpers_give_tuples_for_sequences():
    at = rng.standard_normal(3)
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", (2,))
        y = pg.sum(x * x)
        one = pg.jacobian([y, x], x)
        two = pg.jacobian(y, [x, w])
        both = pg.jacobian((y, x), (x, w))
        square = pg.hessian(y, [x, w])
        assert [v.shape for v in one] == [(3,), (3, 3)]
        assert [v.shape for v in two] == [(3,), (2,)]
        assert [[v.shape for v in row] for row in both] == [[(3,), (2,)], [(3, 3), (3, 2)]]
        assert [[v.shape for v in row] for row in square] == [[(3, 3), (3, 2)], [(2, 3), (2, 2)]]
        assert isinstance(one, tuple)
        assert pg.hessian(y, x).shape == (3, 3)
        assert pg.batched_jacobian([x, x], x)[1].shape == (3,)
    values = run(program, [one[0], two[1], both[1][0], square[0][0], square[1][0]], x=at)
    for value, known in zip(
        values, (2 * at, np.zeros(2), np.eye(3), 2 * np.eye(3), np.zeros((2, 3))), strict=True
    ):
        np.testing.assert_array_equal(value, known)


# Arguments and text.


def test_wrong_arguments_are_refused():
    with pg.Program():
        x, n = pg.data("x", (3,)), pg.data("n", (3,), "int64")
        for make in (pg.Jacobian, pg.Hessian):
            for function in (1, None, "f", np.ones(3), [], [1.0]):
                with pytest.raises(TypeError):
                    make(function, x)
            for inputs in (1, None, [], [x, 1.0], np.ones(3)):
                with pytest.raises(TypeError):
                    make(pg.sum, inputs)
            with pytest.raises(pg.NotDifferentiable):
                make(lambda a: pg.sum(pg.astype(a, float)), n)
            with pytest.raises(pg.NotDifferentiable):
                make(pg.argmax, x)
            with pytest.raises(pg.PrimgraphError):
                make(lambda a: None, x)
        with pytest.raises(pg.ShapeError, match="one output, not 2"):
            pg.Hessian((pg.sum(x), pg.sum(x)), x)


def test_reprs_tell_what_they_are():
    with pg.Program():
        x = pg.data("x", (3,))
        assert repr(pg.Jacobian(pg.sum, x)) == "<Jacobian float64 (1, 3)>"
        assert repr(pg.Hessian(pg.sum, x)) == "<Hessian float64 (3, 3)>"
        assert repr(pg.Jacobian(pg.sum, x, blocks=True)[0][0]) == "<Block f64[1,3]>"


def test_products_with_unit_vectors_of_a_whole_jacobian_fall_away():
    """The zeros of an identity are structural: an infinite weight stays in its place."""
    with pg.Program() as program:
        x, w, u = pg.data("x", (3,)), pg.data("w", (4, 3)), pg.data("u", (2, 4))
        inner = pg.Jacobian(w @ x * pg.cumsum(w @ x), x)[:]
        outer = pg.Jacobian(u @ pg.tanh(w @ x), x)[:]
        part = pg.Jacobian(w @ x * pg.cumsum(w @ x), x)[:, 1:]
    graphs = [program.graph([v]) for v in (inner, outer, part)]
    counts = [
        sum(eqn.op.name == "matmul" for eqn in pg.compile(graph).graph.body) for graph in graphs
    ]
    assert counts == [1, 2, 2]
    rng = np.random.default_rng(3)
    feed = {"x": rng.normal(size=3), "w": rng.normal(size=(4, 3)), "u": rng.normal(size=(2, 4))}
    found = pg.Executor().run(program, feed, [inner, outer, part])
    h, w_ = feed["w"] @ feed["x"], feed["w"]
    expected = w_ * np.cumsum(h)[:, None] + h[:, None] * np.cumsum(w_, axis=0)
    np.testing.assert_allclose(found[0], expected, rtol=1e-13)
    np.testing.assert_allclose(found[1], feed["u"] @ ((1 - np.tanh(h) ** 2)[:, None] * w_), 1e-13)
    np.testing.assert_allclose(found[2], expected[:, 1:], rtol=1e-13)
    feed["w"][1, 2] = np.inf
    (found,) = pg.Executor().run(program, feed, [inner])
    assert np.all(np.isfinite(found[:1])), "no zero times infinity"
