"""Fourier transforms by the names that they have in `torch.fft`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph import fft as pg_fft
from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.torch.creation import create
from primgraph.compat.torch.functions.results import define_functions

_ROWS = """
fft(input, n=None, dim=-1, norm=None): fft.fft(input, n, dim, norm)
Compute discrete Fourier transforms along `dim`.
>>> torch.fft.fft(torch.tensor([1.0, 1.0]))
tensor([2.+0.j, 0.+0.j])

fft2(input, s=None, dim=(-2, -1), norm=None): fft.fft2(input, s, dim, norm)
Compute discrete Fourier transforms along two axes.
>>> torch.fft.fft2(torch.ones(2, 2))
tensor([[4.+0.j, 0.+0.j],
        [0.+0.j, 0.+0.j]])

fftn(input, s=None, dim=None, norm=None): fft.fftn(input, s, dim, norm)
Compute discrete Fourier transforms along several axes.
>>> torch.fft.fftn(torch.ones(2, 2))
tensor([[4.+0.j, 0.+0.j],
        [0.+0.j, 0.+0.j]])

fftshift(input, dim=None): fft.fftshift(input, dim)
Move the zero frequency to the middle.
>>> torch.fft.fftshift(torch.arange(4))
tensor([2, 3, 0, 1])

hfft(input, n=None, dim=-1, norm=None): fft.hfft(input, n, dim, norm)
Compute the real transform of a signal that is symmetric.
>>> torch.fft.hfft(torch.tensor([1.0, 2.0]))
tensor([ 3., -1.])

ifft(input, n=None, dim=-1, norm=None): fft.ifft(input, n, dim, norm)
Compute inverses of `fft`.
>>> torch.fft.ifft(torch.tensor([2.0, 0.0])).real
tensor([1., 1.])

ifft2(input, s=None, dim=(-2, -1), norm=None): fft.ifft2(input, s, dim, norm)
Compute inverses of `fft2`.
>>> torch.fft.ifft2(torch.ones(2, 2))
tensor([[1.+0.j, 0.+0.j],
        [0.+0.j, 0.+0.j]])

ifftn(input, s=None, dim=None, norm=None): fft.ifftn(input, s, dim, norm)
Compute inverses of `fftn`.
>>> torch.fft.ifftn(torch.ones(2, 2))
tensor([[1.+0.j, 0.+0.j],
        [0.+0.j, 0.+0.j]])

ifftshift(input, dim=None): fft.ifftshift(input, dim)
Compute the inverse of `fftshift`.
>>> torch.fft.ifftshift(torch.arange(4))
tensor([2, 3, 0, 1])

ihfft(input, n=None, dim=-1, norm=None): fft.ihfft(input, n, dim, norm)
Compute inverses of `hfft`.
>>> torch.fft.ihfft(torch.tensor([1.0, 1.0]))
tensor([1.-0.j, 0.-0.j])

irfft(input, n=None, dim=-1, norm=None): fft.irfft(input, n, dim, norm)
Compute inverses of `rfft`: real numbers.
>>> torch.fft.irfft(torch.tensor([2.0, 0.0]))
tensor([1., 1.])

irfft2(input, s=None, dim=(-2, -1), norm=None): fft.irfft2(input, s, dim, norm)
Compute inverses of `rfft2`.
>>> torch.fft.irfft2(torch.ones(2, 2))
tensor([[1., 0.],
        [0., 0.]])

irfftn(input, s=None, dim=None, norm=None): fft.irfftn(input, s, dim, norm)
Compute inverses of `rfftn`.
>>> torch.fft.irfftn(torch.ones(2, 2))
tensor([[1., 0.],
        [0., 0.]])

rfft(input, n=None, dim=-1, norm=None): fft.rfft(input, n, dim, norm)
Compute discrete Fourier transforms of real numbers, for frequencies from zero up.
>>> torch.fft.rfft(torch.tensor([1.0, 1.0]))
tensor([2.+0.j, 0.+0.j])

rfft2(input, s=None, dim=(-2, -1), norm=None): fft.rfft2(input, s, dim, norm)
Compute transforms of real numbers along two axes.
>>> torch.fft.rfft2(torch.ones(2, 2))
tensor([[4.+0.j, 0.+0.j],
        [0.+0.j, 0.+0.j]])

rfftn(input, s=None, dim=None, norm=None): fft.rfftn(input, s, dim, norm)
Compute transforms of real numbers along several axes.
>>> torch.fft.rfftn(torch.ones(2, 2))
tensor([[4.+0.j, 0.+0.j],
        [0.+0.j, 0.+0.j]])
"""

__all__ = [
    *define_functions(globals(), _ROWS, "torch.fft"),
    "fftfreq",
    "hfft2",
    "hfftn",
    "ihfft2",
    "ihfftn",
    "rfftfreq",
]
# Normalizations of transforms in the other direction.
_OTHER: dict[Any, Any] = {
    None: "forward",
    "backward": "forward",
    "forward": "backward",
    "ortho": "ortho",
}


def fftfreq(n: int, d: float = 1.0, **options: Any) -> Any:
    """Return the frequencies of `fft` of `n` samples, `d` apart.

    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    whole = create.arange(n, **options)
    return pg.where(whole < (n + 1) // 2, whole, whole - n) / (n * d)


def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Any:
    """Return the frequencies of `rfft` of `n` samples, `d` apart.

    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return create.arange(n // 2 + 1, **options) / (n * d)


def hfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """Compute the real transform of a signal that is symmetric, along several axes.

    >>> torch.fft.hfftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return pg_fft.irfftn(pg.conj(input), s, dim, _OTHER[norm])


def hfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """Compute `hfftn` along two axes.

    >>> torch.fft.hfft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return hfftn(input, s, dim, norm)


def ihfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """Compute inverses of `hfftn`.

    >>> torch.fft.ihfftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return pg.conj(pg_fft.rfftn(input, s, dim, _OTHER[norm]))


def ihfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """Compute inverses of `hfft2`.

    >>> torch.fft.ihfft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return ihfftn(input, s, dim, norm)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
