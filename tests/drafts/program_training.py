"""Random programs that train: states, updates, constant parts, scopes that several share, files.

The computation is a random program, some of whose inputs have become states. Each run is compared
with what the interpreter makes of the equations from the states before it, updates by hand.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from program_draft import Choices, Draft
from program_networks import OPTIMIZERS, NetworkTraining
from program_tolerance import differs
from random_programs import random_draft

import primgraph as pg
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret

_RUNS = 6
_SIDE = 9

# How often the program is one of a network, is built twice for one scope, is run by two threads.
_NETWORKS = 0.4
_TWICE = 0.3
_THREADS = 0.2

# Parts of no input, of more elements than are folded.
_CONSTANTS: tuple[Callable[[], pg.Variable], ...] = (
    lambda: pg.tril(pg.ones((_SIDE, _SIDE))),
    lambda: pg.sin(pg.reshape(pg.arange(_SIDE * _SIDE, dtype="float64"), (_SIDE, _SIDE))),
    lambda: pg.eye(_SIDE) * 2.0,
    lambda: pg.uniform(3, (_SIDE, _SIDE)),
)

# What is computed from a state without changing an element.
_VIEWS: tuple[Callable[[pg.Variable], pg.Variable], ...] = (
    pg.assign,
    pg.ravel,
    lambda w: pg.reshape(w, w.shape),
    lambda w: w.T,
    lambda w: w[...],
    lambda w: +w,
)


class Training:
    """A program, what may be fetched of it, and feeds for it."""

    def __init__(self, seed: int) -> None:
        drafted, draft = random_draft(seed)
        self.draft: Draft = draft
        self.program = pg.Program("training")
        self.program.random_seed = seed
        self.feeds: dict[str, np.ndarray] = {}
        self.fetches: list[pg.Variable] = []
        with self.program:
            values = [
                self._input(i, value, array)
                for i, (value, array) in enumerate(
                    zip(drafted.graph.inputs, drafted.feeds, strict=True)
                )
            ]
            computed = self.program.builder.inline(drafted.graph, values)
            results = [pg.Variable(self.program.builder, v) for v in computed]
            self.fetches += results
            self._constant_part()
            states = [pg.Variable(self.program.builder, v) for v in self.program.states]
            self.fetches += states
            self.fetches += [draft.choose(_VIEWS)(w) for w in states]
            self._updates(drafted.smooth, results, states)

    def _input(self, i: int, value: Value, array: np.ndarray) -> Value:
        type = value.type
        if not self.draft.chance(0.5):
            self.feeds[f"x{i}"] = array
            return pg.data(f"x{i}", type.shape, type.dtype).value
        rule = pg.initializers.Assign(array)
        return self.program.state(f"w{i}", type, rule, type.is_float).value

    def _constant_part(self) -> None:
        """A state, and a value that is computed from it and from what depends on no input."""
        rule = pg.initializers.Normal()
        w = pg.create_parameter((_SIDE, _SIDE), name="w", initializer=rule)
        still = pg.create_parameter((_SIDE, _SIDE), name="still", initializer=rule)
        still.stop_gradient = True
        part = self.draft.choose(_CONSTANTS)()
        self.loss = pg.mean(pg.tanh(w * part) * pg.tanh(still @ part))
        self.fetches.append(self.loss)

    def _updates(self, smooth: bool, results: list[pg.Variable], states: list[pg.Variable]) -> None:
        draft, program = self.draft, self.program
        for w in states:
            alike = [v for v in results if v.type == w.type]
            if alike and draft.chance(0.6):
                program.update(w, draft.choose(alike))
            elif draft.chance(0.3):
                program.update(w, pg.where(w > 0, w, w) if w.dtype.kind in "iuf" else w)
        if not draft.chance(0.7):
            return
        loss = self.loss
        floats = [v for v in results if v.dtype.kind == "f" and v.size]
        if smooth and floats and draft.chance(0.5):
            loss = loss + pg.mean(pg.tanh(draft.choose(floats).astype("float64")))
        free = [p for p in program.parameters() if p.value not in program.updates]
        try:
            optimizer = draft.choose(OPTIMIZERS)()
            for _ in range(draft.below(3, 1)):
                optimizer.minimize(loss, parameters=free)
        except pg.BuildError:
            # Nothing is left that the loss depends on.
            pass


def check_training(seed: int, folder: Path, seen: Counter[str] | None = None) -> None:
    """Runs of a random training program do what the interpreter says, in all ways to run it."""
    seen = Counter() if seen is None else seen
    kind = NetworkTraining if np.random.default_rng((seed, 6)).random() < _NETWORKS else Training
    made = kind(seed)
    seen[kind.__name__] += 1
    draft, program = made.draft, made.program
    scope = program.scope if draft.chance(0.5) else pg.Scope()
    executors = [pg.Executor(scope), pg.Executor(scope)]
    names = _named(program, made.fetches)
    programs = [program, program.clone(), program.clone(for_test=True)]
    if draft.chance(_TWICE):
        twin = kind(seed)
        assert _named(twin.program, twin.fetches) == names
        programs.append(twin.program)
        seen["two programs in one scope"] += 1
    if isinstance(made, NetworkTraining):
        made.check_modes(scope)
    for number in range(_RUNS):
        if draft.chance(0.2):
            path = folder / f"{seed}_{number}.pgz"
            pg.save(program, path, scope)
            program = pg.load(path)
            os.unlink(path)
            executors, programs, scope = [pg.Executor()], [program], program.scope
            seen["saved and loaded"] += 1
        chosen = draft.choose(programs)
        listed = draft.choose([names, [draft.choose(names)], []])
        fetches = [made.program.variable(n) if chosen is made.program else None for n in listed]
        wanted: Any = [n if v is None or draft.chance(0.5) else v
                       for n, v in zip(listed, fetches, strict=True)]  # fmt: skip
        options: dict[str, Any] = {"update": draft.chance(0.8)}
        if draft.chance(0.2):
            options["borrow"] = True
        if draft.chance(0.2):
            types = [_variable(chosen, n).type for n in listed]
            options["out"] = [np.empty(t.shape, t.dtype) for t in types]
        elif draft.chance(0.3):
            wanted = _in_dicts(draft, wanted)
            seen["dicts of fetches"] += 1
        seen.update(k for k, v in options.items() if v is not True)
        _check_run(draft.choose(executors), chosen, scope, made.feeds, listed, wanted, options)
    if draft.chance(_THREADS):
        _check_threads(program, scope, made.feeds, names)
        seen["scopes shared by threads"] += 1


def _named(program: pg.Program, fetches: list[pg.Variable]) -> list[str]:
    """The names of all fetches; those that were given none get one, which copies have too."""
    given = {value: name for name, value in program.builder.names.items()}
    for i, fetch in enumerate(fetches):
        if fetch.value not in given:
            fetch.name = given[fetch.value] = f"fetch{i}"
    return [given[fetch.value] for fetch in fetches]


def _check_threads(
    program: pg.Program, scope: pg.Scope, feeds: dict[str, np.ndarray], names: list[str]
) -> None:
    """Four runs in two threads leave what four runs after each other do."""
    outputs = [_variable(program, n).value for n in names] + list(program.updates.values())
    graph = Graph(program.builder.inputs, program.builder.slice(outputs), outputs, "all")
    feed, other = {n: feeds[n] for n in _needed(graph)}, pg.Scope()
    program.set_state_dict(program.state_dict(scope), other)
    serial = pg.Executor(other)
    for _ in range(4):
        serial.run(program, feed, names)

    def runs(_: int) -> None:
        executor = pg.Executor(scope)
        for _ in range(2):
            executor.run(program, feed, names)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(runs, range(2)))
    expected, found = program.state_dict(other), program.state_dict(scope)
    assert all(expected[n].tobytes() == found[n].tobytes() for n in expected), "threads mix states"


def _variable(program: pg.Program, name: str) -> pg.Variable:
    found = program.variable(name)
    if found is None:
        raise AssertionError(f"no variable {name!r}")
    return found


def _check_run(
    executor: pg.Executor,
    program: pg.Program,
    scope: pg.Scope,
    feeds: dict[str, np.ndarray],
    names: list[str],
    wanted: list[Any] | dict[str, Any],
    options: dict[str, Any],
) -> None:
    before = program.state_dict(scope)
    updates = program.updates if options["update"] else {}
    fetched = [_variable(program, n).value for n in names]
    outputs = [updates.get(v, v) for v in fetched] + list(updates.values())
    builder = program.builder
    graph = Graph(builder.inputs, builder.slice(outputs), outputs, "oracle")
    arrays = [before[v.hint] if v in program.states else feeds[v.hint] for v in graph.inputs]
    with np.errstate(all="ignore"):
        expected = interpret(graph, *arrays)
    results = executor.run(program, {n: feeds[n] for n in _needed(graph)}, wanted, **options)
    found = _in_order(results, wanted)
    after = program.state_dict(scope)
    new = [after[program.states[v].name] for v in updates]
    fault = differs(graph, arrays, expected, [*found, *new])
    assert not fault, f"{options}, fetched {names}: {fault}\n{graph}"
    kept = [s.name for v, s in program.states.items() if v not in updates]
    assert all(before[n].tobytes() == after[n].tobytes() for n in kept)


def _in_dicts(draw: Choices, wanted: list[Any]) -> dict[str, Any]:
    """The same fetches, by names, in dicts and lists, which keep their order."""
    ends = sorted({0, len(wanted), draw.below(len(wanted) + 1)})
    parts = [wanted[i:k] for i, k in pairwise(ends)]
    return {
        "first": parts[0] if parts else [],
        "others": {f"k{i}": item for i, item in enumerate(parts[1] if len(parts) > 1 else ())},
    }


def _in_order(results: Any, wanted: Any) -> list[np.ndarray]:
    """The arrays in results, which have the containers of what was `wanted`."""
    if not isinstance(wanted, list | dict):
        return [results]
    assert type(results) is type(wanted)
    if isinstance(wanted, dict):
        assert list(results) == list(wanted)
        results, wanted = results.values(), wanted.values()
    pairs = zip(results, wanted, strict=True)
    return [array for result, item in pairs for array in _in_order(result, item)]


def _needed(graph: Graph) -> list[str]:
    """The names of the inputs that the outputs depend on."""
    used = {v for eqn in graph.body for v in eqn.inputs}.union(graph.outputs)
    return [v.hint for v in graph.inputs if v in used and v.hint.startswith("x")]
