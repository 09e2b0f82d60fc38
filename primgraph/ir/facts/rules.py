"""Rules that transforms need of a primitive: how they are declared, and which there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph.base.providers import provider
from primgraph.errors import BuildError
from primgraph.ir.facts.ops import Op, Rule
from primgraph.ir.index_maps import Opaque
from primgraph.ir.value import Value

# Rules that a primitive has once, by attribute, in the words of errors.
SLOTS = {
    "expansion_rule": "a rule for all coefficients",
    "pushforward_rule": "a rule for all tangents",
    "separate_rule": "a rule that separates it",
    "slopes_rule": "graphs of its derivative",
    "taylor_rule": "a Taylor rule",
    "_batch": "a batching rule",
    "_index_map": "an index map",
    "_transpose": "a transpose rule",
    "_view": "a rule for its view",
}


def no_tangent(*operands: Value, **params: Any) -> None:
    """JVP rule of operands along which derivatives are zero."""
    return None


class Ruled(Op):
    """Op with rules, each of which is declared once by a decorator: `@op.transpose`."""

    __slots__ = (
        "_batch", "_index_map", "_jvp", "_transpose", "_view", "expansion_rule", "moves",
        "pushforward_rule", "rules_task", "separate_rule", "slopes_rule", "taylor_rule",
    )  # fmt: skip

    expansion_rule: Rule | None
    pushforward_rule: Rule | None
    separate_rule: Rule | None
    slopes_rule: Rule | None
    taylor_rule: Rule | None
    _batch: Rule | None
    _index_map: Rule | None
    _jvp: dict[int, Rule]
    _transpose: Rule | None
    _view: Rule | None
    moves: bool
    # The task of the module that declares rules, which is loaded when one is asked for.
    rules_task: str

    def __getattr__(self, name: str) -> Any:
        """Return a rule that is declared late; only rules that were never set come here."""
        if name not in SLOTS or not self.rules_task:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        provider(self.rules_task)
        found = self._rule_or_none(name)
        setattr(self, name, found)
        return found

    def _rule_or_none(self, slot: str) -> Rule | None:
        """Return a declared rule without loading the module that declares it."""
        try:
            found: Rule | None = object.__getattribute__(self, slot)
        except AttributeError:
            found = None
        return found

    def jvp(self, position: int = 0) -> Callable[[Rule], Rule]:
        """Declare `rule(z, *inputs, tangent, **params)` for the operand at `position`.

        `z` is the result, or the tuple of results; the rule then returns a tangent, or None, for
        each.
        """

        def declare(rule: Rule) -> Rule:
            if position in self._jvp:
                raise BuildError(f"{self.name} has a jvp rule for operand {position} already")
            self._jvp[position] = rule
            return rule

        return declare

    def flat(self, *positions: int) -> None:
        """Declare that tangents of the operands at `positions` are zero.

        Such operands only select positions, or are held constant.
        """
        for position in positions:
            self.jvp(position)(no_tangent)

    def pushforward(self, rule: Rule) -> Rule:
        """Declare `rule(inputs, tangents, turned, **params)`, for all operands at once.

        It replaces the rules for single operands, and returns a tangent, or None, for each result.
        `tangents` has the given tangents by position. `turned` says that the recorded equations
        will be transposed instead of evaluated.
        """
        return self._declare_rule("pushforward_rule", rule)

    def slopes(self, rule: Rule) -> Rule:
        """Declare `rule(inputs, positions, **params)` for a derivative that is in the parameters.

        It returns graphs of the derivative along the operands at these positions, with their inputs
        for these operands, results and seeds. They determine which elements of operands and results
        are related.
        """
        return self._declare_rule("slopes_rule", rule)

    def taylor(self, rule: Rule) -> Rule:
        """Declare `rule(jets, k, z, *inputs, **params)`: Taylor coefficient `k` >= 1 of the result
        `z`, or of a tuple of results.

        `z` and inputs are series: `x[i]` is coefficient i, or None if it is zero; those of `z`
        below `k` are known. `jets` combines them. Primitives without a rule, and rules that return
        `NotImplemented`, use the JVP rules instead.
        """
        return self._declare_rule("taylor_rule", rule)

    def expansion(self, rule: Rule) -> Rule:
        """Declare `rule(expand, inputs, moving, order, **params)`, for all Taylor coefficients at
        once, as for ops whose parameters are graphs.

        `moving` has, by position, the coefficients 1 to `order` of inputs; the rule returns those
        of the results. `expand(graph, places)` appends the coefficients of the inputs at `places`
        to the graph's inputs, and those of its floating-point outputs to its outputs.
        """
        return self._declare_rule("expansion_rule", rule)

    def separate(self, rule: Rule) -> Rule:
        """Declare `rule(linear, *inputs, **params)`, for an op whose linearity depends on
        parameters.

        `linear` says in which operands the results are linear; at least one is. The rule records
        the same results by equations that either do not use these operands, or are linear in them
        with all results. The transpose rule receives only the latter.
        """
        return self._declare_rule("separate_rule", rule)

    def transpose(self, rule: Rule) -> Rule:
        """Declare `rule(ct, *inputs, **params)`, which returns one cotangent or None per input."""
        return self._declare_rule("_transpose", rule)

    def batch(self, rule: Rule) -> Rule:
        """Declare `rule(batched, *inputs, **params)`: the op with a leading batch dimension.

        `batched` says for each input whether it has that axis; at least one does.
        """
        return self._declare_rule("_batch", rule)

    def index_map(self, rule: Rule) -> Rule:
        """Declare `rule(k, i, operands, results, **params)`: the index map of a result and operand.

        It gives what of operand `i` elements of result `k` depend on, as data of
        `primgraph.ir.index_maps`; `operands` and `results` are types. What is elementwise, a view,
        or consists of graphs needs none. Of a primitive that has no map all elements of operands
        may matter to all of results.
        """
        return self._declare_rule("_index_map", rule)

    def opaque(self, reason: str) -> None:
        """Declare that any element of results may depend on any of operands, and why."""
        self.index_map(lambda k, i, operands, results, **params: Opaque(reason))

    def view(self, rule: Rule) -> Rule:
        """Declare `rule(k, x, **params)`: how result `k` is a view of the operand `x`.

        It returns a view of `primgraph.ir.views`, or None if the result is the operand, possibly
        broadcast along leading axes.
        """
        self.is_view = self.moves = True
        return self._declare_rule("_view", rule)

    def _declare_rule(self, slot: str, rule: Rule) -> Rule:
        if self._rule_or_none(slot) is not None:
            raise BuildError(f"{self.name} has {SLOTS[slot]} already")
        setattr(self, slot, rule)
        return rule
