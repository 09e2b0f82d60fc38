"""Small faults made at random, one at a time, that the tests should notice.

`python tests/tools/mutants.py --count 300 --seed 0` changes an operator, a comparison, a sign or a
constant in the rules of derivatives, batching and rewriting, in tensors, loops, plans and the C
generator, runs the tests that come by the changed line, and prints what they did not notice.
`--only 'primgraph/eager/*' 'codegen/lower/*'` restricts that to files. Only a copy of the checkout
is changed, and every trial has a cache of compiled code of its own. The exit
status is 1 if less than 97 % of the faults were noticed, but for those that EQUIVALENT names:
changes that no test can notice, as the program means the same, each with its reason.

Which tests come by which line is recorded first, by coverage.py, which takes as long as the tests;
`--record FILE` keeps that for later, until lines or tests move. Faults in functions are tried in
processes that are forked from one that has imported all tests; what these do not notice, and what
runs on import, is tried in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import pkgutil
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from queue import Empty, Queue
from typing import final

import coverage
import pytest
from mutant_changes import Mutant, mutants_of
from mutant_runs import Forks, Trial, limit_time

ROOT = Path(__file__).parents[2]

# What is changed, and the tests of it, those that notice most first.
RULES = [
    "rows", "rewrites", "signs", "simplify", "places", "products", "batch_sum", "math_levels",
    "edges", "regressions",
]  # fmt: skip
GUARDS = [
    "ranges", "conditions", "guards", "edge_slopes", "edges", "conventions", "regressions",
    "derivatives", "scalars",
]  # fmt: skip
BODIES = ["guarded_bodies", "guarded_programs", *GUARDS]
MATRICES = ["structure", "factored", "linalg"]
TENSORS = [
    "tensors", "tensor_features", "tensor_autograd", "tensor_values", "tensor_memory",
    "tensor_recognition", "no_grad", "tensor_slices", "view_writes",
]  # fmt: skip
NATIVE = [
    "native", "native_steps", "native_sums", "native_blocks", "native_sizes", "native_cache",
    "native_known", "native_calls", "native_parts", "native_apart", "native_growing",
    "native_fusing", "native_functions", "native_lapack", "native_spelled", "native_inner",
    "native_sized_blocks", "native_promises",
]  # fmt: skip
LOOPS = ["loops", "solutions", "open_loops", "checkpoints"]
TESTS: dict[str, list[str]] = {
    "primgraph/primitives/*.py": [
        "flags", "primitives", "edges", "conventions", "operators", "codegen", "indexing", "cost",
    ],
    "transforms/linearize.py": [
        "transforms", "derivatives", "edges", "conventions", "grad_options", "guards",
    ],
    "transforms/transpose.py": ["transforms", "derivatives", "grad_options", "primitives"],
    "transforms/batch_graphs.py": ["transforms", "jacobian", "functional", "primitives"],
    "transforms/jacobians/batch_sum.py": ["batch_sum", "simplify", "transforms"],
    "transforms/partial_eval.py": ["loops", "primitives"],
    "transforms/loops/taylor_loops.py": ["taylor", "loops", "open_loops"],
    "transforms/loops/implicit_solution.py": [*LOOPS, "cost"],
    "transforms/loops/*.py": LOOPS,
    "primgraph/control/bodies.py": [*LOOPS, "nesting"],
    "primgraph/control/*.py": LOOPS,
    "primgraph/eager/derivatives/other_modes.py": [*TENSORS, "partials"],
    "primgraph/eager/inplace/views.py": ["compat_views", *TENSORS],
    "primgraph/eager/mixed.py": [*TENSORS, "two_worlds"],
    "primgraph/eager/derivatives/custom_vjp_node.py": [*TENSORS, "custom_functions"],
    "primgraph/eager/derivatives/reverse.py": [*TENSORS, "custom_functions"],
    "primgraph/eager/seeds.py": [*TENSORS, "two_worlds"],
    "primgraph/eager/inplace/shared_storage.py": [*TENSORS, "two_worlds"],
    "primgraph/eager/*.py": TENSORS,
    "codegen/lower/arrays/*.py": ["plan", "blocks", "landing", "native_parts", "native_blocks"],
    "codegen/runtime/toolchain/cache.py": ["native_private", "native_cache", "native_known"],
    "codegen/runtime/toolchain/folder.py": ["native_private", "native_cache"],
    "codegen/targets/c/user_c.py": ["native_spelled"],
    "codegen/lower/nests/systems.py": ["native_lapack", "native_steps"],
    "codegen/lower/nests/*.py": NATIVE,
    "codegen/targets/c/*.py": NATIVE,
    "codegen/native.py": NATIVE,
    "transforms/jacobians/element_rules.py": ["sparse_derivatives"],
    "transforms/jacobians/spectral_probes.py": ["ties"],
    "transforms/jacobians/jacobian_entries.py": ["entries", "sparse_derivatives"],
    "transforms/horizontal_fusion.py": ["loop_code"],
    "transforms/join_sorts.py": ["sorting"],
    "transforms/pullback.py": ["checking", "custom_functions"],
    "transforms/vectorize_stacks.py": ["vectorize_stacks"],
    "transforms/loops/split_loops.py": ["loop_code", "loops"],
    "transforms/loops/stacks.py": ["open_loops"],
    "transforms/taylor_mode.py": ["taylor", "partials"],
    "transforms/taylor_series/*.py": ["taylor", "partials"],
    "transforms/optimize/join_checkpoints.py": ["checkpoints"],
    "transforms/optimize/drop_eigenvectors.py": ["linalg"],
    "transforms/dataflow/engine.py": ["mixing"],
    "transforms/dataflow/value_bounds.py": GUARDS,
    "transforms/dataflow/masks/box_conditions.py": ["boxes", *GUARDS],
    "transforms/dataflow/activity.py": ["transforms", "derivatives", "jacobian", "functional"],
    "transforms/dataflow/masks/conditions.py": GUARDS,
    "transforms/dataflow/region_interface.py": BODIES,
    "transforms/dataflow/masks/guard.py": GUARDS,
    "transforms/dataflow/masks/guards.py": GUARDS,
    "transforms/dataflow/masks/uses.py": GUARDS,
    "transforms/dataflow/masks/implications.py": BODIES,
    "transforms/dataflow/known_values.py": ["sparsity"],
    "transforms/dataflow/locality.py": ["custom_functions", *GUARDS],
    "transforms/dataflow/magnitudes.py": ["taylor"],
    "transforms/dataflow/masks/masks.py": ["transforms", *GUARDS],
    "primgraph/ir/facts/ranges.py": GUARDS,
    "transforms/dataflow/masks/repeated_conditions.py": BODIES,
    "transforms/dataflow/masks/slope_risks.py": GUARDS,
    "transforms/dataflow/sum_separability.py": ["sampled"],
    "transforms/dataflow/sparsity/*.py": ["sparsity", "entries", "sparse_derivatives"],
    "transforms/dataflow/tangent_support.py": GUARDS,
    "transforms/jacobians/strong_zeros.py": [*GUARDS, "jacobian", "functional"],
    "transforms/jacobians/unit_vectors.py": ["functional", "jacobian", "unit_vectors"],
    "transforms/dataflow/matrix_facts.py": MATRICES,
    "transforms/dataflow/masks/masks_through_loops.py": BODIES,
    "transforms/dataflow/masks/guards_through_loops.py": BODIES,
    "transforms/optimize/join_solves.py": MATRICES,
    "transforms/optimize/matrix_structure.py": MATRICES,
    "transforms/rewrite/matrices.py": MATRICES,
    "transforms/dataflow/batch_independence.py": ["mixing", "jacobian", "functional"],
    "transforms/rewrite/*.py": [*RULES, "scalars", "transforms"],
}  # fmt: skip
# The slowest tests, which notice what the others miss in rules.
LAST = ["random_programs"]
LAST_OF = ("primgraph/primitives/*", "transforms/[!c]*")
# Tests of times fail on a busy machine, whatever is changed.
TIMED = ("linear_time", "growth")

# Changes that mean the same, by file, line and what the line becomes, with the reason.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "transforms/rewrite/slices.py",
        "eqn = seen.made_by(split, inputs[0])",
        "eqn = seen.made_by(split, inputs[1])",
    ): "all operands have to be the results of one split; a single operand has a rule before",
    (
        "transforms/rewrite/slices.py",
        "if any(x.type.ndim == 0 or x.shape[1:] != parts[0].shape[1:] for x in parts):",
        "if any(x.type.ndim == 0 or x.shape[1:] != parts[1].shape[1:] for x in parts):",
    ): "all are equal if they equal any of them",
    (
        "primgraph/primitives/shapes.py",
        "result.append(slice(0, 0))",
        "result.append(slice(1, 0))",
    ): "nothing is taken, from wherever",
    (
        "transforms/rewrite/functions.py",
        "_DIGITS = {2: 11, 4: 24, 8: 53}",
        "_DIGITS = {2: 12, 4: 24, 8: 53}",
    ): "integers have 7, 8, 15, 16, 31, 32, 63 or 64 digits",
    (
        "transforms/rewrite/functions.py",
        "_DIGITS = {2: 11, 4: 24, 8: 53}",
        "_DIGITS = {2: 11, 4: 25, 8: 53}",
    ): "integers have 7, 8, 15, 16, 31, 32, 63 or 64 digits",
    (
        "transforms/rewrite/functions.py",
        "_DIGITS = {2: 11, 4: 24, 8: 53}",
        "_DIGITS = {2: 11, 4: 24, 8: 54}",
    ): "integers have 7, 8, 15, 16, 31, 32, 63 or 64 digits",
    (
        "transforms/rewrite/functions.py",
        'return 8 * narrow.itemsize - (narrow.kind == "i") <= _DIGITS[wide.itemsize]',
        'return 9 * narrow.itemsize - (narrow.kind == "i") <= _DIGITS[wide.itemsize]',
    ): "8, 9, 17, 18, 35, 36, 71 and 72 lie on the same sides of 11, 24 and 53 as the true digits",
    (
        "transforms/rewrite/row_conditions.py",
        "return is_power_of_two(number) and abs(number) >= 1",
        "return is_power_of_two(number) and abs(number) >= 2",
    ): "there is no product with 1 or -1 any more: that is the other factor, or its negative",
    (
        "transforms/rewrite/slices.py",
        'return reverse_axes(y, [i for i, s in enumerate(params["steps"]) if s < 0])',
        'return reverse_axes(y, [i for i, s in enumerate(params["steps"]) if s < 1])',
    ): "no step is zero",
    (
        "transforms/rewrite/sums.py",
        "if small.type.is_float and (number != count or count == 0):",
        "if small.type.is_float and (number != count or count == 1):",
    ): "at the levels of this rule x * 0 is 0, and the sum of one element has a rule of its own",
    (
        "transforms/dataflow/masks/box_conditions.py",
        "shape = parts[0].shape",
        "shape = parts[1].shape",
    ): "all have one shape, and there are two at least",
    (
        "transforms/dataflow/masks/box_conditions.py",
        "return replace(layer[0], starts=_with(layer[0].starts, axis, 0), held=held)",
        "return replace(layer[0], starts=_with(layer[0].starts, axis, 1), held=held)",
    ): "all boxes are whole along that axis from then on, and only compared with each other there",
    (
        "transforms/rewrite/slices.py",
        "positions = array.reshape(-1).astype(np.int64) % extent",
        "positions = array.reshape(-2).astype(np.int64) % extent",
    ): "NumPy takes every negative extent for the one to be found",
    (
        "transforms/dataflow/masks/box_conditions.py",
        "if len(parts) > 1:",
        "if len(parts) >= 1:",
    ): "a condition that holds in one box is put together anew",
    (
        "primgraph/primitives/reductions.py",
        "exponent = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)",
        "exponent = np.where(np.isfinite(largest), np.frexp(largest)[1], 1)",
    ): "what is not finite stays so, whatever power of two it is divided by before and after",
    (
        "transforms/rewrite/sink_moves.py",
        "_LARGE = 2048",
        "_LARGE = 2049",
    ): "either form gives the same bits: which of them is quicker depends on the machine",
    (
        "transforms/rewrite/functions.py",
        "_LARGEST = 32",
        "_LARGEST = 33",
    ): "either form is right at its level, and the number one of taste",
    (
        "transforms/dataflow/batch_independence.py",
        "if extent > 1 and bool(np.all(array == np.arange(start, start + extent)"
        ".reshape(column))):",
        "if extent >= 1 and bool(np.all(array == np.arange(start, start + extent)"
        ".reshape(column))):",
    ): "equal numbers, as along an axis of extent one, are no constant but a full",
    (
        "transforms/rewrite/assembly.py",
        "place[flat.reshape(-1)] = np.arange(flat.size)",
        "place[flat.reshape(-2)] = np.arange(flat.size)",
    ): "NumPy takes every negative extent for the one to be found",
    (
        "primgraph/eager/buffer_pool.py",
        "own = references(deque([np.empty(0)]), 0)",
        "own = references(deque([np.empty(1)]), 0)",
    ): "only the references to the array are counted",
    (
        "primgraph/eager/seeds.py",
        "return partial(_make_generator, self.seed, 2**32 - 1 + self._generators)",
        "return partial(_make_generator, self.seed, 2**33 - 1 + self._generators)",
    ): "streams of parameters begin beyond those of names, which are CRC-32",
    (
        "primgraph/eager/inplace/views.py",
        'return [(setattr, self, "node", node), (setattr, self, "version", self.version + 1)]',
        'return [(setattr, self, "node", node), (setattr, self, "version", self.version + 2)]',
    ): "versions are only compared for equality",
    (
        "primgraph/eager/inplace/views.py",
        'return [(setattr, self, "node", node), (setattr, self, "version", self.version + 1)]',
        'return [(setattr, self, "node", node), (setattr, self, "version", self.version - 1)]',
    ): "versions are only compared for equality",
    (
        "primgraph/eager/node.py",
        "if len(inputs) > MANY and _are_seen(inputs, seen):",
        "if len(inputs) >= MANY and _are_seen(inputs, seen):",
    ): "inputs that have been gone through lead to nothing new: the bound is one of speed",
    (
        "primgraph/eager/structure_cache.py",
        "wiring.append(places.get(other, -1))",
        "wiring.append(places.get(other, -2))",
    ): "any negative number says that a node is a new one",
    (
        "primgraph/eager/run.py",
        "found.append((part, [n for n in part if last.get(n, 0) >= end]))",
        "found.append((part, [n for n in part if last.get(n, 1) >= end]))",
    ): "every node is asked for or an input of another one, and no piece ends before 2048",
    (
        "codegen/ir/statements.py",
        "found = [n for node in self.nodes for n, _ in node.reach if not is_at_least(n, 1)]",
        "found = [n for node in self.nodes for n, _ in node.reach if not is_at_least(n, 2)]",
    ): "C asks in vain whether an extent that is one at least is zero",
    (
        "primgraph/control/segments.py",
        "length = isqrt(max(trips - 1, 0)) + 1",
        "length = isqrt(max(trips - 1, 1)) + 1",
    ): "no trip and one trip have no checkpoints for a length of 1 and of 2",
    (
        "codegen/ir/schedule.py",
        "return [range(i, min(i + CHUNK, count)) for i in range(0, max(count, 1), CHUNK)]",
        "return [range(i, min(i + CHUNK, count)) for i in range(0, max(count, 2), CHUNK)]",
    ): "a chunk is longer than two steps",
    (
        "codegen/ir/limits.py",
        "least_bytes: int = 1 << 17",
        "least_bytes: int = 2 << 17",
    ): "a measured cost: it decides which of two right plans is taken, by speed alone",
    (
        "codegen/lower/arrays/sizes.py",
        "_LONGER = 8",
        "_LONGER = 9",
    ): "a measured cost: it decides which of two right plans is taken, by speed alone",
    (
        "codegen/lower/nests/regions.py",
        "_ADDED, _ADDING = 0.03, 1 / 64",
        "_ADDED, _ADDING = 0.03, 2 / 64",
    ): "a measured cost: it decides which of two right plans is taken, by speed alone",
    (
        "codegen/lower/nests/loop_collapse.py",
        "if type(n) is not int or not 1 < n <= _NARROW or (n % _LANES == 0 and n >= _SHORT):",
        "if type(n) is not int or not 1 < n <= _NARROW or (n % _LANES == 0 and n > _SHORT):",
    ): "rows of 16 elements are right in either loop: the choice is by speed alone",
    (
        "codegen/targets/c/source.py",
        "return len(item.nodes) if isinstance(item, Nest) else 1",
        "return len(item.nodes) if isinstance(item, Nest) else 2",
    ): "where a long function of C is split does not change what it computes",
    (
        "codegen/lower/nests/systems.py",
        "more = 1 + 70 * n + (2 * n * n if vectors else 0)",
        "more = 1 + 70 * n + (2 * n * n if vectors else 1)",
    ): "LAPACK takes any work array that is large enough",
}

ENOUGH = 0.97

# A fault may make tests slower; they are ended after so many seconds and times what they took.
_PATIENCE, _TIMES = 60.0, 10.0

# Packages that are imported before processes are forked, so that faults can be put into them.
PACKAGES = (
    "primgraph.primitives", "primgraph.transforms", "primgraph.transforms.loops",
    "primgraph.eager", "primgraph.control", "primgraph.codegen.lower.nests",
    "primgraph.codegen.lower.arrays", "primgraph.codegen.targets.c",
)  # fmt: skip

# So many tests may fail because they are measured.
_FEW = 20

# Lines that run on import, and when tests are collected, are recorded under these names.
_IMPORT, _COLLECTION = "import", "collection"


def tests_of(file: str) -> list[str]:
    """The test files for a file, in the order in which they run."""
    named = next(tests for pattern, tests in TESTS.items() if fnmatch(file, pattern))
    last = LAST if any(fnmatch(file, pattern) for pattern in LAST_OF) else []
    found = {p.stem: p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("test_*.py")}
    return [found[f"test_{name}"] for name in (*named, *last) if f"test_{name}" in found]


def _deep(pattern: str) -> str:
    """Return the pattern for folders within folders, as `fnmatch` has it."""
    return pattern.replace("/*.py", "/**/*.py")


def files(only: Sequence[str] = ("*",)) -> list[str]:
    """The files that are changed: those that match a pattern of `only`."""
    found = {p.relative_to(ROOT).as_posix() for pattern in TESTS for p in ROOT.glob(_deep(pattern))}
    wanted = (f for f in found if any(fnmatch(f, pattern) for pattern in only))
    return sorted(f for f in wanted if not f.endswith("__init__.py"))


# Which tests come by which line.


@final
class Recorder:
    """A plugin of pytest that tells coverage.py which test runs, and takes its time."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.measured.switch_context(item.nodeid)
        start = time.monotonic()
        result = yield
        self.seconds[item.nodeid] = time.monotonic() - start
        return result

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [i for i in items if _is_wanted(i)]


