"""In notebooks: what things show themselves as, what errors look like, how far training has come.

IPython is played by a stand-in but in the last part, where a notebook is executed.
"""

from __future__ import annotations

import importlib.util
import json
import linecache
import os
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from density import DENSE

import primgraph as pg
from primgraph.base.frames import format_traceback
from primgraph.base.user_lines import Source
from primgraph.ir.frontend.html_tables import ROWS, Row, Sheet, facts

ROOT = Path(__file__).parents[2]
HOSTILE = "<script>alert('&\"')</script>"
PAGE = ROOT / "docs" / "tutorial" / "notebooks.md"
# No output of a cell has more characters.
BOUND = 100_000


class Shell:
    """What primgraph uses of the shell of IPython that runs in a kernel."""

    kernel: Any = "a kernel"
    colors = "nocolor"

    def __init__(self) -> None:
        self.cells: dict[str, int] = {}
        self.shown: list[dict[str, Any]] = []
        self.compile = SimpleNamespace(format_code_name=self._name)
        self.display_pub = SimpleNamespace(publish=lambda **given: self.shown.append(given))
        self.InteractiveTB = SimpleNamespace(mode="Context", structured_traceback=self._whole)
        self.namespace: dict[str, Any] = {"pg": pg, "np": np, "__name__": "__main__"}

    def _name(self, file: str) -> tuple[str, str] | None:
        return ("Cell", f"In[{self.cells[file]}]") if file in self.cells else None

    def _whole(self, kind: type, error: BaseException, trace: Any) -> list[str]:
        return ["all frames"]

    def run(self, number: int, code: str, file: str = "") -> None:
        """Execute a cell as IPython does: under a name of its own, with its text in linecache."""
        file = file or f"/tmp/ipykernel_1/{number}.py"
        self.cells[file] = number
        linecache.cache[file] = (len(code), None, code.splitlines(True), file)
        exec(compile(code, file, "exec"), self.namespace)

    def error(self, number: int, code: str) -> pg.PrimgraphError:
        with pytest.raises(pg.PrimgraphError) as caught:
            self.run(number, code)
        return caught.value


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    found = Shell()
    stand_in = SimpleNamespace(get_ipython=lambda: found)
    monkeypatch.setitem(sys.modules, "IPython", stand_in)
    yield found
    for file in found.cells:
        linecache.cache.pop(file, None)


def training(name: str = "train") -> tuple[pg.Program, pg.Variable, pg.nn.Layer]:
    with pg.Program(name) as program:
        x, t = pg.data("x", (8, 2)), pg.data("t", (8, 1))
        model = pg.nn.Sequential(pg.nn.Linear(2, 16), pg.nn.Tanh(), pg.nn.Linear(16, 1))
        loss = pg.mean((model(x) - t) ** 2)
        pg.optimizer.Adam(0.05).minimize(loss)
    return program, loss, model


def chain(length: int) -> pg.Program:
    with pg.Program("long") as program:
        y = pg.data("x", (3,))
        for i in range(length):
            y = pg.sin(y) if i % 2 else y * 1.5
    return program


def cells_of(shown: str) -> list[list[str]]:
    """The rows of the table in some HTML, which has to be well-formed."""
    table = ElementTree.fromstring(shown).find(".//table")
    return [] if table is None else [["".join(c.itertext()) for c in row] for row in table]


# Tables.


def test_a_sheet_is_well_formed_and_escapes_all_text_that_it_is_given():
    sheet = Sheet(HOSTILE, "cn", (HOSTILE, HOSTILE), [Row((HOSTILE, "\x00\u202e"))], 1, (HOSTILE,))
    root = ElementTree.fromstring(sheet.html())
    assert {e.tag for e in root.iter()} == {"div", "b", "br", "table", "tr", "th", "td"}
    assert cells_of(sheet.html())[1] == [HOSTILE, "\\x00\\u202e"]
    assert {name for e in root.iter() for name in e.attrib} == {"style"}


def test_a_sheet_sets_no_colour_of_text_or_paper_so_that_it_is_read_on_light_and_dark():
    rows = [Row(("a", "1"), tint, share) for tint, share in (("+", 0.5), ("-", 2.0), ("", -1.0))]
    shown = Sheet("t", "cn", ("a", "b"), rows, 3).html()
    colours = re.findall(r"#\w+|rgba?\([^)]*\)|transparent", shown)
    assert colours
    for colour in set(colours) - {"transparent"}:
        assert float(colour.rpartition(",")[2].rstrip(")")) < 0.5, colour
    assert not re.search(r"[\"; ]color:", shown)


