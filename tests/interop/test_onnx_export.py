"""Kernels as models of ONNX: what evaluators compute, sizes, loops, and lacking primitives."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import primgraph as pg

onnx = pytest.importorskip("onnx", reason="models are checked by the package onnx")
from onnx.reference import ReferenceEvaluator  # noqa: E402

RTOL = {"float32": 1e-5, "float64": 1e-12}


def arrays_for(graph, size):
    rng = np.random.default_rng(0)
    return [
        rng.normal(size=[n if type(n) is int else size for n in t.shape]).astype(t.dtype)
        for t in graph.input_types
    ]


def evaluated(model, feed):
    """What ONNX's reference evaluator computes; it warns of branches that are not chosen."""
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, feed)


def require_equal(found, expected):
    for x, y in zip(found, expected, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, RTOL.get(y.dtype.name, 0), 1e-6)


def run_saved(function, *specs, folder, size=5, runtime=True):
    """Save a kernel, and compare what the evaluators and the imported model compute."""
    graph = pg.trace(function, *specs)
    kernel = pg.compile(graph)
    path = folder / "model.onnx"
    kernel.save(path, force=True)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    arrays = arrays_for(graph, size)
    expected = pg.tree.leaves(kernel(*arrays))
    feed = {x.name: array for x, array in zip(model.graph.input, arrays, strict=True)}
    require_equal(evaluated(model, feed), expected)
    found = pg.interop.from_onnx(path)(*arrays)
    require_equal(found if isinstance(found, tuple) else (found,), expected)
    if runtime:
        ort = pytest.importorskip("onnxruntime", reason="the runtime is a package of its own")
        require_equal(ort.InferenceSession(path).run(None, feed), expected)
    return model


def test_a_network_and_its_gradient(tmp_path):
    def loss(x, w):
        return pg.sum(pg.softmax(pg.tanh(x @ w)) ** 2, axis=-1)

    for dtype in ("float32", "float64"):
        specs = pg.spec((4, 3), dtype), pg.spec((3, 2), dtype)
        model = run_saved(loss, *specs, folder=tmp_path)
        assert [x.name for x in model.graph.input] == ["x", "w"]
        run_saved(lambda x, w: pg.grad(pg.sum(loss(x, w)), [x, w]), *specs, folder=tmp_path)
    assert [(x.domain, x.version) for x in model.opset_import] == [("", 18)]
    assert (model.producer_name, model.ir_version) == ("primgraph", 8)


def test_convolutions_and_their_gradients(tmp_path):
    weight = np.arange(36.0, dtype="float32").reshape(2, 2, 3, 3) / 36
    specs = [pg.spec((1, 2, 6, 5), "float32")]
    model = run_saved(lambda x: pg.conv2d(x, weight, stride=2, padding=1), *specs, folder=tmp_path)
    assert [x.dims for x in model.graph.initializer] == [[2, 18]] or model.graph.initializer
    run_saved(lambda x: pg.max_pool2d(x, 2, 1), *specs, folder=tmp_path)
    run_saved(lambda x: pg.grad(pg.sum(pg.conv2d(x, weight) ** 2), x), *specs, folder=tmp_path)


def test_symbolic_sizes_are_named_axes(tmp_path):
    def centred(x):
        return (x - pg.mean(x, axis=0)) * x.shape[0], pg.concatenate([x[::-1], x[1:]])

    for size in (2, 7):
        model = run_saved(centred, pg.spec(("N", 3)), folder=tmp_path, size=size)
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    assert model.graph.output[1].type.tensor_type.shape.dim[0].dim_param == "2*N-1"
    with pytest.raises(pg.CompileError, match="no axis of an input has the size N"):
        pg.compile(pg.trace(lambda x: pg.sum(x) * pg.dim("N"), pg.spec("2*N"))).save(
            tmp_path / "n.onnx"
        )


