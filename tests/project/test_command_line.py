"""The command line, as its user meets it: on a file of their own, in a process of its own."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import primgraph as pg
from primgraph.cli.main import main
from primgraph.cli.targets import as_type
from primgraph.ir.types import TensorType

MODEL = """\
import primgraph as pg
from neighbour import power

def energy(x, stiffness):
    return pg.sum(stiffness * (x[1:] - x[:-1]) ** power)

def pair(x):
    return x, pg.sin(x)

def fails(x):
    return {}[x]

def terms(params, x):
    force = params["k"] * x
    return {"energy": pg.sum(force * x), "parts": [force]}

graph = pg.trace(energy, pg.spec(3), pg.spec(2))
nested = pg.trace(terms, {"k": pg.spec(())}, pg.spec(3))
with pg.Program("net") as net:
    x = pg.data("x", (4, 2))
    labels = pg.data("labels", (4,), "int64")
    layers = pg.nn.Sequential(pg.nn.Linear(2, 3), pg.nn.Tanh(), pg.nn.Linear(3, 2))
    loss = pg.cross_entropy(layers(x), labels)
    loss.name = "loss"
number = 3

def rows(x):
    return pg.sin(x)
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A folder with a user's file in it, which is where the command runs."""
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "neighbour.py").write_text("power = 2\n")
    (tmp_path / "broken.py").write_text("value = 1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


@pytest.fixture
def command(model, capsys):
    """Runs a command line here; gives its exit status, and what it printed."""

    def run(line: str) -> tuple[int, str, str]:
        try:
            status = main(line.split())
        except SystemExit as leaving:
            status = leaving.code
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def test_show_prints_a_graph_that_parses(command):
    status, text, _ = command("show model.py:energy 5 f64[4]")
    assert status == 0
    assert pg.parse(text).input_types == (pg.spec(5), pg.spec(4))
    assert "integer_pow" in text
    assert "integer_pow" not in command("show model.py:energy 5 4 --stage compiled")[1]
    assert "linear(" in command("show model.py:net")[1]
    assert "linear(" not in command("show model.py:net --stage lowered")[1]


def test_show_takes_programs_variables_graphs_and_files(command, model):
    shown = command("show model.py:net")[1]
    assert command("show model.py:loss")[1] == shown
    assert command("show model.py:net --fetch loss")[1] == shown
    (model / "graph.txt").write_text(shown)
    assert command("show graph.txt")[1] == shown
    pg.save(_saved(), model / "model.pgz")
    assert "tanh" in command("show model.pgz")[1]
    assert "tanh" in command("show model.pgz:u")[1]


def _saved() -> pg.Program:
    with pg.Program("saved") as program:
        u = pg.tanh(pg.data("x", (3,)))
        u.name = "u"
    return program


def test_grad_prints_a_derivative(command):
    status, text, _ = command("grad model.py:energy 5 4 --wrt x")
    assert status == 0
    graph = pg.parse(text)
    assert graph.name == "energy_grad"
    assert graph.output_types == (pg.spec(5),)
    both = pg.parse(command("grad model.py:energy 5 4")[1])
    assert both.output_types == (pg.spec(5), pg.spec(4))
    found = pg.interpret(graph, np.arange(5.0) ** 2, np.ones(4))[0]
    np.testing.assert_allclose(found, [-2.0, -4.0, -4.0, -4.0, 14.0])


def test_grad_of_higher_order_in_both_modes_and_as_source(command, model):
    (model / "f.py").write_text("import primgraph as pg\n\ndef f(x):\n    return pg.tanh(x)\n")
    for mode in ("", "--forward"):
        status, text, _ = command(f"grad f.py:f 3 --order 3 --source {mode}")
        assert status == 0
        (model / "made.py").write_text(text)
        found = runpy.run_path("made.py")["f_grad"](np.array([0.0, 0.5, 1.0]))
        t = np.tanh([0.0, 0.5, 1.0])
        np.testing.assert_allclose(found, (1 - t**2) * (6 * t**2 - 2), rtol=1e-13)


def test_emitted_files_name_lines_of_the_user_only(command, model):
    text = command("emit model.py:energy 3 2")[1]
    comments = [line.strip() for line in text.splitlines() if line.strip().startswith("#")]
    assert comments
    assert all("model.py:" in line for line in comments)


@pytest.mark.parametrize(
    "line",
    [
        "emit model.py:energy 3 2 -o made.py",
        *(f"view model.py:net -o made.{form}" for form in ("html", "svg", "dot", "mmd", "json")),
        *(f"view model.py:energy 3 2 -o made.{form}" for form in ("html", "svg", "dot", "mmd")),
        *(f"profile model.py:energy 3 2 -o made.{form}" for form in ("html", "svg", "json")),
    ],
)
@pytest.mark.long
def test_only_what_primgraph_wrote_is_overwritten(command, model, line):
    path = model / line.split()[-1]
    path.touch()
    assert command(line)[0] == 0
    made = path.read_bytes()
    again = command(line)[0]
    assert again == (0 if path.suffix else 1)
    for mine in (MODEL, '"""My own."""\n' + made.decode(), "x" * 10_000):
        path.write_text(mine, encoding="utf-8", newline="")
        status, _, told = command(line)
        assert status == 1
        assert "is there already, and was not written by primgraph" in told
        assert "--force" in told
        assert path.read_text(encoding="utf-8") == mine
    assert command(f"{line} --force")[0] == 0
    assert path.read_bytes()[:20] == made[:20]


def test_the_page_that_is_written_by_default_does_not_overwrite_another(command, model):
    (model / "energy.html").write_text("mine", encoding="utf-8")
    assert command("view model.py:energy 3 2")[0] == 1
    assert (model / "energy.html").read_text(encoding="utf-8") == "mine"


def test_long_constants_of_a_text_come_from_an_npz_file(command, model):
    weights = np.linspace(0.0, 1.0, 500)
    graph = pg.trace(lambda x: pg.sum(x * weights), pg.spec(500))
    (model / "graph.txt").write_text(str(graph))
    np.savez(model / "weights.npz", **graph.constants)
    status, text, _ = command("show graph.txt --constants weights.npz")
    assert (status, text.strip()) == (0, str(graph))
    status, _, told = command("show graph.txt")
    assert status == 1
    assert told.startswith("error: graph text, line 2, column ")


def test_emit_does_not_overwrite_what_it_reads(command, model):
    assert command("emit model.py:energy 3 2 -o model.py")[0] == 1
    assert (model / "model.py").read_text() == MODEL


def test_emit_writes_value_gradient_and_hessian(command, model):
    status, text, _ = command("emit model.py:energy 3 2 --wrt x -o made.py")
    assert (status, text) == (0, "made.py: energy, energy_gradient, energy_hessian\n")
    assert "primgraph" not in re.sub('"""NumPy.*', "", (model / "made.py").read_text())
    made = runpy.run_path("made.py")
    x, s = np.array([0.0, 1.0, 3.0]), np.array([2.0, 3.0])
    np.testing.assert_allclose(made["energy"](x, s), 14.0)
    np.testing.assert_allclose(made["energy_gradient"](x, s), [-4.0, 4.0 - 12.0, 12.0])
    hessian = [[4.0, -4.0, 0.0], [-4.0, 10.0, -6.0], [0.0, -6.0, 6.0]]
    np.testing.assert_allclose(made["energy_hessian"](x, s), hessian)
    assert command("emit model.py:energy 3 2 --wrt x")[1] == (model / "made.py").read_text()


def test_emit_writes_c(command, model):
    status, text, _ = command("emit model.py:energy 3 2 --wrt x --target c -o made.c")
    assert (status, text) == (0, "made.c, made.h: energy, energy_gradient, energy_hessian\n")
    header, source = ((model / f"made{end}").read_text() for end in (".h", ".c"))
    assert "void energy(const double x[3], const double stiffness[2], double *" in header
    assert '#include "made.h"' in source
    both = command("emit model.py:energy 3 2 --wrt x --target c")[1]
    assert both == f"{header}\n{source}".replace("made", "energy").replace("MADE", "ENERGY")
    (model / "made.h").write_text("/* mine */\n")
    status, _, error = command("emit model.py:energy 3 2 --target c -o made.c")
    assert status == 1
    assert "made.h' is there already" in error


def test_emit_writes_c_for_all_sizes(command, model):
    text = command("emit model.py:energy N+1 N --what value,gradient --target c -o made.c")[1]
    assert text == "made.c, made.h: energy, energy_gradient\n"
    header = (model / "made.h").read_text()
    assert "x: float64, shape (N + 1,)" in header
    assert "energy(long N, const double *x, const double *stiffness, double *" in header
    for line in ("check model.py:energy N+1 N", "profile model.py:energy N+1 N"):
        status, _, error = command(line)
        assert status == 1
        assert "input 'x' is f64[N+1]: arrays are drawn where all extents are known" in error


def test_emitted_functions_take_and_return_containers(command, model):
    assert command("emit model.py:nested --what value,gradient -o made.py")[0] == 0
    made, x = runpy.run_path("made.py"), np.array([1.0, 2.0, 3.0])
    found = made["terms"]({"k": 2.0}, x)
    np.testing.assert_allclose(found["energy"], 28.0)
    np.testing.assert_allclose(found["parts"], [2.0 * x])
    by_k, by_x = made["terms_gradient"]({"k": 2.0}, x=x)
    np.testing.assert_allclose(by_k, 14.0 + 6.0)
    np.testing.assert_allclose(by_x, 4.0 * x + 2.0)
    assert command("check model.py:nested")[0] == command("profile model.py:nested")[0] == 0


def test_check_compares_derivatives(command, model):
    status, text, _ = command("check model.py:energy 5 4")
    assert status == 0
    assert text == (
        "energy: derivatives by x, stiffness up to order 2, forward and reverse, agree with "
        "independent ones\n"
    )
    np.savez(model / "feed.npz", labels=np.array([0, 1, 1, 0]), x=np.ones((4, 2)))
    assert command("check model.py:net --order 1 --feed feed.npz")[0] == 0


def test_check_tells_what_is_wrong(command, model):
    text = "import primgraph as pg\n\ndef f(x):\n    return pg.floor(x) + x\n"
    (model / "step.py").write_text(text)
    np.savez(model / "feed.npz", x=np.array([1.0]))
    status, _, fault = command("check step.py:f 1 --feed feed.npz")
    assert status == 1
    assert "differ" in fault


def test_show_prints_a_tree(command):
    status, text, _ = command("show model.py:net --tree --stage lowered")
    assert status == 0
    assert "model.py:23  loss = pg.cross_entropy(layers(x), labels)" in text
    assert "├─ cross_entropy" in text or "└─ cross_entropy" in text


@pytest.mark.parametrize(
    ("line", "file", "begins"),
    [
        ("view model.py:net", "net.html", "<!doctype html>"),
        ("view model.py:energy 5 4 -o picture.svg", "picture.svg", "<svg"),
        ("view model.py:energy 5 4 -o picture.dot", "picture.dot", "digraph"),
        ("view model.py:energy 5 4 -o picture.mmd", "picture.mmd", "flowchart"),
    ],
)
def test_view_writes_pictures(command, model, line, file, begins):
    status, text, _ = command(line)
    assert (status, text) == (0, f"{file}\n")
    assert (model / file).read_text().lower().startswith(begins)


def test_view_shows_the_steps_of_the_compiler(command, model):
    command("view model.py:energy 5 4 -o page.html")
    page = (model / "page.html").read_text()
    assert all(name in page for name in ("as built", "lowered", "transposed", "planned"))


def test_profile_tells_where_the_time_goes(command, model):
    status, text, _ = command("profile model.py:energy 5000 4999 --by op -o times.json")
    assert status == 0
    head, columns, *rows = text.splitlines()
    assert re.match(r"energy: [0-9.]+ .s a call of the planned code, [0-9.]+ % of it", head)
    assert columns.split()[:3] == ["time", "share", "calls"]
    assert {"reduce_sum", "sub"} <= {row.split()[-1] for row in rows}
    assert json.loads((model / "times.json").read_text())["name"] == "energy"
    assert command("profile model.py:net --top 1 -o times.html")[0] == 0
    assert "<svg" in (model / "times.html").read_text()


def test_profile_of_a_program_leaves_its_state_alone(command, model):
    training = model / "training.py"
    training.write_text(MODEL + "with net:\n    pg.optimizer.SGD(0.1).minimize(loss)\n")
    status, text, _ = command("profile training.py:net --by op")
    assert status == 0
    assert "matmul" in text
    profiled = sys.modules["_training_target"].net
    assert all(
        np.array_equal(profiled.scope.get(name), profiled.first_value(state))
        for state in profiled.states.values()
        if (name := state.name) in profiled.scope
    )


def test_info_tells_what_a_graph_needs(command):
    status, text, _ = command("info model.py:energy 5000 4999")
    assert status == 0
    assert text.startswith("energy: ")
    assert "peak" in text
    assert "model.py:5" in text


def test_info_names_versions(command):
    status, text, _ = command("info")
    assert status == 0
    assert pg.__version__ in text
    assert np.__version__ in text


FAULTS = [
    ("show nofile.py:f", "no file 'nofile.py'"),
    ("show model.py", "say which, as in model.py:NAME"),
    ("show model.py:enrgy 5 4", "did you mean 'energy'?"),
    ("show model.py:energy.x 5 4", "has no 'energy.x'"),
    ("show model.py:number", "is a value of type int, not a function"),
    ("show model.py:energy 5", "model.py:energy(x, stiffness) takes 2 arguments; 1 types"),
    ("emit model.py:energy 5 4 --output missing/e.py", "cannot write missing/e.py: No such file"),
    ("show model.py:energy 5 f63[4]", "'f63[4]' is not a type"),
    ("show model.py:energy 5 f64[4", "'f64[4' is not a type"),
    ("show model.py:energy 5 -1", "'-1' is not a type"),
    ("show model.py:energy 5 3", "model.py:5   return pg.sum(stiffness"),
    ("show model.py:net 3", "the types of the inputs of model.py:net are known"),
    ("show model.py:graph --fetch u", "is not a program"),
    ("show model.py:net --fetch los", "did you mean 'loss'?"),
    ("show model.pyc", "no file"),
    ("grad model.py:energy 5 4 --wrt stifness", "did you mean 'stiffness'?"),
    ("grad model.py:energy 5 4 --order 2", "by one input, not by x, stiffness"),
    ("grad model.py:energy 5 4 --order 0", None),
    (
        "emit model.py:energy 3 2 --what jacobian",
        "value, gradient, hessian, not",
    ),
    ("emit model.py:energy 3 2 --target c -o made.txt", "C is saved to a path that ends in .c"),
    ("emit model.py:energy 3 2 --target rust", None),
    ("emit model.py:energy 5 4 --output x.txt", "'x.txt' does not end in .py"),
    ("emit model.py:pair 3", "a Hessian is that of one output, and there are 2"),
    ("emit model.py:rows 3", "of one element, and the output is f64[3]"),
    ("check model.py:energy 5 4 --feed model.py", "no .npz file of arrays"),
    ("check model.py:energy 5 4 --feed other.npz", "arrays that are no inputs: z"),
    ("view model.py:energy 5 4 -o picture.bmp", "there is no format '.bmp'"),
    ("profile model.py:energy 5 4 -o picture.png", "profiles are saved as .html, .svg or .json"),
    ("profile model.py:energy 5 4 --by time", None),
    ("frobnicate", None),
]


@pytest.mark.parametrize(("line", "words"), FAULTS)
def test_faults_are_told_in_words(command, model, line, words):
    np.savez(model / "other.npz", z=np.ones(3))
    status, text, fault = command(line)
    assert text == ""
    assert "Traceback" not in fault
    if words is None:
        assert status == 2
        assert "usage:" in fault
    else:
        assert status == 1
        assert fault.startswith("error: ")
        assert words in fault
        assert "command_line.py" not in fault


@pytest.mark.parametrize("target", ["broken.py:value", "model.py:fails"])
def test_a_fault_of_the_users_own_shows_their_lines_only(command, target):
    status, _, fault = command(f"show {target} 3")
    assert status == 1
    assert fault.startswith("Traceback")
    assert fault.count('File "') == 1
    assert target.partition(":")[0] in fault


def test_errors_that_primgraph_handles_are_not_told_before_those_of_the_user(command):
    """A thread may keep such an error as the one that it handles, after an interrupt."""
    kernel = pg.compile(pg.trace(pg.sin, pg.spec(3)))
    try:
        kernel(np.ones(4))
    except pg.FeedError as error:
        inner = IndexError("of primgraph").with_traceback(_last_of(error.__traceback__))
    try:
        raise inner
    except IndexError as handled:
        handled.__traceback__ = inner.__traceback__.tb_next
        _, _, fault = command("show broken.py:value 3")
    assert "ZeroDivisionError" in fault
    assert fault.count('File "') == 1


def _last_of(frames):
    """Return the last entry of a traceback."""
    while frames.tb_next is not None:
        frames = frames.tb_next
    return frames


def test_it_is_a_module_and_errors_name_the_command_line(model):
    line = [sys.executable, "-m", "primgraph", "grad", "model.py:energy", "5", "3"]
    done = subprocess.run(line, capture_output=True, text=True, env=_environment())
    assert done.returncode == 1
    assert "f64[3] is input 'stiffness' of the command line" in done.stderr
    assert "__main__" not in done.stderr


def test_a_closed_pipe_is_no_fault(model):
    line = f"{sys.executable} -m primgraph show model.py:net | true"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, env=_environment())
    assert done.stderr == ""


def _environment() -> dict[str, str]:
    package = Path(pg.__file__).parents[1]
    return {"PYTHONPATH": str(package), "PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("f64[3,4]", (3, 4), "f8"),
        ("f32[]", (), "f4"),
        ("i64", (), "i8"),
        ("3,4", (3, 4), "f8"),
        ("7", (7,), "f8"),
        ("bool[2]", (2,), "?"),
        ("f32[n, 2*n+1]", (pg.dim("n"), 2 * pg.dim("n") + 1), "f4"),
        ("N,3", (pg.dim("N"), 3), "f8"),
        ("f64[max(N,2),N]", (pg.dim("N").max(2), pg.dim("N")), "f8"),
    ],
)
def test_types_are_read(text, shape, dtype):
    assert as_type(text) is TensorType(shape, np.dtype(dtype))


@pytest.mark.parametrize("text", ["float64", "f64[3", "f65[3]", "-3", "f64[N+]", "f64[N,int()]"])
def test_other_text_is_no_type(text):
    with pytest.raises(pg.ArgumentError, match="is not a type"):
        as_type(text)
