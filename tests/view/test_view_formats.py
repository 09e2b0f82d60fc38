"""Pictures as text: DOT, Mermaid, SVG, networkx, JSON, trees and tables; names stay text."""

from __future__ import annotations

import html
import json
import os
import re
import stat
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import networkx
import pytest
from view_graphs import HOSTILE, chain, hostile, net

import primgraph as pg
from primgraph.base.plain_text import plain, shorten_text, width_of
from primgraph.errors import ArgumentError, RunError
from primgraph.ir.graph import Graph, Value
from primgraph.view.formats import svg
from primgraph.view.formats.dot import quote_dot
from primgraph.view.formats.mermaid import escape_label
from primgraph.view.picture import picture_of

SPACE = "{http://www.w3.org/2000/svg}"
ROOT = Path(__file__).parents[2]

GRAPHS = {"small": net(1), "net": net(3), "long": chain(2000), "hostile": hostile()}


@pytest.fixture(params=list(GRAPHS))
def graph(request):
    return GRAPHS[request.param]


# Text.


@pytest.mark.parametrize("name", HOSTILE)
def test_plain_text_prints_and_does_not_turn_the_line_around(name):
    text = plain(name)
    assert text.isprintable()
    assert not any(unicodedata.bidirectional(c) in {"RLO", "LRO", "RLE", "LRE"} for c in text)
    assert plain(text) == text
    text.encode()
    if name.isprintable():
        assert text == name


# SVG.


def parsed(text):
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SPACE}svg"
    return root


def boxes_in(root):
    names = set(svg.PARTS)
    groups = [g for g in root.findall(f"{SPACE}g") if g.get("class") in names]
    return [g for g in groups if g.find(f"{SPACE}title") is not None]


def test_svg_is_xml_with_one_group_for_each_box_and_nothing_that_loads_or_runs(graph):
    text = graph.to_svg(limit=300, operators=True)
    root = parsed(text)
    picture = picture_of(graph)
    known = {"svg", "title", "style", "rect", "g", "path", "polygon", "text"}
    assert {e.tag.removeprefix(SPACE) for e in root.iter()} <= known
    attributes = {a for e in root.iter() for a in e.attrib}
    assert not any(a.startswith("on") or "href" in a for a in attributes)
    assert "url(" not in text
    assert "@import" not in text
    if len(picture.boxes) <= 300:
        drawn = []
        for group in boxes_in(root):
            label, note = (t.text or "" for t in group.findall(f"{SPACE}text"))
            drawn.append((group.get("class"), label, note))
        wanted = [(b.part, shorten_text(plain(b.label), 34), plain(b.note)) for b in picture.boxes]
        assert sorted(drawn) == sorted(wanted)
        arrows = [g for g in root.findall(f"{SPACE}g") if g.get("class") is None]
        assert len(arrows) >= len({(a.tail, a.head) for a in picture.arrows})


def test_text_of_svg_is_estimated_wide_enough_for_its_boxes(graph):
    for group in boxes_in(parsed(graph.to_svg())):
        shape = group.findall(f"{SPACE}rect") or group.findall(f"{SPACE}polygon")
        if shape[-1].tag == f"{SPACE}rect":
            width = float(shape[-1].get("width"))
        else:
            xs = [float(p.partition(",")[0]) for p in shape[-1].get("points").split()]
            width = max(xs) - min(xs)
        label, note = (t.text or "" for t in group.findall(f"{SPACE}text"))
        assert width_of(label, svg.LABEL_SIZE) <= width - 20
        assert width_of(note, svg.NOTE_SIZE, fixed=True) <= width - 20


