"""The tests of JAX's `numpy` and `scipy` modules, on `primgraph.numpy` and `primgraph.scipy`.

    python tests/tools/jax_suite.py CHECKOUT [TEST ...]

runs those of a checkout of https://github.com/jax-ml/jax, in an environment with jax, jaxlib and
absl-py. A test is a file of its folder `tests`, or a name as pytest has them; without any, `FILES`
are run. JAX's own helpers draw the arguments. Each function meets tensors, and variables under
`pg.jit`; its values are compared, and kinds of dtypes, since promotion is NumPy's here.
`jax_exceptions.txt` has the tests that do not pass, with reasons.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

import primgraph as pg
import primgraph.numpy
import primgraph.scipy
from primgraph.operators.handle import Handle

try:
    import jax
    import jax.scipy.cluster
    import jax.scipy.signal
    import jax.scipy.stats
    from jax._src import test_util
except ImportError:
    jax = test_util = None

EXCEPTIONS = Path(__file__).parent / "jax_exceptions.txt"
# Files of tests, and how many pass at least of those that can be stated.
FILES = {
    "lax_numpy_reducers_test.py": 0.95,
    "lax_numpy_einsum_test.py": 0.95,
    "lax_numpy_operators_test.py": 0.95,
    "lax_numpy_indexing_test.py": 0.95,
    "lax_scipy_special_functions_test.py": 0.75,
    "lax_scipy_test.py": 0.8,
    "scipy_stats_test.py": 0.95,
}
# The number of a sample in the name of a test.
_SAMPLE = r"(?<=testOp)\d+|\d+$"

MODES = {"fwd": "forward", "rev": "reverse"}
# Functions that make arrays, which are tensors here.
_MAKING = ("arange", "array", "asarray", "full", "linspace", "ones", "zeros")
# Arguments of JAX's that are left out: how it computes, and dtypes of results.
_HOW = ("precision", "preferred_element_type", "indices_are_sorted", "unique_indices")


class Instead(types.ModuleType):
    """A module of primgraph's under the name of JAX's; dtypes that it lacks are JAX's."""

    def __init__(self, name: str, own: Any, jaxs: Any) -> None:
        super().__init__(name)
        self._own, self._jaxs = own, jaxs

    def __getattr__(self, name: str) -> Any:
        try:
            found = getattr(self._own, name)
        except AttributeError:
            found = getattr(self._jaxs, name)
            if self._own is self._jaxs or "_ScalarMeta" in type(found).__name__:
                return found
            raise
        plain = isinstance(found, type) or not callable(found) or self.__name__ != "jax.numpy"
        return found if plain else without_options(found)


class At:
    """Updated copies of an array by JAX's words: `x.at[index].add(y)`."""

    def __init__(self, x: Any, index: Any = None) -> None:
        self.x, self.index = x, index

    def __getitem__(self, index: Any) -> At:
        return At(self.x, index)

    def get(self, **_: Any) -> Any:
        return self.x[self.index]

    def set(self, y: Any, **_: Any) -> Any:
        return pg.set_slice(self.x, self.index, y)

    def add(self, y: Any, **_: Any) -> Any:
        return self._scatter(pg.scatter_add, y)

    def subtract(self, y: Any, **_: Any) -> Any:
        return self.add(-y)

    def min(self, y: Any, **_: Any) -> Any:
        return self._scatter(pg.scatter_min, y)

    def max(self, y: Any, **_: Any) -> Any:
        return self._scatter(pg.scatter_max, y)

    def multiply(self, y: Any, **_: Any) -> Any:
        return self.set(self.get() * y)

    def divide(self, y: Any, **_: Any) -> Any:
        return self.set(self.get() / y)

    def power(self, y: Any, **_: Any) -> Any:
        return self.set(self.get() ** y)

    def apply(self, function: Callable[..., Any], **_: Any) -> Any:
        return self.set(function(self.get()))

    def _scatter(self, function: Callable[..., Any], y: Any) -> Any:
        places = np.arange(self.x.size).reshape(self.x.shape)[self.index]
        parts = pg.reshape(pg.broadcast_to(y, places.shape), (places.size,))
        flat = function(pg.reshape(self.x, (self.x.size,)), places.ravel(), parts)
        return pg.reshape(flat, self.x.shape)


def without_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without the arguments of JAX's that say how it computes."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("promote_integers") is True:
            del kwargs["promote_integers"]
        found = function(*args, **{n: v for n, v in kwargs.items() if n not in _HOW})
        return on_tensors(found) if function.__name__ in _MAKING else found

    return functools.update_wrapper(call, function)


def replace_modules() -> types.ModuleType:
    """Put primgraph's modules in the place of JAX's; the module that tests see as `jax`."""
    jax.numpy = sys.modules["jax.numpy"] = Instead("jax.numpy", primgraph.numpy, jax.numpy)
    for name in ("special", "stats", "linalg", "integrate", "cluster", "signal"):
        jaxs = getattr(jax.scipy, name)
        module = Instead(f"jax.scipy.{name}", getattr(primgraph.scipy, name, None), jaxs)
        setattr(jax.scipy, name, module)
        sys.modules[f"jax.scipy.{name}"] = module
    seen = Instead("jax", jax, jax)
    for name in ("jit", "grad", "value_and_grad", "vmap", "jvp", "jacfwd", "jacrev", "hessian"):
        setattr(seen, name, getattr(pg, name))
    return seen


def on_tensors(args: Any) -> Any:
    """The arguments with tensors for arrays."""
    if isinstance(args, np.ndarray) and args.dtype.kind in "biufc":
        return pg.tensor(args)
    if isinstance(args, list | tuple):
        return type(args)([on_tensors(a) for a in args])
    return args


