"""Branches and loops of JAX: their bodies are functions, and results are returned."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.codegen.ir.extents import ATOM, extent_text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.views import tuple_text
from primgraph.codegen.ops.spelling.literals import array_dtype, shape_text
from primgraph.codegen.targets.readable.control import (
    Statements,
    Value,
    Write,
    body_names,
    code_of,
    name_of_values,
    named_piece,
    text_of_result,
    write_body,
)
from primgraph.codegen.targets.readable.page import Page
from primgraph.codegen.targets.text.flow import Loop, is_flag, loop_of, write_flow
from primgraph.codegen.targets.text.layout import statement
from primgraph.codegen.targets.text.module import Within
from primgraph.errors import CompileError
from primgraph.ir.dims import TRIPS
from primgraph.ir.graph import Graph
from primgraph.ir.types import INT64, TensorType
from primgraph.primitives.control import Flow

_NUMBER = TensorType((), INT64)


def write_functions(page: Page, i: int, step: Step, write: Write) -> None:
    """Write a branch or a loop to a page: functions of its bodies, and a call of `jax.lax`."""
    words = _Functions(page, i, step, write)
    if step.flow is Flow.ONCE:
        words.names = name_of_values(page, step.outputs, "v")
        write_flow(words, step, words.given, step.outputs)
        words.results(words.names)
    elif step.flow is Flow.CHOICE:
        words.branch()
    else:
        loop = loop_of(step, words.given, step.outputs)
        if loop.number is None and loop.count is None:
            words.scan(loop)
        else:
            words.iterate(loop)


class _Functions(Statements):
    """Functions for the bodies of one branch or loop."""

    def function(self, hint: str, *parameters: str) -> list[str]:
        """Open a function, and return its name and those of its parameters."""
        name = self.page.names.name_from_hint(hint, "f")
        given = [self.page.own_name(parameter) for parameter in parameters]
        self.line("")
        self.open(f"def {name}({', '.join(given)}):")
        return [name, *given]

    def returns(self, code: str, within: Within | None = None) -> None:
        """Write what the innermost function returns, and close it."""
        for row in statement("return ", code, self.page.depth + 1):
            self.line(row, within)
        self.close()
        self.line("")

    def call(self, target: str, code: str) -> None:
        """Bind the results of a call."""
        for row in statement(f"{target} = ", code, self.page.depth):
            self.line(row)

    def compute(self, graph: Graph, given: Sequence[Value], count: int = 0) -> list[str]:
        """Write a body, of which the first `count` results are carries; return its results."""
        values, inner = write_body(self, graph, given, count)
        return [text_of_result(inner, v, graph, k).code for k, v in enumerate(values)]

    # Branches.

    def branch(self) -> None:
        """Write a choice between functions without arguments."""
        index, *given = self.given
        branches: Sequence[Graph] = self.step.params["branches"]
        flag = is_flag(self.step)
        hints = ["otherwise", "chosen"] if flag else [f"case_{k}" for k in range(len(branches))]
        order = (1, 0) if flag else range(len(branches))
        called = []
        for k in order:
            called += self.function(hints[k])
            self.returns(tuple_text(self.compute(branches[k], given)))
        names = name_of_values(self.page, self.step.outputs, "v")
        which = code_of(index).code
        functions = ", ".join(called) if flag else f"[{', '.join(called)}]"
        self.call(_targets(names), f"jax.lax.{'cond' if flag else 'switch'}({which}, {functions})")
        self.results(names)

    # Loops.

    def scan(self, loop: Loop[Value]) -> None:
        """Write a loop of known length over the rows of stacks."""
        p, carries = loop.params, len(loop.ends)
        if p["length"] is TRIPS:
            raise _grows()
        before, stacks = self.result_names(loop)
        step, carry, row = self.function("step", "carry", "row")
        state = self.unpack(carry, before, loop.kinds)
        kinds = [type.with_shape(type.shape[1:]) for type in loop.scanned_kinds]
        rows = self.unpack(row, name_of_values(self.page, [-1] * len(kinds), "row"), kinds)
        found = self.compute(loop.body, [*loop.fixed, *state, *rows], carries)
        self.returns(f"{tuple_text(found[:carries])}, {tuple_text(found[carries:])}")
        first = tuple_text([code_of(x).code for x in loop.state])
        read = tuple_text([code_of(x).code for x in loop.scanned]) if loop.scanned else "None"
        more = [] if loop.scanned else [f"length={extent_text(p['length'])}"]
        more += ["reverse=True"] if p["reverse"] else []
        call = f"jax.lax.scan({', '.join([step, first, read, *more])})"
        self.call(f"{_group(before)}, {_group(stacks)}", call)
        self.results([*before, *stacks])

    def iterate(self, loop: Loop[Value]) -> None:
        """Write a loop whose length is computed, or that a test ends."""
        p, carries = loop.params, len(loop.ends)
        limit = p["length"] if loop.number is None else p["limit"]
        if limit is TRIPS or (limit is None and loop.stacks):
            raise _grows()
        before, stacks = self.result_names(loop)
        number = self.page.names.name_from_hint("trips", "n")
        most = None if limit is None else extent_text(limit)
        if loop.count is not None:
            most = f"np.minimum({code_of(loop.count).code}, {most})"
        test = self.test_function(loop, number, [*before, *stacks], most)
        step, group = self.function("step", "state")
        (k, *state) = self.unpack(group, [number, *before, *stacks], self.kinds(loop))
        at = code_of(k).code
        if p.get("reverse"):
            at = f"{most} - 1 - {at}"
        rows = [_row(x, at) for x in loop.scanned]
        kinds = [type.with_shape(type.shape[1:]) for type in loop.scanned_kinds]
        given = [*loop.fixed, *state[:carries], *map(named_piece, rows, kinds)]
        found = self.compute(loop.body, given, carries)
        rest = zip(state[carries:], found[carries:], strict=True)
        kept = [f"{code_of(s).code}.at[{at}].set({row})" for s, row in rest]
        self.returns(", ".join([f"{number} + 1", *found[:carries], *kept]))
        first = ["0", *[code_of(x).code for x in loop.state], *self.zeros(loop)]
        self.call(
            _targets([number, *before, *stacks]),
            f"jax.lax.while_loop({test}, {step}, {tuple_text(first)})",
        )
        self.results([*before, *([] if loop.number is None else [number]), *stacks])

    def test_function(
        self, loop: Loop[Value], number: str, names: Sequence[str], most: str | None
    ) -> str:
        """Write whether a loop goes on, and return the name of that function."""
        test, group = self.function("goes_on", "state")
        state = self.unpack(group, [number, *names], self.kinds(loop))
        parts = [] if most is None else [f"{number} < {most}"]
        if loop.number is not None:
            given = [*loop.fixed, *state[1 : 1 + len(loop.ends)]]
            (truth,) = self.compute(loop.params["test"], given)
            parts.append(truth)
        self.returns(" & ".join(f"({part})" for part in parts) if len(parts) > 1 else parts[0])
        return test

    def kinds(self, loop: Loop[Value]) -> list[TensorType]:
        """Return the types of the state of a loop: the number of iterations, carries, stacks."""
        return [_NUMBER, *loop.kinds, *loop.stacked_kinds]

    def zeros(self, loop: Loop[Value]) -> list[str]:
        """Return stacks before the first iteration."""
        return [
            f"np.zeros({shape_text(t.shape)}{array_dtype(t.dtype)})" for t in loop.stacked_kinds
        ]

    def result_names(self, loop: Loop[Value]) -> tuple[list[str], list[str]]:
        """Return names for the last carries, and for stacks."""
        called = body_names(loop.body, loop.params["consts"], len(loop.ends))
        page, carries, outputs = self.page, len(loop.ends), self.step.outputs
        before = name_of_values(page, outputs[:carries], "v", called)
        hints = [f"{name}_stack" if name else "" for name in called[carries:]]
        return before, name_of_values(
            page, outputs[len(outputs) - len(loop.stacks) :], "stack", hints
        )

    def unpack(self, group: str, names: Sequence[str], kinds: Sequence[TensorType]) -> list[Value]:
        """Write the unpacking of a tuple into names, and return these."""
        if names:
            self.line(f"{_targets(names)} = {group}")
        return [named_piece(n, t) for n, t in zip(names, kinds, strict=True)]


def _targets(names: Sequence[str]) -> str:
    """Return the targets of an assignment from a tuple."""
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names) or "_"


def _group(names: Sequence[str]) -> str:
    """Return a tuple of targets, which may be empty."""
    return tuple_text([*names]) if names else "_"


def _row(x: Value, at: str) -> str:
    return f"{code_of(x).operand_code(ATOM)}[{at}]"


def _grows() -> CompileError:
    return CompileError(
        "JAX has no arrays that grow: a loop without a limit keeps the values of each step",
        hint="state the limit of while_loop",
    )
