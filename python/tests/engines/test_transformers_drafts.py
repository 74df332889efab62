"""Processors under every way in which `generate` checks, repeats or takes back tokens: always what plain greedy search writes."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is not installed: drafts in transformers are untested"
)
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: drafts in it are untested"
)

import palmette  # noqa: E402
from models import PAD, catalog_pair, tiny_model  # noqa: E402
from palmette.transformers import (  # noqa: E402
    CatalogLogitsProcessor,
    GrammarLogitsProcessor,
)
from reference import DEVICE  # noqa: E402

# PAD, two tokens that are no text, an end, then a byte a token.
FIRST = 4
END = 3
VOCABULARY = palmette.Vocabulary([None] * FIRST + [bytes([byte]) for byte in range(256)], ends=[END])
GRAMMARS = {
    "regex": palmette.Grammar.from_regex(r"(ab|cd|ef){3,6}x[0-9]{2}").compile(VOCABULARY),
    "numbers": palmette.Grammar.from_regex(r"[0-9]{1,3}(, [0-9]{1,3}){4,9}").compile(VOCABULARY),
    "nested": palmette.Grammar.from_gbnf(
        'root ::= one{4,9}\none ::= "(" one ")" | "a" | "bc"\n'
    ).compile(VOCABULARY),
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def model(seed: int = 0, kind: str = "llama", num_tokens: int = FIRST + 256) -> Any:
    return tiny_model(kind, num_tokens, seed)


def prompt(seed: int, length: int = 7) -> torch.Tensor:
    ids = torch.randint(FIRST, 260, (1, length), generator=torch.Generator().manual_seed(seed))
    return ids.to(DEVICE)


def written(big: Any, ids: torch.Tensor, processor: Any, tokens: int = 24, **more: Any) -> list[list[int]]:
    output = big.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        logits_processor=[processor],
        **{"max_new_tokens": tokens, "do_sample": False, "eos_token_id": END, "pad_token_id": PAD} | more,
    )
    return [
        row[: row.index(END)] if END in row else row for row in output[:, ids.shape[1] :].tolist()
    ]


def is_text(compiled: Any, row: list[int]) -> bool:
    matcher = compiled.matcher()
    return bool(matcher.accepted_prefix(row) == len(row))


def ways(seed: int) -> dict[str, dict[str, Any]]:
    """Keywords of `generate` that draft tokens."""
    return {
        "assistant": {"assistant_model": model(seed + 100)},
        "assistant that is the model": {"assistant_model": model(seed)},
        "assistant of one token": {"assistant_model": model(seed + 7), "num_assistant_tokens": 1},
        "assistant with a constant schedule": {
            "assistant_model": model(seed + 9),
            "num_assistant_tokens": 6,
            "num_assistant_tokens_schedule": "constant",
        },
        "lookup of 2": {"prompt_lookup_num_tokens": 2},
        "lookup of 10": {"prompt_lookup_num_tokens": 10, "max_matching_ngram_size": 1},
        "early exit": {"assistant_early_exit": 1},
        "static cache": {"cache_implementation": "static"},
    }


@pytest.mark.parametrize("way", ways(0))
@pytest.mark.parametrize("name", GRAMMARS)
def test_drafts_write_what_greedy_search_writes(name: str, way: str) -> None:
    compiled = GRAMMARS[name]
    kept = GrammarLogitsProcessor(compiled)
    for seed in range(2):
        big, ids = model(seed), prompt(seed)
        expected = written(big, ids, GrammarLogitsProcessor(compiled, prompt_length=7))
        assert is_text(compiled, expected[0])
        for processor in (
            GrammarLogitsProcessor(compiled),
            GrammarLogitsProcessor(compiled, prompt_length=7),
            GrammarLogitsProcessor(compiled).for_prompt(ids),
            kept,
        ):
            assert written(big, ids, processor, **ways(seed)[way]) == expected


@pytest.mark.parametrize("way", ["assistant", "lookup of 10", "early exit"])
def test_sampled_drafts_are_texts(way: str) -> None:
    for name, compiled in GRAMMARS.items():
        for seed in range(3):
            torch.manual_seed(seed)
            (row,) = written(
                model(seed), prompt(seed), GrammarLogitsProcessor(compiled), do_sample=True, **ways(seed)[way]
            )
            assert is_text(compiled, row), (name, seed)


@pytest.mark.parametrize("way", ways(0))
def test_drafts_name_the_item_that_greedy_search_names(way: str) -> None:
    constraint, _, _, num_tokens = catalog_pair(np.random.default_rng(4), 200, 16, 4)
    kept = CatalogLogitsProcessor(constraint)
    for seed in range(4):
        big, ids = model(seed, num_tokens=num_tokens), prompt(seed) % num_tokens
        more = ways(seed)[way]
        if "assistant_model" in more:
            more = {**more, "assistant_model": model(seed + 50, num_tokens=num_tokens)}
        expected = written(big, ids, CatalogLogitsProcessor(constraint, prompt_length=7), 4, eos_token_id=None)
        assert constraint.decode(expected)[0]
        for processor in (CatalogLogitsProcessor(constraint), kept, kept.for_prompt(7)):
            assert written(big, ids, processor, 4, eos_token_id=None, **more) == expected
        with pytest.raises(ValueError, match="set max_new_tokens=4"):
            written(big, ids, CatalogLogitsProcessor(constraint), 9, eos_token_id=None, **more)


def test_a_prompt_that_repeats_items_is_looked_up() -> None:
    """Drafts that run past an item's end: `generate` cuts them, and nothing is said about them."""
    constraint, plain, _, num_tokens = catalog_pair(np.random.default_rng(6), 30, 5, 3)
    items = [list(row) for row in plain.rows.values()][:5]
    for seed in range(5):
        ids = torch.tensor([sum(items, [])[: 15 - seed]], device=DEVICE)
        big = model(seed, num_tokens=num_tokens)
        expected = written(big, ids, CatalogLogitsProcessor(constraint), 3, eos_token_id=None)
        assert constraint.decode(expected)[0]
        for more in ({}, {"do_sample": True}):
            found = written(
                big, ids, CatalogLogitsProcessor(constraint), 3, eos_token_id=None, prompt_lookup_num_tokens=8, **more
            )
            assert constraint.decode(found)[0] and (more or found == expected)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_model_writes_the_same(backend: str) -> None:
    compiled, ids = GRAMMARS["regex"], prompt(1)
    expected = written(model(1), ids, GrammarLogitsProcessor(compiled))
    big = model(1)
    big.forward = torch.compile(big.forward, backend=backend)
    assert written(big, ids, GrammarLogitsProcessor(compiled)) == expected
    assert written(big, ids, GrammarLogitsProcessor(compiled), cache_implementation="static") == expected
    assert written(big, ids, GrammarLogitsProcessor(compiled), prompt_lookup_num_tokens=3) == expected


