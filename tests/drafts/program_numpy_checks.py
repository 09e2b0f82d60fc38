"""What has to be the same of a random program in NumPy as NumPy makes it."""

from __future__ import annotations

import importlib.util
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from derive import cotangents_of, float_inputs, tangents_of
from program_derivatives import demand
from program_numpy import NumpyProgram

import primgraph as pg
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.numpy.rebound import rebound
from primgraph.transforms import batch, dead_code, lower
from primgraph.transforms.optimize.clean_up import clean_up

Arrays = Sequence[np.ndarray]

_FILES = 0.15
_TENSORS = 0.3
_BATCH = 0.4
_SECOND = 0.4
_STEEP = 1e4

# Of results, by how many units of the largest one.
_ROUNDING = {"float64": 1e-9, "float32": 2e-3}


def check_numpy(program: NumpyProgram, seen: Counter[str]) -> None:
    """Values are NumPy's, in every form; derivatives are what NumPy's differences say."""
    rng = np.random.default_rng((program.seed, 92))
    plain = program.function(plain=True)
    with np.errstate(all="ignore"):
        wanted, others = (_flat(plain(*x)) for x in (program.feeds, program.others))
    traced = pg.trace(program.function(plain=False), *program.types)
    graph = lower(traced)
    seen["NumPy programs"] += 1
    with np.errstate(all="ignore"):
        _same("interpreted", graph, wanted, interpret(graph, *program.feeds))
        demand(pg.parse(str(traced), traced.constants) == traced, "the text gives another graph")
        for style in ("planned", "readable"):
            kernel = pg.compile(traced, style=style)
            _same(f"{style} kernel", graph, wanted, _flat(kernel(*program.feeds)))
            _same(f"{style} kernel again", graph, others, _flat(kernel(*program.others)))
        if all(np.all(np.isfinite(x)) for x in wanted):
            # NaN may be on the way, where it is left out.
            level = rng.choice(["finite", "fast"])
            found = _flat(pg.compile(traced, math=level)(*program.feeds))
            _same(f"kernel at level {level}", graph, wanted, found)
        if rng.random() < _FILES and "by_scipy" not in str(graph):
            _same("saved source", graph, wanted, _saved(kernel, program.feeds))
        if rng.random() < _TENSORS and not program.changes:
            given = [pg.tensor(x) for x in program.feeds]
            _same("tensors", graph, wanted, _flat(rebound(program.function(plain=False))(*given)))
        if rng.random() < _BATCH:
            many = batch(graph, 2, [0] * len(program.feeds))
            both = [np.stack(pair) for pair in zip(program.feeds, program.others, strict=True)]
            wrapped = lower(pg.trace(pg.vmap(program.function(plain=False)), *both))
            for what, made in (("sample", many), ("sample of a wrapped function", wrapped)):
                found = interpret(made, *both)
                for i, expected in enumerate((wanted, others)):
                    _same(f"{what} {i}", graph, expected, [x[i] for x in found])
        if all(x.dtype == np.float64 for x in program.feeds):
            _check_derivatives(program, graph, rng, seen)


def _flat(found: object) -> list[np.ndarray]:
    if isinstance(found, list | tuple):
        return [x for part in found for x in _flat(part)]
    return [found.numpy() if isinstance(found, pg.Tensor) else np.asarray(found)]


