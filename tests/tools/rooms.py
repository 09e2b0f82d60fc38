"""The rooms of the house, their floors, and who imports whom; and the picture of all that.

    python tests/tools/rooms.py

draws `docs/static/map.svg` anew, and says how many rooms, arrows, circles and upward arrows there
are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import primgraph as pg
from primgraph.view.folding import Node
from primgraph.view.formats.svg import arrow, document, label_text, outline
from primgraph.view.layouts.layout import MARGIN, layout
from primgraph.view.scene import Face, face_of

PACKAGE = Path(pg.__file__).parent
_LEGEND = 28.0
PICTURE = Path(__file__).parents[2] / "docs" / "static" / "map.svg"

# The rooms, lowest first: a file imports from its own room and from those below. Files that lie in
# `primgraph` itself stand here by name.
FLOORS = (
    ("primgraph.approximations", "primgraph.base", "primgraph.errors"),
    ("primgraph.ir", "primgraph.sparsity"),
    ("primgraph.defaults", "primgraph.initializers", "primgraph.primitives", "primgraph.tables"),
    (
        "primgraph.codegen",
        "primgraph.fft",
        "primgraph.linalg",
        "primgraph.operators",
        "primgraph.random",
        "primgraph.special",
    ),
    ("primgraph.numpy", "primgraph.transforms"),
    ("primgraph.program",),
    ("primgraph.derivatives",),
    ("primgraph.autograd", "primgraph.eager", "primgraph.view"),
    (
        "primgraph.api",
        "primgraph.array_api",
        "primgraph.custom",
        "primgraph.optimizer",
        "primgraph.tree",
    ),
    ("primgraph.control", "primgraph.inspect", "primgraph.training"),
    ("primgraph.solvers",),
    (
        "primgraph.cli",
        "primgraph.distributed",
        "primgraph.extend",
        "primgraph.nn",
        "primgraph.scipy",
    ),
    ("primgraph.__main__", "primgraph.compat"),
    ("primgraph.interop",),
)


@cache
def sources() -> dict[str, tuple[str, str]]:
    """Path in a checkout, and text, of every module of the package, by name."""
    found = {}
    for top, home in {
        "": PACKAGE,
        **{n: PACKAGE.parent / n for n in ("transforms", "codegen")},
    }.items():
        # An installed package has these inside, and what lies beside it is none of it.
        if top and (PACKAGE / top).is_dir():
            continue
        for file in sorted(home.rglob("*.py")):
            parts = ("primgraph", top, *file.relative_to(home).with_suffix("").parts)
            name = ".".join(part for part in parts if part not in ("", "__init__"))
            path = name.replace(".", "/") + ("/__init__.py" if file.stem == "__init__" else ".py")
            if name.startswith(("primgraph.transforms", "primgraph.codegen")):
                path = path.removeprefix("primgraph/")
            found[name] = path, file.read_text(encoding="utf-8")
    return found


@cache
def modules() -> dict[str, tuple[str, ast.Module]]:
    """Package and syntax tree of every module of the package, by name."""
    found = {}
    for name, (path, text) in sources().items():
        package = name if path.endswith("__init__.py") else name.rpartition(".")[0]
        found[name] = package, ast.parse(text, filename=name)
    return found


@cache
def nodes() -> dict[str, tuple[ast.AST, ...]]:
    """Return the nodes of the syntax tree of every module, by name."""
    return {name: tuple(ast.walk(tree)) for name, (_, tree) in modules().items()}


@cache
def imported() -> dict[str, frozenset[str]]:
    """Return the modules that each module imports or names."""
    return {name: frozenset(imports(found)) for name, found in nodes().items()}


def imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names of the modules of the package that these nodes import, or name in a string.

    A string is a module that is loaded late, by `import_module` or by way of a table. Imports that
    are for type checkers alone count as all others.
    """
    known = modules()
    for node in nodes:
        if isinstance(node, ast.Constant) and node.value in known and "." in str(node.value):
            yield str(node.value)
        elif isinstance(node, ast.Call) and _loads_package(node):
            yield "primgraph"
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            inner = [f"{node.module}.{a.name}" for a in node.names]
            submodules = [name for name in inner if name in known]
            yield from submodules
            if len(submodules) < len(inner):
                yield node.module


