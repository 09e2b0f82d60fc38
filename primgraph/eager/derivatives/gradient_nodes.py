"""Derivatives of tensors as nodes, which are derived once per structure; gradients are the first.

`other_modes` has the other derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Never, TypeAlias, final

from primgraph.base.records import dataclass
from primgraph.base.user_lines import instruction
from primgraph.derivatives.grad import gradients_of
from primgraph.eager.node import Node
from primgraph.eager.run import compute, debugging
from primgraph.eager.steps import Arrays, Step
from primgraph.errors import InternalError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.ir.primitive import recording
from primgraph.ir.types import TensorType
from primgraph.operators.variable import Variable
from primgraph.primitives.constants import zeros_like

Options: TypeAlias = tuple[tuple[str, Hashable], ...]
Found: TypeAlias = Sequence[Variable | None]

# The derivatives of variables by name: functions of outputs, inputs, seeds and options.
RULES: dict[str, Callable[..., Found]] = {"grad": gradients_of}


@final
@dataclass(frozen=True, slots=True)
class DerivativeRequest:
    """Request for a derivative by name, of `outputs` outputs by `inputs` inputs.

    `seeded` says which seeds are given; the others are ones. No derivative passes the `cut` nodes.
    Requests on the same tensors are derived together.
    """

    name: str
    outputs: int
    inputs: int
    seeded: tuple[bool, ...] = ()
    options: Options = ()
    cut: int = 0


@final
class Derived(Step):
    """One result of a derivative. Its node's inputs are outputs, inputs, cut nodes and seeds."""

    __slots__ = ("question",)

    derives = True
    whole = True

    def __init__(self, question: DerivativeRequest, place: int, type: TensorType) -> None:
        count = question.outputs + question.inputs + question.cut + sum(question.seeded)
        super().__init__(type, range(count), question, place)
        self.question = question

    def __str__(self) -> str:
        name = self.question.name
        return f"a gradient by {self.type}" if name == "grad" else f"{name} of {self.type}"

    def record(self, builder: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        """Record all results in `builder`; zeros for an output that does not depend on the
        inputs."""
        question = self.question
        given = iter([Variable(builder, v) for v in operands])
        outputs = [next(given) for _ in range(question.outputs)]
        inputs = [next(given) for _ in range(question.inputs)]
        options: dict[str, Any] = dict(question.options)
        if question.cut:
            options["no_grad_vars"] = [next(given) for _ in range(question.cut)]
        seeds = [next(given) if s else None for s in question.seeded]
        with recording(builder):
            found = RULES[question.name](outputs, inputs, seeds, **options)
            return [
                zeros_like(outputs[i].value) if v is None else v.value for i, v in enumerate(found)
            ]

    def evaluate(self, arrays: Arrays) -> Never:
        raise InternalError("a derivative is taken of a graph, not of arrays")


@lru_cache(maxsize=4096)
def derived_step(question: DerivativeRequest, place: int, type: TensorType) -> Derived:
    """Return the step of the result at `place`."""
    return Derived(question, place, type)


@lru_cache(maxsize=4096)
def _derived_steps(
    question: DerivativeRequest, types: tuple[TensorType | None, ...]
) -> tuple[Derived | None, ...]:
    """Return the steps of the results of these types; None for one that is not computed."""
    return tuple([None if t is None else derived_step(question, i, t) for i, t in enumerate(types)])


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
    seeded = tuple([s is not None for s in seeds])
    options = ("is_grads_batched", count is not None), ("apart", apart)
    question = DerivativeRequest("grad", len(outputs), len(inputs), seeded, options, len(cut))
    operands = (*outputs, *inputs, *cut, *given)
    line = instruction()
    if way is None:
        way = path(outputs, inputs if apart else cut, reaching=apart)
    reached = set(way)
    types: list[TensorType | None] = [n.type if n in reached else None for n in inputs]
    if count is not None:
        types = [t and t.with_shape((count, *t.shape)) for t in types]
    found = [
        None if s is None else Node(s.type, s, operands, tracked, line)
        for s in _derived_steps(question, tuple(types))
    ]
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
