"""Changes in place in programs: a variable that stands for a later value from then on.

Operations of Paddle's programs run in order, so what is built after `paddle.assign(y, output=x)`
reads the new value. Variables here stand for one value each. So operands, results of bodies and
fetches are replaced by the value that was assigned last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from primgraph.errors import BuildError, ShapeError
from primgraph.ir.graph import Value
from primgraph.ir.primitive import innermost
from primgraph.operators.variable import Variable
from primgraph.program.program import belongs_to_program, program_of

# By the recorder of the variables, as the values of a body are its own.
_assigned: WeakKeyDictionary[Any, dict[Value, Value]] = WeakKeyDictionary()


def assign_to(output: Variable, new: Variable) -> Variable:
    """Let `output` stand for `new` from now on, and return it; a run stores the value of a state.

    Raises `ShapeError` for another type, and `BuildError` within a branch or loop for a variable
    from outside, which only results can change.
    """
    if new.type != output.type:
        raise ShapeError(f"a variable of {output.type} cannot become {new.type}")
    entered = innermost.get()
    if entered is not None and entered.recorder is not output.recorder:
        raise BuildError(
            f"{output.name!r} is assigned within a branch or loop",
            hint="return the new value from the function, and assign the result of cond outside",
        )
    if new.recorder is not output.recorder:
        raise BuildError(f"{new!r} is of another program than {output.name!r}")
    _assigned.setdefault(output.recorder, {})[output.value] = new.value
    if belongs_to_program(output):
        program = program_of(output)
        if output.value in program.states:
            program.update(output, new)
    return output


def current(variable: Any) -> Any:
    """Return what a variable stands for now; other objects as they are, and items of lists."""
    if isinstance(variable, Variable):
        known = _assigned.get(variable.recorder)
        if known is not None and variable.value in known:
            return type(variable)(variable.recorder, known[variable.value])
        return variable
    if isinstance(variable, list | tuple) and _assigned:
        return type(variable)(map(current, variable))
    return variable


def current_operands(args: Sequence[Any]) -> Sequence[Any]:
    """Return the arguments of an operator with variables replaced by what they stand for."""
    return args if not _assigned else tuple(map(current, args))
