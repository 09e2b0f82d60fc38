"""Derivatives of tensors: nodes that stand for them, derived where their structure is new."""

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
    """What gradients are asked for: of so many outputs by so many inputs, none through the `cut`.

    `seeded` tells which of the outputs have a seed; the others have ones. With `batched` each seed
    has one more leading axis, and so have the gradients. With `apart` the inputs are independent of
    each other: nothing goes through one of them to another.
    """

    outputs: int
    inputs: int
    cut: int
    seeded: tuple[bool, ...]
    batched: bool
    apart: bool = False


@final
class Derivation(Step):
    """The gradient by one of the inputs. Its node stands on outputs, inputs, what is cut, seeds."""

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
        """The gradients by all inputs, in `builder`."""
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
    """The gradient by each of `inputs`; None for one that no output depends on.

    With `count`, seeds have a leading axis of that extent. Nothing passes the nodes in `cut`, nor,
    with `apart`, the inputs. `way` is what derivatives go through, where it is known.
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
    """All that derivatives of `outputs` go through, but for what lies behind `cut`.

    Those in `cut` themselves are there too if `reaching`. What functions with rules of their own
    gave is made `ready` to be differentiated by these.
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