def test_a_sheet_counts_the_rows_that_it_leaves_out_and_reads_no_more_of_them():
    taken = []
    rows = (Row((str(taken.append(i) or i), "x")) for i in range(10**9))
    found = cells_of(Sheet("t", "nt", ("", ""), rows, 10**9).html())
    assert len(found) == 1 + ROWS + 1
    assert found[-1] == ["", f"{10**9 - ROWS} more"]
    assert len(taken) == ROWS


def test_a_sheet_is_bounded_whatever_stands_in_it():
    wide = "&" * 10_000
    rows = [Row((wide,) * 8)] * 1000
    shown = Sheet(wide, "c" * 8, (wide,) * 8, rows, 1000, (wide,) * 10).html()
    assert len(shown) < BOUND
    *_, last = cells_of(shown)
    assert last[-1].endswith(" more")


def test_facts_leave_out_what_is_not_known():
    assert cells_of(facts("t", [("a", "1"), ("b", "")]).html()) == [["a", "1"]]


# What things show.


def shown_things() -> dict[str, Any]:
    def f(x: Any, w: Any) -> Any:
        return pg.sum(pg.tanh(x @ w) ** 2)

    graph = pg.trace(f, pg.spec((8, 3)), pg.spec(3))
    kernel = pg.compile(graph)
    program, loss, model = training(HOSTILE[:80])
    executor = pg.Executor()
    executor.run(program, {"x": np.ones((8, 2)), "t": np.ones((8, 1))}, [loss])
    with pg.Program() as other:
        x = pg.data(HOSTILE[:80], (4,))
        empty = pg.data("nothing", (0, 3))
        y = pg.floor(x) * 2.0
        jacobian = pg.Jacobian(lambda x: pg.cumsum(x**2), x)
        hessian = pg.Hessian(lambda x: pg.sum(x**3), x)
        rows = pg.data("rows", (5, 2))
        batched = pg.Jacobian(lambda r: pg.tanh(r), rows, is_batched=True)
        blocks = pg.Jacobian([y, x * 3.0], [x], blocks=True)
        none = pg.Jacobian(lambda e: e * 2.0, empty)
    batch = pg.transforms.batch(pg.transforms.lower(graph), 6, [0, None])
    return {
        "graph": graph,
        "empty graph": pg.Graph([], [], [], "<nothing>"),
        "parsed graph": pg.parse(str(graph)),
        "kernel": kernel,
        "batched kernel": pg.compile(batch),
        "program": other,
        "empty program": pg.Program(),
        "training program": program,
        "training graph": program.graph(),
        "kernel of a step": executor.kernel(program, [loss]),
        "profile": pg.profile(kernel, [np.ones((8, 3)), np.ones(3)], repeats=2),
        "cost": pg.cost(kernel),
        "cost of nothing": pg.cost(pg.Graph([], [], [])),
        "diff": pg.diff(graph, pg.transforms.linearize(pg.transforms.lower(graph))),
        "no diff": pg.diff(graph, graph),
        "explanation": pg.explain(y, x),
        "steps": pg.steps(graph),
        "stage": pg.steps(graph)["lowered"],
        "jacobian": jacobian,
        "hessian": hessian,
        "batched jacobian": batched,
        "blocks": blocks,
        "block": jacobian.blocks[0][0],
        "jacobian of nothing": none,
        "variable": x,
        "empty variable": empty,
        "0-d variable": loss,
        "result": y,
        "parameter": model.parameters()[0],
        "held": pg.stop_gradient(y),
        "model": model,
        "new model": pg.nn.Linear(3, 2),
        "scope": program.scope,
        "empty scope": pg.Scope(),
        "executor": executor,
        "spy": pg.spy(np.zeros((0, 3))),
        "growth": pg.growth(pg.tanh, pg.spec(1), orders=1),
    }


NAMES = list(shown_things())


@pytest.fixture(scope="module")
def things() -> dict[str, Any]:
    return shown_things()


@pytest.mark.parametrize("name", NAMES)
def test_everything_shows_itself_well_formed_escaped_small_and_in_one_line_of_text(name, things):
    thing = things[name]
    if name != "explanation":
        assert repr(thing).count("\n") == 0
    assert len(repr(thing)) < 500
    if name == "executor":
        return
    method = "_repr_svg_" if name in ("spy", "growth") else "_repr_html_"
    shown = getattr(thing, method)()
    assert shown == getattr(thing, method)()
    assert len(shown) < BOUND
    assert "<script" not in shown
    ElementTree.fromstring(shown)


