"""vLLM's own manager, check and loaders over Palmette's backend and processor."""

from __future__ import annotations

import json
import random
import weakref
from types import SimpleNamespace

import pytest
from unzipped import allowed, require

require("vllm", "PALMETTE_VLLM")

import numpy as np
import torch
import vllm.v1.structured_output as structured_output
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.sample.logits_processor import BatchUpdate, MoveDirectionality
from vllm_requests import (
    END,
    NUM_TOKENS,
    STOP,
    TOKENIZER,
    ids,
    manager,
    registered,  # noqa: F401
    request,
    started,
)

import palmette
import palmette.vllm.backend as backend
from palmette import _catalog_requests as catalogs_module
from palmette._request_compiler import LIMITS_ENVIRONMENT
from palmette.vllm import CatalogLogitsProcessor, PalmetteBackend, register

SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}
TAG = {
    "structures": [{"begin": "<f=a>", "schema": SCHEMA, "end": "</f>"}],
    "triggers": ["<f"],
}
KINDS = [
    ({"json": SCHEMA}, ['{"a":true}', '{"a": false}'], ['{"a":1}', "{}", "[]"]),
    ({"json_object": True}, ["{}", '{"x":[1,2]}'], ["[]", "1"]),
    ({"regex": "(ab)+c"}, ["abc", "ababc"], ["ab!", "c"]),
    ({"choice": ["true", "tr", 'a"b']}, ["true", "tr", 'a"b'], ["t ", "x"]),
    ({"grammar": 'root ::= "x" root | "y"'}, ["y", "xxy"], ["z", "xz"]),
    ({"grammar": 'start: "x"* "y"'}, ["y", "xxy"], ["z", "xz"]),
    ({"structural_tag": json.dumps(TAG)}, ["12", 'so <f=a>{"a":true}</f> and'], ['<f=a>{"b"']),
]


@pytest.mark.parametrize(("wanted", "good", "bad"), KINDS, ids=lambda value: str(value)[:40])
def test_kinds_of_requests_allow_their_texts_and_no_others(registered, monkeypatch, wanted, good, bad):
    engine = manager(monkeypatch)
    for number, text in enumerate(good + bad):
        one = request(f"r{number}", **wanted)
        requests = started(engine, one)
        assert isinstance(engine.backend, PalmetteBackend)
        refused = False
        for token in [*ids(text), END]:
            (row,) = engine.grammar_bitmask(requests, [one.request_id], {})
            in_mask = token in allowed(row)
            accepted = engine.accept_tokens(one, [token])
            assert in_mask == accepted, (text, token)
            if not accepted:
                refused = True
                break
        assert refused == (text in bad), text
        if not refused:
            assert one.structured_output_request.grammar.is_terminated()
            (row,) = engine.grammar_bitmask(requests, [one.request_id], {})
            assert (row == -1).all(), "the manager opens the rows of requests that have ended"


def test_masks_are_palmettes_over_the_padded_vocabulary(registered, monkeypatch):
    engine = manager(monkeypatch)
    first, second = request("one", regex="[0-9]+"), request("two", json=SCHEMA)
    requests = started(engine, first, second)
    engine.accept_tokens(first, ids("1"))
    rows = engine.grammar_bitmask(requests, ["two", "one"], {})
    vocabulary = palmette.Vocabulary.from_tokenizer(TOKENIZER, num_tokens=NUM_TOKENS)
    digits = palmette.Grammar.from_regex("[0-9]+").compile(vocabulary).matcher()
    digits.commit_all(ids("1"))
    assert allowed(rows[1]) == set(digits.allowed().tolist()) == {*(ids(digit)[0] for digit in "0123456789"), *ids("12"), END}
    assert all(token < len(TOKENIZER) for token in allowed(rows[0]) | allowed(rows[1]))