def test_a_compiled_generate_writes_the_same() -> None:
    compiled, ids = GRAMMARS["regex"], prompt(1)
    expected = written(model(1), ids, GrammarLogitsProcessor(compiled))
    big = model(1)
    big.generate = torch.compile(big.generate, backend="eager")
    assert written(big, ids, GrammarLogitsProcessor(compiled)) == expected
    assert written(big, ids, GrammarLogitsProcessor(compiled).for_prompt(ids)) == expected


def test_a_kept_processor_is_told_each_prompt() -> None:
    """Whatever the next prompt is: the same, one token more, an earlier answer with it, a part of it."""
    compiled = palmette.Grammar.from_choices(["y", "n", "yn", "ny"]).compile(VOCABULARY)
    big, kept, ids = model(1), GrammarLogitsProcessor(compiled), prompt(1)
    for seed in range(12):
        expected = written(big, ids, GrammarLogitsProcessor(compiled, prompt_length=ids.shape[1]), 1 + seed % 3)
        assert written(big, ids, kept, 1 + seed % 3) == expected
        answer = torch.tensor(expected, device=DEVICE)
        ids = [torch.cat((ids, answer), 1), torch.cat((ids, prompt(seed, 1)), 1), ids[:, :-1]][seed % 3]


def test_a_processor_of_many_threads_writes_what_each_alone_writes() -> None:
    compiled = GRAMMARS["regex"]
    big = model(1)
    shared, wrong = GrammarLogitsProcessor(compiled), []

    def one(seed: int) -> None:
        ids = prompt(seed)
        if written(big, ids, shared) != written(big, ids, GrammarLogitsProcessor(compiled, prompt_length=7)):
            wrong.append(seed)

    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_prompt_length_that_cannot_be_is_an_error() -> None:
    compiled, ids = GRAMMARS["regex"], prompt(2)
    begun = torch.cat((ids, torch.tensor([[FIRST + ord("a"), FIRST + ord("b")]], device=DEVICE)), 1)
    (rest,) = written(model(2), begun, GrammarLogitsProcessor(compiled, prompt_length=7))
    assert is_text(compiled, [FIRST + ord("a"), FIRST + ord("b"), *rest])
    with pytest.raises(ValueError, match="prompt_length=5 makes the last 4 tokens.*no text begins so"):
        written(model(2), begun, GrammarLogitsProcessor(compiled, prompt_length=5))
    with pytest.raises(ValueError, match="shorter than the prompt length 11"):
        written(model(2), begun, GrammarLogitsProcessor(compiled, prompt_length=11))
    with pytest.raises(ValueError, match="prompt_length is -1"):
        GrammarLogitsProcessor(compiled, prompt_length=-1)


