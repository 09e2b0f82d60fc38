"""Collocation constraints of opty's gallery, and their Jacobians, against the code that opty makes.

    python benchmarks/opty_examples.py FOLDER [--examples NAME ...] [--solve]

needs opty (with cyipopt or cyipopt-wheels), SymPy, Cython, a C compiler, and the examples, in the
folder `examples-gallery` of opty's source distribution (J. K. Moore and A. J. van den Bogert,
"opty: Software for trajectory optimization and parameter identification using direct collocation",
Journal of Open Source Software 3(21), 2018).

Each example is run up to its problem. opty's collocator then makes the constraints and the values
of their sparse Jacobian by its NumPy and Cython back ends; `pg.interop.from_sympy` makes those of
one collocation node from the same discretised equations, `pg.grad` differentiates, and `pg.vmap`
repeats them for all nodes. Values are compared at random points. `--solve` solves with
IPOPT by opty's functions and by ours.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import runpy
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import primgraph as pg


class FoundError(Exception):
    """The problem of an example, which ends the run of the example."""


def problem_of(file: Path) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Run an example up to its problem, and return the problem's arguments."""
    opty, collocation = map(importlib.import_module, ("opty", "opty.direct_collocation"))

    class Recorder:
        INF = collocation.Problem.INF

        def __init__(self, *args: Any, **options: Any) -> None:
            raise FoundError(args, options)

    own, before = collocation.Problem, Path.cwd()
    opty.Problem = collocation.Problem = Recorder
    os.chdir(file.parent)
    sys.path.insert(0, str(file.parent))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(file))
    except FoundError as found:
        return found.args[0], found.args[1]
    finally:
        os.chdir(before)
        sys.path.remove(str(file.parent))
        opty.Problem = collocation.Problem = own
    raise ValueError(f"{file.name} has no problem")


def collocator(args: tuple[Any, ...], options: dict[str, Any], backend: str) -> Any:
    """The collocator of a problem with one of opty's back ends."""
    kept = {k: v for k, v in options.items() if k not in ("bounds", "eom_bounds", "backend", "obj")}
    module = importlib.import_module("opty.direct_collocation")
    return module.ConstraintCollocator(*args[2:], **kept, backend=backend)


class Node:
    """The equations of one node, as a function of the symbols of a node and of those of all nodes.

    Each of these is known or unknown: `function` takes four lists of numbers.
    """

    def __init__(self, opty: Any) -> None:
        self.midpoint = opty.integration_method == "midpoint"
        states = list(opty.current_discrete_state_symbols)
        inputs = list(opty.current_discrete_specified_symbols)
        unknown = list(opty.current_unknown_discrete_specified_symbols)
        if self.midpoint:
            states += opty.next_discrete_state_symbols
            inputs += opty.next_discrete_specified_symbols
            unknown += opty.next_unknown_discrete_specified_symbols
        else:
            states += opty.previous_discrete_state_symbols
        # In the order of the rows of `lists`.
        varying = [*states, *inputs]
        fixed = [*opty.known_parameters, *opty.unknown_parameters, opty.time_interval_symbol]
        is_free = {*states, *unknown, *opty.unknown_parameters}
        if opty._variable_duration:
            is_free.add(opty.time_interval_symbol)
        found = [(group, free) for free in (True, False) for group in (varying, fixed)]
        self.groups = [[s for s in group if (s in is_free) is free] for group, free in found]
        self.places = [
            [group.index(s) for s in chosen]
            for chosen, (group, _) in zip(self.groups, found, strict=True)
        ]
        self.traced = pg.interop.from_sympy(list(opty.discrete_eom), self.groups)
        # Known functions of a state, known derivatives by it, and the state.
        known, names = self.groups[2], [str(s) for s in self.groups[2]]
        self.chained = [
            (i, names.index(f"d{f.func.__name__}_d{f.args[0]}"), self.groups[0].index(f.args[0]))
            for i, f in enumerate(known)
            if f.args and f.args[0] in self.groups[0]
        ]
        self.axes = tuple([0 if k % 2 == 0 else None] * len(self.groups[k]) for k in range(4))

    def function(self, *lists: Any) -> Any:
        """The constraints of one node, by the chain rule where a known value has a derivative."""
        free, known = lists[0], list(lists[2])
        for value, slope, state in self.chained:
            known[value] += known[slope] * (free[state] - pg.stop_gradient(free[state]))
        return self.traced(free, lists[1], known, lists[3])

    def lists(self, states: Any, inputs: Any, constants: Any, interval: Any) -> list[list[Any]]:
        """The four lists of all nodes: a row for each symbol of a node, a number for the others."""
        ends = slice(None, -1), slice(1, None)
        here, beside = ends if self.midpoint else ends[::-1]
        rows = [*states[:, here], *states[:, beside]]
        if inputs.size:
            table = inputs.reshape((-1, states.shape[1]))
            rows += [*table[:, here], *(table[:, beside] if self.midpoint else ())]
        tables = [rows, [*constants, interval]]
        return [[tables[k % 2][i] for i in self.places[k]] for k in range(4)]

    def values(self, *given: Any) -> Any:
        """The constraints of all nodes, in opty's order."""
        nodes = pg.vmap(
            lambda *lists: pg.stack(self.function(*lists)), in_axes=self.axes, out_axes=1
        )
        return nodes(*self.lists(*given)).reshape(-1)

    def slopes(self, *given: Any) -> Any:
        """The values of the Jacobian of all nodes, in opty's order."""

        def of_node(*lists: Any) -> Any:
            found = []
            for row in range(len(self.traced.graph.outputs)):
                by = pg.grad(lambda *lists, k=row: self.function(*lists)[k], argnums=(0, 1))
                found += [slope for part in by(*lists) for slope in part]
            return pg.stack(found)

        return pg.vmap(of_node, in_axes=self.axes)(*self.lists(*given)).reshape(-1)

    def functions(self, opty: Any, target: str) -> tuple[Callable[[Any], Any], ...]:
        """Compiled constraints, and values of the Jacobian, of the free variables."""
        states = pg.spec((opty.num_states, opty.num_collocation_nodes))
        inputs = pg.spec((opty.num_input_trajectories, opty.num_collocation_nodes))
        specs = states, inputs, pg.spec(opty.num_parameters), pg.spec(())
        made = []
        for function, kind in ((self.values, "con"), (self.slopes, "jac")):
            kernel = pg.compile(pg.trace(function, *specs, rebind=False), target=target)
            made.append(opty._wrap_constraint_funcs(into_one_array(kernel, inputs.shape), kind))
        return tuple(made)


