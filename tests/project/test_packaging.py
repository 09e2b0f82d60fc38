"""What is installed and how it hangs together: packages, builds, public names, floors, imports."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from email import message_from_bytes
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from rooms import PICTURE, ROOMS, arrows, drawn, floor, imported, imports, levels, modules, nodes
from samples import ROWS

import primgraph as pg
from primgraph.base.providers import MODELS, providers
from primgraph.ir.primitive import lookup

pytestmark = pytest.mark.long

PACKAGE = Path(pg.__file__).parent
ROOT = Path(__file__).parents[2]

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
    """The package that each folder of the checkout is, by name."""
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
    assert missing == []


def test_package_data_is_installed():
    assert (PACKAGE / "py.typed").is_file()
    assert list((Path(pg.codegen.__file__).parent / "targets" / "templates").glob("*.j2"))


def copied(folder: Path) -> Path:
    """The checkout without its repository, as in a zip of it: files only, no links."""
    generated = (
        ".git",
        ".venv",
        "__pycache__",
        "*.egg-info",
        ".*_cache",
        "build",
        "gallery",
        "site",
    )
    left_out = shutil.ignore_patterns(*generated)
    shutil.copytree(ROOT, folder, symlinks=True, ignore=left_out)
    links = [p for p in folder.rglob("*") if p.is_symlink()]
    assert links == []
    return folder


def installed(folder: Path) -> Path:
    """The packages, copied to where an installation has them, in `folder`."""
    for name, place in folders().items():
        target = folder.joinpath(*name.split("."))
        shutil.copytree(place, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.pyc"))
    return folder


# Imports everything, runs something, and tells where packages are looked for.
USE = """
import sys
# An editable installation would find what is not there.
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in getattr(f, "__module__", "")]
import primgraph, primgraph.transforms, primgraph.codegen
g = primgraph.parse('graph f(%x: f64[]) {\\n%0: f64[] = tanh(%x)\\nreturn %0\\n}')
print(primgraph.compile(g)(0.0)[0], *primgraph.__path__)
"""


@in_checkout
def test_a_copy_of_the_checkout_that_has_no_links_is_imported(tmp_path):
    checkout = copied(tmp_path / "copy")
    run = python(USE, tmp_path, PYTHONPATH=str(checkout))
    assert (run.stdout.split(), run.stderr) == (
        ["0.0", str(checkout / "primgraph"), str(checkout)],
        "",
    )


@in_checkout
@pytest.mark.parametrize("described", [False, True])
def test_an_installed_copy_ignores_what_lies_beside_it(tmp_path, described):
    site = installed(tmp_path / "site")
    for name in ("transforms", "codegen"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text("1 / 0\n", encoding="utf-8")
    if described:
        shutil.copy(ROOT / "pyproject.toml", site)
    run = python(USE, tmp_path, PYTHONPATH=str(site))
    assert (run.stdout.split(), run.stderr) == (["0.0", str(site / "primgraph")], "")


@in_checkout
@pytest.mark.parametrize("text", [None, "", '[project]\nname = "primgraphs"\n', b"\xff"])
def test_packages_of_others_do_not_stand_in_for_missing_ones(tmp_path, text):
    site = installed(tmp_path / "site")
    for name in ("transforms", "codegen"):
        shutil.rmtree(site / "primgraph" / name)
        (site / name).mkdir()
        (site / name / "__init__.py").write_text("print('run')\n", encoding="utf-8")
    if text is not None:
        (site / "pyproject.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    run = python(USE, tmp_path, PYTHONPATH=str(site))
    assert run.stdout == ""
    assert run.stderr.splitlines()[-1].startswith(
        "ModuleNotFoundError: No module named 'primgraph."
    )


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


# Builds: what they contain, and that what they contain works.

can_build = pytest.mark.skipif(
    importlib.util.find_spec("build") is None or int(version("setuptools").split(".")[0]) < 77,
    reason="needs build and setuptools>=77, as pip install '.[test]' has them",
)


def built(checkout: Path, kind: str) -> Path:
    """The one new file of `kind`, "wheel" or "sdist", that the checkout builds."""
    target = Path(tempfile.mkdtemp(dir=checkout.parent, prefix=kind))
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        f"--{kind}",
        "--outdir",
        str(target),
    ]
    done = subprocess.run(
        [*command, str(checkout)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = target.iterdir()
    return made


def files_of(checkout: Path) -> set[str]:
    found = (p.relative_to(checkout) for p in checkout.rglob("*") if p.is_file())
    return {p.as_posix() for p in found if "__pycache__" not in p.parts}


@in_checkout
@can_build
def test_a_wheel_has_every_file_and_nothing_of_an_earlier_one(tmp_path):
    checkout = copied(tmp_path / "copy")
    before = files_of(checkout)
    (checkout / "transforms" / "gone.py").write_text("", encoding="utf-8")
    (checkout / "primgraph" / "ir" / "gone.py").write_text("", encoding="utf-8")
    wheels = [built(checkout, "wheel")]
    (checkout / "transforms" / "gone.py").unlink()
    (checkout / "primgraph" / "ir" / "gone.py").unlink()
    wheels.append(built(checkout, "wheel"))
    first, second = ({n for n in zipfile.ZipFile(w).namelist() if "/" in n} for w in wheels)
    assert first - second == {"primgraph/transforms/gone.py", "primgraph/ir/gone.py"}
    named = {n for n in second if ".dist-info/" not in n}
    tops = ("primgraph/", "transforms/", "codegen/")
    assert named == {
        n if n.startswith("primgraph/") else f"primgraph/{n}" for n in before if n.startswith(tops)
    }
    assert {n.split("/")[0] for n in files_of(checkout) - before} <= {"primgraph.egg-info"}
    with zipfile.ZipFile(wheels[1]) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        shown = message_from_bytes(archive.read(name))
    assert shown["Description-Content-Type"] == "text/markdown"
    text = str(shown.get_payload())
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert [n for n in links if not n.startswith(("https://", "#"))] == []
    assert "docs/ has a quick start, a tutorial" in text
    assert "![" not in text
    assert "primgraph compiles NumPy functions" in text


def unpacked(checkout: Path, folder: Path) -> Path:
    """Build an sdist from the checkout, and unpack it."""
    with tarfile.open(built(checkout, "sdist")) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (root,) = (folder / "unpacked").iterdir()
    return root


@in_checkout
@can_build
def test_an_sdist_has_the_whole_checkout(tmp_path):
    checkout = copied(tmp_path / "copy")
    before = files_of(checkout)
    root = unpacked(checkout, tmp_path)
    assert before - files_of(root) == set()
    # What pages print is seen in the checkout, whose pages these are, byte for byte.
    changed = [f for f in before if (root / f).read_bytes() != (checkout / f).read_bytes()]
    assert changed == []


@in_checkout
@can_build
@pytest.mark.dense
def test_an_sdist_passes_tests_from_there(tmp_path):
    """Dense, as `.ci/run` runs all tests from the sdist."""
    root = unpacked(copied(tmp_path / "copy"), tmp_path)
    blocks = "test_code_blocks_run_and_print_what_is_shown"
    pages = [f"project/test_readme.py::{blocks}[{page}]" for page in ("README", "docs/guide/ir")]
    links = "project/test_readme.py::test_links_lead_to_files"
    tests = ["ir/test_ir.py", "program/test_storage.py", "project/test_packaging.py", links, *pages]
    chosen = "parse or load or code_blocks or links or listed_package or bare_import"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "-k", chosen]
        + ["--basetemp", str(tmp_path / "inner")]
        + [f"tests/{name}" for name in tests],
        cwd=root,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Nothing is left out for want of a file; pages that need more than there is may be.
    left_out = [row for row in done.stdout.splitlines() if row.startswith("SKIPPED")]
    assert all(row.endswith(("is not installed", "no C compiler")) for row in left_out), left_out


# Types are checked in all files, those at the root of the checkout included.


@in_checkout
def test_types_are_checked_in_every_file(tmp_path):
    lay_out = runpy.run_path(str(ROOT / ".ci" / "check_types.py"))["lay_out"]
    count = lay_out(tmp_path / "laid")
    python_files = {p.relative_to(tmp_path / "laid") for p in (tmp_path / "laid").rglob("*.py")}
    places = {n: list(f.glob("*.py")) for n, f in folders().items()}
    assert python_files == {
        Path(*name.split("."), file.name) for name, files in places.items() for file in files
    }
    assert count == len(python_files)


@in_checkout
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")
@pytest.mark.parametrize("name", ["transforms", "codegen", "primgraph/ir"])
def test_an_error_of_types_is_found_wherever_it_is(tmp_path, name):
    # Small packages in the place of the real ones, which take long to check.
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package, place in folders().items():
        folder = tmp_path / place.relative_to(ROOT)
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(f'"""{package}."""\n', encoding="utf-8")
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "check_types.py", tmp_path / ".ci")
    command = [sys.executable, str(tmp_path / ".ci" / "check_types.py")]
    good = subprocess.run(command, capture_output=True, text=True, check=False)
    assert good.returncode == 0, good.stdout + good.stderr
    (tmp_path / name / "faulty.py").write_text("x: int = 'text'\n", encoding="utf-8")
    bad = subprocess.run(command, capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert "faulty.py:1: error" in bad.stdout


@in_checkout
@pytest.mark.parametrize("name", ["programs", "signatures"])
def test_the_programs_that_types_are_checked_in_run(name):
    runpy.run_path(str(ROOT / "tests" / "typing" / f"{name}.py"))


@in_checkout
@pytest.mark.dense
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")
def test_files_of_a_user_pass_strict_types():
    """Dense, as `.ci/run` checks types in a stage of its own."""
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "check_types.py")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_names_that_are_listed_are_the_public_ones():
    assert dir(pg) == sorted(pg.__all__)


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


def arrows_upwards(imported: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    """Return the pairs of a module and one on a higher floor that it imports or names."""
    pairs = [(name, other) for name, others in imported.items() for other in others]
    return [(name, other) for name, other in pairs if floor(other) > floor(name)]


def test_modules_import_from_their_own_floor_and_below_only():
    assert arrows_upwards(imported()) == []


def test_rooms_do_not_import_each_other_in_a_circle():
    below = arrows()
    assert below.keys() == ROOMS.keys()
    assert len(levels(below)) == len(below)


@in_checkout
def test_the_picture_of_the_rooms_has_those_that_are_there_and_their_arrows():
    anew = drawn()
    is_up_to_date = PICTURE.read_text(encoding="utf-8") == anew
    assert is_up_to_date, "python tests/tools/rooms.py draws docs/static/map.svg anew"


@in_checkout
def test_the_map_tells_of_every_room():
    page = (ROOT / "docs" / "guide" / "map.md").read_text(encoding="utf-8")
    table = "".join(line for line in page.splitlines() if line.startswith("| `"))
    for name in ROOMS:
        for part in name.split(", "):
            assert f"{part}`" in table or f"{part}.py`" in table, part


def test_code_generation_knows_nothing_of_transforms():
    generator = {n: o for n, o in imported().items() if n.startswith("primgraph.codegen")}
    assert len(generator) > 5
    for name, others in generator.items():
        assert [o for o in others if o.startswith("primgraph.transforms")] == [], name


def circle_among(imported: Mapping[str, Iterable[str]]) -> list[str]:
    """Return modules of which each is imported by the next one, the first by itself in the end.

    Imports for type checkers count, and those that are late.
    """
    graph = {name: {*others} - {name} for name, others in imported.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_modules_do_not_import_each_other_in_a_circle():
    assert circle_among(imported()) == []
    assert "primgraph.transforms" in imported()["primgraph"]


@pytest.mark.parametrize(
    "line",
    [
        "from primgraph.eager.tensor import Tensor",
        "if TYPE_CHECKING:\n    from primgraph.eager.tensor import Tensor",
        "module = import_module('primgraph.eager.tensor')",
        "homes = {'tensor': 'primgraph.eager.tensor'}",
        "import primgraph.eager.tensor",
    ],
)
def test_circles_and_upward_arrows_are_seen_however_a_module_is_imported(line):
    for name in ("primgraph.eager.node", "primgraph.ir.dims"):
        changed = ast.parse(f"{ast.unparse(modules()[name][1])}\n{line}\n")
        others = {name: frozenset(imports(ast.walk(changed)))}
        assert "primgraph.eager.tensor" in circle_among(imported() | others)
    assert arrows_upwards(others) == [(name, "primgraph.eager.tensor")]


def test_modules_that_are_loaded_late_are_named_in_full():
    faults = [
        f"{name}:{node.lineno} loads a module by part of its name"
        for name, found in nodes().items()
        for node in found
        if name != "primgraph"
        and isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("import_module")
        and isinstance(node.args[0], ast.JoinedStr)
        and ast.unparse(node.args[0]).startswith(("f'primgraph", "f'{__name__}"))
    ]
    assert faults == []


def test_each_task_that_modules_ask_for_has_a_module_that_does_it():
    asked = {
        ast.literal_eval(node.args[0])
        for found in nodes().values()
        for node in found
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "provider"
        and isinstance(node.args[0], ast.Constant)
    }
    # Primitives ask for the modules of their rules.
    asked.update(MODELS.values())
    asked.update(task for name in ROWS if (task := lookup(name).rules_task))
    assert len(asked) > 10
    assert asked - providers.keys() == set()
    assert {*providers.values()} - modules().keys() == set()
    unused = providers.keys() - asked
    assert {task for task in unused if not task.startswith(("operators.", "scipy"))} == set()


# Lines of the longest class of the code generator.
LONGEST_CLASS = 200


def test_no_class_of_code_generation_is_longer_than_a_person_reads_at_once():
    lengths = {
        f"{name}.{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for name, found in nodes().items()
        for node in found
        if name.startswith("primgraph.codegen") and isinstance(node, ast.ClassDef)
    }
    assert len(lengths) > 50
    assert {n: count for n, count in lengths.items() if count > LONGEST_CLASS} == {}


def test_imports_are_absolute_and_at_the_top():
    faults = []
    for name, found in nodes().items():
        for node in found:
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


def test_what_most_programs_do_not_use_is_loaded_when_it_is_asked_for(tmp_path):
    code = """
import sys
import primgraph as pg
rooms = ("nn", "optimizer", "view", "inspect", "training")
print([name for name in sys.modules if name.startswith(tuple(f"primgraph.{r}" for r in rooms))])
print(pg.trace(pg.sin, pg.spec(2)).to_mermaid().split()[0], pg.nn.Linear.__name__, pg.cost.__name__)
print([name for name in pg.__all__ if not hasattr(pg, name)])
"""
    run = python(code, tmp_path)
    assert (run.stdout, run.stderr) == ("[]\nflowchart Linear cost\n[]\n", "")


def test_importing_raises_no_warning(tmp_path):
    code = "import sys; sys.dont_write_bytecode = True; import primgraph"
    run = python(code, tmp_path, PYTHONWARNINGS="error")
    assert (run.returncode, run.stderr) == (0, "")
