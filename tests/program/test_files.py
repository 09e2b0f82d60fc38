"""Files that are read: pipes, devices and folders are refused, and never waited for."""

import os
import signal
import socket

import numpy as np
import pytest

import primgraph as pg
from primgraph.base.files import open_regular
from primgraph.base.user_lines import lines_in
from primgraph.cli.main import main
from primgraph.cli.targets import find
from primgraph.distributed import ensembles, tasks

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no pipes with names")


@pytest.fixture(autouse=True)
def deadline():
    """Interrupt a test that waits for a pipe."""

    def late(*args):
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_only_regular_files_are_opened(tmp_path, pipe, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"some")
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "piped").symlink_to(pipe)
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    for path in (file, "link"):
        with open_regular(path) as opened:
            assert opened.read() == b"some"
    for path, words in (
        (pipe, "a named pipe, not a regular file"),
        ("piped", "a named pipe, not a regular file"),
        ("socket", "a socket, not a regular file"),
        ("/dev/zero", "a device, not a regular file"),
    ):
        with pytest.raises(OSError, match=words):
            open_regular(path)
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with pytest.raises(OSError, match="not a regular file"):
        open_regular("link", follow=False)
    # What is looked at may be another file by the time that it is opened.
    status = os.stat(file)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", lambda path, **options: status)
        with pytest.raises(OSError, match="a named pipe"):
            open_regular(pipe)


@pytest.mark.parametrize("path", ["pipe", "/dev/zero"])
def test_what_is_no_file_is_no_program(path, tmp_path, pipe, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pg.LoadError, match=f"cannot read '{path}': .*not a regular file"):
        pg.load(path)
    with pytest.raises(pg.LoadError, match=f"cannot read '{path}': .*not a regular file"):
        find(path, [])
    assert main(["show", path]) != 0
    assert "not a regular file" in capsys.readouterr().err
    text = tmp_path / "graph.txt"
    text.write_text("graph f(%x: f64[3]) {\r\n  return %x\r\n}\r\n")
    assert find(str(text), []).graph.inputs
    with pytest.raises(pg.LoadError, match=r"no .npz file of arrays: .*not a regular file"):
        find(str(text), [], constants=path)


def test_what_is_no_file_has_no_results(pipe, tmp_path):
    with pytest.raises(pg.LoadError, match=r"no results of an ensemble: .*a named pipe"):
        ensembles._read_results(str(pipe))
    pipe.rename(tmp_path / "ensemble.json")
    with pytest.raises(pg.LoadError, match=r"does not tell of an ensemble: .*a named pipe"):
        ensembles._claim(tmp_path, "digest")


def test_rows_are_read_from_files_alone(pipe, tmp_path):
    with pytest.raises(OSError, match="a named pipe"):
        tasks.Piece(str(pipe), np.dtype("f8"), 0, (2,)).load()
    file = tmp_path / "rows"
    file.write_bytes(np.arange(5.0).tobytes())
    np.testing.assert_array_equal(tasks.Piece(str(file), "f8", 16, (2,)).load(), [2.0, 3.0])


def test_code_that_claims_to_be_from_a_pipe_has_no_lines(pipe):
    assert lines_in(str(pipe)) == []
    assert lines_in(__file__)[0].startswith('"""Files')
    space = {"pg": pg}
    with pg.Program(), pytest.raises(pg.ShapeError, match="pipe:1"):
        exec(compile("pg.data('x', (3,)) @ pg.data('w', (4,))", str(pipe), "exec"), space)