def into_one_array(kernel: pg.Kernel, shape: tuple[int, ...]) -> Callable[..., Any]:
    """A function that writes into the same array at each call, as those of opty do."""
    result = np.empty(kernel.graph.output_types[0].shape)

    def call(states: Any, inputs: Any, constants: Any, interval: Any) -> Any:
        """Evaluate all nodes; opty reads a docstring with: Parameters Returns"""
        return kernel(states, inputs.reshape(shape), constants, interval, out=result)

    return call


def opty_functions(opty: Any) -> tuple[Callable[[Any], Any], ...]:
    """Constraints and values of the Jacobian by a back end of opty."""
    return opty.generate_constraint_function(), opty.generate_jacobian_function()


def best(function: Callable[[Any], Any], x: Any) -> float:
    """The shortest of some runs, in microseconds of this process."""
    times: list[float] = []
    while sum(times) < 0.3 or len(times) < 3:
        began = time.process_time()
        function(x)
        times.append(time.process_time() - began)
    return 1e6 * min(times)


def difference(found: Any, wanted: Any) -> float:
    """The largest difference, of the largest value."""
    return float(np.max(np.abs(found - wanted)) / np.max(np.abs(wanted)))


def compared(file: Path, backends: list[str]) -> list[float]:
    """Print the line of an example; the ratios of our times to those of each back end."""
    problem = problem_of(file)
    opty = collocator(*problem, backends[0])
    x = np.random.default_rng(0).uniform(0.1, 0.9, opty.num_free)
    began = time.process_time()
    ours = Node(opty).functions(opty, "c")
    built = time.process_time() - began
    found, ratios = [f(x) for f in ours], []
    line = f"{file.stem.removeprefix('plot_'):36} {opty.num_eom:3} {opty.num_collocation_nodes:5}"
    line += f" {built:6.1f} s"
    for backend in backends:
        theirs = opty_functions(collocator(*problem, backend))
        errors = [difference(a, f(x)) for a, f in zip(found, theirs, strict=True)]
        times = [[best(f, x) for f in pair] for pair in zip(ours, theirs, strict=True)]
        ratios.append(sum(own for own, _ in times) / sum(other for _, other in times))
        both = ", ".join(f"{own:.0f} / {other:.0f}" for own, other in times)
        line += f"  {backend} {both} us, ratio {ratios[-1]:.3f}, error {max(errors):.0e}"
    print(line, flush=True)
    return ratios


def solved(file: Path) -> None:
    """Print the result of IPOPT with the functions of opty's NumPy back end, and with ours."""
    made = importlib.import_module("opty.direct_collocation").Problem
    args, options = problem_of(file)
    for who in ("opty", "primgraph"):
        problem = made(*args, **{**options, "backend": "numpy"})
        if who == "primgraph":
            opty = problem.collocator
            problem.con, problem.con_jac = Node(opty).functions(opty, "c")
        problem.add_option("print_level", 0)
        problem.add_option("max_iter", 500)
        start = np.random.default_rng(0).uniform(0.1, 0.9, problem.num_free)
        began = time.perf_counter()
        _, info = problem.solve(start)
        took = time.perf_counter() - began
        name = file.stem.removeprefix("plot_")
        print(f"{name:36} {who:9} {info['status']} {info['obj_val']:.8g} {took:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--examples", nargs="*", default=[])
    parser.add_argument("--backends", nargs="*", default=["numpy", "cython"])
    parser.add_argument("--solve", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    importlib.import_module("matplotlib").use("Agg")
    files = sorted(options.folder.rglob("plot_*.py"), key=lambda file: file.stem)
    for file in files:
        if options.examples and file.stem.removeprefix("plot_") not in options.examples:
            continue
        try:
            if options.solve:
                solved(file)
            else:
                compared(file, options.backends)
        except Exception as error:
            text = str(error).splitlines() or [""]
            print(f"{file.stem}: {type(error).__name__}: {text[0]:.80}", flush=True)


if __name__ == "__main__":
    main()
