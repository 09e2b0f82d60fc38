"""Exception classes; every message says what is wrong, where, and what to do."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from primgraph.base.frames import format_traceback, shorten_tracebacks
from primgraph.base.user_lines import Source, caller

# Prefix of the line of a message that says where the user wrote the faulty code.
WRITTEN = "written here:"

# Similarity of a misspelling, by `difflib`, and the minimum length of a truncated name.
_SIMILAR = 0.72
_PREFIX = 4


class PrimgraphError(RuntimeError):
    """Base class of all errors that primgraph raises.

    All are RuntimeErrors, like those of torch, OneFlow and MegEngine, and also the class that
    Python and NumPy raise: ValueError, TypeError, IndexError or another.

    `message` is complete on its own. `origin` has the lines that say where the user wrote the
    faulty code, `hint` says what to do about it. `str` joins the parts. `place` is the user's line
    that was being executed, which is named if `origin` has none.
    """

    # Whether it is a defect of primgraph, so that the traceback must show its frames.
    _is_ours: ClassVar[bool] = False

    def __init__(self, message: str, *, origin: Iterable[str] = (), hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.origin = tuple(origin)
        self.hint = hint
        self.place: Source | None = caller()
        shorten_tracebacks()

    def located(self, origin: Iterable[str]) -> PrimgraphError:
        """Add the user's lines, unless an inner call has added them."""
        if not self.origin:
            self.origin = tuple(origin)
        return self

    def __str__(self) -> str:
        lines = list(self.origin)
        if self.place is not None and not any(line.startswith(WRITTEN) for line in lines):
            lines.insert(0, f"{WRITTEN}  {self.place}   {self.place.text}".rstrip())
        if self.hint:
            lines.append(self.hint)
        return "\n".join([self.message, *(f"  {line}" for line in lines)])

    def _render_traceback_(self) -> list[str]:
        """Return IPython's traceback: the user's frames, counts of primgraph's frames, the
        message."""
        return format_traceback(self, str(self), whole=self._is_ours)


class BuildError(PrimgraphError):
    """Error in the construction of a program or graph."""


class ArgumentError(BuildError, TypeError, ValueError):
    """Error for an argument of a type or value that the function does not accept."""


class UnknownValueError(ArgumentError):
    """Error for using a variable as a number, which is unknown before the program runs."""


class UnknownSizeError(BuildError, TypeError):
    """Error for using a symbolic size as a number, which is unknown before the program runs."""


class IndexKindError(ArgumentError, IndexError):
    """Error for an index of an invalid type; NumPy raises an IndexError for it."""


class UnknownNameError(BuildError, AttributeError):
    """Error for an attribute that a module or handle does not have."""


class UnknownKeyError(BuildError, KeyError):
    """Error for a key that a dict of layers does not have."""


class MissingMethodError(BuildError, NotImplementedError):
    """Error for calling a method that the user's class does not define."""


class UnsupportedError(ArgumentError, NotImplementedError):
    """Error for a mode that a function does not have; torch raises a NotImplementedError for it."""


class OptionError(BuildError, ValueError):
    """Error for invalid or contradictory options."""


class BoundsError(BuildError, IndexError):
    """Error for a constant index or slice out of bounds."""


class ShapeError(PrimgraphError, ValueError):
    """Error for shapes that do not match."""


class AxisError(ShapeError, np.exceptions.AxisError):
    """Error for an axis that the array does not have, of NumPy's class, which is an IndexError."""


class NotSquareError(ShapeError, np.linalg.LinAlgError):
    """Error for matrices that are not square, a LinAlgError like NumPy's."""


class NotScalarError(ShapeError, RuntimeError):
    """Error for a function that must return one element (per sample of a batch), and returns
    more."""


class MixedSamplesError(ShapeError):
    """Error for samples of a batch that may depend on each other."""


class DTypeError(PrimgraphError, TypeError):
    """Error for a dtype that does not match, or is not supported."""


class UnsupportedDTypeError(DTypeError, NotImplementedError):
    """Error for a dtype for which an operation is not defined, such as the order of complex
    numbers."""


