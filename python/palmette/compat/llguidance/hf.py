"""llguidance's tokenizers of transformers."""

from __future__ import annotations

from copy import copy
from typing import Any

from palmette.compat.llguidance._tokenizer import LLTokenizer


def from_tokenizer(
    hf_tokenizer: Any,
    n_vocab: int | None = None,
    eos_token: int | list[int] | None = None,
    slices: list[str] | None = None,
) -> LLTokenizer:
    """Tokens of a fast tokenizer.

    Raises ValueError for one that is not fast.
    """
    if not hasattr(hf_tokenizer, "backend_tokenizer"):
        raise ValueError(f"Only fast tokenizers are supported, and {type(hf_tokenizer).__name__} is not one")
    backend = copy(hf_tokenizer.backend_tokenizer)
    backend.no_padding()
    backend.no_truncation()
    if eos_token is None:
        eos_token = hf_tokenizer.eos_token_id
    return LLTokenizer(backend.to_str(), n_vocab=n_vocab, eos_token=eos_token)
