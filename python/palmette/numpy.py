"""Masks applied to logits in NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from palmette._palmette import apply_bitmask

if TYPE_CHECKING:
    import numpy.typing as npt

    from palmette.types import Bitmask

__all__ = ["apply_bitmask_"]


def apply_bitmask_(
    logits: npt.NDArray[Any], bitmask: Bitmask, rows: Sequence[int] | None = None
) -> npt.NDArray[Any]:
    """Set logits to minus infinity, in place, where the bitmask has a 0 and past its last word; give them back.

    Args:
        logits: float32, float16, float64 or bfloat16 (of ``ml_dtypes``) ``[rows, tokens]``, or one row; each row contiguous.
        bitmask: int32 ``[rows, words]``, or one row, or a :class:`palmette.MaskBuffer`.
        rows: the rows of both to be done; left out, all, of which both then have as many.
    """
    if isinstance(logits, np.ndarray) and logits.dtype.name == "bfloat16":
        apply_bitmask(logits.view(np.uint16), bitmask, rows, bfloat16=True)
    else:
        apply_bitmask(logits, bitmask, rows)
    return logits
