"""Branches and loops in readable code: `if`, `for` and `while`, with their bodies inline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from primgraph.codegen.ir.extents import ADD, ATOM, Text, extent_text
from primgraph.codegen.ir.schedule import Schedule, Step, schedule
from primgraph.codegen.ops.spelling.library import call
from primgraph.codegen.ops.spelling.literals import array_dtype, shape_text
from primgraph.codegen.targets.readable.page import Page, Piece, explicit
from primgraph.codegen.targets.text.flow import Loop, is_flag, write_flow
from primgraph.codegen.targets.text.identifiers import function_name, name_values
from primgraph.codegen.targets.text.layout import WIDTH, statement
from primgraph.codegen.targets.text.module import Line, Within
from primgraph.codegen.targets.text.ordering import order_by_source
from primgraph.ir.dims import TRIPS
from primgraph.ir.facts.choices import ADDS
from primgraph.ir.graph import Graph
from primgraph.ir.types import INT64, TensorType
from primgraph.primitives.control import Flow

# Writes a step to a page.
Write: TypeAlias = Callable[[Page, int, Step], None]
# An operand, or the number of a result.
Value: TypeAlias = "Piece | int"


def write_control(page: Page, i: int, step: Step, write: Write) -> None:
    """Write a branch or a loop to a page, as statements."""
    Statements(page, i, step, write).run()


class Statements:
    """Readable code for one branch or loop; values are pieces, and numbers of results.

    If it `appends`, the rows of all stacks are appended to lists.
    """

    appends = False

    def __init__(self, page: Page, i: int, step: Step, write: Write) -> None:
        self.page, self.i, self.step, self.write = page, i, step, write
        for value in step.inputs:
            if page.pieces[value].is_pending:
                page.write(value)
        pairs = zip(step.inputs, step.operands, strict=True)
        self.given: list[Value] = [explicit(page, page.pieces[v], t) for v, t in pairs]
        for value in step.inputs:
            page.use(page.pieces[value])
        page.write_source_comment(step)
        # Names of the results of branches, or of carries, and of stacks.
        self.names: list[str] = []
        self.stacks: list[str] = []
        # The index of the row of an iteration, without which stacks are lists; the number of
        # iterations so far, if it is counted.
        self.index = self.trips = ""
        self.heads: list[str] = []
        self.starts: list[int] = []

    def run(self) -> None:
        """Write the whole branch or loop."""
        step, is_branch = self.step, self.step.flow in (Flow.CHOICE, Flow.ONCE)
        if is_branch:
            self.names = name_of_values(self.page, step.outputs, "v")
        write_flow(self, step, self.given, step.outputs)
        if is_branch:
            self.results(self.names)

    def line(self, text: str, within: Within | None = None) -> None:
        self.rows.append(Line(text, self.i, within=within))

    @property
    def rows(self) -> list[Line]:
        return self.page.parts.current.body

    def open(self, head: str) -> None:
        self.line(head)
        self.starts.append(len(self.rows))

    def close(self) -> None:
        start, body = self.starts.pop(), self.rows
        if len(body) == start:
            self.line("pass")
        body[start:] = [x._replace(step=self.i, depth=x.depth + 1) for x in body[start:]]

    # Branches.

    def choose(self, index: Value) -> Sequence[int]:
        branches, text = self.step.params["branches"], code_of(index)
        if is_flag(self.step):
            self.heads = [f"if {text.code}:", "else:"]
            return (1, 0)
        code = text.operand_code(ADD)
        self.heads = [f"if {code} <= 0:"] if len(branches) > 1 else ["if True:"]
        self.heads += [f"elif {code} == {k}:" for k in range(1, len(branches) - 1)]
        self.heads += ["else:"] * (len(branches) > 1)
        return range(len(branches))

    def case(self, at: int) -> None:
        if at:
            self.close()
        self.open(self.heads[at])

    def body(self, k: int, given: Sequence[Value], made: Sequence[Value]) -> None:
        """Write the statements of a body inline: names of a checkpoint's own are bound again."""
        regions = self.step.regions
        assert regions is not None
        graph = regions.graphs[k]
        found, inner = write_body(self, graph, given)
        self.assign(inner, self.names, found, graph)

    # Loops.

    def begin(self, loop: Loop[Value]) -> Sequence[Value]:
        p, page, outputs = loop.params, self.page, self.step.outputs
        carries, is_test = len(loop.ends), loop.number is not None
        named = body_names(loop.body, p["consts"], carries)
        self.names = _write_initial_carries(self, loop.state, named)
        grows = p["limit"] is None if is_test else p["length"] is TRIPS
        values, rows = outputs[carries + is_test :], named[carries:]
        if grows or self.appends:
            self.stacks = _lists(self, values, rows)
        else:
            counted = is_test or loop.count is not None
            self.stacks = _stacks(self, values, "zeros" if counted else "empty", rows)
        # Lists have their own length.
        read = is_test and page.schedule.uses[outputs[carries]] and not self.stacks
        if is_test and (not grows or read):
            self.trips = page.names.name_from_hint("trips", "n")
            self.line(f"{self.trips} = 0")
            page.parts.bind(self.trips)
            self.index = "" if grows or self.appends else self.trips
        return [named_piece(n, t) for n, t in zip(self.names, loop.kinds, strict=True)]

    def repeat(self, loop: Loop[Value]) -> Sequence[Value]:
        p = loop.params
        if loop.number is not None:
            # The test is the head.
            self.open("")
            return []
        if p["length"] is TRIPS:
            return _repeat_by_row(self, loop)
        self.index = _counter(self.page)
        count, last = extent_text(p["length"]), extent_text(p["length"] - 1)
        if loop.count is not None:
            count = f"min({code_of(loop.count).code}, {count})"
            last = f"{count} - 1"
        order = f"range({last}, -1, -1)" if p["reverse"] else f"range({count})"
        self.open(f"for {self.index} in {order}:")
        pairs = zip(loop.scanned, loop.scanned_kinds, strict=True)
        return [_row(x, type, self.index) for x, type in pairs]

    def test(self, loop: Loop[Value], given: Sequence[Value]) -> None:
        limit, graph, body = loop.params["limit"], loop.params["test"], self.rows
        start = self.starts[-1]
        at, some = start - 1, f"{self.trips} < {limit}"
        found, inner = write_body(self, graph, given)
        within = pending_equation(inner, found[0], graph)
        truth = text_of_result(inner, found[0], graph, 0)
        if all(line.text.startswith("#") for line in body[start:]):
            # Comments on a one-line condition are moved before the loop.
            body[at:] = [*body[start:], body[at]]
            at, self.starts[-1] = len(body) - 1, len(body)
            head = f"while {'' if limit is None else f'{some} and '}{truth.code}:"
        else:
            head = "while True:" if limit is None else f"while {some}:"
            self.line(f"if not {truth.code}:", within)
            self.page.parts.current.line("break", self.i, 1)
        body[at] = body[at]._replace(text=head, within=within)

    def trip(self, loop: Loop[Value], given: Sequence[Value]) -> None:
        count, graph = len(self.names), loop.body
        found, inner = write_body(self, graph, given, count)
        for n, (stack, value) in enumerate(zip(self.stacks, found[count:], strict=True)):
            within = pending_equation(inner, value, graph)
            code = text_of_result(inner, value, graph, count + n).code
            add = ("", f"{stack}.append({code})")
            if self.index and not self.appends:
                add = (f"{stack}[{self.index}] = ", code)
            for line in statement(*add, inner.depth):
                self.line(line, within)
        self.assign(inner, self.names, found[:count], graph)
        if self.trips:
            self.line(f"{self.trips} = {self.trips} + 1")

    def end(self, loop: Loop[Value]) -> None:
        if loop.number is None:
            if loop.params["length"] is TRIPS and loop.params["reverse"]:
                for name in self.stacks:
                    self.line(f"{name}.reverse()")
            self.results([*self.names, *self.stacks])
            return
        self.results([*self.names, self.trips, *self.stacks])
        counted = self.trips or not self.stacks
        count = self.trips if counted else f"len({self.stacks[0]})"
        names = (self.trips if counted else self.stacks[0],)
        self.page.pieces[self.step.outputs[len(self.names)]] = Piece(
            Text(self.page.phrases.number(count, INT64)), (), names
        )

    # Parts of statements.

    def assign(
        self, inner: Page, names: Sequence[str], values: Sequence[int], graph: Graph
    ) -> None:
        """Assign the results of a body to their names, all at once."""
        found = [pending_equation(inner, value, graph) for value in values]
        several = len([w for w in found if w is not None]) > 1
        within = None if several else next((w for w in found if w is not None), None)
        pairs = [
            (name, text_of_result(inner, value, graph, k).code)
            for k, (name, value) in enumerate(zip(names, values, strict=True))
        ]
        pairs = [(name, text) for name, text in pairs if name != text]
        if not pairs:
            return
        targets = ", ".join(name for name, _ in pairs)
        texts = ", ".join(text for _, text in pairs)
        # The equals sign and its spaces count too.
        if len(pairs) > 1 and 4 * inner.depth + len(targets) + 3 + len(texts) > WIDTH:
            texts = f"({texts})"
        for row in statement(f"{targets} = ", texts, inner.depth):
            self.line(row, within)

    def results(self, names: Sequence[str]) -> None:
        """Make names stand for the results of the step, which may be aliases."""
        for name, value, type in zip(names, self.step.outputs, self.step.results, strict=True):
            if not name:
                continue
            self.page.pieces[value] = named_piece(name, type)
            self.page.parts.bind(name)
            self.page.shared.add(value)


