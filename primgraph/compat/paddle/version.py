"""Version of Paddle whose names and meanings these are."""

from __future__ import annotations

full_version = "3.3.1"
major, minor, patch = full_version.split(".")
rc = "0"
commit = ""
is_tagged = True
cuda_version = cudnn_version = "False"
with_mkl = "OFF"


def show() -> None:
    """Print the version.

    >>> paddle.version.show()
    full_version: 3.3.1
    major: 3
    minor: 3
    patch: 1
    rc: 0
    cuda: False
    cudnn: False
    """
    for name in ("full_version", "major", "minor", "patch", "rc"):
        print(f"{name}: {globals()[name]}")
    print(f"cuda: {cuda()}\ncudnn: {cudnn()}")


def cuda() -> str:
    """Return "False": there is no CUDA.

    >>> paddle.version.cuda()
    'False'
    """
    return cuda_version


def cudnn() -> str:
    """Return "False": there is no cuDNN.

    >>> paddle.version.cudnn()
    'False'
    """
    return cudnn_version


def mkl() -> str:
    """Return "OFF": products are those of NumPy.

    >>> paddle.version.mkl()
    'OFF'
    """
    return with_mkl
