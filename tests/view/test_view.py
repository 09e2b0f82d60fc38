"""Pictures as data: boxes, parts, groups, patterns, folding, and the layout."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from random_programs import random_program
from view_graphs import chain, hostile, net

import primgraph as pg
from primgraph.errors import ArgumentError
from primgraph.view.folding import (
    LIMIT,
    fold_groups,
    groups_to_fold,
    nested_groups,
    op_of,
    open_groups,
    tree_of,
)
from primgraph.view.layouts.lanes import ladder
from primgraph.view.layouts.layout import layout
from primgraph.view.layouts.node_places import BOX_GAP
from primgraph.view.patterns import repeats
from primgraph.view.picture import picture_of, picture_with_boxes
from primgraph.view.primitive_twins import drop_twins
from primgraph.view.scene import scene_of

SEEDS = range(12)


def parts(graph):
    counted = Counter(b.part for b in picture_of(graph).boxes)
    return {p: counted[p] for p in ("forward", "tangent", "cotangent")}


# Where an equation comes from.


def test_forward_tangent_and_cotangent_are_told_apart_at_any_order():
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", (3, 3))
        y = pg.sum(pg.tanh(w @ x))
        first = pg.grad(y, x)
        along = pg.forward_grad(pg.tanh(w @ (x * x)), x)
        mixed = pg.grad(pg.sum(along), w)
    assert parts(program.graph([y])) == {"forward": 5, "tangent": 0, "cotangent": 0}
    once = parts(program.graph([y, first]))
    assert once["forward"] == 5
    assert once["tangent"] == 0 < once["cotangent"]
    # By what else a gradient varies with, it is gone through in reverse; by what it is the gradient
    # by, in forward mode, as a Hessian is symmetric.
    for at, mode in ((1, "cotangent"), (0, "tangent")):
        with pg.Program() as other:
            given = pg.data("x", (3,)), pg.data("w", (3, 3))
            y = pg.sum(pg.tanh(given[1] @ given[0]))
            first = pg.grad(y, given[0])
            second = pg.grad(pg.sum(first * first), given[at])
        twice = parts(other.graph([y, first, second]))
        assert twice["forward"] == 5
        assert (twice["tangent"] > 0) == (mode == "tangent")
        assert twice["cotangent"] > once["cotangent"]
        assert mode == "tangent" or twice["cotangent"] > once["cotangent"] + 5
    assert (
        parts(program.graph([along]))["cotangent"] == 0 < parts(program.graph([along]))["tangent"]
    )
    both = parts(program.graph([mixed]))
    assert 0 not in both.values()


def test_the_marks_of_a_source_change_neither_text_nor_printed_form_and_are_kept(tmp_path):
    graph = net(2)
    lowered = pg.transforms.lower(graph)
    operators = {e.source.operator for e in lowered.body} - {""}
    assert operators == {"softmax", "mean"}
    for eqn in lowered.body:
        assert str(eqn.source.place) == str(eqn.source)
        assert eqn.source.operator not in str(eqn.source) or not eqn.source.operator
    assert [e.source for e in pickle.loads(pickle.dumps(lowered)).body] == [
        e.source for e in lowered.body
    ]
    derived = lowered.body[-1].source.mark_derivative("tangent")
    assert str(derived).startswith("in the gradient of ")
    assert derived.operator == lowered.body[-1].source.operator
    with pg.Program() as program:
        x = pg.data("x", (3,))
        pg.grad(pg.sum(pg.softmax(x) ** 2), x)
    pg.save(program, tmp_path / "p.pgz")
    back = pg.load(tmp_path / "p.pgz")
    kept = [(e.source.role, e.source.operator) for e in program.builder.body]
    assert [(e.source.role, e.source.operator) for e in back.builder.body] == kept
    assert {"cotangent", ""} <= {role for role, _ in kept}
    assert {"softmax", ""} <= {operator for _, operator in kept}


def test_marks_do_not_disturb_the_readable_source():
    source = pg.compile(net(2)).source
    comments = [line.strip() for line in source.splitlines() if line.strip().startswith("#")]
    assert all(a != b for a, b in pairwise(comments))
    assert not any("cotangent" in c for c in comments)


class Block(pg.nn.Layer):
    """Two linear layers and the same activation after each."""

    def __init__(self):
        super().__init__()
        self.first, self.second = pg.nn.Linear(4, 4), pg.nn.Linear(4, 4)
        self.act = pg.nn.Tanh()

    def forward(self, x):
        return self.act(self.second(self.act(self.first(x))))


def training(optimizer=None):
    with pg.Program("step") as program:
        x, t = pg.data("x", (8, 4)), pg.data("t", (8, 4))
        loss = pg.mean((pg.nn.Sequential(Block(), pg.nn.LayerNorm(4))(x) - t) ** 2)
        (optimizer or pg.optimizer.Adam(1e-3)).minimize(loss)
    return program


def test_lines_know_the_layer_that_they_were_written_in_and_which_call_of_it():
    with pg.Program() as program:
        x = pg.data("x", (8, 4))
        block = Block()
        y = block(x)
        block(y)
        pg.sin(y)
    scopes = [e.source.scope for e in program.operators()]
    assert scopes == [
        "block.first", "block.act", "block.second", "block.act (2)",
        "block (2).first", "block (2).act", "block (2).second", "block (2).act (2)", "",
    ]  # fmt: skip


def test_a_saved_program_is_drawn_as_it_was(tmp_path):
    program = training()
    pg.save(program, tmp_path / "p.pgz")
    loaded, drawn = (picture_of(p) for p in (pg.load(tmp_path / "p.pgz"), program))
    assert [(g.label, g.members) for g in loaded.groupings["layer"]] == [
        (g.label, g.members) for g in drawn.groupings["layer"]
    ]
    assert [(b.label, b.part, b.order) for b in loaded.boxes] == [
        (b.label, b.part, b.order) for b in drawn.boxes
    ]


def test_a_layer_that_raises_is_left():
    class Broken(pg.nn.Layer):
        def forward(self, x):
            raise ValueError("broken")

    with pg.Program() as program:
        x = pg.data("x", (3,))
        with pytest.raises(ValueError, match="broken"):
            Broken()(x)
        pg.sin(x)
    assert [e.source.scope for e in program.operators()] == [""]


def test_derivatives_know_their_layer_and_their_order():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.sum(pg.tanh(x) ** 3)
        first = pg.grad(y, x)
        second = pg.grad(pg.sum(first), x)
        pg.forward_grad(second, x)
        w = pg.data("w", (3,))
        crossed = pg.grad(pg.sum(pg.grad(pg.sum(pg.tanh(w * x)), x)), w)
    graph = program.graph
    orders = [
        {b.order for b in picture_of(g).boxes if b.part == part}
        for g in (program, graph([crossed]), graph([second]))
        for part in ("cotangent", "tangent")
    ]
    assert orders == [{1, 2}, {2, 3}, {1, 2}, set(), {1}, {2}]
    for value in (first, second, crossed):
        (told,) = [b.label for b in picture_of(graph([value])).boxes if b.part == "output"]
        assert told.startswith("gradient")
    scopes = {e.source.scope for e in training().graph().body if e.source.role == "cotangent"}
    assert {"sequential.0.first", "sequential.0.act (2)", "sequential.1"} <= scopes


# Boxes.


@pytest.mark.parametrize(
    "optimizer",
    [pg.optimizer.SGD(0.1), pg.optimizer.Momentum(0.1), pg.optimizer.Adam(1e-3, weight_decay=0.1)],
    ids=lambda o: type(o).__name__,
)
def test_what_an_optimizer_does_is_a_part_of_its_own(optimizer):
    program = training(optimizer)
    picture = picture_of(program)
    counted = Counter(b.part for b in picture.boxes)
    written = sum(e.source.line > 0 and e.source.role == "update" for e in program.operators())
    assert 0 < counted["update"] <= written
    lines = {dict(b.details)["line"] for b in picture.boxes if b.part == "update"}
    assert lines == {"(optimizer or pg.optimizer.Adam(1e-3)).minimize(loss)"}
    assert not any("minimize" in str(b.details) for b in picture.boxes if b.part == "forward")


def test_updates_that_the_user_writes_are_updates_too():
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.create_parameter((3,), name="w")
        loss = pg.sum(pg.tanh(x * w))
        program.update(w, w - 0.1 * pg.grad(loss, w))
    told = {b.label: b.part for b in picture_of(program).boxes}
    assert told["sub"] == told["mul 0.1"] == "update"
    assert told["tanh"] == told["reduce_sum"] == "forward"
    assert told["new w"] == told["loss"] == "output"


def test_nothing_is_drawn_twice():
    """As an operator, and as what derivatives made of it."""
    picture = picture_of(training())
    forward = Counter(op_of(b) for b in picture.boxes if b.part == "forward")
    assert forward["linear"] == 2
    assert forward["tanh"] == 2
    assert forward["mean"] == 1
    assert forward["integer_pow"] == 1
    assert forward["matmul"] == forward["layer_norm"] == 0, "it is drawn as what derivatives use"
    operators = {dict(b.details).get("operator") for b in picture.boxes if b.part == "forward"}
    assert operators == {None, "layer_norm"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_graph_without_twins_computes_the_same(seed):
    graph = random_program(seed).graph
    merged, moved = drop_twins(graph)
    assert len(merged) <= max(len(pg.transforms.lower(graph)), len(graph))
    assert [moved.get(v, v) for v in graph.outputs] == list(merged.outputs)
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(0.5, 1.5, v.shape).astype(v.dtype) for v in graph.inputs]
    for found, wanted in zip(
        pg.interpret(pg.transforms.lower(merged), *arrays),
        pg.interpret(pg.transforms.lower(graph), *arrays),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, equal_nan=True)


def test_results_are_called_what_they_are():
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.create_parameter((3,), name="w")
        named = pg.tanh(x * w)
        named.name = "activation"
        loss = pg.sum(named)
        pg.grad(loss, [x, w])
        program.update(w, w * 0.5)
    labels = [b.label for b in picture_of(program).boxes if b.part == "output"]
    assert labels == ["loss", "gradient by w", "gradient by x", "new w"]
    picture = picture_of(program.graph([program.variable("activation")]))
    assert picture.boxes[-1].label == "activation"
    with pg.Program() as program:
        x = pg.data("x", (3,))
        pg.grad(pg.grad(pg.tanh(x), x), x)
    labels = [b.label for b in picture_of(program).boxes if b.part == "output"]
    assert labels == ["gradient by x", "gradient by x, order 2"]


def test_a_training_step_is_grouped_by_part_and_layer():
    picture = picture_of(training())
    root = tree_of(picture, "layer")
    outer = {(n.title.partition(" (")[0], n.part) for n in root.children if n.children}
    layers = {"sequential.0.first", "sequential.0.second", "sequential.1"}
    for part in ("cotangent", "update"):
        assert {name for name, p in outer if p == part} >= layers
    forward = {name for name, p in outer if p == "forward"}
    assert forward == layers
    assert ("adam", "update") in outer
    assert len(root.children) < 30
    for node in nested_groups(root):
        states = [picture.boxes[i].label for i in node.boxes if picture.boxes[i].part == "input"]
        if node.label == "sequential.0.first" and node.part == "forward":
            assert states == ["sequential.0.first.weight", "sequential.0.first.bias"]
    shown = {n.label for n in root.children if not n.children}
    assert {"x", "t", "loss"} <= shown
    assert not any("weight" in label for label in shown)


def test_layers_are_told_from_the_names_of_parameters_too():
    with pg.Program() as program:
        h = pg.data("x", (8, 16))
        for i in range(30):
            w = pg.create_parameter((16, 16), name=f"layers.{i}.weight")
            h = pg.tanh(h @ w) + h
        pg.optimizer.SGD(0.1).minimize(pg.mean(h**2))
    groups = picture_of(program).groupings["layer"]
    labels = Counter(g.label for g in groups)
    assert labels["layers"] == 3
    assert labels["layers.7"] == 3


def test_a_picture_has_a_box_for_each_value_and_an_arrow_for_each_operand():
    graph = pg.trace(lambda x, y: (1.0 - x * x, y * 2.0, x), pg.spec(3), pg.spec(()))
    picture = picture_of(graph)
    assert [(b.label, b.note, b.part) for b in picture.boxes] == [
        ("x", "f64[3]", "input"),
        ("y", "f64[]", "input"),
        ("mul", "f64[3]", "forward"),
        ("sub(1.0, ·)", "f64[3]", "forward"),
        ("mul 2.0", "f64[]", "forward"),
        ("output 0", "f64[3]", "output"),
        ("output 1", "f64[]", "output"),
        ("output 2", "f64[3]", "output"),
    ]
    assert [(a.tail, a.head, a.label) for a in picture.arrows] == [
        (0, 2, "f64[3]"), (0, 2, "f64[3]"), (2, 3, "f64[3]"), (1, 4, "f64[]"),
        (3, 5, "f64[3]"), (4, 6, "f64[]"), (0, 7, "f64[3]"),
    ]  # fmt: skip
    details = dict(picture.boxes[3].details)
    assert details["equation"] == "%2: f64[3] = sub(1.0, %0)"
    assert details["source"].startswith("test_view.py:")
    assert "1.0 - x * x" in details["line"]


def test_what_is_given_out_is_never_written_into_a_box():
    graph = pg.trace(lambda x: (pg.full((2,), 3.0), pg.full((2,), 3.0) * x), pg.spec(2))
    picture = picture_of(graph)
    assert Counter(b.part for b in picture.boxes)["constant"] == 1
    assert [b.label for b in picture.boxes if b.part == "constant"] == ["const 3.0"]


def test_large_constants_are_not_spelled_out():
    graph = pg.trace(lambda x: x + np.arange(1000.0), pg.spec(1000))
    text = repr(picture_of(graph).data())
    assert "f64[1000]{…}" in text
    assert len(text) < 4000


@pytest.mark.parametrize("seed", SEEDS)
def test_pictures_of_random_programs_are_whole(seed):
    graph = random_program(seed).graph
    picture, box_of = picture_with_boxes(graph)
    assert [b.id for b in picture.boxes] == list(range(len(picture.boxes)))
    assert all(a.tail < a.head for a in picture.arrows)
    inlined = [i for i, b in enumerate(box_of) if b < 0]
    bodies = {b for g in picture.groupings["layer"] if g.kind == "body" for b in g.members}
    bodies.difference_update(box_of)
    assert bool(bodies) <= graph.has_bodies
    assert len(picture.boxes) - len(bodies) == (
        len(graph.inputs) + len(graph.body) - len(inlined) + len(graph.outputs)
    )
    assert all(graph.body[i].op.name == "full" for i in inlined)
    hidden = {v for i in inlined for v in graph.body[i].outputs}
    operands = sum(v not in hidden for e in graph.body for v in e.inputs)
    assert len(picture.arrows) == operands + len(graph.outputs) or graph.has_bodies
    for i, box in enumerate(box_of):
        if box >= 0:
            assert graph.body[i].op.name in dict(picture.boxes[box].details)["equation"]


def test_branches_and_loops_are_groups_with_what_is_in_them():
    def searched(w, h, xs):
        def step(h, x):
            return pg.tanh(h * w + x), None

        def rises(v):
            return v * 2.0

        last = pg.scan(step, h, xs)[0]
        last = pg.cond(pg.sum(last) > 0, lambda: pg.sin(last) * w, lambda: last - 1.0)
        return pg.while_loop(lambda v: pg.sum(v) < 9.0, rises, last, max_trips=5)

    graph = pg.trace(searched, pg.spec(3), pg.spec(3), pg.spec(("T", 3)))
    picture, box_of = picture_with_boxes(graph)
    assert all(a.tail < a.head for a in picture.arrows)
    titled = {g.label: g for g in picture.groupings["layer"]}
    assert {"scan step × T", "while_loop rises ≤ 5"} <= set(titled)
    trip = titled["scan step × T"]
    labels = [picture.boxes[i].label for i in trip.members]
    assert labels == ["h", "mul", "add", "tanh", "scan"]
    loop = next(b for e, b in zip(graph.body, box_of, strict=True) if e.op.name == "scan")
    assert trip.members[-1] == loop
    # What stays the same in all trips and the rows come from outside, a carry from what it was.
    boxes = {b.label: b.id for b in picture.boxes[:3]}
    carried, mul, add = trip.members[:3]
    pairs = {(a.tail, a.head): a.label for a in picture.arrows}
    assert pairs[boxes["h"], carried] == "f64[3]"
    assert (carried, mul) in pairs
    assert (boxes["w"], mul) in pairs
    assert pairs[boxes["xs"], add] == "f64[3]"
    for found in (graph.to_svg(), graph.to_html(), graph.to_dot(), graph.to_mermaid()):
        assert "tanh" in found
    shut = fold_groups(picture, [trip])
    assert [b.label for b in shut.boxes if b.label.startswith("scan step")] == ["scan step × T (5)"]
    assert len(shut.boxes) == len(picture.boxes) - 4


def test_times_become_shares_and_ranges_details():
    graph = pg.trace(lambda x: pg.tanh(x) * x, pg.spec(3))
    picture = picture_of(graph, times=[3e-6, 1e-6], ranges=[(0.0, 0.5), (-1.0, 1.0)])
    assert [b.heat for b in picture.boxes] == [None, 0.75, 0.25, None]
    assert dict(picture.boxes[1].details)["time"] == "3 µs"
    assert dict(picture.boxes[2].details)["range"] == "from -1 to 1"
    nan = float("nan")
    picture = picture_of(graph, ranges=[(0.0, 1.0 / 3, 2), (nan, nan, 3)])
    told = [dict(box.details)["range"] for box in picture.boxes[1:3]]
    assert told == ["from 0 to 0.333333, 2 NaN", "no number, 3 NaN"]
    assert [b.heat for b in picture_of(graph, times=[0.0, 0.0]).boxes][1:3] == [0.0, 0.0]
    with pytest.raises(ArgumentError, match="times has 1 entries for 2 equations"):
        picture_of(graph, times=[1.0])


def test_only_graphs_programs_and_kernels_are_drawn():
    with pytest.raises(ArgumentError, match="can be drawn, not int"):
        picture_of(3)


# Groups.


@pytest.mark.parametrize(
    "graph", [net(3), net(40), chain(1000), hostile(), random_program(3).graph], ids=lambda g: "g"
)
def test_groups_of_a_kind_do_not_overlap_and_those_of_layers_nest(graph):
    picture = picture_of(graph)
    assert list(picture.groupings) == ["layer", "line", "pattern"]
    for kind, groups in picture.groupings.items():
        assert [g.id for g in groups] == list(range(len(groups)))
        assert {g.kind for g in groups} <= {
            kind,
            *(["operator", "body"] if kind == "layer" else []),
        }
        inside: list[set[int]] = []
        for group in groups:
            members = set(group.members)
            assert 1 < len(members) == len(group.members)
            assert list(group.members) == sorted(group.members)
            assert members <= set(range(len(picture.boxes)))
            assert all(not members & other or members < other for other in inside)
            assert kind == "layer" or not any(members & other for other in inside)
            inside.append(members)


def test_layers_are_found_as_a_pattern():
    picture = picture_of(net(12))
    found = Counter(g.label.partition(",")[0] for g in picture.groupings["pattern"])
    assert found["pattern 1"] == 12
    ops = [
        {picture.boxes[b].label for b in g.members if picture.boxes[b].part == "forward"}
        for g in picture.groupings["pattern"]
        if g.label.startswith("pattern 1,")
    ]
    assert all(o == {"matmul", "broadcast", "add", "tanh"} for o in ops)


def test_operators_and_lines_are_groups():
    graph = pg.transforms.lower(net(12))
    picture = picture_of(graph)
    labels = {g.label for g in picture.groupings["layer"]}
    assert {"softmax", "mean"} <= labels
    lines = [g.label for g in picture.groupings["line"]]
    assert any(label.endswith(" reverse") for label in lines)
    assert len(lines) == len(set(lines))
    for group in picture.groupings["line"]:
        told = {dict(picture.boxes[b].details).get("source") for b in group.members}
        assert len(told - {None}) <= 1


def test_repeats_prefer_the_shortest_run_that_covers_most():
    assert repeats([1, 2, 3] * 10, 100) == [[(3 * i, 3) for i in range(10)]]
    assert repeats([9, 1, 2, 3, 8, 7, 1, 2, 3, 6], 100) == [[(1, 3), (6, 3)]]
    assert repeats([1, 2, 3, 4, 5], 100) == []
    assert repeats([], 100) == []
    assert repeats([5] * 50, 100) == [], "a run of equal equations has no period to be cut at"
    nested = ([1, 1, 2] + [3, 4] * 3) * 4
    assert repeats(nested, 100) == [[(9 * i, 9) for i in range(4)]]
    assert all(length <= 4 for places in repeats(nested, 4) for _, length in places)


@pytest.mark.parametrize("seed", SEEDS)
def test_repeats_are_equal_and_do_not_overlap(seed):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, 3, 400).tolist() + rng.integers(0, 50, 60).tolist() * 3
    found = repeats(tokens, 40)
    for places in found:
        assert len(places) > 1
        assert len({tuple(tokens[s : s + n]) for s, n in places}) == 1
    taken = sorted(p for places in found for p in places)
    assert all(s + n <= t for (s, n), (t, _) in pairwise(taken))


# Folding.


@pytest.mark.parametrize(
    "graph",
    [net(3), net(30), net(200), chain(299), chain(20_000), pg.trace(
        lambda *xs: sum(xs[1:], xs[0]), *[pg.spec(2)] * 700)],
    ids=["net3", "net30", "net200", "chain299", "chain20000", "inputs"],
)  # fmt: skip
def test_folding_leaves_about_the_limit_and_every_arrow_between_groups(graph):
    picture = picture_of(graph)
    shut = groups_to_fold(picture)
    shown = fold_groups(picture, shut)
    assert len(shown.boxes) <= LIMIT
    if len(picture.boxes) <= LIMIT:
        assert shown is picture
        return
    owner = {b: g.id for g in shut for b in g.members}
    outer = {
        (owner.get(a.tail, -1 - a.tail), owner.get(a.head, -1 - a.head)) for a in picture.arrows
    }
    assert len(shown.arrows) == len({(t, h) for t, h in outer if t != h})
    equations = sum(
        int(dict(b.details)["boxes"]) if b.details and b.details[0][0] == "group" else 1
        for b in shown.boxes
    )
    assert equations == len(picture.boxes)


def test_a_folded_box_has_the_part_and_the_heat_of_its_members():
    graph = net(30)
    times = [1.0] * len(graph.body)
    picture = picture_of(graph, times=times)
    shown = fold_groups(picture, groups_to_fold(picture))
    heats = [b.heat for b in shown.boxes if b.heat is not None]
    drawn = len([b for b in picture.boxes if b.heat is not None])
    assert sum(heats) == pytest.approx(drawn / len(graph.body))
    assert {"forward", "cotangent"} <= {b.part for b in shown.boxes}


@pytest.mark.parametrize("count", [3, 24, 25, 49, 700, 20_000])
def test_no_group_holds_more_than_can_be_looked_at(count):
    picture = picture_of(chain(count))
    root = tree_of(picture, "layer")
    groups = list(nested_groups(root))
    assert max(len(g.children) for g in groups) <= 50
    assert sorted(root.boxes) == list(range(len(picture.boxes)))
    leaves = [c.boxes[0] for g in groups for c in g.children if not c.children]
    assert sorted(leaves) == list(range(len(picture.boxes)))


def test_all_of_a_level_is_open_at_first_or_none_of_it():
    root = tree_of(picture_of(training()), "layer")
    assert open_groups(root, 40) == set()
    everything = open_groups(root, 10_000, operators=True)
    assert everything == set(nested_groups(root)) - {root}
    assert open_groups(root, len(root.children) - 1) == set()


# Scenes.


def scenes():
    yield from (picture_of(g) for g in (net(2), net(30), hostile(), chain(300)))
    yield picture_of(training())
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.tanh(x)
        for _ in range(3):
            y = pg.grad(pg.sum(y * pg.sin(x)), x)
        pg.forward_grad(y, x)
    yield picture_of(program)


@pytest.mark.parametrize("whole", [False, True])
def test_everything_in_a_scene_lies_apart_and_inside_its_frame(whole):
    for picture in scenes():
        for kind in (*picture.groupings, "none"):
            root = tree_of(picture, kind)
            scene = scene_of(picture, root, set(nested_groups(root)) if whole else set())
            for inside in scene.insides.values():
                plan = inside.plan
                places = boxes_of(inside.sizes, plan)
                assert overlapping(places) == []
                assert all(
                    min(a, b) >= 0 and c <= plan.width + 0.01 and d <= plan.height + 0.01
                    for a, b, c, d in places
                )
                for edge, route in zip(inside.edges, plan.routes, strict=True):
                    if edge.tail != edge.head:
                        for box, (x, y) in ((edge.tail, route[0]), (edge.head, route[-1])):
                            a, b, c, d = places[box]
                            assert a - 0.01 <= x <= c + 0.01
                            assert b - 0.01 <= y <= d + 0.01


def test_a_derivative_stands_beside_what_it_is_the_derivative_of():
    picture = picture_of(training())
    root = tree_of(picture, "layer")
    inside = scene_of(picture, root, set()).insides[root]
    assert [(c.part, c.order) for c in inside.columns] == [
        ("forward", 0), ("cotangent", 1), ("update", 0)
    ]  # fmt: skip
    columns = [c.lane for c in inside.columns]
    assert all(a.right < b.left for a, b in pairwise(columns))
    middle = {}
    for node, (x, y) in zip(root.children, inside.plan.corners, strict=True):
        part = next(c.part for c in inside.columns if c.lane.left - 1 <= x <= c.lane.right)
        assert part == node.lane[0]
        middle[node.label, node.lane[0]] = y + inside.sizes[root.children.index(node)][1] / 2
    for layer in ("sequential.0.second", "sequential.1"):
        assert middle[layer, "forward"] == middle[layer, "cotangent"] == middle[layer, "update"]
    names = ["sequential.0.first", "sequential.0.second", "sequential.1"]
    assert [middle[n, "cotangent"] for n in names] == sorted(middle[n, "cotangent"] for n in names)


@pytest.mark.parametrize("seed", SEEDS)
def test_wires_run_between_boxes_of_different_lanes_and_through_none(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 50))
    lanes = rng.integers(0, 4, count).tolist()
    pairs = rng.integers(0, count, (int(rng.integers(1, 90)), 2)).tolist()
    edges = [(min(p), max(p)) for p in pairs]
    sizes = sizes_of(count, seed)
    plan, columns = ladder(sizes, lanes, [False, True, True, False], edges, [60.0] * 4)
    boxes = boxes_of(sizes, plan)
    assert overlapping(boxes) == []
    for box, lane in zip(boxes, lanes, strict=True):
        assert columns[lane].left - 0.01 <= box[0] <= box[2] <= columns[lane].right + 0.01
    for i, ((tail, head), route) in enumerate(zip(edges, plan.routes, strict=True)):
        if tail == head:
            assert route == ()
        elif i in plan.wires:
            for (ax, ay), (bx, by) in pairwise(route):
                assert ax == pytest.approx(bx) or ay == pytest.approx(by)
                crossed = [
                    v
                    for v, (a, b, c, d) in enumerate(boxes)
                    if v not in (tail, head)
                    and min(ax, bx) < c - 0.01 and max(ax, bx) > a + 0.01
                    and min(ay, by) < d - 0.01 and max(ay, by) > b + 0.01
                ]  # fmt: skip
                assert crossed == []
        else:
            assert lanes[tail] == lanes[head]


# The layout.


def sizes_of(count, seed=0):
    widths = np.random.default_rng(seed).integers(40, 200, count)
    return [(float(w), 42.0) for w in widths]


def boxes_of(sizes, plan):
    return [(x, y, x + w, y + h) for (x, y), (w, h) in zip(plan.corners, sizes, strict=True)]


def overlapping(boxes, gap=0.0):
    return [
        (i, j)
        for i, (a, b, c, d) in enumerate(boxes)
        for j, (e, f, g, h) in enumerate(boxes[:i])
        if a < g + gap and e < c + gap and b < h and f < d
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_boxes_do_not_overlap_and_edges_run_down_from_box_to_box(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    pairs = rng.integers(0, count, (int(rng.integers(0, 120)), 2)).tolist()
    edges = [(min(p), max(p)) for p in pairs]
    sizes = sizes_of(count, seed)
    plan = layout(sizes, edges)
    boxes = boxes_of(sizes, plan)
    assert overlapping(boxes, BOX_GAP - 1e-6) == []
    assert all(min(a, b) >= 0 and c <= plan.width and d <= plan.height for a, b, c, d in boxes)
    for (tail, head), route in zip(edges, plan.routes, strict=True):
        if tail == head:
            assert route == ()
            continue
        assert boxes[tail][0] < route[0][0] < boxes[tail][2]
        assert route[0][1] == pytest.approx(boxes[tail][3])
        assert boxes[head][0] < route[-1][0] < boxes[head][2]
        assert route[-1][1] == pytest.approx(boxes[head][1])
        assert len(route) % 2 == 0
        assert all(q[1] >= p[1] for p, q in pairwise(route))
        assert all(0 <= x <= plan.width for x, _ in route)


@pytest.mark.parametrize("seed", SEEDS)
def test_long_edges_pass_beside_the_boxes(seed):
    rng = np.random.default_rng(seed)
    count = 40
    edges = [tuple(sorted(p)) for p in rng.integers(0, count, (60, 2)).tolist()]
    sizes = sizes_of(count, seed)
    plan = layout(sizes, edges)
    boxes = boxes_of(sizes, plan)
    for (tail, head), route in zip(edges, plan.routes, strict=True):
        for (x, y), (_, below) in zip(route[1:-1:2], route[2:-1:2], strict=True):
            crossed = [
                i
                for i, (a, b, c, d) in enumerate(boxes)
                if i not in (tail, head) and a < x < c and b < below and y < d
            ]
            assert crossed == []


def test_cycles_are_drawn_with_one_edge_against_the_flow():
    sizes = sizes_of(3)
    plan = layout(sizes, [(0, 1), (1, 2), (2, 0), (1, 1)])
    boxes = boxes_of(sizes, plan)
    assert [r[0][1] < r[-1][1] for r in plan.routes[:3]] == [True, True, False]
    assert plan.routes[2][0][1] == pytest.approx(boxes[2][1])
    assert plan.routes[2][-1][1] == pytest.approx(boxes[0][3])
    assert plan.routes[3] == ()


def test_a_graph_without_cycles_is_never_turned_whatever_the_order_of_its_boxes():
    edges = [(4, 3), (3, 2), (2, 1), (1, 0), (4, 0)]
    plan = layout(sizes_of(5), edges)
    assert all(r[0][1] < r[-1][1] for r in plan.routes)


def test_a_chain_is_a_straight_line():
    plan = layout([(80.0, 42.0)] * 6, [(i, i + 1) for i in range(5)])
    assert {x for x, _ in plan.corners} == {plan.corners[0][0]}
    assert {p[0] for r in plan.routes for p in r} == {plan.corners[0][0] + 40}


def test_a_tree_is_drawn_without_crossings():
    # The leaves come in an order that would cross.
    edges = [(0, 1), (0, 2), (1, 6), (2, 3), (1, 4), (2, 5)]
    plan = layout([(60.0, 42.0)] * 7, edges)
    left = sorted([6, 4], key=lambda v: plan.corners[v][0])
    right = sorted([3, 5], key=lambda v: plan.corners[v][0])
    ends = [plan.corners[v][0] for v in ([*left, *right], [*right, *left])[
        plan.corners[1][0] > plan.corners[2][0]]]  # fmt: skip
    assert ends == sorted(ends)


def test_nothing_can_be_laid_out():
    plan = layout([], [])
    assert plan.corners == plan.routes == ()


def test_a_wide_and_a_deep_graph_are_laid_out():
    wide = layout([(50.0, 42.0)] * 2001, [(0, i) for i in range(1, 2001)])
    assert len({y for _, y in wide.corners}) == 2
    deep = layout([(50.0, 42.0)] * 5000, [(i, i + 1) for i in range(4999)])
    assert len({y for _, y in deep.corners}) == 5000


def test_a_run_of_neighbours_has_enough_of_them_to_be_worth_a_group():
    def several(a, b):
        factor = pg.linalg.cholesky(a @ a.T + pg.eye(3) * 2.0)
        values, _ = pg.linalg.eigh(a + a.T)
        return pg.linalg.solve(a, b), factor, values, pg.sum(pg.linalg.svd(a)[1])

    graph = pg.trace(several, pg.spec((3, 3)), pg.spec(3))
    runs = [n.label for n in nested_groups(tree_of(picture_of(graph), "none")) if n.kind == "run"]
    assert len(runs) == 4
    assert runs[0].startswith("1 – 7 of ")


def test_a_box_of_a_constant_tells_its_type_once():
    graph = pg.trace(lambda x: x + np.array([1.0 + 2.0j, 3.0, 4.0]), pg.spec(3))
    (label,) = (b.label for b in picture_of(graph).boxes if b.part == "constant")
    assert label.startswith("const {(1.0+2.0j)")