def test_branches_and_loops(tmp_path):
    def chosen(x):
        return pg.cond(pg.sum(x) > 100, lambda: pg.sin(x), lambda: x * 2)

    def switched(x):
        index = pg.argmax(x)
        return pg.switch(index, [lambda x=x, k=k: x + k for k in range(4)])

    def summed(x):
        def step(carry, row):
            return carry + row, carry * row

        last, rows = pg.scan(step, pg.zeros(2), x)
        return last, rows, pg.scan(step, pg.zeros(2), x, reverse=True)[1]

    def doubled(x):
        return pg.while_loop(lambda c: pg.sum(c) < 100, lambda c: 2 * c + 1, pg.abs(x))

    run_saved(chosen, pg.spec(3), folder=tmp_path)
    run_saved(switched, pg.spec(6), folder=tmp_path)
    run_saved(summed, pg.spec((4, 2)), folder=tmp_path)
    run_saved(doubled, pg.spec(3), folder=tmp_path)
    run_saved(
        lambda x: (pg.cumprod(x, 1), pg.cummax(x, 0), pg.cummin(x, 1)),
        pg.spec((3, 4)), folder=tmp_path,
    )  # fmt: skip
    run_saved(lambda x: pg.grad(pg.sum(summed(x)[1] ** 2), x), pg.spec((4, 2)), folder=tmp_path)


def test_compositions_of_operators(tmp_path):
    def functions(x):
        y = pg.abs(x)
        return (
            pg.expm1(x), pg.log1p(y), pg.logaddexp(x, 800 * x), pg.mod(x, 0.3),
            pg.floor_divide(x, 0.3), pg.sort(x), pg.argsort(x), pg.cumsum(x[::-1]),
            pg.scatter_add(x, np.array([1, 1, 3]), y[:3]), pg.norm(x * 1e-200),
            pg.searchsorted(pg.sort(x), y), x[np.array([3, 0])], pg.round(4 * x),
        )  # fmt: skip

    run_saved(functions, pg.spec(5), folder=tmp_path)
    special = (pg.special.erfc, pg.special.gammaln, pg.arctan2)
    model = run_saved(
        lambda x: (special[1](pg.abs(x)), special[2](x, 1 - x), pg.special.digamma(x * x)),
        pg.spec(5), folder=tmp_path, runtime=False,
    )  # fmt: skip
    assert len(model.graph.node) > 100


def test_positions_of_extrema_are_those_of_nan(tmp_path):
    def positions(x):
        y = pg.where(pg.abs(x) > 0.8, np.nan, x)
        return pg.argmax(y, axis=1), pg.argmin(y, axis=0)

    run_saved(positions, pg.spec((4, 3)), folder=tmp_path)


def test_the_complementary_error_function_keeps_its_digits(tmp_path):
    graph = pg.trace(pg.special.erfc, pg.spec(4))
    pg.compile(graph).save(tmp_path / "erfc.onnx")
    x = np.array([1.0, 5.0, 20.0, np.inf])
    (found,) = evaluated(onnx.load(tmp_path / "erfc.onnx"), {"x": x})
    np.testing.assert_allclose(found, pg.interpret(graph, x)[0], rtol=1e-14)


def test_linear_algebra(tmp_path):
    def functions(a, b):
        positive = a @ a.T + np.eye(4)
        q, r = pg.linalg.qr(a)
        return (
            pg.linalg.solve(a, b), pg.linalg.inv(a), pg.linalg.det(a), pg.linalg.slogdet(a), q, r,
            pg.linalg.cholesky(positive), pg.linalg.eigvalsh(positive), pg.linalg.pinv(b),
            pg.linalg.svd(b, compute_uv=False), pg.linalg.expm(a),
        )  # fmt: skip

    run_saved(functions, pg.spec((4, 4)), pg.spec((4, 2)), folder=tmp_path)

    def likelihood(a):
        factor = pg.linalg.cholesky(a @ a.T + np.eye(4))
        return pg.sum(pg.log(pg.diagonal(factor)))

    run_saved(lambda a: pg.grad(likelihood(a), a), pg.spec((4, 4)), folder=tmp_path)
    run_saved(lambda a: pg.linalg.solve(a, a @ a), pg.spec(("N", "N")), folder=tmp_path)


