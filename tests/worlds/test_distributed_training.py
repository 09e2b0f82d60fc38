"""Training and ensembles over chunks, on two worker processes and in this process."""

import io
import json
import os
import subprocess
import sys
import textwrap
import tracemalloc
import zipfile

import numpy as np
import pytest

import primgraph as pg
from primgraph.distributed import training
from primgraph.distributed.engine import engine_of

pytest.importorskip("distributed", reason="dask and distributed are not installed")
pytest.importorskip("dask.array", reason="dask is not installed")

D = pg.distributed
RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 4))
Y = np.sin(X @ np.arange(4.0))
SAMPLES = D.chunks({"x": X, "y": Y}, rows=90)


def network(optimizer=None):
    """A program that trains itself, with a penalty, a bias, and a table by integers."""
    with pg.Program("net") as program:
        x, y = pg.data("x", ("N", 4)), pg.data("y", ("N",))
        w = pg.create_parameter((4, 8), name="w")
        b = pg.create_parameter((8,), name="b", is_bias=True)
        v = pg.create_parameter((8,), name="v")
        loss = pg.mean((pg.tanh(x @ w + b) @ v - y) ** 2) + 0.001 * pg.sum(w * w)
        (optimizer or pg.optimizer.Adam(0.01)).minimize(loss)
    return program, loss


def states(program):
    return {name: array.tobytes() for name, array in program.state_dict().items()}


def test_steps_are_those_of_all_samples_at_once(client):
    for optimizer in (
        pg.optimizer.SGD(0.1),
        pg.optimizer.AdamW(0.01, grad_clip=pg.optimizer.clip_by_global_norm(0.5)),
    ):
        program, loss = network(optimizer)
        start = program.state_dict()
        executor = pg.Executor()
        feed = {"x": X, "y": Y}
        expected = [float(executor.run(program, feed, [loss])[0]) for _ in range(4)]
        after = program.state_dict()
        program.set_state_dict(start)
        found = pg.fit(program, loss, SAMPLES, 4, client=client)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        for name, array in program.state_dict().items():
            np.testing.assert_allclose(array, after[name], rtol=1e-9, atol=1e-13)


def test_what_a_table_learns_is_added_up_by_its_rows(client):
    words = RNG.integers(0, 5, 600)
    with pg.Program("table") as program:
        x, y = pg.data("x", ("N",), "int64"), pg.data("y", ("N",))
        table = pg.create_parameter((5,), name="table")
        loss = pg.mean((table[x] - y) ** 2)
        pg.optimizer.SGD(0.1).minimize(loss)
    start = program.state_dict()
    pg.Executor().run(program, {"x": words, "y": Y}, [loss])
    after = program.state_dict()["table"]
    program.set_state_dict(start)
    pg.fit(program, loss, D.chunks({"x": words, "y": Y}, rows=100), client=client)
    np.testing.assert_allclose(program.state_dict()["table"], after, rtol=1e-12)


class Gone(Exception):
    """The client has gone away."""


def test_training_goes_on_from_its_checkpoint_to_the_same_bits(client, tmp_path):
    options = {"client": client, "chunks_per_step": 2, "shuffle": 5}
    program, loss = network()
    history = pg.fit(program, loss, SAMPLES, 5, **options)
    expected = states(program)
    file = tmp_path / "run.npz"

    def leave(epoch, value):
        if epoch == 2:
            raise Gone

    program, loss = network()
    with pytest.raises(Gone):
        pg.fit(program, loss, SAMPLES, 5, leave, checkpoint=file, **options)
    program, loss = network()
    # All of the cluster may be gone, too: what goes on does so in this process.
    alone = {**options, "client": "threads"}
    assert pg.fit(program, loss, SAMPLES, 5, checkpoint=file, every=3, **alone) == history
    assert states(program) == expected
    # What is finished stays as it is, and goes on where there is more to do.
    program, loss = network()
    assert pg.fit(program, loss, SAMPLES, 5, checkpoint=file, **options) == history
    assert states(program) == expected
    assert len(pg.fit(program, loss, SAMPLES, 6, checkpoint=file, **options)) == 6
    with pytest.raises(pg.OptionError, match="another training"):
        pg.fit(program, loss, SAMPLES, 5, checkpoint=file, client=client)
    file.write_bytes(b"nothing")
    with pytest.raises(pg.LoadError, match="no checkpoint of fit"):
        pg.fit(program, loss, SAMPLES, 5, checkpoint=file, **options)


