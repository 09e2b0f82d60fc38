"""Named tuples that torch's functions return, such as `torch.return_types.max`."""

from __future__ import annotations

from typing import Any, NamedTuple

_FIELDS = {
    "values indices": "cummax cummin kthvalue max median min mode nanmedian sort topk",
    "min max": "aminmax",
    "mantissa exponent": "frexp",
    "hist bin_edges": "histogram",
    "L info": "linalg_cholesky_ex",
    "eigenvalues eigenvectors": "linalg_eig linalg_eigh",
    "inverse info": "linalg_inv_ex",
    "LU pivots": "linalg_lu_factor",
    "solution residuals rank singular_values": "linalg_lstsq",
    "P L U": "linalg_lu lu_unpack",
    "Q R": "linalg_qr qr",
    "sign logabsdet": "linalg_slogdet slogdet",
    "result info": "linalg_solve_ex",
    "U S Vh": "linalg_svd",
    "U S V": "svd",
    "solution cloned_coefficient": "triangular_solve",
}


def _make_type(name: str, fields: list[str]) -> Any:
    """Return a class of named tuples that prints as torch's."""
    plain: Any = NamedTuple(name, [(f, Any) for f in fields])  # type: ignore[misc]

    def __repr__(self: Any) -> str:
        rows = ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{rows})"

    plain.__repr__ = __repr__  # type: ignore[method-assign]
    plain.__module__ = __name__
    plain.__doc__ = f"Result of `{name.replace('linalg_', 'linalg.')}`: {', '.join(fields)}."
    return plain


TYPES = {n: _make_type(n, f.split()) for f, names in _FIELDS.items() for n in names.split()}
globals().update(TYPES)

__all__ = [*TYPES]


def named_result(name: str, *values: Any) -> Any:
    """Return the values as the named tuple of that function.

    >>> torch.return_types.named_result("max", 3, 0)
    torch.return_types.max(
    values=3,
    indices=0)
    """
    return TYPES[name](*values)