def _is_wanted(item: pytest.Item) -> bool:
    """Whether a test tells of faults: not of times, and in no time that others do not need."""
    timed = any(word in item.name for word in TIMED)
    return not timed and not item.get_closest_marker("long")


@dataclass(frozen=True, slots=True)
class Record:
    """For each file the tests that come by its lines, quickest first, and what each takes."""

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that come by the line of a fault, or by another of its statement before.

        All of its file for what is run on import.
        """
        lines = self.lines.get(mutant.file, {})
        places = range(mutant.line, mutant.statement - 1, -1)
        found = next((lines[n] for n in places if n in lines), [])
        return tests_of(mutant.file) if _IMPORT in found else [t for t in found if "::" in t]

    def patience(self, tests: Sequence[str]) -> float:
        return _PATIENCE + _TIMES * sum(self.seconds.get(t, 20.0) for t in tests)


def recorded(changed: Sequence[str]) -> Record:
    """Run the tests of the changed files in this process.

    The few that fail because they are measured, such as tests of memory, are left out.
    """
    measured = coverage.Coverage(
        data_file=None, include=[str(ROOT / f) for f in changed], config_file=False
    )
    recorder = Recorder(measured)
    named = sorted({t for f in changed for t in tests_of(f)})
    with tempfile.TemporaryDirectory() as place, measured.collect():
        os.environ["PRIMGRAPH_CACHE"] = place
        measured.switch_context(_IMPORT)
        _import_everything()
        measured.switch_context(_COLLECTION)
        pytest.main(["-q", "-p", "no:cacheprovider", "--tb=line", *named], plugins=[recorder])
    print(*(f"fails without any fault, left out: {t}" for t in sorted(recorder.failed)), sep="\n")
    if len(recorder.failed) > _FEW:
        raise SystemExit("too many tests fail without any fault")
    data = measured.get_data()
    seconds, lines = recorder.seconds, {}
    for file in changed:
        mine = {*tests_of(file), _IMPORT}
        lines[file] = {
            line: sorted(
                (t for t in tests if t.partition("::")[0] in mine and t not in recorder.failed),
                key=lambda t: seconds.get(t, 0.0),
            )
            for line, tests in data.contexts_by_lineno(str(ROOT / file)).items()
        }
    return Record(lines, seconds)


def _import_everything() -> None:
    """Import all of primgraph, as tests do."""
    os.environ["PRIMGRAPH_DEBUG"] = "1"
    sys.path.insert(0, str(ROOT))
    for name in PACKAGES:
        package = import_module(name)
        for module in pkgutil.iter_modules(package.__path__, f"{name}."):
            import_module(module.name)


def kept(path: str, changed: Sequence[str]) -> Record:
    """What was recorded in a file before, or now, and is written there."""
    if Path(path).exists():
        found = json.loads(Path(path).read_text())
        lines = {f: {int(n): ts for n, ts in ls.items()} for f, ls in found["lines"].items()}
        if missing := set(changed) - set(lines):
            raise SystemExit(f"{path} has no record of {', '.join(sorted(missing))}")
        return Record(lines, found["seconds"])
    record = recorded(changed)
    Path(path).write_text(json.dumps({"lines": record.lines, "seconds": record.seconds}))
    return record


# Faults in functions are tried in forked processes, others in a copy of the checkout.


def forked(
    trials: Sequence[Trial], jobs: int, deadline: float, done: Callable[[Trial, bool | None], None]
) -> None:
    """Try faults in processes that are forked after all tests have been collected."""
    if not trials:
        return
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    _import_everything()
    named = sorted({t.partition("::")[0] for trial in trials for t in trial.tests})
    with tempfile.TemporaryDirectory() as place:
        quiet = [
            "-s",
            "-oaddopts=",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:terminal",
            f"--basetemp={place}/base",
        ]
        plugin = Forks(ROOT, list(trials), jobs, done, deadline, Path(place))
        pytest.main([*quiet, *named], plugins=[plugin])


def copied(folder: Path) -> Path:
    for name in ("primgraph", "transforms", "codegen", "tests", "pyproject.toml"):
        source, target = ROOT / name, folder / name
        if source.is_file():
            shutil.copy(source, target)
        else:
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def exit_status(folder: Path, tests: Sequence[str], patience: float) -> int:
    """How pytest ends in a copy, at the first failure or after so many seconds."""
    chosen = folder / "chosen.txt"
    chosen.write_text("\n".join(tests))
    timed = " or ".join(TIMED)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-k", f"not ({timed})", f"@{chosen}"]
    with tempfile.TemporaryDirectory() as cache:
        paths = {"PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1", "PRIMGRAPH_CACHE": cache}
        process = subprocess.run(
            [sys.executable, "-m", "pytest", *options],
            cwd=folder,
            env={**os.environ, **paths},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            preexec_fn=lambda: limit_time(patience),
        )
    return process.returncode


def survives(folder: Path, trial: Trial, number: int) -> bool:
    """Whether the tests pass with the fault in a copy of the checkout."""
    path = folder / trial.mutant.file
    source = path.read_bytes()
    try:
        path.write_bytes(trial.mutant.applied(source))
        # Compiled files are told apart by time and size.
        os.utime(path, (number, number))
        return exit_status(folder, trial.tests, trial.patience) == 0
    finally:
        path.write_bytes(source)


def missed(trials: Sequence[Trial], jobs: int, minutes: float) -> tuple[list[Mutant], int]:
    """The faults that no test notices, and how many have been tried."""
    start = time.monotonic()
    deadline = start + 60 * minutes
    again: list[Trial] = [t for t in trials if not t.tests]
    tried: list[Trial] = []

    def done(trial: Trial, passed: bool | None) -> None:
        (again if passed or passed is None else tried).append(trial)

    forked([t for t in trials if t.tests], jobs, deadline, done)
    print(f"{len(tried)} noticed in {time.monotonic() - start:.0f} s", flush=True)
    found = [trial.mutant for trial in again if not trial.tests]
    tried += [trial for trial in again if not trial.tests]
    waiting = Queue[Trial]()
    for trial in again:
        if trial.tests:
            waiting.put(trial)

    def alone(place: str) -> None:
        """Try what is waiting, in a copy of the checkout."""
        folder = copied(Path(place))
        while time.monotonic() < deadline:
            try:
                trial = waiting.get_nowait()
            except Empty:
                return
            if survives(folder, trial, 10**9 + len(tried)):
                found.append(trial.mutant)
                print(f"not noticed: {trial.mutant}", flush=True)
            tried.append(trial)

    with ExitStack() as places, ThreadPoolExecutor(jobs) as pool:
        folders = [places.enter_context(tempfile.TemporaryDirectory()) for _ in range(jobs)]
        list(pool.map(alone, folders))
    return found, len(tried)


def main() -> int:
    options = _options()
    changed = files(options.only)
    every = [m for f in changed for m in mutants_of(ROOT, f)]
    if options.line:
        every = [m for m in every if m.line in options.line]
    chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    known = [m for m in chosen if m.key in EQUIVALENT]
    wanted = [m for m in chosen if m.key not in EQUIVALENT]
    print(f"{len(every)} possible, {len(chosen)} chosen, {len(known)} known to mean the same")
    if options.list:
        print(*chosen, sep="\n")
        return 0
    record = kept(options.record, changed) if options.record else recorded(changed)
    tests = [record.tests(m) for m in wanted]
    trials = [Trial(m, t, record.patience(t)) for m, t in zip(wanted, tests, strict=True)]
    found, tried = missed(trials, options.jobs, options.minutes)
    noticed = 1 - len(found) / max(1, tried)
    print(
        f"{tried} of {len(trials)} tried: {tried - len(found)} noticed, {len(found)} not "
        f"({100 * noticed:.1f} %)"
    )
    return int(noticed < ENOUGH)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="how many faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--minutes", type=float, default=120.0, help="the longest time")
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns for the files")
    parser.add_argument("--record", help="a file that has which tests come by which line")
    parser.add_argument("--line", type=int, nargs="*", help="only faults in these lines")
    parser.add_argument("--list", action="store_true", help="print the faults, and run nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
