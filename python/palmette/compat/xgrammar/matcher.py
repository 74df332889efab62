"""XGrammar's matchers over `palmette.Matcher`."""

from __future__ import annotations

from typing import Any

import palmette
from palmette.compat.xgrammar.bitmask import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    get_bitmask_shape,
    reset_token_bitmask,
)
from palmette.compat.xgrammar.compiler import CompiledGrammar

__all__ = [
    "BatchGrammarMatcher",
    "GrammarMatcher",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "get_bitmask_shape",
    "reset_token_bitmask",
]


class GrammarMatcher:
    """Position of one sequence; `palmette` is Palmette's.

    A string that was accepted is one step for `rollback`, as a token is.
    """

    def __init__(
        self,
        compiled_grammar: CompiledGrammar,
        *,
        override_stop_tokens: int | list[int] | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = -1,
        default_temperature: float | None = None,
    ) -> None:
        if not isinstance(compiled_grammar, CompiledGrammar):
            raise ValueError(f"give a CompiledGrammar, which a GrammarCompiler makes, not {type(compiled_grammar).__name__}")
        if default_temperature is not None:
            raise NotImplementedError("default_temperature: temperatures are the sampler's, not the grammar's")
        if isinstance(override_stop_tokens, int):
            override_stop_tokens = [override_stop_tokens]
        self._set(
            compiled_grammar.palmette.matcher(ends=override_stop_tokens),
            list(override_stop_tokens or compiled_grammar.tokenizer_info.stop_token_ids),
            terminate_without_stop_token,
            [],
        )

    def _set(self, matcher: palmette.Matcher, ends: list[int], without_end: bool, steps: list[int]) -> None:
        self.palmette = matcher
        self.stop_token_ids = ends
        self._without_end = without_end
        # Positions before each accepted step.
        self._steps = steps

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        """Commits a token; False if it is not allowed."""
        if self.palmette.is_ended:
            return False
        before = self.palmette.position
        try:
            accepted = self.palmette.try_commit(token_id)
        except palmette.VocabularyError:  # no token has this number
            return False
        if accepted:
            self._steps.append(before)
        return accepted

    def accept_string(self, input_str: str | bytes, *, debug_print: bool = False) -> bool:
        """Commits a text; False if it is not allowed, and the position is then as it was."""
        before = self.palmette.position
        try:
            self.palmette.commit_bytes(input_str.encode() if isinstance(input_str, str) else input_str)
        except palmette.NotAllowed:
            return False
        self._steps.append(before)
        return True

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0, *, debug_print: bool = False) -> bool:
        """Fills a row; False if all is allowed.

        Raises RuntimeError after the end.
        """
        if self.palmette.is_ended:
            raise RuntimeError("the text has ended, and no token follows: ask is_terminated() before")
        return self.palmette.fill_mask(bitmask, index)

    def traverse_draft_tree(
        self,
        retrieve_next_token: Any,
        retrieve_next_sibling: Any,
        draft_tokens: Any,
        token_bitmask: Any,
        time_threshold: float = -1.0,
        temperatures: Any = None,
    ) -> bool:
        """Fills a row for each node of a tree of drafts that can be reached; False if the time was over.

        Node 0 is where the matcher is. Children of a node are `next_token[node]` and its siblings. The row of a node that the
        grammar refuses denies all; those behind it stay as they are.
        """
        import time

        if temperatures is not None:
            raise NotImplementedError("temperatures: they are the sampler's, not the grammar's")
        children, siblings = retrieve_next_token.tolist(), retrieve_next_sibling.tolist()
        drafts = draft_tokens.tolist()
        if not len(children) == len(siblings) == len(drafts) <= len(token_bitmask):
            raise RuntimeError(
                f"a tree has a child, a sibling and a token for each node, and the bitmask a row: there are {len(children)}, "
                f"{len(siblings)}, {len(drafts)} and {len(token_bitmask)}"
            )
        deadline = time.monotonic() + time_threshold if time_threshold > 0 else float("inf")
        # A stack, since drafts may be longer than Python's calls nest: (node, position of its parent).
        stack = [(0, None)]
        while stack:
            if time.monotonic() > deadline:
                return False
            node, parent = stack.pop()
            if parent is not None and siblings[node] != -1:
                stack.append((siblings[node], parent))
            if parent is None:
                position = self.palmette.fork()
            else:
                position = parent.fork()
                if not 0 <= drafts[node] < len(self._vocabulary()) or not position.try_commit(drafts[node]):
                    token_bitmask[node] = 0
                    continue
            if not position.is_ended:
                position.fill_mask(token_bitmask, node)
                if children[node] != -1:
                    stack.append((children[node], position))
        return True

    def _vocabulary(self) -> palmette.Vocabulary:
        return self.palmette.compiled.vocabulary

    def find_jump_forward_string(self) -> str:
        """Text that must follow; a character is told when all its bytes must."""
        return self.palmette.forced_bytes().decode("utf-8", errors="ignore")

    def rollback(self, num_tokens: int = 1) -> None:
        """Takes steps back.

        Raises RuntimeError if there were fewer.
        """
        if num_tokens > len(self._steps):
            raise RuntimeError(f"{num_tokens} steps cannot be taken back: there were {len(self._steps)}")
        if num_tokens:
            before = self._steps[-num_tokens]
            del self._steps[-num_tokens:]
            self.palmette.rollback(self.palmette.position - before)

    def get_captures(self, *, deduplicate: bool = True) -> list[tuple[str, bytes]]:
        raise NotImplementedError("captures are not recorded: parse the finished text")

    def is_terminated(self) -> bool:
        """True when the end was accepted, or, with `terminate_without_stop_token`, whether the text may end."""
        return self.palmette.is_ended or (self._without_end and self.palmette.is_accepting)

    def is_completed(self) -> bool:
        """True when the text may end here."""
        return self.palmette.is_ended or self.palmette.is_accepting

    def reset(self) -> None:
        self.palmette.reset()
        self._steps.clear()

    def fork(self) -> GrammarMatcher:
        forked = GrammarMatcher.__new__(GrammarMatcher)
        forked._set(self.palmette.fork(), self.stop_token_ids, self._without_end, list(self._steps))
        return forked

    @property
    def max_rollback_tokens(self) -> int:
        """-1: without limit."""
        return -1

    @property
    def temperature(self) -> None:
        return None


