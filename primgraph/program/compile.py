"""Compilation of a graph to a kernel: passes, then code generation."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, final, overload
from weakref import WeakKeyDictionary

from primgraph.base.interpreter_limits import uncollected
from primgraph.base.locks import cached_property
from primgraph.base.providers import late, provider
from primgraph.base.records import dataclass
from primgraph.codegen import Kernel
from primgraph.codegen.kernel import kernel_of, reason_of
from primgraph.codegen.recipe import Recipe, require_style
from primgraph.defaults import LIBRARIES, target_of
from primgraph.errors import ArgumentError, CompileError
from primgraph.ir.frontend.signature import checked_late
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.sizes import specialize_graph
from primgraph.ir.slices import drop_formal
from primgraph.program.sized import GENERIC, KEPT, Policy, SizedKernel
from primgraph.transforms.hoist import hoist, input_free
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.pipeline import optimize_graph, skipped
from primgraph.transforms.rewrite.rule import check_level

if TYPE_CHECKING:
    from primgraph.codegen.targets.libraries.kernel import ArrayKernel
    from primgraph.transforms.loops import invariant_factors
else:
    invariant_factors = late("primgraph.transforms.loops.invariant_factors")

# The arguments of `compile`, by its kernels.
_sources: WeakKeyDictionary[Kernel | SizedKernel, tuple[Graph, str | None]] = WeakKeyDictionary()


@overload
def compile(  # type: ignore[overload-overlap]
    graph: Graph,
    *,
    target: Literal["jax", "torch", "cupy"],
    math: str = "exact",
    skip: Collection[str] = (),
) -> ArrayKernel: ...
@overload
def compile(
    graph: Graph,
    *,
    style: str = "planned",
    math: str = "exact",
    target: str | None = None,
    donated: Mapping[int, int] | None = None,
    kept_sizes: int = KEPT,
    new_sizes: str = GENERIC,
    skip: Collection[str] = (),
    explain: bool = False,
) -> Kernel | SizedKernel: ...
@checked_late
@uncollected
def compile(
    graph: Graph,
    *,
    style: str = "planned",
    math: str = "exact",
    target: str | None = None,
    donated: Mapping[int, int] | None = None,
    kept_sizes: int = KEPT,
    new_sizes: str = GENERIC,
    skip: Collection[str] = (),
    explain: bool = False,
) -> Any:
    """Compile `graph` into a kernel of NumPy or C code.

    - `style` is the code that runs: "planned", with preallocated buffers, or "readable", the code
      that `Kernel.source` shows.
    - `math` is the level of rewrites. "exact" keeps the bits for all feeds. "signs", which
      derivatives always have, may change signs of zeros, and products with a power of two that
      over- or underflow on the way. "finite" may differ where NaN, infinity, overflow or underflow
      occurs. "fast" may round differently; in C, functions are within four units in the last place.
    - `target` is "numpy"; "c" for native code, or NumPy with a warning if there is no C compiler;
      or "auto", the faster one: calls run in NumPy while C is compiled in the background, and the
      times of both decide. The default is that of `pg.config`, or NumPy. "jax", "torch" and
      "cupy" give an `ArrayKernel`, for arrays of these libraries; `style`, `donated` and `explain`
      are not for them.
    - `donated` maps positions of outputs to positions of inputs of the same type, whose arrays they
      overwrite. A donated array must share memory with no other input. Positions count arrays, as
      in `graph.inputs` and `graph.outputs`.
    - `skip` names passes to leave out, as PRIMGRAPH_SKIP_PASSES does for a process, for debugging.
    - `explain` prints what runs where, and why: native code, steps of NumPy, code for other
      arguments. `Kernel.explanation` has the same, without the reason of the target.

    Equations that depend on no input are computed at the first call, and kept by the kernel. The
    kernel of a traced function takes its arguments by position or parameter name and returns what
    the function returned. Kernels of other graphs, built by hand, by `parse` or by a transform,
    return a list.

    A graph with symbolic sizes gives a `SizedKernel`, which finds the sizes from its arguments. New
    sizes run code for all sizes. Sizes that come again get code of their own, kept for the last
    `kept_sizes` sets; `new_sizes="compile"` compiles for new sizes at once. In the style "readable"
    there is only the code for all sizes.

    Raises `ArgumentError` for anything but a graph and for an unknown level or pass, `CompileError`
    for an unknown style or target, and where a C compiler fails.

    >>> kernel = pg.compile(pg.trace(lambda x: 2.0 * x, pg.spec(2)))
    >>> kernel(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    if target in LIBRARIES:
        refused = {"style": style != "planned", "donated": donated, "explain": explain}
        return _library_kernel(graph, target, math, skip, refused)
    style = style_for(style, target)
    _require_graph(graph)
    options: dict[str, Any] = {"style": style, "math": math, "donated": donated, "skip": skip}
    made: Kernel | SizedKernel
    if graph.sizes:
        made = _sized_kernel(graph, options, kept_sizes, new_sizes)
    else:
        made = compile_kernel(graph, **options)
    if explain:
        print(_explanation(made, style))
    _sources[made] = graph, target
    return made


def source_of(kernel: Any) -> tuple[Graph, str | None] | None:
    """Return the graph, which has what derivatives need, and the target of a kernel by `compile`.

    Return None for other objects, and for kernels that were made otherwise, as by `pickle`.
    """
    return _sources.get(kernel) if isinstance(kernel, Kernel | SizedKernel) else None


def _library_kernel(
    graph: Graph, target: str | None, math: str, skip: Collection[str], refused: Mapping[str, Any]
) -> ArrayKernel:
    """Return the kernel of an array library; those of `refused` that are given are errors."""
    _require_graph(graph)
    for option in (name for name, given in refused.items() if given):
        raise ArgumentError(f"compile: {option} is not for target={target!r}", hint="leave it out")
    plain = drop_formal(optimize_graph(graph, math, skip))
    kernel: ArrayKernel = provider("kernels of libraries").ArrayKernel(plain, target)
    return kernel


def _explanation(kernel: Kernel | SizedKernel, style: str) -> str:
    """Return what runs where, and why; of sized kernels for the code for all sizes."""
    one = kernel if isinstance(kernel, Kernel) else kernel.generic
    reasons = {"native": "the target is C", "auto": ""}
    reason = reasons.get(style, "the target is NumPy")
    if not reason:
        reason = reason_of(one)
    if not reason:
        reason = importlib.import_module("primgraph.program.targets").choice_of(one.graph).reason
    named = "C" if one.style == "native" else "NumPy"
    sizes = "" if one is kernel else " for all sizes; sizes that come again get code of their own"
    lines = [f"  {line}" for line in one.explanation.splitlines()]
    return "\n".join([f"{kernel.graph.name} runs in {named}{sizes}: {reason}", *lines])


def _require_graph(graph: Any) -> None:
    if not isinstance(graph, Graph):
        raise ArgumentError(
            f"compile takes a graph, not {type(graph).__name__}",
            hint="make one with pg.trace(function, *specs), or program.graph([outputs])",
        )


def _sized_kernel(
    graph: Graph, options: dict[str, Any], kept_sizes: Any, new_sizes: Any
) -> SizedKernel:
    """Return a kernel that is compiled for each size, and one for all sizes, when needed."""
    check_level(options["math"])
    plain = simplify_symbolic(graph, options["skip"])

    def make(sizes: Mapping[str, int]) -> Kernel:
        return compile_kernel(specialize_graph(plain, sizes), **options)

    def whole() -> Kernel:
        return generic(plain, **options)

    policy = Policy.from_options(kept_sizes, new_sizes, compiles=options["style"] != "readable")
    sized = {"kept_sizes": kept_sizes, "new_sizes": new_sizes}
    return SizedKernel(graph, make, whole, policy, (compile, {**options, **sized}))


def require_options(target: str | None, math: str) -> None:
    """Raise `CompileError` for an unknown target, `ArgumentError` for an unknown level."""
    target_of(target)
    check_level(math)


def style_for(style: str, target: str | None) -> str:
    """Return the code generator's style. Raises `CompileError` for an unknown target or style.

    With the style "auto" the process that compiles in the background begins.
    """
    wanted = target_of(target)
    require_style(style)
    if target in _STYLES and style == "readable":
        raise CompileError("readable code is NumPy's", hint="leave out style or target")
    found = _STYLES.get(wanted, style) if style == "planned" else style
    if found == "auto":
        provider("background compiler").expect()
    return found


# Planned code by target, as named by the code generator; "auto" is resolved later.
_STYLES = {"c": "native", "auto": "auto"}


def compile_kernel(
    graph: Graph,
    *,
    style: str | None = None,
    math: str = "exact",
    donated: Mapping[int, int] | None = None,
    skip: Collection[str] = (),
) -> Kernel:
    """Like `compile`, for a graph without symbolic sizes, in a style of the code generator."""
    style = style_for("planned", None) if style is None else style
    plain = optimize_graph(graph, math, skip)
    return _kernel(plain, style=style, donated=donated, loose=math == "fast")


def generic(
    graph: Graph,
    math: str = "exact",
    *,
    donated: Mapping[int, int] | None = None,
    handed: Sequence[int] = (),
    style: str = "readable",
    skip: Collection[str] = (),
) -> Kernel:
    """Return the size-generic kernel of a graph with symbolic sizes, in readable or native code.

    It does not check the sizes of its arguments.
    """
    plain = optimize_graph(graph, math, skip)
    options: dict[str, Any] = {"donated": donated, "handed": handed, "loose": math == "fast"}
    if style == "auto":
        return _chosen_kernel(drop_formal(plain), "readable", options)
    chosen = "native" if style == "native" else "readable"
    return kernel_of(_recipe(drop_formal(plain), chosen, **options))


def simplify_symbolic(graph: Graph, skip: Collection[str] = ()) -> Graph:
    """Simplify a graph with symbolic sizes as far as possible before they are known."""
    plain = lower(graph)
    plain = plain if "clean_up" in skipped(skip) else clean_up(plain)
    return plain.in_form(graph.form).titled(graph.titles)


@final
@dataclass(frozen=True)
class Pipeline:
    """Graph compiled for runs in which some inputs rarely change.

    `kernel` takes the inputs of the optimized `graph`, followed by the results of `early`, if any,
    computed from the inputs at `still`. The caller caches these results while those inputs stay the
    same.
    """

    graph: Graph
    kernel: Kernel
    early: Kernel | None
    still: tuple[int, ...]
    loose: bool

    @cached_property
    def whole(self) -> Kernel:
        """Return one kernel for the whole graph."""
        if self.early is None:
            return self.kernel
        return _kernel(self.graph, style=self.kernel.style, loose=self.loose)


def pipeline(
    graph: Graph,
    math: str,
    still: Sequence[int] = (),
    handed: Sequence[int] = (),
    target: str | None = None,
) -> Pipeline:
    """Compile `graph`, whose inputs at `still` rarely change between runs.

    The outputs at `handed` are written into arrays passed to the kernel. A graph with symbolic
    sizes is computed completely in each run, by size-generic code.
    """
    if graph.sizes:
        kernel = generic(graph, math, handed=handed, style=style_for("planned", target))
        return Pipeline(kernel.graph, kernel, None, tuple(still), math == "fast")
    plain = optimize_graph(graph, math)
    style, loose = style_for("planned", target), math == "fast"
    factored = plain if style == "auto" else _with_factors(plain, style)
    first, rest = hoist(factored, still)
    early = _kernel(first, style=style, loose=loose) if first.outputs else None
    late = _kernel(rest, style=style, handed=handed, loose=loose)
    return Pipeline(plain, late, early, tuple(still), loose)


def compile_last(graph: Graph, least: int) -> Kernel:
    """Compile `graph` for callers that do not differentiate the kernel's graph.

    Outputs of `least` bytes or more are written into arrays passed to the kernel.
    """
    plain = _drop_stops(optimize_graph(graph))
    handed = [k for k, type in enumerate(plain.output_types) if type.nbytes >= least]
    return _kernel(plain, style=style_for("planned", None), handed=handed)


def _drop_stops(graph: Graph) -> Graph:
    """Return `graph` without `stop_gradient` equations."""
    moved: dict[Value, Value] = {}
    body: list[Equation] = []
    for eqn in graph.body:
        inputs = tuple([moved.get(v, v) for v in eqn.inputs])
        if eqn.op.stops:
            moved[eqn.output] = inputs[0]
        elif inputs == eqn.inputs:
            body.append(eqn)
        else:
            body.append(Equation(eqn.op, inputs, eqn.params, eqn.outputs, eqn.source))
    outputs = [moved.get(v, v) for v in graph.outputs]
    return Graph(graph.inputs, body, outputs, graph.name, graph.form, graph.titles)


def _kernel(
    graph: Graph,
    *,
    style: str = "planned",
    donated: Mapping[int, int] | None = None,
    handed: Sequence[int] = (),
    loose: bool = False,
) -> Kernel:
    """Compile the kernel of a program, function or graph."""
    graph = drop_formal(graph)
    options: dict[str, Any] = {"donated": donated, "handed": handed, "loose": loose}
    if style == "auto":
        return _chosen_kernel(graph, "planned", options)
    return kernel_of(_recipe(graph, style, **options))


def _recipe(
    graph: Graph,
    style: str,
    *,
    donated: Mapping[int, int] | None,
    handed: Sequence[int],
    loose: bool,
) -> Recipe:
    """Return the recipe of a kernel in a style of the code generator."""
    graph = _with_factors(graph, style)
    once = () if graph.sizes else input_free(graph)
    return Recipe.from_parts(graph, style, donated or {}, None, once, handed, loose)


def _chosen_kernel(graph: Graph, style: str, options: dict[str, Any]) -> Kernel:
    """Return a kernel that runs in a style of NumPy, or in C where that is faster.

    It measures that if C can be compiled in the background; otherwise the cost model decides.
    """
    numpy, native = (_recipe(graph, name, **options) for name in (style, "native"))
    home = importlib.import_module("primgraph.program.targets")
    if home.find_compiler() is not None:
        tiered = importlib.import_module("primgraph.codegen.tiered.kernel")
        found: Kernel | None = tiered.tiered_kernel(numpy, native, home.prior_of(native.graph))
        if found is not None:
            return found
        if home.style_of(graph) == "native":
            try:
                return kernel_of(native)
            except CompileError as error:
                # The user did not request C.
                warnings.warn(f"{error.message}: NumPy runs instead", RuntimeWarning, stacklevel=2)
    return kernel_of(numpy)


def _with_factors(graph: Graph, style: str) -> Graph:
    """Return `graph` with the factors of matrices that loops do not change before the loops."""
    if not graph.has_bodies:
        return graph
    found = invariant_factors.factor_invariant_matrices(graph, by_lu=style == "native")
    return found.in_form(graph.form).titled(graph.titles)
