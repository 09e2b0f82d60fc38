"""Small faults made at random, one at a time, that the tests should notice.

`python tests/mutants.py --count 300 --seed 0` changes an operator, a comparison, a sign or a
constant in the rules of derivatives, batching and rewriting, runs the tests that come by the
changed line, and prints what they did not notice. Only a copy of the checkout is changed. The exit
status is 1 if less than 97 % of the faults were noticed, but for those that EQUIVALENT names:
changes that no test can notice, as the program means the same, each with its reason.

Which tests come by which line is recorded first, by coverage.py, which takes as long as the tests;
`--record FILE` keeps that for later, until lines or tests move.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, final

import coverage
import pytest

ROOT = Path(__file__).parent.parent

# What is changed, and the tests of it, those that notice most first.
RULES = ["simplify", "places", "products", "batch_sum", "math_levels", "edges", "regressions"]
TESTS: dict[str, list[str]] = {
    "primgraph/primitives/*.py": [
        "primitives", "edges", "conventions", "operators", "codegen", "indexing",
    ],
    "transforms/linearize.py": [
        "transforms", "derivatives", "edges", "conventions", "grad_options",
    ],
    "transforms/transpose.py": ["transforms", "derivatives", "grad_options", "primitives"],
    "transforms/batch.py": ["transforms", "jacobian", "functional", "primitives"],
    "transforms/batch_sum.py": ["batch_sum", "simplify", "transforms"],
    "transforms/guards.py": ["edges", "conventions", "derivatives", "regressions"],
    "transforms/diagonal.py": ["jacobian", "functional"],
    "transforms/rules*.py": [*RULES, "scalars", "transforms"],
}  # fmt: skip
# They see what the others do not, and take longer.
LAST = ["random_programs"]

# Changes that mean the same, by file, line and what the line becomes, with the reason.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "transforms/rules_parts.py",
        "eqn = seen.made_by(split, inputs[0])",
        "eqn = seen.made_by(split, inputs[1])",
    ): "all operands have to be the results of one split; a single operand has a rule before",
    (
        "transforms/rules_parts.py",
        "if any(x.type.ndim == 0 or x.shape[1:] != parts[0].shape[1:] for x in parts):",
        "if any(x.type.ndim == 0 or x.shape[1:] != parts[1].shape[1:] for x in parts):",
    ): "all are equal if they equal any of them",
    (
        "transforms/rules_sums.py",
        "if small.type.is_float and (number != count or count == 0):",
        "if small.type.is_float and (number != count or count == 1):",
    ): "at the levels of this rule x * 0 is 0, and the sum of one element has a rule of its own",
    (
        "transforms/rules_places.py",
        "place[flat.reshape(-1)] = np.arange(flat.size)",
        "place[flat.reshape(-2)] = np.arange(flat.size)",
    ): "NumPy takes every negative extent for the one to be found",
}

ENOUGH = 0.97

# A run may take longer than the same tests took before, on a machine that is busy.
_PATIENCE = 30.0

_BINARY = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}  # fmt: skip
_COMPARED = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
_JOINED = {ast.And: ("and", "or"), ast.Or: ("or", "and")}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place in a file: bytes from `start` to `stop` of it become `text`."""

    file: str
    start: int
    stop: int
    text: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}\n    - {self.before}\n    + {self.after}"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.before, self.after

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.stop :]


def mutants_of(file: str) -> list[Mutant]:
    """All changes of a file that this command knows to make."""
    source = (ROOT / file).read_bytes()
    starts = [0]
    for row in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    found = []
    for start, stop, text in _changes(ast.parse(source), source, starts):
        line = next(i for i, s in enumerate(starts) if s > start)
        first, last = starts[line - 1], starts[line]
        before = source[first:last].decode().strip()
        after = (source[first:start] + text.encode() + source[stop:last]).decode().strip()
        found.append(Mutant(file, start, stop, text, line, before, after))
    return found


def _changes(tree: ast.AST, source: bytes, starts: list[int]) -> Iterator[tuple[int, int, str]]:
    def place(node: Any, end: bool = False) -> int:
        line, column = (
            (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)
        )
        return int(starts[line - 1] + column)

    def between(left: Any, right: Any, pair: tuple[str, str]) -> Iterator[tuple[int, int, str]]:
        begin = place(left, end=True)
        found = source.find(pair[0].encode(), begin, place(right))
        if found >= 0:
            yield found, found + len(pair[0]), pair[1]

    for node in _walked(tree):
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            yield from between(node.left, node.right, _BINARY[type(node.op)])
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
                yield from between(left, right, _COMPARED[type(op)])
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from between(left, right, _JOINED[type(node.op)])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            yield place(node), place(node.operand), ""
        elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
            yield place(node), place(node, end=True), _other(node.value)


def _other(value: bool | float) -> str:
    if isinstance(value, bool):
        return str(not value)
    return repr(value + 1) if isinstance(value, int) or value == 0 else repr(value * 2)


def _walked(tree: ast.AST) -> Iterator[ast.AST]:
    """Expressions that run; not types, messages, assertions, and estimates of operations."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
            continue
        yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns") or (name == "value" and _is_alias(node)):
                continue
            children = value if isinstance(value, list) else [value]
            waiting += [c for c in children if isinstance(c, ast.AST) and not _is_beside(c)]


def _is_alias(node: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"


def _is_beside(node: ast.AST) -> bool:
    """Whether an argument says nothing of what is computed: `zip(..., strict=True)` asserts."""
    return isinstance(node, ast.keyword) and node.arg in ("flops", "strict")


def tests_of(file: str) -> list[str]:
    """The test files for a file, in the order in which they run."""
    named = next(tests for pattern, tests in TESTS.items() if fnmatch(file, pattern))
    paths = [f"tests/test_{name}.py" for name in (*named, *LAST)]
    return [path for path in paths if (ROOT / path).exists()]


def files() -> list[str]:
    """The files whose rules are changed."""
    found = {p.relative_to(ROOT).as_posix() for pattern in TESTS for p in ROOT.glob(pattern)}
    return sorted(f for f in found if not f.endswith("__init__.py"))


# Which tests come by which line.


@final
class Recorder:
    """A plugin of pytest that tells coverage.py which test runs, and takes its time."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.measured.switch_context(item.nodeid)
        start = time.monotonic()
        result = yield
        self.seconds[item.nodeid] = time.monotonic() - start
        return result


