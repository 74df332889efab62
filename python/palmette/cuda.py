"""Kernels on NVIDIA devices, for those who bring their own engine: masks over logits.

Tensors are torch's, on a CUDA device. Kernels read and write them where they lie, on torch's current stream: nothing is copied to the
host, nothing is waited for, and a call may be captured in a CUDA graph. The kernels are part of the package; the machine needs a driver
of version 525 or newer and a device of compute capability 8.0 or newer.

`apply_bitmask` forbids what a grammar's mask does not allow; `bitmask_by_id` does so by the number of a mask that a `MaskDictionary`
has on the device, 4 bytes a row in place of 25 KB. What cannot be checked without waiting for the device is the numbers
in tensors there: rows that are not there are left alone, and masks that are not there allow nothing.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from palmette._palmette import DeviceError, MaskNumbers

try:
    from palmette._palmette import CudaDevice
except ImportError:
    raise ImportError(
        "this build of palmette has no kernels for devices: build it with the feature `cuda`, which `pip install ./python` does"
    ) from None

if TYPE_CHECKING:
    import torch

    from palmette import Matcher

    Tensor = TypeVar("Tensor", bound=torch.Tensor | np.ndarray[Any, Any])

__all__ = ["CudaDevice", "DeviceError", "MaskDictionary", "apply_bitmask", "bitmask_by_id", "device"]


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


class MaskDictionary:
    """The distinct masks of sequences on a device, each once, whichever grammars they are of.

    `words`: int32 ``[capacity, words]`` on the device. A mask is copied there when a sequence first has it, on the current stream;
    where there is room for no more all are dropped, and numbers of earlier calls mean nothing any more (`generation` counts that).

    Args:
        num_tokens: logits of a row, or the tokens of the largest vocabulary: tokens past those are forbidden.
        capacity: masks that there is room for. A grammar has some hundred; of 200,000 tokens one takes 25 KB.
        device: torch's device.
    """

    def __init__(self, num_tokens: int, capacity: int = 1024, device: torch.device | str | None = None) -> None:
        num_words = max(-(-num_tokens // 32), 1)
        self._numbers = MaskNumbers(num_words, capacity)
        self._lock = threading.Lock()
        if device is None and CudaDevice.IS_EMULATED:
            self.words: Any = np.zeros((capacity, num_words), np.int32)
        else:
            import torch

            self.words = torch.zeros((capacity, num_words), dtype=torch.int32, device=device or "cuda")
        self._on = _Arrays(self.words)

    def __len__(self) -> int:
        """Masks on the device."""
        return len(self._numbers)

    @property
    def generation(self) -> int:
        """Times that all masks were dropped."""
        return self._numbers.generation

    def ids(self, matchers: Iterable[Matcher | None], out: Any | None = None) -> Any:
        """The numbers of the sequences' masks, int32 on the device; -1 for None, a row that is left as it is.

        `out`: int32 on the device, at least as long, which is written in place of a new one, as a captured graph reads it again;
        what is behind the sequences becomes -1.
        """
        with self._lock:
            numbers, first, words = self._numbers.of(matchers)
            if len(words):
                try:
                    self._on.copy(self.words[first : first + len(words)], words)
                except BaseException:
                    self._numbers.clear()  # They are not there.
                    raise
        if out is None:
            return self._on.moved(numbers)
        self._on.check("out", out)
        if out.ndim != 1 or len(out) < len(numbers):
            raise ValueError(f"out has the shape {tuple(out.shape)}, and there are {len(numbers)} sequences; give one as long")
        self._on.copy(out[: len(numbers)], numbers)
        out[len(numbers) :] = -1
        return out


def bitmask_by_id(logits: Tensor, dictionary: MaskDictionary, ids: Any) -> Tensor:
    """Set logits to minus infinity, in place, where the mask of a row's number has a 0 and past its last word; give them back.

    Args:
        logits: as `apply_bitmask` takes them.
        dictionary: has the masks on the same device.
        ids: int32 ``[rows]`` on the device, as `MaskDictionary.ids` gives them: below 0 a row stays as it is; a number that no
            mask can have allows nothing.
    """
    on = _Arrays(logits)
    on.check("dictionary", dictionary.words)
    on.check("ids", ids)
    on.device.mask_rows(on.plain(logits), dictionary.words, None, ids, on.stream())
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

    def moved(self, array: np.ndarray[Any, Any]) -> Any:
        """An array in host memory, on the device."""
        return array if self.torch is None else self.torch.from_numpy(array).to(self.like.device)

    def copy(self, to: Any, array: np.ndarray[Any, Any]) -> None:
        """Copies an array in host memory to one on the device, behind what the current stream has."""
        if self.torch is None:
            to[:] = array
        else:
            to.copy_(self.torch.from_numpy(array))

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
