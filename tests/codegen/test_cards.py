"""Cards: one for each primitive, with nothing left open, and the flags of primitives."""

import ast
import dataclasses
import inspect
import itertools
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from house import files
from samples import ROWS
from test_primitives import CASES

import primgraph as pg
from primgraph.codegen import ops
from primgraph.codegen.bodies import step_of
from primgraph.codegen.ir.axis_semantics import restrict_rows, role_of
from primgraph.codegen.ops import card, table
from primgraph.codegen.ops.card import Card, array_card
from primgraph.codegen.ops.spelling import ufuncs
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.runtime import support
from primgraph.ir.primitive import lookup
from primgraph.ir.views import Expand, Permute, Reshape, Slice

OPS = [lookup(name) for name in ROWS]
PRIMITIVES = Path(pg.primitives.__file__).parent
FAMILIES = sorted(
    ".".join(p.relative_to(PRIMITIVES).with_suffix("").parts) for p in PRIMITIVES.rglob("[a-z]*.py")
)
# Branches and loops are statements around others, and have no card; nor has what computes nothing.
FAMILIES.remove("control")
FAMILIES.remove("linear_algebra.spectral_derivatives")
# Graphs of the primitives beside it.
FAMILIES.remove("special_functions.formulas")
FAMILIES.remove("linear_algebra.triangles")
ROOT = Path(ops.__file__).parent.parent
FIELDS = [field.name for field in dataclasses.fields(Card)]

# One sample of each primitive, the first with elements where there is one.
SAMPLES = {}
for parameter in CASES:
    (case,) = parameter.values
    arrays = case.arrays(case.row.dtypes[0])
    if case.op not in SAMPLES or not SAMPLES[case.op][0]:
        SAMPLES[case.op] = all(a.size for a in arrays), case, arrays


# Cards.


def test_every_primitive_has_a_card():
    """All but what only derivatives see, which is gone before code is generated."""
    wanted = {op for op in OPS if not op.formal and not op.has_bodies}
    missing = sorted(op.name for op in wanted if op not in CARDS)
    assert not missing, f"add cards for {missing} to codegen/ops"
    assert wanted == {op for op in CARDS if op.name in ROWS}


def test_a_card_stands_in_the_file_that_is_named_as_that_of_the_primitive():
    for family in FAMILIES:
        own = vars(import_module(f"primgraph.primitives.{family}")).values()
        found = import_module(f"primgraph.codegen.ops.{family}").CARDS
        assert found, family
        strange = [op.name for op in found if not any(op is o for o in own)]
        assert not strange, f"move the cards of {strange} out of codegen/ops/{family}.py"


def test_every_part_of_a_card_is_decided():
    for field in dataclasses.fields(Card):
        assert field.default is dataclasses.MISSING, field.name
        assert field.default_factory is dataclasses.MISSING, field.name
        assert field.kw_only, field.name
    with pytest.raises(TypeError, match="advice"):
        Card(**{name: None for name in FIELDS if name != "advice"})


def modules_of_cards():
    return [card, ufuncs, table, *(import_module(f"{ops.__name__}.{f}") for f in FAMILIES)]


def test_one_function_writes_all_parts_of_a_card():
    """Others say how theirs differs from a plain one."""
    written = [
        (module.__name__.rpartition(".")[2], node.lineno)
        for module in modules_of_cards()
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Card"
    ]
    assert [module for module, _ in written] == ["card"], written


def test_what_makes_cards_of_a_kind_has_no_defaults_for_parts_either():
    """A default would decide for a primitive that nobody has thought of."""
    makers = [
        made
        for family in modules_of_cards()
        for made in vars(family).values()
        if inspect.isfunction(made) and inspect.signature(made).return_annotation == "Card"
    ]
    assert array_card in makers
    assert len(makers) > 8
    shown = {"name", "infix", "rank", "shown"}
    for made in makers:
        for parameter in inspect.signature(made).parameters.values():
            left_open = parameter.default is not inspect.Parameter.empty
            assert not left_open or parameter.name in shown, (made.__name__, parameter.name)


