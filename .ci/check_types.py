"""Check the types of all files of primgraph, laid out as an installed primgraph has them.

    python .ci/check_types.py [ARGUMENT OF MYPY ...]

Then the programs in tests/typing, which assert the types that a user's program meets. Type checkers
do not run code, so in a checkout they do not find the packages at its root.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".mypy_cache"


def lay_out(folder: Path) -> int:
    """Copy the files of every package to its place in `folder`; how many modules there are."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "setuptools"
    ]
    count = 0
    for package in setuptools["packages"]:
        place = setuptools["package-dir"].get(package, package.replace(".", "/"))
        target = folder.joinpath(*package.split("."))
        target.mkdir(parents=True)
        files = [*(ROOT / place).glob("*.py"), *(ROOT / place).glob("*.pyi")]
        for file in files:
            # With its time of change, by which mypy knows what it has seen before.
            shutil.copy2(file, target)
        # A stub is checked in the place of its file.
        count += len({file.stem for file in files})
    return count


def main(arguments: list[str]) -> int:
    # At the same place each time, for mypy's cache.
    folder = CACHE / "installed"
    shutil.rmtree(folder, ignore_errors=True)
    count = lay_out(folder)
    configured = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(CACHE)]
    mypy = [sys.executable, "-m", "mypy", *configured, "--strict"]
    done = subprocess.run(
        [*mypy, "-p", "primgraph", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout, end="")
    checked = re.search(r"(?:in|checked) (\d+) source files?", done.stdout)
    if checked is None or int(checked[1]) != count:
        print(f"not all of {count} files were checked", file=sys.stderr)
        return 1
    programs = sorted((ROOT / "tests" / "typing").glob("*.py"))
    if done.returncode or not programs:
        return done.returncode
    return subprocess.run([*mypy, *map(str, programs)], cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
