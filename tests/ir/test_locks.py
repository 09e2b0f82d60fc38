"""Locks: all of the package are made by one function, and are free in a child process."""

import ast
import os
import threading

import pytest
from forks import check
from rooms import nodes

from primgraph.base.locks import cached_property, make_lock

# What has a lock in it that a fork leaves taken, and the modules that have these.
MAKERS = {
    "threading": {"Barrier", "BoundedSemaphore", "Condition", "Event", "Lock", "RLock"}
    | {"Semaphore", "Timer"},
    "_thread": {"allocate_lock", "RLock", "LockType"},
    "functools": {"cached_property"},
    "queue": {"LifoQueue", "PriorityQueue", "Queue", "SimpleQueue"},
    "multiprocessing": {"Lock", "RLock", "Queue", "Condition", "Event", "Semaphore"},
    "concurrent.futures": {"ThreadPoolExecutor", "ProcessPoolExecutor"},
}

# Locks that are otherwise renewed in a child: the crew of threads is another one there. The process
# that compiles in the background has no children but compilers.
RENEWED = {
    ("primgraph.codegen.runtime.threads", "SimpleQueue"),
    ("primgraph.codegen.tiered.worker", "SimpleQueue"),
}


NAMES = set().union(*MAKERS.values())


def made_otherwise(name, nodes):
    """The names of what makes a lock in a module, but for conditions on a lock of `make_lock`."""
    aliases = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module in MAKERS:
            for alias in node.names:
                if alias.name in MAKERS[node.module]:
                    aliases[alias.asname or alias.name] = alias.name
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in MAKERS:
                    aliases[alias.asname or alias.name] = alias.name
    allowed = {
        node.func
        for node in nodes
        if isinstance(node, ast.Call)
        and len(node.args) == 1
        and ast.unparse(node) in ("threading.Condition(make_lock())", "Condition(make_lock())")
    }
    for node in nodes:
        if node in allowed:
            continue
        found = None
        if isinstance(node, ast.Name) and aliases.get(node.id) not in (None, *MAKERS):
            found = aliases[node.id]
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            module = aliases.get(ast.unparse(node.value))
            if module in MAKERS and node.attr in MAKERS[module]:
                found = node.attr
        if found is not None and (name, found) not in RENEWED:
            yield f"{name}:{node.lineno} {found}"


def test_all_locks_are_made_by_one_function():
    found = [
        line
        for name, found in nodes().items()
        if name != "primgraph.base.locks"
        for line in made_otherwise(name, found)
    ]
    assert not found, "make them by primgraph.base.locks.make_lock"


@pytest.mark.parametrize(
    "text",
    [
        "import threading\nlock = threading.Lock()",
        "import threading as t\nclass A:\n    lock = t.RLock()",
        "from threading import RLock\nlock = RLock()",
        "from threading import Lock as L\ndef f(make=L): ...",
        "import threading\nready = threading.Condition()",
        "import threading\nready = threading.Condition(threading.Lock())",
        "import queue\nwaiting = queue.Queue()",
        "from queue import SimpleQueue\njobs = SimpleQueue()",
        "import functools\nclass A:\n    @functools.cached_property\n    def f(self): ...",
        "import _thread\nlock = _thread.allocate_lock()",
    ],
)
def test_a_lock_that_is_made_otherwise_is_found(text):
    free = "import threading\nx = threading.local()"
    assert list(made_otherwise("somewhere", [*ast.walk(ast.parse(text))]))
    assert not list(made_otherwise("somewhere", [*ast.walk(ast.parse(free))]))


def in_child(function):
    """What `function` returns in a child process, a small integer."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = function()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_locks_are_free_in_a_child():
    lock, mine = make_lock(), make_lock()

    class Late:
        @cached_property
        def value(self):
            taken.set()
            release.wait()
            return 3

    def hold():
        with lock:
            assert Late().value == 3

    taken, release = threading.Event(), threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()

    def child():
        release.set()
        free = lock.acquire(timeout=5)
        mine.release()
        again = mine.acquire(timeout=5)
        return 10 * free + 5 * again + Late().value

    try:
        with mine:
            assert in_child(child) == 18
    finally:
        release.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_that_are_forked_while_threads_compute_tensors_do_not_hang():
    assert check(25) == {"done": 25}
