"""Texts that are whole within their requests' tokens, by SGLang's own manager of grammars and its wrapper for reasoning."""

from __future__ import annotations

import json
import logging
import random
from types import SimpleNamespace
from typing import Optional

import pytest
from unzipped import allowed, require, small_tokenizer

require("sglang", "PALMETTE_SGLANG", "jsonschema")

import jsonschema
import torch
from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject, GrammarRow
from sglang.srt.constrained.grammar_manager import GrammarManager
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend, ReasonerGrammarObject
from sglang_sources import of_source

from palmette import _requests
from palmette.sglang.backend import PalmetteBackend, promise_texts

TOKENIZER = small_tokenizer()
NUM_TOKENS = len(TOKENIZER) + 5
END, TOOL = TOKENIZER.convert_tokens_to_ids(["<|end|>", "<|tool|>"])
CLOSING = {token for token in range(len(TOKENIZER)) if set('"]}') & set(TOKENIZER.decode([token]))}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": ["array", "boolean"]}}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False)


class Request:
    """The members of SGLang's `Req` that its manager of grammars reads and sets."""

    def __init__(self, max_new_tokens: int | None, require_reasoning: bool = False, **wanted) -> None:
        kinds = ("json_schema", "regex", "ebnf", "structural_tag")
        members = dict.fromkeys(kinds) | {"ebnf_full_assistant": False, "custom_params": None} | wanted
        self.sampling_params = SimpleNamespace(max_new_tokens=max_new_tokens, **members)
        self.require_reasoning = require_reasoning
        self.origin_input_ids, self.output_ids = [1, 2], []
        self.grammar, self.grammar_key, self.grammar_wait_ct = None, None, 0
        self.error: str | None = None

    def finished(self) -> bool:
        return False

    def set_finish_with_abort(self, message: str) -> None:
        self.grammar, self.error = None, message


@pytest.fixture
def made(monkeypatch):
    """A manager of SGLang's over a backend, without its scheduler."""
    for name in ("process_req_with_grammar", "get_ready_grammar_requests"):
        monkeypatch.setattr(GrammarManager, name, getattr(GrammarManager, name))
    promise_texts(GrammarManager)
    promise_texts(GrammarManager)

    def make(backend=None):
        manager = GrammarManager.__new__(GrammarManager)
        manager.grammar_backend = backend or PalmetteBackend(TOKENIZER, NUM_TOKENS, {END})
        manager.scheduler = SimpleNamespace(model_config=None)
        manager.grammar_queue, manager._enable_strict_thinking = [], False
        manager.pp_rank, manager.pp_size, manager.pp_group, manager.grammar_sync_size = 0, 1, None, 1
        manager.SGLANG_GRAMMAR_POLL_INTERVAL, manager.SGLANG_GRAMMAR_MAX_POLL_ITERATIONS = 0.05, 1000
        return manager

    return make


def thinking() -> ReasonerGrammarBackend:
    """SGLang's wrapper over Palmette's backend; reasoning ends with the token `<|tool|>`."""
    detector = SimpleNamespace(
        get_think_end_token_ids=lambda tokenizer: [TOOL],
        get_answer_frame=lambda: None,
        think_excluded_tokens=None,
        think_end_token="<|tool|>",
    )
    backend = PalmetteBackend(TOKENIZER, NUM_TOKENS, {END})
    return ReasonerGrammarBackend(backend, SimpleNamespace(detector=detector), TOKENIZER)


def sent(manager, request: Request) -> Request:
    if manager.process_req_with_grammar(request):
        ready = []
        while manager.has_waiting_grammars():
            ready += manager.get_ready_grammar_requests()
        assert ready == [request]
    return request


def wanted(max_new_tokens: int | None, **more) -> Request:
    return Request(max_new_tokens, json_schema=json.dumps(SCHEMA), **more)


def fewest(manager) -> int:
    grammar = sent(manager, wanted(None)).grammar
    inner = grammar.grammar if isinstance(grammar, ReasonerGrammarObject) else grammar
    return inner.matcher.fewest_tokens()


def mask_of(grammar, batched: bool = False) -> set[int]:
    mask = grammar.allocate_vocab_mask(NUM_TOKENS, 1, "cpu")
    if batched:
        grammar.fill_vocab_mask_batched([GrammarRow(0, grammar)], mask)
    else:
        grammar.fill_vocab_mask(mask, 0)
    return allowed(mask[0].tolist(), len(TOKENIZER))


def adversary(mask: set[int], chance: random.Random) -> int:
    """The token of a model that would not end: one that closes nothing, where there is one."""
    return chance.choice(sorted(mask - CLOSING - {END}) or sorted(mask - {END}) or sorted(mask))


def write(request: Request, chance: random.Random, thought: list[int] | tuple = (), num_drafts: int = 0) -> str:
    grammar = request.grammar
    for token in thought:
        grammar.accept_token(token)
        request.output_ids.append(token)
    while len(request.output_ids) < request.sampling_params.max_new_tokens and not grammar.is_terminated():
        # A tree of drafts is walked before a token is chosen, and taken back.
        accepted = 0
        for _ in range(num_drafts):
            grammar.accept_token(adversary(mask_of(grammar), chance))
            accepted += 1
            if grammar.is_terminated() or len(request.output_ids) + accepted >= request.sampling_params.max_new_tokens:
                break
        grammar.rollback(accepted)
        token = adversary(mask_of(grammar, batched=chance.random() < 0.5), chance)
        grammar.accept_token(token)
        request.output_ids.append(token)
    return TOKENIZER.decode([token for token in request.output_ids[len(thought) :] if token != END])


