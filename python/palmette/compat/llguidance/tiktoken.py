"""llguidance's tokenizers of tiktoken."""

from __future__ import annotations

from typing import Any

from palmette.compat.llguidance._tokenizer import LLTokenizer


def lltokenizer_from_encoding(
    encoding: Any,
    *,
    n_vocab: int | None = None,
    eos_token: int | list[int] | None = None,
    slices: list[str] | None = None,
) -> LLTokenizer:
    """Tokens of an encoding; its end of text ends unless `eos_token` says otherwise."""
    return LLTokenizer.from_tiktoken(
        encoding._mergeable_ranks,
        encoding._special_tokens,
        encoding._pat_str,
        encoding.eot_token if eos_token is None else eos_token,
        n_vocab,
    )
