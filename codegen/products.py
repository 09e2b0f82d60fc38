"""How products of matrices are written: by `matmul`, or by `dot` where that does the same."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.codegen.notation import ATOM, MATMUL, MUL, Target, Text
from primgraph.codegen.schedule import Step
from primgraph.ir.types import FLOAT16


def is_dot(step: Step) -> bool:
    """Whether a product is written as `dot`, which has less overhead for two matrices.

    With a single element in a factor, `dot` takes 0 times infinity for 0. With one product for
    each element of the result, it gives -0.0 for negative ones that underflow, which `matmul` adds
    to 0.0.
    """
    x, y = step.operands
    alone = x.size == 1 or y.size == 1 or x.shape[-1] == 1
    return x.ndim == 2 and x.is_float and x.dtype != FLOAT16 and not alone


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
