"""Arrays of any library that follows the array-API standard, and the few things the standard leaves out."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import array_api_compat as compat
import array_api_compat.numpy as numpy_namespace
import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from pomona.errors import MissingDependencyError, OptionError

#: An array of some library, or rows of a SciPy CSR matrix where sparse ones are allowed.
Array = Any

#: Bytes of a block of dense rows: small enough to leave memory alone, large enough for BLAS to run at its peak.
CPU_BLOCK = 1 << 25
DEVICE_BLOCK = 1 << 30
#: Fewer rows than this waste time on adding small products to a large Gram matrix.
MIN_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Place:
    """Where arithmetic is done and in which precision: a namespace of the standard, a device, a type."""

    xp: Any
    device: Any
    precision: str = "float32"

    @classmethod
    def of(cls, X: Array, precision: str = "float32", device: str | None = None) -> Place:
        """The place of X, or the torch device that is asked for by name."""
        if device is not None and device != "cpu":
            torch = import_torch()
            return cls(compat.array_namespace(torch.empty(0)), torch_device(torch, device), precision)
        if sparse.issparse(X) or not compat.is_array_api_obj(X):
            return cls(numpy_namespace, "cpu", precision)
        return cls(compat.array_namespace(X), compat.device(X), precision)

    def __reduce__(self) -> tuple[Any, ...]:
        """A namespace is a module, which goes into a pickle by its name."""
        return _place, (self.xp.__name__, self.device, self.precision)

    @property
    def dtype(self) -> Any:
        return getattr(self.xp, self.precision)

    @property
    def is_numpy(self) -> bool:
        return bool(compat.is_numpy_namespace(self.xp))

    @property
    def on_cpu(self) -> bool:
        return "cpu" in str(self.device).lower()

    def put(self, x: Array, *, exact: bool = False) -> Array:
        """x here, in the working precision or (``exact``) in float64."""
        dtype = self.xp.float64 if exact else self.dtype
        if compat.is_array_api_obj(x) and compat.array_namespace(x) is self.xp:
            return compat.to_device(self.xp.astype(x, dtype, copy=False), self.device)
        return self.xp.asarray(to_numpy(x), dtype=dtype, device=self.device)

    def integers(self, x: NDArray[Any]) -> Array:
        """Positions, for ``take``."""
        return self.xp.asarray(np.ascontiguousarray(x, np.int64), device=self.device)

    def zeros(self, *shape: int, exact: bool = False) -> Array:
        return self.xp.zeros(shape, dtype=self.xp.float64 if exact else self.dtype, device=self.device)

    def ones(self, *shape: int) -> Array:
        return self.xp.ones(shape, dtype=self.dtype, device=self.device)

    def block_rows(self, width: int) -> int:
        """Rows of a block that is so many features wide."""
        size = CPU_BLOCK if self.on_cpu else DEVICE_BLOCK
        return max(MIN_BLOCK_ROWS, size // (max(width, 1) * (8 if self.precision == "float64" else 4)))

    def room(self, memory: int) -> int:
        """Bytes for blocks that are kept: the limit, or half of what is free on a device of its own memory."""
        if self.on_cpu or not compat.is_torch_namespace(self.xp) or self.device.type != "cuda":
            return memory
        return max(memory, int(import_torch().cuda.mem_get_info(self.device)[0]) // 2)


def _place(namespace: str, device: Any, precision: str) -> Place:
    return Place(importlib.import_module(namespace), device, precision)


def import_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError(
            'computing on a device needs torch, which is not installed: run pip install "pomona[gpu]"'
        ) from error
    return torch


def torch_device(torch: Any, name: str) -> Any:
    """The device of that name, or what to do where there is none."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OptionError(
            f"the device must be 'cpu' or one that torch can use, such as 'cuda'; got {name!r} ({reason})"
        ) from error
    return device


def is_foreign(x: Any) -> bool:
    """Whether x is an array of a library other than NumPy."""
    return bool(compat.is_array_api_obj(x)) and not compat.is_numpy_array(x) and not sparse.issparse(x)


def to_numpy(x: Array) -> NDArray[Any]:
    """x as a NumPy array, from wherever it lies."""
    if isinstance(x, np.ndarray) or not compat.is_array_api_obj(x):
        return np.asarray(x)
    if compat.is_torch_array(x):
        return np.asarray(x.detach().cpu().numpy())
    if compat.is_cupy_array(x):
        return np.asarray(x.get())
    return np.from_dlpack(x)


def cholesky(xp: Any, A: Array) -> Array | None:
    """The lower factor of A, which is overwritten, or None where A is not positive definite to working precision."""
    if compat.is_torch_namespace(xp):
        factor, info = xp.linalg.cholesky_ex(A)
        return None if int(info) else factor
    try:
        if compat.is_numpy_namespace(xp):
            # A is symmetric, so that its transpose is the same matrix in the order LAPACK overwrites.
            factor = linalg.cholesky(A.T, lower=True, overwrite_a=True, check_finite=False)
        else:
            factor = xp.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return None
    # Some libraries answer with NaN instead of an error.
    return factor if bool(xp.all(xp.isfinite(xp.linalg.diagonal(factor)))) else None


class Triangle:
    """Solves with a Cholesky factor, as often as is wanted."""

    def __init__(self, xp: Any, factor: Array) -> None:
        self._xp, self._factor = xp, factor
        self._inverse: Array | None = None

    def solve(self, B: Array) -> Array:
        """(L Lᵀ)⁻¹ B."""
        xp = self._xp
        if compat.is_numpy_namespace(xp):
            # In the order that files keep, so that a loaded model makes the same products.
            return np.ascontiguousarray(linalg.cho_solve((self._factor, True), B, check_finite=False))
        if compat.is_torch_namespace(xp):
            import torch

            return torch.cholesky_solve(B, self._factor)
        # The standard has no triangular solve: the factor is inverted once.
        if self._inverse is None:
            self._inverse = xp.linalg.inv(self._factor)
        return xp.matmul(xp.matrix_transpose(self._inverse), xp.matmul(self._inverse, B))
