"""Sparse Jacobians and Hessians: equal to dense ones, in every form, and differentiable again."""

import copy
import pickle
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from program_sparsity import check_sparse_values
from random_programs import random_program

import primgraph as pg

N = 9


def chained(x):
    """Rosenbrock's function, in a chain."""
    return pg.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def headed(x):
    """A function whose Jacobian has a full row, a full column, a diagonal and a band."""
    return pg.concatenate([x[:1] * pg.sum(x), pg.sin(x) * x, x[1:] * x[:1], x[2:] - x[:-2]])


def several(x, w):
    return [pg.reshape(x, (3, 3)) @ w, pg.sum(w * w), x[::2] * w[0]]


def point(seed=0, n=N):
    return np.random.default_rng(seed).uniform(0.5, 1.5, n)


def banded(n, width):
    i, j = np.indices((n, n))
    return abs(i - j) <= width


CHAIN = banded(N, 1)


def mask_of(function, *arrays):
    """Where the dense Jacobian is not zero at some point."""
    return dense_of(function, *arrays) != 0


def dense_of(function, *arrays):
    found = pg.jacobian(function, [*arrays])
    rows = [found] if not isinstance(found, tuple | list) else found
    if isinstance(rows[0], np.ndarray):
        rows = [rows]
    sizes = [a.size for a in arrays]
    blocks = [[b.reshape(-1, n) for b, n in zip(row, sizes, strict=True)] for row in rows]
    return np.block(blocks)


def test_elements_are_those_of_a_dense_jacobian_in_every_mode_and_format():
    x = point()
    expected = pg.jacobian(headed, x)
    with pg.Program() as program:
        v = pg.data("v", (N,))
        matrices = [
            pg.sparse_jacobian(headed, v, pattern=expected != 0, mode=mode, format=format)
            for mode in (None, "forward", "reverse", "both")
            for format in ("csr", "csc", "coo")
        ]
        outputs = [m.data for m in matrices] + [m.to_dense() for m in matrices[:3]]
        values = pg.Executor().run(program, {"v": x}, outputs)
    for found, data in zip(matrices, values, strict=False):
        dense = np.zeros(found.shape)
        dense[found.rows, found.cols] = data
        np.testing.assert_allclose(dense, expected, rtol=1e-13, atol=1e-13)
        assert found.nnz == np.count_nonzero(expected)
        assert found.dtype == np.float64
    for dense in values[-3:]:
        np.testing.assert_allclose(dense, expected, rtol=1e-13, atol=1e-13)
    assert pg.sparse_jacobian(headed, x, pattern=expected != 0).coloring.count <= 6


def test_elements_are_those_of_a_dense_hessian_by_every_method():
    x = point()
    expected = pg.hessian(chained, x)
    with pg.Program() as program:
        v = pg.data("v", (N,))
        matrices = [
            pg.sparse_hessian(
                chained, v, pattern=CHAIN, method=method, triangle=triangle, format=format
            )
            for method in ("star", "acyclic", "columns", "auto")
            for triangle in (None, "lower", "upper")
            for format in ("csr", "csc", "coo")
        ]
        outputs = [m.data for m in matrices] + [m.to_dense() for m in matrices[:9]]
        values = pg.Executor().run(program, {"v": x}, outputs)
    for number, (found, data) in enumerate(zip(matrices, values, strict=False)):
        assert found.coloring.count == (2 if 9 <= number < 18 else 3)
        assert found.nnz == (3 * N - 2 if found.triangle is None else 2 * N - 1)
        stored = {None: lambda m: m, "lower": np.tril, "upper": np.triu}[found.triangle]
        dense = np.zeros((N, N))
        dense[found.rows, found.cols] = data
        np.testing.assert_allclose(dense, stored(expected), rtol=1e-13)
    for dense in values[-9:]:
        np.testing.assert_allclose(dense, expected, rtol=1e-13)
    dense = pg.sparse_hessian(chained, x, pattern=CHAIN).to_dense()
    np.testing.assert_array_equal(dense, dense.T)


