"""Masks at SGLang's trees of drafts, against SGLang's own walk over them."""

from __future__ import annotations

import json
import logging
import random
import time
from types import SimpleNamespace
from typing import List, Optional, Tuple

import pytest
from unzipped import require, small_tokenizer

require("sglang", "PALMETTE_SGLANG")

import torch
from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend, ReasonerGrammarObject
from sglang_sources import of_source

import palmette
from palmette import _requests
from palmette.sglang import PalmetteBackend
from palmette.sglang.drafts import Tree, plan_trees

TOKENIZER = small_tokenizer()
NUM_TOKENS = len(TOKENIZER) + 5
END, TOOL = TOKENIZER.convert_tokens_to_ids(["<|end|>", "<|tool|>"])
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": ["array", "boolean"]}}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
)


def spec_utils() -> SimpleNamespace:
    """SGLang's walk, out of a module that imports kernels, as a module of its own."""
    known = {"time": time, "logger": logging.getLogger("spec_utils"), "TREE_TRAVERSE_TIME_THRESHOLD": 1e9, "Req": object}
    types_ = {"BaseGrammarObject": BaseGrammarObject, "List": List, "Optional": Optional, "Tuple": Tuple}
    return SimpleNamespace(
        **of_source("speculative/spec_utils.py", ("traverse_tree", "generate_token_bitmask"), **known, **types_)
    )


@pytest.fixture(scope="module")
def backend():
    return PalmetteBackend(TOKENIZER, NUM_TOKENS, {END})


def thinking(backend_) -> ReasonerGrammarBackend:
    detector = SimpleNamespace(
        get_think_end_token_ids=lambda tokenizer: [TOOL],
        get_answer_frame=lambda: None,
        think_excluded_tokens=None,
        think_end_token="<|tool|>",
    )
    return ReasonerGrammarBackend(backend_, SimpleNamespace(detector=detector), TOKENIZER)


def random_tree(chance: random.Random, matcher: palmette.Matcher | None, num_nodes: int) -> tuple[list[int], ...]:
    """First children, next siblings and tokens of a tree; some nodes hang on none, and some orders are not parents first."""
    parents = [-1] + [chance.randrange(node) for node in range(1, num_nodes)]
    tokens, ahead = [0], [matcher]
    for node in range(1, num_nodes):
        before = ahead[parents[node]]
        allowed = [] if before is None or before.is_ended else before.allowed().tolist()
        draws = chance.random()
        if allowed and draws < 0.8:
            tokens.append(chance.choice([*allowed, *([END] if END in allowed else [])]))
        else:
            tokens.append(chance.choice([chance.randrange(len(TOKENIZER)), NUM_TOKENS + 3]))
        after = None if before is None else before.fork()
        good = after is not None and tokens[-1] < NUM_TOKENS and after.try_commit(tokens[-1])
        ahead.append(after if good else None)
    if chance.random() < 0.3:  # numbered in another order
        order = [0, *chance.sample(range(1, num_nodes), num_nodes - 1)]
        place = {node: at for at, node in enumerate(order)}
        parents = [-1 if node == 0 else place[parents[node]] for node in order]
        tokens = [tokens[node] for node in order]
    children, siblings, last = [-1] * num_nodes, [-1] * num_nodes, {}
    left_out = num_nodes - chance.randrange(3) if chance.random() < 0.3 else num_nodes
    for node in range(1, left_out):
        before = last.get(parents[node])
        if before is None:
            children[parents[node]] = node
        else:
            siblings[before] = node
        last[parents[node]] = node
    return children, siblings, tokens


