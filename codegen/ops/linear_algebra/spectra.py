"""Cards of orthogonal factorisations, by NumPy's LAPACK functions."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.linear_algebra.systems import function_card, numpy_card
from primgraph.codegen.ops.spelling.library import call
from primgraph.codegen.ops.spelling.notation import reading
from primgraph.ir.primitive import Op
from primgraph.primitives.linear_algebra import spectra as p


def _read_qr(args: Sequence[Text], step: Step) -> Text:
    mode = "complete" if step.params["complete"] else "reduced"
    return Text(call("linalg.qr", args[0].code, f'"{mode}"'))


CARDS: dict[Op, Card] = {
    p.eigh: numpy_card("eigh", None),
    p.eigvalsh: numpy_card("eigvalsh", None),
    p.svd: function_card(reading("np.linalg.svd({0}, full_matrices={full})"), "", None),
    p.svdvals: function_card(reading("np.linalg.svd({0}, compute_uv=False)"), "", None),
    p.pinv: function_card(reading("np.linalg.pinv({0}, {rcond})"), "", None),
    p.qr: function_card(_read_qr, "", None),
}
