"""Loggers by the names of `megengine.logger`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from primgraph.compat.absent import absent

__all__ = [
    "enable_debug_log",
    "get_logger",
    "replace_mgb_log_level",
    "set_log_file",
    "set_log_level",
]


def get_logger(
    name: str | None = None, formatter: type[logging.Formatter] | None = None
) -> logging.Logger:
    """Return Python's logger of that name, which writes messages of level INFO as well.

    >>> megengine.get_logger("training").name
    'training'
    """
    logger = logging.getLogger(name or "megengine")
    if not logger.handlers and logger is not logging.root:
        handler = logging.StreamHandler()
        kind = logging.Formatter if formatter is None else formatter
        handler.setFormatter(kind("%(asctime)s %(levelname)s %(message)s", "%d %H:%M:%S"))
        logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel(logging.INFO)
    return logger


def set_log_file(fout: str, mode: str = "a") -> None:
    """Write messages of `get_logger()` to a file as well.

    >>> megengine.set_log_file("training.log")
    """
    get_logger().addHandler(logging.FileHandler(fout, mode, delay=True))


def set_log_level(level: int | str, update_existing: bool = True) -> int:
    """Set the level of `get_logger()`; return that before.

    >>> before = megengine.set_log_level("WARNING")
    >>> megengine.set_log_level(before)
    30
    """
    logger = get_logger()
    before = logger.level
    logger.setLevel(level)
    return before


def enable_debug_log() -> None:
    """Set the level of `get_logger()` to DEBUG.

    >>> before = megengine.get_logger().level
    >>> megengine.logger.enable_debug_log()
    >>> megengine.set_log_level(before)
    10
    """
    set_log_level(logging.DEBUG)


@contextmanager
def replace_mgb_log_level(level: int | str) -> Iterator[None]:
    """Set the level within a `with` block.

    >>> with megengine.logger.replace_mgb_log_level("ERROR"):
    ...     pass
    """
    before = set_log_level(level)
    try:
        yield
    finally:
        set_log_level(before)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
