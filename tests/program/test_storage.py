"""Saved programs: what comes back, and what is refused."""

import hashlib
import io
import json
import os
import pickle
import stat
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import primgraph as pg
from primgraph import initializers
from primgraph.base.user_lines import Source

RNG = np.random.default_rng(3)


def trained() -> pg.Program:
    """A program with constants, operators, parameters, named variables and updates."""
    with pg.Program("model") as program:
        program.random_seed = 7
        x, labels = pg.data("x", (5, 3)), pg.data("labels", (5,), "int64")
        w = pg.create_parameter((3, 4), name="w")
        b = pg.create_parameter((4,), is_bias=True, name="b")
        scaled = x * np.array([1.0, -2.0, 0.5])
        logits = pg.linear(scaled, w, b)
        logits.name = "logits"
        loss = pg.cross_entropy(logits, labels)
        loss.name = "loss"
        pg.optimizer.Adam(0.1).minimize(loss)
    return program


FEED = {"x": RNG.standard_normal((5, 3)), "labels": np.array([0, 1, 2, 3, 0])}


def test_a_loaded_program_runs_trains_and_differentiates(tmp_path):
    program = trained()
    run = pg.Executor().run
    for _ in range(3):
        run(program, FEED, ["loss"])
    pg.save(program, tmp_path / "model.pgz")
    again = pg.load(tmp_path / "model.pgz")
    assert again.graph() == program.graph()
    assert again.name == "model"
    assert again.random_seed == 7
    for name, value in program.state_dict().items():
        assert again.state_dict()[name].tobytes() == value.tobytes()
    for _ in range(3):
        expected, found = (run(p, FEED, ["loss", "logits", "w"]) for p in (program, again))
        for one, other in zip(expected, found, strict=True):
            assert one.tobytes() == other.tobytes()
    with again:
        g = pg.grad(again.variable("loss"), again.variable("x"))
    assert run(again, FEED, [g])[0].shape == (5, 3)
    assert [v.name for v in again.parameters()] == ["w", "b"]


def test_values_held_constant_stay_so(tmp_path):
    with pg.Program() as program:
        x = pg.data("x", (3,))
        h = x * x
        h.name = "h"
        h.stop_gradient = True
        y = pg.sum(h * x)
        y.name = "y"
    pg.save(program, tmp_path / "p")
    again = pg.load(tmp_path / "p")
    assert again.variable("h").stop_gradient
    with again:
        g = pg.grad(again.variable("y"), again.variable("x"))
    (found,) = pg.Executor().run(again, {"x": [1.0, 2.0, 3.0]}, [g])
    np.testing.assert_array_equal(found, [1, 4, 9])


def test_the_same_program_saves_to_the_same_bytes(tmp_path):
    code = (
        "import sys; import primgraph as pg\n"
        "with pg.Program() as p:\n"
        "    x = pg.data('x', (2, 3)); w = pg.create_parameter((3, 2), name='w')\n"
        "    pg.optimizer.SGD(0.1).minimize(pg.sum(pg.softmax(x @ w) ** 2))\n"
        "pg.Executor().run(p, {'x': [[1, 2, 3], [4, 5, 6]]}, [])\n"
        "pg.save(p, sys.argv[1])\n"
    )
    contents = set()
    for seed in range(3):
        path = tmp_path / f"{seed}.pgz"
        env = {**os.environ, "PYTHONHASHSEED": str(seed)}
        subprocess.run([sys.executable, "-c", code, str(path)], env=env, check=True)
        contents.add(path.read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize(
    "value", [np.inf, -np.inf, np.nan, -0.0, 5e-324, np.array([1.0, -0.0, np.nan, np.inf])]
)
def test_special_constants_survive(tmp_path, value):
    with pg.Program() as program:
        y = pg.data("x", np.shape(value)) + value
        z = pg.array(value)
        z.name = "z"
        y.name = "y"
    pg.save(program, tmp_path / "p")
    (found,) = pg.Executor().run(pg.load(tmp_path / "p"), {}, ["z"])
    assert found.tobytes() == np.asarray(value).tobytes()


def test_states_come_from_the_scope_that_is_named(tmp_path):
    program = trained()
    scope = pg.Scope()
    pg.Executor(scope).run(program, FEED, ["loss"])
    pg.save(program, tmp_path / "p", scope)
    loaded = pg.load(tmp_path / "p").state_dict()
    np.testing.assert_array_equal(loaded["w"], scope.get("w"))
    assert not np.array_equal(loaded["w"], program.state_dict()["w"])


def test_a_place_where_nothing_can_be_written_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        pg.save(trained(), tmp_path / "missing" / "a.pgz")
    assert caught.value.filename == str(tmp_path / "missing" / "a.pgz")


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002, 0o000])
def test_a_file_has_the_mode_that_open_gives(tmp_path, umask):
    code = (
        "import os, sys; import primgraph as pg; os.umask(int(sys.argv[2]))\n"
        "with pg.Program() as p: pg.create_parameter((2,), name='w')\n"
        "pg.save(p, sys.argv[1])\n"
        "open(sys.argv[1] + '.other', 'w').close()\n"
    )
    path = tmp_path / "p"
    subprocess.run([sys.executable, "-c", code, str(path), str(umask)], check=True)
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (path, tmp_path / "p.other")]
    assert modes == [0o666 & ~umask] * 2


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_file_that_is_replaced_keeps_its_mode_and_its_links(tmp_path):
    path, link = tmp_path / "p", tmp_path / "link"
    pg.save(trained(), path)
    link.symlink_to(path)
    for mode in (0o600, 0o640, 0o444, 0o664):
        path.chmod(mode)
        pg.save(trained(), link)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert link.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "p"]


