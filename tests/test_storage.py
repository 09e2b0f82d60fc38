"""Saved programs: what comes back, and what is refused."""

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import primgraph as pg
from primgraph import initializers

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
    "missing state": lambda m: m.pop("states/000000.npy"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_any_damage_is_a_load_error(tmp_path, kind):
    pg.save(trained(), tmp_path / "p")
    (tmp_path / "q").write_bytes(rewritten((tmp_path / "p").read_bytes(), DAMAGE[kind]))
    with pytest.raises(pg.LoadError):
        pg.load(tmp_path / "q")


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
