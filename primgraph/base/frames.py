"""Tracebacks without the frames of primgraph: in notebooks, and of scripts that end in an error."""

from __future__ import annotations

import inspect
import os
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from types import FrameType, TracebackType
from typing import Any, final

from primgraph.base.user_lines import PACKAGE, cell_of, is_library, is_own, lines_in, shell, shown

_WIDTH = 75
# So many lines stand before and after the one that was being executed.
_AROUND = 2
# So many frames of the user's are shown from either end of a longer way to the error.
_FIRST, _LAST = 4, 12
_CAUSES = 5
# How wide the numbers of lines are, with an arrow before them.
_MARGIN = 7
_RED, _GREEN, _CYAN, _FAINT = "31", "32", "36", "2"


@final
@dataclass(frozen=True, slots=True)
class _Step:
    """A frame on the way to an error. `owner` is the package it is of, empty for the user's."""

    file: str
    line: int
    function: str
    owner: str


def rendered(error: BaseException, message: str, *, whole: bool = False) -> list[str]:
    """What IPython is to print of `error`: blocks of lines, as its own traceback has them.

    `whole` leaves all frames to IPython, and so does its mode Verbose; its mode Minimal shows the
    message alone.
    """
    running = shell()
    tracebacks = getattr(running, "InteractiveTB", None)
    mode = getattr(tracebacks, "mode", "")
    if tracebacks is not None and (whole or mode == "Verbose"):
        told: list[str] = tracebacks.structured_traceback(type(error), error, error.__traceback__)
        return told
    paint = _Paint(str(getattr(running, "colors", "nocolor")).lower() != "nocolor")
    name = type(error).__name__
    end = [f"{paint(_RED, name)}: {message}", *getattr(error, "__notes__", ()), *_causes(error)]
    if mode == "Minimal":
        return end
    head = f"{name}{'Traceback (most recent call last)':>{max(_WIDTH - len(name), 35)}}"
    return [
        paint(_RED, "-" * _WIDTH),
        paint(_RED, name) + head[len(name) :],
        *_told(_steps(error), paint),
        "\n".join(end),
    ]