def test_processors_are_pickled_and_copied() -> None:
    constraint, _, _, num_tokens = catalog_pair(np.random.default_rng(4), 50, 8, 3)
    for processor, tokens, size in (
        (GrammarLogitsProcessor(GRAMMARS["numbers"], ends=[END]), 24, 260),
        (CatalogLogitsProcessor(constraint, filters=[None]), 3, num_tokens),
    ):
        big, ids = model(1, num_tokens=size), prompt(1) % size
        expected = written(big, ids, processor, tokens)
        for other in (pickle.loads(pickle.dumps(processor)), copy.deepcopy(processor), copy.copy(processor)):
            assert written(big, ids, other, tokens) == expected


def test_a_loop_of_ones_own_is_watched() -> None:
    compiled = palmette.Grammar.from_choices(["yn", "ny"]).compile(VOCABULARY)
    processor, scores = GrammarLogitsProcessor(compiled), torch.zeros(1, 260)
    y, n = FIRST + ord("y"), FIRST + ord("n")

    def allowed(ids: list[int]) -> list[int]:
        return torch.isfinite(processor(torch.tensor([ids]), scores))[0].nonzero().flatten().tolist()

    assert allowed([9, 9]) == [n, y] and allowed([9, 9, y]) == [n] and allowed([9, 9, y, n]) == [END]
    assert allowed([9, 9, n]) == [y], "a draft taken back"
    for ids, message in (
        ([9, 9, n, 30], "no row of this call is the beginning of a text"),
        ([9, 8], "do not begin with the prompt"),
        ([9, 9, y, n, END], "goes on from none"),
    ):
        with pytest.raises(ValueError, match=message):
            allowed(ids)
    processor.reset()
    assert allowed([9, 9, n]) == [n, y]
    processor = processor.for_prompt(1)
    assert allowed([30, y, n]) == [END] and allowed([7]) == [n, y] and allowed([5, n]) == [y]


def test_an_assistant_of_another_vocabulary_proposes_only(tmp_path: Any) -> None:
    """Its tokens are not those of the grammar: they are left alone, and what they become is checked."""
    from tokenizers import Tokenizer, models, pre_tokenizers, decoders

    def tokenizer(shift: int) -> Any:
        pieces = {"<pad>": 0, "<s>": 1, "<e>": END, "<u>": 2}
        letters = pre_tokenizers.ByteLevel.alphabet()
        pieces |= {letter: FIRST + (at + shift) % 256 for at, letter in enumerate(sorted(letters))}
        made = Tokenizer(models.BPE(vocab=pieces, merges=[]))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        return transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<e>", bos_token="<s>")

    ours, theirs = tokenizer(0), tokenizer(77)
    compiled = palmette.Grammar.from_regex(r"(ab|cd|ef){3,6}x[0-9]{2}").compile(
        palmette.Vocabulary.from_tokenizer(ours, num_tokens=260, ends=[END])
    )
    ids = ours("one prompt of text", return_tensors="pt").input_ids.to(DEVICE)
    for seed in range(3):
        expected = written(model(seed), ids, GrammarLogitsProcessor(compiled))
        found = written(
            model(seed),
            ids,
            GrammarLogitsProcessor(compiled),
            assistant_model=model(seed + 5, num_tokens=280),
            tokenizer=ours,
            assistant_tokenizer=theirs,
        )
        assert found == expected and is_text(compiled, found[0])


def test_grammars_of_a_batch() -> None:
    """One a request, rows being dealt out evenly; a request without one writes freely."""
    grammars = [GRAMMARS["regex"], None, GRAMMARS["numbers"]]
    big = model(2)
    ids = torch.cat([prompt(seed) for seed in range(3)])
    for more in ({}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 2}):
        torch.manual_seed(1)
        rows = written(big, ids, GrammarLogitsProcessor(grammars), **more)
        per_request = len(rows) // 3
        for at, row in enumerate(rows):
            compiled = grammars[at // per_request]
            ended = [token for token in row if token != PAD]
            assert compiled is None or is_text(compiled, ended), (more, at)
    alone = [
        written(big, ids[at : at + 1], GrammarLogitsProcessor(grammars[at]))[0] if grammars[at] else None
        for at in range(3)
    ]
    together = written(big, ids, GrammarLogitsProcessor(grammars))
    assert [row if one else None for row, one in zip(together, alone, strict=True)] == alone
    with pytest.raises(ValueError, match="3 rows are not those of 2 requests: give one grammar a request"):
        written(big, ids, GrammarLogitsProcessor(grammars[:2]))
    with pytest.raises(ValueError, match="there are no grammars"):
        GrammarLogitsProcessor([None])


def test_a_vocabulary_without_ends_is_refused_where_texts_end() -> None:
    endless = palmette.Vocabulary([None] * FIRST + [bytes([byte]) for byte in range(256)])
    compiled = palmette.Grammar.from_regex("a").compile(endless)
    with pytest.raises(ValueError, match="no end tokens.*give ends"):
        GrammarLogitsProcessor(compiled)
    assert written(model(0), prompt(0), GrammarLogitsProcessor(compiled, ends=[END])) == [[FIRST + ord("a")]]