def _repeat_by_row(w: Statements, loop: Loop[Value]) -> Sequence[Value]:
    """Open a loop over the rows that another loop has appended to lists."""
    rows = name_of_values(w.page, [-1] * len(loop.scanned), "row")
    ways = [code_of(x).code for x in loop.scanned]
    if loop.params["reverse"]:
        ways = [f"reversed({way})" for way in ways]
    order = ways[0] if len(ways) == 1 else f"zip({', '.join(ways)}, strict=True)"
    if not ways:
        assert loop.count is not None
        order = f"range({code_of(loop.count).code})"
    *lines, last = statement(f"for {', '.join(rows) or '_'} in ", order)
    for line in lines:
        w.line(line)
    w.open(f"{last}:")
    kinds = loop.body.input_types[len(loop.fixed) + len(loop.ends) :]
    return [named_piece(name, type) for name, type in zip(rows, kinds, strict=True)]


def write_body(
    w: Statements, graph: Graph, given: Sequence[Value], carries: int = 0
) -> tuple[list[int], Page]:
    """Write the computation of a body except its results, which are pending on the page.

    The first `carries` results are the next values of variables that have their names.
    """
    steps, page = order_by_source(schedule(graph)), w.page
    inner = _inner_page(page, steps, w.step)
    for value in steps.outputs[:carries]:
        if value in inner.called and value >= steps.inputs:
            inner.called[value] += "_new"
    for number, piece in enumerate(given):
        assert isinstance(piece, Piece)
        inner.pieces[number] = piece
    rows = page.parts.current.body
    start = len(rows)
    for number, step in enumerate(steps.steps):
        w.write(inner, number, step)
    for k, row in enumerate(rows[start:], start):
        own = row.within or ((graph, steps.steps[row.step].eqn) if row.step >= 0 else None)
        rows[k] = row._replace(step=w.i, within=own)
    page.said, page.commented = None, None
    return list(steps.outputs), inner