@pytest.mark.parametrize("name", NAMES)
def test_what_shows_itself_as_it_prints_does_so_in_terminals_of_ipython(name, things):
    thing = things[name]
    if not hasattr(type(thing), "_repr_pretty_"):
        return
    written: list[str] = []
    thing._repr_pretty_(SimpleNamespace(text=written.append), False)
    assert written == [str(thing)]
    # IPython goes from a class to its bases, and takes what it finds first.
    first = next(c for c in type(thing).__mro__ if {"__repr__", "_repr_pretty_"} & set(vars(c)))
    assert "_repr_pretty_" in vars(first) or type(thing).__repr__ is type(thing).__str__


def test_tables_say_what_the_text_says(things):
    profile, cost, steps = things["profile"], things["cost"], things["steps"]
    for thing in (profile, cost):
        (head, *rows), text = cells_of(thing._repr_html_()), str(thing)
        assert " ".join(head) in " ".join(text.split())
        assert len(rows) >= 1
        for row in rows:
            assert " ".join(" ".join(row).split()) in " ".join(text.split())
    assert [row[:2] for row in cells_of(steps._repr_html_())[1:]] == [
        [stage.name, str(len(stage.graph))] for stage in steps
    ]
    rows = cells_of(things["diff"]._repr_html_())[1:]
    lines = [line for line in str(things["diff"]).splitlines() if line[0] in "+-"]
    assert [f"{sign} {text}" for sign, text, _ in rows] == [t.partition("  #")[0] for t in lines]
    (_, row) = cells_of(things["explanation"]._repr_html_())
    assert row[:2] == ["floor", "is constant between jumps, so that its derivative is zero"]


def test_a_variable_tells_its_type_name_program_and_line(things):
    told = dict(cells_of(things["variable"]._repr_html_()))
    assert told["type"] == "f64[4]"
    assert told["name"] == HOSTILE[:80]
    assert told["input"] == "fed"
    assert "x = pg.data(HOSTILE[:80], (4,))" in told["line"]
    told = dict(cells_of(things["parameter"]._repr_html_()))
    assert told["input"] == "changed by runs"
    told = dict(cells_of(things["result"]._repr_html_()))
    assert told["computed by"] == "mul"


def test_to_show_a_variable_of_a_program_that_is_built_adds_nothing_to_it():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.sin(x) * 2.0
        before = len(program.builder)
        for thing in (x, y, program):
            thing._repr_html_()
        assert len(program.builder) == before
        y.stop_gradient = True
        assert "stop_gradient" in y._repr_html_()
    assert dict(cells_of(pg.stop_gradient(x)._repr_html_()))["type"] == "f64[3]"


def test_to_show_a_jacobian_evaluates_nothing_of_it():
    with pg.Program() as program:
        x = pg.data("x", (1000,))
        jacobian = pg.Jacobian(lambda x: pg.cumsum(x**2), x)
        hessian = pg.Hessian(lambda x: pg.sum(x**3), x)
        before = len(program.builder)
        for matrix in (jacobian, hessian, jacobian.blocks[0][0]):
            shown = matrix._repr_html_()
            assert "0 rows by reverse mode" in shown
            assert "0 columns by forward mode" in shown
        assert len(program.builder) == before
        assert jacobian[3].shape == (1000,)
        assert "1 rows by reverse mode" in jacobian._repr_html_()


def test_to_show_a_scope_copies_no_array():
    scope = pg.Scope()
    scope.set("<w>", np.zeros((1000, 1000)))
    tracemalloc.start()
    shown = scope._repr_html_()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6
    assert cells_of(shown)[1] == ["<w>", "float64", "(1000, 1000)", "8.00 MB"]


def test_a_folded_picture_counts_the_equations_not_its_boxes():
    program, _, _ = training()
    shown = program._repr_html_()
    assert f"{len(program.graph())} equations, folded" in shown
    assert "13 equations" not in shown


def test_a_large_tensor_shows_whole_rows():
    for shape in ((50, 40), (9, 9, 9)):
        cells = cells_of(pg.tensor(np.full(shape, -123.456789))._repr_html_())
        elements = dict(cells)["elements"]
        assert elements.startswith("[" * len(shape))
        assert elements.endswith("]" * len(shape))


def test_a_jitted_function_shows_its_transformations():
    def f(x: Any) -> Any:
        return pg.sum(x**2)

    shown = pg.jit(pg.vmap(pg.hessian(f)))._repr_html_()
    assert "jit of vmap of hessian of test_a_jitted" in shown


def test_what_a_layer_shows_are_its_parameters_and_buffers_by_name():
    net = pg.nn.Sequential(pg.nn.Linear(2, 3), pg.nn.BatchNorm(3))
    rows = {name: (kind, note) for name, kind, note in cells_of(net._repr_html_())[1:]}
    assert rows["0.weight"] == ("f64[2,3]", "")
    assert [note for name, (_, note) in rows.items() if "mean" in name] == ["buffer"]
    assert "15 trainable numbers" in net._repr_html_()


