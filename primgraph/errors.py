"""What can go wrong, one class a kind; every message says what, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from primgraph.frames import rendered, shorten_tracebacks
from primgraph.source import Source, caller

# How the line of a message begins that says where the user wrote what went wrong.
WRITTEN = "written here:"

# How similar a misspelling is, by `difflib`, and the length of a name that may have been cut short.
_SIMILAR = 0.72
_PREFIX = 4


class PrimgraphError(RuntimeError):
    """Base of all errors that primgraph raises.

    All are RuntimeErrors, as torch, OneFlow and MegEngine raise them, and what Python and NumPy
    raise as well: a ValueError, TypeError, IndexError or other.

    `message` is complete on its own. `origin` holds the lines that say where the user wrote
    what went wrong, `hint` what to do about it. The parts are joined by `str`. `place` is the
    user's line that was being executed, if there is one, which is named where `origin` has none.
    """

    # Whether it tells of a defect of primgraph, whose frames are then what one wants to see.
    _is_ours: ClassVar[bool] = False

    def __init__(self, message: str, *, origin: Iterable[str] = (), hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.origin = tuple(origin)
        self.hint = hint
        self.place: Source | None = caller()
        shorten_tracebacks()

    def located(self, origin: Iterable[str]) -> PrimgraphError:
        """Add the user's lines, unless an inner call has already given them."""
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
        """What IPython shows: the user's frames, those within primgraph counted, the message."""
        return rendered(self, str(self), whole=self._is_ours)


class BuildError(PrimgraphError):
    """A program or graph was put together wrongly."""


class ArgumentError(BuildError, TypeError, ValueError):
    """An argument has a type, or a value, that the function does not take."""


class UnknownValueError(ArgumentError):
    """Python asked for a number in a variable, which is not known before the program runs."""


class UnknownSizeError(BuildError, TypeError):
    """Python asked for the number of a size that is not known before the program runs."""


class IndexKindError(ArgumentError, IndexError):
    """An index is of a kind that no array takes; NumPy raises an IndexError for it."""


class UnknownNameError(BuildError, AttributeError):
    """A module or handle has nothing of that name."""


class UnknownKeyError(BuildError, KeyError):
    """A dict of layers has nothing under that name."""


class MissingMethodError(BuildError, NotImplementedError):
    """A class of the user's does not define a method that is called."""


class OptionError(BuildError, ValueError):
    """Options contradict each other."""


class BoundsError(BuildError, IndexError):
    """A constant index or slice lies outside the array."""


class ShapeError(PrimgraphError, ValueError):
    """Shapes do not fit."""


class AxisError(ShapeError, IndexError):
    """An axis is none of the array; NumPy's class of that name is an IndexError, too."""


class NotScalarError(ShapeError, RuntimeError):
    """A function has to have one element, in each sample of a batch, and has more."""


class MixedSamplesError(ShapeError):
    """Samples of a batch that should be independent may depend on each other."""


class DTypeError(PrimgraphError, TypeError):
    """A dtype does not fit, or is not supported."""


class NotDifferentiable(PrimgraphError, TypeError):
    """A derivative was asked for that does not exist, such as one with respect to integers."""


class MissingRuleError(PrimgraphError, NotImplementedError):
    """An op lacks the rule that a transform needs."""


class CheckError(PrimgraphError, AssertionError):
    """A derivative differs from an independent one."""


class FeedError(PrimgraphError, ValueError):
    """A feed or fetch does not fit the program."""


class LoadError(PrimgraphError, ValueError):
    """A file or text cannot be read as what it should be."""


class CompileError(PrimgraphError):
    """A graph cannot be turned into a kernel."""


class RunError(PrimgraphError, RuntimeError):
    """A kernel failed while it ran, for instance on a gather index out of range."""


class LinAlgError(RunError, np.linalg.LinAlgError):
    """A matrix is singular, or not positive definite, or an iteration did not converge."""


def run_error(cause: BaseException | None) -> type[RunError]:
    """The error of a run that failed of `cause`."""
    return LinAlgError if isinstance(cause, np.linalg.LinAlgError) else RunError


class NumericalError(RunError):
    """An equation made a NaN or an infinity of numbers that were none."""


class InternalError(PrimgraphError):
    """A transform broke a promise: a defect of primgraph, not of the user's program."""

    _is_ours = True


def near_matches(name: object, known: Iterable[str]) -> str:
    """Return a hint with the names in `known` of which `name` may be a misspelling, or nothing.

    A misspelling begins as the name does, or swaps, adds or drops the first letter. A name that
    only shares letters with another one is not a misspelling of it.
    """
    names = {k.lower(): k for k in known}
    wanted = str(name).lower()
    near = [wanted] if wanted in names else _misspelt(wanted, list(names))
    return f"did you mean {' or '.join(repr(names[n]) for n in near)}?" if near else ""


def _misspelt(wanted: str, known: Sequence[str]) -> list[str]:
    close = difflib.get_close_matches(wanted, known, n=6, cutoff=_SIMILAR)
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

    What it has are the attributes of its class, and `more`.
    """
    kind = type(owner).__name__
    title = {"Jit": "a function under pg.jit"}.get(kind, f"a {kind}")
    known = [] if name.startswith("_") else [n for n in dir(type(owner)) if n[0] != "_"]
    known += more
    return unknown_name(title, name, known, notes.get(f"{kind}.{name}", ""))


def unknown_name(owner: str, name: str, known: Iterable[str], instead: str = "") -> AttributeError:
    """The error for an attribute `name` that `owner` lacks.

    `instead` says what to write, if that is known; names in `known` that are spelt alike are only
    a guess. Of names that begin with an underscore it says no more: NumPy, pickle and others ask
    for them, often, and go on without.
    """
    if name.startswith("_"):
        return AttributeError(f"{owner} has nothing named {name!r}")
    hint = instead or near_matches(name, known)
    return UnknownNameError(f"{owner} has nothing named {name!r}", hint=hint)
