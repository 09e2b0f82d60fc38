"""Cards of cumulative products and extrema."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.codegen.ir.axis_semantics import Blocking
from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, Marks, plain
from primgraph.codegen.ops.cost_model import per_element
from primgraph.codegen.ops.shapes import role_along_axis
from primgraph.codegen.ops.spelling.complex_step import ANALYTIC, ComplexStep
from primgraph.codegen.ops.spelling.literals import dtype_text
from primgraph.codegen.ops.spelling.notation import Target
from primgraph.ir.primitive import Op
from primgraph.ir.types import FLOAT16, DType
from primgraph.primitives import running as p


def _accumulation_card(ufunc: str, step: ComplexStep | None) -> Card:
    """Return the card of a ufunc's accumulation along an axis."""

    def read(args: Sequence[Text], step: Step) -> Text:
        axis, dtype = step.params["axis"], step.results[0].dtype
        return Text(f"np.{ufunc}.accumulate({args[0].code}, axis={axis}{_dtype(ufunc, dtype)}"
                    f"){'.astype(np.float16)' if _is_wide(ufunc, step) else ''}")  # fmt: skip

    def write(to: Target) -> list[str]:
        axis, dtype = to.step.params["axis"], to.step.results[0].dtype
        scan = f"{to.np(f'{ufunc}.accumulate')}({to.args[0]}, {axis}"
        if _is_wide(ufunc, to.step):
            return [f"{to.out}[...] = {scan}, {to.np('float32')})"]
        return [f"{scan}, {to.np(dtype_text(dtype)[3:])}, {to.out})"]

    return plain(
        read=read,
        write=write,
        needs=None,
        blocking=Blocking(role_along_axis, 0, ""),
        nanoseconds=per_element(3.0, 3.0),
        scalar=None,
        complex_step=step,
        marks=Marks.UNKNOWN,
    )


def _is_wide(ufunc: str, step: Step) -> bool:
    """Return whether products are computed in float32 and rounded once."""
    return ufunc == "multiply" and step.results[0].dtype == FLOAT16


def _dtype(ufunc: str, dtype: DType) -> str:
    if ufunc != "multiply":
        return ""
    return ", dtype=np.float32" if dtype == FLOAT16 else f", dtype={dtype_text(dtype)}"


CARDS: dict[Op, Card] = {
    p.cumprod: _accumulation_card("multiply", ANALYTIC),
    p.cummax: _accumulation_card("maximum", None),
    p.cummin: _accumulation_card("minimum", None),
}
