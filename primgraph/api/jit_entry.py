"""Cache entries of compiled functions, and their index by kinds of calls."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from primgraph import tree
from primgraph.api.call_in_world import is_tensor
from primgraph.api.jit_call import Call
from primgraph.api.jit_shortcut import Shortcut, fingerprint, no_shortcut, shortcut_of
from primgraph.api.tracing import Traced
from primgraph.base.debug_mode import debugging
from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.codegen import Kernel
from primgraph.ir.frontend.containers import Form
from primgraph.numpy.impure import Captured
from primgraph.program.sized import SizedKernel, in_form

if TYPE_CHECKING:
    from primgraph.eager import node as nodes
    from primgraph.eager import run as eager_run
    from primgraph.eager import tensor as tensors
    from primgraph.eager.derivatives import inlined, recording
else:
    inlined = late("primgraph.eager.derivatives.inlined")
    recording = late("primgraph.eager.derivatives.recording")
    nodes = late("primgraph.eager.node")
    eager_run = late("primgraph.eager.run")
    tensors = late("primgraph.eager.tensor")


# Number of entries whose shortcuts are tried for calls of one kind.
_TRIED = 8


@final
@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """Cache entry of a compiled function: its trace, its kernel, and its steps for tensors.

    `number` counts compilations. `key` and `modes` are its cache key; `shortcuts` has a shortcut by
    fingerprints of calls, None after the first of them.
    """

    number: int
    key: Hashable
    traced: Traced
    kernel: Kernel | SizedKernel
    reasons: tuple[str, ...]
    seconds: float = 0.0
    captured: tuple[Captured, ...] = ()
    form: Form | None = None
    shortcuts: dict[Hashable, Shortcut | None] = field(default_factory=dict)
    formed: list[Kernel | SizedKernel] = field(default_factory=list)
    steps: list[inlined.Inlined] = field(default_factory=list)

    @property
    def for_users(self) -> Kernel | SizedKernel:
        """The kernel that takes and returns the containers of the call, for users."""
        if not self.formed:
            self.formed.append(in_form(self.kernel, self.form))
        return self.formed[0]

    @property
    def modes(self) -> Hashable:
        return tuple([(id(layer), training) for layer, training in self.traced.modes])

    def call_on_tensors(self, leaves: Sequence[Any]) -> Any:
        """Call the entry on tensors: computed at once, or recorded if they are tracked."""
        given = [x.node if is_tensor(x) else nodes.array_node(np.array(x)) for x in leaves]
        given += [t.node for t in self.traced.tensors]
        if recording.is_on.get() and any(n.tracked for n in given):
            # Symbolic sizes are not used for tensors.
            if not self.steps:
                self.steps.extend(inlined.inlined_steps(self.traced.graph))
            found = inlined.results(self.steps, tuple(given))
        else:
            eager_run.compute(given)
            found = [nodes.array_node(array) for array in self.kernel(*[n.array for n in given])]
        found = self.traced.store_changes(found)
        return tree.unflatten(self.traced.structure, map(tensors.family_of(leaves), found))

    def shortcut_for(
        self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Shortcut | None:
        """Return the shortcut of calls like this one; None if there is none, or for the first."""
        kind = fingerprint(args, kwargs)
        if not isinstance(self.kernel, Kernel) or (self.captured and debugging.get()):
            return None
        if kind not in self.shortcuts:
            self.shortcuts[kind] = None
            return None
        found = self.shortcuts[kind]
        if found is None:
            found = shortcut_of(call, args, kwargs, self.traced, self.kernel)
            self.shortcuts[kind] = found
        return None if found is no_shortcut else found


@final
class EntryIndex:
    """Index of entries with shortcuts, by the fingerprints of calls."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, tuple[Entry, ...]] = {}

    def find(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Entry, Shortcut, Any] | None:
        """Return the entry and the shortcut that serve a call, and its result, or None."""
        kind = fingerprint(args, kwargs)
        for entry in self._entries.get(kind, ()):
            shortcut = entry.shortcuts.get(kind)
            result = None if shortcut is None else shortcut(args, kwargs)
            if shortcut is not None and result is not None:
                return entry, shortcut, result
        return None

    def add(self, entry: Entry, kind: Hashable) -> None:
        """Add an entry, whose shortcut is then tried first."""
        others = [e for e in self._entries.get(kind, ()) if e is not entry]
        self._entries[kind] = (entry, *others[: _TRIED - 1])

    def remove(self, entry: Entry) -> None:
        for kind in [*entry.shortcuts]:
            others = [e for e in self._entries.pop(kind, ()) if e is not entry]
            if others:
                self._entries[kind] = tuple(others)

    def clear(self) -> None:
        self._entries.clear()


numbers = itertools.count()
