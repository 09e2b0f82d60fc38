"""Pages of documentation: runs their Python blocks as one script, and their primgraph commands.

    python tests/tools/pages.py docs/index.md ...

writes what the blocks print into the text blocks below them, and the pictures that they save to
where the page shows them; read the difference before it goes into a commit.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from primgraph.cli.main import main

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[[^]]*\]\(([^)]+)\)")


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """Kind and content of each fenced block that names a kind."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def pictures_of(page: Path, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Each picture that `page` shows and that its blocks have saved in `folder`, and that one."""
    for link in PICTURE.findall(page.read_text(encoding="utf-8")):
        made = folder / Path(link).name
        if made.exists():
            yield page.parent / link, made


def printed_by(page: Path, folder: Path) -> Iterator[tuple[str, str | None]]:
    """What each block prints, and the text block right below it, None without one.

    Python blocks are one script in `folder`, whose lines are numbered through, as messages show.
    Of shell blocks the commands of primgraph are run; what else they have is not.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    path = folder / f"{page.stem}.py"
    script = ""
    for (kind, code), (following, expected) in pairwise([*blocks_of(page), ("", "")]):
        printed = io.StringIO()
        if kind == "python":
            above = "\n" * script.count("\n")
            script += f"{code}\n"
            path.write_text(script, encoding="utf-8")
            linecache.checkcache(str(path))
            with contextlib.redirect_stdout(printed):
                exec(compile(above + code, str(path), "exec"), namespace)
        elif kind == "sh" and code.startswith("primgraph "):
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                for line in code.splitlines():
                    main(shlex.split(line)[1:])
        else:
            continue
        yield printed.getvalue(), expected if following == "text" else None


def update(page: Path) -> None:
    """Write into each text block of `page` what the block above it prints; renew its pictures."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        shown = [text for text, below in printed_by(page, Path(folder)) if below is not None]
        os.chdir(here)
        for shown_at, made in pictures_of(page, Path(folder)):
            shutil.copyfile(made, shown_at)
    texts = iter(shown)

    def filled(match: re.Match[str]) -> str:
        return f"```text\n{next(texts).rstrip()}\n```" if match[1] == "text" else match[0]

    page.write_text(BLOCK.sub(filled, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    for name in [Path(argument).resolve() for argument in sys.argv[1:]]:
        update(name)
