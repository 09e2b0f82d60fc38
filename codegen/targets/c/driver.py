"""Driver of native code generation: the C of a graph and its call interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

from primgraph.base.user_lines import Source as UserLine
from primgraph.codegen.ir.limits import Limits, Options, default_limits
from primgraph.codegen.ir.program import stays_inside
from primgraph.codegen.ir.schedule import Schedule, schedule
from primgraph.codegen.ir.statements import Control, HostCall, Nests
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.lower.nests.regions import LIMITS
from primgraph.codegen.lower.nests.shared_padding import prepare_graph
from primgraph.codegen.runtime.toolchain.code_cache import (
    MADE,
    NAME,
    Coded,
    Entry,
    FunctionInterface,
    NumpyStep,
    Taken,
    modes_of,
)
from primgraph.codegen.runtime.toolchain.run_compiler import fault_line
from primgraph.codegen.targets.c.size_arguments import SIZES, SizeArguments
from primgraph.codegen.targets.c.source import Segment, Source, source
from primgraph.errors import WRITTEN
from primgraph.ir.dims import typical
from primgraph.ir.graph import Graph
from primgraph.ir.types import INT64, Shape, TensorType
from primgraph.primitives.control import Flow

# Minimum number of elements for releasing the GIL, which has a cost of its own.
_FEW = 4096


@final
class NativeCode(NamedTuple):
    """The C of a graph, its constants, and a function that traces lines to the user's lines."""

    entry: Entry
    constants: list[Any]
    trace: Callable[[], Mapping[int, UserLine]]

    def origin(self, told: str) -> tuple[str, ...]:
        """Return the user's source line for the first C line in a compiler message, if known."""
        source = self.trace().get(fault_line(told))
        return () if source is None else (f"{WRITTEN}  {source}   {source.text}".rstrip(),)


def generate_native(graph: Graph, options: Options, limits: Limits) -> NativeCode | None:
    """Generate native code for `graph`; None if growing stacks would leave the C code."""
    told = SizeArguments(graph) if graph.sizes else None
    steps, plan = _planned(graph, LIMITS if limits == default_limits() else limits)
    if not stays_inside(plan):
        return None
    written = source(plan, NAME, told)
    modes = modes_of(options, len(plan.outputs))
    entry = _InterfaceBuilder(plan, written, told, steps, graph).entry(modes, options.alone)

    def trace() -> Mapping[int, UserLine]:
        return source(plan, NAME, told, is_traced=True).sources

    return NativeCode(entry, list(plan.constants.values()), trace)


def _planned(graph: Graph, limits: Limits) -> tuple[Schedule, Nests]:
    """Return the nests of `graph`, prepared for loops, and their schedule.

    NumPy runs equations of `graph` itself, so that it is not prepared if that changes one of them.
    """
    own = {id(eqn) for eqn in graph.body}
    steps = schedule(prepare_graph(graph))
    plan = nests(steps, limits)
    calls = (item for item in plan.items if isinstance(item, HostCall))
    if not all(id(item.step.eqn) in own for item in calls):
        steps = schedule(graph)
        plan = nests(steps, limits)
    return steps, plan


