"""llguidance's functions of bitmasks for MLX."""

from __future__ import annotations

import mlx.core as mx
import numpy as np

from palmette.compat.llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask, get_bitmask_shape
from palmette.mlx import apply_bitmask

__all__ = ["allocate_token_bitmask", "apply_token_bitmask", "fill_next_token_bitmask", "get_bitmask_shape"]


def apply_token_bitmask(logits: mx.array, mask_np: np.ndarray) -> mx.array:
    """Logits with minus infinity where the bitmask has no bit, and past its end."""
    logits = logits[None] if logits.ndim == 1 else logits
    return apply_bitmask(logits, mask_np[None] if mask_np.ndim == 1 else mask_np)
