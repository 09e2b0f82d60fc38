"""Which of the functions of NumPy and SciPy that projects use are there for variables.

    python benchmarks/coverage_of_numpy.py CHECKOUT ... [--tests] [--lacking 30]

reads the Python files of each checkout that import NumPy, by their own imports and without running
anything, and counts which files use which functions of `numpy`, `numpy.linalg`, `numpy.fft`,
`numpy.random` and `scipy.special`. NumPy by the names of `jax.numpy` and `autograd.numpy` counts
too. A file that uses a function ten times has one use of it.

A function is there if it takes variables and tensors, or takes none of them anyway: it is called
with numbers and what it gives is a constant. Functions for which numbers make no sense, such as
those that read files or print, are counted apart, and listed.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
from tables import table

sys.path.insert(0, str(Path(__file__).parents[1]))

from primgraph.numpy.random import MOVED_AND_SCALED
from primgraph.operators.name_table import NOT_BECAUSE
from primgraph.operators.names import library, rows

ROOMS = ("numpy", "numpy.linalg", "numpy.fft", "numpy.random", "scipy.special")
SAME = {"jax.numpy": "numpy", "autograd.numpy": "numpy", "autograd.scipy": "scipy",
        "jax.scipy": "scipy"}  # fmt: skip

# Objects that are used as functions are, by square brackets.
_OBJECTS = frozenset(("c_", "index_exp", "mgrid", "ogrid", "r_", "s_"))

# What is about NumPy itself, text, files, memory, the machinery of types, or dates.
_APART = """
    array2string array_repr array_str base_repr binary_repr bmat busday_count busday_offset
    can_cast common_type datetime_as_string datetime_data einsum_path format_float_positional
    format_float_scientific from_dlpack frombuffer fromfile frompyfunc fromregex fromstring
    fromiter genfromtxt get_include get_printoptions getbufsize geterr geterrcall info is_busday
    isdtype isfortran isnat issubdtype iterable load loadtxt may_share_memory min_scalar_type
    mintypecode nested_iters printoptions promote_types require result_type save savetxt savez
    savez_compressed set_printoptions setbufsize seterr seterrcall shares_memory show_config
    show_runtime test typename asmatrix random.seed random.get_state random.set_state
    random.get_bit_generator random.set_bit_generator random.default_rng linalg.test fft.test
    random.test
    """
APART = frozenset(_APART.split())


def _bound(tree: ast.Module) -> dict[str, str]:
    """What names of a file are bound to by its imports, of those that lead to NumPy and SciPy."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                found[alias.asname or whole] = _plain(whole)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = _plain(f"{node.module}.{alias.name}")
    return {k: v for k, v in found.items() if v.partition(".")[0] in ("numpy", "scipy")}


def _plain(name: str) -> str:
    """A dotted name with NumPy and SciPy by their own names."""
    for wrapped, own in SAME.items():
        if name == wrapped or name.startswith(f"{wrapped}."):
            return own + name.removeprefix(wrapped)
    return name


def _dotted(node: ast.expr) -> list[str]:
    """`a.b.c` as its parts; none for what is no such name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *parts[::-1]] if isinstance(node, ast.Name) else []


def _function(name: str) -> str:
    """The longest beginning of a dotted name that is a function of one of the modules, if any."""
    parts = name.split(".")
    for length in range(2, len(parts) + 1):
        room, last = ".".join(parts[: length - 1]), parts[length - 1]
        if room not in ROOMS:
            continue
        found = _attribute(room, last)
        if found is None or isinstance(found, ModuleType):
            continue
        is_function = callable(found) and not inspect.isclass(found)
        return f"{room}.{last}" if is_function or last in _OBJECTS else ""
    return ""


@cache
def _attribute(room: str, name: str) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(importlib.import_module(room), name, None)


def used(text: str) -> set[str] | None:
    """The functions that a file uses; None for one that does not import NumPy."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError:
        return None
    bound = _bound(tree)
    if not any(v.partition(".")[0] == "numpy" for v in bound.values()):
        return None
    found = {_function(name) for name in bound.values()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, *rest = _dotted(node) or [""]
            if first in bound:
                found.add(_function(".".join([bound[first], *rest])))
    return found - {""}


def files(checkout: Path, tests: bool) -> Iterator[Path]:
    """The Python files of a checkout, those of its tests only if they are asked for."""
    for path in sorted(checkout.rglob("*.py")):
        parts = path.relative_to(checkout).parts
        is_test = {"test", "tests"}.intersection(parts) or parts[-1].startswith(("test_", "conf"))
        if tests or not is_test:
            yield path


def standing(name: str) -> str:
    """What becomes of a function: "there", "constant", "apart" or "lacking"."""
    room, _, last = name.rpartition(".")
    if room == "scipy.special":
        return "there" if last in rows("scipy.special") else "lacking"
    short = name.removeprefix("numpy.")
    if short in APART:
        return "apart"
    if room == "numpy.random":
        return "there" if last in MOVED_AND_SCALED else "constant"
    if short in _OBJECTS or short in library("numpy") or short in rows("drop_in"):
        return "there"
    if NOT_BECAUSE.get(short, "").startswith("it takes numbers:"):
        return "constant"
    mine = _attribute("numpy", short) if "." not in short else None
    is_alias = any(mine is _attribute("numpy", other) for other in rows("numpy"))
    return "there" if mine is not None and is_alias else "lacking"


def main() -> None:
    """Count, and print a row a project and the functions that are lacking most."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("checkouts", type=Path, nargs="+")
    parser.add_argument("--tests", action="store_true", help="count the tests of projects too")
    parser.add_argument("--lacking", type=int, default=30, help="how many to list")
    given = parser.parse_args()
    rows, whole, total = [], Counter[str](), Counter[str]()
    for checkout in given.checkouts:
        counted, uses = 0, Counter[str]()
        for path in files(checkout, given.tests):
            found = used(path.read_text(encoding="utf-8", errors="replace"))
            counted += found is not None
            uses.update(found or ())
        kinds = Counter[str]()
        for name, count in uses.items():
            kinds[standing(name)] += count
        rows.append(_row(checkout.resolve().name, counted, kinds))
        whole.update(uses)
        total.update(kinds | Counter({"files": counted}))
    rows.append(_row("all", total.pop("files", 0), total))
    head = ["project", "files", "uses", "there", "constants", "lacking", "apart", "share"]
    print("\n".join(table(head, rows)))
    for kind, most in (("lacking", given.lacking), ("apart", None)):
        found = sorted((-c, n) for n, c in whole.items() if standing(n) == kind)[:most]
        print(f"\n{kind}, with uses: {', '.join(f'{n} {-c}' for c, n in found) or 'none'}")


def _row(name: str, count: int, kinds: Counter[str]) -> list[str]:
    there, constants, lacking = (kinds[k] for k in ("there", "constant", "lacking"))
    uses = there + constants + lacking
    share = f"{100 * (there + constants) / uses:.1f} %" if uses else "-"
    return [name, *map(str, (count, uses, there, constants, lacking, kinds["apart"])), share]


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
