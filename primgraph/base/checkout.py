"""The root of a checkout, where two subpackages lie beside this folder and not in it."""

from __future__ import annotations

from pathlib import Path

PACKAGES = ("transforms", "codegen")


def root_of(package: Path) -> Path | None:
    """The folder beside `package` that has the rest of it, None where it is whole.

    An installed copy is whole, and what lies beside it belongs to others: the project's own
    description has to stand there, too.
    """
    if any((package / name / "__init__.py").is_file() for name in PACKAGES):
        return None
    root = package.parent
    if not all((root / name / "__init__.py").is_file() for name in PACKAGES):
        return None
    try:
        described = (root / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return root if '\nname = "primgraph"\n' in described else None


ROOT = root_of(Path(__file__).resolve().parents[1])
