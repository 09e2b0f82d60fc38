"""Cards of sorting and searching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from primgraph.codegen.ir.axis_semantics import Blocking
from primgraph.codegen.ir.extents import Text, size_text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, Marks, plain
from primgraph.codegen.ops.cost_model import Time, per_element
from primgraph.codegen.ops.shapes import role_along_axis
from primgraph.codegen.ops.spelling.literals import dtype_text, shape_text
from primgraph.codegen.ops.spelling.notation import Read, Target, Write
from primgraph.ir.primitive import Op
from primgraph.ir.types import FLOAT64
from primgraph.primitives import sorting as p


def _card(read: Read, write: Write, blocking: Blocking | None, time: Time) -> Card:
    """Return the card of a primitive that compares or reorders elements."""
    return plain(
        read=read,
        write=write,
        needs=None,
        blocking=blocking,
        nanoseconds=time,
        scalar=None,
        complex_step=None,
        marks=Marks.UNKNOWN,
    )


def _read_sort(args: Sequence[Text], step: Step) -> Text:
    return Text(f"np.sort({args[0].code}, axis={step.params['axis']})")


def _write_sort(to: Target) -> list[str]:
    return [f"{to.out}[...] = {to.args[0]}", f"{to.out}.sort({to.step.params['axis']})"]


def _read_argsort(args: Sequence[Text], step: Step) -> Text:
    return Text(f'np.argsort({args[0].code}, axis={step.params["axis"]}, kind="stable")')


def _read_reorder(args: Sequence[Text], step: Step) -> Text:
    x, index = args
    return Text(f"np.take_along_axis({x.code}, {index.code}, axis={step.params['axis']})")


def _write_sort_by(to: Target) -> list[str]:
    axis = to.step.params["axis"]
    return [f"sort_by({', '.join(to.args)}, {axis}, {to.out})"]


def _write_argsort(to: Target) -> list[str]:
    if to.step.operands[0].dtype.kind != "f":
        return _fill_result(_read_argsort)(to)
    return [f"stable_argsort({to.args[0]}, {to.step.params['axis']}, {to.out})"]


def _read_empty(args: Sequence[Text], step: Step) -> Text:
    type = step.results[0]
    shape = size_text(type.shape[0]).code if type.ndim == 1 else shape_text(type.shape)
    told = [shape, dtype_text(type.dtype)]
    return Text(f"np.empty({', '.join(told[: 1 + (type.dtype != FLOAT64)])})")


def _amend_reorder_back(name: str, args: Sequence[Text], step: Step) -> str:
    x, index = args
    if step.operands[0].ndim == 1:
        return f"{name}[{index.code}] = {x.code}"
    return f"np.put_along_axis({name}, {index.code}, {x.code}, axis={step.params['axis']})"


def _write_reorder_back(to: Target) -> list[str]:
    x, index = map(Text, to.args)
    return [_amend_reorder_back(to.out, [x, index], to.step)]


def _read_searchsorted(args: Sequence[Text], step: Step) -> Text:
    side = ', side="right"' if step.params["right"] else ""
    return Text(f"np.searchsorted({args[0].code}, {args[1].code}{side})")


def _fill_result(read: Read) -> Write:
    """Return statements that fill the result with the value of the expression."""

    def write(to: Target) -> list[str]:
        return [f"{to.out}[...] = {read([Text(a) for a in to.args], to.step).code}"]

    return write


_ALONG = Blocking(role_along_axis, 0, "")
_SORTING, _MOVING, _SEARCHING = (
    per_element(40.0, 40.0),
    per_element(3.0, 3.0),
    per_element(60.0, 60.0),
)

CARDS: dict[Op, Card] = {
    p.sort: _card(_read_sort, _write_sort, _ALONG, _SORTING),
    p.argsort: _card(_read_argsort, _write_argsort, _ALONG, _SORTING),
    p.sort_by: _card(_read_sort, _write_sort_by, _ALONG, _MOVING),
    p.reorder_back: replace(
        _card(_read_empty, _write_reorder_back, _ALONG, _MOVING),
        amend=_amend_reorder_back,
        fallible=True,
    ),
    p.reorder: replace(
        _card(_read_reorder, _fill_result(_read_reorder), _ALONG, _MOVING), fallible=True
    ),
    p.searchsorted: _card(_read_searchsorted, _fill_result(_read_searchsorted), None, _SEARCHING),
}
