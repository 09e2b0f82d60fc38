"""Files of C that kernels are saved as: compiled here, and called with arrays of NumPy's.

    python tests/drafts/exported.py [COUNT] [FIRST]

saves as many random programs (500) and their derivatives, from that seed on, and every other time
one of sizes, builds them in files of fifty with the sanitizers of the compiler, runs them, and
compares what they give with the interpreter.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from program_checks import demand_equal, unsigned
from program_tolerance import rounding_of
from random_programs import random_draft, random_program

import primgraph as pg
from primgraph.codegen.targets.export.file import c_source, function_of
from primgraph.codegen.targets.export.sizes import in_order
from primgraph.errors import FeedError, ShapeError
from primgraph.ir.dims import extent_at
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.sizes import Fitting, specialize_graph, type_at
from primgraph.ir.slices import drop_formal
from primgraph.transforms import clean_up, lower
from primgraph.transforms.pullback import pullback

Arrays = Sequence[np.ndarray]

STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wshadow", "-pedantic", "-Werror")


@cache
def sanitized() -> tuple[str, ...]:
    """The flags of the sanitizers that run here: that of addresses needs unlimited ones."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "nothing.c", Path(folder) / "nothing"
        source.write_text("int main(void) { return 0; }\n")
        for kinds in ("address,undefined", "undefined"):
            flags = ("-g", f"-fsanitize={kinds}", "-fno-sanitize-recover=all")
            command = [*compiler(), *flags, "-o", str(made), str(source)]
            if all(
                subprocess.run(words, capture_output=True, check=False).returncode == 0
                for words in (command, [str(made)])
            ):
                return flags
    return ()


def compiler() -> list[str]:
    """The command of a compiler of C; empty where there is none."""
    given = os.environ.get("CC")
    found = filter(None, map(shutil.which, ("cc", "gcc", "clang")))
    return given.split() if given else list(found)[:1]