class BatchGrammarMatcher:
    """Fills the rows of a batch on several threads."""

    def __init__(self, max_threads: int | str = "auto") -> None:
        if max_threads != "auto" and (not isinstance(max_threads, int) or max_threads < 1):
            raise ValueError(f"max_threads is a number from 1 on, or 'auto', not {max_threads!r}")
        self._threads = None if max_threads == "auto" else max_threads

    def batch_fill_next_token_bitmask(
        self, matchers: list[GrammarMatcher], bitmask: Any, indices: list[int] | None = None, debug_print: bool = False
    ) -> None:
        palmette.fill_masks([one.palmette for one in matchers], bitmask, rows=indices, threads=self._threads)

    @staticmethod
    def batch_fill_temperature(matchers: list[GrammarMatcher], temperatures: Any, indices: list[int] | None = None) -> None:
        raise NotImplementedError("temperatures are the sampler's, not the grammar's")

    @staticmethod
    def batch_accept_token(matchers: list[GrammarMatcher], tokens: list[int], debug_print: bool = False) -> list[bool]:
        _same_length(matchers, tokens)
        return [matcher.accept_token(token) for matcher, token in zip(matchers, tokens)]

    @staticmethod
    def batch_accept_string(
        matchers: list[GrammarMatcher], strings: list[str | bytes], debug_print: bool = False
    ) -> list[bool]:
        _same_length(matchers, strings)
        return [matcher.accept_string(text) for matcher, text in zip(matchers, strings)]

    @staticmethod
    def batch_rollback(matchers: list[GrammarMatcher], num_tokens: list[int] | int = 1) -> None:
        steps = [num_tokens] * len(matchers) if isinstance(num_tokens, int) else num_tokens
        _same_length(matchers, steps)
        for matcher, num in zip(matchers, steps):
            matcher.rollback(num)


def _same_length(matchers: list, others: list) -> None:
    if len(matchers) != len(others):
        raise RuntimeError(f"there are {len(matchers)} matchers and {len(others)} values for them")
