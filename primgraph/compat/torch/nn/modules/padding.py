"""Padding as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph.compat.torch.nn import functional
from primgraph.compat.torch.nn.layer_tables import FunctionLayer, define_layers


class _Pad(FunctionLayer):
    """Layer that adds elements at the ends of axes; `padding` has pairs, that of the last first."""

    padding: Any

    def _complete(self) -> None:
        count = int(type(self).__name__[-2])
        given = self.padding
        self.padding = (given,) * (2 * count) if isinstance(given, int) else tuple(given)


def _function(mode: str) -> Callable[..., Any]:
    """Return the function that pads in one mode."""

    def pad(input: Any, padding: Any, value: float | None = None) -> Any:
        return functional.pad(input, padding, mode, value)

    return pad


def _rows(name: str, parameters: str, example: str, shown: str, mode: str, about: str) -> str:
    """Return rows for layers along one, two and three axes."""
    return "\n\n".join(
        f"{name}{n}d({parameters}): {mode}(input) | {shown}\n"
        f"Add {about} at both ends of the last {n} axes.\n"
        f">>> torch.nn.{name}{n}d({example})(torch.ones({', '.join('11' + '2' * n)})).shape\n"
        f"torch.Size([{', '.join('11' + '4' * n)}])"
        for n in (1, 2, 3)
    )


_PLAIN = ("padding", "1", "=padding")
_ROWS = "\n\n".join(
    [
        _rows("ReflectionPad", *_PLAIN, "reflect", "the elements mirrored at the end"),
        _rows("ReplicationPad", *_PLAIN, "replicate", "the element at the end"),
        _rows("CircularPad", *_PLAIN, "circular", "the elements of the other end"),
        _rows("ZeroPad", *_PLAIN, "constant", "zeros"),
        _rows(
            "ConstantPad",
            "padding, value",
            "1, 3.0",
            "padding value",
            "constant",
            "elements equal to `value`",
        ),
    ]
)
_MODES = {mode: _function(mode) for mode in ("reflect", "replicate", "circular", "constant")}

__all__ = define_layers(globals(), _Pad, _MODES, _ROWS)
