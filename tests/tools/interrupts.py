"""Interrupt changes of tensors, as Ctrl-C does: each is made as a whole or not at all.

    python tests/tools/interrupts.py --count 10000 --seed 0

Every case of `CASES` is interrupted by a timer at random times. The exit status is 1 if a change
was torn, if a case could not go on afterwards, or if anything but `KeyboardInterrupt` was raised.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2])]

import numpy as np  # noqa: E402

import primgraph as pg  # noqa: E402
from primgraph import nn, optimizer  # noqa: E402

_ENOUGH_FAILURES = 10


@dataclass(frozen=True)
class Case:
    """A change: `start` prepares it, `act` makes it, `look` returns all that it changes.

    `reads` is a case in which `act` changes nothing that can be seen: it may be repeated.
    """

    start: Callable[[], None]
    act: Callable[[], Any]
    look: Callable[[], Sequence[Any]]
    again: type[BaseException] | None = None

    def expected(self) -> tuple[list[Any], list[Any]]:
        """The values before and after, of runs that are not interrupted."""
        for _ in range(3):
            self.start()
            before = self.values()
            self.start()
            self.act()
            after = self.values()
        return before, after

    def values(self) -> list[Any]:
        return [None if x is None else np.array(x) for x in self.look()]

    def check(self, before: list[Any], after: list[Any]) -> str:
        """Raise `AssertionError` for a torn change; return "before" or "after"."""
        found = self.values()
        if alike(found, after):
            if self.again is not None:
                try:
                    self.act()
                except self.again:
                    pass
                else:
                    raise AssertionError("the change was made, and can be made again")
            return "after"
        assert alike(found, before), f"torn:\n{_differences(found, before, after)}"
        # A change that was not made can be made afterwards.
        self.act()
        found = self.values()
        assert alike(found, after), f"not resumed:\n{_differences(found, before, after)}"
        return "before"


def alike(one: list[Any], other: list[Any]) -> bool:
    """Whether values are equal but for rounding."""
    return len(one) == len(other) and all(
        (a is None) == (b is None)
        and (a is None or (a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-12)))
        for a, b in zip(one, other, strict=True)
    )


def _differences(found: list[Any], before: list[Any], after: list[Any]) -> str:
    lines = []
    for i, (x, a, b) in enumerate(zip(found, before, after, strict=True)):
        state = [word for word, y in (("before", a), ("after", b)) if alike([x], [y])]
        lines.append(f"  {i}: {' and '.join(state) or f'neither: {x!r:.60}'}")
    return "\n".join(lines)


# The cases.

_ROWS, _WIDTH = 8, 6


def _network() -> tuple[nn.Layer, Any, Any]:
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(5, _WIDTH), nn.Tanh(), nn.Linear(_WIDTH, 3))
    x, y = rng.standard_normal((_ROWS, 5)), rng.standard_normal((_ROWS, 3))
    return model, pg.tensor(x), pg.tensor(y)


def _loss(model: nn.Layer, x: Any, y: Any) -> Any:
    return pg.mean((model(x) - y) ** 2)


def _gradients(parameters: Sequence[Any]) -> list[Any]:
    return [None if p.grad is None else p.grad.numpy() for p in parameters]


def step_case(shared: bool = False) -> Case:
    """A step of Adam; with `shared`, of parameters that a program trains, too."""
    model, x, y = _network()
    parameters = list(model.parameters())
    adam = optimizer.Adam(0.05, parameters=parameters, weight_decay=0.01)
    program = None
    if shared:
        with pg.Program() as program:
            data, labels = pg.data("x", (_ROWS, 5)), pg.data("y", (_ROWS, 3))
            adam.minimize(pg.mean((model(data) - labels) ** 2))
    _loss(model, x, y).backward()
    adam.step()
    weights, states = model.state_dict(), adam.state_dict()

    def start() -> None:
        model.set_state_dict(weights)
        adam.set_state_dict(states)
        adam.clear_grad()
        _loss(model, x, y).backward()

    def look() -> list[Any]:
        found = [*model.state_dict().values(), *adam.state_dict().values()]
        if program is not None:
            found += [v for _, v in sorted(program.state_dict().items())]
        return found + [p.numpy() for p in parameters]

    return Case(start, adam.step, look)


def news_case() -> Case:
    """A look at tensors whose states a program has trained."""
    model, x, y = _network()
    parameters = list(model.parameters())
    with pg.Program() as program:
        data, labels = pg.data("x", (_ROWS, 5)), pg.data("y", (_ROWS, 3))
        loss = pg.mean((model(data) - labels) ** 2)
        optimizer.SGD(0.1).minimize(loss)
    first, executor = program.state_dict(), pg.Executor()
    feed = {"x": x.numpy(), "y": y.numpy()}

    def start() -> None:
        program.set_state_dict(first)
        [p.numpy() for p in parameters]
        executor.run(program, feed, [loss])

    def act() -> None:
        for parameter in parameters:
            parameter.numpy()

    def look() -> list[Any]:
        return [p.numpy() for p in parameters] + [
            v for _, v in sorted(program.state_dict().items())
        ]

    return Case(start, act, look)


def backward_case(known: bool) -> Case:
    """Gradients of a network; with `known`, added to those that are there."""
    model, x, y = _network()
    parameters = list(model.parameters())
    held: list[Any] = []

    def start() -> None:
        for parameter in parameters:
            parameter.grad = None
        if known:
            _loss(model, x, y).backward()
        hidden = pg.tanh(model(x))
        hidden.retain_grad()
        held[:] = [hidden, pg.mean((hidden - y) ** 2)]

    def look() -> list[Any]:
        return _gradients([*parameters, held[0]])

    return Case(start, lambda: held[1].backward(), look, pg.BuildError)


def in_place_case(kind: str) -> Case:
    """A change in place of a tensor with hooks, by an operator or by an index."""
    held: dict[str, Any] = {}

    def start() -> None:
        leaf = pg.tensor(np.arange(6.0), requires_grad=True)
        tensor = leaf * 2.0
        seen: list[Any] = []
        tensor.register_hook(lambda g: seen.append(g))
        held.update(leaf=leaf, tensor=tensor, other=tensor * tensor, seen=seen)

    def act() -> None:
        if kind == "index":
            held["tensor"][2:4] = 7.0
        elif kind == "arrays":
            held["tensor"][np.array([1, 5])] = np.array([8.0, 9.0])
        else:
            held["tensor"].add_(held["other"])

    def look() -> list[Any]:
        return [held["tensor"].numpy(), held["other"].numpy(), held["leaf"].numpy()]

    return Case(start, act, look)


def leaf_case() -> Case:
    """A change in place of a leaf that requires a gradient."""
    leaf = pg.tensor(np.zeros(4), requires_grad=True)

    def start() -> None:
        with pg.no_grad():
            leaf.fill_(1.0)
        leaf.grad = None

    def act() -> None:
        with pg.no_grad():
            leaf.add_(2.0)

    def look() -> list[Any]:
        (leaf * leaf).sum().backward()
        found = leaf.grad.numpy()
        leaf.grad = None
        return [leaf.numpy(), found]

    return Case(start, act, look)


def manager_case(group: bool = False) -> Case:
    """Gradients by a manager, or by two in a group."""
    model, x, y = _network()
    parameters = list(model.parameters())
    managers = [pg.GradManager().attach(parameters[:2]), pg.GradManager().attach(parameters[2:])]
    if not group:
        managers = [pg.GradManager().attach(parameters)]

    def start() -> None:
        for manager in managers:
            manager.release()
        for parameter in parameters:
            parameter.grad = None

    def act() -> None:
        if group:
            with managers[0] | managers[1]:
                loss = _loss(model, x, y)
                half = loss * 0.5
                managers[0].backward(half)
            return
        with managers[0]:
            managers[0].backward(_loss(model, x, y))

    def look() -> list[Any]:
        for manager in managers:
            manager.release()
        found = _gradients(parameters)
        # Nothing is left of the record: the tensors are the leaves that they were.
        return [*found, [p.is_leaf for p in parameters], *[p.numpy() for p in parameters]]

    return Case(start, act, look)


def load_case(kind: str) -> Case:
    """The states of a layer, which several programs have or none, or of an optimizer."""
    model, x, y = _network()
    parameters = list(model.parameters())
    adam = optimizer.Adam(0.05, parameters=parameters)
    if kind == "programs":
        for layer, width in ((model[0], 5), (model[2], _WIDTH)):
            with pg.Program():
                layer(pg.data("x", (_ROWS, width)))
    _loss(model, x, y).backward()
    adam.step()
    owner: Any = adam if kind == "optimizer" else model
    one = owner.state_dict()
    other = {name: array + 0.25 for name, array in one.items()}

    def look() -> list[Any]:
        return [*owner.state_dict().values(), *(p.numpy() for p in parameters)]

    return Case(lambda: owner.load_state_dict(one), lambda: owner.load_state_dict(other), look)


def clear_case() -> Case:
    """All gradients are cleared."""
    model, x, y = _network()
    parameters = list(model.parameters())
    sgd = optimizer.SGD(0.1, parameters=parameters)
    return Case(
        lambda: _loss(model, x, y).backward(inputs=_cleared(parameters)),
        sgd.clear_grad,
        lambda: _gradients(parameters),
    )


def _cleared(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        parameter.grad = None
    return parameters


def save_case() -> Case:
    """A program in a file: the old one or the new one, and nothing beside it."""
    with pg.Program() as program:
        x = pg.data("x", (4,))
        for i in range(4):
            x = x * pg.create_parameter((50,), name=f"w{i}")[:4]
    first = program.state_dict()
    other = {name: array + 1.0 for name, array in first.items()}
    folder = Path(tempfile.mkdtemp())
    # Not when it is collected: an interrupt may come in the midst of that.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "program.pgz"

    def start() -> None:
        program.set_state_dict(first)
        pg.save(program, path)
        program.set_state_dict(other)

    def look() -> list[Any]:
        assert [p.name for p in folder.iterdir()] == ["program.pgz"]
        return [v for _, v in sorted(pg.load(path).state_dict().items())]

    return Case(start, lambda: pg.save(program, path), look)


CASES: dict[str, Callable[[], Case]] = {
    "step": step_case,
    "step_shared": lambda: step_case(shared=True),
    "news": news_case,
    "backward": lambda: backward_case(known=False),
    "backward_added": lambda: backward_case(known=True),
    "write_operator": lambda: in_place_case("operator"),
    "write_index": lambda: in_place_case("index"),
    "write_arrays": lambda: in_place_case("arrays"),
    "write_leaf": leaf_case,
    "manager": manager_case,
    "managers": lambda: manager_case(group=True),
    "load_layer": lambda: load_case("layer"),
    "load_programs": lambda: load_case("programs"),
    "load_optimizer": lambda: load_case("optimizer"),
    "clear_grad": clear_case,
    "save": save_case,
}


# Interrupts.


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def interrupted(function: Callable[[], Any], after: float) -> bool:
    """Whether an interrupt came while `function` ran, `after` so many seconds."""
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        try:
            function()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    return False


class Interrupter:
    """Raises `KeyboardInterrupt` at one of the instructions of Python functions.

    Args:
        place: the number of the instruction; 0 only counts them.
        package: a word in the names of the modules whose instructions count; all by default.
    """

    def __init__(self, place: int, package: str = "") -> None:
        self.place, self.package, self.count = place, package, 0

    def __call__(self, frame: FrameType, event: str, arg: object) -> Interrupter | None:
        if self.package not in frame.f_globals.get("__name__", ""):
            return None
        frame.f_trace_opcodes = True
        self.count += 1
        if self.count == self.place:
            raise KeyboardInterrupt
        return self

    def run(self, function: Callable[[], Any]) -> bool:
        """Call the function, and return whether it was interrupted."""
        before, handled = sys.gettrace(), sys.exc_info()[1]
        sys.settrace(self)
        try:
            function()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
            if handled is None:
                # Where a trace function raises at the end of an `except` block, CPython keeps the
                # exception of the block as the one that is handled.
                ctypes.pythonapi.PyErr_SetExcInfo(None, None, None)
        return False


def run(name: str, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Interrupt one case `count` times: what was found then, and descriptions of failures."""
    case = CASES[name]()
    before, after = case.expected()
    rng = np.random.default_rng([seed, len(name)])
    took = _seconds(case)
    found: Counter[str] = Counter()
    failures: list[str] = []
    while found.total() < count and len(failures) < _ENOUGH_FAILURES:
        try:
            case.start()
            if interrupted(case.act, max(float(rng.uniform(0.0, 1.1 * took)), 1e-6)):
                found[case.check(before, after)] += 1
        except Exception:
            found["failed"] += 1
            failures.append(traceback.format_exc(limit=-3))
            case = CASES[name]()
            case.expected()
    return found, failures


def _seconds(case: Case) -> float:
    took = []
    for _ in range(9):
        case.start()
        begin = time.perf_counter()
        case.act()
        took.append(time.perf_counter() - begin)
    return float(np.median(took))


def main() -> int:
    parser = argparse.ArgumentParser(description="Interrupt changes of tensors.")
    parser.add_argument("--count", type=int, default=10000, help="interrupts of all cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", default=",".join(CASES))
    options = parser.parse_args()
    names = options.cases.split(",")
    each = -(-options.count // len(names))
    total: Counter[str] = Counter()
    signal.signal(signal.SIGALRM, _interrupt)
    for name in names:
        found, failures = run(name, each, options.seed)
        total += found
        print(f"{name:16} {dict(found)}", flush=True)
        for text in failures:
            print(f"  {text}", flush=True)
    print(f"{total.total()} interrupts, {total['failed']} failed")
    return int(total["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
