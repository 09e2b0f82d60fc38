"""Startup programs: which states a run of one gives their first values again, and where."""

import gc
import threading

import pytest

import primgraph as pg

pytestmark = pytest.mark.long


def counter(name):
    """A state that every run of the program being built makes larger by one."""
    with pg.program_guard(program := pg.Program()):
        state = pg.create_parameter((), name=name, initializer=pg.initializers.Constant(1.0))
        program.update(state, state + 1.0)
    return program, state


def test_a_startup_program_resets_the_states_that_were_created_under_it():
    main, first, second = pg.Program(), pg.Program(), pg.Program()
    start = pg.initializers.Constant(1.0)
    states = []
    for name, startup in (("a", first), ("b", second)):
        with pg.program_guard(main, startup):
            assert pg.default_startup_program() is startup
            states.append(pg.create_parameter((), name=name, initializer=start))
            main.update(states[-1], states[-1] + 1.0)
    run = pg.Executor().run
    assert run(main, fetch_list=states) == [2, 2]
    assert run(first) == []
    assert run(main, fetch_list=states) == [2, 3]
    run(second)
    run(second)
    assert run(main, fetch_list=states) == [3, 2]


def test_a_guard_without_startup_keeps_the_one_that_counts():
    startup = pg.Program()
    with pg.program_guard(pg.Program(), startup):
        program, state = counter("inner")
    run = pg.Executor().run
    run(program)
    assert run(program, fetch_list=[state]) == [3]
    run(startup)
    assert run(program, fetch_list=[state]) == [2]
    assert pg.default_startup_program() is not startup
    for arguments in ((program, "startup"), (None,), (None, startup)):
        with pytest.raises(pg.ArgumentError, match=r"is a Program( or None)?, not"):
            pg.program_guard(*arguments).__enter__()


def test_an_executor_with_a_scope_starts_in_that_scope():
    startup = pg.Program()
    with pg.program_guard(pg.Program(), startup):
        program, state = counter("kept")
    scope = pg.Scope()
    pg.Executor().run(program)
    pg.Executor(scope).run(startup)
    assert scope.get("kept") == 1
    assert pg.Executor().run(program, fetch_list=[state]) == [3]


def test_a_startup_program_keeps_no_program_alive():
    startup = pg.Program()
    with pg.program_guard(pg.Program(), startup):
        program, _ = counter("gone")
    assert len(startup.starts) == 1
    del program, _
    gc.collect()
    assert len(startup.starts) == 0
    assert pg.Executor().run(startup) == []


def test_threads_have_startup_programs_of_their_own():
    startup, found = pg.Program(), []

    def look():
        found.append(pg.default_startup_program())

    with pg.program_guard(pg.Program(), startup):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found[0] is not startup
    assert found[0] is pg.default_startup_program()
