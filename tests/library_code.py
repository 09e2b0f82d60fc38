"""Kernels of array libraries beside the interpreter: workloads and random programs."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from exported import derivative

import primgraph as pg
from primgraph.ir.interpret import interpret
from primgraph.transforms import clean_up, lower

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
needs_benchmarks = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the benchmarks are not here")


def assert_workloads(monkeypatch, target):
    """The workloads of the benchmarks, small, are equal to NumPy's kernels to rounding."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    workloads, cases = (importlib.import_module(name) for name in ("workloads", "cases"))
    for case in cases.cases(short=True):
        graph, arrays = workloads.graph_of(case)
        wanted = pg.compile(graph).flat(*arrays)
        found = pg.compile(graph.in_form(None), target=target)(*arrays)
        found = found if isinstance(found, tuple) else (found,)
        wanted = wanted if isinstance(wanted, list | tuple) else [wanted]
        bound = 1e-11 if case["dt"] == "f64" else 1e-5
        for f, w in zip(found, wanted, strict=True):
            size = np.max(np.abs(w), initial=1e-300)
            assert np.max(np.abs(np.asarray(f) - w), initial=0.0) <= bound * size, case.name


def graphs_of(program):
    """A random program and its reverse mode, with feeds."""
    lowered = clean_up(lower(program.graph))
    yield lowered, program.feeds
    slope = derivative(lowered)
    if slope is not None:
        rng = np.random.default_rng(program.seed)
        types = slope.input_types[len(lowered.inputs) :]
        more = [np.asarray(rng.normal(size=t.shape)).astype(t.dtype) for t in types]
        yield slope, [*program.feeds, *more]


def precision_of(graph):
    """The square root of the rounding of the coarsest dtype in a graph."""
    values = [*graph.inputs, *(v for eqn in graph.body for v in eqn.outputs)]
    kinds = {v.type.dtype for v in values if v.type.dtype.kind in "fc"}
    return max([float(np.finfo(kind).eps) for kind in kinds], default=0.0) ** 0.5


def agree(found, wanted, precision):
    """Whether results are equal to rounding, and not finite at the same places."""
    found = np.asarray(found)
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return False
    if wanted.dtype.kind not in "fc":
        return np.array_equal(found, wanted)
    finite = np.isfinite(wanted)
    if not np.array_equal(finite, np.isfinite(found)):
        return False
    size = np.max(np.abs(wanted[finite]), initial=1.0)
    return bool(np.all(np.abs(found[finite] - wanted[finite]) <= precision * size))


def compiled_or_refused(graph, target):
    """The kernel of a graph, or the message of the error that refuses it."""
    try:
        return pg.compile(graph, target=target)
    except pg.CompileError as error:
        return error.message


def assert_program(program, target, refusal):
    """A random program and its reverse mode agree, or are refused with that message."""
    for graph, feeds in graphs_of(program):
        kernel = compiled_or_refused(graph.in_form(None), target)
        if isinstance(kernel, str):
            assert kernel.startswith(refusal), kernel
            continue
        with np.errstate(all="ignore"):
            wanted = [np.asarray(x) for x in interpret(kernel.graph, *feeds)]
        found = kernel(*feeds)
        found = [found] if len(wanted) == 1 else found
        precision = precision_of(kernel.graph)
        pairs = zip(found, wanted, strict=True)
        assert all(agree(f, w, precision) for f, w in pairs), program.seed
