"""The command that makes faults knows the files as they are now."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

pytest.importorskip("coverage")
pytest.importorskip("resource")

import mutants
from mutant_changes import mutants_of
from mutant_runs import faulty_codes
from mutants import EQUIVALENT, LAST, ROOT, TESTS, files

# What rewrites nothing and has no rules: it arranges passes, or moves equations as they are.
OTHERS = {
    "clean_up", "contract", "edits", "fold_constants", "hoist", "instantiate_sizes",
    "join_loops", "loop_invariants", "loop_parts", "prune_bodies",
    "join_products", "lower", "matrix_chain", "pipeline", "raise_operators", "simplify",
    "simplify_loops", "unzip_linear",
}  # fmt: skip

here = pytest.mark.skipif(
    not (ROOT / "transforms").is_dir() or sys.platform == "win32",
    reason="changes the files of a checkout, in processes that are forked",
)


@here
def test_every_file_of_rules_is_changed_and_has_its_tests() -> None:
    names = {p.stem for p in (ROOT / "transforms").rglob("*.py")} - {"__init__"}
    changed = {Path(f).stem for f in files() if f.startswith("transforms/")}
    rest = names - changed
    assert rest == OTHERS, (
        f"add {sorted(rest - OTHERS)} to TESTS in tests/tools/mutants.py, with tests of its rules, "
        f"or to OTHERS here if it has none; remove {sorted(OTHERS - rest)} from OTHERS"
    )
    missing = [
        name
        for name in {name for tests in TESTS.values() for name in tests} | set(LAST)
        if not list((ROOT / "tests").rglob(f"test_{name}.py"))
    ]
    assert not missing, f"TESTS in tests/tools/mutants.py names tests that are gone: {missing}"


@here
@pytest.mark.parametrize(
    "room",
    [f"primgraph/{name}" for name in ("eager", "control")]
    + ["transforms/loops", "codegen/lower/nests", "codegen/targets/c", "codegen/lower/arrays"],
)
def test_every_file_of_a_room_is_changed_and_has_its_tests(room: str) -> None:
    names = {p.name for p in (ROOT / room).rglob("*.py")} - {"__init__.py"}
    changed = {Path(f).name for f in files([f"{room}/*"])}
    assert changed == names, f"add {sorted(names - changed)} to TESTS in tests/tools/mutants.py"
    assert all(mutants.tests_of(f) for f in files([f"{room}/*"]))
    assert set(files([f"{room}/*", "docs/*"])) == set(files([f"{room}/*"]))


@here
def test_changes_that_mean_the_same_are_changes_of_the_files_as_they_are() -> None:
    named = {file for file, _, _ in EQUIVALENT}
    found = {m.key for file in named for m in mutants_of(ROOT, file)}
    assert not set(EQUIVALENT) - found


@here
def test_changed_files_are_python_and_differ_in_code() -> None:
    file = "transforms/dataflow/value_bounds.py"
    source = (ROOT / file).read_bytes()
    found = mutants_of(ROOT, file)
    assert len(found) > 20
    for mutant in found:
        changed = mutant.applied(source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
        assert changed.splitlines()[mutant.line - 1].decode().strip() == mutant.after
        assert source.splitlines()[mutant.statement - 1].strip()


def test_faults_in_functions_are_told_from_those_on_import(tmp_path: Path) -> None:
    source = b"def f(x, y=1):\n    return [(lambda: x + 1), (lambda: x + 2)]\n"
    (tmp_path / "file.py").write_bytes(source)
    changes = {m.after: faulty_codes(m, source) for m in mutants_of(tmp_path, "file.py")}
    assert changes["def f(x, y=2):"] is None
    codes = changes["return [(lambda: x - 1), (lambda: x + 2)]"]
    assert codes is not None
    assert len(codes) == 3
