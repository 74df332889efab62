"""Kernels on NVIDIA devices, for those who bring their own engine: masks over logits, and exact beams over a catalog.

Tensors are torch's, on a CUDA device. Kernels read and write them where they lie, on torch's current stream: nothing is copied to the
host, nothing is waited for, and a call may be captured in a CUDA graph. The kernels are part of the package; the machine needs a driver
of version 525 or newer and a device of compute capability 8.0 or newer.

`apply_bitmask` forbids what a grammar's mask does not allow; `bitmask_by_id` does so by the number of a mask that a `MaskDictionary`
has on the device, 4 bytes a row in place of 25 KB. `device_tables` puts a catalog on the device, `select` is one level of beam search over
it, and `decode` runs all levels around a model. What cannot be checked without waiting for the device is the numbers
in tensors there: rows that are not there are left alone, and masks that are not there allow nothing.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from palmette._palmette import DeviceError, MaskNumbers
from palmette._tables import level_widths

try:
    from palmette._palmette import CudaDevice, CudaFilters
except ImportError:
    raise ImportError(
        "this build of palmette has no kernels for devices: build it with the feature `cuda`, which `pip install ./python` does"
    ) from None

if TYPE_CHECKING:
    import torch

    from palmette import Matcher
    from palmette._palmette import CudaTables

    Tensor = TypeVar("Tensor", bound=torch.Tensor | np.ndarray[Any, Any])

__all__ = [
    "Beams",
    "CatalogTables",
    "CudaDevice",
    "CudaFilters",
    "DeviceError",
    "MaskDictionary",
    "apply_bitmask",
    "bitmask_by_id",
    "decode",
    "device",
    "device_tables",
    "select",
]


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
        self._on = _Arrays(_nothing_on(device))
        self.words = self._on.zeros((capacity, num_words), "int32")

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


@dataclass(frozen=True)
class Beams:
    """Beams of a search at one level, of a static shape, best first in each request: B requests, M beams, S segments.

    `tokens`: int64 ``[B, M, level]``; `scores`: float32 ``[B, M]``, -inf where there is no beam, and tokens are 0; `parents`: int64
    ``[B, M]``, the beams of the level before that they continue, by which a model reorders its cache. `positions` and `states` are what the
    next level reads. `widths`: beams of each level.
    """

    tokens: Any
    scores: Any
    parents: Any
    widths: tuple[int, ...]
    positions: Any
    states: Any

    @property
    def level(self) -> int:
        """Levels that were searched."""
        return int(self.tokens.shape[2])

    @property
    def valid(self) -> Any:
        """bool ``[B, M]``: False where there is no beam."""
        return self.scores > -np.inf

    @property
    def bad_rows(self) -> Any:
        """int32 ``[B]``: beams of the level before whose logits had no finite sum, as of NaN: they have no continuation."""
        return self.states[:, 3]


class CatalogTables:
    """The items of a catalog on a device, as of one generation: made by `device_tables`.

    Bytes: 12.9 an item at 20 million items of 8 levels of 2,048 codes. Graphs that were captured over tables and filters need them as
    long as they are replayed.
    """

    def __init__(self, tables: CudaTables, on: _Arrays) -> None:
        self._tables, self._on = tables, on
        self._all = self.filter(None)

    @property
    def num_levels(self) -> int:
        """Levels of a semantic ID."""
        return self._tables.num_levels

    @property
    def nbytes(self) -> int:
        """Bytes on the device, those that other generations share included."""
        return self._tables.nbytes

    @property
    def generation(self) -> int | None:
        """The number of a live catalog's moment; None for a frozen catalog."""
        return self._tables.generation

    def filter(self, *filters: Any) -> CudaFilters:
        """Filters of searches, copied to the device: one for all requests, or several, a request each.

        Each is a filter, an :class:`~palmette.ItemSet`, a constraint of the catalog (`constraint.filtered(…)`), or None for all items.
        """
        with self._on.context():
            return self._tables.filters(*filters)

    def refreshed(self, source: Any) -> CatalogTables:
        """Tables of another generation of the catalog: segments that both have are shared, and nothing of them is copied."""
        with self._on.context():
            return CatalogTables(self._tables.refreshed(source), self._on)

    def start(self, num_requests: int, widths: int | Sequence[int]) -> Beams:
        """The beginning of searches: `widths` beams at each level, or a number a level."""
        each, on = tuple(level_widths(widths, self.num_levels)), self._on
        return Beams(
            tokens=on.zeros((num_requests, 1, 0), "int64"),
            scores=on.zeros((num_requests, 1), "float32"),
            parents=on.zeros((num_requests, 1), "int64"),
            widths=each,
            positions=on.zeros((num_requests, 1, self._tables.num_segments, 3), "int32"),
            states=on.zeros((num_requests, 4), "int32"),
        )


def device_tables(source: Any, device: torch.device | str | None = None) -> CatalogTables:
    """Puts a catalog on a device: a constraint (the model's tokens), or a catalog (its codes), frozen or a live one's moment.

    The tokens of each level follow one another, and items have one length; a constraint's own filter holds for all searches.
    """
    on = _Arrays(_nothing_on(device))
    with on.context():
        return CatalogTables(on.device.tables(source), on)