@dataclass(frozen=True, slots=True)
class Record:
    """For each file the tests that come by its lines, quickest first, and what each takes."""

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests of a line; those of the whole file where it runs on import.

        A line within a statement is that of the statement.
        """
        lines = self.lines.get(mutant.file, {})
        first = next((n for n in range(mutant.line, 0, -1) if n in lines), 0)
        return lines.get(first) or tests_of(mutant.file)

    def patience(self, tests: list[str]) -> float:
        return _PATIENCE * (10 + sum(self.seconds.get(t, 20.0) for t in tests))


def recorded() -> Record:
    """Run all tests that this command knows, which have to pass, in this process."""
    measured = coverage.Coverage(
        data_file=None, include=[str(ROOT / f) for f in files()], config_file=False
    )
    recorder = Recorder(measured)
    named = sorted({t for f in files() for t in tests_of(f)})
    sys.path.insert(0, str(ROOT))
    with measured.collect():
        status = pytest.main(["-q", "-p", "no:cacheprovider", *named], plugins=[recorder])
    if status != 0:
        raise SystemExit("tests fail without any fault: nothing can be told with them")
    data = measured.get_data()
    seconds, lines = recorder.seconds, {}
    for file in files():
        by_line = data.contexts_by_lineno(str(ROOT / file))
        mine = {t.partition("::")[0] for t in tests_of(file)}
        lines[file] = {
            line: sorted(
                (t for t in tests if t.partition("::")[0] in mine), key=seconds.__getitem__
            )
            for line, tests in by_line.items()
            if "" not in tests
        }
    return Record(lines, seconds)


def kept(path: str) -> Record:
    """What was recorded in a file before, or now, and is written there."""
    if Path(path).exists():
        found = json.loads(Path(path).read_text())
        lines = {f: {int(n): ts for n, ts in ls.items()} for f, ls in found["lines"].items()}
        return Record(lines, found["seconds"])
    record = recorded()
    Path(path).write_text(json.dumps({"lines": record.lines, "seconds": record.seconds}))
    return record


# Each copy of the checkout has one fault at a time.


def copied(folder: Path) -> Path:
    for name in ("primgraph", "transforms", "codegen", "tests", "pyproject.toml"):
        source, target = ROOT / name, folder / name
        if source.is_file():
            shutil.copy(source, target)
        else:
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def exit_status(folder: Path, tests: list[str], patience: float) -> int | None:
    """How pytest ends in a copy, at the first failure; None if it takes too long."""
    chosen = folder / "chosen.txt"
    chosen.write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"@{chosen}"]
    paths = {"PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **paths},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(patience)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def survives(folder: Path, mutant: Mutant, number: int, record: Record) -> bool:
    """Whether the tests pass with the fault."""
    path, tests = folder / mutant.file, record.tests(mutant)
    source = path.read_bytes()
    try:
        path.write_bytes(mutant.applied(source))
        # Compiled files are told apart by time and size.
        os.utime(path, (number, number))
        return exit_status(folder, tests, record.patience(tests)) == 0
    finally:
        path.write_bytes(source)


def main() -> int:
    options = _options()
    every = [m for f in files() if fnmatch(f, options.only) for m in mutants_of(f)]
    if options.line:
        every = [m for m in every if m.line in options.line]
    chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    known = [m for m in chosen if m.key in EQUIVALENT]
    tried = [m for m in chosen if m.key not in EQUIVALENT]
    print(f"{len(every)} possible, {len(chosen)} chosen, {len(known)} known to mean the same")
    if options.list:
        print(*chosen, sep="\n")
        return 0
    record = kept(options.record) if options.record else recorded()
    waiting: queue.Queue[tuple[int, Mutant]] = queue.Queue()
    for pair in enumerate(tried):
        waiting.put(pair)
    missed: list[Mutant] = []
    done = [0]
    start = time.monotonic()

    def work(folder: Path) -> None:
        with contextlib.suppress(queue.Empty):
            while time.monotonic() - start < 60 * options.minutes:
                number, mutant = waiting.get_nowait()
                if survives(folder, mutant, 10**9 + number, record):
                    missed.append(mutant)
                    print(f"not noticed: {mutant}", flush=True)
                done[0] += 1

    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place, str(i)) for i in range(options.jobs)]
        for folder in folders:
            folder.mkdir()
            copied(folder)
        threads = [threading.Thread(target=work, args=[folder]) for folder in folders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    noticed = 1 - len(missed) / max(1, done[0])
    print(
        f"{done[0]} of {len(tried)} tried in {time.monotonic() - start:.0f} s: "
        f"{done[0] - len(missed)} noticed, {len(missed)} not ({100 * noticed:.1f} %)"
    )
    return int(noticed < ENOUGH)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="how many faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--minutes", type=float, default=120.0, help="the longest time")
    parser.add_argument("--only", default="*", help="a pattern for the files")
    parser.add_argument("--record", help="a file that has which tests come by which line")
    parser.add_argument("--line", type=int, nargs="*", help="only faults in these lines")
    parser.add_argument("--list", action="store_true", help="print the faults, and run nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