def test_colours_follow_the_viewer_and_have_contrast():
    def luminance(colour):
        shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a, b):
        light, dark = sorted((luminance(a), luminance(b)), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    style = parsed(net(1).to_svg()).find(f"{SPACE}style").text
    light, _, dark = style.partition("@media (prefers-color-scheme:dark)")
    for rules in (light, dark):
        colour = dict(re.findall(r"\.primgraph \.(\w+)\{fill:(#\w{6})\}", rules))
        shapes = re.findall(r"\.(\w+) \.shape\{fill:(#\w{6});stroke:(#\w{6})\}", rules)
        assert {part for part, _, _ in shapes} == set(svg.PARTS)
        for _, fill, stroke in shapes:
            # The thresholds of WCAG 2.1, 1.4.3 for text and 1.4.11 for graphics.
            assert contrast(colour["label"], fill) >= 4.5
            assert contrast(colour["note"], fill) >= 4.5
            assert contrast(stroke, colour["paper"]) >= 3


def test_parts_differ_in_outline_too():
    outlines = {part: svg.outline(part, 0, 0, 80, 42) for part in svg.PARTS}
    distinct = [outlines[p] for p in ("input", "forward", "tangent", "cotangent")]
    assert len(set(distinct)) == 4


# DOT.


class Dot:
    """A strict reader of the DOT that is written here."""

    token = re.compile(r'\s*("(?:[^"\\\n]|\\.)*"|[A-Za-z_]\w*|-?\d+(?:\.\d+)?|->|[{}\[\]=;])')

    def __init__(self, text):
        self.tokens, place = [], 0
        while text[place:].strip():
            match = self.token.match(text, place)
            assert match, f"no token at {text[place : place + 40]!r}"
            self.tokens.append(match[1])
            place = match.end()
        self.nodes, self.edges = {}, []
        self.take("digraph")
        self.title = self.string(self.tokens.pop(0))
        self.take("{")
        while self.tokens[0] != "}":
            self.statement()
        self.take("}")
        assert self.tokens == []

    def take(self, token):
        assert self.tokens.pop(0) == token

    def string(self, token):
        """What Graphviz shows for a quoted label: escapes and entities are resolved."""
        assert token[0] == token[-1] == '"'
        inner = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), token[1:-1])
        assert not re.search(r"&(?!amp;)", inner)
        return html.unescape(inner)

    def statement(self):
        name = self.tokens.pop(0)
        assert re.fullmatch(r"b\d+|node|edge", name)
        head = None
        if self.tokens[0] == "->":
            self.take("->")
            head = self.tokens.pop(0)
        self.take("[")
        attributes = {}
        while self.tokens[0] != "]":
            key = self.tokens.pop(0)
            assert re.fullmatch(r"[a-z]+", key)
            self.take("=")
            value = self.tokens.pop(0)
            attributes[key] = self.string(value) if value[0] == '"' else value
        self.take("]")
        self.take(";")
        if head is not None:
            self.edges.append((name, head, attributes))
        elif name.startswith("b"):
            assert name not in self.nodes
            self.nodes[name] = attributes


def test_dot_reads_back_to_the_same_boxes_and_arrows(graph):
    picture = picture_of(graph)
    read = Dot(graph.to_dot())
    assert read.title == plain(picture.title)
    assert list(read.nodes) == [f"b{b.id}" for b in picture.boxes]
    for box, attributes in zip(picture.boxes, read.nodes.values(), strict=True):
        lines = [shorten_text(plain(text), 60) for text in (box.label, box.note)]
        assert attributes["label"] == "\n".join(lines)
        assert plain(box.label) in attributes["tooltip"] or box.details
    ends = [(f"b{a.tail}", f"b{a.head}", a.label) for a in picture.arrows]
    assert [(t, h, a["tooltip"]) for t, h, a in read.edges] == ends


@pytest.mark.parametrize("name", HOSTILE)
def test_a_quoted_string_of_dot_is_one_string(name):
    text = quote_dot(name)
    assert re.fullmatch(r'"(?:[^"\\\n]|\\.)*"', text)
    reader = Dot(f"digraph {text} {{}}")
    assert reader.title == plain(name)


# Mermaid.


def unescaped(text):
    return re.sub(r"#(\d+);", lambda m: chr(int(m[1])), text)


