"""Texts that are whole within their requests' tokens, by vLLM's own manager and its own rule of where a request stops."""

from __future__ import annotations

import json
import logging
import random
from types import SimpleNamespace

import pytest
from unzipped import allowed, require

require("vllm", "PALMETTE_VLLM", "jsonschema")

import jsonschema
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.core.sched.utils import check_stop
from vllm_requests import (
    END,
    TOKENIZER,
    TOOL,
    ids,
    manager,
    registered,  # noqa: F401
    request,
    started,
)

import palmette
from palmette import _requests
from palmette.vllm.backend import PalmetteGrammar

pytestmark = pytest.mark.usefixtures("registered")

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": ["array", "boolean"]}}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
CLOSING = {token for token in range(len(TOKENIZER)) if set('"]}') & set(TOKENIZER.decode([token]))}
MODEL_LENGTH = 4096


def fewest(engine) -> int:
    return started(engine, request("fewest", json=SCHEMA))["fewest"].structured_output_request.grammar._matcher.fewest_tokens()


def adversary(mask: set[int], chance: random.Random) -> int:
    """The token of a model that would not end: one that closes nothing, where there is one."""
    choices = sorted(mask - CLOSING - {END}) or sorted(mask - {END}) or sorted(mask)
    return chance.choice(choices)


def deliver(engine, one, tokens: list[int]) -> None:
    """What the scheduler does with tokens that a model wrote."""
    for count, token in enumerate(tokens, start=1):
        one.append_output_token_ids(token)
        if check_stop(one, MODEL_LENGTH):
            tokens = tokens[:count]
            break
    assert engine.accept_tokens(one, tokens)


def write(engine, one, chance: random.Random, num_drafts: int = 0) -> str:
    """Writes a request's text as an adversary would, some tokens at a time where it drafts; its text."""
    requests = {one.request_id: one}
    while not one.is_finished():
        drafts = engine.validate_tokens(one, drafted(one, chance, num_drafts)) if num_drafts else []
        rows = engine.grammar_bitmask(requests, [one.request_id], {one.request_id: drafts} if drafts else {})
        tokens = []
        for row in rows[: len(drafts) + 1]:
            mask = allowed(row, len(TOKENIZER))
            draft = drafts[len(tokens)] if len(tokens) < len(drafts) else None
            assert draft is None or draft in mask, "drafts that were looked at are allowed"
            taken = draft is not None and chance.random() < 0.7
            tokens.append(draft if taken else adversary(mask, chance))
            if tokens[-1] != draft or tokens[-1] == END:
                break
        deliver(engine, one, tokens)
    return TOKENIZER.decode([token for token in one.output_token_ids if token != END])


def drafted(one, chance: random.Random, most: int) -> list[int]:
    """Tokens that the grammar allows one after another, as a draft model may propose them."""
    ahead, tokens = one.structured_output_request.grammar._matcher.fork(), []
    for _ in range(chance.randrange(most + 1)):
        mask = set(ahead.allowed().tolist())
        if not mask:
            break
        tokens.append(adversary(mask, chance))
        ahead.commit(tokens[-1])
    return tokens


@pytest.mark.parametrize(("num_drafts", "far"), [(0, None), (3, None), (0, 9), (3, 9)])
def test_texts_are_whole_within_max_tokens(monkeypatch, num_drafts, far):
    if far:  # further than a token of this schema can lengthen the way to the end
        monkeypatch.setattr(_requests, "FAR", far)
    engine = manager(monkeypatch, drafts=num_drafts)
    needed = fewest(engine)
    for seed in range(24):
        one = request(f"r{seed}", max_tokens=needed + seed % 8 * (3 if far else 1), json=SCHEMA)
        started(engine, one)
        text = write(engine, one, random.Random(seed), num_drafts)
        assert len(one.output_token_ids) <= one.max_tokens
        jsonschema.validate(json.loads(text), SCHEMA)


def test_rows_of_drafts_have_the_tokens_behind_them(monkeypatch):
    engine = manager(monkeypatch, drafts=3)
    needed = fewest(engine)
    begun, drafts = ids('{"a":"'), ids("xyx")
    one = request("one", max_tokens=needed + 3, json=SCHEMA)
    # Another request's rows come first.
    requests = started(engine, request("zero", regex="x+"), one)
    deliver(engine, one, begun)
    rows = engine.grammar_bitmask(requests, ["zero", "one"], {"one": drafts})[4:]
    for taken in range(4):
        fresh = request("fresh", max_tokens=needed + 3, json=SCHEMA)
        alone = started(engine, fresh)
        deliver(engine, fresh, [*begun, *drafts[:taken]])
        expected = engine.grammar_bitmask(alone, ["fresh"], {})[0]
        assert allowed(rows[taken]) == allowed(expected), taken
        assert (ids("x")[0] in allowed(expected)) == (taken < 3)
    # Tokens that were taken back do not count.
    assert allowed(engine.grammar_bitmask(requests, ["one"], {})[0]) == allowed(rows[0])


def test_drafts_that_leave_no_way_are_not_looked_at(monkeypatch):
    engine = manager(monkeypatch, drafts=4)
    needed = fewest(engine)
    one = request("one", max_tokens=needed + 1, json=SCHEMA)
    requests = started(engine, one)
    grammar = one.structured_output_request.grammar
    prefix = ids('{"a":"')
    assert grammar.validate_tokens([*prefix, *ids("xyz")]) == [*prefix, *ids("x")]
    deliver(engine, one, [*prefix, *ids("x")])
    assert not allowed(engine.grammar_bitmask(requests, ["one"], {})[0]) & set(ids("y"))