KILLED = """
import os, signal, sys
import numpy as np
import primgraph as pg
from distributed import Client
sys.path.insert(0, sys.argv[3])
from test_distributed_training import SAMPLES, network

def leave(epoch, value):
    if epoch == 1:
        os.kill(os.getpid(), signal.SIGKILL)

with Client(sys.argv[1], set_as_default=False) as client:
    program, loss = network()
    pg.fit(program, loss, SAMPLES, 4, leave, client=client, checkpoint=sys.argv[2],
           chunks_per_step=3)
"""


def test_a_client_that_is_killed_is_gone_on_from(client, tmp_path, request):
    file = tmp_path / "run.npz"
    address = client.scheduler.address
    command = [sys.executable, "-c", textwrap.dedent(KILLED), address, str(file)]
    done = subprocess.run([*command, str(request.path.parent)], check=False, capture_output=True)
    assert done.returncode == -9, done.stderr
    assert file.exists()
    program, loss = network()
    history = pg.fit(program, loss, SAMPLES, 4, client=client, chunks_per_step=3)
    expected = states(program)
    program, loss = network()
    found = pg.fit(program, loss, SAMPLES, 4, client=client, checkpoint=file, chunks_per_step=3)
    assert found == history
    assert states(program) == expected


def test_what_is_no_checkpoint_is_an_error_and_stays(tmp_path):
    program, loss = network()
    file = tmp_path / "run.npz"
    options = {"client": "threads", "checkpoint": file}
    pg.fit(program, loss, SAMPLES, 1, **options)
    whole = file.read_bytes()
    about = [np.frombuffer(text, np.uint8) for text in (b"{}", b"[]", b"torn")]
    contents = [lambda: file.write_bytes(whole[:300]), lambda: file.write_bytes(b"")]
    contents += [lambda a=a: np.savez(file, about=a) for a in about]
    np.save(tmp_path / "array.npy", np.ones(3))
    contents.append(lambda: file.write_bytes((tmp_path / "array.npy").read_bytes()))
    for write in contents:
        write()
        with pytest.raises(pg.LoadError, match="is no checkpoint of fit"):
            pg.fit(program, loss, SAMPLES, 2, **options)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        options["checkpoint"] = tmp_path / "pipe"
        with pytest.raises(pg.LoadError, match=r"is no checkpoint of fit: .*a named pipe"):
            pg.fit(program, loss, SAMPLES, 2, **options)
    options["checkpoint"] = tmp_path / "nowhere" / "run.npz"
    with pytest.raises(pg.OptionError, match=r"the folder of the checkpoint .* does not exist"):
        pg.fit(program, loss, SAMPLES, 1, **options)


def rewritten(whole, change, method=zipfile.ZIP_STORED):
    """A checkpoint whose members, a dict of arrays by name, `change` has changed."""
    with np.load(io.BytesIO(whole)) as found:
        arrays = {name: found[name] for name in found.files}
    about = json.loads(arrays["about"].tobytes())
    change(about, arrays)
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", method) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array)
    return memory.getvalue()


# Values that entries of a checkpoint are given, most of them of other types.
ODD = (None, True, 1.0, -1, 2, 10**30, "3", "0x1p9999", [], ["x"], [1], {}, float("nan"))


