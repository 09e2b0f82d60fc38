"""Reverse-mode gradients of tensors: nodes that are derived once per structure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Never, final

from primgraph.base.user_lines import instruction
from primgraph.derivatives.grad import gradients_of
from primgraph.eager.node import Node
from primgraph.eager.run import compute, debugging
from primgraph.eager.steps import Arrays, Step
from primgraph.errors import InternalError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.ir.types import TensorType
from primgraph.operators.variable import Variable


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """Request for gradients of `outputs` outputs by `inputs` inputs that do not pass `cut` nodes.

    `seeded` says which outputs have a seed; the others have ones. With `batched`, seeds and
    gradients have a leading batch axis. With `apart`, the inputs are independent: no gradient
    passes from one to another.
    """

    outputs: int
    inputs: int
    cut: int
    seeded: tuple[bool, ...]
    batched: bool
    apart: bool = False


@final
class Derivation(Step):
    """Gradient by one input. Its node's inputs are outputs, inputs, cut nodes and seeds."""

    __slots__ = ("asked",)

    derives = True
    whole = True

    def __init__(self, asked: Asked, place: int, type: TensorType) -> None:
        count = asked.outputs + asked.inputs + asked.cut + sum(asked.seeded)
        super().__init__(type, range(count), asked, place)
        self.asked = asked

    def __str__(self) -> str:
        return f"a gradient by {self.type}"

    def record(self, builder: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        """Record the gradients by all inputs in `builder`."""
        asked = self.asked
        handles = iter([Variable(builder, v) for v in operands])
        outputs = [next(handles) for _ in range(asked.outputs)]
        inputs = [next(handles) for _ in range(asked.inputs)]
        cut = [next(handles) for _ in range(asked.cut)]
        seeds = [next(handles) if s else None for s in asked.seeded]
        found = gradients_of(
            outputs,
            inputs,
            seeds,
            is_grads_batched=asked.batched,
            no_grad_vars=cut,
            apart=asked.apart,
        )
        return [v.value for v in found]

    def evaluate(self, arrays: Arrays) -> Never:
        raise InternalError("a derivative is taken of a graph, not of arrays")


_KEPT = 4096
_derivations: dict[tuple[Asked, int, TensorType], Derivation] = {}


def gradients(
    outputs: Sequence[Node],
    inputs: Sequence[Node],
    seeds: Sequence[Node | None],
    *,
    tracked: bool,
    count: int | None = None,
    cut: Sequence[Node] = (),
    way: Iterable[Node] | None = None,
    apart: bool = False,
) -> list[Node | None]:
    """Return the gradient by each of `inputs`; None for one that no output depends on.

    With `count`, seeds have a leading axis of that size. No gradient passes the nodes in `cut` or,
    with `apart`, the inputs. `way` is the tape, if known.
    """
    given = [s for s in seeds if s is not None]
    asked = Asked(
        len(outputs),
        len(inputs),
        len(cut),
        tuple([s is not None for s in seeds]),
        count is not None,
        apart,
    )
    operands = (*outputs, *inputs, *cut, *given)
    line = instruction()
    found: list[Node | None] = []
    if way is None:
        way = path(outputs, inputs if apart else cut, reaching=apart)
    reached = set(way)
    for place, node in enumerate(inputs):
        if node not in reached:
            found.append(None)
            continue
        type = node.type
        if count is not None:
            type = type.with_shape((count, *type.shape))
        key = (asked, place, type)
        step = _derivations.get(key)
        if step is None:
            if len(_derivations) >= _KEPT:
                del _derivations[next(iter(_derivations))]
            step = _derivations[key] = Derivation(asked, place, type)
        found.append(Node(type, step, operands, tracked, line))
    if debugging.get():
        compute([n for n in found if n is not None])
    return found


def path(
    outputs: Iterable[Node],
    cut: Sequence[Node] = (),
    *,
    reaching: bool = False,
    ready: bool = True,
) -> list[Node]:
    """Return the tape of `outputs`: all nodes that their derivatives go through, up to `cut`.

    The nodes in `cut` themselves are included if `reaching`. With `ready`, results of functions
    with custom rules get the step that records these rules.
    """
    found = [n for n in outputs if n.tracked]
    ends = frozenset(cut)
    seen = set(found) if reaching else {*found, *ends}
    for node in found:
        if node.step is None or (reaching and node in ends):
            continue
        if node.passed is not None and ready:
            node.step = node.passed.step(node)
        for i in node.step.reaching:
            other = node.inputs[i]
            if other.tracked and other not in seen:
                seen.add(other)
                found.append(other)
    return found