@pytest.mark.parametrize("way", ["program", "graph", "parsed", "kernel", "clone"])
def test_what_is_large_is_summed_up_by_lines(way, tmp_path):
    program, _, _ = training()
    thing = {
        "program": lambda: program,
        "graph": lambda: program.graph(),
        "parsed": lambda: pg.parse(str(program.graph())),
        "kernel": lambda: pg.compile(program.graph()),
        "clone": lambda: _loaded(program, tmp_path),
    }[way]()
    _, *rows = cells_of(thing._repr_html_())
    count = len(
        thing.graph if way == "kernel" else thing.builder if hasattr(thing, "builder") else thing
    )
    assert sum(int(row[0]) for row in rows) == count > 100
    if way == "parsed":
        assert "matmul" in {row[1] for row in rows}
        return
    assert {"forward", "reverse", "update"} <= {row[1] for row in rows}
    assert "sequential.0" in {row[2] for row in rows}
    assert any("loss = pg.mean((model(x) - t) ** 2)" in row[3] for row in rows)


def _loaded(program: pg.Program, folder: Path) -> pg.Program:
    pg.save(program, folder / "p.pgz")
    return pg.load(folder / "p.pgz")


def test_a_program_of_more_than_forty_equations_is_a_folded_picture_above_its_table():
    program, _, _ = training()
    shown = ElementTree.fromstring(program._repr_html_())
    picture, table = shown.find("div"), shown.find("details")
    texts = "".join(picture.itertext())
    assert picture.find("{http://www.w3.org/2000/svg}svg") is not None
    assert "sequential.0" in texts or "optimizer" in texts, texts[:500]
    assert table.find("summary").text == f"{len(program.graph())} equations"
    assert table.find(".//table") is not None
    assert len(program._repr_html_()) < BOUND


def test_a_jitted_function_shows_its_signature_compilations_times_and_source():
    @pg.jit
    def doubled(a, *, scale=2.0):
        return a * scale

    assert "doubled(a, *, scale=2.0)" in doubled._repr_html_()
    assert cells_of(doubled._repr_html_()) == []
    doubled(np.ones(3))
    doubled(np.ones(4))
    shown = doubled._repr_html_()
    head, first, second = cells_of(shown)
    assert head == ["", "arguments", "why it was compiled", "ms"]
    assert first[:3] == ["0", "f64[3]", "the first call"]
    assert second[1] == "f64[4]"
    assert float(second[3]) > 0.0
    source = ElementTree.fromstring(shown).find("details/pre").text
    assert source == doubled.compilations[-1].kernel.source
    assert all(one.seconds > 0.0 for one in doubled.compilations)


def test_sparse_matrices_and_patterns_draw_themselves():
    matrix = pg.sparse_jacobian(lambda x: x**2, np.ones(5))
    drawn = pg.spy(matrix.pattern)._repr_svg_()
    assert matrix._repr_svg_() == matrix.pattern._repr_svg_() == drawn


def test_elements_of_a_tensor_keep_their_lines():
    shown = dict(cells_of(pg.tensor(np.arange(4.0).reshape(2, 2))._repr_html_()))
    assert shown["elements"] == "[[0. 1.]\n [2. 3.]]"


def test_what_has_very_many_equations_shows_as_much_as_what_has_a_thousand():
    large = chain(100_000 if DENSE else 10_000)
    graph = large.graph()
    for thing in (
        large,
        graph,
        pg.cost(graph),
        pg.diff(graph, pg.Graph(graph.inputs, [], [])),
        pg.diff(pg.Graph(graph.inputs, [], []), graph),
        large.variables()[-1],
    ):
        assert len(thing._repr_html_()) < BOUND
        assert len(repr(thing)) < 500
        written: list[str] = []
        if hasattr(thing, "_repr_pretty_"):
            thing._repr_pretty_(SimpleNamespace(text=written.append), False)
            assert len(written[0]) < BOUND


@pytest.mark.long
def test_showing_takes_time_in_proportion():
    def seconds(graph: pg.Graph) -> float:
        def once() -> float:
            begun = time.perf_counter()
            graph._repr_html_()
            return time.perf_counter() - begun

        return median(once() for _ in range(5))

    small, large = chain(2_500).graph(), chain(20_000).graph()
    assert seconds(large) < 16 * seconds(small)