@pytest.mark.skipif(os.name != "posix", reason="devices are those of POSIX")
def test_what_is_no_file_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        pg.save(trained(), pipe)
        sent = reader.communicate(timeout=60)[0]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "p").write_bytes(sent)
    assert pg.load(tmp_path / "p").name == "model"
    with pytest.raises(IsADirectoryError):
        pg.save(trained(), tmp_path)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "p"
    pg.save(trained(), path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        pg.save(trained(), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["p"]
    with pytest.raises(pg.ArgumentError):
        pg.save("program", path)


def test_the_lines_of_code_are_kept_in_the_file(tmp_path):
    program = trained()
    pg.save(program, tmp_path / "p")
    sources = []
    for one in (program, pg.load(tmp_path / "p")):
        sources.append(pg.Executor().kernel(one, ["loss"]).source)
    assert sources[0] == sources[1]
    assert "logits = pg.linear(scaled, w, b)" in sources[1]


# Does all that shows where equations come from, in a process of its own, and tells what it looked
# for: no file is opened, and no line of a file asked for, because a place names it.
LOOK = """
import linecache, pickle, sys

opened, asked = [], []
import primgraph as pg

pg.compile(pg.parse("graph f(%x: f64[]) {\\n%0: f64[] = tanh(%x)\\nreturn %0\\n}")).source
before = linecache.updatecache
linecache.updatecache = lambda file, *rest: asked.append(file) or before(file, *rest)
sys.addaudithook(lambda event, given: opened.append(given[0]) if event == "open" else None)
for path, named in zip(sys.argv[1::2], sys.argv[2::2]):
    opened.clear()
    asked.clear()
    if path.endswith(".pgz"):
        program = pg.load(path)
        graph = program.graph()
    else:
        with open(path, "rb") as file:
            graph = program = pickle.load(file)
    kernel = pg.compile(graph)
    texts = [kernel.source, kernel.planned_source, str(graph), str(pg.steps(graph).to_html())]
    forms = ("svg", "html", "dot", "mermaid")
    texts += [getattr(x, f"to_{form}")() for x in (graph, kernel) for form in forms]
    texts += [str(pg.cost(kernel)), str(pg.diff(graph, pg.transforms.lower(graph))), repr(program)]
    graph.show()
    kernel.save(path + ".py")
    texts.append(open(path + ".py").read())
    for wrong in ([], [[1.0] * 7] * len(graph.inputs)):
        try:
            kernel(*wrong)
        except pg.PrimgraphError as error:
            texts.append(str(error))
    again = pickle.loads(pickle.dumps(kernel))
    assert again.source == kernel.source
    assert "tanh" in "".join(texts) or "2.0" in "".join(texts)
    print("".join(texts))
    assert named not in opened and named not in asked, f"{named} was opened"
"""


def naming(path, kind, named):
    """Write a program or graph whose equations say that they come from the file `named`."""
    if kind == "pgz":
        pg.save(trained(), path)

        def change(members):
            described = json.loads(members["program.json"])
            for i, row in enumerate(described["body"]):
                row[4] = [named, 1 + i % 3, "", "", row[4][4]]
            members["program.json"] = json.dumps(described).encode()

        path.write_bytes(rewritten(path.read_bytes(), change))
    else:
        with pg.Builder(source=Source(named, 2)) as builder:
            x = builder.input(pg.spec(3))
            graph = builder.graph([pg.Variable(builder, x).value * 2.0])
        path.write_bytes(pickle.dumps(graph))


def test_no_file_is_read_because_a_place_names_it(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("first\nhunter2\n", encoding="utf-8")
    pairs = []
    for kind in ("pgz", "pickle"):
        for named in (str(secret), "/proc/self/environ", "/dev/zero", "/etc/hostname"):
            path = tmp_path / f"p{len(pairs)}.{kind}"
            naming(path, kind, named)
            pairs += [str(path), named]
    run = subprocess.run(
        [sys.executable, "-c", LOOK, *pairs],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "CANARY": "hunter2", "PYTHONPATH": str(Path(pg.__file__).parents[1])},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "hunter2" not in run.stdout


def test_what_a_file_says_that_a_line_was_is_printable_and_short(tmp_path):
    pg.save(trained(), tmp_path / "p")
    text = "\x1b[2Jy = \u202e\n" + "x" * 10_000
    changed = edit(["lines"], [text] * 50)
    (tmp_path / "q").write_bytes(rewritten((tmp_path / "p").read_bytes(), changed))
    sources = {e.source for e in pg.load(tmp_path / "q").graph().body if e.source}
    assert sources
    assert all(s.text.isprintable() and len(s.text) < 1000 for s in sources)


def rewritten(source: bytes, change, resign=True) -> bytes:
    """The archive with its members changed by a function of a dictionary."""
    with zipfile.ZipFile(io.BytesIO(source)) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    change(members)
    if resign:
        manifest = json.loads(members["manifest.json"])
        manifest["members"] = {
            n: [len(d), hashlib.sha256(d).hexdigest()]
            for n, d in members.items()
            if n != "manifest.json"
        }
        members["manifest.json"] = json.dumps(manifest).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def edit(path, value):
    """A change of one place of program.json."""

    def change(members):
        described = json.loads(members["program.json"])
        place = described
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        members["program.json"] = json.dumps(described).encode()

    return change


def bomb(members):
    """An array whose header promises ten gigabytes."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (1_250_000_000,)}
    )
    members["states/000000.npy"] = buffer.getvalue()


def pickled(members):
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}], object), allow_pickle=True)
    members["states/000000.npy"] = buffer.getvalue()


DAMAGE = {
    "unknown op": edit(["body", 0, 0], "no_such_op"),
    "operand out of range": edit(["body", 0, 1], [10**6]),
    "negative operand": edit(["body", 0, 1], [-1]),
    "operand is no number": edit(["body", 0, 1], ["x"]),
    "parameter that is code": edit(["body", 0, 2], {"value": {"__import__": "os"}}),
    "wrong type": edit(["body", 0, 3], ["f32[7]"]),
    "type is text": edit(["inputs", 0, 1], "f64[" + "9" * 400 + "]"),
    "no such dtype": edit(["inputs", 0, 1], "o64[3]"),
    "hidden character in a name": edit(["inputs", 0, 0], 5),
    "update of an input": edit(["updates"], [[0, 0]]),
    "body is missing": lambda m: m.update({"program.json": b"{}"}),
    "program is a list": lambda m: m.update({"program.json": b"[]"}),
    "program is no JSON": lambda m: m.update({"program.json": b"{"}),
    "JSON with NaN": lambda m: m.update({"program.json": b'{"a": NaN}'}),
    "deep JSON": lambda m: m.update({"program.json": b"[" * 100_000}),
    "array bomb": bomb,
    "pickle": pickled,
    "extra member": lambda m: m.update({"kernel.py": b"1/0"}),
    "path that leaves": lambda m: m.update({"../evil.npy": b""}),
    "update of another type": edit(["updates", 0, 1], 0),
    "array of another type": lambda m: m.update({"states/000000.npy": m["constants/000000.npy"]}),
    "array that is missing": lambda m: m.pop("constants/000000.npy"),
    "array that nothing needs": lambda m: m.update({"states/000099.npy": m["states/000000.npy"]}),
    "more elements than there can be": edit(["inputs", 0, 1], f"f64[{2**62},4]"),
    "text of a line that is none": edit(["lines"], [3] * 50),
    "file of a line that is none": edit(["body", 0, 4], [3, 1, "", "", 0]),
    "place of an earlier format": edit(["body", 0, 4], ["a.py", 1, ""]),
    "missing state": lambda m: m.pop("states/000000.npy"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_any_damage_is_a_load_error(tmp_path, kind):
    pg.save(trained(), tmp_path / "p")
    (tmp_path / "q").write_bytes(rewritten((tmp_path / "p").read_bytes(), DAMAGE[kind]))
    with pytest.raises(pg.LoadError):
        pg.load(tmp_path / "q")


def inflated(members, size):
    """State 0, all zeros, of another size than its type has."""
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(size))
    members["states/000000.npy"] = buffer.getvalue()


BOMBS = {
    "state": lambda m: inflated(m, 2**23),
    "array that nothing needs": lambda m: m.update({"constants/000009.npy": bytes(2**26)}),
    "manifest": lambda m: m.update({"manifest.json": b" " * 2**26 + m["manifest.json"]}),
    "program": lambda m: m.update({"program.json": b" " * 2**26 + m["program.json"]}),
    "JSON objects": lambda m: m.update({"program.json": b'{"a":[' + b"[]," * 2**24 + b"0]}"}),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_what_is_too_large_is_refused_before_it_is_unpacked(tmp_path, kind):
    pg.save(trained(), tmp_path / "p")
    data = rewritten((tmp_path / "p").read_bytes(), BOMBS[kind], resign=kind != "manifest")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "q", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert (tmp_path / "q").stat().st_size < 2**18
    del members, data
    tracemalloc.start()
    try:
        with pytest.raises(pg.LoadError):
            pg.load(tmp_path / "q")
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_a_member_that_unpacks_to_more_than_it_says_is_not_unpacked(tmp_path):
    pg.save(trained(), tmp_path / "p")
    with zipfile.ZipFile(tmp_path / "p") as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "q", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            more = bytes(2**26) if name == "states/000000.npy" else b""
            archive.writestr(name, content + more)
        for name, content in members.items():
            archive.getinfo(name).file_size = len(content)
    tracemalloc.start()
    try:
        with pytest.raises(pg.LoadError):
            pg.load(tmp_path / "q")
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_programs_of_zeros_and_of_repetition_are_loaded(tmp_path):
    with pg.Program() as program:
        w = pg.create_parameter((2**21,), name="w", initializer=initializers.Constant(0.0))
        x = pg.data("x", (2,))
        for _ in range(3000):
            x = pg.sin(x)
        pg.sum(x) + pg.sum(w)
    pg.save(program, tmp_path / "p")
    assert (tmp_path / "p").stat().st_size < 2**17
    again = pg.load(tmp_path / "p")
    assert again.graph() == program.graph()
    assert not again.state_dict()["w"].any()


def test_unsigned_changes_truncation_and_other_files_are_refused(tmp_path):
    pg.save(trained(), tmp_path / "p")
    data = (tmp_path / "p").read_bytes()
    changed = rewritten(data, edit(["seed"], 8), resign=False)
    for content in (changed, b"", b"PK", pickle.dumps(3), b"\x00" * 100, data + b"x" * 70_000):
        (tmp_path / "q").write_bytes(content)
        with pytest.raises(pg.LoadError):
            pg.load(tmp_path / "q")
    for length in range(0, len(data), max(len(data) // 60, 1)):
        (tmp_path / "q").write_bytes(data[:length])
        with pytest.raises(pg.LoadError):
            pg.load(tmp_path / "q")
    with pytest.raises(pg.LoadError, match="cannot read"):
        pg.load(tmp_path / "not there")


def test_random_bytes_never_do_anything_else(tmp_path):
    with pg.Program() as program:
        pg.create_parameter((2,), name="w", initializer=initializers.Constant(2.0))
    pg.save(program, tmp_path / "p")
    data = bytearray((tmp_path / "p").read_bytes())
    for _ in range(300):
        broken = bytearray(data)
        for place in RNG.integers(0, len(data), RNG.integers(1, 4)):
            broken[place] = RNG.integers(0, 256)
        (tmp_path / "q").write_bytes(broken)
        try:
            loaded = pg.load(tmp_path / "q")
        except pg.LoadError:
            continue
        np.testing.assert_array_equal(loaded.state_dict()["w"], [2, 2])
