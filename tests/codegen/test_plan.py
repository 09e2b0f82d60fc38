"""The plan: what it does, as a text, and that a fault in it is found."""

import re
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from plan_checks import NEVER, SHARED, SMALL
from test_blocks import network

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.arena import ALIGN, Arena, Packed
from primgraph.codegen.ir.limits import Options
from primgraph.codegen.ir.places import Buffer, root_of
from primgraph.codegen.ir.statements import Compute, Loop, Make, Release, See
from primgraph.codegen.ir.text import text_of
from primgraph.codegen.ir.verify import verify
from primgraph.codegen.lower.arrays import planner
from primgraph.codegen.planned import plan_for
from primgraph.errors import ArgumentError, InternalError
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse
from primgraph.transforms import clean_up, lower

CHAIN = """graph f(%x: f64[9]) {
  %0: f64[9] = sin(%x)
  %1: f64[9] = reverse(%0, axes=(0,))
  %2: f64[9] = mul(%0, %1)
  %3: f64[9] = exp(%2)
  %4: f64[] = reduce_sum(%3, axes=(0,))
  return %4, %2
}"""


def test_a_plan_prints_what_it_does():
    assert (
        str(compile_graph(parse(CHAIN), limits=SMALL).plan)
        == """\
plan f(x0: f64[9]) -> f64[], f64[9]
  arena of 128 bytes, 128 in use at most, and 128 in each thread
  b0@0: f64[9] = sin x0
  see b0@0[::-1]
  make r0: f64[]
  fill r0 with -0.0
  make r1: f64[9]
  for each block of 3 of 9 rows:
    r1[s]: f64[3] = mul b0@0[s], b0@0[::-1][s]
    b1@0: f64[3] = exp r1[s]
    b2@64: f64[] = reduce_sum b1@0 (axes=(0,)) with ones(3), b2@64, b1@0
    r0 = add r0, b2@64
    release b2@64
    release b1@0
  release b0@0
  return r0 as result 0
  return r1 as result 1"""
    )


def test_in_threads_shares_of_totals_are_added_in_turn():
    text = str(compile_graph(parse(CHAIN), limits=SHARED).plan)
    assert text.endswith("""\
  for each block of 3 of 9 rows, in up to 3 threads:
    r1[s]: f64[3] = mul b0@0[s], b0@0[::-1][s]
    b1@0: f64[3] = exp r1[s]
    b2@64: f64[] = reduce_sum b1@0 (axes=(0,)) with ones(3), b2@64, b1@0
    release b1@0
    in turn:
      r0 = add r0, b2@64
      release b2@64
  release b0@0
  return r0 as result 0
  return r1 as result 1""")


def test_donated_arrays_are_written_last_and_their_old_elements_held():
    graph = parse("""graph step(%w: f64[3], %v: f64[3], %g: f64[3]) {
      %0: f64[3] = sub(%w, %g)
      %1: f64[3] = reverse(%w, axes=(0,))
      %2: f64[3] = reverse(%v, axes=(0,))
      return %1, %2, %0
    }""")
    options = Options(donated=((0, 1), (1, 0)))
    assert (
        str(verify(plan_for(graph, options, NEVER)))
        == """\
plan step(x0: f64[3], x1: f64[3], x2: f64[3]) -> f64[3], f64[3], f64[3]
  arena of 0 bytes, 0 in use at most
  new r2: f64[3] = sub x0, x2
  see x0[::-1]
  see x1[::-1]
  new held0 = copy x0[::-1]
  new held1 = copy x1[::-1]
  return r2 as result 2
  x1 = copy held0
  return x1 as result 0
  x0 = copy held1
  return x0 as result 1"""
    )


def lifetimes(plan):
    """Of each buffer that is released, the instructions between which it is in use."""
    begins, ends = {}, {}
    for i, x in enumerate(plan.flat()):
        if isinstance(x, Compute | Make) and isinstance(x.out, Buffer):
            begins.setdefault(x.out, i)
        if isinstance(x, Release):
            ends[x.buffer] = i
    return {b: (begins[b], end) for b, end in ends.items()}


