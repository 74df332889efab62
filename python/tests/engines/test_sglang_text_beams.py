"""SGLang's own coordinator of beam searches over texts of grammars, against the search by its definition."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from unzipped import require, small_tokenizer

require("sglang", "PALMETTE_SGLANG", "jsonschema")

import jsonschema
import numpy as np
import torch
from sglang.srt.beam_search.joint_select import joint_select
from sglang_loop import Loop

import palmette
from palmette.sglang import PalmetteBackend, beams
from palmette.sglang.text_beams import chosen_beams
from test_sglang_beams import hooked  # noqa: F401

TOKENIZER = small_tokenizer()
NUM_TOKENS = len(TOKENIZER) + 5
END, STOP, _ = TOKENIZER.convert_tokens_to_ids(["<|end|>", "<|stop|>", "<|tool|>"])
SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "true", 12]}, "b": {"type": "boolean"}},
    "required": ["a"],
    "additionalProperties": False,
}
PROMPT = [1, 2, 3]


@pytest.fixture
def backend(hooked, monkeypatch):  # noqa: F811
    made = PalmetteBackend(TOKENIZER, NUM_TOKENS, {END, STOP}, compact=True)
    monkeypatch.setattr(beams, "_BACKEND", lambda: made)
    return made


def logits(histories: torch.Tensor) -> torch.Tensor:
    """Logits that depend on the history alone; a longer text becomes more likely to end."""
    rows = []
    for history in histories.tolist():
        row = np.random.default_rng(history).standard_normal(NUM_TOKENS + 30).astype(np.float32)
        row[[END, STOP]] += 0.2 * len(history)
        rows.append(row)
    return torch.from_numpy(np.stack(rows))


def definition(compiled: palmette.CompiledGrammar, width: int, most: int, is_promised: bool) -> list[tuple[list[int], float]]:
    """The search, beam by beam and candidate by candidate."""
    alive: list[tuple[list[int], torch.Tensor]] = [([], torch.tensor(0.0))]
    done: list[tuple[list[int], float]] = []
    for step in range(most):
        candidates = []
        for beam, (written, score) in enumerate(alive):
            matcher = compiled.matcher()
            matcher.commit_all(written)
            bitmask = palmette.allocate_bitmask(1, NUM_TOKENS)
            matcher.fill_mask(bitmask, tokens_left=most - step if is_promised else None)
            row = logits(torch.tensor([PROMPT + written]))[0]
            log_probs = row - torch.logsumexp(row, dim=0)
            allowed = [token for token in range(NUM_TOKENS) if int(bitmask[0][token // 32]) >> token % 32 & 1]
            best = sorted(allowed, key=lambda token: (-row[token].item(), token))[: 2 * width]
            candidates += [(score + log_probs[token], beam, token) for token in best]
        candidates.sort(key=lambda each: (-each[0].item(), *each[1:]))
        if step + 1 == most:
            done += [(alive[beam][0] + [token], score.item()) for score, beam, token in candidates[:width]]
            break
        following: list[tuple[list[int], torch.Tensor]] = []
        for score, beam, token in candidates[: 2 * width]:
            if len(following) == width:
                break
            if token in (END, STOP):
                done.append((alive[beam][0] + [token], score.item()))
            else:
                following.append((alive[beam][0] + [token], score))
        alive = following
        if not alive:
            break
    done.sort(key=lambda each: -each[1] / len(each[0]))
    return done[:width]


GRAMMARS = [
    ({"json_schema": json.dumps(SCHEMA)}, lambda: palmette.Grammar.from_json_schema(SCHEMA, whitespace="compact")),
    ({"regex": "tr(ue)?|12*"}, lambda: palmette.Grammar.from_regex("tr(ue)?|12*")),
    ({"ebnf": 'root ::= "x" root | "y"'}, lambda: palmette.Grammar.from_gbnf('root ::= "x" root | "y"')),
]


@pytest.mark.parametrize(("wanted", "grammar"), GRAMMARS, ids=["json", "regex", "ebnf"])
@pytest.mark.parametrize(("width", "most"), [(2, 12), (5, 14), (24, 12)])
@pytest.mark.parametrize("is_promised", [True, False])
def test_texts_are_those_of_the_definition(backend, monkeypatch, wanted, grammar, width, most, is_promised):
    vocabulary = palmette.Vocabulary.from_tokenizer(TOKENIZER, num_tokens=NUM_TOKENS, ends=sorted({END, STOP}))
    compiled = grammar().compile(vocabulary)
    params = {} if is_promised else {"custom_params": {"palmette_finish": "cut"}}
    loop = Loop(monkeypatch, logits, 10_000)
    for lags in (False, True):  # compiled, and found in the cache
        request = loop.sent(
            PROMPT, TOKENIZER, beam_width=width, n=width, max_new_tokens=most, stop_token_ids=[END, STOP], **wanted, **params
        )
        assert request.refusal is None
        plain = loop.sent([4, 4], TOKENIZER, beam_width=3, n=3, max_new_tokens=most)
        found, others = loop.run(request, plain, lags=lags)
        expected = definition(compiled, width, most, is_promised)
        assert [result.tokens for result in found] == [tokens for tokens, _ in expected]
        assert np.allclose([result.cum_logprob for result in found], [score for _, score in expected], atol=1e-4)
        assert len(others) == 3
        for result in found:
            ends = result.tokens[-1] in (END, STOP)
            assert (result.matched_token is not None) == ends
            matcher = compiled.matcher()
            matcher.commit_all(result.tokens)
            if is_promised:
                assert matcher.is_accepting, "whole within its tokens"
                if "json_schema" in wanted:
                    jsonschema.validate(json.loads(TOKENIZER.decode(result.tokens[: -1 if ends else None])), SCHEMA)


def test_the_rule_of_the_choice_is_sglangs():
    chance = np.random.default_rng(0)
    for _ in range(50):
        width, rows, stops = int(chance.integers(1, 6)), int(chance.integers(1, 5)), torch.tensor([2, 5])
        count = 2 * width
        total = torch.from_numpy(chance.permutation(rows * count).astype(np.float32).reshape(rows, count))
        top_logprobs, order = total.sort(dim=1, descending=True)
        tokens = torch.from_numpy(chance.integers(0, 8, (rows, count))).gather(1, order)
        theirs = joint_select(torch.zeros(rows), top_logprobs, tokens, stops, width)
        scores, at = top_logprobs.reshape(-1).sort(descending=True)
        ours = chosen_beams(scores[:count], at[:count] // count, tokens.reshape(-1)[at[:count]], stops, width)
        alive, done = int(theirs.num_survivors), int(theirs.num_finished)
        assert done == int(ours.num_finished)
        for name in ("fin_tokens", "fin_parent_idx", "fin_cum_logprobs"):
            assert torch.equal(getattr(theirs, name)[:done], getattr(ours, name)[:done])
        for name in ("next_tokens", "parent_idx", "new_cum_logprobs"):
            assert torch.equal(getattr(theirs, name)[:alive], getattr(ours, name)[:alive])
        assert (ours.new_cum_logprobs[alive:] == -torch.inf).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"regex": "(a", "max_new_tokens": 9}, "this group has no end"),
        ({"json_schema": json.dumps(SCHEMA), "max_new_tokens": 3}, "more tokens to end, and 3 are left"),
    ],
)
def test_grammars_that_fail_end_their_request_alone(backend, monkeypatch, params, message):
    loop = Loop(monkeypatch, logits, 10_000)
    failing = loop.sent(PROMPT, TOKENIZER, beam_width=4, n=4, **params)
    sound = loop.sent([4, 4], TOKENIZER, beam_width=3, n=3, max_new_tokens=4)
    assert failing.refusal is None, "it is compiled while the prompt is read"
    found = loop.run(failing, sound)
    assert found[0] == [] and message in failing.finished_reason.message and len(found[1]) == 3


def test_what_cannot_be_is_refused_before_the_search(backend, monkeypatch):
    loop = Loop(monkeypatch, logits, 10_000)
    assert "ignore_eos" in loop.sent(PROMPT, TOKENIZER, beam_width=4, regex="a", ignore_eos=True).refusal
    finish = {"palmette_finish": "whole"}
    assert "give 'promised'" in loop.sent(PROMPT, TOKENIZER, beam_width=4, regex="a", custom_params=finish).refusal
    other = SimpleNamespace()
    monkeypatch.setattr(beams, "_BACKEND", lambda: other)
    assert "--grammar-backend palmette" in loop.sent(PROMPT, TOKENIZER, beam_width=4, regex="a").refusal
    monkeypatch.setattr(beams, "_BACKEND", None)
    assert "not supported with constrained decoding" in loop.sent(PROMPT, TOKENIZER, beam_width=4, regex="a").refusal


def test_tokens_come_to_the_host_once_a_step(backend, monkeypatch):
    from palmette.sglang import text_beams

    copied: list[Any] = []
    on_host = text_beams._Chosen.on_host
    monkeypatch.setattr(text_beams._Chosen, "on_host", lambda self: copied.append(1) or on_host(self))
    loop = Loop(monkeypatch, logits, 10_000)
    request = loop.sent(PROMPT, TOKENIZER, beam_width=4, n=4, max_new_tokens=6, regex="[ab]{9}|a", stop_token_ids=[END])
    (found,) = loop.run(request)
    assert len(copied) <= 5 and [result.tokens for result in found][0][-1] == END