def test_many_arrows_and_long_texts_are_no_picture():
    with pg.Program(HOSTILE[:100]) as program:
        x = pg.data("&" * 200, (3,))
        pg.concatenate([x] * 2000)
    assert len(program._repr_html_()) < BOUND
    with pg.Program() as program:
        y = pg.data("&" * 200, (3,))
        for i in range(30):
            y = pg.tanh(y)
            y.name = f"{i}" + "&" * 190
    assert len(program._repr_html_()) < 2 * BOUND


def test_many_parameters_of_long_names_are_cut():
    scope = pg.Scope()
    for i in range(1000):
        scope.set(f"{i}" + "&" * 1000, np.zeros(()))
    assert len(scope._repr_html_()) < BOUND


# Names of cells.


def test_lines_of_cells_are_called_what_the_notebook_calls_them(shell):
    shell.run(3, "with pg.Program() as p:\n    x = pg.data('x', (3,))\n    y = pg.tanh(x)\n")
    eqn = shell.namespace["p"].graph().body[0]
    assert str(eqn.source) == "Cell In[3], line 3"
    assert eqn.source.text == "y = pg.tanh(x)"
    assert str(eqn.source.mark_derivative("cotangent")) == "in the gradient of Cell In[3], line 3"


def test_a_cell_that_is_run_again_as_it_is_has_its_new_number(shell):
    code, file = "with pg.Program() as p:\n    y = pg.tanh(pg.data('x', (3,)))\n", "/tmp/same.py"
    for number in (3, 7):
        shell.run(number, code, file)
        assert str(shell.namespace["p"].graph().body[0].source) == f"Cell In[{number}], line 2"


def test_a_cell_keeps_its_name_in_files_kernels_and_pictures(shell, tmp_path):
    shell.run(3, "with pg.Program() as p:\n    x = pg.data('x', (3,))\n    y = pg.grad(x**3, x)\n")
    program = shell.namespace["p"]
    pg.save(program, tmp_path / "p.pgz")
    for found in (program, pg.load(tmp_path / "p.pgz")):
        assert "Cell In[3], line 3  y = pg.grad(x**3, x)" in pg.compile(found.graph()).source
        assert "Cell In[3], line 3" in found.to_svg()
        assert "Cell In[3], line 3" in str(pg.cost(found.graph()))


def test_the_shell_is_asked_once_however_many_lines_are_found(shell, monkeypatch):
    asked = []
    stand_in = SimpleNamespace(get_ipython=lambda: asked.append(1) or shell)
    monkeypatch.setitem(sys.modules, "IPython", stand_in)
    shell.run(
        1, "with pg.Program():\n    x = pg.data('x', (3,))\n    for _ in range(50): x = x * x\n"
    )
    assert sum(asked) == 1
    assert "Cell In[1], line 3" in shell.namespace["x"]._repr_html_()


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("/home/me/model.py", "model.py:2"),
        ("<stdin>", "<stdin>:2"),
        ("<stdin>-3", "<stdin>:2"),
        ("<python-input-4>", "<python-input-4>:2"),
        ("<doctest docs/index.md[0]>", "<doctest docs/index.md[0]>:2"),
        ("Cell In[12]", "Cell In[12], line 2"),
    ],
)
def test_places_are_called_by_file_or_console_or_cell(file, place):
    assert str(Source(file, 2)) == place


def test_cells_of_ipython_before_8_and_of_a_terminal_have_their_number_in_their_name():
    code = compile(
        "import primgraph as pg\nz = pg.tanhh", "<ipython-input-12-0123456789ab>", "exec"
    )
    with pytest.raises(pg.UnknownNameError, match=r"Cell In\[12\], line 2"):
        exec(code, {})


def test_a_shell_that_is_only_half_there_does_no_harm(monkeypatch):
    for stand_in in (
        SimpleNamespace(),
        SimpleNamespace(get_ipython=lambda: None),
        SimpleNamespace(get_ipython=SimpleNamespace),
        None,
    ):
        monkeypatch.setitem(sys.modules, "IPython", stand_in)
        with pytest.raises(pg.UnknownNameError, match=r"test_notebook\.py") as caught:
            pg.tanhh  # noqa: B018
        assert "test_notebook.py" in "\n".join(caught.value._render_traceback_())