def _loads_package(call: ast.Call) -> bool:
    """Whether a call loads primgraph itself, whose name may stand elsewhere for other reasons."""
    name = call.args[0] if call.args else None
    is_own = isinstance(name, ast.Constant) and name.value == "primgraph"
    return is_own and ast.unparse(call.func).endswith("import_module")


def place(module: str) -> tuple[int, str]:
    """The floor of a module, and its room: the longest name there that it begins with."""
    places = [
        (len(name), number, name)
        for number, names in enumerate(FLOORS)
        for name in names
        if module == name or module.startswith(f"{name}.")
    ]
    return (len(FLOORS), module) if module == "primgraph" else max(places)[1:]


def floor(module: str) -> int:
    """The floor of a module."""
    return place(module)[0]


# The picture: a room is a folder, or the files of a floor that lie in `primgraph` itself.

# What a room is drawn as, and what its box tells of it: the parts of pictures lend their colours.
ROOMS = {
    "base, errors": ("input", "files, locks, lines of the user's"),
    "approximations": ("input", "special functions in NumPy"),
    "ir": ("forward", "types, graph, builder, text, slices"),
    "sparsity": ("input", "patterns, colours"),
    "primitives": ("forward", "meaning, derivative, batching"),
    "operators": ("forward", "what users write"),
    "numpy": ("forward", "NumPy's names"),
    "scipy": ("forward", "SciPy's names"),
    "codegen/runtime/toolchain": ("cotangent", "the C compiler, its cache"),
    "codegen/runtime": ("cotangent", "threads, BLAS, feeds"),
    "codegen/ir": ("cotangent", "plans, nests, places: data"),
    "codegen/lower": ("cotangent", "order, fusion, memory"),
    "codegen/ops": ("cotangent", "a primitive's text and costs"),
    "codegen/targets/text": ("cotangent", "names, lines, layout"),
    "codegen/targets/inplace": ("cotangent", "NumPy, into buffers"),
    "codegen/targets/readable": ("cotangent", "NumPy, to be read"),
    "codegen/targets/libraries": ("cotangent", "JAX, CuPy"),
    "codegen/targets/scalar": ("cotangent", "Python's floats"),
    "codegen/targets/c": ("cotangent", "C for loop nests"),
    "codegen/targets/export": ("cotangent", "files of C"),
    "codegen": ("cotangent", "kernels"),
    "transforms/dataflow": ("update", "analyses of graphs"),
    "transforms/rewrite": ("update", "rewriting rules"),
    "transforms/optimize": ("update", "the same with less work"),
    "transforms": ("update", "lower, linearize, transpose"),
    "program": ("output", "build, trace, compile, run, save"),
    "derivatives": ("output", "grad, Jacobian, products"),
    "eager": ("output", "tensors, backward"),
    "custom": ("output", "rules of the user's"),
    "control": ("output", "loops, branches"),
    "solvers": ("output", "minima, equations, integrals"),
    "api": ("output", "function transformations, jit"),
    "nn": ("output", "layers"),
    "optimizer": ("output", "SGD, Adam"),
    "training": ("output", "fit, SciPy"),
    "view": ("output", "pictures and pages"),
    "inspect": ("output", "cost, profile, explain, check"),
    "array_api": ("output", "the standard's names"),
    "cli": ("output", "the command line"),
    "compat": ("output", "names of other systems"),
    "interop": ("output", "programs of other libraries"),
    "distributed": ("output", "chunks, on Dask"),
    "extend": ("output", "for packages of others"),
}
# Files that lie in `primgraph` itself, by the room that they are drawn as.
_TOGETHER = {
    "eager": ("autograd", "eager"),
    "api": ("api", "tree"),
    "operators": ("fft", "linalg", "operators", "random", "special"),
    "base, errors": ("base", "errors"),
    "primitives": ("defaults", "initializers", "primitives", "tables"),
}
_SHARED = {name: room for room, names in _TOGETHER.items() for name in names}