def mutated(whole, rng):
    """A checkpoint with another entry, another array, or other bytes."""
    kind = rng.integers(4)
    if kind == 0:
        content = bytearray(whole)
        for _ in range(rng.integers(1, 6)):
            content[rng.integers(len(content))] = rng.integers(256)
        return bytes(content)

    def change(about, arrays):
        names = sorted(arrays if kind == 3 else about)
        name = names[rng.integers(len(names))]
        if kind == 3 and name != "about":
            array = arrays.pop(name)
            others = [array[None], array.astype("complex64"), array.astype(str), array + 1]
            if (pick := rng.integers(5)) < 4:
                arrays[name] = others[pick]
        elif rng.random() < 0.1:
            about.pop(name, None)
        else:
            about[name] = ODD[rng.integers(len(ODD))]

    return rewritten(whole, change)


def test_mutated_checkpoints_are_refused_or_restored(tmp_path):
    program, loss = network(pg.optimizer.SGD(0.1))
    file = tmp_path / "run.npz"
    trainer = training._Trainer(engine_of("threads"), program, loss, SAMPLES, 3, None)
    place = trainer.restore_progress(file)
    for path in (None, file):
        trainer.finish_epoch(place, path, 2)
    place.losses.append(trainer.step(trainer.steps(2)[0]))
    place.steps += 1
    trainer.save(file, place)
    whole = file.read_bytes()
    refused = 0
    for seed in range(300):
        file.write_bytes(mutated(whole, np.random.default_rng(seed)))
        before = states(program)
        try:
            found = trainer.restore_progress(file)
        except (pg.LoadError, pg.OptionError):
            refused += 1
            assert states(program) == before, "a refused checkpoint has changed states"
            continue
        assert (found.steps, trainer.count, len(found.losses), len(found.history)) == (1, 7, 1, 2)
        if seed % 10 == 0:
            trainer.finish_epoch(found, None, 1)
    assert 200 < refused < 300


def test_a_checkpoint_is_not_inflated(tmp_path):
    program, loss = network(pg.optimizer.SGD(0.1))
    file = tmp_path / "run.npz"
    options = {"client": "threads", "checkpoint": file}
    pg.fit(program, loss, SAMPLES, 1, **options)
    whole = file.read_bytes()
    zeros = np.zeros(2**24)
    for name in ("about", "state w"):
        bomb = rewritten(whole, lambda _, a, n=name: a.update({n: zeros}), zipfile.ZIP_DEFLATED)
        if name == "about":
            bomb = rewritten(whole, lambda about, _: about.update(pad=" " * 2**24), 8)
        file.write_bytes(bomb)
        assert len(bomb) < 2**20
        tracemalloc.start()
        try:
            with pytest.raises(pg.LoadError, match="is no checkpoint of fit"):
                pg.fit(program, loss, SAMPLES, 2, **options)
            assert tracemalloc.get_traced_memory()[1] < 2**23
        finally:
            tracemalloc.stop()


def test_training_refuses_what_it_cannot_do(client):
    program, loss = network()
    with pytest.raises(pg.ArgumentError, match="every is an integer"):
        pg.fit(program, loss, SAMPLES, 1, client=client, every=0)
    with pytest.raises(pg.OptionError, match="checkpoint is for training with a client"):
        pg.fit(program, loss, [{"x": X, "y": Y}], 1, checkpoint="run.npz")
    for option in ({"shuffle": 0}, {"every": 2}, {"chunks_per_step": 1}):
        with pytest.raises(pg.OptionError, match="is for training with a client"):
            pg.fit(program, loss, [{"x": X, "y": Y}], 1, **option)
    for shuffle in (-1, 1.5, True):
        with pytest.raises(pg.ArgumentError, match="shuffle is an integer"):
            pg.fit(program, loss, SAMPLES, 1, client=client, shuffle=shuffle)
    with pytest.raises(pg.ArgumentError, match="a client trains programs"):
        pg.fit(lambda x: x, pg.optimizer.SGD(0.1), SAMPLES, 1, client=client)
    with pytest.raises(pg.FeedError, match="missing 'y'"):
        pg.fit(program, loss, {"x": X}, 1, client=client)
    with pg.Program("centred") as program:
        x = pg.data("x", ("N", 4))
        w = pg.create_parameter((4,), name="w")
        loss = pg.mean(((x - pg.mean(x, axis=0)) @ w - 1.0) ** 2)
        pg.optimizer.SGD(0.1).minimize(loss)
    with pytest.raises(pg.MixedSamplesError, match="beside a sum over all"):
        pg.fit(program, loss, {"x": X}, 1, client=client)
    with pg.Program("fixed") as program:
        x = pg.data("x", (600, 4))
        loss = pg.mean((x @ pg.create_parameter((4,), name="w")) ** 2)
        pg.optimizer.SGD(0.1).minimize(loss)
    with pytest.raises(pg.ArgumentError, match="data has no arrays"):
        pg.fit(program, loss, {"x": X}, 1, client=client)


