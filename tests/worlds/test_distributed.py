"""Sums, maps and plans over chunks, on two worker processes and in this process."""

import contextlib
import gc
import os
import random
import signal
import threading
import time
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest

import primgraph as pg

pytest.importorskip("distributed", reason="dask and distributed are not installed")
pytest.importorskip("dask.array", reason="dask is not installed")

import dask
import dask.array as da
import dask.bag as db
from distributed import Client, LocalCluster, get_worker

from primgraph.distributed.engine import Engine
from primgraph.distributed.tasks import process_statistics

D = pg.distributed
ROWS = 1_050


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, 4))
    return x, np.sign(x @ np.arange(4.0) + rng.standard_normal(ROWS))


START = {"w": np.array([0.3, -0.2, 0.1, 0.5]), "b": np.array(0.25)}


def loss(params, x, y):
    margin = y * (x @ params["w"] + params["b"])
    return np.mean(np.log1p(np.exp(-margin))) + 0.1 * np.sum(params["w"] ** 2)


def bits(result):
    value, gradients = result
    return value.tobytes(), *(gradients[name].tobytes() for name in gradients)


@pytest.fixture(scope="module")
def files(samples, tmp_path_factory):
    folder = tmp_path_factory.mktemp("chunks")
    names = []
    for i, start in enumerate(range(0, ROWS, 100)):
        names.append(str(folder / f"part{i}.npz"))
        part = slice(start, start + 100)
        np.savez(names[-1], x=samples[0][part], y=samples[1][part])
    for name, array in zip("xy", samples, strict=True):
        np.save(folder / f"{name}.npy", array)
    return folder, names


def read(name):
    with np.load(name) as found:
        return found["x"], found["y"]


def lazily(number):
    time.sleep(float(number))
    return np.ones((3, 1))


def read_or_fail(name):
    if name.endswith("part4.npz"):
        raise OSError("the disk is gone")
    return read(name)


def test_every_kind_of_data_gives_the_same_bits(client, samples, files):
    """Chunks of 100 rows, the last of 50: wherever they come from, and wherever tasks run."""
    folder, names = files
    x, y = samples
    mapped = tuple(np.load(folder / f"{n}.npy", mmap_mode="r") for n in "xy")
    lazy = da.from_array(x, chunks=(100, 4)), da.from_array(y, chunks=100)
    delayed = [dask.delayed(read)(name) for name in names]
    kinds = {
        "arrays": D.chunks(samples, rows=100),
        "memory maps": D.chunks(mapped, rows=100),
        "dask arrays": lazy,
        "files": D.chunks(names, read),
        "delayed chunks": delayed,
        "bag": db.from_delayed([dask.delayed(lambda part: [part])(part) for part in delayed]),
    }
    expected = pg.value_and_grad(loss)(START, x, y)
    first = D.value_and_grad(loss)(START, kinds["arrays"])
    assert bits(D.value_and_grad(loss)(START, *samples)) == bits(
        D.value_and_grad(loss)(START, samples)
    )
    np.testing.assert_allclose(first[0], expected[0], rtol=1e-13)
    for name in START:
        np.testing.assert_allclose(first[1][name], expected[1][name], rtol=1e-12, atol=1e-15)
    for name, data in kinds.items():
        for where in (None, client):
            assert bits(D.value_and_grad(loss, client=where)(START, data)) == bits(first), name


def test_futures_and_other_byte_orders_are_data_too(client, samples):
    expected = bits(D.value_and_grad(loss)(START, D.chunks(samples, rows=100)))
    parts = [slice(start, start + 100) for start in range(0, ROWS, 100)]
    futures = [client.scatter(tuple(a[part] for a in samples)) for part in parts]
    assert isinstance(futures[0], tuple)
    swapped = tuple(a.astype(">f8") for a in samples)
    for data in (futures, D.chunks(swapped, rows=100)):
        assert bits(D.value_and_grad(loss, client=client)(START, data)) == expected