def test_helpers_are_functions_of_the_support_file():
    assert {card.helper for card in CARDS.values()} - {""} <= set(support.NAMES)


def test_helpers_use_nothing_but_what_generated_code_has():
    """Their text is copied into kernels, where there is nothing else."""
    # Those for JAX and torch are copied into files that import them.
    known = {"np", "jax", "torch", "functools", *support.BUILTINS, *support.NAMES}
    for name in support.NAMES:
        (tree,) = ast.parse(support.text_of(name)).body
        if isinstance(tree, ast.Assign):
            tree = ast.parse(f"def constant():\n    return {ast.unparse(tree.value)}").body[0]
        for inner in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
            inner.returns = None
        for argument in (n for n in ast.walk(tree) if isinstance(n, ast.arg)):
            argument.annotation = None
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - bound(tree)
        assert used <= known, name
        # One calls itself.
        assert (used - {name}) & {*support.NAMES} == {*support.required_names(name)}, name


def bound(tree):
    """Names that a function binds: its arguments, those of functions in it, and what it assigns."""
    stored = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    inner = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n is not tree}
    return stored | inner | {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}


def test_the_builtins_of_kernels_are_those_that_the_support_file_promises():
    kernel = pg.compile(pg.trace(pg.sin, pg.spec(3)))
    assert kernel._runner.code_of("readable").loaded.namespace["__builtins__"] is support.BUILTINS


# What NumPy's functions do in arrays with gaps.

STEPS = (1, 2, 3, 4, 8, -1, -4)
SIZES = (3, 37)


def numbers(rng, size, dtype):
    if dtype.kind == "b":
        return rng.integers(0, 2, size).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(1, 7, size).astype(dtype)
    found = rng.uniform(0.1, 0.9, size)
    return (found + 1j * rng.uniform(0.1, 0.9, size) if dtype.kind == "c" else found).astype(dtype)


def is_wrong_in_gaps(function, loop, out_steps):
    """Whether `function` gives other numbers between other elements than side by side."""
    rng, (taken, made) = np.random.default_rng(0), loop.split("->")
    for size, step, out_step in itertools.product(SIZES, STEPS, out_steps):
        given = [numbers(rng, size * abs(step), np.dtype(c))[::step] for c in taken]
        others = [given] if len(given) == 1 else [given, [given[0], given[1].copy()]]
        for operands in others:
            out = np.full(size * abs(out_step), 77, made)[::out_step]
            expected = function(*[x.copy() for x in operands])
            function(*operands, out)
            bound = 1e-2 if expected.dtype.itemsize == 2 else 1e-5
            if not np.allclose(expected, out, rtol=bound, atol=0, equal_nan=True):
                return True
    return False


def ufuncs_of_cards(dtypes="?bhilefdFD"):
    for name in {made.ufunc for made in CARDS.values()} - {""}:
        function = getattr(np, name)
        for loop in function.types:
            if set(loop) <= {*dtypes, "-", ">"}:
                yield name, function, loop


@pytest.mark.filterwarnings("ignore")
def test_functions_of_numpy_that_are_wrong_between_other_elements_are_not_spaced():
    """Where results lie side by side all are right, however operands lie."""
    wrong = {n for n, f, loop in ufuncs_of_cards() if is_wrong_in_gaps(f, loop, (2, 3, 8, -2))}
    assert wrong <= {made.ufunc for made in CARDS.values() if not made.spaced}
    assert not [n for n, f, loop in ufuncs_of_cards() if is_wrong_in_gaps(f, loop, (1,))]


def test_a_function_that_reads_neighbours_is_seen():
    def faulty(x, out=None):
        return np.negative(x.base[: len(x)] if out is not None and x.strides[0] == 32 else x, out)

    assert is_wrong_in_gaps(faulty, "d->d", (2,))
    assert not is_wrong_in_gaps(np.square, "d->d", (1, 2))