def test_a_programs_objective_goes_to_scipy_in_three_lines(client):
    optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")
    with pg.Program("line") as program:
        x, y = pg.data("x", ("N", 4)), pg.data("y", ("N",))
        loss = pg.mean((x @ pg.create_parameter((4,), name="w") - y) ** 2)
    total = pg.scipy_objective(program, loss, feed=SAMPLES, client=client)
    found = optimize.minimize(total.fun_and_jac, total.x0, jac=True, method="L-BFGS-B")
    total.assign(found.x)
    expected = np.linalg.lstsq(X, Y, rcond=None)[0]
    np.testing.assert_allclose(program.state_dict()["w"], expected, atol=1e-4)


# Ensembles.


def solved(member, key):
    start = pg.random.normal(key, (3,))
    end = pg.fori_loop(0, 10, lambda i, c: c * member["a"] + member["b"], start)
    return {"end": end, "sum": pg.sum(start)}


MEMBERS = {"a": np.linspace(0.1, 1.0, 20), "b": np.arange(20.0)}


def test_members_have_keys_of_their_own_and_the_bits_they_have_alone(client, tmp_path):
    found = D.vmap(solved, MEMBERS, key=3)
    assert found["end"].shape == (20, 3)
    assert len(set(found["sum"])) == 20
    for options in ({"block": 7}, {"client": client, "block": 3}):
        other = D.vmap(solved, MEMBERS, key=3, **options)
        for name in found:
            np.testing.assert_array_equal(other[name], found[name])
    lazy = D.vmap(solved, MEMBERS, key=3, client=client, out=tmp_path / "members")
    np.testing.assert_array_equal(lazy["end"].compute(scheduler="threads"), found["end"])
    assert not np.array_equal(D.vmap(solved, MEMBERS, key=4)["sum"], found["sum"])
    np.testing.assert_array_equal(D.vmap(lambda x: 2.0 * x, np.arange(4.0)), np.arange(4.0) * 2)
    assert D.vmap(lambda key: pg.random.uniform(key, ()), 5, key=1).shape == (5,)


def drawn(member, key):
    if member["b"] == 13 and member["a"] < 0:
        raise ValueError("this one fails")
    return {"v": np.random.default_rng(key).normal(size=2) * member["b"]}


def test_a_restart_leaves_out_what_is_done(tmp_path):
    folder = tmp_path / "trained"
    bad = {**MEMBERS, "a": -MEMBERS["a"]}
    options = {"key": 1, "block": 4, "compiled": False}
    with pytest.raises(pg.RunError, match="member 13 failed: ValueError: this one fails"):
        D.vmap(drawn, bad, out=tmp_path / "bad", **options)
    found = D.vmap(drawn, MEMBERS, out=folder, **options)
    files = sorted(folder.glob("members-*.npz"))
    assert len(files) == 5
    expected = found["v"].compute(scheduler="threads")
    np.testing.assert_array_equal(D.vmap(drawn, MEMBERS, **options)["v"], expected)
    times = [f.stat().st_mtime_ns for f in files]
    files[2].unlink()
    again = D.vmap(drawn, MEMBERS, out=folder, **options)
    np.testing.assert_array_equal(again["v"].compute(scheduler="threads"), expected)
    kept = [f.stat().st_mtime_ns == t for f, t in zip(files, times, strict=True)]
    assert kept == [True, True, False, True, True]
    with pytest.raises(pg.OptionError, match="results of another ensemble"):
        D.vmap(drawn, bad, out=folder, **options)


