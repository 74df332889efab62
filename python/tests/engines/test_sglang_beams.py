"""SGLang's own coordinator of beam searches over items of catalogs, against the search of `palmette.transformers`."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from unzipped import require

require("sglang", "PALMETTE_SGLANG")

import numpy as np
import torch
from models import FIRST_CODE, tiny_model
from sglang.srt.plugins import hook_registry
from sglang.srt.plugins.hook_registry import HookRegistry
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang_loop import Loop, coordinators

import palmette
from palmette import _catalog_requests, catalogs
from palmette.sglang import beams
from palmette.transformers import beam_search

LEVELS, CODES = 3, 12
NUM_TOKENS = FIRST_CODE + LEVELS * CODES + 5
TOKENS = [[FIRST_CODE + level * CODES, CODES] for level in range(LEVELS)]


@pytest.fixture
def hooked(monkeypatch):
    """SGLang with the hooks, applied by its own registry, and as it was afterwards."""
    for target in beams.HOOKS:
        holder, name = target.removeprefix(f"{beams._COORDINATOR}.").rpartition(".")[::2]
        owner = getattr(coordinators, holder) if holder else coordinators
        monkeypatch.setattr(owner, name, owner.__dict__[name])
    monkeypatch.setattr(HookRegistry, "_hooks", type(HookRegistry._hooks)(list))
    monkeypatch.setattr(HookRegistry, "_patched", set())
    beams.register()
    HookRegistry.apply_hooks()
    assert set(beams.HOOKS) == HookRegistry._patched


class Shop:
    """A catalog that the environment names, in tokens of a model, and the model."""

    def __init__(self, folder: Any, num_items: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.codes = rng.integers(0, CODES, size=(num_items, LEVELS))
        self.catalog = palmette.Catalog.build(
            self.codes,
            ids=[f"i{number}" for number in range(num_items)],
            attributes={"price": rng.integers(0, 100, num_items).tolist()},
        )
        self.catalog.save(folder / "shop.palm")
        self.constraint = self.catalog.constraint([tuple(each) for each in TOKENS], num_tokens=NUM_TOKENS)
        self.model = tiny_model("qwen3", NUM_TOKENS, seed)

    def logits(self, histories: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            return self.model(input_ids=histories).logits[:, -1]

    def expected(self, prompt: list[int], width: int, condition: Any = None, constraint: Any = None) -> Any:
        """The search of `palmette.transformers`, by the constraint on the host."""
        (found,) = self.model.generate(
            torch.tensor([prompt]),
            do_sample=False,
            max_new_tokens=LEVELS,
            custom_generate=beam_search,
            constraint=constraint or self.constraint,
            beam_width=width,
            filters=None if condition is None else [condition],
            share_prompt=False,
        )
        return found


@pytest.fixture
def shop(tmp_path, monkeypatch):
    made = Shop(tmp_path, 400)
    named(monkeypatch, tmp_path, {"path": str(tmp_path / "shop.palm")})
    yield made
    _catalog_requests.catalogs.cache_clear()


def named(monkeypatch: Any, folder: Any, entry: dict[str, str]) -> None:
    (folder / "catalogs.json").write_text(json.dumps({"shop": entry | {"code_tokens": TOKENS}}))
    monkeypatch.setenv(catalogs.ENVIRONMENT, str(folder / "catalogs.json"))
    catalogs._settings_of.cache_clear()
    _catalog_requests.catalogs.cache_clear()


def wish(**argument: Any) -> dict[str, str]:
    return {"palmette": json.dumps(argument)}


def check_same(results: list[Any], expected: Any) -> None:
    assert [result.tokens for result in results] == expected.sequences.tolist()
    scores = torch.tensor([result.cum_logprob for result in results])
    assert torch.allclose(scores, expected.scores, atol=2e-5)
    assert [result.beam_score for result in results] == sorted((result.beam_score for result in results), reverse=True)


CHEAP = {"range": {"price": {"lt": 2}}}
PROMPT = [3, 5, 7, 2]


@pytest.mark.parametrize("lags", [False, True])
@pytest.mark.parametrize("width", [2, 7, 50, 300])
def test_items_are_those_of_an_exact_search(hooked, monkeypatch, shop, width, lags):
    loop = Loop(monkeypatch, shop.logits, 10_000)
    requests = [
        loop.sent(PROMPT, beam_width=width, n=width, custom_params=wish()),
        loop.sent(PROMPT[:2], beam_width=width, n=width, custom_params=wish(filter=CHEAP)),
        loop.sent([6, 6, 1], beam_width=3, n=3, custom_params=wish(exclude=["i1", "i2"])),
    ]
    assert [request.refusal for request in requests] == [None] * 3
    few = {"exclude": ["i1", "i2"], "must": []}
    found = loop.run(*requests, lags=lags)
    check_same(found[0], shop.expected(PROMPT, width))
    check_same(found[1], shop.expected(PROMPT[:2], width, CHEAP))
    check_same(found[2], shop.expected([6, 6, 1], 3, few))
    assert not loop.pool.token_of_slot or set(loop.pool.token_of_slot.values()) <= {*PROMPT, 6, 1}, "slots of beams are given back"
    by_id = dict(zip(shop.catalog.ids(), shop.catalog.codes().tolist(), strict=True))
    cheap = {tuple(by_id[name]) for name in shop.catalog.filter(CHEAP).ids()}
    first = [token for token, _ in TOKENS]
    assert all(tuple(token - at for token, at in zip(one.tokens, first, strict=True)) in cheap for one in found[1])
    assert len(found[1]) == min(width, len(cheap)), "fewer items than beams are fewer results"


def test_equal_scores_come_in_the_order_of_beams_and_tokens(hooked, monkeypatch, shop):
    loop = Loop(monkeypatch, lambda histories: torch.zeros(len(histories), NUM_TOKENS), 10_000)
    request = loop.sent(PROMPT, beam_width=40, n=40, custom_params=wish())
    (found,) = loop.run(request)
    rows = sorted({tuple(row) for row in (shop.codes + [token for token, _ in TOKENS]).tolist()})
    assert [tuple(result.tokens) for result in found] == rows[:40]


def test_requests_without_the_argument_go_their_old_way(monkeypatch, shop, request):
    def found() -> Any:
        loop = Loop(monkeypatch, shop.logits, NUM_TOKENS)
        one = loop.sent(PROMPT, beam_width=5, n=5, max_new_tokens=4)
        assert one.refusal is None and type(one.beam_group) is beams.BeamGroup
        return [(each.tokens, each.cum_logprob) for each in loop.run(one)[0]]

    before = found()
    request.getfixturevalue("hooked")
    assert found() == before


def test_a_request_keeps_its_generation_of_a_live_catalog(hooked, monkeypatch, shop, tmp_path):
    with palmette.LiveCatalog.create(tmp_path / "live", shop.catalog) as live:
        named(monkeypatch, tmp_path, {"live": str(tmp_path / "live")})
        loop = Loop(monkeypatch, shop.logits, 10_000)
        old = loop.sent(PROMPT, beam_width=20, n=20, custom_params=wish())
        best = shop.expected(PROMPT, 20)
        gone = [name for names in best.items[:5] for name in names]
        generation = live.apply([{"delete": name} for name in gone])
        entry = _catalog_requests.catalogs().entry("shop")
        until = time.monotonic() + 20
        while entry._reader.refresh() < generation and time.monotonic() < until:
            time.sleep(0.01)
        new = loop.sent(PROMPT, beam_width=20, n=20, custom_params=wish())
        few = loop.sent(PROMPT, beam_width=20, n=20, custom_params=wish(filter=CHEAP))
        found = loop.run(old, new, few)
        check_same(found[0], best)
        after = live.snapshot().constraint([tuple(each) for each in TOKENS], num_tokens=NUM_TOKENS)
        check_same(found[1], shop.expected(PROMPT, 20, constraint=after))
        check_same(found[2], shop.expected(PROMPT, 20, CHEAP, after))
        assert [result.tokens for result in found[0]] != [result.tokens for result in found[1]]
        split = Loop(monkeypatch, shop.logits, 10_000, num_ranks=2)
        assert "at different times" in split.sent(PROMPT, beam_width=4, custom_params=wish()).refusal


def test_logits_that_are_no_numbers_end_one_request(hooked, monkeypatch, shop):
    loop = Loop(monkeypatch, lambda histories: torch.full((len(histories), NUM_TOKENS), torch.nan), 10_000)
    (found,) = loop.run(loop.sent(PROMPT, beam_width=4, n=4, custom_params=wish()))
    assert [result.tokens for result in found] == [[]] and json.dumps(found[0].beam_score) != "-Infinity"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"custom_params": wish(filtr={})}, "'filtr'; it may have catalog, filter, exclude"),
        ({"custom_params": wish(start=1)}, "'start'; it may have catalog"),
        ({"custom_params": wish(catalog="toys")}, "no catalog 'toys'; there are shop"),
        ({"custom_params": wish(filter={"match": {"prise": 1}})}, "price"),
        ({"custom_params": wish(filter={"range": {"price": {"gt": 900}}})}, "no item of the catalog 'shop' meets"),
        ({"custom_params": wish(), "beam_width": None}, "give beam_width, 2 or more"),
        ({"custom_params": wish(), "max_new_tokens": 2}, "max_new_tokens=2 cuts items of 3 tokens"),
        ({"custom_params": wish(), "regex": "a"}, "not supported with constrained decoding"),
    ],
)
def test_what_is_wrong_is_said_before_the_search(hooked, monkeypatch, shop, params, message):
    loop = Loop(monkeypatch, shop.logits, 10_000)
    request = loop.sent(PROMPT, **({"beam_width": 4} | params))
    assert message in request.refusal and request.beam_group is None
    assert loop.coordinator._num_live_groups == 0


def test_prompts_leave_room_for_an_item(hooked, monkeypatch, shop):
    loop = Loop(monkeypatch, shop.logits, 10_000)
    refused = loop.sent([1] * 57, beam_width=4, custom_params=wish())
    assert "has room for 2" in refused.refusal and loop.coordinator._num_live_groups == 0
    assert loop.sent([1] * 56, beam_width=4, custom_params=wish()).refusal is None


def test_a_model_with_too_few_tokens_is_refused(hooked, monkeypatch, shop):
    loop = Loop(monkeypatch, shop.logits, NUM_TOKENS - 10)
    assert "codes up to token" in loop.sent(PROMPT, beam_width=4, custom_params=wish()).refusal


def test_without_hooks_no_search_begins(monkeypatch, shop):
    loop = Loop(monkeypatch, shop.logits, 10_000)
    request = loop.sent(PROMPT, beam_width=4, custom_params=wish())
    request.sampling_params = SamplingParams(beam_width=4, custom_params=wish())
    refusal = beams.validate_and_init(lambda *_: None, loop.coordinator, request, None)
    assert "another _rows_topk_logprobs than Palmette was tested with" in refusal


def test_registration_is_for_servers_that_name_catalogs(monkeypatch, shop):
    from palmette.sglang import register

    monkeypatch.setattr(HookRegistry, "_hooks", type(HookRegistry._hooks)(list))
    monkeypatch.delenv(catalogs.ENVIRONMENT)
    register()
    assert not HookRegistry._hooks
    monkeypatch.setenv(catalogs.ENVIRONMENT, "catalogs.json")
    register()
    assert set(HookRegistry._hooks) == set(beams.HOOKS)
    assert hook_registry.HookType.AROUND in {kind for each in HookRegistry._hooks.values() for kind, *_ in each}