class NotDifferentiable(PrimgraphError, TypeError):
    """Error for a derivative that does not exist, such as one with respect to integers."""


class MissingRuleError(PrimgraphError, NotImplementedError):
    """Error for an op that lacks the rule that a transform needs."""


class CheckError(PrimgraphError, AssertionError):
    """Error for a derivative that differs from an independent one."""


class FeedError(PrimgraphError, ValueError):
    """A feed or a fetch does not fit the declared inputs."""


class LoadError(PrimgraphError, ValueError):
    """Error for a file or text that cannot be read in the expected format."""


class CompileError(PrimgraphError):
    """Error for a graph that cannot be compiled to a kernel."""


class RunError(PrimgraphError, RuntimeError):
    """Error of a kernel at run time, for instance for a gather index out of range."""


class LinAlgError(RunError, np.linalg.LinAlgError):
    """Error for a matrix that is singular or not positive definite, or an iteration without
    convergence."""


def run_error(cause: BaseException | None) -> type[RunError]:
    """Return the class of the error for a run that failed with `cause`."""
    return LinAlgError if isinstance(cause, np.linalg.LinAlgError) else RunError


class NumericalError(RunError):
    """Error for an equation that made a NaN or an infinity from finite numbers."""


class InternalError(PrimgraphError):
    """Error for a violated invariant: a defect of primgraph, not of the user's program."""

    _is_ours = True


def near_matches(name: object, known: Iterable[str]) -> str:
    """Return a hint with the names in `known` that `name` may be a misspelling of, or nothing.

    A misspelling starts like the name, or swaps, adds or drops the first letter. Sharing letters
    alone does not count.
    """
    names = {k.lower(): k for k in known}
    wanted = str(name).lower()
    near = [wanted] if wanted in names else _misspelt(wanted, list(names))
    return f"did you mean {' or '.join(repr(names[n]) for n in near)}?" if near else ""


def _misspelt(wanted: str, known: Sequence[str]) -> list[str]:
    close = importlib.import_module("difflib").get_close_matches(
        wanted, known, n=6, cutoff=_SIMILAR
    )
    long = len(wanted) >= _PREFIX
    longer = [k for k in known if long and k.startswith(wanted)]
    longer += [k for k in known if k and wanted[:-1] == k]
    more = 1 if len(wanted) < 6 else 2
    fits = [k for k in close if wanted.startswith(k) or abs(len(k) - len(wanted)) <= more]
    near = [k for k in fits if _begins_alike(wanted, k)]
    return list(dict.fromkeys([*near, *longer]))[:3]


def _begins_alike(a: str, b: str) -> bool:
    if min(len(a), len(b)) < 3:
        return a[:1] == b[:1] and abs(len(a) - len(b)) <= 1
    swapped = a[0] == b[1] and a[1] == b[0]
    return a[0] == b[0] or swapped or a[1:3] == b[:2] or a[:2] == b[1:3]


def unknown_attribute(
    owner: object, name: str, notes: Mapping[str, str], more: Iterable[str] = ()
) -> AttributeError:
    """Return the error for an attribute `name` that an object lacks; `notes` say what to write.

    Known names are the attributes of its class, and `more`.
    """
    kind = type(owner).__name__
    title = {"Jit": "a function under pg.jit"}.get(kind, f"a {kind}")
    known = [] if name.startswith("_") else [n for n in dir(type(owner)) if n[0] != "_"]
    known += more
    return unknown_name(title, name, known, notes.get(f"{kind}.{name}", ""))


def unknown_name(owner: str, name: str, known: Iterable[str], instead: str = "") -> AttributeError:
    """Return the error for an attribute `name` that `owner` lacks.

    `instead` says what to write, if known; otherwise similar names in `known` are suggested. Names
    that begin with an underscore get no hint: NumPy, pickle and others often look for them.
    """
    if name.startswith("_"):
        return AttributeError(f"{owner} has nothing named {name!r}")
    hint = instead or near_matches(name, known)
    return UnknownNameError(f"{owner} has nothing named {name!r}", hint=hint)