def test_a_restart_asks_what_is_computed_and_not_in_which_line(tmp_path):
    def above(x):
        return pg.sin(x) * 2.0

    first = D.vmap(above, np.arange(6.0), out=tmp_path / "lines", block=3)

    def above(x):

        return pg.sin(x) * 2.0

    again = D.vmap(above, np.arange(6.0), out=tmp_path / "lines", block=3)
    np.testing.assert_array_equal(*(a.compute(scheduler="threads") for a in (first, again)))
    with pytest.raises(pg.OptionError, match="results of another ensemble"):
        D.vmap(lambda x: pg.sin(x) * 3.0, np.arange(6.0), out=tmp_path / "lines", block=3)


def test_ensembles_refuse_what_are_no_members():
    for over in (0, np.float64(3.0), {"a": np.ones(3), "b": np.ones(4)}, np.ones((0, 2))):
        with pytest.raises(pg.ArgumentError, match="member"):
            D.vmap(lambda x: x, over)
    with pytest.raises(pg.ArgumentError, match="a dict of arrays"):
        D.vmap(lambda x: "text", np.ones(2), compiled=False)
    with pytest.raises(pg.ArgumentError, match="block is an integer"):
        D.vmap(lambda x: x, np.ones(2), block=0)
    with pytest.raises(pg.ArgumentError, match="a dict without arrays"):
        D.vmap(lambda x: {}, np.ones(2), compiled=False)


def squared(x):
    return x * x


def test_files_of_members_that_are_damaged_are_named(tmp_path):
    options = {"block": 2, "out": tmp_path / "ends"}
    found = D.vmap(squared, np.arange(4.0), **options)
    first, second = sorted(options["out"].glob("members-*.npz"))
    second.write_bytes(second.read_bytes()[:100])
    with pytest.raises(pg.LoadError, match=f"{second.name} has no results"):
        found.compute(scheduler="threads")
    first.write_bytes(b"")
    with pytest.raises(pg.LoadError, match=rf"{first.name} has no results(.|\n)*remove it"):
        D.vmap(squared, np.arange(4.0), **options)
    first.unlink()
    second.unlink()
    again = D.vmap(squared, np.arange(4.0), **options)
    np.testing.assert_array_equal(again.compute(scheduler="threads"), np.arange(4.0) ** 2)
    with pytest.raises(pg.OptionError, match="out is a folder"):
        D.vmap(squared, np.arange(4.0), out=first)


def test_members_return_the_same_arrays(tmp_path):
    for block in (1, 2, 3):
        for f, words in (
            (lambda x: np.ones(int(x) + 1), r"member \d returned result: .*shape \(\d,\)"),
            (lambda x: {"a" if x < 1 else "b": x}, r"member 1 returned b: .* member 0 a: "),
        ):
            with pytest.raises(pg.ShapeError, match=words):
                D.vmap(f, np.arange(3.0), compiled=False, block=block)
            folder = tmp_path / f"{block}{len(words)}"
            with pytest.raises(pg.ShapeError, match=words):
                D.vmap(f, np.arange(3.0), compiled=False, block=block, out=folder)


def test_results_have_any_names_and_belong_to_the_code_that_made_them(tmp_path):
    options = {"compiled": False, "out": tmp_path / "named"}
    found = D.vmap(lambda x: {"file": x, "self/1": -x}, np.arange(3.0), **options)
    np.testing.assert_array_equal(found["file"].compute(scheduler="threads"), np.arange(3.0))
    np.testing.assert_array_equal(found["self/1"].compute(scheduler="threads"), -np.arange(3.0))
    D.vmap(lambda x: {"file": x, "self/1": -x}, np.arange(3.0), **options)
    with pytest.raises(pg.OptionError, match="another ensemble: of another function"):
        D.vmap(lambda x: {"file": x, "self/1": -2.0 * x}, np.arange(3.0), **options)