@final
@dataclass(frozen=True, slots=True)
class _Paint:
    """Colours text for a terminal, or leaves it as it is."""

    colours: bool

    def __call__(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colours else text


def _steps(error: BaseException) -> list[_Step]:
    """The frames from the first cell on, or from the first of the user's where there is none."""
    found = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        found.append(_Step(code.co_filename, line, code.co_name, _owner(frame)))
    cells = (i for i, step in enumerate(found) if cell_of(step.file))
    own = (i for i, step in enumerate(found) if not step.owner)
    return found[next(cells, next(own, 0)) :]


def _owner(frame: FrameType) -> str:
    """Return the package that a frame is of, empty for the user's."""
    if is_own(frame):
        return PACKAGE
    if is_library(frame.f_code.co_filename):
        return str(frame.f_globals.get("__name__")).partition(".")[0]
    return ""


# Modules whose functions call others, and are not what a user has called.
_WRAPPERS = (f"{PACKAGE}.ir.signature", f"{PACKAGE}.operators.call")
_NOTE = "Frames within primgraph are left out. PRIMGRAPH_DEBUG=1 in the environment shows them.\n"


def shorten_tracebacks() -> None:
    """Leave frames of primgraph out of tracebacks that Python prints when a program ends.

    To import primgraph changes nothing: this is called when a function is traced, and for errors.

    `sys.excepthook` and `threading.excepthook` do it, unless somebody has set another one. Errors
    keep all frames, for debuggers, test runners and loggers.
    """
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _print_of_thread


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an error as Python does, without most of the frames of primgraph."""
    try:
        text = shortened(error)
    except Exception:  # Whatever goes wrong here, the error is what has to be told.
        text = ""
    if text and sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
    else:
        sys.__excepthook__(kind, error, trace)


def _print_of_thread(args: threading.ExceptHookArgs, /) -> None:
    """Print an error that ended a thread."""
    text = ""
    if args.exc_value is not None:
        try:
            text = shortened(args.exc_value)
        except Exception:  # As in `_print`.
            text = ""
    if text and sys.stderr is not None:
        name = args.thread.name if args.thread is not None else threading.get_ident()
        sys.stderr.write(f"Exception in thread {name}:\n{text}")
        sys.stderr.flush()
    else:
        threading.__excepthook__(args)


def shortened(error: BaseException) -> str:
    """Return the traceback of `error` with the user's frames and one of primgraph's.

    Empty where there is nothing to leave out: no frame of primgraph's, a defect of primgraph, an
    interrupt, and where PRIMGRAPH_DEBUG is set.
    """
    debugging = os.environ.get("PRIMGRAPH_DEBUG", "0") not in ("", "0")
    if debugging or not isinstance(error, Exception) or getattr(error, "_is_ours", False):
        return ""
    found = traceback.TracebackException(type(error), error, error.__traceback__)
    left_out = 0
    todo: list[tuple[Any, Any]] = [(found, error)]
    while todo:
        told, cause = todo.pop()
        if told is None or cause is None:
            continue
        kept = _kept([frame for frame, _ in traceback.walk_tb(cause.__traceback__)])
        if len(kept) == len(told.stack):
            left_out += kept.count(False)
            steps = [step for step, is_kept in zip(told.stack, kept, strict=True) if is_kept]
            told.stack = traceback.StackSummary.from_list(steps)
        todo += [(told.__cause__, cause.__cause__), (told.__context__, cause.__context__)]
        todo += zip(told.exceptions or (), getattr(cause, "exceptions", ()), strict=False)
    return "".join(found.format()) + _NOTE if left_out else ""


def _kept(frames: list[FrameType]) -> list[bool]:
    """Which frames are printed: all but primgraph's, and of its last ones what the user called."""
    owners = [_owner(frame) for frame in frames]
    kept = [owner != PACKAGE for owner in owners]
    last = max((i for i, owner in enumerate(owners) if not owner), default=-1)
    own = [i for i, owner in enumerate(owners) if i > last and owner == PACKAGE]
    called = (i for i in own if frames[i].f_globals.get("__name__") not in _WRAPPERS)
    if own:
        kept[next(called, own[-1])] = True
    return kept


def is_interruption(error: BaseException) -> bool:
    """Whether a handler of signals raised `error`, or whoever else stops a function in the middle.

    Python calls such a one with the frame that it interrupts, which nobody else gets.
    """
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        outside, step = step.tb_frame, step.tb_next
        if any(value is outside for value in _arguments(step.tb_frame)):
            return True
    return False


def _arguments(frame: FrameType) -> list[Any]:
    """What a function was called with, by position."""
    code, known = frame.f_code, frame.f_locals
    count = code.co_argcount
    names = code.co_varnames
    found = [known.get(name) for name in names[:count]]
    if code.co_flags & inspect.CO_VARARGS:
        found += known.get(names[count + code.co_kwonlyargcount], ())
    return found


def _told(steps: Iterable[_Step], paint: _Paint) -> Iterator[str]:
    """A block for each frame of the user's, a line for the frames of one package in a row."""
    blocks: list[tuple[_Step, int]] = []
    for owner, group in groupby(steps, key=lambda step: step.owner):
        listed = list(group)
        blocks += [(listed[0], len(listed))] if owner else [(step, 1) for step in listed]
    left_out = len(blocks) - _FIRST - _LAST
    hint = "; %xmode Verbose and then %tb show them" if shell() is not None else ""
    for i, (step, count) in enumerate(blocks):
        if left_out > 0 and i == _FIRST:
            more = sum(n for _, n in blocks[i : i + left_out])
            yield paint(_FAINT, f"... {more} frames more") + "\n"
        if left_out > 0 and _FIRST <= i < _FIRST + left_out:
            continue
        if step.owner:
            frames = "1 frame" if count == 1 else f"{count} frames"
            yield paint(_FAINT, f"... {frames} within {step.owner}{hint}") + "\n"
            hint = ""
        else:
            yield _block(step, paint)


def _block(step: _Step, paint: _Paint) -> str:
    """Where a frame of the user's is, and the lines around."""
    cell = cell_of(step.file)
    place = f"{cell}, line {step.line}" if cell else f"File {_short(step.file)}:{step.line}"
    function = "" if step.function == "<module>" else f", in {paint(_CYAN, step.function)}"
    return "\n".join([paint(_GREEN, place) + function, *_around(step, paint), ""])


def _around(step: _Step, paint: _Paint) -> Iterator[str]:
    lines = lines_in(step.file)
    first = max(step.line - _AROUND, 1)
    for number, text in enumerate(lines[first - 1 : step.line + _AROUND], first):
        margin = "-" * (_MARGIN - 2 - len(str(number))) + "> " if number == step.line else ""
        kept = " " * (len(text) - len(text.lstrip(" "))) + shown(text)
        yield f"{paint(_GREEN, f'{margin}{number}'.rjust(_MARGIN))} {kept}".rstrip()


def _short(file: str) -> str:
    """A path, from the user's home on where it is there."""
    home = os.path.expanduser("~") + os.sep
    return f"~{os.sep}{file.removeprefix(home)}" if file.startswith(home) else file


def _causes(error: BaseException) -> Iterator[str]:
    """A line for each error that led to this one."""
    seen: list[Any] = [error]
    for _ in range(_CAUSES):
        last = seen[-1]
        hidden = last.__suppress_context__
        found = last.__cause__ or (None if hidden else last.__context__)
        if found is None or found in seen:
            return
        word = "caused by" if last.__cause__ is not None else "while handling"
        told = shown("".join(str(found).splitlines()[:1]))
        yield f"  {word} {type(found).__name__}: {told}"
        seen.append(found)
