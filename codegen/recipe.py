"""The recipe of a kernel: a graph, and the options of its compilation."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.codegen.compiled import Compiled, compile_planned
from primgraph.codegen.ir.limits import Limits, Options, default_limits
from primgraph.errors import CompileError
from primgraph.ir.frontend.containers import LEAF, Form
from primgraph.ir.graph import Graph

if TYPE_CHECKING:
    from primgraph.codegen import constant_prefix, planned
    from primgraph.codegen.ir.program import Plan
    from primgraph.codegen.targets.text import clocks as timing
else:
    constant_prefix = late("primgraph.codegen.constant_prefix")
    planned = late("primgraph.codegen.planned")
    timing = late("primgraph.codegen.targets.text.clocks")


# Modules that are loaded when somebody asks.
_READABLE = "primgraph.codegen.readable_code"
_EXPLANATION = "primgraph.codegen.explanation"

STYLES = ("planned", "readable", "native")


@final
@dataclass(frozen=True, slots=True)
class Recipe:
    """A graph and the options of `compile_graph`.

    `donated` are pairs of an output and the input that it overwrites. `loose` applies to native
    code.
    """

    graph: Graph
    style: str
    donated: tuple[tuple[int, int], ...]
    limits: Limits | None
    once: tuple[int, ...]
    handed: tuple[int, ...]
    loose: bool

    @classmethod
    def from_parts(
        cls,
        graph: Graph,
        style: str,
        donated: Mapping[int, int],
        limits: Limits | None,
        once: Sequence[int],
        handed: Sequence[int],
        loose: bool,
    ) -> Recipe:
        """Return the recipe of these parts. Raise `CompileError` if they do not match."""
        require_style(style)
        _require_gifts(graph, donated)
        gifts = tuple(sorted(donated.items()))
        loose = loose and style == "native"
        return cls(graph, style, gifts, limits, tuple(once), tuple(handed), loose)

    @property
    def parts(self) -> tuple[Any, ...]:
        """Return the arguments of a kernel's constructor."""
        gifts = dict(self.donated)
        return self.graph, self.style, gifts, self.limits, self.once, self.handed, self.loose

    def in_form(self, form: Form | None) -> Recipe:
        """The same for arrays in the containers of `form`; in order, and in a list, without one."""
        return replace(self, graph=self.graph.in_form(form))

    @property
    def is_alone(self) -> bool:
        """Return whether a single result is returned itself, not in a list."""
        return self.graph.form is not None and self.graph.form.results == LEAF

    @property
    def is_generic(self) -> bool:
        """Return whether readable code runs, alone or as the fallback of native code."""
        return self.style == "readable" or (self.style == "native" and bool(self.graph.sizes))

    def compile_style(
        self,
        style: str,
        given: Sequence[int] | None = None,
        clocks: list[timing.Clocks] | None = None,
    ) -> Compiled:
        """Compile the code of that style.

        `given` are outputs that it writes into arrays of the caller, by default those that are
        handed. With `clocks` there is a clock around each step.
        """
        native, options = style == "native" and clocks is None, self._options(given)
        if style == "readable" or self.is_generic:
            home = importlib.import_module(_READABLE)
            if style == "readable":
                options = self._options()
            code: Compiled = home.compile_readable(self.graph, options, clocks, native=native)
            return code
        limits = self.limits or default_limits()
        return compile_planned(self.graph, self.once, options, limits, clocks, native=native)

    def native_job(self, given: Sequence[int] | None = None) -> tuple[Graph, Options, Limits]:
        """Return the arguments of `prepare`, which compiles the C of this recipe.

        `given` are outputs that it writes into arrays of the caller, as in `compile_style`.
        """
        graph, options, limits = self.graph, self._options(given), self.limits or default_limits()
        if graph.sizes:
            limits = default_limits()
        elif self.once:
            first, graph = constant_prefix.split_constant_prefix(graph, self.once)
            options = replace(options, kept=len(first.outputs))
        return graph, options, limits

    def _options(self, given: Sequence[int] | None = None) -> Options:
        alone = self.is_alone and given is None
        given = self.handed if given is None else tuple(given)
        return Options(self.donated, given, alone, loose=self.loose)

    def plan(self, *, is_native: bool) -> Plan:
        """Return the plan of the planned code, without the part that is computed once.

        For native code it lists what C does; `is_native` says whether the kernel has native code.
        """
        graph, options = self.graph, self._options()
        if self.once:
            first, graph = constant_prefix.split_constant_prefix(graph, self.once)
            options = replace(options, kept=len(first.outputs))
        limits = self.limits or default_limits()
        plan = planned.plan_with_bodies(graph, options, limits)
        if self.style == "native":
            home = importlib.import_module(_EXPLANATION)
            plan = replace(plan, native=home.native_listing(graph, limits, is_native=is_native))
        return plan

    def explanation(self, code: Compiled) -> str:
        """Return what runs where, and why, of the code of this recipe."""
        is_native = code.is_native
        is_scalar = code.scalar is not None and not is_native
        home, limits = importlib.import_module(_EXPLANATION), self.limits or default_limits()
        native: tuple[str, ...] = ()
        if self.style == "native":
            native = home.native_listing(self.graph, limits, is_native=is_native)
        plan = None if self.is_generic else self.plan(is_native=is_native)
        lines = (
            *home.explanation_lines(plan, native, is_native, is_scalar),
            *home.cache_lines(self.graph),
        )
        return "\n".join(lines)

    @property
    def plan_of_once(self) -> tuple[Plan, int] | None:
        """Return the plan of the part that is computed once, and its result size; or None."""
        if not self.once:
            return None
        first, _ = constant_prefix.split_constant_prefix(self.graph, self.once)
        plan = planned.plan_for(first, Options(), self.limits or default_limits())
        return plan, sum(t.nbytes for t in first.output_types)


def require_style(style: str) -> None:
    """Raise `CompileError` for an unknown style."""
    if style not in STYLES:
        raise CompileError(f"there is no style {style!r}", hint=f"styles: {', '.join(STYLES)}")


def _require_gifts(graph: Graph, donated: Mapping[int, int]) -> None:
    """Raise unless donated inputs have the types of their outputs, and are donated once."""
    for k, j in donated.items():
        if graph.outputs[k].type != graph.inputs[j].type:
            raise CompileError(
                f"output {k}, {graph.outputs[k].type}, does not fit input {j}, "
                f"{graph.inputs[j].type}"
            )
    if len(set(donated.values())) != len(donated):
        raise CompileError("an input is donated to two outputs")
