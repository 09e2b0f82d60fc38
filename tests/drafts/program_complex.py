"""Random programs of complex numbers, and what has to agree in each.

They are drafts of their own: a complex step, by which other drafts know where they are smooth, has
no room for complex numbers themselves. Where differences with two steps disagree, there is a kink
near, and derivatives are not compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from derive import cotangents_of, differences, float_inputs, tangents_of

import primgraph as pg
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.transforms import batch, lower

_SHAPES = ((3,), (2, 3), (4, 1), ())
_LARGEST = 1e3


def _fit(value: Any, shape: tuple[int, ...]) -> Any:
    """`value`, cut or repeated to a shape."""
    flat = pg.reshape(value, (-1,))
    return pg.reshape(pg.take(flat, np.arange(int(np.prod(shape))) % flat.shape[0]), shape)


def _whole(value: Any) -> Any:
    return value if value.type.is_complex else pg.complex(value, 0.5 * value)


UNARY: list[Callable[[Any], Any]] = [
    lambda z: pg.exp(0.3 * z), pg.sin, lambda z: pg.cos(z) * 1j, lambda z: pg.tanh(0.4 * z),
    lambda z: pg.log(z + 4), lambda z: pg.sqrt(z + 5), lambda z: z**2, lambda z: (z + 4) ** -1,
    lambda z: pg.power(z + 4, 0.7 + 0.2j), lambda z: pg.arctan(0.2 * z), lambda z: -z,
    lambda z: pg.arcsinh(0.2 * z), pg.conj, lambda z: pg.abs(_whole(z) + 0.1), pg.real, pg.imag,
    lambda z: pg.angle(_whole(z) + 6), lambda z: z * (2 - 1j), lambda z: z / (1 + 2j),
    lambda z: pg.where(pg.real(z) > 0.3, z, 1j * z), lambda z: pg.stop_gradient(z) * z,
    lambda z: pg.astype(_whole(z), "complex64"), lambda z: pg.sign(_whole(z) + 7),
]  # fmt: skip

OF_ARRAYS: list[Callable[[Any], Any]] = [
    pg.sum, lambda z: pg.cumsum(z, 0), lambda z: pg.cumprod(0.5 * z, 0), lambda z: z[::-1],
    lambda z: pg.prod(0.7 * z, axis=0), lambda z: pg.mean(z, axis=-1), pg.var, lambda z: z.T,
    lambda z: pg.concatenate([z, pg.conj(z)]), lambda z: z[[0, -1, 0]], lambda z: z[1:],
    lambda z: pg.set_slice(z, np.s_[:1], 0.5 * z[:1]), lambda z: pg.pad(z, 1), pg.fft.fft,
    lambda z: pg.fft.ifft(z, norm="ortho"), lambda z: pg.fft.rfft(pg.real(z), 4),
    lambda z: pg.fft.irfft(z, 5), lambda z: pg.fft.fftn(z, norm="forward"), pg.norm,
]  # fmt: skip


def _matrix(z: Any, rows: int = 3, columns: int = 3) -> Any:
    """Numbers of `z` within a matrix whose eigenvalues and singular values lie far apart.

    It is of size 3, 6 and 9 along the diagonal, and less than one elsewhere: none of them is near
    another one or near zero.
    """
    part = _fit(_whole(z), (rows, columns))
    part = 0.7 * part / (1 + pg.abs(part))
    return part + 3 * (np.eye(rows, columns) * np.arange(1, columns + 1)).astype(part.dtype)


def _hermitian(z: Any) -> Any:
    a = _matrix(z)
    return 0.5 * (a + pg.conj(a).T)


def _by_vectors(w: Any, v: Any) -> Any:
    return (v * pg.exp(0.1 * w)) @ pg.conj(v).T


def _by_general_vectors(w: Any, v: Any) -> Any:
    return (v * pg.sqrt(w)) @ L.inv(v)


def _by_singular_vectors(u: Any, s: Any, vh: Any) -> Any:
    return (u * pg.log(s)) @ vh


L = pg.linalg

# Linear algebra of matrices that are well-conditioned; of vectors what does not depend on phases,
# and of general matrices what does not depend on LAPACK's order of eigenvalues.
LINEAR: list[Callable[[Any, Any], Any]] = [
    lambda z, w: L.solve(_matrix(z), _fit(w, (3,))),
    lambda z, w: L.solve(pg.stack([_matrix(z), _matrix(-z)]), _fit(w, (3, 2))),
    lambda z, w: L.inv(_matrix(z)), lambda z, w: L.det(0.2 * _matrix(z)),
    lambda z, w: L.slogdet(_matrix(z))[0], lambda z, w: L.slogdet(_matrix(z))[1],
    lambda z, w: L.cholesky(_matrix(z) @ pg.conj(_matrix(z)).T),
    lambda z, w: L.cholesky(_hermitian(z), upper=True),
    lambda z, w: L.eigvalsh(_hermitian(z)), lambda z, w: L.eigvalsh(_matrix(z), UPLO="U"),
    lambda z, w: _by_vectors(*L.eigh(_hermitian(z))), lambda z, w: pg.abs(L.eigh(_matrix(z))[1]),
    lambda z, w: pg.sum(pg.sin(0.2 * L.eigvals(_matrix(z)))),
    lambda z, w: _by_general_vectors(*L.eig(_matrix(z))),
    lambda z, w: pg.sum(pg.abs(L.eig(_matrix(z))[1]) ** 3, -1),
    lambda z, w: L.svdvals(_matrix(z, 3, 2)), lambda z, w: pg.abs(L.svd(_matrix(z))[0]),
    lambda z, w: _by_singular_vectors(*L.svd(_matrix(z, 2, 3), full_matrices=False)),
    lambda z, w: L.qr(_matrix(z, 3, 2))[0], lambda z, w: L.qr(_matrix(z, 2, 3))[1],
    lambda z, w: L.pinv(_matrix(z, 3, 2)), lambda z, w: L.lstsq(_matrix(z, 3, 2), _fit(w, (3,)))[0],
    lambda z, w: L.lstsq(_matrix(z, 3, 2), _fit(w, (3, 1)))[1],
    lambda z, w: L.expm(0.2 * _matrix(z)), lambda z, w: L.logm(_matrix(z)),
    lambda z, w: L.sqrtm(_matrix(z)), lambda z, w: L.lu(_matrix(z))[1],
    lambda z, w: L.lu(_matrix(z, 3, 2))[2],
    lambda z, w: L.lu_solve(L.lu_factor(_matrix(z)), _fit(w, (3,)), trans=2),
    lambda z, w: L.cho_solve(L.cho_factor(_hermitian(z)), _fit(w, (3, 1))),
    lambda z, w: L.solve_triangular(_matrix(z), _fit(w, (3,)), trans="C"),
    lambda z, w: L.solve_triangular(_matrix(z), _fit(w, (3, 2)), lower=True, unit_diagonal=True),
    lambda z, w: L.norm(_matrix(z), "nuc"), lambda z, w: L.norm(_matrix(z), 2),
    lambda z, w: L.norm(_matrix(z)), lambda z, w: L.cond(_matrix(z)),
    lambda z, w: L.matrix_power(0.3 * _matrix(z), 3), lambda z, w: L.matrix_power(_matrix(z), -2),
    lambda z, w: L.multi_dot([_fit(w, (2, 3)), 0.3 * _matrix(z), _fit(w, (3, 2))]),
    lambda z, w: L.solve_sylvester(_matrix(z), _hermitian(z), _fit(w, (3, 3))),
    lambda z, w: pg.kron(_fit(z, (2, 1)), _fit(w, (1, 2))), lambda z, w: L.trace(_matrix(z)),
    lambda z, w: pg.vecdot(_fit(z, (2, 2)), _fit(w, (2, 2))),
]  # fmt: skip

BINARY: list[Callable[[Any, Any], Any]] = [
    pg.add, pg.subtract, pg.multiply, lambda z, w: z / (w + 5), lambda z, w: pg.sum(pg.conj(z) * w),
    lambda z, w: pg.complex(pg.real(z), pg.imag(w) + pg.real(w)),
    lambda z, w: pg.reshape(z, (-1, 1)) @ pg.reshape(w, (1, -1)),
    lambda z, w: pg.einsum("i,i->", pg.reshape(z, (-1,)), pg.reshape(w, (-1,))),
    lambda z, w: pg.where(pg.abs(z) < pg.abs(w), z * w, w),
]  # fmt: skip


def complex_program(seed: int, linear: float = 0.08) -> tuple[Graph, list[np.ndarray]]:
    """The graph of that seed, and feeds; a share of its equations is of linear algebra."""
    rng = np.random.default_rng((seed, 77))
    feeds = []
    for k in range(int(rng.integers(1, 4))):
        shape = _SHAPES[int(rng.integers(len(_SHAPES)))]
        array = rng.standard_normal(shape)
        feeds.append(array if k and rng.random() < 0.4 else array + 1j * rng.standard_normal(shape))

    def drawn(*inputs: Any) -> list[Any]:
        pool = list(inputs)
        for _ in range(int(rng.integers(3, 11))):
            z = pool[-1] if rng.random() < 0.5 else pool[int(rng.integers(len(pool)))]
            kind = rng.random()
            if rng.random() < linear:
                w = pool[int(rng.integers(len(pool)))]
                found = LINEAR[int(rng.integers(len(LINEAR)))](z, _whole(w))
            elif kind < 0.45:
                found = UNARY[int(rng.integers(len(UNARY)))](z)
            elif kind < 0.7 and z.ndim and z.size > 1:
                found = OF_ARRAYS[int(rng.integers(len(OF_ARRAYS)))](
                    z if z.shape[0] > 1 else _fit(z, (3,))
                )
            else:
                w = pool[int(rng.integers(len(pool)))]
                found = BINARY[int(rng.integers(len(BINARY)))](z, _fit(w, z.shape))
            if found.size <= 64 and found.type.is_inexact:
                pool.append(found)
        return pool[-2:]

    with warnings.catch_warnings():
        # The program itself is drawn.
        warnings.simplefilter("ignore", pg.TracingWarning)
        graph = pg.trace(drawn, *(pg.spec(a.shape, a.dtype) for a in feeds))
    return graph, feeds


def _close(found: Any, wanted: Any, tolerance: float, what: str) -> None:
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.dtype == theirs.dtype, what
        assert mine.shape == theirs.shape, what
        scale = max(1.0, float(np.max(np.abs(theirs), initial=0.0)))
        assert np.allclose(mine, theirs, rtol=0, atol=tolerance * scale), (what, mine, theirs)


def check_complex(seed: int, linear: float = 0.08) -> bool:
    """Text, kernels, batches and derivatives agree; whether derivatives were compared, too."""
    graph, feeds = complex_program(seed, linear)
    what = f"seed {seed}\n{graph}"
    assert pg.parse(str(graph), graph.constants) == graph, what
    lowered = lower(graph)
    wanted = interpret(lowered, *feeds)
    if not all(np.all(np.isfinite(a)) and np.max(np.abs(a), initial=0) < _LARGEST for a in wanted):
        return False
    narrow = any(v.dtype == np.complex64 or v.dtype == np.float32 for v in lowered.numbering())
    rounding = 1e-4 if narrow else 1e-9
    for style in ("planned", "readable"):
        _close(pg.compile(graph, style=style)(*feeds), wanted, rounding, what)
    _close(pg.compile(graph, math="fast")(*feeds), wanted, 10 * rounding, what)
    stacked = [np.stack([a, 0.5 * a]) for a in feeds]
    both = interpret(batch(lowered, 2), *stacked)
    halves = [interpret(lowered, *(0.5 * a for a in feeds)), wanted]
    for i, sample in enumerate(reversed(halves)):
        _close([a[i] for a in both], sample, rounding, what)
    return not narrow and _check_derivatives(lowered, feeds, what, np.random.default_rng(seed))


def _check_derivatives(
    graph: Graph, feeds: list[np.ndarray], what: str, rng: np.random.Generator
) -> bool:
    """Forward mode against differences, and reverse mode, which transposition makes of it."""
    wrt = float_inputs(graph)

    def along(types: Any) -> list[np.ndarray]:
        return [
            np.asarray(rng.standard_normal(t.shape)
                       + 1j * t.is_complex * rng.standard_normal(t.shape)
                       if t.is_complex else rng.standard_normal(t.shape))
            for t in types
        ]  # fmt: skip

    tangents = along([graph.inputs[i].type for i in wrt])
    near, far = (
        differences(graph, feeds, {i: s * t for i, t in zip(wrt, tangents, strict=True)})
        for s in (0.2, 0.1)
    )
    for a, b in zip(near, far, strict=True):
        if not np.allclose(
            a, 2 * b, rtol=0, atol=1e-6 * max(1.0, float(np.max(np.abs(b), initial=0)))
        ):
            return False
    forward, reverse = tangents_of(graph, wrt), cotangents_of(graph, wrt)
    found = interpret(forward, *feeds, *tangents)
    if any(np.max(np.abs(a), initial=0) > _LARGEST for a in found):
        return False
    # What stops gradients has none, whatever differences say.
    if not any(e.op.stops for e in graph.body):
        _close(found, [10 * b for b in far], 1e-5, what)
    cts = along([v.type for v in forward.outputs])
    back = interpret(reverse, *feeds, *cts)
    left, right = (
        sum(float(np.sum(np.real(a * b))) for a, b in zip(xs, ys, strict=True))
        for xs, ys in ((cts, found), (back, tangents))
    )
    size = sum(float(np.sum(np.abs(a * b))) for a, b in zip(cts, found, strict=True))
    size += sum(float(np.sum(np.abs(a * b))) for a, b in zip(back, tangents, strict=True))
    assert abs(left - right) <= 1e-9 * max(size, 1.0), (what, left, right)
    return True
