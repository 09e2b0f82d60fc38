"""How products of matrices are written: by `matmul`, or by `dot` where that does the same."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.codegen.cards.notation import ATOM, MATMUL, MUL, Target, Text
from primgraph.codegen.plan.schedule import Step, is_dot
from primgraph.ir.types import FLOAT16


def read_matmul(args: Sequence[Text], step: Step) -> Text:
    x, y = args
    if step.results[0].dtype == FLOAT16:
        wide = [f"{a.within(ATOM)}.astype(np.float32)" for a in args]
        return Text(f"({wide[0]} @ {wide[1]}).astype(np.float16)")
    left = x.code if x.rank == MATMUL else x.within(MUL + 1)
    return Text(f"{left} @ {y.within(MUL + 1)}", MATMUL)


def write_matmul(to: Target) -> list[str]:
    if to.step.results[0].dtype == FLOAT16:
        wide = to.np("float32")
        x, y = (f"{a}.astype({wide})" for a in to.args)
        return [f"{to.out}[...] = {to.np('matmul')}({x}, {y})"]
    name = "dot" if is_dot(to.step) else "matmul"
    return [f"{to.np(name)}({to.args[0]}, {to.args[1]}, {to.out})"]
