"""What is installed and how it hangs together: packages, links, public names, floors, imports."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

import primgraph as pg

PACKAGE = Path(pg.__file__).parent
ROOT = Path(__file__).parent.parent

# In the check of the wheel these tests stand alone, with an installed primgraph.
in_checkout = pytest.mark.skipif(
    not (ROOT / "transforms").is_dir(), reason="looks at the checkout, and there is none here"
)


def python(code: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a fresh interpreter, which finds the primgraph under test."""
    path = {"PYTHONPATH": str(PACKAGE.parent)} | variables
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env={**os.environ, "PRIMGRAPH_DEBUG": "0"} | path,
        capture_output=True,
        text=True,
        timeout=120,
    )


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def folders() -> dict[str, Path]:
    """The package that each folder of the checkout is, by name; links are not followed."""
    found = {}
    for top, name in (
        ("primgraph", "primgraph"),
        ("transforms", "primgraph.transforms"),
        ("codegen", "primgraph.codegen"),
    ):
        for folder, inner, files in os.walk(ROOT / top):
            inner[:] = [d for d in inner if d != "__pycache__"]
            if any(f.endswith(".py") for f in files):
                below = Path(folder).relative_to(ROOT / top).parts
                found[".".join((name, *below))] = Path(folder)
    return found


@in_checkout
def test_every_folder_with_python_files_is_a_listed_package():
    listed = pyproject()["tool"]["setuptools"]["packages"]
    assert len(set(listed)) == len(listed)
    assert set(listed) == set(folders())


@in_checkout
def test_root_folders_are_mapped_to_their_packages():
    mapped = pyproject()["tool"]["setuptools"]["package-dir"]
    outside = {
        name: str(folder.relative_to(ROOT))
        for name, folder in folders().items()
        if folder.relative_to(ROOT).parts[0] != "primgraph"
    }
    assert outside.items() >= mapped.items()
    assert {name.split(".")[1] for name in outside} == {name.split(".")[1] for name in mapped}


@in_checkout
def test_package_data_covers_every_other_file():
    patterns = pyproject()["tool"]["setuptools"]["package-data"]
    packages = folders()
    missing = []
    for top in ("primgraph", "transforms", "codegen"):
        for folder, inner, files in os.walk(ROOT / top):
            inner[:] = [d for d in inner if d != "__pycache__"]
            for file in (Path(folder, f) for f in files if not f.endswith((".py", ".pyc"))):
                owner = max(
                    (n for n, place in packages.items() if file.is_relative_to(place)),
                    key=lambda n: len(packages[n].parts),
                )
                path = file.relative_to(packages[owner]).as_posix()
                if not any(fnmatch(path, p) for p in patterns.get(owner, [])):
                    missing.append(f"{owner}: {path}")
    assert missing == [] or missing == ["primgraph: codegen", "primgraph: transforms"]


def test_package_data_is_installed():
    assert (PACKAGE / "py.typed").is_file()
    assert list((PACKAGE / "codegen" / "templates").glob("*.j2"))


@in_checkout
@pytest.mark.parametrize("name", ["transforms", "codegen"])
def test_links_point_to_the_root_folders(name):
    link = ROOT / "primgraph" / name
    if link.is_file() and link.read_text(encoding="utf-8").strip() == f"../{name}":
        pytest.skip("links were checked out as text files")
    assert os.readlink(link) == f"../{name}"
    assert (link / "__init__.py").samefile(ROOT / name / "__init__.py")


@in_checkout
@pytest.mark.parametrize("name", ["transforms", "codegen"])
def test_a_bare_import_from_the_root_names_the_right_one(name):
    run = python(f"import {name}", ROOT)
    assert run.returncode != 0
    assert run.stderr.splitlines()[-1] == f"ImportError: import primgraph.{name}, not {name}"


def test_modules_of_the_user_do_not_get_in_the_way(tmp_path):
    for name in ("transforms", "codegen", "errors", "operators", "primitives"):
        (tmp_path / f"{name}.py").write_text("MINE = True\n", encoding="utf-8")
    code = (
        "import transforms, codegen, errors, operators, primitives\n"
        "import primgraph.transforms, primgraph.codegen\n"
        "assert transforms.MINE and codegen.MINE\n"
        "g = primgraph.parse('graph f(%x: f64[]) {\\n%0: f64[] = tanh(%x)\\nreturn %0\\n}')\n"
        "print(primgraph.compile(g)(0.0)[0])\n"
    )
    run = python(code, tmp_path)
    assert (run.stdout, run.stderr) == ("0.0\n", "")