def _inner_page(page: Page, steps: Schedule, step: Step) -> Page:
    """Return the page of a body of a step, which writes into the same function."""
    inner = Page(steps, page.file if page.standalone else None, (), [""] * len(steps.outputs))
    inner.file, inner.names = page.file, page.names
    # Results are assigned at the end: none needs a name before.
    inner.outputs = frozenset()
    inner.opening, inner.table, inner.users = page.opening, page.table, page.users
    inner.helpers, inner.parts, inner.said = page.helpers, page.parts, page.said
    inner.counters, inner.level = page.counters, page.level + 1
    # All bodies except a checkpoint's are in a block of their own.
    inner.depth = page.depth + (step.flow is not Flow.ONCE)
    return inner


def _counter(page: Page) -> str:
    """Return the counter of a loop; loops beside each other have the same."""
    while len(page.counters) <= page.level:
        page.counters.append(page.names.name_from_hint("k", "k"))
    return page.counters[page.level]


def body_names(graph: Graph, consts: int, carries: int) -> list[str]:
    """Return names for the results of a body: the next carries, and rows of stacks.

    They are what the user calls the values; a row that is a carry before its assignment has
    the name of that. A carry that is only added to a cotangent is its part from the iteration that
    follows in the order of the program.
    """
    inner = order_by_source(schedule(graph))
    called = name_values(inner, (), [""] * len(graph.outputs))
    made = {v: s for s in inner.steps for v in s.outputs}
    names = [
        called.get(v, "") or (function_name(made[v], called) if v in made else "")
        for v in inner.outputs
    ]
    for k, value in enumerate(range(consts, consts + carries)):
        readers = [s for s in inner.steps if value in s.inputs]
        if len(readers) == 1 and readers[0].op.fact(ADDS) and readers[0].is_derived:
            whole = called.get(readers[0].outputs[0], "")
            names[k] = names[k] or (f"{whole}_next" if whole.endswith("_bar") else "")
    before = {consts + k: f"{name}_before" for k, name in enumerate(names[:carries]) if name}
    return [before.get(v, name) for v, name in zip(inner.outputs, names, strict=True)]