def test_random_numbers_are_those_of_the_kernel(tmp_path):
    def drawn(key):
        mean, cov = np.zeros(2), np.array([[2.0, 0.5], [0.5, 1.0]])
        return pg.random.uniform(key, (3,)), pg.random.multivariate_normal(key, mean, cov, (4,))

    run_saved(drawn, pg.spec((), "int64"), folder=tmp_path)


def test_fourier_transforms(tmp_path):
    def filtered(x):
        return pg.fft.irfft(pg.fft.rfft(x, norm="ortho") * 1j, 8, norm="forward")

    run_saved(filtered, pg.spec((3, 8)), folder=tmp_path)
    run_saved(lambda x: pg.abs(pg.fft.fft2(x)), pg.spec((4, 8)), folder=tmp_path)
    # The runtime transforms complex numbers of other lengths in single precision.
    run_saved(lambda x: pg.fft.irfft(pg.fft.rfft(x), 7), pg.spec(7), folder=tmp_path, runtime=False)


def test_complex_numbers_are_pairs(tmp_path):
    def functions(z):
        last, rows = pg.scan(lambda c, row: (c * row, c + row), z[0], z)
        chosen = pg.cond(pg.sum(z.real) > 0, lambda: z * z, lambda: z + 1j)
        return pg.exp(z) / (1 + z * z), pg.abs(z), z.T @ z, z[::2], last, rows, chosen, z + 2j

    rng = np.random.default_rng(0)
    z = rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))
    kernel = pg.compile(pg.trace(functions, pg.spec((3, 4), "complex128")))
    kernel.save(tmp_path / "z.onnx")
    model = onnx.load(tmp_path / "z.onnx")
    shape = model.graph.input[0].type.tensor_type.shape
    assert [dim.dim_value for dim in shape.dim] == [3, 4, 2]

    def in_pairs(x):
        return np.stack([x.real, x.imag], -1) if np.iscomplexobj(x) else x

    expected, feed = [in_pairs(x) for x in kernel(z)], {"z": in_pairs(z)}
    require_equal(evaluated(model, feed), expected)
    require_equal(pg.interop.from_onnx(model)(feed["z"]), expected)
    ort = pytest.importorskip("onnxruntime", reason="the runtime is a package of its own")
    require_equal(ort.InferenceSession(tmp_path / "z.onnx").run(None, feed), expected)


def test_primitives_without_words_are_listed(tmp_path):
    def functions(a):
        return pg.linalg.logm(a) + pg.linalg.sqrtm(a) + pg.linalg.logm(a.T)

    with pytest.raises(pg.UnsupportedError) as raised:
        pg.compile(pg.trace(functions, pg.spec((3, 3)))).save(tmp_path / "a.onnx")
    message = str(raised.value)
    assert "that ONNX lacks: logm (2 times, first at test_onnx_export.py:" in message
    assert "sqrtm (once" in message
    assert not (tmp_path / "a.onnx").exists()


def test_files_of_others_are_not_overwritten(tmp_path):
    kernel, path = pg.compile(pg.trace(pg.sin, pg.spec(3))), tmp_path / "model.onnx"
    kernel.save(path)
    kernel.save(path)
    path.write_bytes(b"something else")
    with pytest.raises(pg.ArgumentError, match="was not written by primgraph"):
        kernel.save(path)
    kernel.save(path, force=True)
    with pytest.raises(pg.ArgumentError, match="a model of one kernel"):
        kernel.save(path, pg.compile(pg.trace(pg.cos, pg.spec(3))))


def test_nothing_of_onnx_is_imported_otherwise():
    code = "import sys, primgraph as pg; pg.interop; assert 'onnx' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