def test_rows_of_drafts_are_those_of_a_sequence_that_took_them(registered, monkeypatch):
    engine = manager(monkeypatch, drafts=2)
    one = request("one", regex="a?bc*")
    requests = started(engine, one)
    grammar = one.structured_output_request.grammar
    drafts = ids("ab")
    rows = engine.grammar_bitmask(requests, ["one"], {"one": drafts})
    expected = []
    for taken in range(3):
        fresh = request("fresh", regex="a?bc*")
        started(engine, fresh)
        engine.accept_tokens(fresh, drafts[:taken])
        expected.append(allowed(engine.grammar_bitmask({"fresh": fresh}, ["fresh"], {})[0]))
    assert [allowed(row) for row in engine.grammar_bitmask(requests, ["one"], {"one": drafts})] == expected
    assert len(rows) == 3
    assert grammar.validate_tokens([*ids("abcx"), 1]) == ids("abc")
    assert grammar.validate_tokens([*ids("ab"), -1, *ids("c")]) == ids("ab")
    assert engine.accept_tokens(one, ids("abc")), "drafts left the position as it was"


def test_all_rows_of_a_batch_are_filled_in_one_call_and_are_those_of_vllms_walk(registered, monkeypatch):
    chance, engine = random.Random(5), manager(monkeypatch, drafts=3)
    wanted = [{"regex": "(ab|a)*b?"}, {"json": SCHEMA}, {"choice": ["true", "tr", 'a"b']}, {"grammar": 'root ::= "x" root | "y"'}]
    batch = [request(f"r{number}", max_tokens=chance.choice([12, 1000]), **wanted[number % 4]) for number in range(6)]
    requests = started(engine, *batch)
    calls, walked = [], []
    fill, fill_one = palmette.fill_masks_with_drafts, backend.PalmetteGrammar._fill
    monkeypatch.setattr(palmette, "fill_masks_with_drafts", lambda *some, **named: calls.append(1) or fill(*some, **named))
    monkeypatch.setattr(backend.PalmetteGrammar, "_fill", lambda self, *some: walked.append(1) or fill_one(self, *some))
    engine.grammar_bitmask(requests, list(requests), {})  # makes the bitmask
    one_by_one = 0
    for _ in range(60):
        names = chance.sample(list(requests), chance.randrange(1, 7))
        drafts = {}
        for name in names:
            ahead = requests[name].structured_output_request.grammar._matcher.fork()
            path = []
            while len(path) < 3 and not ahead.is_ended and chance.random() < 0.8:
                path.append(chance.choice(ahead.allowed().tolist()))
                ahead.commit(path[-1])
            path = requests[name].structured_output_request.grammar.validate_tokens(path)
            drafts[name] = path + [-1] * chance.randrange(4 - len(path))
        with monkeypatch.context() as patch:
            patch.setattr(backend, "_filled", lambda *_: [])
            expected = engine.grammar_bitmask(requests, names, drafts).copy()
        calls.clear(), walked.clear()
        found = engine.grammar_bitmask(requests, names, drafts)
        assert (found == expected).all() and len(calls) <= 1
        # Only the row behind a pad is filled by itself.
        assert len(walked) <= sum(-1 in drafts[name] for name in names)
        one_by_one += len(walked)
        for name in names:
            grammar = requests[name].structured_output_request.grammar
            if not grammar.is_terminated() and chance.random() < 0.5:
                token = chance.choice(sorted(allowed(expected[4 * names.index(name)])))
                assert engine.accept_tokens(requests[name], [token])
                requests[name].append_output_token_ids(token)
    assert one_by_one < 60


def test_end_tokens_are_the_requests_own_and_count_for_rollback(registered, monkeypatch):
    engine = manager(monkeypatch)
    one = request("one", stop_token_ids=[STOP], regex="a")
    requests = started(engine, one)
    grammar = one.structured_output_request.grammar
    assert engine.accept_tokens(one, ids("a"))
    assert allowed(engine.grammar_bitmask(requests, ["one"], {})[0]) == {STOP}
    assert not grammar.accept_tokens("one", [END])
    assert grammar.accept_tokens("one", [STOP]) and grammar.is_terminated()
    assert grammar.accept_tokens("one", ids("xy")), "tokens behind the end have no effect"
    grammar.rollback(3)
    assert not grammar.is_terminated()
    assert allowed(engine.grammar_bitmask(requests, ["one"], {})[0]) == {STOP}
    grammar.rollback(1)
    assert allowed(engine.grammar_bitmask(requests, ["one"], {})[0]) == set(ids("a"))
    grammar.accept_tokens("one", ids("a"))
    grammar.reset()
    assert allowed(engine.grammar_bitmask(requests, ["one"], {})[0]) == set(ids("a"))


