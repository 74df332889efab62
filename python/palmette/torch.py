"""Masks as torch tensors, applied to logits on the CPU or on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from palmette._arrays import allocate_bitmask as _allocate
from palmette._palmette import apply_bitmask

if TYPE_CHECKING:
    from palmette.types import Bitmask

__all__ = ["allocate_bitmask", "apply_bitmask_"]


def allocate_bitmask(rows: int, num_tokens: int, pin: bool | None = None) -> torch.Tensor:
    """A bitmask tensor in host memory; see :func:`palmette.allocate_bitmask`."""
    return _allocate(rows, num_tokens, "torch", pin)


def apply_bitmask_(
    logits: torch.Tensor, bitmask: torch.Tensor | Bitmask, rows: Sequence[int] | None = None
) -> torch.Tensor:
    """Set logits to minus infinity, in place, where the bitmask has a 0 and past its last word; give them back.

    Logits in host memory (float32, float16, bfloat16, float64) are done in Rust. Logits on a device are done there: the bitmask is
    copied to it unless it is there, its bits are spread and the logits filled, which takes a byte a logit for the while.

    Args:
        logits: ``[rows, tokens]``, or one row.
        bitmask: int32 ``[rows, words]``, or one row.
        rows: the rows of both to be done; left out, all, of which both then have as many.
    """
    if logits.device.type == "cpu":
        if isinstance(bitmask, torch.Tensor) and bitmask.device.type != "cpu":
            bitmask = bitmask.cpu()
        apply_bitmask(logits.detach(), bitmask, rows)
        return logits
    words = bitmask if isinstance(bitmask, torch.Tensor) else torch.as_tensor(_array(bitmask))
    if words.dtype not in (torch.int32, torch.uint32):
        raise TypeError(f"bitmask has elements of type {words.dtype}; a bitmask is int32")
    words = words.to(logits.device, non_blocking=True).view(torch.int32)
    both = logits.view(1, -1) if logits.dim() == 1 else logits
    words = words.view(1, -1) if words.dim() == 1 else words
    if rows is None:
        if both.shape[0] != words.shape[0]:
            raise ValueError(
                f"logits have {both.shape[0]} rows and the bitmask has {words.shape[0]}; "
                "give as many of both, or the rows to be done"
            )
        _spread_(both, words)
        return logits
    index = torch.as_tensor(rows, device=logits.device)
    chosen = both[index]
    _spread_(chosen, words[index])
    both[index] = chosen
    return logits


def _spread_(logits: torch.Tensor, words: torch.Tensor) -> None:
    """Fill where a bit is 0. An arithmetic shift of a negative word is right too: only its lowest bit is looked at."""
    shifts = torch.arange(32, device=words.device, dtype=torch.int32)
    allowed = ((words.unsqueeze(-1) >> shifts) & 1).to(torch.bool).flatten(1)
    covered = min(logits.shape[-1], allowed.shape[-1])
    logits[:, :covered].masked_fill_(~allowed[:, :covered], float("-inf"))
    logits[:, covered:] = float("-inf")


def _array(bitmask: object) -> object:
    """The array of a :class:`palmette.MaskBuffer`, or what was given."""
    return getattr(bitmask, "array", bitmask)