def test_several_inputs_and_outputs_are_rows_and_columns_one_after_the_other():
    x, w = point(1), point(2, 3)
    expected = dense_of(several, x, w)
    found = pg.sparse_jacobian(several, [x, w], pattern=expected != 0)
    np.testing.assert_allclose(found.to_dense(), expected, rtol=1e-13)
    loss = lambda x, w: pg.sum(pg.tanh(several(x, w)[0]))  # noqa: E731
    blocks = pg.hessian(loss, [x, w])
    full = np.block([[b.reshape(-1, n) for b, n in zip(r, (9, 3), strict=True)] for r in blocks])
    found = pg.sparse_hessian(loss, [x, w], pattern=np.abs(full) > 0)
    np.testing.assert_allclose(found.to_dense(), full, rtol=1e-12, atol=1e-14)


def test_values_are_variables_that_are_differentiated_again():
    x = point(3)

    def third(x):
        values = pg.sparse_hessian(chained, x, pattern=CHAIN).data
        return pg.sum(pg.sin(values / 100.0))

    def dense(x):
        return pg.sum(pg.sin(pg.hessian(chained, x) / 100.0))

    np.testing.assert_allclose(pg.grad(third)(x), pg.grad(dense)(x), rtol=1e-10)
    with pg.Program() as program:
        v = pg.data("v", (N,))
        matrix = pg.sparse_hessian(chained, v, pattern=CHAIN)
        forward = pg.forward_grad(matrix.data, v)
        whole = pg.forward_grad(pg.hessian(chained, v), v)
        found = pg.Executor().run(program, {"v": x}, [matrix.data, forward, whole])
    rows, columns = np.nonzero(CHAIN)
    np.testing.assert_allclose(found[1], found[2][rows, columns], rtol=1e-12)


def test_matrices_of_derivatives_are_indexed_and_have_few_passes():
    x = point(4)
    expected, hessian = pg.jacobian(headed, x), pg.hessian(chained, x)
    with pg.Program() as program:
        v = pg.data("v", (N,))
        jacobian = pg.Jacobian(headed, v, sparse=True, pattern=expected != 0)
        second = pg.Hessian(chained, v, sparse=True, pattern=CHAIN)
        rows = [jacobian[3], jacobian[:, 2], jacobian[1:7:2, [0, 3]], second[...], second[-1, -2:]]
        got = pg.Executor().run(program, {"v": x}, rows)
        assert second.passes.forward == 3
        assert jacobian.passes.forward + jacobian.passes.reverse <= 6
        block = pg.Jacobian(several, [v, v[:3]], sparse=True, blocks=True, pattern=np.ones((9, 12)))
        (corner,) = pg.Executor().run(program, {"v": x}, [block[2][0][...]])
    wanted = [expected[3], expected[:, 2], expected[1:7:2][:, [0, 3]], hessian, hessian[-1, -2:]]
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    np.testing.assert_allclose(corner, np.eye(9)[::2] * x[0])


def test_tensors_arrays_traces_and_saved_files_have_the_same_values(tmp_path):
    x = point(5)
    function = pg.sparse_hessian(chained, pattern=CHAIN, triangle="lower")
    expected = function(x)
    tensor = pg.tensor(x, requires_grad=True)
    on_tensor = function(tensor)
    np.testing.assert_array_equal(on_tensor.data.numpy(), expected.data)
    pg.sum(on_tensor.data).backward()
    slope = pg.grad(lambda x: pg.sum(pg.tril(pg.hessian(chained, x))))(x)
    np.testing.assert_allclose(tensor.grad.numpy(), slope, rtol=1e-12)
    kernel = pg.compile(pg.trace(lambda x: function(x).data, pg.spec((N,))))
    np.testing.assert_array_equal(kernel(x), expected.data)
    kernel.save(str(tmp_path / "second.py"))
    text = (tmp_path / "second.py").read_text()
    assert "import numpy as np" in text
    assert "primgraph" not in text.replace("primgraph ", "").split('"""')[0].partition("import")[2]
    found = pg.compile(pg.trace(function, pg.spec((N,))))(x)
    assert isinstance(found, pg.SparseMatrix)
    np.testing.assert_array_equal(found.data, expected.data)
    batch = np.stack([x, x + 1.0])
    rows = pg.vmap(lambda x: function(x).data)(batch)
    np.testing.assert_allclose(rows[1], function(x + 1.0).data, rtol=1e-14)
    assert pickle.loads(pickle.dumps(pg.sparse_hessian(pg.sum, pattern=CHAIN))).name