def test_random_walks_with_rollback_keep_masks(registered, monkeypatch):
    engine = manager(monkeypatch)
    one = request("one", json={"type": "array", "items": {"enum": [True, 12]}})
    requests = started(engine, one)
    grammar = one.structured_output_request.grammar
    chance = random.Random(3)
    seen = [allowed(engine.grammar_bitmask(requests, ["one"], {})[0])]
    for _ in range(60):
        choices = sorted(seen[-1] - {END})
        if not choices or (len(seen) > 1 and chance.random() < 0.4):
            back = chance.randrange(1, len(seen))
            grammar.rollback(back)
            del seen[-back:]
        else:
            grammar.accept_tokens("one", [chance.choice(choices)])
            seen.append(None)
        mask = allowed(engine.grammar_bitmask(requests, ["one"], {})[0])
        assert seen[-1] is None or seen[-1] == mask
        seen[-1] = mask


def test_options_of_the_server_hold(registered, monkeypatch):
    engine = manager(monkeypatch, disable_any_whitespace=True, disable_additional_properties=True)
    open_schema = {"type": "object", "properties": {"a": {"type": "boolean"}}}
    one = request("one", json=open_schema)
    started(engine, one)
    grammar = one.structured_output_request.grammar
    assert grammar.validate_tokens(ids('{"a":true}')) == ids('{"a":true}')
    assert len(grammar.validate_tokens(ids('{ "a"'))) < len(ids('{ "a"'))
    assert len(grammar.validate_tokens(ids('{"b"'))) < len(ids('{"b"'))


def test_a_limit_ends_one_request_and_not_the_engine():
    class Limited:
        is_ended = False

        def fill_mask(self, *_):
            raise palmette.LimitExceeded("too many ways to read the text")

        commit = accepted_prefix = fill_mask

    bitmask = torch.full((2, 11), -1, dtype=torch.int32)
    grammar = backend.PalmetteGrammar(Limited(), (END,))
    assert not grammar.accept_tokens("one", [1]) and grammar.validate_tokens([1]) == []
    grammar.fill_bitmask(bitmask, 1)
    assert allowed(bitmask[1].tolist()) == {END}
    assert (bitmask[0] == -1).all()


def test_nothing_changes_unless_asked(monkeypatch):
    before = structured_output.GuidanceBackend, structured_output.XgrammarBackend
    monkeypatch.delenv(backend.ENVIRONMENT, raising=False)
    register()
    assert before == (structured_output.GuidanceBackend, structured_output.XgrammarBackend)
    monkeypatch.setenv(backend.ENVIRONMENT, "outlines")
    with pytest.raises(ValueError, match="outlines.*'guidance' and 'xgrammar'"):
        register()


def test_the_installed_package_is_asked_by_vllm(registered, monkeypatch):
    import vllm.plugins as plugins
    from vllm.v1.structured_output import backend_guidance

    monkeypatch.setattr(plugins, "plugins_loaded", False)
    monkeypatch.setenv("VLLM_PLUGINS", "palmette")
    monkeypatch.setenv(backend.ENVIRONMENT, "guidance")
    monkeypatch.setattr(backend_guidance, "GuidanceBackend", object)
    plugins.load_general_plugins()
    assert backend_guidance.GuidanceBackend is PalmetteBackend


def test_the_check_in_front_accepts_what_the_engine_does(registered):
    from vllm.config import StructuredOutputsConfig

    def check(**wanted):
        params = SamplingParams(structured_outputs=StructuredOutputsParams(**wanted))
        params._validate_structured_outputs(
            SimpleNamespace(is_diffusion=False), StructuredOutputsConfig(backend="guidance"), TOKENIZER
        )

    check(json={"patternProperties": {"^a": {"type": "integer", "multipleOf": 3}}})
    check(structural_tag=json.dumps(TAG))
    check(grammar='root ::= "a"')
    with pytest.raises(VLLMValidationError, match="nothing"):
        check(grammar='root ::= nothing "a"')
    with pytest.raises(VLLMValidationError, match="this group has no end"):
        check(regex="(a")
    with pytest.raises(VLLMValidationError, match="the types are null, boolean"):
        check(json={"type": "objekt"})