def without(body, keeps):
    """Instructions that are left out one at a time, those of loops too, and what is left then."""
    for i, x in enumerate(body):
        if isinstance(x, Loop):
            for taken, inner in without(x.body, keeps):
                yield taken, (*body[:i], x._replace(body=inner), *body[i + 1 :])
            for taken, inner in without(x.totals, keeps):
                yield taken, (*body[:i], x._replace(totals=inner), *body[i + 1 :])
        elif not isinstance(x, keeps):
            yield x, (*body[:i], *body[i + 1 :])


@pytest.mark.parametrize("limits", [NEVER, SMALL, SHARED], ids=["whole", "blocks", "threads"])
def test_buffers_that_overlap_are_found(limits):
    plan = verify(compile_graph(network(23)[0], limits=limits).plan)
    found, times = 0, lifetimes(plan)
    for first, other in combinations(times, 2):
        if first.loop == other.loop and times[first][0] < times[other][0] < times[first][1]:
            moved = other.offset
            object.__setattr__(other, "offset", first.offset)
            with pytest.raises(InternalError, match="overlaps"):
                verify(plan)
            object.__setattr__(other, "offset", moved)
            found += 1
            if found > 100:
                break
    assert found > 50
    verify(plan)


@pytest.mark.parametrize("limits", [NEVER, SMALL, SHARED], ids=["whole", "blocks", "threads"])
def test_instructions_that_are_left_out_or_too_early_are_found(limits):
    plan = compile_graph(network(7)[0], limits=limits).plan
    # A view may be looked at when it is needed, and memory be given back never.
    for taken, body in without(plan.body, (See, Release)):
        assert is_wrong(replace(plan, body=body)), f"not missed: {text_of(taken)}"
    assert is_wrong(replace(plan, body=tuple(reversed(plan.body))))
    releases = [i for i, x in enumerate(plan.body) if isinstance(x, Release)]
    for i in releases:
        used = next(k for k in reversed(range(i)) if uses(plan.body[k], plan.body[i].buffer))
        early = (*plan.body[:used], plan.body[i], *plan.body[used:i], *plan.body[i + 1 :])
        assert is_wrong(replace(plan, body=early)), text_of(plan.body[i])
    assert releases


def is_wrong(plan):
    try:
        verify(plan)
    except InternalError:
        return True
    return False


def uses(x, buffer):
    """Whether an instruction, or one in it, reads or writes a buffer."""
    if isinstance(x, Loop):
        return any(uses(inner, buffer) for inner in (*x.body, *x.totals))
    places = [*getattr(x, "operands", ()), getattr(x, "out", None), getattr(x, "source", None)]
    return any(p is not None and root_of(p) is buffer for p in places)