# What is true of the mathematics is said by the primitive, and is true.


def seen(how, x):
    match how:
        case Reshape(shape):
            return x.reshape(shape)
        case Permute(axes):
            return x.transpose(axes)
        case Expand(new):
            return x[tuple(None if n else slice(None) for n in new)]
        case Slice(ranges):
            return x[tuple(slice(*r) for r in ranges)]
    return x


@pytest.mark.parametrize("case", [c for c in CASES if c.values[0].op.is_view])
def test_a_view_is_what_the_meaning_gives(case):
    (x,) = case.arrays(case.row.dtypes[0])
    (type,) = case.types(case.row.dtypes[0])
    for k, found in enumerate(case.op.evaluate([x], case.call.params)):
        view = seen(case.op.seen(k, type, case.call.params), x)
        assert np.shares_memory(view, x) or not view.size
        assert np.array_equal(np.broadcast_to(view, np.shape(found)), found)


@pytest.mark.parametrize("op", [op for op in SAMPLES if op.moves], ids=str)
def test_what_moves_elements_makes_none_but_zeros(op):
    _, case, arrays = SAMPLES[op]
    linear = op.linear_operands(len(arrays)) or range(len(arrays))
    there = {0.0, *(v for k in linear for v in np.ravel(arrays[k]).tolist())}
    for found in op.evaluate(arrays, case.call.params):
        assert there.issuperset(np.ravel(found).tolist())


def test_what_gives_nothing_but_elements_of_its_operands_is_said_to_move():
    computing = set()
    for parameter in CASES:
        (case,) = parameter.values
        arrays = case.arrays(case.row.dtypes[0])
        there = {0, 1, *(v for x in arrays for v in np.ravel(x).tolist())}
        for found in case.op.evaluate(arrays, case.call.params):
            if not there.issuperset(np.ravel(found).tolist()):
                computing.add(case.op)
    moving = {op for op in OPS if op not in computing and not op.elementwise and not op.formal}
    # Where elements go depends on what they are, or whether there is a result.
    named = ("reduce_m", "arg", "cumm", "sort", "search", "unless")
    extreme = {op for op in moving if op.name.startswith(named) or op.random}
    assert moving - extreme == {op for op in OPS if op.moves and not op.elementwise}


def test_literals_are_the_primitives_without_operands():
    assert {op for op in OPS if op.literal} == {op for op, s in SAMPLES.items() if not s[2]}


def test_what_is_random_says_nothing_of_its_key():
    for op, (_, case, arrays) in SAMPLES.items():
        if not op.random:
            continue
        keys, *params = arrays
        others = np.concatenate([
            np.ravel(op.evaluate([keys + k, *params], case.call.params)[0]) for k in range(64)
        ])  # fmt: skip
        assert len(set(others.tolist())) > 1
        assert not op.linear_operands(1)
    assert {op.name.partition("_")[0] for op in OPS if op.random} == {"random"}


def test_what_stops_derivatives_is_constant_and_leaves_numbers_alone():
    stopping = [op for op in OPS if op.stops]
    assert [op.constant for op in stopping] == [True]
    for op in stopping:
        x = np.array([1.5, -2.0])
        assert np.array_equal(op.evaluate([x], {})[0], x)


# Nothing else names a primitive.

