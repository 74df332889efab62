"""llguidance's tokenizers of llama.cpp."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import llama_cpp

from palmette.compat.llguidance._tokenizer import SPECIAL, LLTokenizer


def lltokenizer_from_vocab(
    vocab: Any,
    n_vocab: int | None = None,
    eos_token: int | list[int] | None = None,
    slices: list[str] | None = None,
) -> LLTokenizer:
    """Tokens of a vocabulary that llama-cpp-python loaded."""
    buffer = ctypes.create_string_buffer(16 * 1024)
    special = llama_cpp.LLAMA_TOKEN_ATTR_CONTROL | llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN

    def text(token: int) -> bytes:
        size = llama_cpp.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, True)
        if size < 0:
            raise ValueError(f"the text of token {token} has {-size} bytes, more than {len(buffer)}")
        marked = llama_cpp.llama_token_get_attr(vocab, token) & special
        return (SPECIAL if marked else b"") + buffer.raw[:size]

    def cut(written: str) -> list[int]:
        found = written.encode()
        tokens = (llama_cpp.llama_token * (len(found) + 1))()
        count = llama_cpp.llama_tokenize(vocab, found, len(found), tokens, len(tokens), False, False)
        return list(tokens[:count])

    class Wrapper(SimpleNamespace):
        def __call__(self, written: str) -> list[int]:
            return cut(written)

    wrapper = Wrapper(
        tokens=[text(token) for token in range(llama_cpp.llama_vocab_n_tokens(vocab))],
        eos_token_id=llama_cpp.llama_vocab_eos(vocab),
        bos_token_id=llama_cpp.llama_vocab_bos(vocab),
        special_token_ids=[],
    )
    return LLTokenizer(wrapper, n_vocab=n_vocab, eos_token=eos_token)
