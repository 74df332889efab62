"""llguidance's functions of bitmasks for NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import palmette
import palmette.numpy
from palmette.compat.llguidance._matcher import LLExecutor, LLMatcher

if TYPE_CHECKING:
    from numpy.typing import NDArray


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    return (batch_size, palmette.bitmask_words(vocab_size))


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> NDArray[np.int32]:
    """Bitmask that allows all."""
    return np.full(get_bitmask_shape(batch_size, vocab_size), -1, np.int32)


def apply_token_bitmask_inplace(logits: NDArray[np.float32], mask: NDArray[np.int32]) -> None:
    """Sets logits to minus infinity where the bitmask has no bit, and past its end."""
    palmette.numpy.apply_bitmask_(logits[None] if logits.ndim == 1 else logits, mask[None] if mask.ndim == 1 else mask)


def fill_next_token_bitmask(interp: LLMatcher, bitmask: NDArray[np.int32], index: int = 0) -> None:
    interp._fill(bitmask, index)


def fill_next_token_bitmask_par(
    executor: LLExecutor, matchers: list[tuple[LLMatcher, int]], bitmask: NDArray[np.int32]
) -> None:
    executor.fill(matchers, bitmask)


def fill_next_token_bitmask_par_with_draft_tokens(
    executor: LLExecutor, matchers: list[tuple[LLMatcher, int, list[int]]], bitmask: NDArray[np.int32]
) -> None:
    executor.fill_with_drafts(matchers, bitmask)


def consume_token_par(executor: LLExecutor, matchers: list[tuple[LLMatcher, int]]) -> list[bool]:
    return executor.consume_token_par(matchers)