def test_dtypes_empty_arrays_and_what_does_not_depend():
    x = point(6).astype(np.float32)
    found = pg.sparse_hessian(chained, x, pattern=CHAIN)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.to_dense(), pg.hessian(chained, x), rtol=1e-5)
    empty = pg.sparse_jacobian(lambda x: x * x, np.zeros(0), pattern=np.zeros((0, 0)))
    assert empty.data.shape == (0,)
    constant = pg.sparse_jacobian(lambda x: pg.zeros(3) + 1.0, x, pattern=np.ones((3, N)))
    np.testing.assert_array_equal(constant.to_dense(), np.zeros((3, N)))
    linear = pg.sparse_jacobian(lambda x: 3.0 * x, x, pattern=np.eye(N))
    np.testing.assert_array_equal(linear.data, np.full(N, 3.0))
    none = pg.sparse_jacobian(lambda x: x[:2] * 2.0, x, pattern=np.zeros((2, N)))
    assert none.to_dense().shape == (2, N)


def test_a_structural_zero_is_zero_beside_infinite_slopes():
    x = np.array([0.0, 1.0, 4.0])
    found = pg.sparse_jacobian(pg.sqrt, x, pattern=np.eye(3))
    np.testing.assert_array_equal(found.to_dense(), np.diag([np.inf, 0.5, 0.25]))
    pair = lambda x: pg.sqrt(x[:-1]) * x[1:]  # noqa: E731
    found = pg.sparse_jacobian(pair, x, pattern=np.eye(2, 3) + np.eye(2, 3, 1))
    assert found.to_dense()[0, 2] == 0.0
    assert found.to_dense()[1, 0] == 0.0
    np.testing.assert_allclose(found.to_dense()[1], [0.0, 2.0, 1.0])


def test_what_cannot_be_had_is_refused(monkeypatch):
    x = point()
    for error, words, options in [
        (
            pg.ShapeError,
            "a pattern of 3 x 3 is given for 9 outputs and 9 inputs",
            {"pattern": np.eye(3)},
        ),
        (pg.OptionError, "a mode is 'forward', 'reverse' or 'both'", {"mode": "up"}),
        (pg.OptionError, "a format is one of csr, csc, coo", {"format": "bsr"}),
        (pg.OptionError, "an order is one of", {"order": "random"}),
        (pg.ArgumentError, "a pattern or a mask", {"pattern": "dense"}),
    ]:
        with pytest.raises(error, match=words):
            pg.sparse_jacobian(lambda x: x * x, x, **{"pattern": np.eye(N), **options})
    with pytest.raises(pg.OptionError, match="a triangle is 'lower' or 'upper'"):
        pg.sparse_hessian(chained, x, pattern=CHAIN, triangle="left")
    with pytest.raises(pg.OptionError, match="a method is one of"):
        pg.sparse_hessian(chained, x, pattern=CHAIN, method="direct")
    with pytest.raises(pg.NotScalarError):
        pg.sparse_hessian(lambda x: x * x, x, pattern=CHAIN)
    with pytest.raises(pg.ArgumentError, match="takes a function of tensors"):
        pg.sparse_jacobian(pg.tensor(x), pg.tensor(x))
    with pytest.raises(pg.OptionError, match="sizes that have names"):
        pg.trace(lambda x: pg.sparse_jacobian(pg.sin, x, pattern=np.eye(3)).data, pg.spec(("n",)))
    with pytest.raises(pg.OptionError, match=r"pg.sparse_jacobian\(function, tensor\)"):
        pg.Jacobian(pg.sin, pg.tensor(x, requires_grad=True), sparse=True)
    with pg.Program():
        v = pg.data("v", (N,))
        with pytest.raises(pg.OptionError, match="is_batched"):
            pg.Jacobian(pg.sin, v, True, sparse=True)
        matrix = pg.sparse_jacobian(pg.sin(v), v, pattern=np.eye(N), format="coo")
        with pytest.raises(pg.OptionError, match="no numbers yet"):
            matrix.to_scipy()
        with pytest.raises(pg.OptionError, match="no indptr"):
            _ = matrix.indptr
        with pytest.raises(pg.ArgumentError, match="9 values"):
            matrix.to_scipy(np.ones(3))
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(pg.OptionError, match="SciPy"):
        pg.sparse_jacobian(pg.sin, x, pattern=np.eye(N)).to_scipy()