def test_mermaid_reads_back_to_the_same_boxes_and_arrows(graph):
    picture = picture_of(graph)
    lines = graph.to_mermaid(limit=10**6).splitlines()
    assert lines[0] == "flowchart TB"
    node = re.compile(
        r'  b(\d+)(?:\(\["|\{\{"|>"|\[")([^"`<>]*)<br/>([^"`<>]*)"(?:\]\)|\}\}|\])'
        r":::(\w+)"
    )
    nodes = [m for m in map(node.fullmatch, lines) if m]
    assert [int(m[1]) for m in nodes] == [b.id for b in picture.boxes]
    for match, box in zip(nodes, picture.boxes, strict=True):
        shown = unescaped(match[2])
        assert shown == plain(box.label) or plain(box.label).startswith(shown[:-1])
        assert unescaped(match[3]) == plain(box.note)
        assert match[4] == box.part
    arrows = [m for m in (re.fullmatch(r"  b(\d+) --> b(\d+)", line) for line in lines) if m]
    assert [(int(m[1]), int(m[2])) for m in arrows] == [(a.tail, a.head) for a in picture.arrows]
    rest = len(lines) - 1 - len(nodes) - len(arrows)
    assert rest == sum(line.startswith("  classDef ") for line in lines)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_label_of_mermaid_has_no_sign_that_means_something(name):
    assert re.fullmatch(r"(?:[^\W]|[ .,:+\-=/()·×…]|#\d+;)*", escape_label(name))
    assert "\n" not in escape_label(name)


def test_mermaid_is_folded_where_it_is_large():
    lines = chain(2000).to_mermaid().splitlines()
    assert 1 < sum(":::" in line for line in lines) <= 300


def test_mermaid_is_folded_where_mermaid_would_refuse_it():
    def tangled(x):
        a, b = pg.sin(x), pg.cos(x)
        for i in range(280):
            a, b = b, (a * b if i % 2 else a - b)
        return b

    graph = pg.trace(tangled, pg.spec(3))
    assert len(picture_of(graph).boxes) < 300
    assert graph.to_mermaid(limit=1000).count(" --> ") > 500
    assert graph.to_mermaid().count(" --> ") <= 500
    names = [Value(pg.spec(2), f"{i} {'#' * 90}") for i in range(150)]
    text = Graph(names, [], names, "long").to_mermaid()
    assert text.count(":::") > 1
    assert len(text) <= 50_000


# networkx and JSON.


def test_networkx_has_all_boxes_and_arrows(graph):
    picture = picture_of(graph)
    made = graph.to_networkx()
    assert isinstance(made, networkx.MultiDiGraph)
    assert made.name == picture.title
    assert networkx.is_directed_acyclic_graph(made)
    assert list(made) == [b.id for b in picture.boxes]
    assert made.number_of_edges() == len(picture.arrows)
    assert [made.nodes[b.id]["details"] for b in picture.boxes] == [
        dict(b.details) for b in picture.boxes
    ]
    assert Counter((t, h, d["label"]) for t, h, d in made.edges(data=True)) == Counter(
        (a.tail, a.head, a.label) for a in picture.arrows
    )


def test_networkx_tells_two_uses_of_one_value_apart():
    made = pg.trace(lambda x: x * x, pg.spec(3)).to_networkx()
    assert set(made[0][1]) == {0, 1}


def test_json_is_the_picture_as_data(graph, tmp_path):
    graph.save(tmp_path / "p.json")
    raw = (tmp_path / "p.json").read_bytes()
    assert raw.isascii()
    data = json.loads(raw)
    assert data == json.loads(json.dumps(picture_of(graph).data()))
    assert set(data) == {"title", "boxes", "arrows", "groupings"}
    assert set(data["boxes"][0]) == {"id", "label", "note", "part", "details", "heat", "order"}
    assert set(data["arrows"][0]) == {"tail", "head", "label"}


# Files.


