"""Rules of `simplify` for complex numbers: real and imaginary parts, and conjugates.

Rules for real numbers do not apply to complex ones unless declared with `any_dtype`.
"""

from __future__ import annotations

from typing import Any

from primgraph.ir.graph import Value
from primgraph.primitives import parts as p
from primgraph.primitives.elementwise import cast
from primgraph.transforms.rewrite.rows import rows
from primgraph.transforms.rewrite.rule import Family, Seen
from primgraph.transforms.rewrite.terms import words, x, y

PARTS_OF_COMPLEX = Family(any_dtype=True, late=True)
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
    """Replace the real part of a real number that was cast to complex by that number."""
    number = seen.inside(cast, inputs[0])
    if number is None or number.type.is_complex:
        return None
    return cast(number, dtype=seen.type.dtype)