def test_matrices_of_scipy_have_the_elements():
    pytest.importorskip("scipy.sparse")
    x = point(7)
    expected = pg.jacobian(headed, x)
    for format in ("csr", "csc", "coo"):
        found = pg.sparse_jacobian(headed, x, pattern=expected != 0, format=format).to_scipy()
        assert found.format == format
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-13)
    again = pg.sparse_jacobian(headed, x, pattern=found)
    np.testing.assert_allclose(again.to_dense(), expected, rtol=1e-13)


def test_the_pattern_is_found_from_the_program():
    x = point(8)
    found = pg.sparse_hessian(chained, x)
    assert found.pattern == pg.Pattern.from_dense(CHAIN)
    assert found.note == ""
    np.testing.assert_allclose(found.to_dense(), pg.hessian(chained, x), rtol=1e-13)
    found = pg.sparse_jacobian(headed, x)
    np.testing.assert_allclose(found.to_dense(), pg.jacobian(headed, x), rtol=1e-13, atol=1e-15)
    with pg.Program() as program:
        v = pg.data("v", (N,))
        rows = pg.Hessian(chained, v, sparse=True)[2], pg.Jacobian(headed, v, sparse=True)[4]
        got = pg.Executor().run(program, {"v": x}, rows)
    np.testing.assert_allclose(got[0], pg.hessian(chained, x)[2], rtol=1e-13)
    np.testing.assert_allclose(got[1], pg.jacobian(headed, x)[4], rtol=1e-13)


def test_a_value_between_is_an_input_beside_what_it_is_computed_from():
    with pg.Program() as program:
        v = pg.data("v", (N,))
        w = pg.sin(v)
        y = w[1:] * v[:-1] + w[:-1] ** 2
        for inputs in ([v, w], [w, v]):
            sparse, dense = pg.sparse_jacobian(y, inputs), pg.Jacobian(y, inputs)
            hessian, full = pg.sparse_hessian(pg.sum(y), inputs), pg.Hessian(pg.sum(y), inputs)
            wanted = [sparse.to_dense(), dense[:], hessian.to_dense(), full[:]]
            got = pg.Executor().run(program, {"v": point(5)}, wanted)
            np.testing.assert_allclose(got[0], got[1], rtol=1e-13, atol=1e-15)
            np.testing.assert_allclose(got[2], got[3], rtol=1e-13, atol=1e-15)
            assert pg.jacobian_sparsity(y, inputs) == pg.Pattern.from_dense(got[1])
            assert pg.hessian_sparsity(pg.sum(y), inputs) == pg.Pattern.from_dense(got[3])


def test_sizes_between_may_be_unknown():
    with pg.Program() as program:
        v, samples = pg.data("v", (N,)), pg.data("samples", (None, N))
        means = pg.mean(samples * v, axis=0) ** 2
        found = pg.sparse_jacobian(means, v), pg.sparse_hessian(pg.sum(means), v)
        wanted = [*(m.to_dense() for m in found), pg.jacobian(means, v)]
        feed = {"v": point(), "samples": point(1, 3 * N).reshape(3, N)}
        jacobian, hessian, dense = pg.Executor().run(program, feed, wanted)
    np.testing.assert_allclose(jacobian, dense, rtol=1e-13)
    np.testing.assert_allclose(hessian, dense / point(), rtol=1e-13)


def test_a_pattern_that_is_too_small_is_told_with_the_element_and_the_line():
    x = point(9)
    with pytest.raises(pg.CheckError, match=r"lacks element \(0, 1\), and 7 others") as caught:
        pg.sparse_jacobian(lambda x: x[1:] * x[:-1], x, pattern=np.eye(N - 1, N), check=True)
    assert "element (0,) of output 0 may depend on element (1,) of input 0" in str(caught.value)
    assert "x[1:] * x[:-1]" in str(caught.value)
    with pytest.raises(pg.CheckError, match=r"derivative by element \(0,\) of input 0 may depend"):
        pg.sparse_hessian(chained, x, pattern=np.eye(N), check=True)
    wide = pg.sparse_hessian(chained, x, pattern=banded(N, 2), check=True)
    np.testing.assert_allclose(wide.to_dense(), pg.hessian(chained, x), rtol=1e-13)