def test_a_grammar_beyond_the_budget_is_refused_alone(registered, monkeypatch):
    from vllm.config import StructuredOutputsConfig

    hard = "(a|b|ab){1,60}c(a|b|x){1,60}"
    monkeypatch.setattr(backend, "_COMPILERS", weakref.WeakKeyDictionary())
    monkeypatch.setenv(LIMITS_ENVIRONMENT, '{"steps": 1000}')
    engine = manager(monkeypatch)
    with pytest.raises(palmette.LimitExceeded, match=f"budget of 1000 steps.*{LIMITS_ENVIRONMENT}"):
        started(engine, request("one", regex=hard))
    other = request("other", regex="a")
    assert allowed(engine.grammar_bitmask(started(engine, other), ["other"], {})[0]) == set(ids("a"))
    # The check in front reads, and does not compile.
    monkeypatch.setenv(LIMITS_ENVIRONMENT, '{"steps": 10}')
    params = SamplingParams(structured_outputs=StructuredOutputsParams(regex=hard))
    with pytest.raises(VLLMValidationError, match=LIMITS_ENVIRONMENT):
        params._validate_structured_outputs(SimpleNamespace(is_diffusion=False), StructuredOutputsConfig(backend="guidance"), TOKENIZER)


def test_automatic_choice_takes_palmette_first(registered):
    from vllm.config import StructuredOutputsConfig

    schema = {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2]}}
    params = SamplingParams(structured_outputs=StructuredOutputsParams(json=schema))
    model = SimpleNamespace(is_diffusion=False)
    params._validate_structured_outputs(model, StructuredOutputsConfig(backend="auto"), TOKENIZER)
    assert params.structured_outputs._backend == "xgrammar"


def test_offline_beam_search_finds_the_class(registered):
    from vllm.v1.structured_output.backend_guidance import GuidanceBackend

    assert GuidanceBackend is PalmetteBackend
    config = SimpleNamespace(structured_outputs_config=SimpleNamespace(disable_any_whitespace=False, disable_additional_properties=False))
    made = GuidanceBackend(vllm_config=config, tokenizer=TOKENIZER, vocab_size=NUM_TOKENS)
    assert made.allocate_token_bitmask(3).shape == (3, palmette.bitmask_words(NUM_TOKENS))


# Catalogs.

CODES = np.array([[0, 0], [0, 2], [1, 1], [3, 0], [3, 2]], np.int32)
IDS = ["red", "blue", "green", "black", "white"]
LEVELS = [
    TOKENIZER.convert_tokens_to_ids([f"<a_{code}>" for code in range(4)]),
    TOKENIZER.convert_tokens_to_ids([f"<b_{code}>" for code in range(3)]),
]


def spelled(name: str) -> list[int]:
    return [LEVELS[level][code] for level, code in enumerate(CODES[IDS.index(name)])]


@pytest.fixture
def shop(tmp_path, monkeypatch):
    catalog = palmette.Catalog.build(CODES, ids=IDS, attributes={"price": [1, 2, 3, 4, 5]})
    catalog.save(tmp_path / "shop.palm")
    (tmp_path / "catalogs.json").write_text(
        json.dumps({"shop": {"path": str(tmp_path / "shop.palm"), "code_tokens": ["<a_{}>", "<b_{}>"]}})
    )
    monkeypatch.setenv(catalogs_module.ENVIRONMENT, str(tmp_path / "catalogs.json"))
    monkeypatch.setattr("vllm.tokenizers.cached_tokenizer_from_config", lambda model_config: TOKENIZER)
    catalogs_module.catalogs.cache_clear()
    yield catalog
    catalogs_module.catalogs.cache_clear()


def wish(**argument) -> SamplingParams:
    return SamplingParams(extra_args={"palmette": json.dumps(argument)}, stop_token_ids=[END])


def expected(names: list[str], written: list[int]) -> set[int]:
    """The definition: tokens that continue an item of the set."""
    level = len(written)
    if level >= 2:
        return {END}
    return {spelled(name)[level] for name in names if spelled(name)[:level] == written}


def finite(row: torch.Tensor) -> set[int]:
    return set(torch.nonzero(row > -torch.inf).flatten().tolist())


CONFIG = SimpleNamespace(model_config=None)