def as_arrays(result: Any) -> Any:
    """The result with arrays for tensors."""
    if isinstance(result, pg.Tensor):
        return np.asarray(result)
    if isinstance(result, list | tuple):
        return [as_arrays(r) for r in result]
    return result


def compare(case: Any, found: Any, expected: Any, **given: Any) -> None:
    """Check values, and that results are both boolean, whole, real or complex numbers."""
    case.assertAllClose(as_arrays(found), as_arrays(expected), **given)


def check_against_numpy(
    case: Any, reference: Callable[..., Any], function: Callable[..., Any], args_maker: Any,
    check_dtypes: bool = True, tol: Any = None, atol: Any = None, rtol: Any = None, **_: Any,
) -> None:  # fmt: skip
    """The values of the function of tensors are those of NumPy or SciPy."""
    args = args_maker()
    expected = reference(*as_arrays(args))
    compare(case, function(*on_tensors(args)), expected, atol=atol or tol, rtol=rtol or tol)


def compile_and_check(
    case: Any, function: Callable[..., Any], args_maker: Any, check_dtypes: bool = True,
    tol: Any = None, rtol: Any = None, atol: Any = None, **_: Any,
) -> None:  # fmt: skip
    """The function compiled for arrays has the values that it has of tensors."""
    compiled = pg.jit(function, target="numpy")
    for _ in range(2):
        args = args_maker()
        expected = function(*on_tensors(args))
        compare(case, compiled(*as_arrays(args)), expected, atol=atol or tol, rtol=rtol or tol)


def check_traced(
    function: Callable[..., Any], args: Any, order: int = 2, modes: Any = ("fwd", "rev"),
    *_: Any, **__: Any,
) -> None:  # fmt: skip
    """Derivatives of a function of primgraph's are as by differences."""
    # Some files have a tolerance in the place of modes.
    modes = modes if isinstance(modes, list | tuple) else tuple(MODES)
    pg.check_grads(function, [np.asarray(a) for a in args], order, [MODES[m] for m in modes])


def kinds_match(_case: Any, found: Any, expected: Any, **_: Any) -> None:
    """Both are boolean, whole, real or complex numbers."""
    kinds = [np.asarray(a).dtype.kind.replace("u", "i") for a in (found, expected)]
    assert kinds[0] == kinds[1]


def use_dtypes_of_numpy() -> None:
    """Leave out bfloat16 and numbers of four and eight bits, which are JAX's only."""
    test_util._LazyDtypes.custom_floats = property(lambda self: [])
    numbers = {d for d in test_util.supported_dtypes() if d.__module__ == "numpy"}
    test_util.supported_dtypes = lambda: numbers


def pytest_configure(config: Any) -> None:
    """Replace modules and checks before tests are collected."""
    config.seen_as_jax = replace_modules()
    Handle.at = property(At)
    test_util.check_grads = check_traced
    use_dtypes_of_numpy()
    case = test_util.JaxTestCase
    case._CheckAgainstNumpy = check_against_numpy
    case._CompileAndCheck = compile_and_check
    case.assertDtypesMatch = kinds_match


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """The tests call primgraph's transformations as `jax.jit` and so on."""
    for item in items:
        if hasattr(item.module, "check_grads"):
            item.module.check_grads = test_util.check_grads
        item.module.jax = config.seen_as_jax


def exceptions() -> dict[str, tuple[str, str]]:
    """The tests that do not pass, with what kind of reason each has and which."""
    lines = EXCEPTIONS.read_text(encoding="utf-8").splitlines()
    rows = [line.split(maxsplit=2) for line in lines if line and not line.startswith("#")]
    return {name: (kind, reason) for name, kind, reason in rows}


def exception_of(name: str, known: dict[str, tuple[str, str]]) -> str | None:
    """The pattern that a test's name fits, if it is known not to pass."""
    return next((pattern for pattern in known if fnmatchcase(name, pattern)), None)


def outcomes(
    checkout: Path, tests: Sequence[str], cases: int = 10, plugin: str = "jax_suite"
) -> list[tuple[str, str]]:
    """The outcome of each sample of each test: "passed", "failed", "error" or "skipped".

    A test is named by its file and function, without the number of the sample.
    """
    root = Path(__file__).parents[2]
    paths = [str(root), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    known = {
        "PYTHONPATH": os.pathsep.join(paths),
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_GENERATED_CASES": str(cases),
    }
    command = [
        *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", plugin, "-v"),
        *("-c", os.devnull, "--rootdir", ".", "-W", "ignore", "--tb=no", *tests),
    ]
    ran = subprocess.run(
        command, cwd=checkout / "tests", env=os.environ | known, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    found = re.findall(
        r"^(\S+?)::\w+::(\S+) (PASSED|FAILED|ERROR|SKIPPED)", ran.stdout, re.MULTILINE
    )
    if not found:
        raise RuntimeError(ran.stdout[-2000:] + ran.stderr[-2000:])
    return [
        (f"{file}::{re.sub(_SAMPLE, '', test)}", outcome.lower()) for file, test, outcome in found
    ]


def main() -> None:
    """Print how many samples passed of each file, and the tests that failed."""
    for file in sys.argv[2:] or FILES:
        found = outcomes(Path(sys.argv[1]), [file])
        print(file, dict(Counter(outcome for _, outcome in found)))
        failed = Counter(name for name, outcome in found if outcome in ("failed", "error"))
        for name, count in failed.items():
            print(f"    {name} {count}{'' if exception_of(name, exceptions()) else ' new'}")


if __name__ == "__main__":
    main()
