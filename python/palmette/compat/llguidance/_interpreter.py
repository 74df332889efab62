"""llguidance's `LLInterpreter`: a mask and a commit in turn, with tokens that must follow told along."""

from __future__ import annotations

import json
from typing import Any

import palmette
from palmette.compat.llguidance._matcher import LLMatcher, LLParserLimits, _rows_at
from palmette.compat.llguidance._tokenizer import LLTokenizer


class LLInterpreter:
    """One sequence, asked step by step. Tokens are never taken back, and `enable_backtrack` has no effect.

    Raises ValueError if the grammar is refused.
    """

    def __init__(
        self,
        tokenizer: LLTokenizer,
        grammar: str,
        enable_backtrack: bool = True,
        enable_ff_tokens: bool = True,
        log_level: int = 1,
        limits: LLParserLimits | None = None,
    ) -> None:
        self._matcher = LLMatcher(tokenizer, grammar)
        if self._matcher.is_error():
            raise ValueError(self._matcher.get_error())
        self._forces = enable_ff_tokens

    def deep_copy(self) -> LLInterpreter:
        copied = LLInterpreter.__new__(LLInterpreter)
        copied._matcher, copied._forces = self._matcher.deep_copy(), self._forces
        return copied

    def process_prompt(self, prompt: list[int]) -> list[int]:
        """The prompt as it is: it is not part of the text."""
        return prompt

    def start_without_prompt(self) -> None:
        pass

    def is_accepting(self) -> bool:
        return self._matcher.is_accepting()

    def stop_reason(self) -> str:
        return self._matcher.stop_reason()

    def has_pending_stop(self) -> bool:
        return self._matcher.is_stopped()

    def validate_tokens_raw(self, tokens: list[int]) -> int:
        return self._matcher.validate_tokens(tokens)

    def compute_mask(self) -> tuple[bytes | None, str]:
        """The mask, or None at the end, and what happened as JSON."""
        stopped = self._matcher.is_stopped()
        return (None if stopped else self._matcher.compute_bitmask()), self._report(stopped)

    def compute_mask_into(self, trg: bytearray) -> str:
        trg[:] = self._matcher.compute_bitmask()[: len(trg)]
        return self._report(self._matcher.is_stopped())

    def unsafe_compute_mask_ptr(self, trg_pointer: int, trg_byte_size: int) -> str:
        expected = 4 * palmette.bitmask_words(self._matcher.tokenizer.vocab_size)
        self._matcher._fill(_rows_at(trg_pointer, trg_byte_size, 1, expected))
        return self._report(self._matcher.is_stopped())

    def commit_token(self, sampled_token: int | None) -> tuple[int, list[int]]:
        """`(0, tokens to append)`: the token itself and, with `enable_ff_tokens`, those that must follow.

        Raises ValueError if the token is not allowed.
        """
        tokens: list[int] = []
        if sampled_token is not None:
            self._consume([sampled_token])
            tokens.append(sampled_token)
        if self._forces and not self._matcher.is_stopped():
            forced = self._matcher.compute_ff_tokens()
            self._consume(forced)
            tokens += forced
        return 0, tokens

    def _consume(self, tokens: list[int]) -> None:
        if tokens and not self._matcher.consume_tokens(tokens):
            raise ValueError(self._matcher.get_error())

    def _report(self, stopped: bool) -> str:
        report: dict[str, Any] = {"progress": [], "stop": stopped, "temperature": 0.0}
        return json.dumps(report)
