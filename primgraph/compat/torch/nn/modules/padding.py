"""Padding as layers."""

from __future__ import annotations

from typing import Any

from primgraph.compat.torch.nn import functional
from primgraph.compat.torch.nn.modules.layer_tables import FunctionLayer, define_layers


class _Pad(FunctionLayer):
    """Layer that adds elements at the ends of axes; `padding` has pairs, that of the last first."""

    padding: Any
    mode = "constant"
    value: float | None = 0.0

    def _complete(self) -> None:
        count = int(type(self).__name__[-2])
        given = self.padding
        self.padding = (given,) * (2 * count) if isinstance(given, int) else tuple(given)


def _pad(input: Any, padding: Any, mode: str, value: float | None) -> Any:
    """Pad, as the layers do."""
    return functional.pad(input, padding, mode, value)


def _rows(name: str, mode: str, about: str) -> str:
    """Return rows for layers along one, two and three axes."""
    return "\n\n".join(
        f"{name}{n}d(padding, mode={mode!r}, value=None): pad(input) | =padding\n"
        f"Add {about} at both ends of the last {n} axes.\n"
        f">>> torch.nn.{name}{n}d(1)(torch.ones({', '.join('1' + '2' * n)})).shape\n"
        f"torch.Size([{', '.join('1' + '4' * n)}])"
        for n in (1, 2, 3)
    )


_TABLES = (
    ("ReflectionPad", "reflect", "the elements mirrored at the end"),
    ("ReplicationPad", "replicate", "the element at the end"),
    ("CircularPad", "circular", "the elements of the other end"),
    ("ZeroPad", "constant", "zeros"),
)
_CONSTANT = "\n\n".join(
    f"ConstantPad{n}d(padding, value, mode='constant'): pad(input) | padding value\n"
    f"Add elements equal to `value` at both ends of the last {n} axes.\n"
    f">>> torch.nn.ConstantPad{n}d(1, 3.0)(torch.ones({', '.join('1' + '2' * n)})).shape\n"
    f"torch.Size([{', '.join('1' + '4' * n)}])"
    for n in (1, 2, 3)
)
_ROWS = "\n\n".join([*(_rows(*table) for table in _TABLES), _CONSTANT])

__all__ = define_layers(globals(), _Pad, {"pad": _pad}, _ROWS)
