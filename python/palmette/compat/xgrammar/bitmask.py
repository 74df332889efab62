"""XGrammar's functions of bitmasks."""

from __future__ import annotations

from typing import Any

import numpy as np

import palmette


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """`(batch_size, words)`, with 32 tokens a word."""
    return (batch_size, palmette.bitmask_words(vocab_size))


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> Any:
    """Bitmask that allows all: a torch tensor, or a NumPy array where there is no torch."""
    try:
        import torch
    except ImportError:
        return np.full(get_bitmask_shape(batch_size, vocab_size), -1, np.int32)
    return torch.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=torch.int32)


def reset_token_bitmask(bitmask: Any) -> None:
    """Allows all."""
    bitmask.fill(-1) if isinstance(bitmask, np.ndarray) else bitmask.fill_(-1)


def apply_token_bitmask_inplace(
    logits: Any,
    bitmask: Any,
    *,
    vocab_size: int | None = None,
    indices: list[int] | None = None,
    backend: str = "auto",
) -> None:
    """Sets logits to minus infinity where the bitmask has no bit.

    `vocab_size` leaves the logits from it on as they are; without it those past the end of the bitmask become minus infinity.
    `indices` names rows, of logits and bitmask alike. `backend` has no effect: the device of the logits decides.
    """
    logits = logits[None] if logits.ndim == 1 else logits
    bitmask = bitmask[None] if bitmask.ndim == 1 else bitmask
    if vocab_size is not None:
        logits = logits[:, :vocab_size]
        bitmask = bitmask[:, : palmette.bitmask_words(vocab_size)]
    if isinstance(logits, np.ndarray):
        from palmette.numpy import apply_bitmask_
    else:
        from palmette.torch import apply_bitmask_

        if bitmask.device != logits.device:
            raise ValueError(
                f"logits are on {logits.device} and the bitmask on {bitmask.device}: copy it there, bitmask.to(logits.device)"
            )
    apply_bitmask_(logits, bitmask, rows=indices)