def test_indices_that_are_fed_are_told():
    with pg.Program() as program:
        v, index = pg.data("v", (N,)), pg.data("index", (4,), "int64")
        found = pg.sparse_jacobian(pg.sin(v)[index] * 2.0, v)
        assert found.nnz == 4 * N
        assert "test_sparse_derivatives.py" in found.note
        assert f"{4 * N}, 100 % of all" in repr(found)
        assert pg.sparse_jacobian(pg.sin(v)[np.array([3, 1])], v).note == ""
        feed = {"v": point(), "index": np.array([1, 0, 5, 1])}
        (dense,) = pg.Executor().run(program, feed, [found.to_dense()])
    expected = 2.0 * np.diag(np.cos(point()))[[1, 0, 5, 1]]
    np.testing.assert_allclose(dense, expected, rtol=1e-14)


@pytest.mark.filterwarnings("ignore")
def test_elements_are_those_of_dense_jacobians_of_random_programs():
    seen = Counter()
    for seed in range(16):
        check_sparse_values(random_program(seed), seen)
    assert seen["sparse values"] > 8


def grid(x):
    """A nonlinearity of a 5-point Laplacian on a grid of 5 by 6."""
    u = pg.pad(pg.reshape(x, (5, 6)), 1)
    along = u[2:, 1:-1] + u[:-2, 1:-1] - 4.0 * u[1:-1, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return pg.ravel(along + pg.exp(u[1:-1, 1:-1]) * u[1:-1, 1:-1])


PICKED = np.array([4, 0, 2, 2, 7])


def spread(x):
    """Elements that are picked, set, turned, chosen, split and summed in twos."""
    y = pg.set_slice(x[8:16] * x[0], slice(1, 6), pg.sin(x[PICKED]) * x[5:10])
    chosen = pg.where(y > 0.5, y, x[:8] ** 2) / (2.0 + y * y)
    pairs = pg.sum(pg.reshape(x, (-1, 2)) ** 3, axis=1)
    return pg.concatenate([chosen[::-1], pairs, pg.stack([x[:3], x[3:6]], axis=1).ravel()])


def test_elements_of_stencils_are_had_without_products():
    for function, n in ((grid, 30), (spread, 30), (headed, N)):
        x = np.random.default_rng(n).uniform(0.3, 1.2, n)
        expected = pg.jacobian(function, x)
        with pg.Program() as program:
            v = pg.data("v", (n,))
            direct = pg.sparse_jacobian(function, v)
            products = pg.sparse_jacobian(function, v, mode="forward")
            lower = pg.sparse_hessian(lambda x: pg.sum(pg.tanh(function(x))), v, triangle="lower")  # noqa: B023
            outputs = [direct.data, products.data, lower.data]
            found = pg.Executor().run(program, {"v": x}, outputs)
        rows, columns = direct.rows, direct.cols
        np.testing.assert_allclose(found[0], expected[rows, columns], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found[1], expected[rows, columns], rtol=1e-12, atol=1e-14)
        second = pg.hessian(lambda x: pg.sum(pg.tanh(function(x))), x)  # noqa: B023
        scale = np.abs(second).max()
        got = second[lower.rows, lower.cols]
        np.testing.assert_allclose(found[2], got, rtol=1e-10, atol=1e-13 * scale)
    graph = pg.trace(lambda x: pg.sparse_hessian(chained, x).data, pg.spec(1000))
    assert all(len(v.shape) == 1 for e in graph.body for v in e.outputs)
    graph = pg.trace(lambda x: pg.sparse_jacobian(grid, x).data, pg.spec(30))
    assert not any(v.shape[0] == 5 and len(v.shape) > 2 for e in graph.body for v in e.outputs)


def _cubic(x):
    return pg.sum(x[1:] ** 2 * x[:-1]) + pg.sum(x**3)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("triangle", [None, "lower", "upper"])
def test_sparse_matrices_compute_as_dense_ones_do(format, triangle):
    x, v, many = np.arange(1.0, 6.0), np.arange(5.0), np.arange(10.0).reshape(5, 2)
    dense = pg.hessian(_cubic)(x)
    matrix = pg.sparse_hessian(_cubic, format=format, triangle=triangle)(x)
    assert matrix.ndim == 2
    for found, expected in [
        (matrix @ v, dense @ v),
        (v @ matrix, v @ dense),
        (matrix @ many, dense @ many),
        (many.T @ matrix, many.T @ dense),
        (matrix.T.toarray(), dense),
        (np.asarray(matrix, np.float32), dense),
        ((2 * matrix / 4).toarray(), dense / 2),
        ((-matrix).toarray(), -dense),
        ((matrix @ pg.tensor(v)).numpy(), dense @ v),
        ((pg.tensor(v) @ matrix).numpy(), dense @ v),
    ]:
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_transposed_jacobians_are_those_of_dense_ones(format):
    def function(x):
        return pg.stack([x[0] * x[1], x[2] ** 2, x[1] * x[4]])

    x = np.arange(1.0, 6.0)
    dense = pg.jacobian(function)(x)
    matrix = pg.sparse_jacobian(function, format=format)(x)
    assert matrix.T.shape == (5, 3)
    np.testing.assert_array_equal(matrix.T.toarray(), dense.T)
    np.testing.assert_allclose(matrix.T @ np.arange(3.0), dense.T @ np.arange(3.0))
    np.testing.assert_allclose(np.arange(3.0) @ matrix, np.arange(3.0) @ dense)


def test_derivatives_go_through_products_with_sparse_matrices():
    x, v = np.arange(1.0, 6.0), np.linspace(-1.0, 1.0, 5)

    def product(hessian, turned):
        return lambda x, v: pg.sum((v @ hessian(x) if turned else hessian(x) @ v) ** 2)

    for turned in (False, True):
        found, expected = (
            pg.jit(pg.grad(product(h(_cubic), turned), (0, 1)))(x, v)
            for h in (pg.sparse_hessian, pg.hessian)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_products_that_do_not_fit_and_sparse_matrices_without_numbers_are_refused():
    matrix = pg.sparse_hessian(_cubic)(np.ones(5))
    for other in (np.ones(7), 3.0, np.ones((5, 2, 2))):
        with pytest.raises(pg.ShapeError, match="has no product with an array of shape"):
            matrix @ other
    for wrong in (lambda: matrix * "text", lambda: matrix * np.ones(5)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(pg.OptionError, match="has no numbers yet"):
        pg.jit(lambda x: np.asarray(pg.sparse_hessian(_cubic)(x)), rebind=False)(np.ones(5))


@pytest.mark.parametrize("name", ["jacobian", "hessian"])
def test_a_python_integer_beside_a_function_is_refused(name):
    with pytest.raises(pg.ArgumentError, match="the number of an argument or the point") as error:
        getattr(pg, name)(lambda x: x * x, 0)
    assert f"pg.{name}(f, argnums=0)" in error.value.hint
    assert f"pg.{name}(f)(0.0)" in error.value.hint


def test_several_arguments_are_chosen_by_argnums():
    def function(x, w, scale=1.0):
        return x[1:] * w * scale + x[:-1] ** 2

    x, w = np.arange(1.0, 6.0), np.linspace(1.0, 2.0, 4)
    by_x, by_w = pg.jacobian(function, argnums=(0, 1))(x, w, scale=3.0)
    for argnums, dense in [
        (0, by_x),
        (1, by_w),
        (-1, by_w),
        ((0, 1), np.hstack([by_x, by_w])),
        ((1, 0), np.hstack([by_w, by_x])),
    ]:
        found = pg.sparse_jacobian(function, argnums=argnums)
        np.testing.assert_allclose(found(x, w, scale=3.0).toarray(), dense)
        again = pickle.loads(pickle.dumps(pg.sparse_jacobian(pg.multiply, argnums=argnums)))
        np.testing.assert_allclose(again(w, w).toarray()[:, :4], np.diag(w))
        traced = pg.jit(lambda x, w, found=found: found(x, w, scale=3.0).toarray())
        np.testing.assert_allclose(traced(x, w), dense)
    np.testing.assert_allclose(
        pg.sparse_jacobian(function)(x, w).toarray(), by_x - 2 * np.eye(4, 5, 1) * w[:, None]
    )
    np.testing.assert_allclose(
        pg.sparse_hessian(lambda x, w: pg.sum(function(x, w) ** 2), argnums=1)(x, w).toarray(),
        2.0 * np.diag(x[1:] ** 2),
    )
    with pytest.raises(pg.ArgumentError, match="there is no argument 2 in a call with 2"):
        pg.sparse_jacobian(function, argnums=2)(x, w)
    with pytest.raises(pg.ArgumentError, match="argnums=0"):
        pg.sparse_jacobian(function, 0)


# Functions of SciPy take sparse matrices.


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_functions_of_scipy_take_sparse_matrices(format):
    sparse = pytest.importorskip("scipy.sparse")
    linalg = pytest.importorskip("scipy.sparse.linalg")
    x, b = np.arange(1.0, 6.0), np.arange(5.0)
    matrix, dense = pg.sparse_hessian(_cubic, format=format)(x), pg.hessian(_cubic)(x)
    assert sparse.issparse(matrix)
    assert isinstance(matrix, sparse.sparray)
    assert isinstance(matrix, pg.SparseMatrix)
    unit = sparse.eye_array(5, format="csr")
    expected = np.linalg.solve(dense, b)
    # SciPy warns that it converts what is in coordinates.
    solved = linalg.spsolve(matrix if format != "coo" else matrix.tocsr(), b)
    for found, numbers in [
        (solved, expected),
        (linalg.gmres(matrix, b, rtol=1e-13)[0], expected),
        (linalg.splu(sparse.csc_array(matrix)).solve(b), expected),
        (linalg.norm(matrix), np.linalg.norm(dense)),
        (linalg.eigsh(matrix, k=1)[0], np.linalg.eigvalsh(dense)[-1:]),
        (sparse.kron(matrix, unit).toarray(), np.kron(dense, np.eye(5))),
        (sparse.tril(matrix).toarray(), np.tril(dense)),
        ((matrix + unit).toarray(), dense + np.eye(5)),
        ((unit - matrix).toarray(), np.eye(5) - dense),
        ((matrix - matrix).toarray(), 0.0 * dense),
        ((matrix @ matrix).toarray(), dense @ dense),
        ((matrix @ unit).toarray(), dense),
        ((unit @ matrix).toarray(), dense),
        ((matrix * matrix).toarray(), dense * dense),
        (matrix.diagonal(), np.diag(dense)),
        (matrix.tocsr()[1:3].toarray(), dense[1:3]),
        (pickle.loads(pickle.dumps(matrix)).toarray(), dense),
        (copy.deepcopy(matrix).toarray(), dense),
    ]:
        np.testing.assert_allclose(found, numbers, rtol=1e-9, atol=1e-9)
    with pytest.raises(AttributeError, match=r"m.to_scipy\(\)"):
        matrix.setdiag(1.0)
    with pytest.raises(AttributeError, match="did you mean 'diagonal'"):
        _ = matrix.diagonl
    with pytest.raises(ValueError, match="always a copy"):
        np.array(matrix, copy=False)


def test_scipy_never_takes_one_triangle_for_the_matrix():
    sparse = pytest.importorskip("scipy.sparse")
    x = np.arange(1.0, 6.0)
    lower, dense = pg.sparse_hessian(_cubic, triangle="lower")(x), pg.hessian(_cubic)(x)
    assert not sparse.issparse(lower)
    for found in (sparse.csr_array(lower), lower + 0.0 * sparse.eye_array(5), lower[:]):
        np.testing.assert_allclose(found.toarray(), dense)


def test_sparse_matrices_need_no_scipy():
    text = """
import sys
import numpy as np
import primgraph as pg
matrix = pg.sparse_hessian(lambda x: pg.sum(x[1:] * x[:-1]))(np.ones(3))
assert (matrix @ np.ones(3) == [1.0, 2.0, 1.0]).all() and matrix.__class__ is pg.SparseMatrix
assert not any(name.startswith("scipy") for name in sys.modules)
sys.modules["scipy.sparse"] = None
for use in (lambda: matrix.diagonal(), lambda: matrix + matrix, lambda: matrix[0]):
    try:
        use()
    except (AttributeError, pg.OptionError) as error:
        assert "install SciPy" in str(error), error
    else:
        raise AssertionError
"""
    subprocess.run([sys.executable, "-c", text], check=True)
