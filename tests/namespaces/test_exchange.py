"""Arrays of other libraries by DLPack, tables of pandas, and the log of compilations."""

import logging
import sys

import numpy as np
import pytest

import primgraph as pg

pytestmark = pytest.mark.quick


class Foreign:
    """An array of a library that knows DLPack, and not NumPy."""

    def __init__(self, array, device=(1, 0)):
        self.array = array
        self.device = device
        self.shape = array.shape

    def __dlpack__(self, **options):
        if self.device != (1, 0):
            raise BufferError("not in the memory of the processor")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("wrap", [np.asarray, Foreign])
def test_from_dlpack_copies_an_array(dtype, wrap):
    array = np.arange(6, dtype=dtype).reshape(2, 3)
    found = pg.from_dlpack(wrap(array))
    assert isinstance(found, pg.Tensor)
    assert found.dtype == dtype
    array[0, 0] = 7
    np.testing.assert_array_equal(found.numpy(), np.arange(6).reshape(2, 3))
    found += 1
    np.testing.assert_array_equal(np.from_dlpack(pg.from_dlpack(found)), found.numpy())


def test_what_has_dlpack_is_an_array_wherever_arrays_are():
    array = np.linspace(0.0, 1.0, 4)
    foreign = Foreign(array)
    np.testing.assert_array_equal(pg.tensor(foreign).numpy(), array)
    np.testing.assert_allclose(pg.sin(foreign).numpy(), np.sin(array))
    square = lambda x: pg.sum(x**2)  # noqa: E731
    for transform in (lambda f: f, pg.jit):
        np.testing.assert_allclose(transform(pg.grad(square))(foreign), 2.0 * array)
    np.testing.assert_allclose(pg.vmap(square)(foreign), array**2)
    np.testing.assert_allclose(pg.compile(pg.trace(square, pg.spec(4)))(foreign), np.sum(array**2))
    for shape in ((4,), ("n",)):
        with pg.Program() as program:
            x = pg.data("x", shape)
            y = pg.cos(x)
        (found,) = pg.Executor().run(program, {"x": foreign}, [y])
        np.testing.assert_allclose(found, np.cos(array))


def test_arrays_of_other_devices_are_refused_with_what_to_do():
    elsewhere = Foreign(np.ones(3), device=(2, 0))
    for call in (pg.from_dlpack, pg.tensor, pg.jit(pg.sin)):
        with pytest.raises(pg.ArgumentError, match="copy it to the memory of the processor"):
            call(elsewhere)
    with pytest.raises(pg.ArgumentError, match=r"pg\.tensor"):
        pg.from_dlpack([1.0])


def test_a_data_frame_is_a_dict_of_its_columns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"age": [1, 2, 3], "mass": [0.5, 1.5, 2.5]}, index=[7, 8, 9])
    weighted = lambda t, scale: pg.sum(t["mass"] * t["age"]) * scale  # noqa: E731
    assert float(pg.jit(weighted)(table, 2.0)) == 22.0
    fast = pg.jit(lambda t: {"mass": t["mass"] * 2, "age": t["age"]})
    np.testing.assert_array_equal(fast(table)["mass"], [1.0, 3.0, 5.0])
    fast(table.iloc[:2])
    assert "t['age'] is i64[2], and was i64[3]" in str(fast.compilations[1])
    by_columns = pg.grad(lambda t: pg.sum(t["mass"] ** 2))(table[["mass"]])
    np.testing.assert_array_equal(by_columns["mass"], [1.0, 3.0, 5.0])
    with pytest.raises(pg.ArgumentError, match=r"t\['name'\]"):
        fast(pandas.DataFrame({"age": [1], "mass": [2.0], "name": ["Ada"]}))
    with pytest.raises(pg.ArgumentError, match="one name"):
        fast(pandas.concat([table, table], axis=1))
    # A matrix where arrays are fed.
    assert pg.compile(pg.trace(pg.sum, pg.spec((3, 2))))(table) == 10.5


def test_columns_are_asked_for_without_an_import_of_pandas(monkeypatch):
    class Column(np.ndarray):
        def to_numpy(self):
            return np.asarray(self)

    class Table:
        columns = ("a", "b")

        def __getitem__(self, name):
            return np.full(3, {"a": 1.0, "b": 2.0}[name]).view(Column)

    module = type("pandas", (), {"DataFrame": Table})
    monkeypatch.setitem(sys.modules, "pandas", module)
    np.testing.assert_array_equal(pg.jit(lambda t: t["a"] + t["b"])(Table()), [3.0] * 3)


def test_the_logger_tells_compilations(caplog):
    def energy(x, n):
        return pg.sum(x**n)

    fast = pg.jit(energy, static_argnames="n")
    with caplog.at_level(logging.INFO, "primgraph"):
        fast(np.ones(3), 2)
        fast(np.ones(3), 2)
        fast(np.ones(4), 2)
        fast(np.ones(4), 3)
        again = pg.jit(energy, static_argnames="n")
        again(np.ones(4), 3)
    told = [record.getMessage() for record in caplog.records]
    assert [text.rpartition("; ")[2] for text in told] == [
        "the first call",
        "x is f64[4], and was f64[3]",
        "n is 3, and was 2",
        "the first call",
    ]
    assert told[1].startswith("jit energy(f64[4]): compiled in ")
    assert " ms; " in told[1]
    assert "code of an equal graph" in told[3]
    assert all(record.levelno == logging.INFO for record in caplog.records)
    caplog.clear()
    fast(np.ones(5), 2)
    assert not caplog.records


def test_the_logger_tells_compilations_of_programs(caplog):
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.tanh(x) * 1.25
    with caplog.at_level(logging.INFO, "primgraph"):
        for _ in range(2):
            pg.Executor().run(program, {"x": np.ones(3)}, [y])
    (record,) = caplog.records[:1]
    assert "1 results for x f64[3]" in record.getMessage()


def test_the_logger_tells_whether_a_compiler_ran(caplog, monkeypatch, tmp_path):
    if pg.jit(pg.sin, target="c").kernel(np.ones(2)).style != "native":
        pytest.skip("no C compiler")
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir(mode=0o700)
    found = []
    for _ in range(2):
        with caplog.at_level(logging.INFO, "primgraph"):
            pg.jit(lambda x: pg.sin(x) * 1.0625 + x, target="c")(np.ones(7))
        found.append(caplog.records[-1].getMessage())
    assert "C by the compiler" in found[0]
    assert "C from the cache" in found[1] or "code of an equal graph" in found[1]
