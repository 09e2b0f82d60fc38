"""Messages of the logger `primgraph` about compilations: what, why, how long, and from where.

import logging

logging.basicConfig()
logging.getLogger("primgraph").setLevel(logging.INFO)
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any

from primgraph.base.atomic import Setting

# Origins of generated code, collected if requested; the last one counts.
FROM_EQUAL = "code of an equal graph"
FROM_DISK = "NumPy code from the cache"
FROM_CACHE = "C from the cache"
FROM_COMPILER = "C by the compiler"
_ORDER = (FROM_EQUAL, FROM_DISK, FROM_CACHE, FROM_COMPILER)
_sources: ContextVar[list[str] | None] = ContextVar("primgraph_code_sources", default=None)


def note_source(source: str) -> None:
    """Note the origin of code, for the message about the current compilation."""
    found = _sources.get()
    if found is not None:
        found.append(source)


def _logger(level: str) -> Any:
    """Return the logger if it is enabled for a level, such as "INFO"; otherwise None."""
    # Nobody listens who has not imported `logging`.
    logging = importlib.import_module("logging") if "logging" in sys.modules else None
    logger = None if logging is None else logging.getLogger("primgraph")
    enabled = logger is not None and logger.isEnabledFor(getattr(logging, level))
    return logger if enabled else None


def log_choice(text: str, *, is_failure: bool = False) -> None:
    """Log the choice of a target at the level INFO, a failure at WARNING."""
    logger = _logger("WARNING" if is_failure else "INFO")
    if logger is not None:
        (logger.warning if is_failure else logger.info)("%s", text)


@contextmanager
def log_compilation(what: str, why: str) -> Iterator[None]:
    """Log the compilation within the context at the level INFO, unless it fails."""
    logger = _logger("INFO")
    if logger is None:
        yield
        return
    noted: list[str] = []
    start = perf_counter()
    with Setting(_sources, noted):
        yield
    took = 1000.0 * (perf_counter() - start)
    source = f"; {max(noted, key=_ORDER.index)}" if noted else ""
    logger.info("%s: compiled in %.1f ms%s; %s", what, took, source, why)
