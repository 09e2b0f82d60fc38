"""Run the quick tests that hold the shape of the project, and the examples of changed files.

    python tests/tools/guards.py

These are the tables in which every primitive, pass or public name has a row, the counts of the
source, and the examples in docstrings of public functions in files that differ from the last
commit. A failing test says what to add to which file.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

GUARDS = (
    "codegen/test_cards.py::test_every_primitive_has_a_card",
    "codegen/test_cards.py::test_a_card_stands_in_the_file_that_is_named_as_that_of_the_primitive",
    "codegen/test_codegen.py::test_every_primitive_has_samples",
    "codegen/test_generic_code.py::test_every_card_is_among_these",
    "primitives/test_primitives.py::test_every_primitive_has_samples_and_rules",
    "primitives/test_primitives.py::test_every_row_is_of_a_primitive",
    "primitives/test_primitives.py::test_every_primitive_of_several_operands_has_uneven_samples",
    "primitives/test_special.py::test_every_function_has_a_row",
    "program/test_passes.py::test_the_guide_lists_the_passes_in_order",
    "project/test_house.py",
    "project/test_mutants.py::test_every_file_of_rules_is_changed_and_has_its_tests",
    "project/test_mutants.py::test_every_file_of_a_room_is_changed_and_has_its_tests",
    "project/test_packaging.py::test_every_folder_with_python_files_is_a_listed_package",
    "project/test_public_api.py::test_the_public_names_and_their_parameters_are_those_that_are_written_down",
    "transforms/test_every_transform.py::test_every_transform_that_is_declared_has_a_check",
)
EXAMPLES = "project/test_docstrings.py"


def changed_files() -> list[str]:
    """Paths of Python files of the package that differ from the last commit, new ones included."""
    git = ["git", "-C", str(ROOT)]
    commands = (
        ["diff", "--name-only", "--diff-filter=d", "HEAD"],
        ["ls-files", "--others", "--exclude-standard"],
    )
    found = [
        subprocess.run([*git, *command], capture_output=True, text=True, check=True).stdout
        for command in commands
    ]
    rooms = ("primgraph/", "transforms/", "codegen/")
    return [p for p in "".join(found).split() if p.startswith(rooms) and p.endswith(".py")]


def public_names(paths: list[str]) -> Iterator[str]:
    """Names of the public functions and classes of these files."""
    for path in paths:
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                yield node.name


def run() -> int:
    """Run the tests; return the exit status of pytest, which is 0 if all passed."""
    pytest = [sys.executable, "-m", "pytest", "-q", "--tb=short"]
    status = subprocess.run([*pytest, *GUARDS], cwd=ROOT / "tests", check=False).returncode
    names = sorted(set(public_names(changed_files())))
    if not names:
        return status
    ends = " or ".join(f".{name}]" for name in names)
    chosen = [*pytest, EXAMPLES, "-k", ends]
    # Status 5 is that no test was chosen: none of these names is public or has an example.
    found = subprocess.run(chosen, cwd=ROOT / "tests", check=False).returncode
    return status or (0 if found == 5 else found)


if __name__ == "__main__":
    sys.exit(run())