# Files in which names of primitives are what it is about: operators of the same name, words of
# other libraries, NumPy's functions, the text of the user's, and the text of graphs.
ABOUT_NAMES = (
    "codegen/targets/libraries/",
    "codegen/ops/",
    "codegen/ops/c/functions.py",
    "codegen/lower/nests/routines.py",
    "codegen/ops/c/spellings.py",
    "codegen/lower/nests/systems.py",
    "primgraph/array_api/",
    "primgraph/compat/",
    "primgraph/control/",
    "primgraph/interop/",
    "primgraph/base/array_functions.py",
    "primgraph/numpy/",
    "primgraph/operators/",
    "primgraph/primitives/",
    "primgraph/scipy/",
    "transforms/loops/",
)
# Names that mean something else than the primitive: a ufunc, a mode, a method, a kind of box.
OTHER_MEANINGS = {
    "primgraph/__init__.py": {"checkpoint", "cond", "fft", "scan", "while_loop"},
    "primgraph/ir/params.py": {"complex"},
    "primgraph/ir/frontend/parser.py": {"complex"},
    "codegen/targets/readable/control.py": {"reverse"},
    # Names of activations, as arguments.
    "primgraph/nn/recurrent.py": {"tanh"},
    "codegen/targets/inplace/statements.py": {"maximum", "minimum"},
    "codegen/loops.py": {"reverse"},
    # What nests do at places that others tell.
    "codegen/targets/export/elements.py": {"add"},
    "codegen/targets/c/body.py": {"add"},
    "codegen/lower/nests/indexing.py": {"add"},
    "codegen/targets/c/source.py": {"add"},
    "codegen/targets/c/walk.py": {"add"},
    "codegen/targets/export/function.py": {"reverse"},
    "codegen/targets/c/control.py": {"reverse"},
    "codegen/lower/nests/regions.py": {"add", "maximum", "minimum"},
    # The name of a method of NumPy's.
    "primgraph/eager/tensor.py": {"conj"},
    # Names of parameters and of tasks.
    "primgraph/distributed/mapped.py": {"constant"},
    "codegen/runtime/toolchain/fingerprint.py": {"constant"},
    "primgraph/training/fit.py": {"checkpoint"},
    "codegen/lower/arrays/planner.py": {"add", "maximum", "minimum"},
    "primgraph/derivatives/matrices/jacobian.py": {"reverse"},
    "primgraph/derivatives/matrices/layout.py": {"reverse"},
    "primgraph/derivatives/matrices/lazy_jacobian.py": {"reverse"},
    "primgraph/derivatives/matrices/sparse.py": {"reverse"},
    "primgraph/custom/traced.py": {"reverse"},
    "transforms/dataflow/sparsity/rules.py": {"reverse"},
    "transforms/dataflow/masks/guards_through_loops.py": {"reverse"},
    "primgraph/eager/operator_calls.py": {
        "add",
        "equal",
        "floor_divide",
        "greater",
        "greater_equal",
        "less",
        "less_equal",
        "maximum",
        "minimum",
        "not_equal",
        "power",
        "remainder",
    },
    "primgraph/eager/derivatives/other_modes.py": {"reverse"},
    "primgraph/eager/steps.py": {"add", "stop_gradient"},
    "primgraph/eager/derivatives/differentiable.py": {"stop_gradient"},
    "primgraph/api/derivatives/of_functions.py": {"reverse"},
    "primgraph/inspect/check.py": {"imag", "real", "reverse"},
    "primgraph/ir/value.py": {"add", "div", "extent", "full", "mul", "neg", "sub"},
    "primgraph/ir/primitive.py": {"constant"},
    "primgraph/ir/frontend/result_names.py": {"add", "div", "matmul", "mul", "neg", "sub"},
    "primgraph/program/save.py": {"complex", "constant"},
    "primgraph/view/growth.py": {"reverse"},
    "primgraph/view/shades.py": {"constant"},
    "primgraph/view/layers.py": {"constant", "reverse"},
    "transforms/optimize/simplify_loops.py": {"reverse"},
    "transforms/dataflow/masks/conditions.py": {"reverse"},
    **{
        f"primgraph/view/{name}.py": {"constant"}
        for name in (
            "folding",
            "formats/dot",
            "formats/mermaid",
            "formats/svg",
            "grouping",
        )
    },
}
# What stands below the primitives, or shows them, and is about one.
ABOUT_ONE = {
    "primgraph/eager/inplace/views.py": {
        "complex",
        "conj",
        "imag",
        "real",
        "reshape",
        "split",
        "stop_gradient",
    },
    "primgraph/ir/builder.py": {"reshape"},
    "primgraph/ir/frontend/origins.py": {"stop_gradient"},
    "primgraph/ir/rebuild.py": {"full"},
    "primgraph/ir/sizes.py": {"extent", "full"},
    "primgraph/inspect/trips.py": {"checkpoint", "cond", "reverse", "scan", "while_loop"},
    "primgraph/program/trace.py": {"stop_gradient"},
    "primgraph/view/loop_bodies.py": {"while_loop"},
    "primgraph/view/picture.py": {"constant", "full"},
}