def test_bits_do_not_depend_on_the_number_of_workers(cluster, client, samples):
    data = D.chunks(samples, rows=90)
    expected = bits(D.value_and_grad(loss, client=client)(START, data))
    try:
        for count in (1, 4):
            cluster.scale(count)
            wait_for_workers(client, count)
            assert bits(D.value_and_grad(loss, client=client)(START, data)) == expected
    finally:
        cluster.scale(2)
        wait_for_workers(client, 2)


def wait_for_workers(client, count):
    """Wait for so many workers, without `client.wait_for_workers`.

    That replaces what the cluster knows of its workers by what the scheduler knows; a worker that
    has just died is then unknown when it is reported, by which dask's cluster does not close.
    """
    end = time.monotonic() + 60
    while len(client.scheduler_info(n_workers=-1)["workers"]) != count:
        assert time.monotonic() < end, client
        time.sleep(0.05)


def tasks_of(client):
    """How many chunks each worker has computed so far."""
    return {worker: spent["tasks"] for worker, spent in client.run(process_statistics).items()}


def test_bits_do_not_depend_on_where_tasks_run_nor_on_their_order(client, samples):
    """Workers and turns are drawn for each task, as dask's annotations ask for them."""
    total = D.objective(loss, START, D.chunks(samples, rows=50), client)
    expected = bits(total.value_and_grad())
    workers = sorted(tasks_of(client))
    rng = random.Random(0)
    orders = {
        "one worker": {"workers": [workers[1]]},
        "drawn workers": {"workers": lambda key: [rng.choice(workers)]},
        "drawn turns": {"priority": lambda key: rng.random()},
    }
    shares = {}
    for name, asked in orders.items():
        before = tasks_of(client)
        with dask.annotate(**asked):
            assert bits(total.value_and_grad()) == expected, name
        after = tasks_of(client)
        shares[name] = [after[w] - before[w] for w in workers]
    assert shares["one worker"] == [0, 21]
    assert 0 < shares["drawn workers"][0] < 21


def drawn_slowly(name):
    """Rows by the number in their name; every fourth worker takes its time, so that it is worth
    the tenth of a second that dask takes a theft to cost."""
    with contextlib.suppress(ValueError):  # in a thread that is no worker's
        time.sleep(0.2 if get_worker().name % 4 == 0 else 0.01)
    return np.random.default_rng(int(name)).standard_normal((10, 4))


def test_bits_do_not_depend_on_which_of_sixteen_workers_steals():
    data = D.chunks([str(i) for i in range(150)], drawn_slowly)
    expected = bits_of(D.objective(slow_loss, START["w"], data, "threads"))
    eager = {
        "distributed.scheduler.worker-saturation": float("inf"),
        "distributed.scheduler.work-stealing-interval": "10ms",
    }
    with (
        dask.config.set(eager),
        LocalCluster(
            n_workers=16, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as many,
        Client(many, set_as_default=False) as client,
    ):
        assert bits_of(D.objective(slow_loss, START["w"], data, client)) == expected
        stolen = many.scheduler.extensions["stealing"].metrics["request_count_total"]
        assert sum(stolen.values()) > 0


def test_products_with_second_derivatives(client, samples):
    vector = {"w": np.array([1.0, -1.0, 0.5, 2.0]), "b": np.array(0.5)}
    data = D.chunks(samples, rows=200)
    found = D.hessian_product(loss, START, vector, data, client)
    _, expected = pg.hvp(lambda p: loss(p, *samples), START, vector)
    for name in START:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-10)

    def residuals(params, x, y):
        return pg.tanh(x @ params["w"] + params["b"]) - y

    found = D.gauss_newton_product(residuals, START, vector, data, client)
    jac = pg.jacobian(lambda p: residuals(p, *samples))(START)
    matrix = np.concatenate([jac["w"], jac["b"][:, None]], axis=1)
    flat = matrix.T @ (matrix @ np.concatenate([vector["w"], [vector["b"]]]))
    np.testing.assert_allclose(found["w"], flat[:4], rtol=1e-10)
    np.testing.assert_allclose(found["b"], flat[4], rtol=1e-10)
    with pytest.raises(pg.ShapeError, match="no row for each sample"):
        D.gauss_newton_product(loss, START, vector, data)


