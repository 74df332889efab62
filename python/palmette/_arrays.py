"""Bitmasks as arrays: their width, and new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

#: Tokens in one word of a mask.
WORD_TOKENS = 32


def bitmask_words(num_tokens: int) -> int:
    """Words of 32 bits in a mask over so many tokens."""
    if num_tokens < 0:
        raise ValueError(f"num_tokens is {num_tokens}; give the size of the vocabulary or of the logits, 0 or more")
    return -(-num_tokens // WORD_TOKENS)


@overload
def allocate_bitmask(
    rows: int, num_tokens: int, like: Literal["numpy"] = "numpy", pin: bool | None = None
) -> npt.NDArray[np.int32]: ...
@overload
def allocate_bitmask(rows: int, num_tokens: int, like: Literal["torch"], pin: bool | None = None) -> Any: ...
def allocate_bitmask(rows: int, num_tokens: int, like: str = "numpy", pin: bool | None = None) -> Any:
    """A bitmask ``[rows, bitmask_words(num_tokens)]`` of int32 in host memory that allows everything (all bits 1).

    ``num_tokens`` may be larger than the vocabulary, as the logits of padded models are: bits past the vocabulary are 0 in every
    mask that is filled. ``like="torch"`` makes a tensor; ``pin`` puts it into memory that a GPU copies from without waiting,
    ``None`` where there is one.
    """
    if rows < 0:
        raise ValueError(f"rows is {rows}; give the number of sequences, 0 or more")
    shape = (rows, bitmask_words(num_tokens))
    if like == "numpy":
        if pin:
            raise ValueError("pin is for tensors; give like='torch'")
        return np.full(shape, -1, dtype=np.int32)
    if like == "torch":
        import torch

        if pin is None:
            pin = torch.cuda.is_available()
        return torch.full(shape, -1, dtype=torch.int32, pin_memory=pin)
    raise ValueError(f"like is {like!r}; it is 'numpy' or 'torch'")
