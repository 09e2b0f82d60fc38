"""State dicts of layers as Paddle has them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from primgraph.compat.modules.module import Module
from primgraph.compat.modules.walks import join_path, walk_modules
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.tensor import Tensor
from primgraph.operators.variable import Variable
from primgraph.program.program import program_of


class StateDicts(Module):
    """The methods of layers that read and store parameters and buffers by name."""

    def state_dict(  # type: ignore[override]
        self,
        destination: Any = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Any]:
        """Return parameters and persistable buffers themselves, by dotted name."""
        return self._collect(destination, include_sublayers, structured_name_prefix, False)

    def to_static_state_dict(
        self,
        destination: Any = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Any]:
        """Return parameters and all buffers themselves, by dotted name."""
        return self._collect(destination, include_sublayers, structured_name_prefix, True)

    def _collect(
        self, destination: Any, include_sublayers: bool, prefix: str, takes_all: bool
    ) -> dict[str, Any]:
        found: dict[str, Any] = {} if destination is None else destination
        for path, layer in walk_modules(self, "", False):
            if path and not include_sublayers:
                continue
            state = layer._own_state()
            if takes_all:
                state = {**layer._parameters, **layer._buffers}
            for name, item in state.items():
                if item is not None:
                    found[prefix + join_path(path, name)] = item
        return found

    def set_state_dict(  # type: ignore[override]
        self, state_dict: Mapping[str, Any], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        """Store values by dotted name, or by the names of parameters.

        Returns the names that `state_dict` lacks or whose shapes differ, with a warning for each,
        and those that the layer lacks.
        """
        missing: list[str] = []
        used: set[str] = set()
        for path, item in self.state_dict().items():
            key = path if use_structured_name else item.name
            value = state_dict.get(key)
            wanted = list(item.type.shape)
            given = None if value is None else _shape_of(value)
            if given == wanted:
                used.add(key)
                _store(item, value)
                continue
            missing.append(key)
            fault = f"{key} receives a shape {given}, but the expected shape is {wanted}."
            lacking = f"{key} is not found in the provided dict."
            warnings.warn(
                f"Skip loading for {path}. {lacking if value is None else fault}", stacklevel=2
            )
        return missing, [key for key in state_dict if key not in used]

    set_dict = set_state_dict
    load_dict = set_state_dict


def _shape_of(value: Any) -> list[int]:
    shape = getattr(value, "shape", None)
    return list(np.shape(value) if shape is None else shape() if callable(shape) else shape)


def _store(item: Any, value: Any) -> None:
    """Store elements in a parameter or buffer, of a program if it is a variable."""
    if isinstance(item, Variable):
        program_of(item).set_state_dict({item.name: np.asarray(value)})
        return
    with no_grad():
        item.copy_(value if isinstance(value, Tensor) else np.asarray(value))