def test_an_objective_goes_into_minimize(client, samples):
    optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")
    total = D.objective(loss, START, D.chunks(samples, rows=300), client)
    found = optimize.minimize(total.fun_and_jac, total.x0, jac=True, method="L-BFGS-B")
    assert found.success
    value, gradients = total.value_and_grad(total.unflatten(found.x))
    assert value == found.fun
    assert max(np.abs(g).max() for g in gradients.values()) < 1e-4
    rows = [total.hessp(found.x, e) for e in np.eye(total.size)]
    np.testing.assert_allclose(rows, np.transpose(rows), atol=1e-12)


def test_a_map_is_a_lazy_array_of_known_type(client, samples):
    x = da.from_array(samples[0], chunks=(200, 4))
    found = D.map(lambda x: {"s": np.tanh(x @ np.arange(4.0)), "positive": x > 0}, x)
    assert found["s"].chunks == ((200,) * 5 + (50,),)
    assert found["positive"].dtype == bool
    assert found["positive"].shape == samples[0].shape
    expected = np.tanh(samples[0] @ np.arange(4.0))
    np.testing.assert_allclose(client.compute(found["s"]).result(), expected)
    np.testing.assert_array_equal(found["positive"].compute(scheduler="threads"), samples[0] > 0)
    centred = D.map(lambda p, x: x * p["w"], x, START)
    np.testing.assert_array_equal(
        centred.sum(axis=1).compute(scheduler="threads"), (samples[0] * START["w"]).sum(axis=1)
    )
    with pytest.raises(pg.MixedSamplesError, match="beside a sum over all"):
        D.map(lambda x: x - x.mean(axis=0), x)


def test_rows_of_jacobians(samples):
    def scores(params, x):
        return pg.tanh(x @ params["w"] + params["b"])

    x = da.from_array(samples[0], chunks=(400, 4))
    found = D.jacobian(scores, START, x)
    assert found["w"].shape == (ROWS, 4)
    expected = pg.jacobian(lambda p: scores(p, samples[0]))(START)
    for name in START:
        np.testing.assert_allclose(found[name].compute(scheduler="threads"), expected[name])


def test_a_program_keeps_its_parameters_and_constants(client, samples):
    with pg.Program("line") as program:
        x, y = pg.data("x", ("N", 4)), pg.data("y", ("N",))
        scale = pg.data("scale", ())
        w = pg.create_parameter((4,), name="w")
        total = pg.mean((x @ w * scale - y) ** 2) + pg.sum(w * w)
    feed = {"x": samples[0], "y": samples[1], "scale": np.array(2.0)}
    value, gradients = D.value_and_grad(program, client=client, loss=total)(None, feed)
    with program:
        slope = pg.grad(total, w)
    expected = pg.Executor().run(program, feed, [total, slope])
    np.testing.assert_allclose(value, expected[0], rtol=1e-13)
    np.testing.assert_allclose(gradients["w"], expected[1], rtol=1e-12)
    found = D.objective(program, {"w": np.ones(4)}, feed, loss=total)
    found.assign(np.arange(4.0))
    np.testing.assert_array_equal(program.state_dict()["w"], np.arange(4.0))


def test_functions_that_need_the_number_of_rows_have_kernels_of_their_own(samples):
    def padded(w, x):
        count = int(x.shape[0])
        return pg.sum(pg.reshape(x * w, (count, 2, 2)).sum(axis=(1, 2)) ** 2)

    x = samples[0][:23]
    value, _ = D.value_and_grad(padded)(START["w"], D.chunks(x, rows=10))
    np.testing.assert_allclose(value, np.sum((x @ START["w"]) ** 2))
    with pytest.raises(pg.ShapeError, match="computes with the number of its samples"):
        D.value_and_grad(lambda w, x: padded(w, x) / int(x.shape[0]))(
            START["w"], D.chunks(x, rows=10)
        )