def documented(nodes):
    """The docstrings among the nodes of a syntax tree."""
    for node in nodes:
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            yield first.value


@cache
def names_by_file():
    """The primitives that are named in strings, by file; `public` ones in lists do not count."""
    found, known = {}, set(ROWS)
    for file, (_, nodes) in files().items():
        left_out = {id(n) for n in documented(nodes)}
        for node in nodes[0].body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                left_out.update(id(n) for n in ast.walk(node))
        words = [
            word
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            if id(node) not in left_out and known.issuperset(node.value.split())
            for word in node.value.split()
        ]
        if words:
            found[file] = set(words)
    return found


def test_no_file_names_a_primitive_but_those_that_are_about_it():
    known = {**OTHER_MEANINGS, **ABOUT_ONE}
    strange = {
        file: words - known.get(file, set())
        for file, words in names_by_file().items()
        if not file.startswith(ABOUT_NAMES)
    }
    assert {file: words for file, words in strange.items() if words} == {}


def test_primitives_are_named_in_few_files():
    # Tables of other libraries' names are about these, and not about what primitives do.
    others = ("primgraph/compat/", "primgraph/interop/")
    files = [w for path, w in names_by_file().items() if not path.startswith(others)]
    assert median(sum(name in words for words in files) for name in ROWS) <= 3


def is_name_of_op(node):
    """Return whether a node compares `op.name`, or that of anything whose text ends so."""
    if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Attribute):
        return False
    return node.left.attr == "name" and ast.unparse(node.left).endswith("op.name")


def test_few_places_compare_the_name_of_an_op_with_a_text():
    found = []
    for path, (_, nodes) in files().items():
        for node in filter(is_name_of_op, nodes):
            texts = [n for c in node.comparators for n in ast.walk(c)]
            if any(isinstance(n, ast.Constant) for n in texts):
                found.append(f"{path}:{node.lineno}")
    assert len(found) <= 10, found


def roles_along(case, step):
    """The roles of a step of which one operand has rows, with the number of these."""
    for i, type in enumerate(step.operands):
        for axis, extent in enumerate(type.shape):
            axes = [axis if k == i else None for k in range(len(step.operands))]
            role = role_of(step, CARDS[case.op].blocking, axes)
            if role is not None and role.axis is not None and role.operands[i] == axis and extent:
                yield role, extent


@pytest.mark.parametrize("case", CASES)
def test_a_row_of_the_result_is_computed_from_the_rows_that_its_role_names(case):
    card = CARDS.get(case.op)
    if card is None or card.blocking is None or case.op.random:
        return
    arrays = case.arrays(case.row.dtypes[0])
    (eqn,) = (e for e in case.graph(case.row.dtypes[0]).body if e.op is case.op)
    step = step_of(eqn)
    wholes = case.op.evaluate(arrays, step.params)
    for role, extent in roles_along(case, step):
        local = restrict_rows(step, card.blocking, role, 1)
        pairs = zip(arrays, role.operands, strict=True)
        row = [x if axis is None else np.take(x, [extent - 1], axis) for x, axis in pairs]
        for whole, found in zip(wholes, case.op.evaluate(row, local.params), strict=True):
            expected = np.take(whole, [extent - 1], role.axis)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-12)
