"""JAX's own tests, with the functions under test imported as graphs by `pg.interop.from_jax`.

    python tests/tools/jax_imports.py CHECKOUT [TEST ...]

runs those of a checkout of https://github.com/jax-ml/jax, as `jax_suite.py` does. `jax.jit` and
JAX's own checks import their function and run its graph. A test that imports none, or that needs
what graphs lack on purpose (`OUTSIDE`), counts as skipped.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax_suite
import numpy as np
import pytest

import primgraph as pg

try:
    import jax
    from jax._src import test_util
    from jax._src.lax import lax as lax_internal
except ImportError:
    jax = test_util = lax_internal = None

# Files of tests, and how many pass at least of those that import a function.
FILES = {
    "custom_linear_solve_test.py": 1.0,
    "fft_test.py": 1.0,
    "lax_autodiff_test.py": 1.0,
    "lax_control_flow_test.py": 1.0,
    "lax_numpy_einsum_test.py": 1.0,
    "lax_numpy_indexing_test.py": 1.0,
    "lax_numpy_operators_test.py": 1.0,
    "lax_numpy_reducers_test.py": 1.0,
    "lax_numpy_test.py": 0.98,
    "lax_test.py": 0.98,
    "linalg_test.py": 0.94,
    "nn_test.py": 1.0,
    "random_lax_test.py": 0.9,
    "scipy_stats_test.py": 0.99,
}
# Errors about small floats and integers, dtypes and primitives of the tests' own, devices, names of
# axes, and calls of Python.
OUTSIDE = re.compile(
    r"bfloat16|float8|float4|u?int[24]\b|dtype foo|foo\[|callback|sharding|psum|axis_index|pallas"
    r"|rng_bit_generator|__testing_prim|Disallowed \S+ transfer"
)
_ROUNDING = {np.float16: 1e-2, np.float32: 1e-4, np.float64: 1e-10,
             np.complex64: 1e-4, np.complex128: 1e-10}  # fmt: skip
# How many variants of each test run, for each case that JAX generates.
_VARIANTS = 8
# The checks that import a function, in the source of a test.
_IMPORTING = re.compile(r"_CompileAndCheck|_CheckAgainstNumpy|check_grads|jit\b")

# How many functions the test that runs has imported.
_imports: Counter[str] = Counter()


def imported(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function as a graph; under JAX's transformations, or with options, JAX's `jit` of it."""
    jitted = _jit(function, **options)

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves = jax.tree.leaves((args, kwargs))
        if options or any(isinstance(x, jax.core.Tracer) for x in leaves):
            return jitted(*args, **kwargs)
        return run_imported(function, args, kwargs)

    for name in ("lower", "trace", "eval_shape", "clear_cache", "_cache_size"):
        setattr(call, name, getattr(jitted, name, None))
    return functools.update_wrapper(call, function)


def run_imported(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The results of the graph of a function of JAX's, in JAX's containers."""
    expected = jax.eval_shape(function, *args, **kwargs)
    if not jax.tree.leaves(expected):
        return expected
    _imports["functions"] += 1
    graph = pg.interop.from_jax(function, *args, **kwargs)
    words = jax.tree.map(words_of, (args, kwargs))
    leaves = jax.tree.leaves(graph(*words[0], **words[1]))
    structs = jax.tree.leaves(expected)
    found = [from_words(x, s) for x, s in zip(leaves, structs, strict=True)]
    return jax.tree.unflatten(jax.tree.structure(expected), found)


def is_key(value: Any) -> bool:
    """Whether it has keys of random numbers."""
    return jax.dtypes.issubdtype(getattr(value, "dtype", None), jax.dtypes.prng_key)


def words_of(leaf: Any) -> Any:
    """An array of NumPy's; the words of keys."""
    return np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)


def from_words(array: Any, struct: Any) -> Any:
    """An array of JAX's of a dtype and shape, from one of NumPy's with the same."""
    if is_key(struct):
        return jax.random.wrap_key_data(jax.numpy.asarray(array), impl=struct.dtype._impl)
    array = np.asarray(array)
    assert array.shape == struct.shape, (array.shape, struct)
    assert array.dtype == struct.dtype or struct.dtype == jax.dtypes.float0, (array.dtype, struct)
    return lax_internal._convert_element_type(array, struct.dtype, weak_type=struct.weak_type)


def check_against_numpy(
    case: Any, reference: Callable[..., Any], function: Callable[..., Any], args_maker: Any,
    **given: Any,
) -> None:  # fmt: skip
    """The values of the graph are those of NumPy or SciPy."""
    args = args_maker()
    try:
        jax.make_jaxpr(function)(*args)
    except Exception:
        # Functions that look at values have no graph.
        _check_against_numpy(case, reference, function, args_maker, **given)
    else:
        _check_against_numpy(case, reference, imported(function), lambda: args, **given)


def compile_and_check(
    case: Any, function: Callable[..., Any], args_maker: Any, *, check_dtypes: bool = True,
    tol: Any = None, rtol: Any = None, atol: Any = None, **_: Any,
) -> None:  # fmt: skip
    """The values of the graph are those of JAX's own function."""
    args = args_maker()
    # JAX's own tolerances are for one compiler with itself.
    case.assertAllClose(
        imported(function)(*args), function(*args), check_dtypes=check_dtypes,
        atol=atol or tol or _ROUNDING, rtol=rtol or tol or _ROUNDING,
    )  # fmt: skip


