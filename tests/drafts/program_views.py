"""Chains of views of a copy, with writes through any of them, for random programs in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from program_draft import Choices

# Views of `{y}` by the least number of axes that they need.
_VIEWS = {
    0: [
        "{y}[...]", "{y}[None]", "np.asarray({y})", "np.atleast_1d({y})", "np.atleast_2d({y})",
        "np.atleast_3d({y})", "np.expand_dims({y}, 0)", "{y}.reshape(-1)", "np.ravel({y})",
        "{y}.T", "{y}.T.T", "np.transpose({y})", "np.squeeze({y})", "{y}.squeeze()", "{y}.real",
        "np.real({y})", "{y}.view()", "np.reshape({y}, (-1, 1))", "np.array({y}, copy=None)",
        "np.ascontiguousarray({y})", "{y}.astype({y}.dtype, copy=False)", "{y}.flatten()",
        "{y}.copy()", "np.expand_dims({y}, -1)", "np.squeeze({y}[None], axis=0)",
        "np.broadcast_arrays({y}, 1.0)[0]", "{y}.reshape({y}.shape[::-1])", "+{y}",
        "{y}.reshape(-1, order='F')", "{y}.conj()",
    ],
    1: [
        "{y}[1:]", "{y}[:-1]", "{y}[::2]", "{y}[::-1]", "{y}[..., ::2]", "{y}[-1:]", "np.flip({y})",
        "np.flip({y}, 0)", "np.flipud({y})", "np.array_split({y}, 2)[0]", "np.split({y}, [1])[1]",
        "{y}[..., -1:]", "{y}[np.array([0, 0])].copy()", "list({y})[0]", "np.unstack({y})[-1]",
        "{y}[np.argmax(distinct({y}.ravel())) % {y}.shape[0]]",
    ],
    2: [
        "{y}[0]", "{y}[:, 0]", "{y}[1:, ::-1]", "{y}.swapaxes(0, 1)", "np.swapaxes({y}, 0, -1)",
        "np.moveaxis({y}, 0, -1)", "np.rollaxis({y}, 1)", "{y}.transpose()", "np.fliplr({y})",
        "np.rot90({y})", "np.rot90({y}, 2)", "np.rot90({y}, -1)", "np.hsplit({y}, [1])[1]",
        "np.vsplit({y}, [1])[0]", "{y}.mT", "np.matrix_transpose({y})", "{y}[0, ...]",
        "np.unstack({y}, axis=1)[0]", "np.linalg.matrix_transpose({y})", "{y}[:, [0, 0]].copy()",
        "np.array_split({y}, 2, axis=1)[0]", "np.permute_dims({y}, tuple(range({y}.ndim))[::-1])",
    ],
    3: ["np.dsplit({y}, [1])[0]", "{y}[:, 0]", "np.transpose({y}, (1, 2, 0))", "{y}[..., 0, :]"],
}  # fmt: skip
_WRITES = [
    "{y}[...] = {v}", "{y} *= 0.5", "{y} += {v}", "{y}.fill({v})", "np.negative({y}, out={y})",
    "np.copyto({y}, {v})", "{y}[...] = {y}[...] * {v}",
]  # fmt: skip
_WRITES_OF_ROWS = [
    "{y}[0] = {v}", "{y}[-1] -= {v}", "{y}[1:] *= {v}", "{y}[::2] = 0.5 * {y}[::2]",
    "{y}.put([0], {v})", "{y}[[0]] = {v}",
    "for i in range(len({y})): part = {y}[i:i + 1]; part *= 0.5 + 0.25 * i",
    "for i, row in enumerate({y}[:, None]): row -= 0.125 * i",
]  # fmt: skip


def views_of(choices: Choices, operand: str, value: np.ndarray, out: str, space: Any) -> list[str]:
    """Draft lines that take views of a copy of an operand, and write through some of them.

    `out` is computed from all of the arrays at the end.
    """
    lines = [f"{out} = {operand}.copy()"]
    known = {out: value.copy()}
    scratch = dict(space) | {operand: value} | known

    def run(line: str) -> bool:
        try:
            exec(line, scratch)
        except (ValueError, TypeError, IndexError):
            return False
        lines.append(line)
        return True

    for i in range(choices.below(6, 2)):
        source = choices.choose(list(known))
        name = f"{out}_{i}"
        if run(f"{name} = {_view_of(choices, source, known[source].ndim)}"):
            if scratch[name].size == 0 or not isinstance(scratch[name], np.ndarray):
                lines.pop()
                continue
            known[name] = scratch[name]
        for _ in range(choices.below(3)):
            target = choices.choose(list(known))
            writes = [*_WRITES, *(_WRITES_OF_ROWS if known[target].ndim else ())]
            number = choices.choose(("0.25", "-0.5", f"np.tanh({operand}).sum()"))
            run(choices.choose(writes).format(y=target, v=number))
    run(f"{out} += 0.125")
    parts = ", ".join(f"{name}.reshape(-1)" for name in known)
    lines.append(f"{out} = np.concatenate([{parts}])")
    return lines


def _view_of(choices: Choices, source: str, ndim: int) -> str:
    found = [view for least, views in _VIEWS.items() if least <= ndim for view in views]
    return str(choices.choose(found)).format(y=source)