def test_too_few_tokens_refuse_a_request_before_it_runs(monkeypatch):
    engine = manager(monkeypatch)
    needed = fewest(engine)
    engine.grammar_init(one := request("one", max_tokens=needed - 1, json=SCHEMA))
    message = f"takes {needed} more tokens.*{needed - 1} are left: give it {needed} or more.*vllm_xargs"
    with pytest.raises(palmette.TooFewTokens, match=message) as raised:
        one.structured_output_request._grammar.result(timeout=60)
    assert (raised.value.needed, raised.value.left) == (needed, needed - 1)
    assert isinstance(one.structured_output_request.grammar, Exception), "the scheduler ends this request, and no other"
    # A prompt in front leaves less of the model's length.
    engine = manager(monkeypatch, max_model_len=needed)
    engine.grammar_init(other := request("other", json=SCHEMA))
    with pytest.raises(palmette.TooFewTokens):
        other.structured_output_request._grammar.result(timeout=60)


def test_a_request_may_ask_for_a_text_that_breaks_off(monkeypatch):
    engine = manager(monkeypatch)
    needed = fewest(engine)
    one = request("one", max_tokens=needed - 1, extra_args={_requests.FINISH_ARGUMENT: "cut"}, json=SCHEMA)
    started(engine, one)
    with pytest.raises(ValueError, match="Unterminated|Expecting"):
        json.loads(write(engine, one, random.Random(0)))


@pytest.mark.parametrize("wanted", [{"resumable": True}, {"is_diffusion": True}], ids=str)
def test_what_goes_on_behind_its_tokens_is_not_promised(monkeypatch, wanted):
    is_diffusion = wanted.pop("is_diffusion", False)
    engine = manager(monkeypatch, is_diffusion=is_diffusion)
    started(engine, request("one", max_tokens=1, json=SCHEMA, **wanted))


def test_the_check_in_front_knows_how_texts_finish():
    from vllm.config import StructuredOutputsConfig

    def check(finish):
        wanted = StructuredOutputsParams(json=SCHEMA)
        params = SamplingParams(structured_outputs=wanted, extra_args={_requests.FINISH_ARGUMENT: finish})
        config = StructuredOutputsConfig(backend="guidance")
        params._validate_structured_outputs(SimpleNamespace(is_diffusion=False), config, TOKENIZER)

    check("cut")
    check("promised")
    with pytest.raises(VLLMValidationError, match="palmette_finish is 'whole': give 'promised'.*'cut'"):
        check("whole")


class Thinker:
    """A reasoner of vLLM's: reasoning ends with the token `<|tool|>`."""

    def __init__(self, tokenizer):
        pass

    def is_reasoning_end(self, input_ids):
        return TOOL in list(input_ids)

    def is_reasoning_end_streaming(self, input_ids, delta_ids):
        return TOOL in list(delta_ids)


@pytest.mark.parametrize("num_drafts", [0, 3])
def test_reasoning_counts_as_tokens(monkeypatch, num_drafts):
    engine = manager(monkeypatch, drafts=num_drafts)
    engine.reasoner_cls = Thinker
    needed = fewest(engine)
    for seed in range(12):
        thought = [*ids("well " * (seed % 3)), TOOL]
        one = request(f"r{seed}", max_tokens=len(thought) + needed + seed % 5, json=SCHEMA)
        requests = started(engine, one)
        # Reasoning that ends within a draft: the row behind it is the first of the text.
        behind = len(thought) - min(num_drafts, len(thought))
        drafts = thought[behind:]
        deliver(engine, one, thought[:behind])
        if drafts:
            drafts = engine.validate_tokens(one, drafts)
            rows = engine.grammar_bitmask(requests, [one.request_id], {one.request_id: drafts})
            first = adversary(allowed(rows[len(drafts)], len(TOKENIZER)), random.Random(seed))
            deliver(engine, one, [*drafts, first])
        text = write(engine, one, random.Random(seed), num_drafts)
        assert len(one.output_token_ids) <= one.max_tokens
        jsonschema.validate(json.loads(text.split("<|tool|>")[1]), SCHEMA)


def test_reasoning_that_leaves_too_few_tokens_is_logged(monkeypatch, caplog):
    engine = manager(monkeypatch)
    engine.reasoner_cls = Thinker
    needed = fewest(engine)
    one = request("one", max_tokens=needed + 2, json=SCHEMA)
    requests = started(engine, one)
    deliver(engine, one, [*ids("well "), TOOL])
    _requests._LOGGED.clear()
    with caplog.at_level(logging.WARNING):
        mask = allowed(engine.grammar_bitmask(requests, ["one"], {})[0])
        engine.grammar_bitmask(requests, ["one"], {})
    assert ids('{"')[0] in mask
    assert [record.getMessage() for record in caplog.records if "cut off" in record.getMessage()] == [_requests.TOO_LATE]
    assert isinstance(one.structured_output_request.grammar, PalmetteGrammar)
    with pytest.raises(ValueError, match="Unterminated|Expecting"):
        json.loads(write(engine, one, random.Random(0)).split("<|tool|>")[1])
