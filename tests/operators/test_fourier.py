"""Fourier transforms against numpy.fft: values, dtypes, derivatives, code, sizes."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_complex import by_differences

import primgraph as pg
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.interpret import interpret

RNG = np.random.default_rng(5)
NORMS = (None, "ortho", "forward")
OF_REAL = ("rfft", "ihfft", "rfftn", "rfft2")
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")


def operand(name: str, *shape: int) -> np.ndarray:
    real = RNG.standard_normal(shape)
    return real if name in OF_REAL else real + 1j * RNG.standard_normal(shape)


def calls() -> list[tuple[str, np.ndarray, dict[str, Any]]]:
    """Functions of one axis with all lengths and axes, and of several."""
    found = []
    for name, n, norm in product(ONE, (None, 1, 3, 4, 7), NORMS):
        found.append((name, operand(name, 2, 4), {"n": n, "norm": norm}))
        found.append((name, operand(name, 5, 2), {"n": n, "norm": norm, "axis": 0}))
    for name, norm in product(SEVERAL, NORMS):
        x = operand(name, 3, 4, 5)
        found.append((name, x, {"norm": norm}))
        found.append((name, x, {"axes": (0, 2), "norm": norm}))
        found.append((name, x, {"s": (2, 7), "axes": (2, 1), "norm": norm}))
        found.append((name, x, {"axes": (1,), "norm": norm}))
    return [*found, ("fftn", operand("fftn", 3, 4), {"axes": (0, 0)})]


def test_values_are_numpys() -> None:
    listed = calls()
    arrays = [x for _, x, _ in listed]

    def everything(*inputs: Any) -> list[Any]:
        named = zip(listed, inputs, strict=True)
        return [getattr(pg.fft, name)(x, **given) for (name, _, given), x in named]

    graph = pg.trace(everything, *(pg.spec(a.shape, a.dtype) for a in arrays))
    assert pg.parse(str(graph), graph.constants) == graph
    for style in ("planned", "readable"):
        results = pg.compile(graph, style=style)(*arrays)
        for (name, x, given), found in zip(listed, results, strict=True):
            wanted = getattr(np.fft, name)(x, **given)
            assert found.dtype == wanted.dtype, (name, given)
            np.testing.assert_allclose(found, wanted, 1e-12, 1e-12, err_msg=f"{name} {given}")


def test_dtypes_are_numpys() -> None:
    dtypes = ("f2", "f4", "f8", "i8", "?", "c8", "c16")
    for name, dtype in product((*ONE, "fftn", "irfftn"), dtypes):
        if name in OF_REAL and dtype[0] == "c":
            continue
        x = np.array([1, 0, 1, 1, 0]).astype(dtype)
        wanted = getattr(np.fft, name)(x)
        found = getattr(np.fft, name)(pg.tensor(x)).numpy()
        assert found.dtype == wanted.dtype, (name, dtype)
        np.testing.assert_allclose(found, wanted, 1e-3 if dtype == "f2" else 1e-6, 1e-6)


def test_gradients_are_those_of_differences() -> None:
    """Of a real function of each transform, with an even and an odd number of elements."""
    for name, n, norm in product(ONE, (5, 6), NORMS):
        x, given = operand(name, 4), {"n": n, "norm": norm}
        weights = operand("", 2, n)[0]

        def function(v: Any, np_: Any = np, name: str = name, given: Any = given,
                     weights: Any = weights) -> Any:  # fmt: skip
            z = getattr(np_.fft, name)(np_.real(v) if name in OF_REAL else v, **given)
            return np_.sum(np_.real(z * z * weights[: z.shape[0]]))

        wanted = by_differences(function, x)
        for mode in (pg.grad, lambda f: pg.jit(pg.grad(f))):
            found = mode(function)(x)
            real = wanted.real if name in OF_REAL else wanted
            np.testing.assert_allclose(found, real, 1e-8, 1e-8, err_msg=f"{name} {n}")
    for name in SEVERAL:
        x = operand(name, 2, 3)
        pg.check_grads(lambda v, name=name: pg.sum(pg.abs(getattr(pg.fft, name)(v)) ** 2), [x], 1)
    pg.check_grads(lambda v: pg.fft.irfft(pg.exp(pg.fft.rfft(v) * 0.3), 5), [operand("rfft", 5)])


def test_transforms_undo_each_other_and_shift() -> None:
    z = operand("", 4, 5)
    for n, d in ((1, 1.0), (4, 0.5), (7, 2.0)):
        np.testing.assert_array_equal(pg.fft.fftfreq(n, d).numpy(), np.fft.fftfreq(n, d))
        np.testing.assert_array_equal(pg.fft.rfftfreq(n, d).numpy(), np.fft.rfftfreq(n, d))
    for axes in (None, 0, (1, 0)):
        for name in ("fftshift", "ifftshift"):
            found = getattr(np.fft, name)(pg.tensor(z), axes=axes).numpy()
            np.testing.assert_array_equal(found, getattr(np.fft, name)(z, axes=axes))
    for norm in NORMS:
        back = pg.fft.ifftn(pg.fft.fftn(z, norm=norm), norm=norm).numpy()
        np.testing.assert_allclose(back, z, 1e-13)
        real = pg.fft.irfft(pg.fft.rfft(z.real, norm=norm), 5, norm=norm).numpy()
        np.testing.assert_allclose(real, z.real, 1e-12, 1e-14)


def test_a_convolution_by_transforms_has_the_derivatives_of_the_sum() -> None:
    x, y = RNG.standard_normal((2, 6))

    def by_transforms(x: Any, y: Any) -> Any:
        return np.fft.irfft(np.fft.rfft(x, 11) * np.fft.rfft(y, 11), 11)

    for function in (pg.jacrev, pg.jacfwd):
        found, wanted = (function(f)(x, y) for f in (by_transforms, np.convolve))
        np.testing.assert_allclose(found, wanted, 1e-10, 1e-10)


def test_batches_sizes_loops_and_samples() -> None:
    def loss(x: Any) -> Any:
        return pg.sum(pg.abs(pg.fft.rfft(x)) ** 2 * (1 + pg.fft.rfftfreq(x.shape[-1])))

    x = RNG.standard_normal((3, 6))
    slopes = [pg.grad(loss)(row) for row in x]
    np.testing.assert_allclose(pg.vmap(pg.grad(loss))(x), slopes, 1e-12)
    open_ = pg.compile(pg.trace(lambda v: pg.grad(loss(v), v), pg.spec(("N",))))
    for row in (x[0], x[0, :5], x[0, :1]):
        np.testing.assert_allclose(open_(row), pg.grad(loss)(row), 1e-12)
    shifted = pg.compile(pg.trace(
        lambda v: pg.fft.ifftshift(pg.fft.fftshift(v) * pg.fft.fftfreq(v.shape[0])), pg.spec(("N",))
    ))  # fmt: skip
    for n in (5, 6):
        wanted = np.fft.ifftshift(np.fft.fftshift(x[0, :n]) * np.fft.fftfreq(n))
        np.testing.assert_allclose(shifted(x[0, :n]), wanted, 1e-14)

    def step(u: Any, _: Any) -> Any:
        return pg.fft.ifft(pg.fft.fft(u) * np.exp(-0.1 * np.arange(6))), None

    last, _ = pg.scan(step, pg.tensor(x[0] + 0j), None, length=3)
    wanted = np.fft.ifft(np.fft.fft(x[0]) * np.exp(-0.3 * np.arange(6)))
    np.testing.assert_allclose(last.numpy(), wanted, 1e-12)
    with pg.Program() as program:
        samples = pg.data("samples", (3, 6))
        block = pg.batched_jacobian(pg.fft.irfft(pg.fft.rfft(samples) * 2.0, 6), samples)
        with pytest.raises(pg.MixedSamplesError):
            pg.batched_jacobian(pg.real(pg.fft.fftn(samples)), samples)
    (found,) = pg.Executor().run(program, {"samples": x}, [block])
    np.testing.assert_allclose(found, np.broadcast_to(2 * np.eye(6), (3, 6, 6)), 1e-12, 1e-12)


def test_code_is_written_with_numpys_transforms(tmp_path: Path) -> None:
    def spectrum(x: Any) -> Any:
        return pg.abs(pg.fft.fft(x, norm="ortho")) + pg.real(pg.fft.fft2(x))

    kernel = pg.compile(pg.trace(spectrum, pg.spec((4, 8))))
    assert "np.fft.fft(" in kernel.source
    assert 'norm="ortho"' in kernel.source
    kernel.save(tmp_path / "spectrum.py")
    x = RNG.standard_normal((4, 8))
    np.save(tmp_path / "x.npy", x)
    code = (
        "import sys, numpy as np; sys.modules['primgraph'] = None; import spectrum; "
        "np.save('out.npy', spectrum.spectrum(np.load('x.npy')))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), kernel(x))
    rows = pg.compile(pg.trace(lambda x: pg.sum(pg.abs(pg.fft.rfft(x)), 0), pg.spec((3000, 64))))
    large = RNG.standard_normal((3000, 64))
    np.testing.assert_allclose(rows(large), np.abs(np.fft.rfft(large)).sum(0), 1e-12)


def test_what_cannot_be_transformed_is_refused() -> None:
    z = pg.tensor(operand("", 3, 4))
    for fault, error, call in (
        ("takes real numbers", ArgumentError, lambda: pg.fft.rfft(z)),
        ("norm is one of", ArgumentError, lambda: pg.fft.fft(z, norm="both")),
        ("axis 2 is out of bounds", ShapeError, lambda: pg.fft.fft(z, axis=2)),
        ("at least 1", ShapeError, lambda: pg.fft.fft(z, 0)),
        ("at least 1", ShapeError, lambda: pg.fft.irfft(z[:, :1])),
        ("no elements", ShapeError, lambda: pg.fft.fft(z[:, :0])),
        ("different lengths", ArgumentError, lambda: pg.fft.fftn(z, s=(2, 2), axes=(0,))),
        ("no name", ArgumentError, lambda: pg.fft.dct),
    ):
        if fault == "no name":
            with pytest.raises(AttributeError, match="dct"):
                call()
            continue
        with pytest.raises(error, match=fault):
            call()
    graph = pg.trace(pg.fft.fft, pg.spec(4, "complex128"))
    assert interpret(graph, np.ones(4, complex))[0][0] == 4.0
