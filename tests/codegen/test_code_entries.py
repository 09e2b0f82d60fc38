"""NumPy code is found again on disk by another process, as it was, and by no other graph."""

import ast
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from random_programs import random_program

import primgraph as pg
from primgraph.base.debug_mode import debug
from primgraph.codegen import calls, code_entries, compile_graph, compiled, planned
from primgraph.codegen.runtime.toolchain import cache, graph_keys
from primgraph.codegen.runtime.toolchain.folder import Folder
from primgraph.errors import RunError
from primgraph.transforms import lower

X = np.linspace(-1.0, 1.0, 400).reshape(20, 20)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache with nothing in it, for code of any length, in a process like a user's."""
    found = tmp_path / "cache"
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(found))
    monkeypatch.setenv("PRIMGRAPH_DEBUG", "0")
    # Whoever works on files while tests run changes nothing in them.
    monkeypatch.setattr(graph_keys, "LOADED", math.inf)
    monkeypatch.setattr(code_entries, "_LEAST", 0.0)
    with debug(False):
        yield found


@pytest.fixture
def generated(monkeypatch):
    """The parts of graphs for which code is generated."""
    found, plain = [], planned.generate

    def generate(graph, job, key):
        found.append(job.part)
        return plain(graph, job, key)

    monkeypatch.setattr(planned, "generate", generate)
    return found


def another_process():
    """Forget what this process knows of graphs."""
    compiled._shared.clear()


def bits(results):
    return [(a.dtype, a.shape, a.tobytes()) for a in results]


def looped(x):
    total, rows = pg.scan(lambda v, r: (pg.tanh(v @ x) * 0.5 + r, v), x[0], x)
    return pg.cond(total[0] > 0.0, lambda t: t * 2.0, lambda t: -t, total), pg.sum(rows)


def counted(x):
    return pg.while_loop(lambda v: pg.sum(v) < 5.0, lambda v: v * 0.5 + 2.0, x[0, :2])


PROGRAMS = {
    "planned": lambda x: pg.tanh(x @ x) * np.arange(400.0).reshape(20, 20) + x[::-1],
    "scalar": lambda x: pg.sin(x[0, 0]) * x[1, 1] + 2.0,
    "loops": looped,
    "scalar loop": counted,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_recalled_code_is_the_code_that_was_generated(name, folder, generated):
    graph = lower(pg.trace(PROGRAMS[name], X))
    first = compile_graph(graph).flat
    expected, made = first(X), len(generated)
    assert made
    another_process()
    again = compile_graph(graph).flat
    assert bits(again(X)) == bits(expected)
    assert len(generated) == made
    assert again.running_style([X]) == first.running_style([X])
    # Arrays that scalar code does not take, and lines.
    assert bits(again(np.asfortranarray(X))) == bits(expected)
    assert again.planned_source == first.planned_source
    assert again.lines() == first.lines()
    assert {f.suffix for f in folder.iterdir()} == {cache.CODE}


def test_recalled_code_of_random_programs_has_the_same_bits(generated):
    for seed in range(40):
        program = random_program(seed)
        graph = lower(program.graph)
        feeds = program.feeds
        expected, made = bits(compile_graph(graph).flat(*feeds)), len(generated)
        another_process()
        assert bits(compile_graph(graph).flat(*feeds)) == expected
        assert len(generated) == made


def test_calls_without_text_are_kept_when_they_have_one(folder, generated, monkeypatch):
    monkeypatch.setattr(planned, "CHUNK", -1)
    monkeypatch.setattr(calls, "_RUNS", 2)
    graph = lower(pg.trace(PROGRAMS["planned"], X))
    kernel = compile_graph(graph).flat
    first = bits(kernel(X))
    assert not folder.exists()
    assert bits(kernel(X)) == first
    another_process()
    again = compile_graph(graph).flat
    assert len(generated) == 1
    assert bits(again(X)) == first
    assert again.planned_source == kernel.planned_source


def test_errors_of_recalled_code_name_equation_and_line():
    graph = lower(pg.trace(lambda x: pg.linalg.cholesky(x) + 1.0, X))
    told = []
    for _ in range(2):
        kernel = compile_graph(graph)
        with pytest.raises(RunError) as caught:
            kernel(-np.eye(20))
        lines = "\n".join(caught.value.origin)
        told.append((caught.value.message, re.sub(r"kernel run \d+", "kernel", lines)))
        another_process()
    assert told[0] == told[1]
    assert "pg.linalg.cholesky(x) + 1.0" in told[0][1]


def test_damaged_and_foreign_entries_are_written_again(folder, generated):
    graph = lower(pg.trace(PROGRAMS["planned"], X))

    def is_generated():
        another_process()
        before = len(generated)
        compile_graph(graph)
        return len(generated) > before

    assert is_generated()
    (entry,) = folder.iterdir()
    whole = entry.read_bytes()
    assert not is_generated()
    content, name = whole[: -cache._TAIL], entry.name
    contents = [b"", b"\xff", content[:-9], b"(\x00\x00\x00\x00", b"N"]
    valid = [text + cache._sum_of(name, text) for text in contents]
    # The content of one key is nothing under another one.
    other = content + cache._sum_of(f"{'0' * 40}.code", content)
    for damaged in (b"", whole[:-1], whole.replace(b"tanh", b"cosh"), other, *valid):
        entry.write_bytes(damaged)
        assert is_generated()
        assert entry.read_bytes() == whole
        assert not is_generated()
    entry.chmod(0o666)
    assert is_generated()
    assert entry.stat().st_mode & 0o777 == 0o600
    with debug():
        assert is_generated()


def test_nothing_is_written_where_nothing_can_be_or_pays(folder, monkeypatch):
    def full(*args, **kwargs):
        raise OSError("No space left on device")

    kernel = compile_graph(lower(pg.trace(PROGRAMS["planned"], X)))
    another_process()
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "write", full)
        found = compile_graph(lower(pg.trace(lambda x: pg.tanh(x @ x) - 1.0, X)))
        assert found.flat(X)[0].shape == (20, 20)
    before = set(folder.iterdir())
    monkeypatch.setattr(code_entries, "_LEAST", 100.0)
    compile_graph(lower(pg.trace(lambda x: pg.tanh(x @ x) - 2.0, X)))
    assert set(folder.iterdir()) == before
    assert kernel.flat(X)


_SECOND = """
import sys
import numpy as np, primgraph as pg
x = np.linspace(-1.0, 1.0, 400).reshape(20, 20)
f = lambda x: pg.sum(pg.tanh(x @ x + 1.0) * x)
found = pg.jit(pg.grad(f))(x)
print([float(found.sum()), "primgraph.codegen.planned" in sys.modules])
"""


def test_another_process_plans_and_prints_nothing(folder):
    def told():
        command = [sys.executable, "-W", "error", "-c", _SECOND]
        environment = {**os.environ, "PYTHONHASHSEED": "random"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert not done.stderr
        return ast.literal_eval(done.stdout)

    result, is_planned = told()
    assert is_planned
    assert told() == [result, False]