WRONG = {
    "is not donated": lambda p: replace(p, options=Options()),
    "holds another value": lambda p: replace(
        p, body=(*p.body[:1], p.body[1]._replace(operands=p.body[1].operands[::-1]), *p.body[2:])
    ),
    "not all results": lambda p: replace(p, body=p.body[:-1]),
    "in an array of its own": lambda p: replace(p, body=(*p.body, p.body[-1])),
    "outside of the arena": lambda p: replace(p, arena=0),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_a_plan_is_not_allowed_is_told_with_the_plan(fault):
    graph = parse("""graph step(%w: f64[3], %g: f64[3]) {
      %0: f64[3] = exp(%g)
      %1: f64[3] = sub(%w, %0)
      return %1
    }""")
    plan = verify(plan_for(graph, Options(donated=((0, 0),)), NEVER))
    with pytest.raises(InternalError, match=fault) as caught:
        verify(WRONG[fault](plan))
    assert "b0@0: f64[3] = exp x1\n" in str(caught.value)


def test_the_arena_packs_what_is_in_use_at_the_same_time():
    rng = np.random.default_rng(0)
    arena, held = Arena(), {}
    for _ in range(5000):
        if held and rng.random() < 0.5:
            offset = list(held)[rng.integers(len(held))]
            arena.give(offset, held.pop(offset))
        else:
            size = int(rng.choice([1, 64, 100, 400, 1000, 5000]))
            offset = arena.take(size)
            assert offset % ALIGN == 0
            ends = sorted((o, o + s) for o, s in [*held.items(), (offset, size)])
            assert all(a[1] <= b[0] for a, b in pairwise(ends))
            held[offset] = size
    assert arena.least <= arena.size < 1.3 * arena.least
    for offset, size in held.items():
        arena.give(offset, size)
    assert arena.take(arena.size) == 0
    assert Packed(Arena()).size == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_packed_arena_holds_the_same_buffers_at_the_same_times(seed):
    rng = np.random.default_rng(seed)
    arena, held, calls = Arena(), {}, []
    for k in range(100):
        if held and rng.random() < 0.45:
            one = list(held)[rng.integers(len(held))]
            calls.append((one, None))
            arena.give(*held.pop(one))
        else:
            size = int(rng.choice([1, 64, 100, 1000, 5000]))
            calls.append((k, size))
            held[k] = arena.take(size), size
    again, there, ends = Packed(arena), {}, [0]
    for k, size in calls:
        if size is None:
            again.give(*there.pop(k))
            continue
        offset = again.take(size)
        assert offset % ALIGN == 0
        for other, bytes_ in there.values():
            assert offset + size <= other or other + bytes_ <= offset
        there[k] = offset, size
        ends.append(offset + size)
    assert again.least == arena.least <= again.size
    assert max(ends) <= again.size < max(ends) + ALIGN


# When room for the last array is needed, there are two gaps of half its size.
GAPS = """graph gaps(%x: f64[1000]) {
  %0: f64[1000] = sin(%x)
  %1: f64[1000] = cos(%x)
  %2: f64[1000] = exp(%x)
  %3: f64[] = reduce_sum(%0, axes=(0,))
  %4: f64[] = reduce_sum(%2, axes=(0,))
  %5: f64[2000] = concat(%1, %1, axis=0)
  %6: f64[] = reduce_sum(%5, axes=(0,))
  return %3, %4, %6
}"""


def test_buffers_are_placed_anew_where_gaps_stayed_empty(monkeypatch):
    graph = parse(GAPS)
    plan = verify(plan_for(graph, Options(), NEVER))
    assert plan.arena == plan.least == 24000
    x = np.linspace(0, 1, 1000)
    for one, other in zip(compile_graph(graph, limits=NEVER)(x), interpret(graph, x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    monkeypatch.setattr(planner, "worthwhile_packing", lambda arena: None)
    once = verify(plan_for(graph, Options(), NEVER))
    assert (once.arena, once.least) == (32000, 24000)
    # Only places differ.
    at = re.compile(r"@\d+|arena of \d+")
    assert at.sub("", str(plan)) == at.sub("", str(once))


def test_a_few_bytes_are_not_worth_planning_again():
    graph = parse(GAPS.replace("1000", "100").replace("2000", "200"))
    plan = plan_for(graph, Options(), NEVER)
    assert plan.arena > plan.least


def test_buffers_are_aligned_with_lines_of_the_cache():
    kernel = compile_graph(parse(CHAIN))
    results = kernel(np.ones(9), borrow=True)
    again = kernel(np.zeros(9), borrow=True)
    assert all(a is b for a, b in zip(results, again, strict=True))
    (groups,) = [w for _, w in kernel._code.pool] or [kernel._code.start()]
    arrays = [a for g in groups for a in g if isinstance(a, np.ndarray) and a.base is not None]
    assert arrays
    assert not [a for a in arrays if a.ctypes.data % ALIGN and a.flags.c_contiguous]


@pytest.mark.parametrize("style", ["planned", "readable"])
@pytest.mark.parametrize("limits", [None, SMALL, SHARED])
def test_results_are_written_into_given_arrays(style, limits):
    graph = parse(CHAIN)
    kernel = compile_graph(graph, style=style, limits=limits)
    x = np.linspace(0, 1, 9)
    known = interpret(graph, x)
    for out in ([np.empty(()), np.empty(9)], [None, np.empty(9)], [np.empty(()), None]):
        found = kernel(x, out=out)
        for one, other, array in zip(found, known, out, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)
            assert array is None or one is array
        assert [r.tobytes() for r in found] == [r.tobytes() for r in kernel(x)]


@pytest.mark.parametrize("style", ["planned", "readable"])
def test_borrowed_results_can_be_given_to_the_next_call_that_borrows(style):
    def function(x):
        return pg.flip(x, 0) * 2.0 + x, pg.sum(x) * x

    kernel = pg.compile(pg.trace(function, pg.spec(9)), style=style)
    x = np.arange(9.0)
    first = kernel(x)
    expected = kernel(first[0])
    for again in (lambda a: a, lambda a: a[::-1][::-1]):
        lent = kernel(x, borrow=True)
        found = kernel(again(lent[0]), borrow=True)
        assert all(map(np.array_equal, found, expected))
        assert all(map(np.array_equal, lent[:1], first[:1]))
    lent = kernel(x, borrow=True)
    found = kernel(x, out=[lent[1], None], borrow=True)
    assert found[0] is lent[1]
    assert all(map(np.array_equal, found, first))


@pytest.mark.parametrize("style", ["planned", "readable"])
def test_borrowed_results_are_overwritten_by_the_next_call_that_borrows(style):
    graph = parse("graph f(%x: f64[3]) {\n%0: f64[3] = sin(%x)\nreturn %x, %0, %0\n}")
    kernel = compile_graph(graph, style=style)
    first = kernel(np.ones(3), borrow=True)
    assert not np.shares_memory(first[1], first[2])
    fresh = kernel(np.zeros(3))
    np.testing.assert_array_equal(first[1], np.sin(np.ones(3)))
    second = kernel(np.full(3, 2.0), borrow=True)
    assert all(a is b for a, b in zip(first, second, strict=True))
    np.testing.assert_array_equal(second[1], np.sin(np.full(3, 2.0)))
    np.testing.assert_array_equal(fresh[1], np.zeros(3))


def test_an_out_that_does_not_fit_is_an_error():
    kernel = compile_graph(parse(CHAIN))
    x = np.ones(9)
    both = np.empty(9)
    locked = np.empty(9)
    locked.setflags(write=False)
    for out in (
        [],
        [None],
        [np.empty(1), None],
        [None, np.empty(9, np.float32)],
        [None, np.empty(18)[::2]],
        [None, locked],
        [None, x],
        [both[:1].reshape(()), both],
        [0.0, None],
    ):
        with pytest.raises(ArgumentError):
            kernel(x, out=out)


def test_equal_graphs_share_their_code_and_keep_their_names_and_lines():
    one, other = parse(CHAIN), parse(CHAIN.replace("graph f", "graph g").replace("%x", "%point"))
    first, second = compile_graph(one), compile_graph(other)
    assert first._code is second._code
    assert first is not second
    assert "def g(point)" in second.source
    assert first._code is not compile_graph(parse(CHAIN.replace("sin", "cos")))._code
    assert first._code is not compile_graph(one, limits=SMALL)._code
    gather = """graph %s(%%x: f64[3], %%i: i64[1]) {
      %s%%0: f64[1] = gather(%%x, %%i, axis=0)
      return %%0
    }"""
    early, late = (compile_graph(parse(gather % p)) for p in (("early", ""), ("late", "\n\n")))
    assert early._code is late._code
    with pytest.raises(Exception, match="graph text:1"):
        early(np.ones(3), np.array([5]))
    with pytest.raises(Exception, match="kernel late") as caught:
        late(np.ones(3), np.array([5]))
    assert "graph text:3" in str(caught.value)


def test_an_executor_writes_into_given_arrays_and_lends_its_own():
    with pg.Program() as program:
        x = pg.data("x", (4,))
        y, z = pg.sin(x), pg.cos(x)
    executor, feed = pg.Executor(), {"x": np.arange(4.0)}
    mine = np.empty(4)
    first, second = executor.run(program, feed, [y, z], out=[None, mine])
    assert second is mine
    np.testing.assert_array_equal(first, np.sin(feed["x"]))
    np.testing.assert_array_equal(mine, np.cos(feed["x"]))
    lent = executor.run(program, feed, [y, z], borrow=True)
    again = executor.run(program, {"x": np.zeros(4)}, [y, z], borrow=True)
    assert lent[0] is again[0]
    np.testing.assert_array_equal(lent[0], np.zeros(4))
    with pytest.raises(ArgumentError, match="out has 1 arrays for 2"):
        executor.run(program, feed, [y, z], out=[mine])


@pytest.mark.parametrize("limits", [None, SMALL, SHARED])
@pytest.mark.long
def test_long_graphs_and_many_results_are_written_into_given_arrays(limits):
    lines = [f"%{i}: f64[5] = sin(%{i - 1 if i else 'x'})" for i in range(2500)]
    names = [f"%{i}" for i in range(0, 2500, 10)]
    text = "\n".join(["graph f(%x: f64[5]) {", *lines, f"return {', '.join(names)}, %x", "}"])
    graph, x = parse(text), np.linspace(0, 1, 5)
    kernel = compile_graph(graph, limits=limits)
    verify(kernel.plan)
    out = [np.empty(5) for _ in graph.outputs]
    for one, array, known in zip(kernel(x, out=out), out, interpret(graph, x), strict=True):
        assert one is array
        np.testing.assert_array_equal(one, known)


def test_the_listing_has_a_comment_for_each_line_of_the_users():
    with pg.Program() as program:
        x = pg.data("x", (200, 30))
        y = pg.tanh(x) * 2.0
        loss = pg.sum(y * y)
        slope = pg.grad(loss, x)
    text = str(pg.Executor().kernel(program, [slope]).plan)
    comments = [line.strip() for line in text.splitlines() if line.strip().startswith("#")]
    assert len(comments) == len(set(comments)) >= 2
    assert any(c.endswith("y = pg.tanh(x) * 2.0") for c in comments)
    assert any(c.startswith("# in the gradient of test_plan.py:") for c in comments)
    graph = pg.parse(str(pg.trace(pg.sin, pg.spec(3))))
    assert "#" not in str(pg.compile(graph).plan)


@pytest.mark.parametrize("style", ["planned", "readable"])
def test_an_exponent_that_is_one_number_in_memory_is_that_of_an_array(style):
    """NumPy takes a root where all exponents are a single 0.5: that of -inf is NaN."""
    graph = pg.parse("""
graph f(%x: f64[2,4], %e: f64[]) {
  %0: f64[2,4] = broadcast(%e, new_axes=(0, 1), shape=(2, 4))
  %1: f64[2,4] = power(%x, %0)
  return %1
}""")
    x = np.tile([-np.inf, -0.0, 4.0, 2.0], (2, 1))
    expected = np.power(x, np.full((2, 4), 0.5))
    assert expected[0, 0] == np.inf
    (found,) = pg.compile(graph, style=style)(x, np.float64(0.5))
    np.testing.assert_array_equal(found, expected)
    assert not np.signbit(found[:, 1]).any()


# Exponents of shape (2, 4) made from %y, and whether an element of %y may stand for several.
EXPONENTS = {
    "an array": ("f64[2,4]", "", "%y", False),
    "its axes permuted": ("f64[4,2]", "%0: f64[2,4] = permute(%y, axes=(1, 0))", "%0", False),
    "repeated in rows": (
        "f64[2]",
        "%0: f64[2,4] = broadcast(%y, new_axes=(1,), shape=(2, 4))",
        "%0",
        True,
    ),
    "a part of what is repeated, its axes permuted": (
        "f64[5]",
        """%0: f64[5,2] = broadcast(%y, new_axes=(1,), shape=(5, 2))
  %1: f64[2,5] = permute(%0, axes=(1, 0))
  %2: f64[2,4] = slice(%1, sizes=(2, 4), starts=(0, 1), steps=(1, 1))""",
        "%2",
        True,
    ),
    "repeated, and copied": (
        "f64[2,2]",
        """%0: f64[2,2,2] = broadcast(%y, new_axes=(1,), shape=(2, 2, 2))
  %1: f64[2,4] = reshape(%0, shape=(2, 4))""",
        "%1",
        False,
    ),
}


@pytest.mark.parametrize("name", EXPONENTS)
def test_exponents_are_copied_where_one_element_stands_for_several(name):
    shape, made, last, copied = EXPONENTS[name]
    graph = parse(f"""graph f(%x: f64[2,4], %y: {shape}) {{
  {made}
  %z: f64[2,4] = power(%x, {last})
  return %z
}}""")
    for limits in (NEVER, SMALL):
        plan = verify(compile_graph(graph, limits=limits).plan)
        (line,) = (line for line in str(plan).splitlines() if " = power " in line)
        assert (" with b" in line) == copied


def test_results_of_known_shapes_have_buffers_beside_stacks_that_grow():
    def slope(x):
        end = pg.while_loop(lambda h: pg.sum(h) < 9.0, lambda h: pg.sin(h) * 3.0, x)
        return pg.grad(pg.sum(end * end), x)

    graph = clean_up(lower(pg.trace(slope, pg.spec(3))))
    text = str(verify(compile_graph(graph, limits=SMALL).plan))
    (line,) = (line for line in text.splitlines() if " = call while_loop" in line)
    assert line.startswith("  b0@0, b1@64, stack0 = call while_loop x0 ")