def test_the_plan_tells_before_and_warns(client, samples):
    data = D.chunks(samples, rows=100)
    plan = D.plan(loss, START, data, client)
    assert plan.chunks == 11
    assert plan.rows == ROWS
    assert plan.bytes_read == sum(a.nbytes for a in samples)
    assert plan.workers == 2
    assert plan.fits
    assert "11 chunks, 1,050 rows" in str(plan)
    assert D.plan(loss, START, data).flops == plan.flops
    # Rows that nobody computes.
    wide = da.zeros((60_000_000, 4), chunks=(30_000_000, 4))
    large = D.plan(lambda w, x: pg.sum(pg.tanh(x @ w)), START["w"], wide, client)
    assert not large.fits
    assert 100_000 < large.fitting_rows < 30_000_000
    assert f"chunks of {large.fitting_rows:,} rows would fit" in str(large)
    small = wide.rechunk((large.fitting_rows, 4))
    assert D.plan(lambda w, x: pg.sum(pg.tanh(x @ w)), START["w"], small, client).fits


def test_a_warning_comes_before_anything_is_computed(client, monkeypatch):
    def stopped(*args):
        raise InterruptedError

    monkeypatch.setattr(Engine, "total", stopped)
    wide = da.zeros((60_000_000, 4), chunks=(30_000_000, 4))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(InterruptedError):
            D.value_and_grad(lambda w, x: pg.sum(pg.tanh(x @ w)), client=client)(START["w"], wide)
    (found,) = caught
    assert found.filename == __file__
    assert "a worker with 1 task takes about" in str(found.message)
    assert "rows would fit" in str(found.message)


def test_large_parameters_are_scattered_where_that_is_faster(client, samples, monkeypatch):
    """Whether they go in the graph or beside it, and what is measured, decides about no bit."""
    table = np.linspace(-1.0, 1.0, 4 * 5_000).reshape(4, 5_000)
    total = D.objective(
        lambda w, x: pg.sum(pg.tanh(x @ w) ** 2), table, D.chunks(samples[0], rows=300), client
    )
    sent, ways = [], {}
    scattered = Engine._scatter
    monkeypatch.setattr(Engine, "_scatter", lambda *a: sent.append(1) or scattered(*a))
    for name, speed in {"graph": (1.0, 1e12), "scattered": (0.0, 1.0)}.items():
        monkeypatch.setattr(Engine, "speed", lambda self, speed=speed: speed)
        value, gradient = total.value_and_grad()
        ways[name] = len(sent), value.tobytes(), gradient.tobytes()
    assert (ways["graph"][0], ways["scattered"][0]) == (0, 1)
    assert ways["graph"][1:] == ways["scattered"][1:]
    monkeypatch.undo()
    latency, bandwidth = Engine(client).speed()
    assert latency > 0.0
    assert bandwidth > 0.0


# Faults.


def test_a_worker_that_is_killed_loses_nothing(cluster, client, samples):
    total = D.objective(slow_loss, START["w"], D.chunks(samples[0], rows=50), client)
    expected = bits_of(D.objective(slow_loss, START["w"], D.chunks(samples[0], rows=50)))
    for i in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            future = in_thread(lambda: bits_of(total))
            os.kill(list(cluster.workers.values())[i % 2].pid, signal.SIGKILL)
            assert future() == expected
        wait_for_workers(client, 2)


def slow_loss(w, x):
    for _ in range(40):
        x = pg.tanh(x * w)
    return pg.sum(x)


def bits_of(objective):
    value, gradient = objective.value_and_grad()
    return value.tobytes(), gradient.tobytes()


def in_thread(action):
    """The function that waits for what `action` gives in another thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(action()))
    thread.start()

    def wait():
        thread.join(60)
        return found[0]

    return wait


def test_a_task_that_raises_names_its_chunk_and_file(client, files):
    data = D.chunks(files[1], read_or_fail)
    for where in (None, client):
        with pytest.raises(pg.RunError, match=r"chunk 4, file .*part4.npz.*the disk is gone"):
            D.value_and_grad(loss, client=where)(START, data)


def test_annotations_hold_for_tasks(client, files, tmp_path):
    """As dask's own: a task that has failed is tried again when `retries` says so."""

    def read_at_second_try(name):
        seen = tmp_path / Path(name).name
        if not seen.exists():
            seen.touch()
            raise OSError("not yet")
        return read(name)

    with dask.annotate(retries=1):
        found = D.value_and_grad(loss, client=client)(START, D.chunks(files[1], read_at_second_try))
    assert bits(found) == bits(D.value_and_grad(loss)(START, D.chunks(files[1], read)))


