"""Random programs, as many as asked for: `python tests/drafts/fuzz.py --programs 20000 --seed 0`.

It prints what fails, shrunk, and at the end which primitives and rules were exercised how often.
The exit status is 1 if a program failed, or if some primitive was in none of them. With
`--target c` programs are compiled to C, and nothing else is checked; `CC` may have options, such as
`CC="cc -fsanitize=undefined"`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("PRIMGRAPH_DEBUG", "1")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from program_batched import BatchedProgram  # noqa: E402
from program_batched_checks import check_batched  # noqa: E402
from program_calls import CallsProgram, check_calls  # noqa: E402
from program_checks import check  # noqa: E402
from program_complex import check_complex  # noqa: E402
from program_custom import check_custom  # noqa: E402
from program_derivatives import equations_of  # noqa: E402
from program_edges import EdgeProgram, check_edges  # noqa: E402
from program_guard_checks import check_guarded  # noqa: E402
from program_guards import GuardedProgram  # noqa: E402
from program_identity import IdentityProgram, check_identity  # noqa: E402
from program_jets import check_jets  # noqa: E402
from program_long import check_long  # noqa: E402
from program_named import check_named, named_program  # noqa: E402
from program_native import TOGETHER, native_faults  # noqa: E402
from program_numpy import NumpyProgram  # noqa: E402
from program_numpy_checks import check_numpy  # noqa: E402
from program_placed import PlacedProgram  # noqa: E402
from program_placed_checks import check_placed, check_placed_natively  # noqa: E402
from program_scalars import ScalarProgram, check_scalars  # noqa: E402
from program_singular import SingularProgram  # noqa: E402
from program_singular_checks import check_singular  # noqa: E402
from program_sizes import check_sizes, sides  # noqa: E402
from program_spectra import SpectralProgram, check_spectral  # noqa: E402
from program_statics import check_statics  # noqa: E402
from program_tiered import check_tiered  # noqa: E402
from program_torch import TorchProgram, check_torch  # noqa: E402
from program_training import check_training  # noqa: E402
from program_transforms import check_transforms  # noqa: E402
from random_programs import Program, random_draft  # noqa: E402

import primgraph.transforms.optimize.simplify  # noqa: E402, F401
from primgraph.ir.graph import Graph, Value  # noqa: E402
from primgraph.ir.interpret import interpret  # noqa: E402
from primgraph.ir.primitive import Primitive, registered  # noqa: E402
from primgraph.transforms import dead_code  # noqa: E402

_ENOUGH_FAILURES = 20

# Of so many seeds one makes a training program too, one a program whose size lies at a threshold,
# one a program that goes through every transform, one a program with a custom function in it, and
# one a program whose kernel changes from NumPy to C.
_TRAINED = 25
_TRANSFORMED = 20
_CUSTOM = 20
_SIZED = 120
_TIERED = 20
# And one a program of sizes that have names, and one of complex numbers.
_NAMED = 10
_COMPLEX = 10
# One in so many calls compiled functions with static arguments.
_STATIC = 50
# Before so many programs in C those of ten seeds that come to be part by part.
_PLACED_IN_C = 100
# Before so many a long one.
_LONG_IN_C = 50
# And of one in so many derivatives of high orders are asked.
_OF_HIGH_ORDER = 10


@dataclass(frozen=True, slots=True)
class Special:
    """Programs of a kind of their own, made of steps of which some can be left out.

    Of `every` seeds one makes such a program too: that which leaves `turn`.
    """

    name: str
    made: Callable[..., Any]
    check: Callable[..., None]
    every: int
    turn: int = 0


_IN_NUMPY = Special("NumPy", NumpyProgram, check_numpy, 2)
_SPECIAL = (
    Special("guarded", GuardedProgram, check_guarded, 50),
    Special("singular", SingularProgram, check_singular, 150, 1),
    Special("spectral", SpectralProgram, check_spectral, 75, 8),
    Special("batched", BatchedProgram, check_batched, 150, 2),
    Special("edge", EdgeProgram, check_edges, 75, 3),
    Special("placed", PlacedProgram, check_placed, 30, 4),
    Special("identity", IdentityProgram, check_identity, 20, 5),
    Special("torch", TorchProgram, check_torch, 20, 6),
    Special("calls", CallsProgram, check_calls, 10, 7),
    Special("scalar", ScalarProgram, check_scalars, 5, 2),
    _IN_NUMPY,
)


def main() -> int:
    options = _options()
    warnings.simplefilter("error")
    coverage: dict[str, Counter[str]] = {k: Counter() for k in ("jvp", "transpose", "simplify")}
    count_rules(coverage)
    seen: Counter[str] = Counter()
    primitives: Counter[str] = Counter()
    sizes: Counter[str] = Counter(sides())
    if options.target == "c":
        return natively(options)
    start, failures, done = time.monotonic(), 0, 0
    for seed in range(options.seed, options.seed + options.programs):
        if time.monotonic() - start > 60 * options.minutes or failures >= _ENOUGH_FAILURES:
            break
        if options.numpy:
            done += 1
            failures += not holds(_IN_NUMPY, seed, seen)
            told(done, failures, start, options.progress)
            continue
        done += 1
        failures += plainly(seed, seen, primitives)
        if seed % _TRAINED == 0:
            failures += not trains(seed, seen)
        if seed % _COMPLEX == 0:
            failures += not agrees(seed)
        if seed % _STATIC == 4:
            failures += not has_statics(seed, seen)
        for kind in _SPECIAL:
            if seed % kind.every == kind.turn:
                failures += not holds(kind, seed, seen)
        if seed % _SIZED == 0:
            failures += not fits(seed // _SIZED, sizes)
        told(done, failures, start, options.progress)
    print(f"\n{done} programs from seed {options.seed}, {failures} failed")
    if options.numpy:
        print(dict(seen.most_common()))
        return int(failures > 0)
    unused = table(primitives, coverage, seen, sizes)
    return int(failures > 0 or bool(unused))


def plainly(seed: int, seen: Counter[str], primitives: Counter[str]) -> int:
    """Check the program of that seed in every way that its turn has; how many checks failed."""
    found = drafted(random_draft, seed)
    if found is None:
        return 1
    program, draft = found
    primitives.update(e.op.name for e in equations_of(program.graph))
    seen.update({"values": draft.tried, "values not usable": draft.dropped})
    seen.update({"operators refused": draft.refused})
    fault = fault_of(program, seen)
    if fault:
        report(program, fault)
    failures = int(bool(fault))
    if seed % _TRANSFORMED == 0:
        failures += not keeps_meaning(program, seen, check_transforms)
    if seed % _CUSTOM == 1:
        failures += not keeps_meaning(program, seen, check_custom)
    if seed % _TIERED == 6:
        failures += not keeps_meaning(program, seen, check_tiered)
    if seed % _OF_HIGH_ORDER == 3:
        failures += not keeps_meaning(program, seen, check_jets)
    if seed % _NAMED == 2:
        named = drafted(named_program, seed)
        failures += named is None or not keeps_meaning(named, seen, check_named)
    return failures


def drafted(make: Callable[[int], Any], seed: int) -> Any:
    """Return the program of that seed; None, which is reported, if it cannot be drafted."""
    try:
        return make(seed)
    except Exception:
        print(f"{'=' * 90}\nseed {seed} failed: it cannot be drafted")
        print(traceback.format_exc(limit=-4), flush=True)
        return None


def natively(options: argparse.Namespace) -> int:
    """Check what C makes of programs; whether one failed."""
    start, failures, done = time.monotonic(), 0, 0
    end = options.seed + options.programs
    for first in range(options.seed, end, TOGETHER):
        if time.monotonic() - start > 60 * options.minutes or failures >= _ENOUGH_FAILURES:
            break
        seeds = range(first, min(first + TOGETHER, end))
        for seed, fault in native_faults(seeds):
            failures += 1
            print(f"{'=' * 90}\nseed {seed} failed in C: {fault[:2000]}", flush=True)
        if first % _PLACED_IN_C == 0:
            failures += not is_placed(range(first // 10, first // 10 + TOGETHER))
        if first % _LONG_IN_C == 0:
            failures += not is_long(first)
        done += len(seeds)
        told(done, failures, start, options.progress)
    print(f"\n{done} programs in C from seed {options.seed}, {failures} failed")
    return int(failures > 0)


def is_placed(seeds: range) -> bool:
    """Whether C puts what comes to be part by part where it should; told if not."""
    try:
        check_placed_natively(seeds)
    except Exception:
        print(f"{'=' * 90}\nplaced {seeds} failed in C:\n{traceback.format_exc(limit=-3)}")
        return False
    return True


def is_long(seed: int) -> bool:
    """Return whether C computes the long program of that seed; report it if not."""
    try:
        check_long(seed)
    except Exception:
        print(f"{'=' * 90}\nlong program {seed} failed in C:\n{traceback.format_exc(limit=-3)}")
        return False
    return True


def told(done: int, failures: int, start: float, every: int) -> None:
    """Say how far it is, once in so many programs."""
    if done % every == 0:
        seconds = time.monotonic() - start
        print(f"{done} programs, {failures} failed, {seconds:.0f} s", flush=True)


def keeps_meaning(program: Program, seen: Counter[str], made: Callable[..., None]) -> bool:
    """Whether what is made of `program` computes what it does; it is told if not."""
    fault = fault_of(program, seen, made)
    if fault:
        print("=" * 90)
        print(f"seed {program.seed}, {made.__name__}, failed: {fault}\n{program}", flush=True)
    return not fault


def agrees(seed: int) -> bool:
    """Whether the program of complex numbers of that seed is the same in all ways; told if not."""
    try:
        with np.errstate(all="ignore"):
            check_complex(seed)
    except Exception:
        print(
            f"{'=' * 90}\nseed {seed} of complex numbers failed:\n{traceback.format_exc(limit=-3)}"
        )
        return False
    return True


def trains(seed: int, seen: Counter[str]) -> bool:
    """Whether the training program of that seed does what it should; it is told if not."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            check_training(seed, Path(folder), seen)
        except Exception:
            print("=" * 90)
            print(f"training program {seed} failed:\n{traceback.format_exc(limit=-4)}", flush=True)
            return False
    seen["training programs"] += 1
    return True


