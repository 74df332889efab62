"""Kernels on NVIDIA devices, for those who bring their own engine: masks over logits.

Tensors are torch's, on a CUDA device. Kernels read and write them where they lie, on torch's current stream: nothing is copied to the
host, nothing is waited for, and a call may be captured in a CUDA graph. The kernels are part of the package; the machine needs a driver
of version 525 or newer and a device of compute capability 8.0 or newer.

`apply_bitmask` forbids what a grammar's mask does not allow. What cannot be checked without waiting for the device is the numbers
in tensors there: rows that are not there are left alone, and masks that are not there allow nothing.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from palmette._palmette import DeviceError

try:
    from palmette._palmette import CudaDevice
except ImportError:
    raise ImportError(
        "this build of palmette has no kernels for devices: build it with the feature `cuda`, which `pip install ./python` does"
    ) from None

if TYPE_CHECKING:
    import torch

    Tensor = TypeVar("Tensor", bound=torch.Tensor | np.ndarray[Any, Any])

__all__ = ["CudaDevice", "DeviceError", "apply_bitmask", "device"]


def device(index: int = 0) -> CudaDevice:
    """The device of a number, opened by the first call.

    Raises `DeviceError` where there is no driver, no such device, or one that is too old.
    """
    return _opened(index)


_opened = functools.cache(CudaDevice.open)


def apply_bitmask(
    logits: Tensor, bitmask: Any, rows: Sequence[int] | Any | None = None
) -> Tensor:
    """Set logits to minus infinity, in place, where the bitmask has a 0 and past its last word; give them back.

    Args:
        logits: float32, float16 or bfloat16 ``[rows, tokens]``, or one row; each row contiguous.
        bitmask: int32 ``[rows, words]``, or one row, on the same device: XGrammar's and llguidance's words.
        rows: the rows of both to be done; left out, all, of which both then have as many. Numbers, which are copied to the
            device, or int32 on the device, of which those that are not there are left alone.
    """
    on = _Arrays(logits)
    on.check("bitmask", bitmask)
    if on.has(rows):
        on.check("rows", rows)
    elif rows is not None:
        count = min(on.num_rows(logits), on.num_rows(bitmask))
        rows = on.numbers(rows, count, "row", "logits and a bitmask")
    on.device.mask_rows(on.plain(logits), bitmask, rows, None, on.stream())
    return logits


class _Arrays:
    """The library, the device and the stream of an array.

    In builds for tests alone the device is an emulation, whose arrays are those in host memory.
    """

    def __init__(self, array: Any) -> None:
        torch = sys.modules.get("torch")
        self.torch = torch if torch is not None and isinstance(array, torch.Tensor) else None
        if self.torch is not None and array.device.type == "cuda":
            self.device = device(array.device.index)
        elif self.torch is not None or isinstance(array, np.ndarray):
            if not CudaDevice.IS_EMULATED:
                name = "numpy" if self.torch is None else "torch"
                where = "host memory" if self.torch is None else str(array.device)
                raise ValueError(
                    f"the array is in {where}, and palmette.cuda computes on CUDA devices; palmette.{name} computes there"
                )
            self.device = device(0)
        else:
            raise TypeError(f"logits are a {type(array).__name__}; give a torch tensor on a CUDA device")
        self.like = array

    def has(self, value: Any) -> bool:
        """Whether a value is an array of the library."""
        return isinstance(value, np.ndarray) if self.torch is None else isinstance(value, self.torch.Tensor)

    def check(self, name: str, array: Any) -> None:
        """Refuses a tensor of another device by name: where one lies that no kernel reaches, torch does not say so itself."""
        if self.torch is None or not self.has(array) or array.device == self.like.device:
            return
        raise ValueError(f"{name} is on {array.device}, the logits are on {self.like.device}; give both on one device")

    def plain(self, array: Any) -> Any:
        """The array as its memory, without what torch knows of gradients."""
        return array if self.torch is None else array.detach()

    def stream(self) -> int:
        """The handle of the current stream."""
        if self.torch is None or self.like.device.type != "cuda":
            return 0
        return int(self.torch.cuda.current_stream(self.like.device).cuda_stream)

    def num_rows(self, array: Any) -> int:
        shape = getattr(array, "shape", ())
        return int(shape[0]) if len(shape) > 1 else 1

    def numbers(self, values: Sequence[int], count: int, what: str, of: str) -> Any:
        """Numbers below `count` as an int32 array on the device."""
        found = [int(value) for value in values]
        for value in found:
            if not 0 <= value < count:
                raise IndexError(f"{what} {value} of {of} with {count} in common")
        if self.torch is None:
            return np.array(found, np.int32)
        return self.torch.tensor(found, dtype=self.torch.int32, device=self.like.device)
