"""Progress of training: an updated table in notebooks, a bar on terminals."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, final

from primgraph.base.user_lines import notebook
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.html_tables import Row, Sheet
from primgraph.tables import quantity

Advance: TypeAlias = Callable[[float], None]

# Interval between updates of a table: this many seconds, or this fraction of the elapsed time if
# that is longer. That is about a hundred updates in the first half minute, and 70 for each
# doubling.
_SOON, _SHARE = 0.2, 0.01
_HEAD = ("epoch", "loss", "least loss", "time", "to go")


@contextmanager
def progress(wanted: bool | None, epochs: int, name: str) -> Iterator[Advance]:
    """Yield a function to be called with the loss of each epoch, which shows the progress.

    A notebook shows a table, a terminal a bar if rich is installed. If `wanted` is None, nothing is
    shown elsewhere; if it is False, nothing at all. Raises `ArgumentError` if rich is needed and
    missing.
    """
    kernel_shell = notebook()
    if wanted is not False and kernel_shell is not None:
        with _table(kernel_shell, epochs, name) as advance:
            yield advance
        return
    installed = importlib.util.find_spec("rich") is not None
    if wanted is None:
        wanted = installed and sys.stdout.isatty()
    if not wanted:
        yield lambda loss: None
        return
    if not installed:
        raise ArgumentError(
            "a progress bar needs rich", hint="install it with: pip install 'primgraph[progress]'"
        )
    module = importlib.import_module("rich.progress")
    with module.Progress(transient=True) as bar:
        task = bar.add_task("training", total=epochs)
        yield lambda loss: bar.update(task, advance=1, description=f"loss {loss:.4g}")


@contextmanager
def _table(shell: Any, epochs: int, name: str) -> Iterator[Advance]:
    table = _Table(shell, epochs, name)
    table.show()
    try:
        yield table.advance
    except BaseException as error:
        table.ended = f"ended by {type(error).__name__}"
        raise
    finally:
        table.show()


@final
class _Table:
    """Display of a notebook, updated in place."""

    def __init__(self, shell: Any, epochs: int, name: str) -> None:
        self.shell = shell
        self.epochs = epochs
        self.name = name
        self.place = f"primgraph-{uuid.uuid4().hex}"
        self.begun = time.perf_counter()
        self.shown_at: float | None = None
        self.done = 0
        self.loss = self.least = float("inf")
        self.ended = ""

    def advance(self, loss: float) -> None:
        self.done += 1
        self.loss, self.least = loss, min(self.least, loss)
        now = time.perf_counter()
        if now - (self.shown_at or 0.0) >= max(_SOON, _SHARE * (now - self.begun)):
            self.show()

    def show(self) -> None:
        sheet = self._sheet()
        (row,) = sheet.rows
        pairs = zip(_HEAD, row.cells, strict=True)
        text = ", ".join(f"{word} {cell}" for word, cell in pairs if cell)
        self.shell.display_pub.publish(
            data={"text/plain": text, "text/html": sheet.html()},
            metadata={},
            transient={"display_id": self.place},
            update=self.shown_at is not None,
        )
        self.shown_at = time.perf_counter()

    def _sheet(self) -> Sheet:
        done = self.done
        spent = time.perf_counter() - self.begun
        left = spent / done * (self.epochs - done) if done and not self.ended else 0.0
        cells = (
            f"{done} of {self.epochs}",
            f"{self.loss:.4g}" if done else "",
            f"{self.least:.4g}" if done else "",
            _clock(spent),
            _clock(left) if left else "",
        )
        row = Row(cells, share=done / self.epochs if self.epochs else 1.0)
        notes = (self.ended,) if self.ended else ()
        return Sheet(f"training {self.name}", "n" * len(_HEAD), _HEAD, (row,), 1, notes)


def _clock(seconds: float) -> str:
    """Format seconds as `2.50 s`, or from a minute on as `1:02:03`."""
    if seconds < 60:
        return quantity(seconds, "s")
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
