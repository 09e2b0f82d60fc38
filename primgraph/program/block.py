"""Blocks and operations of a program, with the names of Paddle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar, final

from primgraph.base.records import dataclass
from primgraph.errors import BuildError, near_matches
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.graph import Equation
from primgraph.operators.variable import Variable


class AnyProgram(Protocol):
    """A program, as far as its block looks at it."""

    @property
    def builder(self) -> Builder: ...

    def operators(self) -> Sequence[Equation]: ...

    def parameters(self) -> list[Variable]: ...

    def variable(self, name: str) -> Variable | None: ...

    def variables(self) -> Sequence[Variable]: ...


P = TypeVar("P", bound=AnyProgram)


class MissingVariableError(BuildError, ValueError):
    """Error for a variable name that a program does not have."""


@final
@dataclass(frozen=True, slots=True)
class Operation:
    """Equation with the names of its op, inputs and outputs."""

    type: str
    input_arg_names: list[str]
    output_arg_names: list[str]
    attrs: dict[str, Any]

    def attr(self, name: str) -> Any:
        """Return the parameter of that name, or None."""
        return self.attrs.get(name)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Block(Generic[P]):
    """Single block of a program, with the program's equations and variables."""

    program: P
    idx: int = 0
    parent_idx: int = -1

    @property
    def ops(self) -> list[Operation]:
        """All equations, in order."""
        name = self.program.builder.name_of
        return [
            Operation(
                e.op.name, [name(v) for v in e.inputs], [name(v) for v in e.outputs], e.kwargs
            )
            for e in self.program.operators()
        ]

    @property
    def vars(self) -> dict[str, Variable]:
        """All variables by name, with automatic names for unnamed ones."""
        return {v.name: v for v in self.program.variables()}

    def var(self, name: str) -> Variable:
        """Return the variable of that name. Raises `MissingVariableError`, a ValueError, if
        missing."""
        found = self.program.variable(name)
        if found is None:
            raise MissingVariableError(
                f"the program has no variable named {name!r}", hint=near_matches(name, self.vars)
            )
        return found

    def has_var(self, name: str) -> bool:
        """Return whether there is a variable of that name."""
        return self.program.variable(name) is not None

    def all_parameters(self) -> list[Variable]:
        """Return the trainable parameters, in the order of creation."""
        return self.program.parameters()
