"""Rules of `simplify` for complex numbers: parts of what was put together, conjugates twice.

Rules for other numbers leave these alone unless they are said to hold of them, too.
"""

from __future__ import annotations

from typing import Any

from primgraph.ir.graph import Value
from primgraph.primitives import parts as p
from primgraph.primitives.elementwise import cast, mul
from primgraph.transforms.rewrite.rows import rows
from primgraph.transforms.rewrite.rule import Family, Seen
from primgraph.transforms.rewrite.terms import words, x, y

PARTS_OF_COMPLEX = Family(any_dtype=True)
exact = rows(PARTS_OF_COMPLEX, "exact")
_rule = PARTS_OF_COMPLEX.rule

real, imag, conj, complex_, modulus = words(p.real, p.imag, p.conj, p.complex_, p.modulus)

exact(conj(conj(x)), x)
exact(real(conj(x)), real(x))
exact(imag(conj(x)), -imag(x))
exact(real(-x), -real(x))
exact(imag(-x), -imag(x))
exact(real(complex_(x, y)), x)
exact(imag(complex_(x, y)), y)
exact(complex_(real(x), imag(x)), x)
exact(modulus(conj(x)), modulus(x))
exact(modulus(-x), modulus(x))


@_rule(p.real, of=(cast,))
def _real_part_of_real(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """The real part of a real number that has become complex is that number."""
    number = seen.inside(cast, inputs[0])
    if number is None or number.type.is_complex:
        return None
    return cast(number, dtype=seen.type.dtype)


@_rule(mul, level="signs")
def _times_one(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`1 * z` is `z`, for which NumPy also adds zeros times its parts: NaN for infinite ones."""
    if not seen.type.is_complex:
        return None
    for number, other in (inputs, inputs[::-1]):
        if seen.uniform(number) == 1:
            return other
    return None