def test_first_runner_follows_adds_swaps_and_removals(shop):
    processor = CatalogLogitsProcessor(CONFIG, torch.device("cpu"), False)
    outputs = [[], [], spelled("black")[:1], []]
    cheap = {"range": {"price": {"lte": 2}}}
    params = [wish(), SamplingParams(), wish(exclude=["white"]), wish(filter={"must": cheap})]
    processor.update_state(BatchUpdate(4, [], [(row, params[row], [7, 8], outputs[row]) for row in range(4)], []))

    def step():
        logits = torch.randn(4, NUM_TOKENS)
        before = logits.clone()
        after = processor.apply(logits)
        for row in range(4):
            kept = sorted(finite(after[row]))
            assert torch.equal(after[row, kept], before[row, kept]), "allowed logits stay as they are"
        return [finite(row) for row in after]

    everything = set(range(NUM_TOKENS))
    hidden = [name for name in IDS if name != "white"]
    assert step() == [expected(IDS, []), everything, expected(hidden, outputs[2]), expected(["red", "blue"], [])]
    outputs[0] += spelled("white")[:1]
    outputs[2] += spelled("black")[1:]
    assert step() == [expected(IDS, outputs[0]), everything, {END}, expected(["red", "blue"], [])]
    swap = (0, 1, MoveDirectionality.SWAP)
    processor.update_state(BatchUpdate(4, [], [], [swap]))
    assert step()[:2] == [everything, expected(IDS, outputs[0])]
    processor.update_state(BatchUpdate(3, [1], [], [(3, 1, MoveDirectionality.UNIDIRECTIONAL)]))
    found = step()
    assert found[1] == expected(["red", "blue"], []) and found[3] == everything
    assert not processor.is_argmax_invariant()


def second_runner(prompts: list[list[int]], outputs: list[list[int]], slots: list[int]) -> SimpleNamespace:
    table = torch.zeros(8, 32, dtype=torch.int32)
    lengths = np.zeros(8, np.int32)
    for slot, prompt, output in zip(slots, prompts, outputs):
        table[slot, : len(prompt) + len(output)] = torch.tensor(prompt + output, dtype=torch.int32)
        lengths[slot] = len(prompt)
    return SimpleNamespace(
        device=torch.device("cpu"),
        all_token_ids=SimpleNamespace(gpu=table),
        prompt_len=SimpleNamespace(np=lengths),
    )


def context(slots: list[int], sequences: list[list[int]], drafts: list[list[int]]) -> SimpleNamespace:
    """A step's layout: a row for the last committed token of each request, and one a draft behind it."""
    rows = [
        (slot, local, [sequence[-1], *draft][local], len(sequence) - 1 + local)
        for slot, sequence, draft in zip(slots, sequences, drafts)
        for local in range(len(draft) + 1)
    ]
    slot, local, token, pos = (torch.tensor(column) for column in zip(*rows))
    return SimpleNamespace(
        expanded_idx_mapping=slot.int(),
        idx_mapping=torch.tensor(slots),
        idx_mapping_np=np.array(slots),
        expanded_local_pos=local.int(),
        input_ids=token.int(),
        pos=pos,
        seq_lens_upper_bound_np=np.array([len(sequence) for sequence in sequences]),
    )


@pytest.mark.parametrize("drafted", [0, 1, 2])
def test_second_runner_reads_codes_of_tokens_and_drafts_from_the_device(shop, drafted):
    chance = random.Random(drafted)
    for _ in range(20):
        slots = chance.sample(range(8), 4)
        prompts = [[9] * chance.randrange(1, 6) for _ in slots]
        full = [spelled(chance.choice(IDS)) + [END] for _ in slots]
        written = [one[: chance.randrange(0, 3 - drafted + 1)] for one in full]
        drafts = [one[len(done) : len(done) + drafted] for one, done in zip(full, written)]
        state = second_runner(prompts, written, slots)
        processor = CatalogLogitsProcessor(CONFIG, state)
        asked = [processor.add_request(slot, wish() if slot % 2 else SamplingParams()) for slot in slots]
        assert asked == [bool(slot % 2) for slot in slots]
        layout = context(slots, [prompt + done for prompt, done in zip(prompts, written)], drafts)
        after = processor.apply(torch.zeros(len(layout.pos), NUM_TOKENS), layout)
        row = 0
        for slot, done, draft in zip(slots, written, drafts):
            for taken in range(len(draft) + 1):
                wanted = expected(IDS, done + draft[:taken]) if slot % 2 else set(range(NUM_TOKENS))
                assert finite(after[row]) == wanted, (slot, done, draft, taken)
                row += 1


