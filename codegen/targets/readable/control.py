"""Branches and loops in readable code: `if`, `for` and `while`, with their bodies inline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, final

from primgraph.codegen.ir.expressions import ADD, ATOM, Text
from primgraph.codegen.ir.extents import extent_text
from primgraph.codegen.ir.schedule import Schedule, Step, schedule
from primgraph.codegen.ops.spelling.literals import array_dtype, shape_text
from primgraph.codegen.targets.readable.page import Page, Piece
from primgraph.codegen.targets.text.identifiers import function_name, name_values
from primgraph.codegen.targets.text.layout import WIDTH, statement
from primgraph.codegen.targets.text.module import Line, Within
from primgraph.codegen.targets.text.ordering import order_by_source
from primgraph.ir.dims import TRIPS
from primgraph.ir.graph import Graph
from primgraph.ir.types import BOOL, TensorType
from primgraph.primitives.control import Flow, split_operands

# Writes a step to a page.
Write: TypeAlias = Callable[[Page, int, Step], None]


def write_control(page: Page, i: int, step: Step, write: Write) -> None:
    """Write a branch or a loop to a page, as statements."""
    writer = _Writer(page, i, step, write)
    write_flow = {
        Flow.CHOICE: writer.branches,
        Flow.ONCE: writer.block,
        Flow.ROWS: writer.scan,
        Flow.TEST: writer.loop,
    }
    flow = step.flow
    assert flow is not None
    write_flow[flow]()


@final
class _Writer:
    """Generator of the statements of one step."""

    def __init__(self, page: Page, i: int, step: Step, write: Write) -> None:
        self.page, self.i, self.step, self.write = page, i, step, write
        for value in step.inputs:
            if page.pieces[value].is_pending:
                page.write(value)
        pairs = zip(step.inputs, step.operands, strict=True)
        self.given = [page.explicit(page.pieces[v], t) for v, t in pairs]
        for value in step.inputs:
            page.use(page.pieces[value])
        page.write_source_comment(step)

    # Statements.

    def branches(self) -> None:
        (index, *operands), branches = self.given, self.step.params["branches"]
        if self.step.operands[0].dtype == BOOL:
            order = [(f"if {index.text.code}:", branches[1]), ("else:", branches[0])]
        else:
            code = index.text.operand_code(ADD)
            heads = [f"if {code} <= 0:"] if len(branches) > 1 else ["if True:"]
            heads += [f"elif {code} == {k}:" for k in range(1, len(branches) - 1)]
            heads += ["else:"] * (len(branches) > 1)
            order = [*zip(heads, branches, strict=True)]
        names = _name_values(self.page, self.step.outputs, "v")
        for head, branch in order:
            self.line(head)
            start = len(self.page.parts.current.body)
            found, inner = self.body(branch, operands)
            self.assign(inner, names, found, branch)
            self.end(start)
        self.results(names)

    def block(self) -> None:
        """Write the statements of a checkpoint inline: names of its own are bound again."""
        body = self.step.params["body"]
        names = _name_values(self.page, self.step.outputs, "v")
        found, inner = self.body(body, self.given)
        self.assign(inner, names, found, body)
        self.results(names)

    def scan(self) -> None:
        p, carries = self.step.params, self.step.params["carries"]
        if p["length"] is TRIPS:
            _write_row_loop(self)
            return
        counted = p["counted"]
        fixed, state, xs = split_operands(self.given[counted:], p["consts"], carries)
        named = _body_names(p["body"], p["consts"], carries)
        names = _write_initial_carries(self, state, named)
        stacked = named[carries:]
        stacks = _stacks(
            self, self.step.outputs[carries:], "zeros" if counted else "empty", stacked
        )
        k = _counter(self.page)
        count = extent_text(p["length"])
        if counted:
            count = f"min({self.given[0].text.code}, {count})"
        order = _order(p, count)
        self.line(f"for {k} in {order}:")
        start = len(self.page.parts.current.body)
        types = self.step.operands[len(self.step.operands) - len(xs) :]
        rows = [_row(x, type, k) for x, type in zip(xs, types, strict=True)]
        pieces = [_piece(n, t) for n, t in zip(names, self.step.results, strict=False)]
        self.turn(p["body"], [*fixed, *pieces, *rows], names, stacks, k)
        self.end(start)
        self.results([*names, *stacks])

    def loop(self) -> None:
        p = self.step.params
        fixed, state, _ = split_operands(self.given, p["consts"], len(self.given) - p["consts"])
        carries = len(state)
        named = _body_names(p["body"], p["consts"], carries)
        names = _write_initial_carries(self, state, named)
        limited, rows = p["limit"] is not None, named[carries:]
        others = self.step.outputs[carries + 1 :]
        stacks = _stacks(self, others, "zeros", rows) if limited else _lists(self, others, rows)
        # Lists have their own length.
        trips = ""
        if limited or (self.page.schedule.uses[self.step.outputs[carries]] and not stacks):
            trips = self.page.names.name_from_hint("trips", "n")
            self.line(f"{trips} = 0")
            self.page.parts.bind(trips)
        pieces = [_piece(n, t) for n, t in zip(names, self.step.results, strict=False)]
        some = f"{trips} < {p['limit']}"
        at = len(self.page.parts.current.body)
        self.line("")
        start = len(self.page.parts.current.body)
        found, inner = self.body(p["test"], [*fixed, *pieces])
        within = _pending_equation(inner, found[0], p["test"])
        truth = _text(inner, found[0], p["test"], 0)
        body = self.page.parts.current.body
        if all(line.text.startswith("#") for line in body[start:]):
            # Comments on a one-line condition are moved before the loop.
            body[at:] = [*body[start:], body[at]]
            at, start = len(body) - 1, len(body)
            head = f"while {f'{some} and ' if limited else ''}{truth.code}:"
        else:
            head = f"while {some}:" if limited else "while True:"
            self.line(f"if not {truth.code}:", within)
            self.page.parts.current.line("break", self.i, 1)
        body[at] = body[at]._replace(text=head, within=within)
        self.turn(p["body"], [*fixed, *pieces], names, stacks, trips if limited else "")
        if trips:
            self.line(f"{trips} = {trips} + 1")
        self.end(start)
        self.results([*names, trips, *stacks])
        count, name = (trips, trips) if trips or not stacks else (f"len({stacks[0]})", stacks[0])
        number = Piece(Text(f"np.int64({count})"), (), (name,))
        self.page.pieces[self.step.outputs[carries]] = number

    def turn(
        self,
        graph: Graph,
        given: Sequence[Piece],
        names: Sequence[str],
        stacks: Sequence[str],
        k: str,
    ) -> None:
        """Write an iteration: rows of stacks, and then all carries at once.

        Without an iteration index `k`, stacks are lists to which rows are appended.
        """
        count = len(names)
        found, inner = self.body(graph, given, count)
        for n, (stack, value) in enumerate(zip(stacks, found[count:], strict=True)):
            within = _pending_equation(inner, value, graph)
            code = _text(inner, value, graph, count + n).code
            head, rest = (f"{stack}[{k}] = ", code) if k else ("", f"{stack}.append({code})")
            for line in statement(head, rest, inner.depth):
                self.line(line, within)
        self.assign(inner, names, found[:count], graph)

    # Parts of statements.

    def line(self, text: str, within: Within | None = None) -> None:
        self.page.parts.current.body.append(Line(text, self.i, within=within))

    def end(self, start: int) -> None:
        body = self.page.parts.current.body
        if len(body) == start:
            self.line("pass")
        body[start:] = [x._replace(step=self.i, depth=x.depth + 1) for x in body[start:]]

    def body(
        self, graph: Graph, given: Sequence[Piece], carries: int = 0
    ) -> tuple[list[int], Page]:
        """Write the computation of a body except its results, which are pending on the page.

        The first `carries` results are the next values of variables that have their names.
        """
        steps, page = order_by_source(schedule(graph)), self.page
        inner = _inner_page(page, steps, self.step)
        for value in steps.outputs[:carries]:
            if value in inner.called and value >= steps.inputs:
                inner.called[value] += "_new"
        for number, piece in enumerate(given):
            inner.pieces[number] = piece
        rows = page.parts.current.body
        start = len(rows)
        for number, step in enumerate(steps.steps):
            self.write(inner, number, step)
        for k, row in enumerate(rows[start:], start):
            own = row.within or ((graph, steps.steps[row.step].eqn) if row.step >= 0 else None)
            rows[k] = row._replace(step=self.i, within=own)
        page.said, page.commented = None, None
        return list(steps.outputs), inner

    def assign(
        self, inner: Page, names: Sequence[str], values: Sequence[int], graph: Graph
    ) -> None:
        """Assign the results of a body to their names, all at once."""
        found = [_pending_equation(inner, value, graph) for value in values]
        several = len([w for w in found if w is not None]) > 1
        within = None if several else next((w for w in found if w is not None), None)
        pairs = [
            (name, _text(inner, value, graph, k).code)
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
            self.page.pieces[value] = _piece(name, type)
            self.page.parts.bind(name)
            self.page.shared.add(value)


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


def _order(p: Mapping[str, Any], count: str) -> str:
    """Return the range of the counter of a loop that runs `count` times."""
    if not p["reverse"]:
        return f"range({count})"
    last = f"{count} - 1" if p["counted"] else extent_text(p["length"] - 1)
    return f"range({last}, -1, -1)"


def _counter(page: Page) -> str:
    """Return the counter of a loop; loops beside each other have the same."""
    while len(page.counters) <= page.level:
        page.counters.append(page.names.name_from_hint("k", "k"))
    return page.counters[page.level]


def _body_names(graph: Graph, consts: int, carries: int) -> list[str]:
    """Return names for the results of a body: the next carries, and rows of stacks.

    They are what the user calls the values; a row that is a carry before its assignment has
    the name of that.
    """
    inner = order_by_source(schedule(graph))
    called = name_values(inner, (), [""] * len(graph.outputs))
    made = {v: s for s in inner.steps for v in s.outputs}
    names = [
        called.get(v, "") or (function_name(made[v], called) if v in made else "")
        for v in inner.outputs
    ]
    before = {consts + k: f"{name}_before" for k, name in enumerate(names[:carries]) if name}
    return [before.get(v, name) for v, name in zip(inner.outputs, names, strict=True)]


def _pending_equation(inner: Page, value: int, graph: Graph) -> Within | None:
    """Return the equation of a pending expression for a body result, if any."""
    piece = inner.pieces[value]
    return (graph, inner.schedule.steps[piece.step].eqn) if piece.is_pending else None


def _text(inner: Page, value: int, graph: Graph, k: int) -> Text:
    """Return the expression of a body result, in full shape."""
    piece = inner.pieces[value]
    if piece.is_pending:
        inner.write_source_comment(inner.schedule.steps[piece.step])
        inner.waiting.pop(value, None)
        if graph.outputs.count(graph.outputs[k]) > 1:
            inner.write(value)
            piece = inner.pieces[value]
    piece = inner.explicit(piece, graph.outputs[k].type)
    inner.use(piece)
    return piece.text


def _write_initial_carries(w: _Writer, state: Sequence[Piece], named: Sequence[str]) -> list[str]:
    """Return names for the carries, and write their initial values.

    `named` are names of the values that the body computes for them.
    """
    names = _name_values(w.page, w.step.outputs[: len(state)], "v", named)
    for name, piece in zip(names, state, strict=True):
        w.page.parts.bind(name)
        for row in statement(f"{name} = ", piece.text.code, w.page.depth):
            w.line(row)
    return names


def _lists(w: _Writer, values: Sequence[int], rows: Sequence[str] = ()) -> list[str]:
    """Return names for stacks that rows, which may have names, are appended to."""
    names = _name_values(w.page, values, "stack", [f"{row}_stack" if row else "" for row in rows])
    for name in names:
        w.page.parts.bind(name)
        w.line(f"{name} = []")
    return names


def _stacks(w: _Writer, values: Sequence[int], maker: str, rows: Sequence[str]) -> list[str]:
    """Return names for stacks of a known number of rows, which may have names."""
    names = _name_values(w.page, values, "stack", [f"{row}_stack" if row else "" for row in rows])
    for name, value in zip(names, values, strict=True):
        type = w.page.schedule.types[value]
        made = f"np.{maker}({shape_text(type.shape)}{array_dtype(type.dtype)})"
        w.page.parts.bind(name)
        for row in statement(f"{name} = ", made, w.page.depth):
            w.line(row)
    return names


def _write_row_loop(w: _Writer) -> None:
    """Write a loop over the rows that another loop has appended to lists."""
    p, carries = w.step.params, w.step.params["carries"]
    fixed, state, xs = split_operands(w.given[1:], p["consts"], carries)
    named = _body_names(p["body"], p["consts"], carries)
    names = _write_initial_carries(w, state, named)
    lists = _lists(w, w.step.outputs[carries:], named[carries:])
    rows = _name_values(w.page, [-1] * len(xs), "row")
    ways = [x.text.code for x in xs]
    if p["reverse"]:
        ways = [f"reversed({way})" for way in ways]
    order = ways[0] if len(ways) == 1 else f"zip({', '.join(ways)}, strict=True)"
    if not ways:
        order = f"range({w.given[0].text.code})"
    *lines, last = statement(f"for {', '.join(rows) or '_'} in ", order)
    for line in (*lines, f"{last}:"):
        w.line(line)
    start = len(w.page.parts.current.body)
    types = p["body"].input_types[p["consts"] + carries :]
    pieces = [_piece(n, t) for n, t in zip(names, w.step.results, strict=False)]
    pieces += [_piece(r, t) for r, t in zip(rows, types, strict=True)]
    w.turn(p["body"], [*fixed, *pieces], names, lists, "")
    w.end(start)
    if p["reverse"]:
        for name in lists:
            w.line(f"{name}.reverse()")
    w.results([*names, *lists])


def _row(x: Piece, type: TensorType, k: str) -> Piece:
    """Return a row of a scanned array."""
    return Piece(Text(f"{x.text.operand_code(ATOM)}[{k}]"), type.shape[1:], (*x.names, k))


def _piece(name: str, type: TensorType) -> Piece:
    return Piece(Text(name), type.shape, (name,))


def _name_values(
    page: Page, values: Sequence[int], letter: str, otherwise: Sequence[str] = ()
) -> list[str]:
    """Return names for values: what the user calls them, or else the names in `otherwise`."""
    spare = [*otherwise, *[""] * len(values)]
    hints = [page.called.get(v, "") or other for v, other in zip(values, spare, strict=False)]
    return [page.names.name_from_hint(hint, letter) for hint in hints]
