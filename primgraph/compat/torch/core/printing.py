"""Tensors as text, as torch prints them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Options:
    """Options of printing, by torch's names."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": _Options(),
    "short": _Options(precision=2, edgeitems=2),
    "full": _Options(threshold=math.inf),
}
_options: list[_Options] = [_Options()]


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed: digits, elements before a summary, columns, exponents.

    `profile` "default", "short" or "full" sets all at once.

    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([3.14159])
    tensor([3.14])
    >>> torch.set_printoptions(profile="default")
    """
    known = _options[0]
    if profile is not None:
        if profile not in _PROFILES:
            raise ArgumentError(f"profile= is one of {', '.join(_PROFILES)}, not {profile!r:.60}")
        kept = known.linewidth
        known = replace(_PROFILES[profile], linewidth=80 if profile == "default" else kept)
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems}
    given |= {"linewidth": linewidth}
    changed = {name: value for name, value in given.items() if value is not None}
    _options[0] = replace(known, **changed, sci_mode=sci_mode)  # type: ignore[arg-type]


def get_printoptions() -> dict[str, Any]:
    """Return the options of `set_printoptions`.

    >>> torch.get_printoptions()["precision"]
    4
    """
    return asdict(_options[0])


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set options of printing within a `with` block.

    >>> with torch.printoptions(precision=1):
    ...     print(torch.tensor([3.14159]))
    tensor([3.1])
    """
    before = _options[0]
    set_printoptions(**options)
    try:
        yield
    finally:
        _options[0] = before


class _Formatter:
    """Formatter of the elements of an array, all in one width."""

    def __init__(self, array: Array) -> None:
        self.options = _options[0]
        self.is_float = array.dtype.kind == "f"
        self.is_whole = True
        self.has_exponent = False
        self.width = 1
        if not self.is_float:
            self.width = max((len(str(v)) for v in array.reshape(-1).tolist()), default=1)
            return
        values = array.reshape(-1).astype(np.float64)
        values = values[np.isfinite(values) & (values != 0)]
        if not values.size:
            return
        self.is_whole = bool(np.all(values == np.ceil(values)))
        sizes = np.abs(values)
        low, high = float(np.min(sizes)), float(np.max(sizes))
        wide = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        self.has_exponent = wide if self.options.sci_mode is None else self.options.sci_mode
        shown = [len(self._text(v)) for v in values.tolist()]
        extra = 1 if self.is_whole and not self.has_exponent else 0
        self.width = max(1, max(shown) + extra)

    def _text(self, value: float) -> str:
        digits = self.options.precision
        if self.has_exponent:
            return f"{value:.{digits}e}"
        return f"{value:.0f}" if self.is_whole else f"{value:.{digits}f}"

    def format(self, value: Any) -> str:
        if not self.is_float:
            return str(value).rjust(self.width)
        text = self._text(value)
        if self.is_whole and not self.has_exponent and math.isfinite(value):
            text += "."
        return text.rjust(self.width)


def _format_element(value: Any, formatters: Sequence[_Formatter]) -> str:
    if len(formatters) == 1:
        return formatters[0].format(value)
    real = formatters[0].format(value.real)
    imag = (formatters[1].format(value.imag) + "j").lstrip()
    return real + imag if imag[0] in "+-" else f"{real}+{imag}"


def _format_vector(
    array: Array, indent: int, is_summary: bool, formatters: Sequence[_Formatter]
) -> str:
    options = _options[0]
    length = formatters[0].width + 2
    if len(formatters) > 1:
        length += formatters[1].width + 1
    in_line = max(1, (options.linewidth - indent) // length)

    def texts(part: Array) -> list[str]:
        return [_format_element(v, formatters) for v in part.tolist()]

    edge = options.edgeitems
    if is_summary and not edge:
        data = ["..."]
    elif is_summary and len(array) > 2 * edge:
        data = [*texts(array[:edge]), " ...", *texts(array[-edge:])]
    else:
        data = texts(array)
    lines = [", ".join(data[i : i + in_line]) for i in range(0, len(data), in_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _format_axes(
    array: Array, indent: int, is_summary: bool, formatters: Sequence[_Formatter]
) -> str:
    if array.ndim == 0:
        return _format_element(array.item(), formatters)
    if array.ndim == 1:
        return _format_vector(array, indent, is_summary, formatters)
    edge = _options[0].edgeitems
    places: list[int | None] = [*range(len(array))]
    if is_summary and len(array) > 2 * edge:
        places = [*places[:edge], None, *places[len(array) - edge :]]
    parts = [
        "..." if i is None else _format_axes(array[i], indent + 1, is_summary, formatters)
        for i in places
    ]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _edges(array: Array) -> Array:
    """Return the elements that a summary shows."""
    edge = _options[0].edgeitems
    for axis, extent in enumerate(array.shape):
        if extent > 2 * edge:
            places = [*range(edge), *range(extent - edge, extent)]
            array = np.take(array, np.asarray(places, np.int64), axis)
    return array


def format_tensor(array: Array, suffixes: Sequence[str], prefix: str = "tensor(") -> str:
    """Return the text of a tensor: its elements, and notes such as its dtype after them."""
    text = "[]"
    if array.size:
        is_summary = array.size > _options[0].threshold
        shown = _edges(array) if is_summary else array
        parts = [shown.real, shown.imag] if array.dtype.kind == "c" else [shown]
        formatters = [_Formatter(part) for part in parts]
        text = _format_axes(array, len(prefix), is_summary, formatters)
    return _join_suffixes(prefix + text, suffixes, len(prefix))


def _join_suffixes(text: str, suffixes: Sequence[str], indent: int) -> str:
    parts = [text]
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > _options[0].linewidth:
            parts.append(",\n" + " " * indent + suffix)
            length = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            length += len(suffix) + 2
    return "".join([*parts, ")"])