def test_second_runner_takes_a_slot_anew_and_waits_for_the_prompt(shop):
    state = second_runner([[5, 6, 7]], [[]], [3])
    processor = CatalogLogitsProcessor(CONFIG, state)
    assert processor.add_request(3, wish())
    part = context([3], [[5, 6]], [[]])
    assert finite(processor.apply(torch.zeros(1, NUM_TOKENS), part)[0]) == set(range(NUM_TOKENS))
    whole = context([3], [[5, 6, 7]], [[]])
    assert finite(processor.apply(torch.zeros(1, NUM_TOKENS), whole)[0]) == expected(IDS, [])
    assert not processor.add_request(3, SamplingParams())
    assert finite(processor.apply(torch.zeros(1, NUM_TOKENS), whole)[0]) == set(range(NUM_TOKENS))


def test_codes_may_begin_within_the_prompt(shop):
    prompt = [5, 6, *spelled("white")[:1]]
    processor = CatalogLogitsProcessor(CONFIG, torch.device("cpu"), False)
    processor.update_state(BatchUpdate(1, [], [(0, wish(start=2), prompt, [])], []))
    assert finite(processor.apply(torch.zeros(1, NUM_TOKENS))[0]) == expected(IDS, spelled("white")[:1])
    second = CatalogLogitsProcessor(CONFIG, second_runner([prompt], [[]], [0]))
    second.add_request(0, wish(start=2))
    layout = context([0], [prompt], [[]])
    assert finite(second.apply(torch.zeros(1, NUM_TOKENS), layout)[0]) == expected(IDS, spelled("white")[:1])


def test_requests_see_the_newest_generation_of_a_live_catalog(shop, tmp_path):
    import time

    with palmette.LiveCatalog.create(tmp_path / "live", shop) as live:
        settings = {"live": str(tmp_path / "live"), "code_tokens": ["<a_{}>", "<b_{}>"]}
        entry = catalogs_module.Entry("shop", settings)
        before = entry.constraint(None, lambda: TOKENIZER)
        assert entry.constraint(None, lambda: TOKENIZER) is before, "kept while nothing changes"
        live.apply([{"delete": "green"}])
        deadline = time.monotonic() + 20
        while entry.constraint(None, lambda: TOKENIZER) is before and time.monotonic() < deadline:
            time.sleep(0.02)
        start = np.zeros((1, 0), np.int32)
        green = spelled("green")[0]
        assert green in before.successors(start)[1], "a request keeps what it began with"
        assert green not in entry.constraint(None, lambda: TOKENIZER).successors(start)[1]


def test_both_loaders_take_the_class():
    from vllm.v1.sample.logits_processor import _load_logitsprocs_by_fqcns
    from vllm.v1.worker.gpu.sample.logits_processor.loader import _load_v2_logitsprocs_by_fqcns

    name = "palmette.vllm:CatalogLogitsProcessor"
    assert _load_logitsprocs_by_fqcns([name]) == _load_v2_logitsprocs_by_fqcns([name]) == [CatalogLogitsProcessor]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("{", "not JSON"),
        ("[]", "an object with catalog, filter"),
        ('{"filtr": {}}', "'filtr'; it may have"),
        ('{"catalog": "toys"}', "no catalog 'toys'; there are shop"),
        ('{"start": -1}', "number from 0"),
        ('{"start": true}', "number from 0"),
        ('{"exclude": "red"}', "list of ids"),
        ('{"filter": "{"}', "'filter' is not JSON"),
        ('{"filter": {"must": {"match": {"prise": 1}}}}', "prise.*price"),
        ('{"filter": {"must": {"range": {"price": {"gt": 9}}}}}', "no item of the catalog 'shop' meets"),
    ],
)
def test_arguments_that_are_wrong_are_said(shop, argument, message):
    params = SamplingParams(extra_args={"palmette": argument})
    with pytest.raises(ValueError, match=message):
        CatalogLogitsProcessor.validate_params(params)


def test_requests_without_the_argument_need_no_catalogs(monkeypatch):
    monkeypatch.delenv(catalogs_module.ENVIRONMENT, raising=False)
    catalogs_module.catalogs.cache_clear()
    CatalogLogitsProcessor.validate_params(SamplingParams())
    with pytest.raises(ValueError, match="no catalogs: set PALMETTE_CATALOGS"):
        CatalogLogitsProcessor.validate_params(wish())