@final
class _InterfaceBuilder:
    """Builder of the call interfaces of the C functions."""

    def __init__(
        self, plan: Nests, made: Source, told: SizeArguments | None, steps: Schedule, graph: Graph
    ) -> None:
        self.plan, self.made, self.told = plan, made, told
        self.steps, self.graph = steps, graph
        arrays = {v for piece in made.order if isinstance(piece, Segment) for v in piece.arrays}
        self.elements = sum([plan.types[v].size for v in arrays - {SIZES}])

    def entry(self, modes: tuple[int, ...], alone: bool) -> Entry:
        plan, steps, told = self.plan, self.steps, self.told
        order = self.made.order
        pairs = zip(plan.outputs, steps.outputs, strict=True)
        tell = None
        pieces: list[FunctionInterface | NumpyStep] = []
        if len(order) == 1 and isinstance(order[0], Segment):
            results = [plan.types[v].with_shape(steps.types[k].shape) for v, k in pairs]
            values = [*range(steps.inputs)], list(plan.outputs)
            pieces.append(self.function_interface(order[0], *values, results, modes, alone))
            outputs: Taken = ()
        else:
            outputs = tuple([(v, self.encode_shape(steps.types[k].shape)) for v, k in pairs])
            if told is not None:
                # All symbolic sizes must be registered before the text is complete.
                for type in dict.fromkeys([*plan.types.values(), *steps.types]):
                    told.encode_shape(type.shape)
            place = {id(e): k for k, e in enumerate(self.graph.body)}
            for piece in order:
                if isinstance(piece, Segment):
                    pieces.append(self.segment_interface(piece))
                    continue
                shapes = [self.encode_shape(t.shape) for t in piece.step.operands]
                taken = tuple(zip(piece.operands, shapes, strict=True))
                at = place[id(piece.step.eqn)]
                pieces.append(NumpyStep(at, taken, tuple(piece.values)))
            if told is not None:
                types = self.types(self.graph.input_types)
                numbers = ((INT64.num, (len(told),)),)
                places = (len(types) + 1, len(types))
                tell = FunctionInterface(
                    f"{NAME}_told", types, numbers, places, (MADE,), 0, True, False, True,
                    len(told),
                )  # fmt: skip
        text = self.made.text
        if told is not None:
            lines = told.functions(NAME, self.made.arena, self.elements)
            text = "\n".join([text, *lines, ""])
            count = len(told)
            pieces = [
                p._replace(numbers=count) if isinstance(p, FunctionInterface) else p for p in pieces
            ]
        return Entry(text, tuple(pieces), tuple(plan.constants), outputs, tell, self.made.units)

    def segment_interface(self, segment: Segment) -> FunctionInterface:
        """Return the interface of a C function between other pieces."""
        types = self.plan.types
        known = {*segment.written, *self.plan.constants, SIZES}
        read = [v for v in segment.arrays if v not in known]
        inputs = read if self.told is None else [*read, SIZES]
        results = [types[v] for v in segment.written]
        written = list(segment.written)
        called = self.function_interface(
            segment, inputs, written, results, (MADE,) * len(results), False
        )
        taken = tuple([(v, self.encode_shape(types[v].shape)) for v in read])
        return called._replace(taken=taken, values=tuple(written))

    def function_interface(
        self,
        segment: Segment,
        inputs: list[int],
        outputs: list[int],
        results: list[TensorType],
        modes: tuple[int, ...],
        alone: bool,
    ) -> FunctionInterface:
        """Return the interface of a function with these inputs and outputs."""
        plan, told = self.plan, self.told
        place = {v: k for k, v in enumerate([*inputs, *plan.constants, *outputs])}
        # Symbolic sizes come last, whether they are passed or computed.
        place[SIZES] = len(inputs) + len(plan.constants) + len(outputs)
        finds = told is not None and SIZES not in inputs
        types = self.types([plan.types[v] for v in inputs if v != SIZES])
        made = self.types(results)
        if told is not None and not finds:
            types += ((INT64.num, (len(told),)),)
        releases = _has_long_loops(plan) or (told is None and self.elements > _FEW)
        return FunctionInterface(
            segment.name,
            types,
            made,
            tuple([place[v] for v in segment.arrays]),
            modes,
            int(self.made.arena) if told is None else 0,
            alone,
            releases,
            finds,
            0 if told is None else len(told),
        )

    def types(self, types: Any) -> tuple[Coded, ...]:
        """Return types as calls take them: dtype numbers and coded shapes."""
        return tuple([(t.dtype.num, self.encode_shape(t.shape)) for t in types])

    def encode_shape(self, shape: Shape) -> Shape:
        return shape if self.told is None else self.told.encode_shape(shape)


def _has_long_loops(plan: Nests) -> bool:
    """Return whether there may be loops so long that other threads should run meanwhile."""
    steps = [item.step for item in plan.items if isinstance(item, Control)]
    return any(
        step.flow is Flow.TEST or typical(step.op.flops(step.operands, step.params)) > _FEW
        for step in steps
    )