def room(module: str) -> str:
    """The room of a module as the picture has it; empty for the two files above all."""
    path = module.removeprefix("primgraph").removeprefix(".").replace(".", "/")
    if path in ("", "__main__"):
        return ""
    top = path.partition("/")[0]
    inner = [name for name in ROOMS if f"{path}/".startswith(f"{name}/")]
    return _SHARED.get(top) or max(inner, key=len)


def arrows() -> dict[str, set[str]]:
    """The rooms that each room imports from."""
    found: dict[str, set[str]] = {}
    for module, names in imported().items():
        own = room(module)
        if own:
            others = {room(o) for o in names} - {own, ""}
            found.setdefault(own, set()).update(others)
    return found


def levels(below: Mapping[str, set[str]]) -> dict[str, int]:
    """How high each room lies: just above the highest that it imports from."""
    found: dict[str, int] = {}
    for name in TopologicalSorter(below).static_order():
        found[name] = 1 + max((found[o] for o in below[name]), default=-1)
    return found


def told(below: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The arrows that no others imply, from the highest room to the lowest."""
    level = levels(below)
    reached: dict[str, set[str]] = {}
    for name in sorted(below, key=level.__getitem__):
        reached[name] = below[name].union(*(reached[o] for o in below[name]))
    pairs = []
    for name in sorted(below, key=lambda n: (-level[n], list(ROOMS).index(n))):
        implied = set().union(*(reached[o] for o in below[name]))
        pairs += [(name, o) for o in sorted(below[name] - implied, key=list(ROOMS).index)]
    return pairs


def drawn() -> str:
    """The house as SVG, lowest room at the bottom, with the arrows that no others imply."""
    below = arrows()
    level, pairs = levels(below), told(below)
    names = sorted(below, key=lambda n: (-level[n], list(ROOMS).index(n)))
    faces = [_face(name) for name in names]
    number_of = {name: i for i, name in enumerate(names)}
    edges = [(number_of[a], number_of[b]) for a, b in pairs]
    layers = [max(level.values()) - level[n] for n in names]
    plan = layout([f.size for f in faces], edges, layers)
    body = [
        arrow(route, [f"{a} imports {b}"], False)
        for route, (a, b) in zip(plan.routes, pairs, strict=True)
    ]
    boxes = zip(names, faces, plan.corners, strict=True)
    body += [_box(name, face, *corner) for name, face, corner in boxes]
    count = sum(map(len, below.values()))
    text = f"{len(names)} rooms, {count} arrows from who imports to what is imported; drawn are "
    text += f"the {len(pairs)} that no others imply"
    body.append(label_text("note left", MARGIN, plan.height + 15, text))
    return document(body, plan.width, plan.height + _LEGEND, "The rooms of primgraph")


def _face(name: str) -> Face:
    part, note = ROOMS[name]
    return face_of(Node(name, "", note, part, 0, (part, 0), []))


def _box(name: str, face: Face, x: float, y: float) -> str:
    width, height = face.size
    shape = outline("mixed", x, y, width, height)
    label = label_text("label", x + width / 2, y + 18, face.label)
    note = label_text("note", x + width / 2, y + 33, face.note)
    return f'<g class="{ROOMS[name][0]}">{shape}{label}{note}</g>'


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
    found, circles = arrows(), 0
    try:
        levels(found)
    except CycleError:
        circles = 1
    upward = [(a, b) for a, others in imported().items() for b in others if floor(b) > floor(a)]
    count = sum(map(len, found.values()))
    print(f"{len(found)} rooms, {count} arrows, {circles} circles, {len(upward)} upward arrows")
