"""Root of a checkout, in which two subpackages are beside this folder instead of inside it."""

from __future__ import annotations

from pathlib import Path

PACKAGES = ("transforms", "codegen")


def root_of(package: Path) -> Path | None:
    """Return the folder beside `package` with its other parts, or None if the package is complete.

    An installed copy is complete, and folders beside it belong to others: so the project's
    pyproject.toml must be there, too.
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
