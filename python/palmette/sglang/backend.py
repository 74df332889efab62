"""Grammar backend of SGLang, and its registration.

`PalmetteBackend` is one a server, `PalmetteGrammar` one a request; SGLang's cache keeps a position at the start and copies it. SGLang
compiles on a thread pool, each rank for itself.
"""

from __future__ import annotations

import logging
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
    InvalidGrammarObject,
    register_vocab_mask_buffer,
)
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarObject

import palmette
import palmette.catalogs
import palmette.torch
from palmette import _request_compiler, _requests

logger = logging.getLogger(__name__)

ANY_JSON = "$$ANY$$"
"""Text that SGLang sends in place of a schema for `{"type": "json_object"}` and the like."""


class PalmetteGrammar(BaseGrammarObject):
    """Position of one request in its grammar; a position at the start is the template that the cache keeps.

    An accepted end token counts as a token for `rollback`.
    """

    def __init__(self, matcher: palmette.Matcher, stats: GrammarStats | None = None) -> None:
        super().__init__()
        self.matcher = matcher
        self.grammar_stats = stats
        self._most: int | None = None
        self._written_before: Callable[[], int] = lambda: 0

    def end_within(self, most: int, written_before: Callable[[], int] = lambda: 0) -> None:
        """The text is whole within so many tokens, unless no way to its end is known; a copy does not promise it.

        `written_before` counts those of them that were written in front of the text. Raises TooFewTokens where it takes more.
        """
        needed, left = self.matcher.fewest_tokens(), most - written_before()
        if needed is None:
            return
        if needed > left:
            cut = f"custom_params with '{_requests.FINISH_ARGUMENT}': 'cut'"
            raise _requests.too_few_tokens(needed, left, "max_new_tokens", cut)
        self._most, self._written_before = most, written_before

    @property
    def tokens_left(self) -> int | None:
        """Tokens that the text may still have, for its mask; None where it may be cut off, or is far from its end.

        Drafts that were accepted are written until they are taken back.
        """
        return self.tokens_left_with(0)

    def tokens_left_with(self, num_drafts: int) -> int | None:
        """The same where masks of drafts are wanted too, the longest of so many tokens: None where it is far from its end behind them."""
        if self._most is None:
            return None
        left = max(self._most - self._written_before() - self.matcher.position, 0)
        return None if _requests.near_end(self.matcher, left - num_drafts) is None else left

    def accept_token(self, token: int) -> None:
        """Commits a token; without effect after the end.

        Raises ValueError if the grammar does not allow it.
        """
        if not self.finished:
            self.matcher.commit(token)

    # SGLang reads `finished` and sets it where a request ends for reasons of its own.
    @property
    def finished(self) -> bool:
        return self._finished or self.matcher.is_ended

    @finished.setter
    def finished(self, finished: bool) -> None:
        self._finished = finished

    def is_terminated(self) -> bool:
        return self.matcher.is_ended

    def rollback(self, k: int) -> None:
        if k > 0:
            self._finished = False
            self.matcher.rollback(k)

    def copy(self) -> BaseGrammarObject:
        stats = self.grammar_stats and GrammarStats(is_cache_hit=True)
        if self.matcher.position == 0 and self.matcher.compiled.names:
            # A request has the registered catalogs as they are when it begins, not when its schema was first seen.
            return _begun(self.matcher.compiled, stats)
        return PalmetteGrammar(self.matcher.fork(), stats)

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        return _allocate(batch_size, vocab_size)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        try:
            self._fill(vocab_mask, idx)
        except palmette.LimitExceeded as error:
            # An exception here would stop the server with all its requests: end this one instead.
            logger.error("a mask exceeded its limits, and its request must end: %s", error)
            vocab_mask[idx].fill_(0)
            words = vocab_mask[idx].numpy().view("uint32")
            for token in self.matcher.ends:
                words[token >> 5] |= 1 << (token & 31)

    def _fill(self, vocab_mask: torch.Tensor, idx: int) -> None:
        if (left := self.tokens_left) is not None:
            try:
                self.matcher.fill_mask(vocab_mask, idx, tokens_left=left)
                return
            except palmette.TooFewTokens:
                _requests.log_once(logger, _requests.TOO_LATE)
        self.matcher.fill_mask(vocab_mask, idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Fills the rows of a batch in one call, on several threads; other rows stay as they are."""
        if all(isinstance(entry.grammar, PalmetteGrammar) for entry in entries):
            matchers, rows = [entry.grammar.matcher for entry in entries], [entry.row for entry in entries]
            try:
                left = [entry.grammar.tokens_left for entry in entries]
                palmette.fill_masks(matchers, vocab_mask, rows=rows, tokens_left=left)
                return
            except (palmette.LimitExceeded, palmette.TooFewTokens):
                pass  # of some row, which the rows one by one will tell
        BaseGrammarObject.fill_vocab_mask_batched(entries, vocab_mask)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        palmette.torch.apply_bitmask_(logits, vocab_mask)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        forced = self.matcher.forced_tokens()
        return (list(forced), "") if len(forced) else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        return "", -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        pass


class _UnboundGrammar(InvalidGrammarObject):
    """A grammar whose names stand for nothing, or for nothing that leaves a text; the next request may find them changed."""

    def __init__(self, compiled: palmette.CompiledGrammar, stats: GrammarStats | None, message: str) -> None:
        super().__init__(message)
        self._compiled = compiled
        self._stats = stats

    def copy(self) -> BaseGrammarObject:
        return _begun(self._compiled, self._stats)


def _begun(compiled: palmette.CompiledGrammar, stats: GrammarStats | None) -> BaseGrammarObject:
    """The position of a request at its beginning, with the registered catalogs as they are now."""
    try:
        return PalmetteGrammar(palmette.catalogs.bound(compiled).matcher(), stats)
    except (ValueError, OSError) as error:  # palmette.Error is a ValueError
        return _UnboundGrammar(compiled, stats, str(error))


def _allocate(rows: int, num_tokens: int) -> torch.Tensor:
    mask = palmette.allocate_bitmask(rows, num_tokens, like="torch")
    mask.fill_(-1)
    return mask


class PalmetteBackend(BaseGrammarBackend):
    """Compiler of one server's grammars.

    A text that is refused becomes an `InvalidGrammarObject` with the message, which SGLang sends to the client.
    """

    def __init__(
        self,
        tokenizer: Any,
        num_tokens: int | None = None,
        ends: set[int] | list[int] | int | None = None,
        *,
        compact: bool = False,
    ) -> None:
        super().__init__()
        if isinstance(ends, int):
            ends = [ends]
        vocabulary = palmette.Vocabulary.from_tokenizer(
            tokenizer, num_tokens=num_tokens, ends=sorted(ends) if ends else None
        )
        self._compiler = _request_compiler.RequestCompiler(vocabulary)
        self._compact = compact

    def initialize_vocab_mask_buffer(self, name: str, vocab_size: int, max_rows: int, device: Any) -> torch.Tensor:
        return register_vocab_mask_buffer(name, _allocate(max_rows, vocab_size), max_rows)

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        schema = True if key_string == ANY_JSON else key_string
        return self._compile("json", lambda: _requests.schema_grammar(schema, compact=self._compact))

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        return self._compile("regex", lambda: _requests.expression_grammar(key_string))

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        return self._compile("ebnf", lambda: _requests.written_grammar(key_string))

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        return self._compile("structural_tag", lambda: _requests.tag_grammar(key_string))

    def _compile(self, kind: str, grammar: Any) -> BaseGrammarObject:
        if not self._compiler.vocabulary.ends:
            return InvalidGrammarObject(f"{kind}: {_requests.NO_ENDS}")
        try:
            compiled = self._compiler.compile(grammar())
        except ValueError as error:  # palmette.Error is one
            return InvalidGrammarObject(f"{kind}: {error}")
        _requests.log_notes(logger, compiled.notes)
        return _begun(compiled, GrammarStats(dispatch_type=kind))

    # The wrapper for reasoning asks the backend, which may have no grammar at hand yet.

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        return _allocate(batch_size, vocab_size)

    move_vocab_mask = staticmethod(PalmetteGrammar.move_vocab_mask)
    apply_vocab_mask = staticmethod(PalmetteGrammar.apply_vocab_mask)

    @property
    def is_support_token_filter(self) -> bool:
        return True

    def set_token_filter(
        self,
        vocab_mask: torch.Tensor,
        token_ids: list[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        from sglang.srt.constrained.torch_ops.token_filter_torch_ops import set_token_filter_torch

        set_token_filter_torch(vocab_mask, token_ids, batch_idx, is_allowed, reset_vocab_mask)


def create_backend(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: set[int] | None = None
) -> BaseGrammarBackend:
    """Backend of a server, in the wrapper that defers grammars while a model reasons.

    SGLang wraps its own backends itself, and returns a registered one as it comes.
    """
    from sglang.srt.constrained.grammar_manager import GrammarManager
    from sglang.srt.runtime_context import get_serving

    promise_texts(GrammarManager)
    # A scheduler has imported it by now; where nothing has, nothing is drafted.
    speculative = sys.modules.get("sglang.srt.speculative.spec_utils")
    if speculative is not None:
        from palmette.sglang.drafts import plan_trees

        plan_trees(speculative)
    serving = get_serving()
    backend: BaseGrammarBackend = PalmetteBackend(
        tokenizer, vocab_size, eos_token_ids, compact=bool(serving.constrained_json_disable_any_whitespace)
    )
    if serving.reasoning_parser:
        from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
        from sglang.srt.parser.reasoning_parser import ReasoningParser

        parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
        backend = ReasonerGrammarBackend(
            backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking
        )
    try:
        from palmette.sglang import beams
    except ImportError as error:
        logger.info("this SGLang has no beam search that could have grammars: %s", error)
    else:
        beams.serve(backend)
    return backend


def promise_texts(manager: Any) -> None:
    """Makes SGLang's manager of grammars tell each the tokens of its request: a backend sees the grammar's text alone.

    A request whose text takes more is ended with the message, as one whose grammar is refused.
    """
    if manager.process_req_with_grammar.__module__ == __name__:
        return
    process, ready = manager.process_req_with_grammar, manager.get_ready_grammar_requests

    def process_req_with_grammar(self: Any, req: Any) -> bool:
        is_queued: bool = process(self, req)
        if not is_queued:
            _promise(req)
        return is_queued

    def get_ready_grammar_requests(self: Any) -> list[Any]:
        requests: list[Any] = ready(self)
        for req in requests:
            _promise(req)
        return requests

    manager.process_req_with_grammar = process_req_with_grammar
    manager.get_ready_grammar_requests = get_ready_grammar_requests


def _promise(req: Any) -> None:
    grammar, written_before = req.grammar, lambda: 0
    if isinstance(grammar, ReasonerGrammarObject):
        written_before, grammar = _reasoned(grammar), grammar.grammar
    params = req.sampling_params
    if not isinstance(grammar, PalmetteGrammar) or req.finished() or params.max_new_tokens is None:
        return
    try:
        if _requests.is_promised(params.custom_params):
            grammar.end_within(params.max_new_tokens, written_before)
    except ValueError as error:  # palmette.TooFewTokens is one
        req.set_finish_with_abort(str(error))


def _reasoned(wrapper: ReasonerGrammarObject) -> Callable[[], int]:
    """Tokens that were written before the grammar: those of the reasoning and of its end."""
    own = weakref.ref(wrapper)  # which holds the grammar

    def written() -> int:
        wrapper = own()
        if wrapper is None or wrapper.reasoning_in_grammar or wrapper.tokens_in_think < 0:
            return 0
        return wrapper.tokens_in_think + len(wrapper.think_end_ids)

    return written