def test_every_noun_is_saved_in_every_format(tmp_path):
    with pg.Program("p") as program:
        x = pg.data("x", (3,))
        pg.grad(pg.sum(pg.tanh(x)), x)
    graph = program.graph()
    for noun in (program, graph, pg.compile(graph)):
        for form, begin in (
            (".dot", b'digraph "p" {'),
            (".mmd", b"flowchart TB"),
            (".svg", b"<svg "),
            (".html", b"<!doctype html>"),
            (".json", b'{"title":"p"'),
            (".SVG", b"<svg "),
        ):
            path = tmp_path / f"file{form}"
            noun.save(path)
            assert path.read_bytes().startswith(begin)
    kernel = pg.compile(graph)
    kernel.save(tmp_path / "kernel.py")
    assert "def p(x):" in (tmp_path / "kernel.py").read_text()
    for noun in (program, graph):
        with pytest.raises(ArgumentError, match=r"(?s)no format '\.py'.*\.dot, \.mmd, \.svg"):
            noun.save(tmp_path / "p.py")


def test_without_graphviz_the_error_names_svg(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ArgumentError, match=r"(?s)dot is not on the path\n.*\.svg"):
        net(1).save(tmp_path / "p.png")
    assert not (tmp_path / "p.png").exists()


@pytest.mark.skipif(os.name != "posix", reason="puts a script in the place of Graphviz")
def test_graphviz_gets_the_text_on_standard_input_and_no_name_as_an_argument(tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text(
        f"#!{sys.executable}\nimport sys\ntext = sys.stdin.read()\n"
        "sys.exit('broken') if 'chain' in text else print(sys.argv[1:], len(text))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    graph = hostile()
    for form in ("png", "pdf"):
        graph.save(tmp_path / f"p.{form}")
        written = (tmp_path / f"p.{form}").read_text()
        assert written == f"['-T{form}'] {len(graph.to_dot())}\n"
    with pytest.raises(RunError, match=r"(?s)Graphviz made no png file.*exit status 1.*\.svg"):
        chain(3).save(tmp_path / "chain.png")


# The terminal.


def test_show_prints_lines_of_the_user_and_their_equations(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    graph = pg.transforms.lower(pg.trace(lambda x: pg.mean(pg.tanh(x) * 2.0), pg.spec(3)))
    graph.show()
    title, first, *rest = capsys.readouterr().out.splitlines()
    assert title == "f: 6 equations, (x: f64[3]) → (f64[])"
    assert re.fullmatch(r"└─ test_view_formats\.py:\d+  graph = pg\.trans.*", first)
    assert rest == [
        "   ├─ %0: f64[3] = tanh(%x)",
        "   ├─ %1: f64[3] = full(dtype=f64, shape=(3,), value=2.0)",
        "   ├─ %2: f64[3] = mul(%0, %1)",
        "   └─ mean",
        "      ├─ %3: f64[] = reduce_sum(%2, axes=(0,))",
        "      ├─ %4: f64[] = full(dtype=f64, shape=(), value=3.0)",
        "      └─ %5: f64[] = div(%3, %4)",
    ]


def test_show_counts_what_it_leaves_out(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    net(30).show(lines=12)
    title, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 11
    counted = [int(re.search(r"(\d+) equations?(?:\)| more)", line)[1]) for line in lines]
    assert sum(counted) == len(net(30))
    assert title.startswith(f"net: {sum(counted)} equations")


@pytest.mark.parametrize("name", list(GRAPHS))
def test_show_stays_within_the_terminal_and_prints_no_control_characters(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    GRAPHS[name].show()
    lines = capsys.readouterr().out.split("\n")
    assert all(line.isprintable() and len(line) <= 80 for line in lines)


def test_show_needs_ascii_only_where_the_terminal_has_no_more():
    code = (
        "import primgraph as pg\n"
        "pg.trace(lambda données: pg.tanh(données) * données, pg.spec(3)).show()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert run.stdout.isascii()
    assert b"|-" in run.stdout


def test_printing_a_graph_stays_its_text():
    graph = net(1)
    assert pg.parse(str(graph)) == graph


# Notebooks.


def test_a_notebook_shows_a_picture_folded_where_it_is_large_with_a_table(graph):
    bundle = graph._repr_mimebundle_()
    assert bundle["text/plain"] == repr(graph)
    assert bundle["text/html"] == graph._repr_html_()
    root = ElementTree.fromstring(graph._repr_html_())
    picture = picture_of(graph)
    assert root.tag == "div"
    if len(graph) > 100:
        (shown,) = root.findall("table")
        counts = [int(row.find("td").text) for row in shown.findall("tr")[1:]]
        assert sum(counts) == len(graph)
    elif len(picture.boxes) <= 40:
        drawn = svg.to_svg(picture)
        assert len(boxes_in(root.find(f"{SPACE}svg"))) == len(boxes_in(parsed(drawn)))
    else:
        folded, details = root
        assert 0 < len(boxes_in(folded.find(f"{SPACE}svg"))) <= 40
        inside = details.find("div")
        assert {e.tag for e in inside.iter()} == {"div", "b", "table", "tr", "th", "td"}
        equations = [b for b in picture.boxes if b.part not in ("input", "output")]
        assert len(inside.find("table").findall("tr")) == 1 + len(equations)


def test_programs_and_kernels_show_in_notebooks_too():
    with pg.Program("p") as program:
        pg.tanh(pg.data("x", (3,)))
    for noun in (program, pg.compile(program.graph())):
        assert "tanh" in noun._repr_mimebundle_()["text/html"]
        assert noun._repr_mimebundle_()["text/plain"] == repr(noun)


# All formats.


def test_an_empty_graph_can_be_drawn(tmp_path):
    graph = Graph([], [], [], "nothing")
    parsed(graph.to_svg())
    assert Dot(graph.to_dot()).nodes == {}
    assert graph.to_mermaid() == "flowchart TB\n"
    assert len(graph.to_networkx()) == 0
    graph.show()
    for form in ("html", "json", "svg"):
        graph.save(tmp_path / f"empty.{form}")


@pytest.mark.long
def test_the_same_graph_gives_the_same_bytes_in_every_process(tmp_path):
    code = (
        "import sys, hashlib\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from view_graphs import net\n"
        "graph = net(12)\n"
        "for f in ('to_dot', 'to_mermaid', 'to_svg', 'to_html', '_repr_html_'):\n"
        "    print(f, hashlib.sha256(getattr(graph, f)().encode()).hexdigest())\n"
    )
    tools = str(Path(__file__).parents[1] / "tools")
    printed = {
        subprocess.run(
            [sys.executable, "-c", code, tools],
            capture_output=True,
            check=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "12345")
    }
    assert len(printed) == 1


@pytest.mark.long
def test_a_long_chain_is_drawn_without_recursion(tmp_path):
    graph = chain(10_000)
    for form in ("svg", "dot", "mmd", "json", "html"):
        graph.save(tmp_path / f"long.{form}")
    graph.show()
    assert len(graph.to_svg()) < 200_000


def test_svg_of_what_was_measured_is_warm_where_the_time_goes():
    graph = net(1)
    times = [0.0] * len(graph)
    times[3] = 2.0
    root = parsed(svg.to_svg(picture_of(graph, times=times), operators=True))
    warm = [e for g in boxes_in(root) for e in g if e.get("class") == "warm"]
    assert len(warm) == sum(box.heat is not None for box in picture_of(graph, times=times).boxes)
    assert sorted({e.get("fill-opacity") for e in warm}) == ["0", "0.7"]
    notes = [g.findall(f"{SPACE}text")[1].text for g in boxes_in(root)]
    assert notes.count("100.0 %") == 1
    assert not [e for e in parsed(graph.to_svg()).iter() if e.get("class") == "warm"]
