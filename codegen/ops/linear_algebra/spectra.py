"""Cards of orthogonal factorisations, by NumPy's LAPACK functions."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.linear_algebra.systems import function_card, numpy_card
from primgraph.ir.primitive import Op
from primgraph.primitives.linear_algebra import spectra as p


def _read_svd(args: Sequence[Text], step: Step) -> Text:
    return Text(f"np.linalg.svd({args[0].code}, full_matrices={step.params['full']})")


def _read_svdvals(args: Sequence[Text], step: Step) -> Text:
    return Text(f"np.linalg.svd({args[0].code}, compute_uv=False)")


def _read_pinv(args: Sequence[Text], step: Step) -> Text:
    return Text(f"np.linalg.pinv({args[0].code}, {step.params['rcond']!r})")


def _read_qr(args: Sequence[Text], step: Step) -> Text:
    mode = "complete" if step.params["complete"] else "reduced"
    return Text(f'np.linalg.qr({args[0].code}, "{mode}")')


CARDS: dict[Op, Card] = {
    p.eigh: numpy_card("eigh", None),
    p.eigvalsh: numpy_card("eigvalsh", None),
    p.svd: function_card(_read_svd, "", None),
    p.svdvals: function_card(_read_svdvals, "", None),
    p.pinv: function_card(_read_pinv, "", None),
    p.qr: function_card(_read_qr, "", None),
}