def select(
    logits: Any,
    beams: Beams,
    tables: CatalogTables,
    filter: CudaFilters | None = None,
    *,
    is_log_probs: bool = False,
) -> Beams:
    """The best continuations of the beams of each request at the next level: masks, filter and exact choice in one.

    Equal scores come in the order of beams, then of tokens. A continuation without probability (-inf, NaN) is none. Outputs are new
    tensors, as torch's operators give them; once its allocator has their memory nothing is taken from the device.

    Args:
        logits: float32 ``[B * M, tokens]`` of the beams there are (one a request at first), contiguous.
        beams: of `tables.start`, or of the level before.
        filter: of `tables.filter`, the same at each level.
        is_log_probs: `logits` are added to scores as they are; else they are normalised over all tokens.
    """
    on = _Arrays(logits)
    if filter is not None and not isinstance(filter, CudaFilters):
        raise TypeError(f"filter is a {type(filter).__name__}; tables.filter(…) puts filters on the device, once for all levels")
    level, (requests, rows) = beams.level, beams.scores.shape
    if level >= len(beams.widths):
        raise ValueError(f"the beams are whole: all {level} levels were searched; tables.start begins another search")
    width, segments = beams.widths[level], tables._tables.num_segments
    before = [beams.scores, beams.positions, beams.states, beams.tokens]
    for name, array in zip(("scores", "positions", "states", "tokens"), before, strict=True):
        on.check(name, array)
    columns = int(logits.shape[-1]) if len(logits.shape) else 0
    nbytes = tables._tables.scratch_bytes(level, requests, rows, columns, width)
    found = Beams(
        tokens=on.empty((requests, width, level + 1), "int64"),
        scores=on.empty((requests, width), "float32"),
        parents=on.empty((requests, width), "int64"),
        widths=beams.widths,
        positions=on.empty((requests, width, segments, 3), "int32"),
        states=on.empty((requests, 4), "int32"),
    )
    after = [found.scores, found.positions, found.states, found.tokens, found.parents]
    tables._tables.select(
        tables._all if filter is None else filter,
        level,
        on.plain(logits),
        is_log_probs,
        before,
        after,
        on.empty((nbytes,), "uint8"),
        on.stream(),
    )
    return found


def decode(
    logits: Callable[[int, Any | None, Any | None], Any],
    tables: CatalogTables,
    num_requests: int,
    widths: int | Sequence[int],
    filter: CudaFilters | None = None,
) -> Beams:
    """Beam search over all levels; the host is asked for nothing.

    `logits(level, tokens, parents)` returns the model's float32 logits ``[B * M, tokens]`` for the next token: at level 0 both are
    None and M is 1; later `tokens` ``[B * M, 1]`` are the beams' last tokens and `parents` ``[B, M]`` the beams of the level before
    that they continue, by which a model reorders its cache. Beams that there are not have token 0 and parent 0.
    """
    beams = tables.start(num_requests, widths)
    for level in range(tables.num_levels):
        last = beams.tokens[:, :, -1].reshape(-1, 1) if level else None
        beams = select(logits(level, last, beams.parents if level else None), beams, tables, filter)
    return beams


def _nothing_on(device: torch.device | str | None) -> Any:
    """An array without elements on a device; NumPy's where none is named and the device is an emulation."""
    if device is None and CudaDevice.IS_EMULATED:
        return np.empty(0)
    import torch

    named = torch.device("cuda" if device is None else device)
    if named.type == "cuda" and not torch.cuda.is_available():
        _opened(named.index or 0)  # It says what is missing.
    return torch.empty(0, device=named)


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
                where = "in host memory" if self.torch is None else f"on {array.device}"
                raise ValueError(
                    f"the array is {where}, and palmette.cuda computes on CUDA devices; palmette.{name} computes there"
                )
            self.device = device(0)
        else:
            raise TypeError(f"logits are a {type(array).__name__}; give a torch tensor on a CUDA device")
        self.like = array

    def has(self, value: Any) -> bool:
        """Whether a value is an array of the library."""
        return isinstance(value, np.ndarray) if self.torch is None else isinstance(value, self.torch.Tensor)

    def check(self, name: str, array: Any) -> None:
        """Refuses what is no array of the library, or lies on another device, by name."""
        if not self.has(array):
            what = "a NumPy array" if self.torch is None else f"a torch tensor on {self.like.device}"
            raise TypeError(f"{name} is a {type(array).__name__}; give {what}")
        if self.torch is not None and array.device != self.like.device:
            raise ValueError(f"{name} is on {array.device}, the logits are on {self.like.device}; give both on one device")

    def plain(self, array: Any) -> Any:
        """The array as its memory, without what torch knows of gradients."""
        return array if self.torch is None else array.detach()

    def context(self) -> AbstractContextManager[Any]:
        """Calls that may go to the device's context come back to that of the caller."""
        if self.torch is None or self.like.device.type != "cuda":
            return nullcontext()
        return self.torch.cuda.device(self.like.device)  # type: ignore[no-any-return]

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        if self.torch is None:
            return np.empty(shape, dtype)
        return self.torch.empty(shape, dtype=getattr(self.torch, dtype), device=self.like.device)

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Any:
        if self.torch is None:
            return np.zeros(shape, dtype)
        return self.torch.zeros(shape, dtype=getattr(self.torch, dtype), device=self.like.device)

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
        shape: Sequence[int] = getattr(array, "shape", ())
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
