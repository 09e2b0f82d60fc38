"""Damaged texts and files: whatever is wrong with them is told as such, and does nothing else."""

import tracemalloc

import numpy as np
import pytest
from damage import check_archive, check_text, graph_of
from density import starts
from program_files import check_file, damaged_text, program_of

import primgraph as pg
from primgraph.cli.main import main
from primgraph.ir.params import Array

pytestmark = pytest.mark.long

_TEXTS, _FILES, _CHUNK = 3000, 600, 300


@pytest.mark.parametrize("start", starts(0, _TEXTS, _CHUNK, dense=2 * _CHUNK))
def test_damaged_texts_are_load_errors_with_line_and_column(start):
    found = {check_text(seed) for seed in range(start, start + _CHUNK)}
    assert len(found) > 20


@pytest.mark.parametrize("start", starts(0, _FILES, _CHUNK, dense=_CHUNK))
def test_damaged_files_are_load_errors(start, tmp_path):
    found = {check_archive(seed, tmp_path) for seed in range(start, start + _CHUNK)}
    assert len(found) > 10


def test_random_programs_come_back_from_files_as_they_were(tmp_path):
    states = updates = 0
    for seed in range(60):
        program = program_of(graph_of(seed), np.random.default_rng(seed))
        check_file(program, tmp_path / "p")
        states, updates = states + len(program.states), updates + len(program.updates)
    assert min(states, updates) > 10


def test_the_command_line_shows_no_traceback_for_damaged_text(tmp_path, capsys):
    codes = []
    for seed in range(200):
        text, _ = damaged_text(graph_of(seed), np.random.default_rng(seed))
        path = tmp_path / "graph.txt"
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        codes.append(main(["show", str(path)]))
        told = capsys.readouterr().err
        assert "Traceback" not in told
        assert (codes[-1] == 1) == told.startswith("error: ")
    assert codes.count(1) > 100


HEAD = "graph f(%x: f64[2]) {\n  %0: f64[2] = "
TAIL = "\n  return %0\n}"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1, column 1"),
        ("\n\ngraph f(", "line 3, column 9"),
        (f"{HEAD}constant(value=f64[2]{{0x00}}){TAIL}", "line 2, column 38"),
        (f"{HEAD}constant(value=f64[2]{{0xzz}}){TAIL}", "line 2, column 38"),
        (f"{HEAD}constant(value=f64[2]{{1.0}}){TAIL}", "line 2, column 38"),
        (f"{HEAD}constant(value=i8[2]{{300, 0}}){TAIL}", "line 2, column 37"),
        (f"{HEAD}constant(value=f16[2]{{1e9, 0.0}}){TAIL}", "line 2, column 38"),
        (f"{HEAD}constant(value=bool[2]{{1, 0}}){TAIL}", "line 2, column 39"),
        (f"{HEAD}constant(value=bool[2]{{0x0203}}){TAIL}", "line 2, column 39"),
        (f"{HEAD}constant(value=f64[{2**63}]{{0x00}}){TAIL}", "line 2, column 31"),
        (f"{HEAD}sin(%x, {'9' * 5000}){TAIL}", "line 2, column 24"),
        (f"{HEAD}sin(%x, axis={'9' * 5000}){TAIL}", "line 2, column 29"),
        (f"{HEAD}sin(%x, axis={'(' * 5000}){TAIL}", "line 2, column 50"),
        (f'{HEAD}sin(%x, axis="\\q"){TAIL}', "line 2, column 29"),
        (f"{HEAD}sin(%x, axis=1, axis=(1, 2)){TAIL}", "line 2, column 32"),
        (f"{HEAD}sin(%x) %x{TAIL}", "line 2, column 24"),
        (f"{HEAD}sin(%x)\n  return %0 %0\n}}", "line 3, column 13"),
        (f"{HEAD}sin(%x){TAIL} }}", "line 4, column 3"),
        (f'graph "\\q"(%x: f64[2]) {{{TAIL}', "line 1, column 7"),
        (f'graph f(%"\\u12": f64[2]) {{\n%0: f64[2] = sin(%x){TAIL}', "line 1, column 9"),
        (f"graph f(%x: f64[2 2]) {{\n%0: f64[2] = sin(%x){TAIL}", "line 1, column 19"),
        (f"graph f(%x: f64[-2]) {{\n%0: f64[2] = sin(%x){TAIL}", "line 1, column 17"),
        (f"graph f(%x: f64[inf]) {{\n%0: f64[2] = sin(%x){TAIL}", "line 1, column 17"),
        (f"graph f(%x: f64[2]) {{ x\n%0: f64[2] = sin(%x){TAIL}", "line 1, column 23"),
        (f"{HEAD}sin(%x){TAIL[:-1]}]", "line 4, column 1"),
    ],
)
def test_the_place_of_a_fault_is_told(text, place):
    with pytest.raises(pg.LoadError) as caught:
        pg.parse(text)
    assert str(caught.value).startswith(f"graph text, {place}: ")
    assert all(len(line) < 300 for line in str(caught.value).splitlines())


# Long constants stand beside the text.


def with_constant(array):
    def function(x):
        return x + array

    return pg.trace(function, pg.spec(array.shape, array.dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("size", [9, 128, 129, 1024, 1025, 5000])
def test_long_constants_stand_beside_the_text(dtype, size):
    array = (np.arange(size) % 7 - 2).astype(dtype)
    with pg.Builder("f") as builder:
        graph = builder.graph([pg.array(array).value])
    long = array.nbytes > 1024
    assert len(graph.constants) == long
    assert len(str(graph)) < 2500
    assert pg.parse(str(graph), graph.constants) == graph
    if not long:
        assert pg.parse(str(graph)) == graph
        return
    (key,) = graph.constants
    assert f"sha256:{key}}}" in str(graph)
    assert not graph.constants[key].flags.writeable
    for given in ({}, None, {key: array[:-1]}, {key: array[::-1]}, {key: "x"}, {key: None}):
        with pytest.raises(pg.LoadError, match="line 2, column"):
            pg.parse(str(graph), given)


def test_long_constants_can_be_kept_in_an_npz_file(tmp_path):
    graph = with_constant(np.linspace(0.0, 1.0, 1000))
    np.savez(tmp_path / "constants.npz", **graph.constants)
    with np.load(tmp_path / "constants.npz") as constants:
        assert pg.parse(str(graph), constants) == graph


def test_a_hash_tells_types_and_bits_apart():
    one = np.zeros(1000)
    arrays = [one, one.reshape(10, 100), -one, one.astype(np.int64), one.view(np.uint64)]
    assert len({Array(a).digest for a in arrays}) == len(arrays)
    assert len({Array(one).digest, Array(one.copy()).digest, Array(one[::-1]).digest}) == 1


def test_the_text_of_a_graph_with_a_huge_constant_is_small():
    array = np.ones(2**21)
    array[5] = 2.0
    graph = with_constant(array)
    tracemalloc.start()
    text = str(graph)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(text) < 1000
    assert most < 2**18
    assert pg.parse(text, constants=graph.constants) == graph