def compiled(command: Sequence[str | Path]) -> None:
    """Run a compiler, which has nothing to say."""
    done = subprocess.run([*compiler(), *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    assert not done.stderr, done.stderr[:4000]


def loaded(folder: Path, stem: str, flags: Sequence[str] = ("-O1",)) -> ctypes.CDLL:
    """The library that `stem.c` in a folder is."""
    made = folder / f"{stem}.so"
    compiled([*STRICT, *flags, "-fPIC", "-shared", "-o", made, folder / f"{stem}.c", "-lm"])
    return ctypes.CDLL(str(made))


def calling(library: ctypes.CDLL, graph: Graph) -> Callable[..., list[Any]]:
    """The function of a graph as one of arrays, which returns the results."""
    function = getattr(library, graph.name)
    function.restype = ctypes.c_int
    told = function_of(graph)

    def run(*feeds: Any) -> list[Any]:
        """The results; what the function returned, if it can fail, is in `run.status` then.

        The sizes are those of the arrays, unless `run.sizes` has others.
        """
        sizes = run.sizes or fitting_sizes(graph, feeds)  # type: ignore[attr-defined]
        lengths = [ctypes.c_long(sizes[n]) for n in in_order(graph)]
        arguments: list[Any] = [*lengths]
        size = extent_at(told.nbytes, sizes)
        if graph.sizes and told.members:
            workspace = getattr(library, f"{graph.name}_workspace")
            workspace.restype = ctypes.c_long
            assert workspace(*lengths) in (size, -1)
        pairs = zip(feeds, graph.input_types, strict=True)
        kept = [np.array(x, t.dtype, order="C").reshape(type_at(t, sizes).shape) for x, t in pairs]
        for array in kept:
            kind = np.ctypeslib.as_ctypes_type(array.dtype)
            pointer = array.ctypes.data_as(ctypes.c_void_p)
            arguments.append(pointer if array.shape else kind(array.item()))
        types = [type_at(t, sizes) for t in graph.output_types]
        results = [np.full(t.shape, 77, t.dtype) for t in types]
        arguments += [r.ctypes.data_as(ctypes.c_void_p) for r in results]
        space = np.full(size + 64, 255, "u1")
        run.status = function(*arguments, space.ctypes.data_as(ctypes.c_void_p))  # type: ignore
        assert (space[size:] == 255).all(), "the workspace is larger than it is told"
        return results

    run.sizes = {}  # type: ignore[attr-defined]
    return run


def fitting_sizes(graph: Graph, feeds: Arrays) -> dict[str, int]:
    """The sizes that these arrays have."""
    inputs = [(str(k), t) for k, t in enumerate(graph.input_types)]
    return Fitting(inputs, graph.sizes).sizes([np.shape(x) for x in feeds])


def written(folder: Path, graphs: Sequence[Graph], stem: str) -> str:
    """The text of a file with a function for each of the graphs, which have different names."""
    header, source = c_source(graphs, stem)
    (folder / f"{stem}.h").write_text(header)
    (folder / f"{stem}.c").write_text(source)
    return source


# Random programs.


def named(graph: Graph, name: str) -> Graph:
    return Graph(graph.inputs, graph.body, graph.outputs, name)


def doubled(name: str) -> Graph:
    """A small graph of that name."""
    return named(pg.trace(lambda x: x * 2, pg.spec(3)), name)


def spelled(graph: Graph, left: Counter[str]) -> Graph | None:
    """The graph with those outputs that C has words for; None where there is none."""
    kept = []
    for v in graph.outputs:
        try:
            function_of(graph.with_outputs([v]))
        except pg.CompileError as error:
            left[str(error).splitlines()[0].split(",")[0]] += 1
        else:
            kept.append(v)
    return graph.with_outputs(kept) if kept else None


def derivative(graph: Graph) -> Graph | None:
    """The products of the transposed Jacobian with vectors, behind the results."""
    wrt = [k for k, v in enumerate(graph.inputs) if v.type.is_float]
    ends = [v for v in graph.outputs if v.type.is_float]
    if not wrt or not ends:
        return None
    return drop_formal(clean_up(pullback(graph.with_outputs(ends), wrt)))


def drawn(seed: int, left: Counter[str]) -> list[tuple[Graph, Arrays]]:
    """A random program that C has words for, and its derivative, with feeds."""
    program = random_program(seed)
    graph = spelled(drop_formal(clean_up(lower(program.graph))), left)
    if graph is None:
        return []
    found = [(named(graph, f"program_{seed}"), list(program.feeds))]
    slope = derivative(graph) if program.smooth else None
    slope = None if slope is None else spelled(slope, left)
    if slope is not None:
        rng = np.random.default_rng(seed)
        more = [
            np.asarray(rng.normal(size=v.type.shape)).astype(v.type.dtype)
            for v in slope.inputs[len(graph.inputs) :]
        ]
        found.append((named(slope, f"slope_{seed}"), [*program.feeds, *more]))
    return found


# What sizes of random programs are, beside those that they were drafted with.
SETS_OF_SIZES = ((0, 2), (1, 1), (3, 0), (7, 20), (33, 2))


def drawn_of_sizes(seed: int, left: Counter[str]) -> list[tuple[Graph, Arrays]]:
    """A random program of sizes that C has words for, with feeds of several sizes that fit it."""
    rng = np.random.default_rng(seed)
    program, draft = random_draft(seed, {n: int(rng.integers(1, 6)) for n in "NM"})
    graph = spelled(drop_formal(clean_up(lower(program.graph))), left)
    if graph is None:
        return []
    graph = named(graph, f"program_of_sizes_{seed}")
    feeds = [program.feeds, program.others]
    for n, m in SETS_OF_SIZES:
        draft.sizes = {"N": n, "M": m}
        with contextlib.suppress(ShapeError):
            specialize_graph(graph, draft.sizes)
            feeds.append([draft.array(v.type, draft.smooth) for v in graph.inputs])
    found = []
    for arrays in feeds:
        with contextlib.suppress(FeedError, IndexError):
            # The interpreter looks at all that is assumed.
            interpret(graph, *arrays)
            found.append((graph, list(arrays)))
    return found


def harness(programs: Sequence[tuple[Graph, Arrays]], stem: str) -> str:
    """A `main` that reads feeds from one file and writes results to another.

    Each array has memory of its own, so that a sanitizer sees what is beside it.
    """
    lines = [
        "#include <stdio.h>", "#include <stdlib.h>", f'#include "{stem}.h"', "",
        "static void *taken(FILE *file, size_t size) {",
        "    void *made = malloc(size ? size : 1);",
        "    if (!made || (file && fread(made, 1, size, file) != size)) exit(2);",
        "    return made;", "}", "",
        "static void left(FILE *file, void *array, size_t size) {",
        "    if (fwrite(array, 1, size, file) != size) exit(2);", "    free(array);", "}", "",
    ]  # fmt: skip
    calls = []
    for at, (graph, feeds) in enumerate(programs):
        told, sizes = function_of(graph), fitting_sizes(graph, feeds)
        calls.append(f"    run_{at}(in, out);")
        lines.append(f"static void run_{at}(FILE *in, FILE *out) {{")
        lines.append("    (void)in;")
        arguments = [str(sizes[n]) for n in in_order(graph)]
        arrays = [(k, p) for k, p in enumerate(told.parameters) if not p.is_size]
        ends = []
        for k, p in arrays:
            kind, size = p.kind, type_at(p.type, sizes).nbytes
            file = "NULL" if p.is_result else "in"
            lines.append(f"    {kind} *const p{k} = taken({file}, {size});")
            ends.append(f"    left(out, p{k}, {size});" if p.is_result else f"    free(p{k});")
            arguments.append(f"p{k}" if p.is_result or p.type.shape else f"*p{k}")
        if told.members and told.sizes:
            size = f"{told.upper}_WORKSPACE_BYTES({', '.join(arguments[: len(graph.sizes)])})"
            lines.append(f"    void *const work = taken(NULL, {size});")
        elif told.members:
            lines.append(f"    {graph.name}_workspace *const work = taken(NULL, sizeof *work);")
        if told.members:
            arguments.append("work")
            ends.append("    free(work);")
        lines.append(f"    {graph.name}({', '.join(arguments)});")
        lines += [*ends, "}", ""]
    lines += [
        "int main(int count, char **given) {", "    if (count != 3) return 2;",
        '    FILE *const in = fopen(given[1], "rb"), *const out = fopen(given[2], "wb");',
        "    if (!in || !out) return 2;",
        *calls,
        "    fclose(in);", "    return fclose(out);", "}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def check(programs: Sequence[tuple[Graph, Arrays]], folder: Path, flags: Sequence[str]) -> None:
    """One file for all of them gives what the interpreter does."""
    # One function may be called with several sets of arrays.
    graphs = list({graph.name: graph for graph, _ in programs}.values())
    written(folder, graphs, "programs")
    (folder / "main.c").write_text(harness(programs, "programs"))
    run = folder / "programs"
    files = [folder / "programs.c", folder / "main.c"]
    compiled([*STRICT, *flags, "-o", run, *files, "-lm"])
    given, left = folder / "given", folder / "left"
    arrays = [
        np.ascontiguousarray(x, t.dtype).tobytes()
        for graph, feeds in programs
        for x, t in zip(feeds, graph.input_types, strict=True)
    ]
    given.write_bytes(b"".join(arrays))
    done = subprocess.run([run, given, left], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    bytes_left = left.read_bytes()
    at = 0
    for graph, feeds in programs:
        found = []
        for type in [type_at(t, fitting_sizes(graph, feeds)) for t in graph.output_types]:
            part = np.frombuffer(bytes_left, type.dtype, type.size, at)
            found.append(part.reshape(type.shape))
            at += type.nbytes
        expected = interpret(graph, *feeds)
        what = f"C of {graph.name}"
        with rounding_of("native"):
            if graph.name.startswith("slope"):
                demand_equal(what, graph, feeds, unsigned(expected), unsigned(found))
            else:
                demand_equal(what, graph, feeds, expected, found)
    assert at == len(bytes_left)


def main() -> None:
    count, first = [int(a) for a in sys.argv[1:]] + [500, 0][len(sys.argv) - 1 :]
    left: Counter[str] = Counter()
    made = 0
    for begin in range(first, first + count, 50):
        seeds = range(begin, min(begin + 50, first + count))
        programs = [
            each
            for seed in seeds
            for each in [*drawn(seed, left), *(drawn_of_sizes(seed, left) if seed % 2 else ())]
        ]
        made += len(programs)
        with tempfile.TemporaryDirectory() as folder:
            check(programs, Path(folder), ["-O1", *sanitized()])
        print(f"seeds {seeds.start} to {seeds.stop - 1}: {len(programs)} functions agree")
    print(f"{made} functions of {count} programs; outputs left out:")
    for what, times in left.most_common():
        print(f"  {times:5} {what}")


if __name__ == "__main__":
    main()
