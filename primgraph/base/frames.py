"""Tracebacks without the frames of primgraph: in notebooks, and at the end of scripts."""

from __future__ import annotations

import inspect
import os
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from itertools import groupby
from types import FrameType, TracebackType
from typing import Any, final

from primgraph.base.records import dataclass
from primgraph.base.user_lines import (
    PACKAGE,
    cell_of,
    is_library,
    is_own,
    lines_in,
    message_text,
    shell,
)

_WIDTH = 75
# Number of source lines before and after the executed one.
_AROUND = 2
# Maximum numbers of the user's frames shown at the start and at the end of a traceback.
_FIRST, _LAST = 4, 12
_CAUSES = 5
# Width of line numbers with an arrow before them.
_MARGIN = 7
_RED, _GREEN, _CYAN, _FAINT = "31", "32", "36", "2"


@final
@dataclass(frozen=True, slots=True)
class _Step:
    """Frame of a traceback. `owner` is its package, empty for the user's code."""

    file: str
    line: int
    function: str
    owner: str


def format_traceback(error: BaseException, message: str, *, whole: bool = False) -> list[str]:
    """Return the traceback of `error` for IPython, as blocks of lines.

    `whole` leaves all frames to IPython, and so does its mode Verbose; its mode Minimal shows only
    the message.
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
        *_traceback_blocks(_steps(error), paint),
        "\n".join(end),
    ]


@final
@dataclass(frozen=True, slots=True)
class _Paint:
    """Colouring of text for a terminal, or none."""

    colours: bool

    def __call__(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colours else text


def _steps(error: BaseException) -> list[_Step]:
    """Return the frames from the first notebook cell on, or else from the user's first frame."""
    found = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        found.append(_Step(code.co_filename, line, code.co_name, _owner(frame)))
    cells = (i for i, step in enumerate(found) if cell_of(step.file))
    own = (i for i, step in enumerate(found) if not step.owner)
    return found[next(cells, next(own, 0)) :]


def _owner(frame: FrameType) -> str:
    """Return the package of a frame, empty for the user's code."""
    if is_own(frame):
        return PACKAGE
    if is_library(frame.f_code.co_filename):
        return str(frame.f_globals.get("__name__")).partition(".")[0]
    return ""


# Modules of wrappers, which the user does not call directly.
_WRAPPERS = (f"{PACKAGE}.ir.signature", f"{PACKAGE}.operators.call")
_NOTE = "Frames within primgraph are left out. PRIMGRAPH_DEBUG=1 in the environment shows them.\n"


def shorten_tracebacks() -> None:
    """Omit frames of primgraph from tracebacks that Python prints at the end of a program.

    Importing primgraph changes nothing: this is called when a function is traced, and for errors.
    It sets `sys.excepthook` and `threading.excepthook`, unless they have been set before. Errors
    keep all frames, for debuggers, test runners and loggers.
    """
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _print_of_thread


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an error as Python does, without most of the frames of primgraph."""
    try:
        text = shorten_traceback(error)
    except Exception:  # A failure here must not hide the error.
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
            text = shorten_traceback(args.exc_value)
        except Exception:  # As in `_print`.
            text = ""
    if text and sys.stderr is not None:
        name = args.thread.name if args.thread is not None else threading.get_ident()
        sys.stderr.write(f"Exception in thread {name}:\n{text}")
        sys.stderr.flush()
    else:
        threading.__excepthook__(args)


def shorten_traceback(error: BaseException) -> str:
    """Return the traceback of `error` with the user's frames and one of primgraph.

    It is empty if nothing is omitted: no frame of primgraph, a defect of primgraph, an interrupt,
    or if PRIMGRAPH_DEBUG is set.
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
        kept = _frames_to_print([frame for frame, _ in traceback.walk_tb(cause.__traceback__)])
        if len(kept) == len(told.stack):
            left_out += kept.count(False)
            steps = [step for step, is_kept in zip(told.stack, kept, strict=True) if is_kept]
            told.stack = traceback.StackSummary.from_list(steps)
        todo += [(told.__cause__, cause.__cause__), (told.__context__, cause.__context__)]
        todo += zip(told.exceptions or (), getattr(cause, "exceptions", ()), strict=False)
    return "".join(found.format()) + _NOTE if left_out else ""


def _frames_to_print(frames: list[FrameType]) -> list[bool]:
    """Return which frames to print: all but primgraph's, and the first of its last ones, which the
    user called."""
    owners = [_owner(frame) for frame in frames]
    kept = [owner != PACKAGE for owner in owners]
    last = max((i for i, owner in enumerate(owners) if not owner), default=-1)
    own = [i for i, owner in enumerate(owners) if i > last and owner == PACKAGE]
    called = (i for i in own if frames[i].f_globals.get("__name__") not in _WRAPPERS)
    if own:
        kept[next(called, own[-1])] = True
    return kept


def is_interruption(error: BaseException) -> bool:
    """Return whether a signal handler, or similar, raised `error` in the middle of a function.

    Python calls a handler with the frame that it interrupts, which no other function receives.
    """
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        outside, step = step.tb_frame, step.tb_next
        if any(value is outside for value in _arguments(step.tb_frame)):
            return True
    return False


def _arguments(frame: FrameType) -> list[Any]:
    """Return the positional arguments of a frame's function."""
    code, known = frame.f_code, frame.f_locals
    count = code.co_argcount
    names = code.co_varnames
    found = [known.get(name) for name in names[:count]]
    if code.co_flags & inspect.CO_VARARGS:
        found += known.get(names[count + code.co_kwonlyargcount], ())
    return found


def _traceback_blocks(steps: Iterable[_Step], paint: _Paint) -> Iterator[str]:
    """Yield a block for each frame of the user, and a line for consecutive frames of one
    package."""
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
    """Return the location of a frame of the user, with the lines around it."""
    cell = cell_of(step.file)
    place = f"{cell}, line {step.line}" if cell else f"File {_short(step.file)}:{step.line}"
    function = "" if step.function == "<module>" else f", in {paint(_CYAN, step.function)}"
    return "\n".join([paint(_GREEN, place) + function, *_source_lines(step, paint), ""])


def _source_lines(step: _Step, paint: _Paint) -> Iterator[str]:
    lines = lines_in(step.file)
    first = max(step.line - _AROUND, 1)
    for number, text in enumerate(lines[first - 1 : step.line + _AROUND], first):
        margin = "-" * (_MARGIN - 2 - len(str(number))) + "> " if number == step.line else ""
        kept = " " * (len(text) - len(text.lstrip(" "))) + message_text(text)
        yield f"{paint(_GREEN, f'{margin}{number}'.rjust(_MARGIN))} {kept}".rstrip()


def _short(file: str) -> str:
    """Return a path, relative to the user's home if it is inside."""
    home = os.path.expanduser("~") + os.sep
    return f"~{os.sep}{file.removeprefix(home)}" if file.startswith(home) else file


def _causes(error: BaseException) -> Iterator[str]:
    """Yield a line for each error that led to this one."""
    seen: list[Any] = [error]
    for _ in range(_CAUSES):
        last = seen[-1]
        hidden = last.__suppress_context__
        found = last.__cause__ or (None if hidden else last.__context__)
        if found is None or found in seen:
            return
        word = "caused by" if last.__cause__ is not None else "while handling"
        told = message_text("".join(str(found).splitlines()[:1]))
        yield f"  {word} {type(found).__name__}: {told}"
        seen.append(found)