@pytest.mark.parametrize(
    ("how", "place"),
    [
        (["-c", "import primgraph as pg\npg.tanhh"], "written here:  <string>:2"),
        (["-"], "written here:  <stdin>:2"),
    ],
)
def test_programs_without_a_file_name_the_line(how, place):
    run = subprocess.run(
        [sys.executable, *how],
        input="import primgraph as pg\npg.tanhh\n",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert place in run.stderr
    assert "IPython" not in run.stderr


def test_importing_and_running_do_not_import_ipython():
    code = (
        "import sys, numpy as np, primgraph as pg\n"
        "graph = pg.trace(pg.tanh, pg.spec(3))\n"
        "pg.compile(graph)(np.ones(3)); graph._repr_html_(); pg.cost(graph)._repr_html_()\n"
        "try: pg.tanhh\n"
        "except pg.PrimgraphError as error: error._render_traceback_()\n"
        "assert not [m for m in sys.modules if m.partition('.')[0] in ('IPython', 'ipykernel')]\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


# Errors.

BROKEN = """def model(x):
    h = pg.tanh(x)
    return h @ pg.ones((5, 2))

with pg.Program():
    model(pg.data("x", (4, 3)))
"""


def test_an_error_in_a_cell_shows_the_users_frames_ours_counted_and_the_message(shell):
    blocks = shell.error(3, BROKEN)._render_traceback_()
    assert blocks[0] == "-" * 75
    assert blocks[1].split(maxsplit=1) == ["ShapeError", "Traceback (most recent call last)"]
    assert blocks[2].splitlines() == [
        "Cell In[3], line 6",
        "      4",
        "      5 with pg.Program():",
        '----> 6     model(pg.data("x", (4, 3)))',
    ]
    assert blocks[3].startswith("Cell In[3], line 3, in model\n      1 def model(x):\n")
    assert "\n----> 3     return h @ pg.ones((5, 2))\n" in blocks[3]
    folded = r"\.\.\. \d+ frames within primgraph; %xmode Verbose and then %tb show them\n"
    assert re.fullmatch(folded, blocks[4])
    assert blocks[5:] == [
        "ShapeError: matmul cannot multiply f64[4,3] by f64[5,2]: inner sizes 3 and 5 differ\n"
        "  written here:  Cell In[3], line 3   return h @ pg.ones((5, 2))\n"
        "  f64[4,3] comes from tanh at Cell In[3], line 2   h = pg.tanh(x)\n"
        "  f64[5,2] comes from full at Cell In[3], line 3   return h @ pg.ones((5, 2))"
    ]
    assert not any("primgraph/" in block for block in blocks)


@pytest.mark.skipif(not PAGE.exists(), reason="the tests run without the checkout around them")
def test_the_page_on_notebooks_shows_an_error_as_it_looks(shell):
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    cell, expected = (text for kind, text in fences if not kind)
    found = "\n".join(shell.error(3, cell)._render_traceback_())
    # How many frames there are is up to the version of Python.
    assert re.sub(r"\d+ frames", "4 frames", found) == expected.rstrip()


def test_frames_of_installed_packages_and_ours_between_the_users_are_counted_by_package(shell):
    code = (
        "import functools\n"
        "def outer(x):\n"
        "    return functools.reduce(inner, [x, x])\n"
        "def inner(a, b):\n"
        "    return pg.reshape(a * b, (7,))\n"
        "pg.trace(outer, pg.spec(3))\n"
    )
    blocks = shell.error(4, code)._render_traceback_()
    heads = [block.partition("\n")[0].partition(";")[0] for block in blocks[2:]]
    assert heads[0] == "Cell In[4], line 6"
    assert re.fullmatch(r"\.\.\. \d+ frames? within primgraph", heads[1])
    assert heads[2:4] == ["Cell In[4], line 3, in outer", "Cell In[4], line 5, in inner"]
    assert re.fullmatch(r"\.\.\. \d+ frames? within primgraph", heads[4])
    assert sum("%xmode" in block for block in blocks) == 1


def test_frames_of_the_shell_before_the_first_cell_are_left_out(shell):
    # Those of this test and of pytest are a user's and an installed package's.
    blocks = shell.error(1, "pg.tanhh")._render_traceback_()
    assert not any("pytest" in block for block in blocks)


def test_a_long_way_to_an_error_shows_its_ends(shell):
    code = "def f(n):\n    return pg.tanhh if n == 0 else f(n - 1)\nf(300)\n"
    blocks = shell.error(1, code)._render_traceback_()
    assert len(blocks) < 25
    (left_out,) = (b for b in blocks if "frames more" in b)
    shown = sum("in f" in b for b in blocks)
    assert shown + int(left_out.split()[1]) == 301


def test_other_modes_of_the_shell_show_all_frames_or_none(shell):
    error = shell.error(1, "pg.tanhh")
    shell.InteractiveTB.mode = "Verbose"
    assert error._render_traceback_() == ["all frames"]
    shell.InteractiveTB.mode = "Minimal"
    assert error._render_traceback_()[0].startswith("UnknownNameError: primgraph has nothing")
    assert error.__traceback__ is not None


def test_a_defect_of_primgraph_shows_all_frames(shell):
    assert pg.InternalError("broken")._render_traceback_() == ["all frames"]


def test_colours_are_those_of_the_shell(shell):
    error = shell.error(1, "pg.tanhh")
    assert "\x1b[" not in "".join(error._render_traceback_())
    shell.colors = "neutral"
    coloured = "".join(error._render_traceback_())
    assert "\x1b[31mUnknownNameError\x1b[0m" in coloured
    shell.colors = "nocolor"
    assert re.sub(r"\x1b\[\d+m", "", coloured) == "".join(error._render_traceback_())


def test_what_led_to_an_error_is_told_in_a_line_each(shell):
    code = (
        "try:\n    {}['key']\nexcept KeyError as error:\n    raise pg.BuildError('no') from error\n"
    )
    error = shell.error(1, code)
    error.add_note("and a note")
    assert error._render_traceback_()[-1].splitlines()[-2:] == [
        "and a note",
        "  caused by KeyError: 'key'",
    ]
    error.__cause__ = error
    assert "caused by" not in error._render_traceback_()[-1]
    handled = shell.error(2, "try:\n    1 / 0\nexcept ZeroDivisionError:\n    pg.tanhh\n")
    assert "while handling ZeroDivisionError: division by zero" in handled._render_traceback_()[-1]


def test_an_error_that_nobody_raised_or_whose_lines_are_gone_is_rendered(shell):
    assert pg.BuildError("no")._render_traceback_()[-1].startswith("BuildError: no")
    for name in ("<string>", "no\x00file", "/gone/away.py"):
        code = compile("pg.tanhh", "", "exec").replace(co_filename=name)
        with pytest.raises(pg.PrimgraphError) as caught:
            exec(code, {"pg": pg})
        assert "nothing named" in format_traceback(caught.value, str(caught.value))[-1]


def test_outside_of_notebooks_errors_look_as_ever():
    before = sys.excepthook
    run = subprocess.run(
        [sys.executable, "-c", "import primgraph as pg\npg.tanhh"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr.startswith("Traceback (most recent call last):\n")
    assert "__init__.py" in run.stderr
    assert sys.excepthook is before


# Training.

FEED = {"x": np.ones((8, 2)), "t": np.ones((8, 1))}


def test_fit_renews_one_table_in_a_notebook(shell):
    program, loss, _ = training("<b>net</b>")
    history = pg.fit(program, loss, [FEED], 40)
    first, *_, last = shell.shown
    assert [first["update"], last["update"]] == [False, True]
    assert len({s["transient"]["display_id"] for s in shell.shown}) == 1
    (head, row) = cells_of(last["data"]["text/html"])
    assert head == ["epoch", "loss", "least loss", "time", "to go"]
    assert row[:3] == ["40 of 40", f"{history[-1]:.4g}", f"{min(history):.4g}"]
    assert "&lt;b&gt;net&lt;/b&gt;" in last["data"]["text/html"]
    assert last["data"]["text/plain"].startswith("epoch 40 of 40, loss ")
    assert cells_of(first["data"]["text/html"])[1][0] == "0 of 40"


def test_fit_does_not_flood_a_notebook(shell, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("primgraph.training.progress.time.perf_counter", lambda: clock[0])

    def tick(epoch: int, loss: float) -> None:
        clock[0] += 0.05

    program, loss, _ = training()
    pg.fit(program, loss, [FEED], 2000, callback=tick)
    # A hundred in twenty seconds, and about as many until the time has grown by e.
    assert 100 < len(shell.shown) < 300
    assert cells_of(shell.shown[-1]["data"]["text/html"])[1][0] == "2000 of 2000"


def test_fit_says_where_it_has_ended(shell):
    program, loss, _ = training()

    def stop(epoch: int, loss: float) -> bool:
        if epoch == 3:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        pg.fit(program, loss, [FEED], 100, callback=stop)
    shown = shell.shown[-1]["data"]["text/html"]
    assert "ended by KeyboardInterrupt" in shown
    assert cells_of(shown)[1][0] == "4 of 100"
    assert cells_of(shown)[1][4] == ""
    shell.shown.clear()
    pg.fit(program, loss, [FEED], 100, callback=lambda epoch, loss: epoch == 1)
    assert cells_of(shell.shown[-1]["data"]["text/html"])[1][0] == "2 of 100"


def test_fit_shows_nothing_where_it_is_told_so_and_what_it_can_for_no_epochs(shell):
    program, loss, _ = training()
    pg.fit(program, loss, [FEED], 2, progress=False)
    assert shell.shown == []
    pg.fit(program, loss, [FEED], 0)
    assert cells_of(shell.shown[-1]["data"]["text/html"])[1][0] == "0 of 0"


def test_fit_in_a_terminal_of_ipython_displays_nothing(shell, capsys):
    shell.kernel = None
    program, loss, _ = training()
    pg.fit(program, loss, [FEED], 2)
    assert shell.shown == []
    assert capsys.readouterr().out == ""


# A notebook.

CELLS = (
    "import numpy as np, primgraph as pg",
    "%colors nocolor",
    "with pg.Program('<i>p</i>') as p:\n"
    "    x = pg.data('<b>x</b>', (4, 3))\n"
    "    loss = pg.mean(pg.tanh(x) ** 2)\n"
    "p",
    "x",
    "pg.cost(p.graph())",
    "with p:\n    y = pg.sin(x)\n    y @ pg.ones((5, 2))",
    "%xmode Verbose\n%tb",
    "%xmode Context\nprint(pg.compile(p.graph()).source)",
    "with pg.Program() as t:\n"
    "    w = pg.create_parameter((3,), name='w')\n"
    "    loss = pg.sum(w**2)\n"
    "    pg.optimizer.SGD(0.1).minimize(loss)\n"
    "history = pg.fit(t, loss, [{}], 300)",
    "pg.tanhh",
)


# In a process of its own, as clients leave their sockets open.
CLIENT = """
import json, sys
import nbclient, nbformat
from nbformat.v4 import new_code_cell, new_notebook
made = new_notebook(cells=[new_code_cell(code) for code in json.load(sys.stdin)])
nbclient.NotebookClient(made, kernel_name="python3", timeout=120, allow_errors=True).execute()
nbformat.validate(made)
nbformat.write(made, sys.argv[1])
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The cells of a notebook after it was executed."""
    for module in ("nbclient", "ipykernel"):
        if importlib.util.find_spec(module) is None:
            pytest.skip("needs a kernel: pip install 'primgraph[notebook]'")
    file = tmp_path_factory.mktemp("notebook") / "made.ipynb"
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLIENT, str(file)],
        input=json.dumps(CELLS),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    cells: list[Any] = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return cells


def output(cell: Any) -> Any:
    (found,) = (o for o in cell["outputs"] if o["output_type"] != "stream")
    return found


def html_of(cell: Any) -> str:
    return "".join(output(cell)["data"]["text/html"])


@pytest.mark.long
def test_a_notebook_shows_pictures_tables_errors_and_how_far_training_has_come(notebook):
    assert "&lt;i&gt;p&lt;/i&gt;" in html_of(notebook[2])
    told = dict(cells_of(html_of(notebook[3])))
    assert told["name"] == "<b>x</b>"
    assert told["line"].startswith("Cell In[3], line 2")
    cost = output(notebook[4])["data"]
    assert cells_of("".join(cost["text/html"]))[1][-1].startswith("Cell In[3], line 3")
    assert "".join(cost["text/plain"]).splitlines()[2].split() == [
        "flops",
        "read",
        "written",
        "line",
    ]
    broken = "\n".join(output(notebook[5])["traceback"])
    assert "Cell In[6], line 3\n      1 with p:\n      2     y = pg.sin(x)\n----> 3" in broken
    assert re.search(r"\.\.\. \d+ frames within primgraph", broken)
    assert "site-packages" not in broken
    assert "primgraph/" not in broken
    assert broken.endswith("f64[5,2] comes from full at Cell In[6], line 3   y @ pg.ones((5, 2))")
    assert "comes from sin at Cell In[6], line 2   y = pg.sin(x)" in broken
    assert "products.py" in "\n".join(output(notebook[6])["traceback"])
    source = "".join(line for o in notebook[7]["outputs"] for line in o.get("text", ""))
    assert "# Cell In[3], line 3  loss = pg.mean(pg.tanh(x) ** 2)" in source
    shown = output(notebook[8])["data"]
    assert cells_of("".join(shown["text/html"]))[1][0] == "300 of 300"
    assert "epoch 300 of 300" in "".join(shown["text/plain"])
    assert "Cell In[10], line 1\n----> 1 pg.tanhh" in "\n".join(output(notebook[9])["traceback"])


@pytest.mark.long
def test_a_terminal_of_ipython_shows_the_same():
    pytest.importorskip("IPython", reason="needs IPython: pip install 'primgraph[notebook]'")
    run = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--quick", "--colors=nocolor"],
        input="import primgraph as pg\npg.cost(pg.trace(pg.tanh, pg.spec(3)))\npg.tanhh\n",
        env={**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": os.devnull, "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "flops  read  written  line" in run.stdout
    assert "... 1 frame within primgraph" in run.stdout
    assert "written here:  Cell In[3], line 1   pg.tanhh" in run.stdout
