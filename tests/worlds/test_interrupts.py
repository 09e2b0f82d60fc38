"""Changes of tensors are made as a whole or not at all, whatever interrupts them."""

import gc
import signal
import sys
from contextvars import ContextVar

import numpy as np
import pytest
from interrupts import CASES, Interrupter, run

import primgraph as pg
from primgraph.ir.primitive import recording

# So many instructions of each case are places of an interrupt.
PLACES = 60
# Of a case of so many instructions, which takes long, they are fewer.
LONG = 50_000


# What is read again at the next look, or is interrupted in the midst of code of the library's.
BY_INSTRUCTION = sorted(CASES.keys() - {"save", "manager", "managers", "write_leaf"})


@pytest.mark.parametrize("name", BY_INSTRUCTION)
def test_a_change_that_is_interrupted_anywhere_is_made_or_not(name):
    case = CASES[name]()
    before, after = case.expected()
    case.start()
    counting = Interrupter(0, package="primgraph")
    counting.run(case.act)
    # Most of the instructions compute; the last ones are those that change.
    places = PLACES if counting.count < LONG else 4
    last = np.arange(max(counting.count - places // 2, 1), counting.count + 1)
    some = np.linspace(1, counting.count, places // 2)
    for place in np.unique(np.concatenate([last, some]).astype(int)):
        case.start()
        Interrupter(int(place), package="primgraph").run(case.act)
        case.check(before, after)


def context_variables():
    """What all context variables of the package are."""
    modules = [m for n, m in sys.modules.items() if n.partition(".")[0] == "primgraph"]
    found = {v for m in modules for v in vars(m).values() if isinstance(v, ContextVar)}
    return {v: v.get() for v in found}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
# An interrupt between `open` and `with` leaves the file to its finalizer, which closes it.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.dense] * (k % 3 > 0)) for k, n in enumerate(CASES)],
)
def test_signals_leave_whole_changes(name):
    before = context_variables()

    def interrupt(number, frame):
        raise KeyboardInterrupt

    handler = signal.signal(signal.SIGALRM, interrupt)
    try:
        found, failures = run(name, 24, 0)
    finally:
        signal.signal(signal.SIGALRM, handler)
    assert not failures, failures[0]
    assert found.total() == 24
    gc.collect()
    assert context_variables() == before


def contexts():
    tensor = pg.tensor(np.ones(2), requires_grad=True)
    manager = pg.GradManager().attach(tensor)
    program, builder = pg.Program(), pg.Builder()
    known = list(context_variables())
    return {
        "program": lambda: program,
        "builder": lambda: builder,
        "recorded": lambda: recording(builder),
        "debug": lambda: pg.eager.debug(),
        "no_grad": lambda: pg.no_grad(),
        "enable_grad": lambda: pg.enable_grad(),
        "manager": lambda: manager,
        "group": lambda: manager | pg.GradManager(),
    }, (lambda: ([v.get() for v in known], tensor.is_leaf))


@pytest.mark.parametrize("name", contexts()[0])
@pytest.mark.parametrize(
    "function",
    ["_exit", "_leave", "leave", "release", "__exit__", "__enter__", "_enter", "end of __enter__"],
)
def test_a_context_is_left_where_its_end_is_interrupted(name, function):
    """Python handles signals before the first line of `__exit__`, and keeps the traceback."""
    makers, look = contexts()
    expected = look()
    kept = []

    def trace(frame, event, arg):
        name = frame.f_code.co_name
        if event == "return":
            name = f"end of {name}"
        if name == function and "primgraph" in frame.f_code.co_filename:
            sys.settrace(None)
            kept.append(frame)
            raise KeyboardInterrupt
        return trace if function.endswith(f" {name}") else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with makers[name]():
            pass
    except KeyboardInterrupt as error:
        kept.append(error)
    finally:
        sys.settrace(before)
    assert look() == expected
    with makers[name]():
        pass
    assert look() == expected


def test_a_context_in_parts_is_left_once():
    switch = pg.no_grad()
    switch.__enter__()
    assert not pg.is_grad_enabled()
    with switch:
        gc.collect()
        assert not pg.is_grad_enabled()
    assert not pg.is_grad_enabled()
    switch.__exit__(None, None, None)
    assert pg.is_grad_enabled()