def pending_equation(inner: Page, value: int, graph: Graph) -> Within | None:
    """Return the equation of a pending expression for a body result, if any."""
    piece = inner.pieces[value]
    return (graph, inner.schedule.steps[piece.step].eqn) if piece.is_pending else None


def text_of_result(inner: Page, value: int, graph: Graph, k: int) -> Text:
    """Return the expression of a body result, in full shape."""
    piece = inner.pieces[value]
    if piece.is_pending:
        inner.write_source_comment(inner.schedule.steps[piece.step])
        inner.waiting.pop(value, None)
        if graph.outputs.count(graph.outputs[k]) > 1:
            inner.write(value)
            piece = inner.pieces[value]
    piece = explicit(inner, piece, graph.outputs[k].type)
    inner.use(piece)
    return piece.text


def _write_initial_carries(
    w: Statements, state: Sequence[Value], named: Sequence[str]
) -> list[str]:
    """Return names for the carries, and write their initial values.

    `named` are names of the values that the body computes for them.
    """
    names = name_of_values(w.page, w.step.outputs[: len(state)], "v", named)
    for name, piece in zip(names, state, strict=True):
        w.page.parts.bind(name)
        for row in statement(f"{name} = ", code_of(piece).code, w.page.depth):
            w.line(row)
    return names


def _lists(w: Statements, values: Sequence[int], rows: Sequence[str] = ()) -> list[str]:
    """Return names for stacks that rows, which may have names, are appended to."""
    names = name_of_values(w.page, values, "stack", [f"{row}_stack" if row else "" for row in rows])
    for name in names:
        w.page.parts.bind(name)
        w.line(f"{name} = []")
    return names


def _stacks(w: Statements, values: Sequence[int], maker: str, rows: Sequence[str]) -> list[str]:
    """Return names for stacks of a known number of rows, which may have names."""
    names = name_of_values(w.page, values, "stack", [f"{row}_stack" if row else "" for row in rows])
    for name, value in zip(names, values, strict=True):
        type = w.page.schedule.types[value]
        made = call(maker, f"{shape_text(type.shape)}{array_dtype(type.dtype)}")
        w.page.parts.bind(name)
        for row in statement(f"{name} = ", made, w.page.depth):
            w.line(row)
    return names


def code_of(value: Value) -> Text:
    """Return the expression of an operand."""
    assert isinstance(value, Piece)
    return value.text


def _row(x: Value, type: TensorType, k: str) -> Piece:
    """Return a row of a scanned array."""
    assert isinstance(x, Piece)
    return Piece(Text(f"{x.text.operand_code(ATOM)}[{k}]"), type.shape[1:], (*x.names, k))


def named_piece(name: str, type: TensorType) -> Piece:
    return Piece(Text(name), type.shape, (name,))


def name_of_values(
    page: Page, values: Sequence[int], letter: str, otherwise: Sequence[str] = ()
) -> list[str]:
    """Return names for values: what the user calls them, or else the names in `otherwise`."""
    spare = [*otherwise, *[""] * len(values)]
    hints = [page.called.get(v, "") or other for v, other in zip(values, spare, strict=False)]
    return [page.names.name_from_hint(hint, letter) for hint in hints]