def some_request(chance: random.Random, backend_: PalmetteBackend) -> SimpleNamespace | None:
    """A request at some place of its text, that reasons or has reasoned or not; None for one without a grammar."""
    if chance.random() < 0.1:
        return SimpleNamespace(grammar=None)
    kind, text = chance.choice([("json", SCHEMA), ("regex", "(ab|a)*b?"), ("regex", "tr(ue)?")])
    reasons = chance.random() < 0.4
    backend_ = thinking(backend_) if reasons else backend_
    one, is_cached = backend_.get_cached_or_future_value((kind, text), reasons)
    one = one if is_cached else one.result(timeout=60)
    one.maybe_init_reasoning(reasons)
    if reasons and chance.random() < 0.7:
        for token in [*TOKENIZER.encode("12", add_special_tokens=False), TOOL]:
            one.accept_token(token)
    inner = one.grammar if isinstance(one, ReasonerGrammarObject) else one
    begun = not reasons or one.tokens_after_end >= 0
    if begun:
        most = inner.matcher.fewest_tokens() + chance.randrange(9)
        if chance.random() < 0.5:
            inner.end_within(most)
        for _ in range(chance.randrange(5)):
            mask = one.allocate_vocab_mask(NUM_TOKENS, 1, "cpu")
            if one.is_terminated():
                break
            one.fill_vocab_mask(mask, 0)
            words = mask[0].tolist()
            one.accept_token(chance.choice([token for token in range(len(TOKENIZER)) if words[token // 32] >> token % 32 & 1]))
    return SimpleNamespace(grammar=one, inner=inner.matcher if begun else None)


@pytest.mark.parametrize("far", [None, 4])
def test_a_batchs_rows_are_those_of_sglangs_walks(backend, monkeypatch, far):
    if far:
        monkeypatch.setattr(_requests, "FAR", far)
    walk, planned = spec_utils(), spec_utils()
    plan_trees(planned)
    plan_trees(planned)
    chance = random.Random(1)
    seen = [0, 0]
    for _ in range(150):
        requests = [some_request(chance, backend) for _ in range(chance.randrange(1, 5))]
        num_nodes = chance.randrange(1, 9)
        trees = [random_tree(chance, getattr(one, "inner", None), num_nodes) for one in requests]
        arrays = [torch.tensor(each) for each in zip(*trees)]
        expected, _ = walk.generate_token_bitmask(requests, *arrays, NUM_TOKENS)
        found, grammar = planned.generate_token_bitmask(requests, *arrays, NUM_TOKENS)
        if expected is None:
            assert found is None and grammar is None
            continue
        assert torch.equal(found, expected)
        assert any(grammar is one.grammar for one in requests)
        seen[0] += int((expected != -1).any(dim=1).sum())
        seen[1] += len(expected)
    assert seen[0] > 0.2 * seen[1], "enough rows forbid something"


def test_a_batch_is_one_call_and_no_token_is_accepted(backend, monkeypatch):
    planned = spec_utils()
    plan_trees(planned)
    calls = []
    fill = palmette.fill_masks_with_trees

    def counted(matchers, *rest, **named):
        calls.append(len(matchers))
        return fill(matchers, *rest, **named)

    monkeypatch.setattr(palmette, "fill_masks_with_trees", counted)
    monkeypatch.setattr("palmette.sglang.backend.PalmetteGrammar.accept_token", None)
    requests = [SimpleNamespace(grammar=backend.dispatch_regex("[ab]*")) for _ in range(5)]
    chain = [torch.tensor([row] * 5) for row in ([1, 2, -1], [-1] * 3, [0, *TOKENIZER.encode("ab", add_special_tokens=False)])]
    mask, _ = planned.generate_token_bitmask(requests, *chain, NUM_TOKENS)
    assert calls == [5] and (mask != -1).any(dim=1).all()


def test_limits_are_told_by_the_walk(backend, monkeypatch):
    def limited(*_, **__):
        raise palmette.LimitExceeded("too many ways to read the text")

    walk, planned = spec_utils(), spec_utils()
    plan_trees(planned)
    request = SimpleNamespace(grammar=backend.dispatch_regex("[ab]*"))
    tree = [torch.tensor([row]) for row in ([1, -1], [-1, -1], [0, TOKENIZER.encode("a", add_special_tokens=False)[0]])]
    expected, _ = walk.generate_token_bitmask([request], *tree, NUM_TOKENS)
    monkeypatch.setattr(palmette, "fill_masks_with_trees", limited)
    assert torch.equal(planned.generate_token_bitmask([request], *tree, NUM_TOKENS)[0], expected)


def test_trees_with_circles_end():
    assert Tree.of([1, -1, -1], [-1, 2, 1], [0, 5, 6], 9) == Tree([1, 2], [5, 6], [-1, -1], 1)
    assert Tree.of([1, 0], [-1, -1], [0, 5], 9) == Tree([1], [5], [-1], 1)
