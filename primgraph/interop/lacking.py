"""Shared parts of the importers: the list of operators that are lacking, and library versions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import NoReturn, final

from primgraph.base.user_lines import caller
from primgraph.errors import UnsupportedError
from primgraph.ir.graph import Equation, Graph

# The newest version of each library, major and minor, that the importers were tried with.
TRIED = {"jax": (0, 10), "onnx": (1, 23), "sympy": (1, 14), "torch": (2, 13)}

# The libraries whose version has been warned of.
_told: set[str] = set()


class VersionWarning(UserWarning):
    """Warning, once for each library, of a version that is newer than those tried.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", pg.interop.VersionWarning)
    """


def require_library(library: str, user: str) -> None:
    """Import `library`, which is also the name of the extra, for the function `user`.

    Raises ImportError that names the extra, and warns of a version like `check_version`.
    """
    try:
        module = import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise ModuleNotFoundError(
            f"{user} needs {library}, which is not installed: pip install 'primgraph[{library}]'",
            name=library,
        ) from None
    check_version(library, str(module.__version__))


def check_version(library: str, version: str) -> None:
    """Warn once of a `version`, such as "0.10.2", that is newer than those tried."""
    newest = TRIED[library]
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    if library in _told or tuple(numbers) <= newest:
        return
    _told.add(library)
    place = caller()
    warnings.warn_explicit(
        f"{library} {version} is newer than {'.'.join(map(str, newest))}, the newest version that "
        "this release was tried with: compare values before you rely on them",
        VersionWarning,
        place.file,
        place.line,
    )


@final
class Lacking:
    """The operators of one program of `library` that `target` lacks, in order of discovery.

    Walk the whole program with `add`, and call `require_none` before anything is recorded.
    """

    def __init__(self, importer: str, library: str, target: str = "primgraph") -> None:
        self._importer, self._library, self._target = importer, library, target
        # The places of each operator.
        self._places: dict[str, list[str]] = {}

    def add(self, operator: str, place: str = "") -> None:
        """Note that `operator` is lacking; `place` is a source line or the name of a node."""
        self._places.setdefault(operator, []).append(place)

    def require_none(self) -> None:
        """Raise `UnsupportedError` that names every operator that is lacking, with its places."""
        if self._places:
            self._raise()

    def _raise(self) -> NoReturn:
        found = [_describe(name, places) for name, places in self._places.items()]
        raise UnsupportedError(
            f"{self._importer}: {self._library} has operators in this program that {self._target} "
            f"lacks: {'; '.join(found)}"
        )


def _describe(name: str, places: list[str]) -> str:
    """Describe an operator: how often it occurs, and where first."""
    times = "once" if len(places) == 1 else f"{len(places)} times"
    first = next((place for place in places if place), "")
    where = f", first at {first}" if first and len(places) > 1 else f", at {first}" if first else ""
    return f"{name} ({times}{where})"


def nested_equations(graph: Graph) -> Iterator[Equation]:
    """Yield the equations of a graph, and those in the bodies of each."""
    for eqn in graph.body:
        yield eqn
        for body in eqn.bodies:
            yield from nested_equations(body)
