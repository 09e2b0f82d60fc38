"""Facts by which passes find the equations that they treat."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from primgraph.ir.facts.ops import Fact
from primgraph.ir.value import Value

if TYPE_CHECKING:
    from primgraph.ir.primitive import Primitive

# The primitives for the order of a result, and for the result by that order.
BY_ORDER: Fact[tuple[Primitive[Value], Primitive[Value]] | None] = Fact("by order", None)

# The parameter that holds the message of an error which is the user's concern; "" for other ops.
MESSAGE: Fact[str] = Fact("message", "")

# The rule `rule(eqn, inputs, tangents, around)` for tangents that depend on the graph around an
# equation, in place of the pushforward.
PUSHFORWARD_AROUND: Fact[Callable[..., list[Value | None]] | None] = Fact(
    "pushforward_around", None
)

# Whether the result solves a system with the matrix operand 0: for operand 1, or the identity.
SOLVES: Fact[bool] = Fact("solves", False)

# The result that has eigenvalues or singular values, and the primitive that computes them alone.
SPECTRUM: Fact[tuple[int, Primitive[Value]] | None] = Fact("spectrum", None)

# Whether the known structure of matrices may choose another method.
STRUCTURED: Fact[bool] = Fact("structured", False)