def check_derivatives(
    function: Callable[..., Any], args: Any, order: int = 2, modes: Any = ("fwd", "rev"),
    *_: Any, **__: Any,
) -> None:  # fmt: skip
    """The graph of a function of JAX's has its values, and derivatives as by differences."""
    _imports["functions"] += 1
    # Some files have a tolerance in the place of modes.
    modes = modes if isinstance(modes, list | tuple) else ("fwd", "rev")
    wide = jax.tree.map(in_double, args)
    try:
        jax.eval_shape(function, *wide)
    except TypeError:
        # Some functions hold arrays of float32.
        wide = args
    check_imported(function, wide, order, modes)


def check_imported(
    function: Callable[..., Any], args: Any, order: int = 2, modes: Any = ("fwd", "rev"),
    *_: Any, **__: Any,
) -> None:  # fmt: skip
    """The graph of a function of JAX's has its values, and derivatives as by differences."""
    expected = function(*args)
    known = jax.tree.map(lambda z: ~np.isnan(z), expected)

    def where_known(*given: Any) -> Any:
        # Differences of NaN say nothing of a slope.
        return jax.tree.map(
            lambda z, k: jax.lax.select(k, z, jax.lax.full_like(z, 0)), function(*given), known
        )

    graph = pg.interop.from_jax(where_known, *args)
    pairs = zip(*map(jax.tree.leaves, (graph(*args), where_known(*args))), strict=True)
    for found, value in pairs:
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-4)
    arrays = jax.tree.map(np.asarray, list(args))
    if not all(np.isfinite(a).all() for a in jax.tree.leaves(arrays)):
        # No differences say what a slope is there.
        return
    try:
        pg.check_grads(graph.graph, arrays, order, [jax_suite.MODES[m] for m in modes])
    except pg.CheckError as error:
        # Differences lose digits near poles, of solvers that stop early, and of large slopes.
        check_against_jax(error, where_known, graph, arrays, order)


def check_against_jax(
    error: Exception, function: Callable[..., Any], graph: Callable[..., Any], args: list[Any],
    order: int,
) -> None:  # fmt: skip
    """Derivatives of arrays are those of JAX in both modes, or the error stands."""
    if not all(isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in args):
        raise error
    rng = np.random.default_rng(0)
    arrays, directions = tuple(args), tuple([rng.normal(size=a.shape) for a in args])

    def total(library: Any, f: Callable[..., Any], weights: list[Any]) -> Callable[..., Any]:
        def weighted(*xs: Any) -> Any:
            leaves = jax.tree.leaves(f(*xs))
            return sum(library.sum(w * y) for w, y in zip(weights, leaves, strict=True))

        return weighted

    def along(library: Any, f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: library.jvp(f, xs, directions)[1]

    for _ in range(order):
        weights = [rng.normal(size=y.shape) for y in jax.tree.leaves(function(*arrays))]
        every = tuple(range(len(arrays)))
        ours = pg.grad(total(pg, graph, weights), every)(*arrays)
        theirs = jax.grad(total(jax.numpy, function, weights), every)(*arrays)
        graph, function = along(pg, graph), along(jax, function)
        pairs = [(ours, theirs), (graph(*arrays), function(*arrays))]
        for x, y in zip(*map(jax.tree.leaves, zip(*pairs, strict=True)), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-9)


def in_double(leaf: Any) -> Any:
    """Floats in the precision of `pg.check_grads`."""
    array = np.asarray(leaf)
    wide = {"f": np.float64, "c": np.complex128}.get(array.dtype.kind)
    return array if wide is None else array.astype(wide)


def pytest_configure(config: Any) -> None:
    """Replace checks before tests are collected."""
    global _jit, _check_against_numpy
    _jit = jax.jit
    jax_suite.use_dtypes_of_numpy()
    case = test_util.JaxTestCase
    _check_against_numpy = case._CheckAgainstNumpy
    case._CheckAgainstNumpy = check_against_numpy
    case._CompileAndCheck = compile_and_check
    test_util.check_grads = check_derivatives


def sampled(items: list[Any], count: int) -> list[Any]:
    """The items that can import a function: `count` at most of each test, evenly spaced."""
    by_test: dict[Any, list[Any]] = {}
    for item in items:
        test = inspect.unwrap(item.function)
        by_test.setdefault(test, []).append(item)
    return [
        group[len(group) * i // min(count, len(group))]
        for test, group in by_test.items()
        if _IMPORTING.search(inspect.getsource(test))
        for i in range(min(count, len(group)))
    ]


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """The tests call `jax.jit` as `imported`."""
    items[:] = sampled(items, _VARIANTS * int(os.environ["JAX_NUM_GENERATED_CASES"]))
    seen = jax_suite.Instead("jax", jax, jax)
    seen.jit = imported
    for item in items:
        item.module.jax = seen
        if hasattr(item.module, "check_grads"):
            item.module.check_grads = check_derivatives


def pytest_runtest_setup(item: Any) -> None:
    """Count from zero in each test."""
    _imports.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Skip tests that import no function, and those that need what graphs lack on purpose."""
    report = yield
    told = "" if call.excinfo is None else str(call.excinfo.value)
    if call.when == "call" and (not _imports or OUTSIDE.search(told)):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, told or "imports no function")
    return report


def main() -> None:
    """Print how many samples passed of each file, and the tests that failed."""
    for file in sys.argv[2:] or FILES:
        found = jax_suite.outcomes(Path(sys.argv[1]), [file], plugin="jax_imports")
        print(file, dict(Counter(outcome for _, outcome in found)))
        failed = Counter(name for name, outcome in found if outcome in ("failed", "error"))
        for name, count in failed.items():
            print(f"    {name} {count}")


if __name__ == "__main__":
    main()
