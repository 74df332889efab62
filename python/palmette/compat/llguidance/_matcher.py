"""llguidance's matcher and its executor over `palmette.Matcher`.

A matcher never raises for what a user wrote or a model sampled: it remembers the first error and stays in it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

import palmette
from palmette.compat.llguidance import _grammars
from palmette.compat.llguidance._tokenizer import LLTokenizer


class LLParserLimits:
    """Limits of llguidance's parser, kept as they are given.

    They count what Palmette's engine does not have, so they have no effect; Palmette's own limits hold.
    """

    DEFAULTS = {
        "max_items_in_row": 2000,
        "initial_lexer_fuel": 1_000_000,
        "step_lexer_fuel": 200_000,
        "step_max_items": 50_000,
        "max_lexer_states": 250_000,
        "max_grammar_size": 500_000,
        "precompute_large_lexemes": True,
        "verbose_errors": True,
    }

    def __init__(self, **limits: Any) -> None:
        unknown = limits.keys() - self.DEFAULTS.keys()
        if unknown:
            raise TypeError(f"there is no limit {min(unknown)!r}; there are {', '.join(self.DEFAULTS)}")
        for name, default in self.DEFAULTS.items():
            given = limits.get(name)
            setattr(self, name, default if given is None else given)


class LLMatcher:
    """Position of one sequence in a grammar, given as llguidance's text of it; `palmette` is Palmette's."""

    def __init__(
        self,
        tokenizer: LLTokenizer,
        grammar: str | dict,
        *,
        log_level: int = 1,
        limits: LLParserLimits | None = None,
    ) -> None:
        if not isinstance(tokenizer, LLTokenizer):
            raise TypeError(f"a tokenizer is an LLTokenizer, not {type(tokenizer).__name__}")
        self.tokenizer = tokenizer
        self.palmette: palmette.Matcher | None = None
        self._error = ""
        self._warnings: list[str] = []
        try:
            compiled = _grammars.read(grammar).compile(tokenizer.palmette)
        except (ValueError, NotImplementedError) as error:
            self._error = _message(error)
            return
        self._warnings = list(compiled.notes)
        self.palmette = compiled.matcher()

    grammar_from_json_schema = staticmethod(_grammars.grammar_from_json_schema)
    grammar_from_lark = staticmethod(_grammars.grammar_from_lark)
    grammar_from_regex = staticmethod(_grammars.grammar_from_regex)

    @staticmethod
    def validate_grammar(
        grammar: str | dict, tokenizer: LLTokenizer | None = None, *, limits: LLParserLimits | None = None
    ) -> str:
        """Error of a grammar, or an empty text."""
        is_error, messages = LLMatcher.validate_grammar_with_warnings(grammar, tokenizer)
        if is_error:
            return messages[0]
        return f"WARNING: {'; '.join(messages)}" if messages else ""

    @staticmethod
    def validate_grammar_with_warnings(
        grammar: str | dict, tokenizer: LLTokenizer | None = None, *, limits: LLParserLimits | None = None
    ) -> tuple[bool, list[str]]:
        """`(True, [error])`, or `(False, warnings)`."""
        try:
            read = _grammars.read(grammar)
            return False, list(read.check() if tokenizer is None else read.compile(tokenizer.palmette).notes)
        except (ValueError, NotImplementedError) as error:
            return True, [_message(error)]

    def is_error(self) -> bool:
        return bool(self._error)

    def get_error(self) -> str:
        return self._error

    def get_grammar_warnings(self) -> list[str]:
        return self._warnings

    def deep_copy(self) -> LLMatcher:
        copied = LLMatcher.__new__(LLMatcher)
        copied.__dict__.update(self.__dict__)
        copied.palmette = self.palmette and self.palmette.fork()
        return copied

    def _do(self, action: Callable[[palmette.Matcher], Any], otherwise: Any) -> Any:
        """Result of an action, or `otherwise` in an error, which is then remembered."""
        if self._error or self.palmette is None:
            return otherwise
        try:
            return action(self.palmette)
        except palmette.NotAllowed as error:
            self._error = f"token doesn't satisfy the grammar: {error}"
        except palmette.VocabularyError as error:
            self._error = f"token out of range: {error}"
        except palmette.Error as error:
            self._error = _message(error)
        return otherwise

    def is_accepting(self) -> bool:
        return self._do(lambda matcher: matcher.is_accepting or matcher.is_ended, False)

    def is_stopped(self) -> bool:
        """True when nothing but an end token may follow; also in an error."""
        return self.stop_reason() != "NotStopped"

    def stop_reason(self) -> str:
        def reason(matcher: palmette.Matcher) -> str:
            if matcher.is_ended:
                return "EndOfSentence"
            if not matcher.is_accepting:
                return "NotStopped"
            goes_on = np.setdiff1d(matcher.allowed(), matcher.ends)
            return "NotStopped" if len(goes_on) else "NoExtension"

        return self._do(reason, "InternalError")

    def consume_token(self, sampled_token: int) -> bool:
        return self.consume_tokens([sampled_token])

    def consume_tokens(self, sampled_tokens: list[int]) -> bool:
        def consume(matcher: palmette.Matcher) -> bool:
            matcher.commit_all(sampled_tokens)
            return True

        return self._do(consume, False)

    def try_consume_tokens(self, tokens: list[int]) -> int:
        """Commits tokens until one is not allowed; returns how many."""

        def consume(matcher: palmette.Matcher) -> int:
            count = matcher.accepted_prefix(self._known(tokens))
            matcher.commit_all(tokens[:count])
            return count

        return self._do(consume, 0)

    def validate_tokens(self, tokens: list[int]) -> int:
        """Number of the tokens that could be committed."""
        return self._do(lambda matcher: matcher.accepted_prefix(self._known(tokens)), 0)

    def _known(self, tokens: list[int]) -> list[int]:
        """Tokens before the first that the vocabulary does not have."""
        size = self.tokenizer.vocab_size
        return tokens[: next((place for place, token in enumerate(tokens) if not 0 <= token < size), len(tokens))]

    def rollback(self, num_tokens: int) -> bool:
        def back(matcher: palmette.Matcher) -> bool:
            matcher.rollback(num_tokens)
            return True

        return self._do(back, False)

    def reset(self) -> bool:
        def anew(matcher: palmette.Matcher) -> bool:
            matcher.reset()
            return True

        return self._do(anew, False)

    def compute_ff_tokens(self) -> list[int]:
        """Tokens that must follow, cut as the tokenizer cuts the text that must."""
        text = self.compute_ff_bytes()
        tokens = self.tokenizer.tokenize_bytes(text) if text else []
        return tokens if self.tokenizer._single_bytes() else self._do(lambda matcher: list(matcher.forced_tokens()), [])

    def compute_ff_bytes(self) -> bytes:
        return self._do(lambda matcher: bytes(matcher.forced_bytes()), b"")

    def _fill(self, bitmask: Any, row: int = 0) -> None:
        """Fills a row; in an error only the end tokens are allowed."""

        def fill(matcher: palmette.Matcher) -> bool:
            matcher.fill_mask(bitmask, row)
            return True

        if not self._do(fill, False) or self.palmette.is_ended:
            words = np.zeros(palmette.bitmask_words(self.tokenizer.vocab_size), np.uint32)
            for token in self.tokenizer.eos_tokens:
                words[token >> 5] |= np.uint32(1 << (token & 31))
            target = bitmask[row]
            target[: len(words)] = words.view(np.int32) if isinstance(target, np.ndarray) else _tensor(words)
            target[len(words) :] = 0

    def _row(self) -> np.ndarray:
        bitmask = palmette.allocate_bitmask(1, self.tokenizer.vocab_size)
        self._fill(bitmask)
        return bitmask

    def compute_bitmask(self) -> bytes:
        return self._row().tobytes()

    def compute_logit_bias(self) -> bytes:
        """A byte a token: 200 where it is allowed, 0 where not."""
        allowed = np.unpackbits(self._row().view(np.uint8), bitorder="little")[: self.tokenizer.vocab_size]
        return (allowed * np.uint8(200)).tobytes()

    def unsafe_compute_mask_ptr(self, trg_pointer: int, trg_byte_size: int) -> None:
        """Writes a mask to an address; nothing can check what is there."""
        expected = 4 * palmette.bitmask_words(self.tokenizer.vocab_size)
        self._fill(_rows_at(trg_pointer, trg_byte_size, 1, expected))

    def get_capture(self, name: str) -> bytes | None:
        raise NotImplementedError("captures are not recorded: parse the finished text")

    def get_captures(self) -> list[tuple[str, bytes]]:
        raise NotImplementedError("captures are not recorded: parse the finished text")


def _tensor(words: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(words.view(np.int32))


def _message(error: Exception) -> str:
    text = str(error)
    return text if text else type(error).__name__


def _rows_at(address: int, row_bytes: int, rows: int, expected: int) -> np.ndarray:
    if not address:
        raise ValueError("Null pointer: the address is 0")
    if address % 4:
        raise ValueError(f"Pointer not aligned: {address:#x} is not a multiple of 4")
    if row_bytes != expected:
        raise ValueError(f"Invalid buffer size: a mask has {expected} bytes, and the row {row_bytes}")
    words = ctypes.cast(address, ctypes.POINTER(ctypes.c_int32 * (rows * row_bytes // 4))).contents
    return np.frombuffer(words, np.int32).reshape(rows, -1)


class LLExecutor:
    """Threads that fill the rows of a batch."""

    def __init__(self, num_threads: int | None = None) -> None:
        self._threads = num_threads

    def fill(self, matchers: list[tuple[LLMatcher, int]], bitmask: Any) -> None:
        """Fills a row a matcher."""
        self._check(matchers, 2, len(bitmask))
        sound = [(one.palmette, row) for one, row in matchers if not one.is_error() and not one.palmette.is_ended]
        if sound:
            self._fill_rows([one for one, _ in sound], bitmask, [row for _, row in sound])
        for one, row in matchers:
            if one.is_error() or one.palmette.is_ended:
                one._fill(bitmask, row)

    def _fill_rows(self, matchers: list[palmette.Matcher], bitmask: Any, rows: list[int]) -> None:
        palmette.fill_masks(matchers, bitmask, rows=rows, threads=self._threads)

    def fill_with_drafts(self, matchers: list[tuple[LLMatcher, int, list[int]]], bitmask: Any) -> None:
        """Fills a row a matcher and one behind each of its draft tokens, as far as they are allowed; further rows stay."""
        self._check(matchers, 3, len(bitmask))
        for one, row, drafts in matchers:
            if row + len(drafts) >= len(bitmask):
                raise ValueError(f"Target index out of bounds: row {row} and {len(drafts)} drafts, and {len(bitmask)} rows")
            if one.is_error():
                one._fill(bitmask, row)
                continue
            ahead = one.palmette.fork()
            for place in range(len(drafts) + 1):
                if ahead.is_ended:
                    break
                ahead.fill_mask(bitmask, row + place)
                if place == len(drafts) or not ahead.try_commit(drafts[place]):
                    break

    def consume_token_par(self, matchers: list[tuple[LLMatcher, int]]) -> list[bool]:
        if not matchers:
            raise ValueError("No matchers: the list is empty")
        self._check(matchers, 2, None)
        for _, token in matchers:
            if not isinstance(token, int):
                raise TypeError(f"{type(token).__name__!r} object cannot be interpreted as an integer")
        return [one.consume_token(token) for one, token in matchers]

    def unsafe_compute_mask_ptr(
        self, interpreters: list[tuple[LLMatcher, int]], trg_pointer: int, one_mask_bytes: int, trg_batch_size: int
    ) -> None:
        self._check(interpreters, 2, trg_batch_size)
        self.fill(interpreters, self._at(interpreters, trg_pointer, one_mask_bytes, trg_batch_size))

    def unsafe_compute_mask_ptr_with_draft_token(
        self,
        interpreters: list[tuple[LLMatcher, int, list[int]]],
        trg_pointer: int,
        one_mask_bytes: int,
        trg_batch_size: int,
    ) -> None:
        self._check(interpreters, 3, trg_batch_size)
        self.fill_with_drafts(interpreters, self._at(interpreters, trg_pointer, one_mask_bytes, trg_batch_size))

    @staticmethod
    def _at(entries: list, address: int, row_bytes: int, rows: int) -> np.ndarray:
        expected = 4 * palmette.bitmask_words(entries[0][0].tokenizer.vocab_size)
        return _rows_at(address, row_bytes, rows, expected)

    @staticmethod
    def _check(entries: list, width: int, rows: int | None) -> None:
        if not entries:
            raise ValueError("No matchers: the list is empty")
        seen = set()
        for entry in entries:
            if not isinstance(entry, tuple):
                raise TypeError(f"'{type(entry).__name__}' object is not an instance of 'tuple'")
            if len(entry) != width:
                raise ValueError(f"Expecting a tuple of {width} values, not {len(entry)}")
            if not isinstance(entry[0], LLMatcher):
                raise TypeError(f"'{type(entry[0]).__name__}' object is not an instance of 'LLMatcher'")
            if rows is not None and not 0 <= entry[1] < rows:
                raise ValueError(f"Target index out of bounds: row {entry[1]}, and there are {rows}")
            if id(entry[0]) in seen:
                raise RuntimeError("Already borrowed: a matcher is in the list twice")
            seen.add(id(entry[0]))