def _same(what: str, graph: Graph, wanted: Arrays, found: Arrays) -> None:
    demand(len(found) == len(wanted), f"{what}: another number of results")
    narrow = any(v.dtype == np.float32 for v in graph.inputs)
    for i, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
        same = (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        demand(
            same,
            f"{what}: output {i} is {mine.dtype}{mine.shape}, not {theirs.dtype}{theirs.shape}",
        )
        if theirs.dtype.kind in "iub":
            # Numbers that are nearly equal may be ordered otherwise.
            demand(narrow or np.array_equal(mine, theirs), f"{what}: {mine!r}, not {theirs!r}")
            continue
        size = max(1.0, float(np.max(np.abs(theirs), initial=0.0)))
        rounding = _ROUNDING["float32" if narrow else "float64"]
        close = np.allclose(mine, theirs, rtol=0, atol=rounding * size, equal_nan=True)
        demand(close, f"{what}: output {i}\n{mine!r}, not\n{theirs!r}")


def _saved(kernel: pg.Kernel, feeds: Arrays) -> list[np.ndarray]:
    """What the file of a kernel gives, which knows nothing of primgraph."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel_of_a_program.py"
        kernel.save(path)
        spec = importlib.util.spec_from_file_location("kernel_of_a_program", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return _flat(module.f(*feeds))


def _check_derivatives(
    program: NumpyProgram, graph: Graph, rng: np.random.Generator, seen: Counter[str]
) -> None:
    ends = [v for v in graph.outputs if v.type.is_float]
    places = [i for i, v in enumerate(graph.outputs) if v.type.is_float]
    graph = dead_code(graph.with_outputs(ends))
    wrt = float_inputs(graph)
    plain = program.function(plain=True)

    def values(*x: np.ndarray) -> list[np.ndarray]:
        found = _flat(plain(*x))
        return [found[i] for i in places]

    v = [np.asarray(rng.normal(size=program.feeds[i].shape)) for i in wrt]
    expected = _differences(values, program.feeds, v)
    if expected is None:
        seen["NumPy programs with a kink near"] += 1
        return
    forward, reverse = tangents_of(graph, wrt), cotangents_of(graph, wrt)
    found = interpret(forward, *program.feeds, *v)
    _close("jvp and differences of NumPy's", expected, found, 1e-5)
    w = [np.asarray(rng.normal(size=x.shape)) for x in found]
    back = interpret(reverse, *program.feeds, *w)
    left, right = _inner(w, found), _inner(back, v)
    size = _inner(map(np.abs, w), map(np.abs, found)) + _inner(map(np.abs, back), map(np.abs, v))
    demand(abs(left - right) <= 1e-8 * max(1.0, size), f"<w, Jv> = {left}, but <J'w, v> = {right}")
    seen["NumPy programs differentiated"] += 1
    cleaned = clean_up(reverse)
    kernel = pg.compile(cleaned, style="planned" if rng.random() < 0.5 else "readable")
    _close("kernel of a gradient", back, _flat(kernel(*program.feeds, *w)), 1e-8)
    if rng.random() < _SECOND:
        _check_second(program, graph, wrt, (v, w), seen)


def _check_second(
    program: NumpyProgram, graph: Graph, wrt: Sequence[int], along: tuple[Arrays, Arrays],
    seen: Counter[str],
) -> None:  # fmt: skip
    """Forward and reverse mode of the gradient, against its differences."""
    v, w = along
    gradient = dead_code(cotangents_of(graph, wrt))

    def slopes(*x: np.ndarray) -> list[np.ndarray]:
        return interpret(gradient, *x, *w)

    expected = _differences(slopes, program.feeds, v)
    if expected is None:
        return
    found = interpret(tangents_of(gradient, wrt), *program.feeds, *w, *v)
    _close("second derivative and differences", expected, found, 1e-4)
    # The Hessian of one number is symmetric: reverse mode gives the same.
    back = interpret(cotangents_of(gradient, wrt), *program.feeds, *w, *v)
    _close("second derivative by reverse mode", found, back, 1e-7)
    seen["NumPy programs differentiated twice"] += 1


def _differences(function: object, x: Arrays, v: Arrays) -> list[np.ndarray] | None:
    """Central differences of fourth order along `v`; None where steps disagree, as near a kink."""
    assert callable(function)

    def by(step: float) -> list[np.ndarray]:
        runs = [
            function(*(np.asarray(a + t * step * b) for a, b in zip(x, v, strict=True)))
            for t in (1, -1, 2, -2)
        ]
        return [(8 * (a - b) - (c - d)) / (12 * step) for a, b, c, d in zip(*runs, strict=True)]

    coarse, fine, near = by(2e-3), by(1e-3), by(1e-5)
    for a, b, c in zip(coarse, fine, near, strict=True):
        size = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        alike = all(np.allclose(other, b, rtol=0, atol=1e-6 * size) for other in (a, c))
        if size > _STEEP or not alike:
            return None
    return fine


def _close(what: str, expected: Arrays, found: Arrays, tolerance: float) -> None:
    for a, b in zip(expected, found, strict=True):
        size = max(1.0, float(np.max(np.abs(a), initial=0.0)))
        demand(np.allclose(b, a, rtol=0, atol=tolerance * size), f"{what}:\n{b!r}, not\n{a!r}")


def _inner(x: object, y: object) -> float:
    return float(sum(np.sum(a * b) for a, b in zip(x, y, strict=True)))  # type: ignore[call-overload]
