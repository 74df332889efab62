"""Tokens of codes in a tokenizer's vocabulary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from palmette import VocabularyError


def code_tokens(
    tokenizer: Any, patterns: int | Sequence[str], num_codes: int | Sequence[int] | None = None
) -> list[npt.NDArray[np.int64]]:
    """Tokens of the codes of each level, found by their texts in a tokenizer's vocabulary.

    `patterns`: a text a level with `{}` in place of the code, such as `"<a_{}>"`; or a number of levels, for the texts
    `<a_0>`, `<b_0>`, `<c_0>`… Returns one int64 array a level, indexed by the code, -1 where the vocabulary lacks it.
    `num_codes` (one for all levels, or one a level) requires that many codes and the presence of each.

    Raises `VocabularyError` naming the text that is missing.
    """
    if isinstance(patterns, int):
        if not 1 <= patterns <= 26:
            raise ValueError(f"{patterns} levels have no letters a to z: give a pattern a level")
        patterns = [f"<{letter}_{{}}>" for letter in "abcdefghijklmnopqrstuvwxyz"[:patterns]]
    if isinstance(patterns, str):
        raise TypeError(f"patterns are a list with one text a level, not the text {patterns!r}")
    counts = (
        [num_codes] * len(patterns)
        if num_codes is None or isinstance(num_codes, int)
        else list(num_codes)
    )
    if len(counts) != len(patterns):
        raise ValueError(f"{len(counts)} numbers of codes for {len(patterns)} levels")
    vocabulary = tokenizer.get_vocab()
    return [
        _tokens_of_level(vocabulary, pattern, count)
        for pattern, count in zip(patterns, counts, strict=True)
    ]


def _tokens_of_level(
    vocabulary: dict[str, int], pattern: str, count: int | None
) -> npt.NDArray[np.int64]:
    before, placeholder, after = pattern.partition("{}")
    if not placeholder or "{}" in after:
        raise ValueError(
            f"the pattern {pattern!r} has to contain one {{}}, which stands for the code"
        )
    matcher = re.compile(re.escape(before) + r"(0|[1-9][0-9]{0,8})" + re.escape(after))
    found = {
        int(match[1]): token
        for text, token in vocabulary.items()
        if (match := matcher.fullmatch(text))
    }
    if not found:
        raise VocabularyError(
            f"the tokenizer has no token like {pattern!r}: "
            "add the codes with tokenizer.add_tokens, or give the pattern of its codes"
        )
    if count is not None:
        missing = next((code for code in range(count) if code not in found), None)
        if missing is not None:
            raise VocabularyError(
                f"the tokenizer has no token {pattern.format(missing)!r}, which is one of {count} codes"
            )
    tokens = np.full(count or max(found) + 1, -1, np.int64)
    for code, token in found.items():
        if code < len(tokens):
            tokens[code] = token
    return tokens