def has_statics(seed: int, seen: Counter[str]) -> bool:
    """Return whether the calls with static arguments of that seed are right; report them if not."""
    try:
        check_statics(seed, seen)
    except Exception:
        print("=" * 90)
        print(f"static arguments {seed} failed:\n{traceback.format_exc(limit=-4)}", flush=True)
        return False
    return True


def fits(number: int, sizes: Counter[str]) -> bool:
    """Whether the program of that number at a threshold does what it should; told if not."""
    try:
        check_sizes(number, sizes)
    except Exception:
        print("=" * 90)
        print(f"program {number} at a threshold failed:\n{traceback.format_exc(limit=-4)}")
        return False
    return True


def holds(kind: Special, seed: int, seen: Counter[str]) -> bool:
    """Whether the program of that kind and seed does what it should; it is shrunk if not."""
    program = drafted(kind.made, seed)
    if program is None:
        return False
    fault = fault_of(program, seen, kind.check)
    if fault:
        print("=" * 90)
        print(f"{kind.name} program {seed} failed: {fault}")
        small = without_steps(program, fault.split("\n")[0], kind.check)
        print(f"left out: {sorted(small.left_out)}\n{small}", flush=True)
    return not fault


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check random programs.")
    parser.add_argument("--programs", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--numpy", action="store_true", help="programs in NumPy only")
    parser.add_argument("--target", choices=["numpy", "c"], default="numpy")
    parser.add_argument("--progress", type=int, default=1000, help="programs between reports")
    return parser.parse_args()


def fault_of(
    program: Any, seen: Counter[str] | None = None, made: Callable[..., None] = check
) -> str:
    """What is wrong with `program`: the kind of fault in its first line; nothing if all is well."""
    try:
        made(program, Counter() if seen is None else seen)
    except Exception as error:
        return f"{kind_of(error)}\n{traceback.format_exc(limit=-4)}"
    return ""


def kind_of(error: Exception) -> str:
    """The same for the same fault in programs of different size."""
    words = str(error).split("\n")[0].split(":")[0].split(", within")[0]
    return f"{type(error).__name__}: {''.join(c for c in words if not c.isdigit())[:60]}"


def report(program: Program, fault: str) -> None:
    print("=" * 90)
    print(f"seed {program.seed} failed: {fault}")
    small = shrunk(program, fault.split("\n")[0])
    print(f"shrunk from {len(program.graph)} to {len(small.graph)} equations:\n{small}")
    print(fault_of(small).split("\n", 1)[0], flush=True)


# Shrinking.


def without_steps(program: Any, kind: str, made: Callable[..., None]) -> Any:
    """The program, of one of the special kinds, with as few steps as still fail in the same way."""
    for step in range(program.count):
        fewer = replace(program, left_out=program.left_out | {step})
        if fault_of(fewer, made=made).split("\n")[0] == kind:
            program = fewer
    return program


def shrunk(program: Program, kind: str) -> Program:
    """The smallest program found that fails in the same way."""

    def fails(candidate: Program) -> bool:
        return fault_of(candidate).split("\n")[0] == kind

    program = _fewer(program, fails)
    for value in [v for e in program.graph.body for v in e.outputs]:
        candidate = _with_outputs(program, [value])
        if fails(candidate):
            program = candidate
            break
    return _fewer(program, fails)


def _fewer(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Drop outputs, then make values of the middle into inputs, as long as it fails."""
    i = 0
    while len(program.graph.outputs) > 1 and i < len(program.graph.outputs):
        kept = [v for k, v in enumerate(program.graph.outputs) if k != i]
        candidate = _with_outputs(program, kept)
        program, i = (candidate, 0) if fails(candidate) else (program, i + 1)
    place = len(program.graph.body) - 1
    while place >= 0:
        candidate = _cut(program, place) if place < len(program.graph.body) else program
        if len(candidate.graph) < len(program.graph) and fails(candidate):
            program = candidate
        place -= 1
    return program


def _with_outputs(program: Program, outputs: list[Value]) -> Program:
    graph = dead_code(program.graph.with_outputs(outputs))
    return _without_unused_inputs(replace(program, graph=graph))


def _without_unused_inputs(program: Program) -> Program:
    graph = program.graph
    used = {v for e in graph.body for v in e.inputs}.union(graph.outputs)
    kept = [i for i, v in enumerate(graph.inputs) if v in used]
    return replace(
        program,
        graph=Graph([graph.inputs[i] for i in kept], graph.body, graph.outputs, graph.name),
        feeds=[program.feeds[i] for i in kept],
        others=[program.others[i] for i in kept],
    )


def _cut(program: Program, place: int) -> Program:
    """The program with the results of one equation as inputs instead."""
    graph, eqn = program.graph, program.graph.body[place]
    whole = graph.with_outputs(eqn.outputs)
    body = [e for e in graph.body if e is not eqn]
    cut = dead_code(Graph([*graph.inputs, *eqn.outputs], body, graph.outputs, graph.name))
    try:
        feeds, others = (
            [*arrays, *interpret(whole, *arrays)] for arrays in (program.feeds, program.others)
        )
    except Exception:
        # What fails may be what the equation needs: then it is not to be cut off.
        return program
    return _without_unused_inputs(replace(program, graph=cut, feeds=feeds, others=others))


# Coverage.


def count_rules(coverage: dict[str, Counter[str]]) -> None:
    """Count from now on which rules are applied."""

    def counted(rule: Any, kind: str, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = rule(*args, **kwargs)
            coverage[kind][name] += result is not None
            return result

        return call

    for op in registered().values():
        if isinstance(op, Primitive):
            for place, rule in op._jvp.items():
                op._jvp[place] = counted(rule, "jvp", f"{op.name}.{place}")
                coverage["jvp"][f"{op.name}.{place}"] = 0
            if op._transpose is not None:
                op._transpose = counted(op._transpose, "transpose", op.name)
                coverage["transpose"][op.name] = 0
    module = sys.modules["primgraph.transforms.optimize.simplify"]
    module.table_of.cache_clear()
    for op, listed in (found for family in module.FAMILIES for found in family.rules.items()):
        names = [f"{op.name} by {rule.apply.__name__}" for rule in listed]
        coverage["simplify"].update(dict.fromkeys(names, 0))
        listed[:] = [
            replace(r, apply=counted(r.apply, "simplify", n))
            for r, n in zip(listed, names, strict=True)
        ]


def table(
    primitives: Counter[str],
    coverage: dict[str, Counter[str]],
    seen: Counter[str],
    sizes: Counter[str],
) -> list[str]:
    """Print all counts; the primitives that were never used."""
    ops = registered()
    # Formal ones are never drafted: they leave a graph before it is one.
    plain = {n for n, op in ops.items() if isinstance(op, Primitive) and not op.formal}
    known = {n: primitives[n] for n in plain - {"custom_tangents"}}
    others = {n: primitives[n] for n, op in ops.items() if not isinstance(op, Primitive)}
    parts = {"primitives": known, "operators": others}
    parts |= {f"{kind} rules": dict(counts) for kind, counts in coverage.items()}
    parts["sizes at thresholds"] = dict(sizes)
    for title, counts in parts.items():
        print(f"\n{title}:")
        width = {"sizes at thresholds": 56, "simplify rules": 112}.get(title, 24)
        cells = [f"{name} {count}" for name, count in sorted(counts.items(), key=lambda c: c[1])]
        row = 112 // width
        for start in range(0, len(cells), row):
            print("  " + "".join(f"{cell:<{width}}" for cell in cells[start : start + row]))
    print("\nchecks:")
    for name, count in seen.most_common():
        print(f"  {name} {count}")
    unused = [name for name, count in known.items() if not count]
    if unused:
        print(f"\nprimitives that were never used: {', '.join(unused)}")
    return unused


if __name__ == "__main__":
    sys.exit(main())
