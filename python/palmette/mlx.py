"""mlx-lm: logits processors for grammars and catalogs.

    from mlx_lm import load, stream_generate
    from palmette.mlx import GrammarLogitsProcessor, vocabulary

    model, tokenizer = load("…")
    compiled = palmette.Grammar.from_json_schema(schema).compile(vocabulary(tokenizer))
    for part in stream_generate(model, tokenizer, prompt, logits_processors=[GrammarLogitsProcessor(compiled)]):
        …

A processor belongs to one generation and is told the prompt by its first call: pass it with a prompt that is not empty,
and make another for the next. What is not that generation's is an error.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

import palmette
from palmette._requests import NO_ENDS, too_few_tokens, too_many_tokens
from palmette._text_start import WatchedLoop

__all__ = ["CatalogLogitsProcessor", "GrammarLogitsProcessor", "apply_bitmask", "vocabulary"]


def vocabulary(tokenizer: Any, num_tokens: int | None = None) -> palmette.Vocabulary:
    """Vocabulary of a tokenizer that mlx-lm loaded.

    Its end tokens are those at which mlx-lm stops, which may be more than the tokenizer's own.
    """
    from mlx_lm.tokenizer_utils import TokenizerWrapper

    ends = None
    if isinstance(tokenizer, TokenizerWrapper):
        tokenizer, ends = tokenizer._tokenizer, sorted(tokenizer.eos_token_ids)
    return palmette.Vocabulary.from_tokenizer(tokenizer, num_tokens=num_tokens, ends=ends or None)


def apply_bitmask(logits: mx.array, bitmask: np.ndarray) -> mx.array:
    """Logits with minus infinity where the bitmask has no bit, and past its end.

    `logits` is `[rows, V]` of any float type, `bitmask` `[rows, words]` int32.
    """
    allowed = np.unpackbits(bitmask.view(np.uint8), axis=-1, bitorder="little")[:, : logits.shape[-1]]
    missing = logits.shape[-1] - allowed.shape[-1]
    if missing > 0:
        allowed = np.pad(allowed, ((0, 0), (0, missing)))
    return mx.where(mx.array(allowed.astype(bool)), logits, mx.array(-mx.inf, dtype=logits.dtype))


class GrammarLogitsProcessor:
    """Restricts one sequence to the texts of a grammar.

    `matcher` is the position; a program may read it, `matcher.is_ended` among others. A call with fewer tokens, or with others
    at the end, is a draft that was taken back. Raises NotAllowed if a token comes that was not allowed, which a sampler that
    ignores minus infinity causes, and ValueError if the tokens do not go on from those of the call before: they are another
    sequence.

    With `max_tokens`, which mlx-lm does not say, the text is whole within so many tokens, unless no way to its end is known:
    give the generation the same. With `min_tokens` it does not end before. Raises TooFewTokens where it takes more, and
    TooManyTokens where none is known that takes so many.
    """

    def __init__(
        self, compiled: palmette.CompiledGrammar, *, max_tokens: int | None = None, min_tokens: int = 0
    ) -> None:
        if not compiled.vocabulary.ends:
            raise ValueError(NO_ENDS)
        self.matcher = compiled.matcher()
        self._most, self._least = max_tokens, min_tokens
        if max_tokens is not None or min_tokens > 0:
            needed = self.matcher.fewest_tokens()
            if needed is None:
                self._most, self._least = None, 0
            elif max_tokens is not None and needed > max_tokens:
                raise too_few_tokens(needed, max_tokens, "max_tokens", "leave it out")
            elif min_tokens > 0 and not self.matcher.has_way(tokens_left=max_tokens, tokens_needed=min_tokens):
                raise too_many_tokens(min_tokens, max_tokens, "min_tokens", "max_tokens", "leave it out")
        self._bitmask = palmette.allocate_bitmask(1, compiled.vocabulary.num_tokens)
        self._loop = WatchedLoop("processor")
        self._committed: list[int] = []

    def __call__(self, tokens: mx.array, logits: mx.array) -> mx.array:
        self._follow(self._loop.text(np.array(tokens).astype(np.int64).reshape(1, -1))[0].tolist())
        if self.matcher.is_ended:
            return logits
        left = None if self._most is None else max(self._most - len(self._committed), 0)
        least = max(self._least - len(self._committed), 0) or None
        open_mask = not self.matcher.fill_mask(self._bitmask, tokens_left=left, tokens_needed=least)
        if open_mask and logits.shape[-1] <= 32 * self._bitmask.shape[1]:
            return logits
        return apply_bitmask(logits, self._bitmask)

    def _follow(self, text: list[int]) -> None:
        pairs = zip(text, self._committed, strict=False)
        shared = next((at for at, (new, old) in enumerate(pairs) if new != old), min(len(text), len(self._committed)))
        self.matcher.rollback(len(self._committed) - shared)
        del self._committed[shared:]
        for token in text[shared:]:
            self.matcher.commit(token)
            self._committed.append(token)


class CatalogLogitsProcessor:
    """Restricts one sequence to an item's codes, and then to the end tokens.

    `ends` are the tokens allowed after the last code. Without them the logits then stay as they are, for a generation that
    `max_tokens` ends. A call with fewer tokens is a draft that was taken back; tokens that do not go on from those of the call
    before are a ValueError.
    """

    def __init__(self, constraint: palmette.CatalogConstraint, ends: list[int] | None = None) -> None:
        self._constraint = constraint
        self._ends = list(ends or ())
        self._loop = WatchedLoop("processor")
        self._written: list[int] = []

    @property
    def items(self) -> list[str]:
        """Ids of the items that the tokens so far name: none before the last code, and several where they share codes."""
        if len(self._written) < self._constraint.num_levels:
            return []
        return self._constraint.decode(np.array([self._written[: self._constraint.num_levels]], np.int32))[0]

    def __call__(self, tokens: mx.array, logits: mx.array) -> mx.array:
        self._written = self._loop.text(np.array(tokens).astype(np.int64).reshape(1, -1))[0].tolist()
        if len(self._written) < self._constraint.num_levels:
            _, allowed, _ = self._constraint.successors(np.array([self._written], np.int32).reshape(1, -1))
            if not len(allowed):
                raise palmette.NotAllowed(f"no item of the set begins with the tokens {self._written}")
        elif self._ends:
            allowed = np.array(self._ends, np.int32)
        else:
            return logits
        kept = mx.array(allowed)
        masked = mx.full(logits.shape, -mx.inf, dtype=logits.dtype)
        masked[:, kept] = logits[:, kept]
        return masked
