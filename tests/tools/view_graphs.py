"""Graphs for the tests of pictures: small, layered, long, and with names that try to break out."""

from __future__ import annotations

import primgraph as pg
from primgraph.base.user_lines import Source
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.primitives.elementwise import mul, tanh

HOSTILE = [
    "<script>alert(1)</script>", "]]>", "<!--", "&lt;b&gt;", "&amp;", '"', "'", '\\"', "\\", "\\N",
    "a\nb", "a\r\nb", "\t", "\x00", "\x1b[31m", "x\u202ey", "\u2028", "\ud800", "\ufffe", "`${x}`",
    "end", "#quot;", "%%{init}%%", "subgraph", "</text>", "</title><script>", "<b>bold</b>", "",
    " ", "x" * 10_000, "数" * 50, "é", "ﬁ", "-->", '"] --> b9["', "];}", "{{x}}",
]  # fmt: skip


def net(layers: int, name: str = "net") -> Graph:
    """The loss of a network of equal layers, and its gradient."""
    with pg.Program(name) as program:
        h = pg.data("x", (10, 4))
        weights = []
        for i in range(layers):
            weights += [pg.data(f"w{i}", (4, 4)), pg.data(f"b{i}", (4,))]
            product = h @ weights[-2]
            h = pg.tanh(product + weights[-1])
        loss = pg.mean(pg.softmax(h, axis=1) ** 2)
        gradients = pg.grad(loss, weights)
    return program.graph([loss, *gradients])


def chain(length: int, name: str = "chain") -> Graph:
    """tanh of tanh of tanh."""
    builder = Builder(name, Source("chain.py", 1))
    with builder:
        value = builder.input(pg.spec(3), "x")
        for _ in range(length):
            value = tanh(value)
    return builder.graph([value])


def hostile() -> Graph:
    """A graph in which every name is one of `HOSTILE`: its own, those of values, files, lines."""
    values = [Value(pg.spec(2), name) for name in HOSTILE]
    equations = []
    last = values[0]
    for i, name in enumerate(HOSTILE):
        builder = Builder(source=Source(f"{name}.py", i + 1, operator=name))
        with builder:
            given = [builder.input(v.type) for v in (last, values[i])]
            eqn = builder.definition(mul(*given))
        assert eqn is not None
        made = type(eqn)(eqn.op, (last, values[i]), eqn.params, eqn.outputs, eqn.source)
        made.outputs[0].hint = f"{name}!"
        equations.append(made)
        last = made.outputs[0]
    return Graph(values, equations, [last, values[0]], "".join(HOSTILE[:28]))
