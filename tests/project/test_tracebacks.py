"""Tracebacks of scripts: the user's frames, one of primgraph's, and all of them by request."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.quick

BRANCH = """
import numpy as np
import primgraph as pg

@pg.jit
def branch(x):
    if x > 0:
        return x
    return -x

def main():
    branch(np.ones(()))
"""


def printed(tmp_path, text, *, debug="0", code=1):
    """Return what a script prints of the error that ends it."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text), encoding="utf-8")
    environment = {**os.environ, "PRIMGRAPH_DEBUG": debug}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stderr


def frames(text):
    """Return the functions of the frames in a printed traceback, those of primgraph marked."""
    rows = [row for row in text.splitlines() if row.startswith('  File "')]
    return [
        ("" if "script.py" in row else "primgraph: ") + row.rpartition(" in ")[2] for row in rows
    ]


def test_a_script_prints_its_own_frames_and_one_of_primgraph(tmp_path):
    text = printed(tmp_path, BRANCH + "main()\n")
    assert frames(text) == ["<module>", "main", "branch", "primgraph: __bool__"]
    assert text.startswith("Traceback (most recent call last):")
    assert "UnknownValueError: the truth of a variable is not known" in text
    assert text.endswith("PRIMGRAPH_DEBUG=1 in the environment shows them.\n")


def test_debug_mode_prints_all_frames(tmp_path):
    text = printed(tmp_path, BRANCH + "main()\n", debug="1")
    assert len(frames(text)) > 6
    assert "left out" not in text


def test_an_error_of_the_user_in_a_traced_function_is_told_in_their_frames(tmp_path):
    text = printed(
        tmp_path,
        """
        import numpy as np
        import primgraph as pg

        def inner(x):
            raise KeyError("mine")

        @pg.jit
        def outer(x):
            return pg.grad(inner)(x)

        outer(np.ones(()))
        """,
    )
    assert frames(text) == ["<module>", "outer", "inner"]
    assert "KeyError: 'mine'" in text


def test_causes_and_contexts_are_shortened_as_well(tmp_path):
    text = printed(
        tmp_path,
        BRANCH
        + textwrap.dedent("""
        def chained():
            try:
                main()
            except pg.PrimgraphError as error:
                raise ValueError("no branch") from error

        chained()
        """),
    )
    assert "The above exception was the direct cause" in text
    shown = ["chained", "main", "branch", "primgraph: __bool__", "<module>", "chained"]
    assert frames(text) == shown


def test_threads_print_shortened_tracebacks(tmp_path):
    text = printed(
        tmp_path,
        BRANCH
        + textwrap.dedent("""
        import threading
        thread = threading.Thread(target=main, name="worker")
        thread.start()
        thread.join()
        """),
        code=0,
    )
    assert text.startswith("Exception in thread worker:\nTraceback")
    assert [f for f in frames(text) if "primgraph: _bootstrap" not in f][-3:] == [
        "main",
        "branch",
        "primgraph: __bool__",
    ]


def test_other_errors_and_hooks_of_others_stay_as_they_are(tmp_path):
    plain = printed(tmp_path, "import primgraph\n1 / 0\n")
    assert frames(plain) == ["<module>"]
    assert "left out" not in plain
    hook = "import sys\nsys.excepthook = lambda *found: sys.stderr.write('mine')\n"
    assert printed(tmp_path, hook + BRANCH + "main()\n") == "mine"


def test_the_error_keeps_all_frames(tmp_path):
    text = BRANCH + textwrap.dedent("""
    import traceback
    try:
        main()
    except pg.PrimgraphError as error:
        assert len(traceback.extract_tb(error.__traceback__)) > 6
    """)
    assert printed(tmp_path, text, code=0) == ""
