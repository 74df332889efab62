"""llguidance's functions of bitmasks for torch."""

from __future__ import annotations

import torch

import palmette.torch
from palmette.compat.llguidance._matcher import LLExecutor, LLMatcher
from palmette.compat.llguidance.numpy import (
    consume_token_par,
    fill_next_token_bitmask,
    fill_next_token_bitmask_par,
    fill_next_token_bitmask_par_with_draft_tokens,
    get_bitmask_shape,
)

__all__ = [
    "LLExecutor",
    "LLMatcher",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "consume_token_par",
    "fill_next_token_bitmask",
    "fill_next_token_bitmask_par",
    "fill_next_token_bitmask_par_with_draft_tokens",
    "get_bitmask_shape",
]


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> torch.Tensor:
    """Bitmask that allows all, in pinned memory where there is an accelerator."""
    shape = get_bitmask_shape(batch_size, vocab_size)
    return torch.full(shape, -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())


def apply_token_bitmask_inplace(logits: torch.Tensor, mask: torch.Tensor) -> None:
    """Sets logits to minus infinity where the bitmask has no bit, and past its end."""
    palmette.torch.apply_bitmask_(
        logits.unsqueeze(0) if logits.dim() == 1 else logits, mask.unsqueeze(0) if mask.dim() == 1 else mask
    )