def test_public_names_are_distinct_and_there():
    assert len(set(pg.__all__)) == len(pg.__all__)
    assert [name for name in pg.__all__ if not hasattr(pg, name)] == []


def test_public_functions_and_classes_are_documented():
    listed = {name: getattr(pg, name) for name in pg.__all__}
    assert [n for n, x in listed.items() if callable(x) and not (x.__doc__ or "").strip()] == []


@in_checkout
def test_the_version_is_stated_once():
    assert pg.__version__ == pyproject()["project"]["version"]


# Floors: a module imports only from its own floor or lower ones.

FLOORS = (
    ("primgraph.errors", "primgraph.ir.source", "primgraph.ir.types", "primgraph.defaults"),
    ("primgraph.ir",),
    ("primgraph.primitives",),
    ("primgraph.operators",),
    ("primgraph.transforms", "primgraph.codegen"),
    ("primgraph",),
    ("primgraph.view",),
    ("primgraph.profile", "primgraph.command_line", "primgraph.__main__"),
)


def modules() -> dict[str, tuple[str, ast.Module]]:
    """Package and syntax tree of every module of the package, by name."""
    found = {}
    for folder, inner, files in os.walk(PACKAGE, followlinks=True):
        inner[:] = [d for d in inner if d != "__pycache__"]
        package = ".".join(("primgraph", *Path(folder).relative_to(PACKAGE).parts))
        for file in (f for f in files if f.endswith(".py")):
            name = package if file == "__init__.py" else f"{package}.{file[:-3]}"
            text = Path(folder, file).read_text(encoding="utf-8")
            found[name] = package, ast.parse(text, filename=name)
    return found


MODULES = modules()


def imports(tree: ast.AST) -> Iterator[str]:
    """Names of the modules of the package that are imported anywhere in `tree`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            inner = [f"{node.module}.{a.name}" for a in node.names]
            submodules = [name for name in inner if name in MODULES]
            yield from submodules
            if len(submodules) < len(inner):
                yield node.module


def floor(module: str) -> int:
    """The floor of a module: that of the longest name in the table that it begins with."""
    places = [
        (len(name), number)
        for number, names in enumerate(FLOORS)
        for name in names
        if module == name or module.startswith(f"{name}.")
    ]
    return len(FLOORS) if module == "primgraph" else max(places)[1]


def only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def test_modules_import_from_their_own_floor_and_below_only():
    above = [
        f"{name} imports {other}"
        for name, (_, tree) in MODULES.items()
        for other in imports(tree)
        if floor(other) > floor(name)
    ]
    assert above == []


def test_code_generation_knows_nothing_of_transforms():
    generator = {n: t for n, (_, t) in MODULES.items() if n.startswith("primgraph.codegen")}
    assert len(generator) > 5
    for name, tree in generator.items():
        assert [o for o in imports(tree) if o.startswith("primgraph.transforms")] == [], name


def test_modules_do_not_import_each_other_in_a_circle():
    graph = {
        name: {o for node in tree.body if not only_for_types(node) for o in imports(node)} - {name}
        for name, (_, tree) in MODULES.items()
    }
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' <- '.join(error.args[1])}")
    # Nothing imports these, so that they may stand anywhere behind what they import.
    outer = ("primgraph.compat", "primgraph.__main__")
    inner = [name for name in order if not name.startswith(outer)]
    assert inner[-1] == "primgraph"


def test_imports_are_absolute_and_at_the_top():
    faults = []
    for name, (_, tree) in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                faults.append(f"{name}:{node.lineno} is a relative import")
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                inside = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
                faults += [f"{name}:{n.lineno} imports inside a function" for n in inside]
    assert faults == []


# What importing does, and does not.


def test_importing_is_light_and_changes_no_state_of_others(tmp_path):
    code = """
import random, sys, warnings
import numpy as np

def state():
    return (np.geterr(), list(warnings.filters), sys.getrecursionlimit(), random.getstate(),
            repr(np.random.get_state()), np.get_printoptions(), sys.gettrace(), sys.excepthook,
            sys.path[:], sys.meta_path[:])

before = state()
import primgraph
assert state() == before, [b for a, b in zip(before, state()) if a != b]
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"networkx", "jinja2", "scipy", "matplotlib", "mpmath", "pytest"}))
"""
    run = python(code, tmp_path)
    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_importing_raises_no_warning(tmp_path):
    code = "import sys; sys.dont_write_bytecode = True; import primgraph"
    run = python(code, tmp_path, PYTHONWARNINGS="error")
    assert (run.returncode, run.stderr) == (0, "")
