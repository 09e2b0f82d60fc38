"""Log of the structures compiled for eager computation, with reasons."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TypeAlias, final, overload

from primgraph.base.records import dataclass

Part: TypeAlias = tuple[int, ...]
_KEPT = 1000
_COMPARED = 16


@final
@dataclass(frozen=True, slots=True)
class Compilation:
    """One compiled structure, with the `reason` why it is new and the `line` that differs.

    `equations` is the number of equations before clean-up.
    """

    equations: int
    reason: str
    line: str

    def __str__(self) -> str:
        place = f" at {self.line}" if self.line else ""
        return f"{self.equations} equations: {self.reason}{place}"


@final
class Log(Sequence[Compilation]):
    """The compilations, latest last; the last 1,000 are kept, and `total` counts all.

    `pg.eager.log` is the only instance.
    """

    def __init__(self) -> None:
        self._entries: deque[Compilation] = deque(maxlen=_KEPT)
        self._known: deque[Sequence[Part]] = deque(maxlen=_COMPARED)
        self.total = 0

    def add(self, compilation: Compilation, parts: Sequence[Part]) -> None:
        """Add a compilation; `parts` is its key, by node."""
        self._entries.append(compilation)
        self._known.append(parts)
        self.total += 1

    def difference(self, parts: Sequence[Part]) -> tuple[int, Sequence[Part]] | None:
        """Return the most similar known structure and the index of the first differing part.

        None if nothing was compiled yet.
        """
        best: tuple[int, Sequence[Part]] | None = None
        for known in self._known:
            place = next(
                (i for i, (a, b) in enumerate(zip(parts, known, strict=False)) if a != b),
                min(len(parts), len(known)),
            )
            if best is None or place >= best[0]:
                best = place, known
        return best

    def clear(self) -> None:
        """Delete all entries; compiled kernels stay."""
        self._entries.clear()
        self.total = 0

    @overload
    def __getitem__(self, index: int) -> Compilation: ...
    @overload
    def __getitem__(self, index: slice) -> list[Compilation]: ...
    def __getitem__(self, index: int | slice) -> Compilation | list[Compilation]:
        if isinstance(index, slice):
            return list(self._entries)[index]
        return self._entries[index]

    def __iter__(self) -> Iterator[Compilation]:
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        lines = [f"{self.total} compilation{'s' * (self.total != 1)}", *map(str, self)]
        return "\n  ".join(lines)


log = Log()
