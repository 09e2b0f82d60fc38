"""Views of rows of stacks, made for all rows at once."""

from __future__ import annotations

from primgraph.codegen.ir.places import Argument, Place, Result, View
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.ir.views import rowwise_view, view_text
from primgraph.ir.views import Reshape


def row_view(plan: Plan, trip: tuple[int, int] | None, place: Place) -> str | None:
    """Return the view of a stack whose rows are `place` in each iteration, or None.

    Iterating over a view of a stack takes half of the time of making a view of each row.
    """
    if trip is None:
        return None
    if isinstance(place, View):
        of = row_view(plan, trip, place.of)
        if of is None or (isinstance(place.how, Reshape) and isinstance(place.of, View)):
            return None
        if not place.shape and _is_part_of_result(place):
            # Iteration over numbers copies them, before the iteration writes its results.
            return None
        how = rowwise_view(place.how)
        return None if how is None else view_text(how, of)
    begin, carries = sum(trip), trip[1]
    if isinstance(place, Argument) and place.number >= begin:
        found = place.number - begin
    elif isinstance(place, Result) and place.number >= carries:
        found = len(plan.arguments) - begin + place.number - carries
    else:
        return None
    # Stacks of scalars are iterated as 0-d arrays.
    return f"rows[{2 + found}]" if place.shape else None


def _is_part_of_result(place: Place) -> bool:
    """Return whether a place is a view of a result."""
    while isinstance(place, View):
        place = place.of
    return isinstance(place, Result)
