"""Printers print statements: none looks for words in text that it has written itself.

What a printer needs to know of its text is known when it writes it: names that are used, sizes that
are read, statements that return.
"""

import ast
from pathlib import Path

import pytest

from primgraph.codegen import targets

# Regular expressions on text of the user, on files of the package, and on templates of tables.
GIVEN = {
    "c/parts.py", "c/user_c.py", "export/file.py", "export/identifiers.py",
    "export/formulas.py", "export/user_c.py",
    "readable/containers.py", "text/docstrings.py", "text/names.py",
}  # fmt: skip

FOLDER = Path(targets.__file__).parent


def imported(path):
    """The modules that a file imports."""
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {alias.name for node in found if isinstance(node, ast.Import) for alias in node.names}


def test_regular_expressions_are_for_given_text():
    files = {path.relative_to(FOLDER).as_posix(): imported(path) for path in FOLDER.rglob("*.py")}
    assert len(files) > 50
    assert {name for name, modules in files.items() if "re" in modules} == GIVEN


@pytest.mark.parametrize("name", ["c", "export", "inplace", "scalar", "readable"])
def test_printers_read_no_files_of_other_printers(name):
    """The C of kernels and of files share parts; other printers share nothing."""
    others = {"c", "export", "inplace", "scalar", "readable"} - {name}
    shared = {("export", "c")}
    for path in (FOLDER / name).rglob("*.py"):
        tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        modules = [node.module or "" for node in tree if isinstance(node, ast.ImportFrom)]
        for other in others:
            used = [m for m in modules if m.startswith(f"primgraph.codegen.targets.{other}.")]
            assert not used or (name, other) in shared, f"{path.name} imports {used}"