def test_a_nan_is_named_by_file_chunk_and_equation(client, files, samples, tmp_path):
    names = list(files[1])
    x, y = (a[300:400].copy() for a in samples)
    x[17, 2] = np.nan
    names[3] = str(tmp_path / "bad.npz")
    np.savez(names[3], x=x, y=y)
    for where in (None, client):
        with pytest.raises(pg.NumericalError) as caught:
            D.value_and_grad(loss, client=where, debug="nan")(START, D.chunks(names, read))
        text = str(caught.value)
        assert "data[0] has nan at [17, 2], row 317 of all" in text
        assert "chunk 3" in text
        assert "bad.npz" in text
        assert "matmul" in text
        assert "test_distributed.py" in text
    with pytest.raises(pg.NumericalError, match=r"log makes NaN") as caught:
        D.value_and_grad(lambda w, x, y: np.log(x @ w), debug="nan")(
            START["w"], D.chunks(files[1], read)
        )
    assert "in chunk " in str(caught.value)


BAD = {
    "no client": (lambda x: (loss, START, (x, x[:, 0]), "tcp://1.2.3.4:5"), "not the address"),
    "another thing": (lambda x: (loss, START, (x, x[:, 0]), 3), "a client of dask's is needed"),
    "lists": (lambda x: (loss, START, [x, x[:, 0]]), "several arrays are a tuple"),
    "no arrays": (lambda x: (loss, START, (x, "y")), r"data\[1\] is str"),
    "no rows": (lambda x: (loss, START, (x[:0], x[:0, 0])), "there are no rows"),
    "scalar": (lambda x: (loss, START, (x, np.array(1.0))), "has no rows"),
    "different rows": (lambda x: (loss, START, (x, x[1:, 0])), "different numbers of rows"),
    "no parameters": (lambda x: (lambda p, x: x, {}, x), "there are no parameters"),
    "no function": (lambda x: (3, START, x), "a function or a program is needed"),
    "mixed": (lambda x: (lambda w, x: pg.sum(x @ w) ** 2, np.ones(4), x), "not linear"),
    "masked": (lambda x: (loss, START, (np.ma.masked_array(x), x[:, 0])), "a masked array"),
    "bag of numbers": (lambda x: (loss, START, db.from_sequence(range(4))), "which has no rows"),
    "bag of columns": (
        lambda x: (loss, START, db.from_sequence([x, x[:, :2]], npartitions=1)),
        "items with different columns: number 1 and the first",
    ),
    "empty bag": (lambda x: (loss, START, db.from_sequence([x]).filter(lambda x: False)), "empty"),
    "nothing": (lambda x: (loss, START, [dask.delayed(None)]), "chunk 0.* has no arrays"),
    "a number": (lambda x: (loss, START, [dask.delayed(2.0)]), "chunk 0.* has numbers"),
    "no loader": (lambda x: (loss, START, ["a.npy", "b.npy"]), "loader=np.load"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name, samples):
    make, words = BAD[name]
    function, params, data, *client = make(samples[0])
    with pytest.raises(pg.PrimgraphError, match=words):
        D.value_and_grad(function, client=client[0] if client else None)(params, data)


def test_vectors_of_other_shapes_are_named(samples):
    total = D.objective(lambda w, x: x @ w, np.ones(4), samples[0])
    words = r"vector has shape \(5,\), and \(4,\) is needed"
    with pytest.raises(pg.ShapeError, match=words):
        total.gauss_newton_product(None, np.ones(5))


def test_partitions_without_items_have_no_rows(samples):
    x = samples[0]
    bag = db.from_sequence([x[:10], x[10:20], x[20:25]], npartitions=3)
    for first, rows in ((0, x[10:25]), (10, x[np.r_[:10, 20:25]]), (20, x[:20])):
        left = bag.filter(lambda part, gone=x[first, 0]: part[0, 0] != gone)
        value, _ = D.value_and_grad(lambda w, x: np.sum((x @ w) ** 2), client="threads")(
            START["w"], left
        )
        np.testing.assert_allclose(value, np.sum((rows @ START["w"]) ** 2), rtol=1e-13)
        found = D.map(np.tanh, left, client="threads").compute(scheduler="threads")
        np.testing.assert_allclose(found, np.tanh(rows), rtol=1e-14)


def test_no_rows_give_no_rows(samples):
    found = D.map(np.tanh, samples[0][:0], client="threads")
    assert found.compute(scheduler="threads").shape == found.shape == (0, 4)


def test_what_is_written_to_a_map_and_not_to_its_file_counts(files, samples):
    mapped = np.load(files[0] / "x.npy", mmap_mode="c")
    mapped[:] *= 2.0
    data = D.chunks(mapped, rows=300)
    value, _ = D.value_and_grad(lambda w, x: np.sum(x @ w), client="threads")(START["w"], data)
    np.testing.assert_allclose(value, 2.0 * np.sum(samples[0] @ START["w"]), rtol=1e-12)


def test_bad_chunks_are_refused(client, files, samples, tmp_path):
    x = da.from_array(samples[0], chunks=(100, 4))
    with pytest.raises(pg.ShapeError, match="unknown sizes"):
        D.value_and_grad(slow_loss)(START["w"], x[x[:, 0] > 0])
    with pytest.raises(pg.ShapeError, match=r"x.rechunk\(\{1: -1\}\)"):
        D.value_and_grad(slow_loss)(START["w"], x.rechunk((100, 2)))
    with pytest.raises(pg.ShapeError, match="other chunks of rows"):
        D.value_and_grad(loss)(START, (x, da.from_array(samples[1], chunks=300)))
    names = [*files[1][:2], str(tmp_path / "narrow.npz")]
    np.savez(names[2], x=samples[0][:10, :3], y=samples[1][:10])
    with pytest.raises(pg.ShapeError, match=r"different columns: data\[0\] .*narrow.npz"):
        D.value_and_grad(loss, client=client)(START, D.chunks(names, read))
    with pytest.raises(pg.RunError, match=r"file .*nowhere.npz"):
        D.value_and_grad(loss, client=client)(START, D.chunks([*names, "nowhere.npz"], read))
    large = np.zeros((400_000, 4))
    with pytest.raises(pg.ArgumentError, match=r"12.8 MB in the client's memory(.|\n)*mmap_mode"):
        D.value_and_grad(slow_loss, client=client)(START["w"], large)


def test_a_client_that_is_closed_is_not_kept(cluster, samples):
    """Futures of what was sent to its workers refer to it."""
    table = np.random.default_rng(0).standard_normal((4, 10_000))
    other = Client(cluster, set_as_default=False)
    D.value_and_grad(lambda w, x: pg.sum(pg.tanh(x @ table) * w), client=other)(
        1.0, samples[0][:20]
    )
    other.close()
    known = weakref.ref(other)
    del other
    for _ in range(20):
        gc.collect()
        if known() is None:
            return
        time.sleep(0.1)
    raise AssertionError(f"kept by {gc.get_referrers(known())!r:.500}")


def test_a_closed_client_is_refused(cluster, samples):
    with Client(cluster, set_as_default=False) as other:
        total = D.objective(loss, START, samples, other)
    with pytest.raises(pg.ArgumentError, match="the client is closed"):
        D.value_and_grad(loss, client=other)(START, samples)
    with pytest.raises(pg.ArgumentError, match="the client is closed"):
        total.value_and_grad()


def test_a_client_that_closes_while_tasks_run_says_so(cluster):
    other = Client(cluster, set_as_default=False)
    data = D.chunks(["0.5", "1.5"], lazily)
    total = D.objective(lambda w, x: np.sum(x * w), np.ones(1), data, other)
    closer = threading.Timer(0.2, other.close)
    closer.start()
    with pytest.raises(pg.RunError, match="the client is clos"):
        total.value_and_grad()
    closer.join()
