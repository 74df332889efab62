"""SGLang's own registry, base classes and wrapper for reasoning over Palmette's backend."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from unzipped import allowed, require, small_tokenizer

require("sglang", "PALMETTE_SGLANG")

import torch
from sglang.srt.constrained import base_grammar_backend as base
from sglang.srt.constrained.base_grammar_backend import GrammarRow, InvalidGrammarObject

import palmette
from palmette._request_compiler import LIMITS_ENVIRONMENT
from palmette.sglang import ANY_JSON, PalmetteBackend, PalmetteGrammar, beams, create_backend, register

TOKENIZER = small_tokenizer()
NUM_TOKENS = len(TOKENIZER) + 5
END, STOP, _ = TOKENIZER.convert_tokens_to_ids(["<|end|>", "<|stop|>", "<|tool|>"])


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False)


@pytest.fixture(scope="module")
def backend():
    return PalmetteBackend(TOKENIZER, NUM_TOKENS, {END, STOP})


def grammar(backend_, kind: str, text: str):
    value, cached = backend_.get_cached_or_future_value((kind, text), False)
    if cached:
        return value
    value = value.result(timeout=60)
    backend_.set_cache((kind, text), value.copy())
    return value


def mask_of(one) -> set[int]:
    mask = one.allocate_vocab_mask(NUM_TOKENS, 1, "cpu")
    one.fill_vocab_mask(mask, 0)
    return allowed(mask[0].tolist())


SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]})
TAG = json.dumps(
    {
        "type": "structural_tag",
        "format": {
            "type": "triggered_tags",
            "triggers": ["<f"],
            "tags": [{"begin": "<f=a>", "content": {"type": "json_schema", "json_schema": {"type": "boolean"}}, "end": "</f>"}],
        },
    }
)
KINDS = [
    ("json", SCHEMA, '{"a":true}', '{"a":1'),
    ("json", ANY_JSON, "[12]", "]"),
    ("regex", "(ab)+", "abab", "b"),
    ("ebnf", 'root ::= "x" root | "y"', "xxy", "z"),
    ("full_assistant_ebnf", 'root ::= "x"', "x", "y"),
    ("structural_tag", TAG, "so <f=a>true</f>", "<f=a>1"),
]


@pytest.mark.parametrize(("kind", "text", "good", "bad"), KINDS, ids=lambda value: str(value)[:20])
def test_kinds_of_requests_allow_their_texts_and_no_others(backend, kind, text, good, bad):
    one = grammar(backend, kind, text)
    assert isinstance(one, PalmetteGrammar)
    for token in [*ids(good), STOP]:
        assert not one.finished and token in mask_of(one)
        one.accept_token(token)
    assert one.finished and one.is_terminated()
    one.accept_token(END)  # without effect after the end
    other = grammar(backend, kind, text)
    assert not other.finished, "the cache's template is at the start"
    with pytest.raises(ValueError, match="token"):
        for token in ids(bad):
            other.accept_token(token)


def test_a_cached_grammar_is_copied(backend):
    first = grammar(backend, "regex", "[xyz]{3}")
    start = mask_of(first)
    second, cached = backend.get_cached_or_future_value(("regex", "[xyz]{3}"), False)
    assert cached
    for token in ids("xyz"):
        second.accept_token(token)
    third, _ = backend.get_cached_or_future_value(("regex", "[xyz]{3}"), False)
    assert mask_of(third) == mask_of(first) == start
    assert mask_of(second) == {END, STOP}


def test_rollback_takes_the_end_back(backend):
    one = grammar(backend, "regex", "ab")
    masks = [mask_of(one)]
    for token in ids("ab"):
        one.accept_token(token)
        masks.append(mask_of(one))
    one.accept_token(END)
    assert one.finished
    one.rollback(1)
    assert not one.finished and mask_of(one) == masks[2]
    one.rollback(2)
    assert mask_of(one) == masks[0]


def test_a_batch_is_filled_as_its_rows_are_and_others_stay(backend):
    grammars = [grammar(backend, kind, text) for kind, text, *_ in KINDS]
    rows = [5, 0, 3, 7, 2, 6]
    mask = grammars[0].allocate_vocab_mask(NUM_TOKENS, 8, "cpu")
    PalmetteGrammar.fill_vocab_mask_batched([GrammarRow(row, one) for row, one in zip(rows, grammars)], mask)
    assert [allowed(mask[row].tolist()) for row in rows] == [mask_of(one) for one in grammars]
    assert (mask[[1, 4]] == -1).all()


def test_masks_are_applied_and_reset(backend):
    one = grammar(backend, "regex", "[0-9]")
    mask = one.move_vocab_mask(one.allocate_vocab_mask(NUM_TOKENS, 2, "cpu"), "cpu")
    one.fill_vocab_mask(mask, 1)
    logits = torch.zeros(2, NUM_TOKENS)
    base.GrammarMask(one, mask).apply(logits)
    assert torch.isfinite(logits[0]).all()
    assert set(torch.nonzero(torch.isfinite(logits[1])).flatten().tolist()) == {ids(digit)[0] for digit in "0123456789"}
    one.reset_vocab_mask(mask)
    assert (mask == -1).all()


def test_a_limit_ends_one_request_and_not_the_server(backend, monkeypatch):
    class Limited:
        ends = [STOP]

        def fill_mask(self, *_):
            raise palmette.LimitExceeded("too many ways to read the text")

    def limited(*_, **__):
        raise palmette.LimitExceeded("row 1: too many ways to read the text")

    monkeypatch.setattr(palmette, "fill_masks", limited)
    sound, wrong = grammar(backend, "regex", "[0-9]"), PalmetteGrammar(Limited())
    mask = sound.allocate_vocab_mask(NUM_TOKENS, 3, "cpu")
    PalmetteGrammar.fill_vocab_mask_batched([GrammarRow(2, sound), GrammarRow(1, wrong)], mask)
    assert allowed(mask[1].tolist()) == {STOP}
    assert allowed(mask[2].tolist()) == mask_of(sound)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("json", '{"type": "objekt"}', "json: .*at \"/type\""),
        ("json", "{", "json: "),
        ("regex", "(a", "regex: "),
        ("ebnf", 'root ::= missing "a"', "ebnf: .*missing"),
        ("structural_tag", '{"type": "structural_tag"}', "structural_tag: "),
    ],
)
def test_what_is_refused_carries_its_message(backend, kind, text, message):
    one = grammar(backend, kind, text)
    assert isinstance(one, InvalidGrammarObject)
    import re

    assert re.search(message, one.error_message)


def test_a_grammar_beyond_the_budget_is_refused_alone(monkeypatch):
    monkeypatch.setenv(LIMITS_ENVIRONMENT, '{"steps": 1000}')
    small = PalmetteBackend(TOKENIZER, NUM_TOKENS, {END})
    for _ in range(2):  # compiled, and found in SGLang's cache
        refused = grammar(small, "regex", "(a|b|ab){1,60}c(a|b|x){1,60}")
        assert isinstance(refused, InvalidGrammarObject)
        assert refused.error_message.startswith("regex: the work budget of 1000 steps") and LIMITS_ENVIRONMENT in refused.error_message
    assert mask_of(grammar(small, "regex", "a")) == set(ids("a"))


def test_registration_adds_one_choice():
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES

    register()
    register()
    assert GRAMMAR_BACKEND_CHOICES.count("palmette") == 1
    assert base.GRAMMAR_BACKEND_REGISTRY["palmette"] is create_backend


def test_the_installed_package_is_found_by_sglang(monkeypatch):
    from sglang.srt import plugins

    monkeypatch.setenv("SGLANG_PLUGINS", "palmette")
    found = plugins.load_plugins_by_group(plugins.GENERAL_PLUGINS_GROUP)
    assert {name: function for name, (function, _) in found.items()} == {"palmette": register}


class Thinker:
    """The part of a parser of reasoning that the wrapper asks for: its end is the token `<|tool|>`."""

    def __init__(self, *, model_type, stream_reasoning, tokenizer):
        self.detector = SimpleNamespace(
            get_think_end_token_ids=lambda tokenizer: tokenizer.convert_tokens_to_ids(["<|tool|>"]),
            get_answer_frame=lambda: None,
            think_excluded_tokens=None,
            think_end_token="<|tool|>",
        )


def test_reasoning_comes_before_the_grammar(monkeypatch):
    import sglang.srt.parser.reasoning_parser as parsers
    import sglang.srt.runtime_context as context
    from sglang.srt.constrained.grammar_manager import GrammarManager

    serving = SimpleNamespace(
        reasoning_parser="thinker", enable_strict_thinking=False, constrained_json_disable_any_whitespace=True
    )
    monkeypatch.setattr(context, "get_serving", lambda: serving)
    monkeypatch.setattr(parsers, "ReasoningParser", Thinker)
    served = []
    monkeypatch.setattr(beams, "serve", served.append)
    backend_ = create_backend(None, TOKENIZER, NUM_TOKENS, {END})
    assert served == [backend_], "beams may have its grammars"
    assert GrammarManager.process_req_with_grammar.__module__ == "palmette.sglang.backend", "requests tell it their tokens"
    one, _ = backend_.get_cached_or_future_value(("json", SCHEMA), True)
    one = one.result(timeout=60)
    thinking, answer = ids("well, 12"), ids('{"a":true}')
    for token in [*thinking, TOKENIZER.convert_tokens_to_ids("<|tool|>")]:
        mask = one.allocate_vocab_mask(NUM_TOKENS, 1, "cpu")
        one.fill_vocab_mask(mask, 0)
        assert token in allowed(mask[0].tolist()), "reasoning is free"
        one.accept_token(token)
    mask = one.allocate_vocab_mask(NUM_TOKENS, 1, "cpu")
    one.fill_vocab_mask(mask, 0)
    assert allowed(mask[0].tolist()) < set(range(NUM_TOKENS)) and ids("{")[0] in allowed(mask[0].tolist())
    assert ids(" ")[0] not in allowed(mask[0].tolist()), "no whitespace, as the server's option says"
    for token in [*answer, END]:
        one.accept_token(token)
    assert one.is_terminated()