@pytest.mark.parametrize(("num_drafts", "far"), [(0, None), (3, None), (0, 9), (3, 9)])
def test_texts_are_whole_within_max_new_tokens(made, monkeypatch, num_drafts, far):
    if far:  # further than a token of this schema can lengthen the way to the end
        monkeypatch.setattr(_requests, "FAR", far)
    manager = made()
    needed = fewest(manager)
    for seed in range(16):
        # The first request compiles, the others find the grammar in the cache, which knows no request's tokens.
        request = sent(manager, wanted(needed + seed % 8 * (3 if far else 1)))
        text = write(request, random.Random(seed), num_drafts=num_drafts)
        assert len(request.output_ids) <= request.sampling_params.max_new_tokens
        jsonschema.validate(json.loads(text), SCHEMA)


def test_a_batch_has_each_row_by_its_own_tokens(made):
    manager = made()
    needed = fewest(manager)
    requests = [sent(manager, wanted(most)) for most in (needed, None, needed + 9)]
    grammars = [request.grammar for request in requests]
    mask = grammars[0].allocate_vocab_mask(NUM_TOKENS, 4, "cpu")
    grammars[0].fill_vocab_mask_batched([GrammarRow(row, one) for row, one in zip((3, 0, 1), grammars)], mask)
    assert [allowed(mask[row].tolist(), len(TOKENIZER)) for row in (3, 0, 1)] == [mask_of(one) for one in grammars]
    assert mask_of(grammars[0]) < mask_of(grammars[1]) == mask_of(grammars[2])
    assert (mask[2] == -1).all()


def test_too_few_tokens_end_a_request_with_the_number(made):
    manager = made()
    needed = fewest(manager)
    for _ in range(2):  # found in the cache, and not
        request = sent(manager, wanted(needed - 1))
        message = f"the text takes {needed} more tokens to end, and {needed - 1} are left: give it {needed} or more by max_new_tokens"
        assert request.error.startswith(message) and request.grammar is None
        manager.clear()
    assert sent(manager, wanted(needed)).error is None


def test_a_request_may_ask_for_a_text_that_breaks_off(made):
    manager = made()
    request = sent(manager, wanted(fewest(manager) - 1, custom_params={_requests.FINISH_ARGUMENT: "cut"}))
    with pytest.raises(ValueError, match="Unterminated|Expecting"):
        json.loads(write(request, random.Random(0)))
    request = sent(manager, wanted(99, custom_params={_requests.FINISH_ARGUMENT: "whole"}))
    assert "palmette_finish is 'whole': give 'promised'" in request.error


@pytest.mark.parametrize("num_drafts", [0, 3])
def test_reasoning_counts_as_tokens(made, num_drafts):
    manager = made(thinking())
    needed = fewest(manager)
    for seed in range(12):
        thought = [*ids("well " * (seed % 3)), TOOL]
        request = sent(manager, wanted(len(thought) + needed + seed % 5, require_reasoning=True))
        assert isinstance(request.grammar, ReasonerGrammarObject)
        text = write(request, random.Random(seed), thought, num_drafts)
        assert len(request.output_ids) <= request.sampling_params.max_new_tokens
        jsonschema.validate(json.loads(text), SCHEMA)


def test_reasoning_that_leaves_too_few_tokens_is_logged(made, caplog):
    manager = made(thinking())
    request = sent(manager, wanted(fewest(manager) + 2, require_reasoning=True))
    _requests._LOGGED.clear()
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="Unterminated|Expecting"):
        json.loads(write(request, random.Random(0), [*ids("well "), TOOL]))
    assert [record.getMessage() for record in caplog.records if "cut off" in record.getMessage()] == [_requests.TOO_LATE]


def test_trees_of_drafts_have_the_masks_of_their_paths(made):
    """SGLang's own walk over a tree of drafts: root, a child with a child of its own, and a sibling of the first."""
    known = {"Optional": Optional, "BaseGrammarObject": BaseGrammarObject}
    traverse_tree = of_source("speculative/spec_utils.py", ("traverse_tree",), **known)["traverse_tree"]
    manager = made()
    needed = fewest(manager)
    request = sent(manager, wanted(needed + 1))
    first, second, other = ids('{"')[0], ids("a")[0], ids("{")[0]
    mask = torch.full((4, request.grammar.allocate_vocab_mask(NUM_TOKENS, 1, "cpu").shape[1]), -1, dtype=torch.int32)
    tree = [torch.tensor(each) for each in ([1, 2, -1, -1], [-1, 3, -1, -1], [0, first, second, other])]
    traverse_tree(*tree, request.grammar, mask)
    for row, path in enumerate([[], [first], [first, second], [other]]):
        alone = sent(manager, wanted(needed + 1)).grammar
        for token in path:
            alone.accept_token(token)
        assert allowed(mask[row].tolist(), len(TOKENIZER)) == mask_of(alone), path
