"""Texts of `generate` that are whole within its tokens, whatever the model would rather write."""

from __future__ import annotations

import json
from typing import Any

import pytest

torch = pytest.importorskip(
    "torch", reason="torch is not installed: endings in transformers are untested"
)
pytest.importorskip(
    "transformers", reason="transformers is not installed: endings in it are untested"
)
jsonschema = pytest.importorskip(
    "jsonschema", reason="jsonschema is not installed: endings in transformers are untested"
)

import palmette  # noqa: E402
from models import PAD, tiny_model  # noqa: E402
from palmette.transformers import GrammarLogitsProcessor, text_results  # noqa: E402
from reference import DEVICE  # noqa: E402

# PAD, two tokens that are no text, a token a byte, and longer ones; the last token ends.
PIECES = [b'{"', b'":', b'",', b'", "', b'"]', b"]}", b"[[", b"tags", b"name", b"true", b"  "]
TEXTS = [None, None, None, *(bytes([byte]) for byte in range(32, 127)), *PIECES]
END = len(TEXTS)
VOCABULARY = palmette.Vocabulary([*TEXTS, None], ends=[END])
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": ["string", "array"]}},
    },
    "required": ["name", "tags"],
    "additionalProperties": False,
}
COMPILED = palmette.Grammar.from_json_schema(SCHEMA).compile(VOCABULARY)
FEWEST = COMPILED.matcher().fewest_tokens()
PROMPT = torch.tensor([[1, 2, 1]], device=DEVICE)


class Adversary:
    """Scores by which a model would write on and on: strings, brackets and blanks rather than what closes them."""

    def __init__(self, seed: int) -> None:
        random = torch.Generator().manual_seed(seed)
        closing = [token for token, text in enumerate(TEXTS) if text and set(b'"]}') & set(text)]
        self.scores = torch.randn(END + 1, generator=random)
        self.scores[closing] -= 8
        self.scores[END] -= 20

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores + self.scores.to(scores.device)


def generate(processor: Any, prompt: torch.Tensor = PROMPT, seed: int = 0, **more: Any) -> Any:
    return tiny_model("qwen3", END + 1).generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        logits_processor=[Adversary(seed), processor],
        **{"eos_token_id": END, "pad_token_id": PAD, "do_sample": False} | more,
    )


def texts_of(rows: Any, start: int = PROMPT.shape[1]) -> list[bytes]:
    special = (END, PAD)
    return [
        VOCABULARY.decode([token for token in row[start:] if token not in special])
        for row in rows.tolist()
    ]


WAYS = {
    "greedy": {},
    "sampled": {"do_sample": True, "num_return_sequences": 3, "temperature": 3.0},
    "beams": {"num_beams": 4, "num_return_sequences": 4},
    "sampled beams": {"num_beams": 3, "num_return_sequences": 3, "do_sample": True},
    "prompt lookup": {"prompt_lookup_num_tokens": 4},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(2))
def test_texts_are_whole_within_their_tokens(way: str, seed: int) -> None:
    torch.manual_seed(seed)
    processor = GrammarLogitsProcessor(COMPILED)
    for number, most in enumerate((FEWEST, FEWEST + 1, FEWEST + 7)):
        size = [{"max_new_tokens": most}, {"max_length": PROMPT.shape[1] + most}][number % 2]
        rows = generate(processor, seed=seed, **size, **WAYS[way])
        assert rows.shape[1] - PROMPT.shape[1] <= most
        for text in texts_of(rows):
            jsonschema.validate(json.loads(text), SCHEMA)


def test_drafts_change_nothing() -> None:
    for most in (FEWEST + 2, FEWEST + 12):
        plain, drafted = (
            generate(GrammarLogitsProcessor(COMPILED), max_new_tokens=most, **more)
            for more in ({}, WAYS["prompt lookup"])
        )
        assert plain.tolist() == drafted.tolist()


def test_too_few_tokens_are_an_error_before_the_first_one() -> None:
    asked = []
    processor = GrammarLogitsProcessor([COMPILED, None])
    count = Adversary.__call__

    class Counting(Adversary):
        def __call__(self, *given: Any) -> torch.Tensor:
            asked.append(1)
            return count(self, *given)

    model = tiny_model("qwen3", END + 1)
    with pytest.raises(palmette.TooFewTokens, match=f"request 0 takes {FEWEST} more.*cut") as raised:
        model.generate(
            PROMPT.repeat(2, 1),
            logits_processor=[Counting(0), processor],
            max_new_tokens=FEWEST - 1,
            eos_token_id=END,
            pad_token_id=PAD,
        )
    assert (raised.value.needed, raised.value.left, len(asked)) == (FEWEST, FEWEST - 1, 1)
    with pytest.raises(ValueError, match="finish is 'whole'.*'promised'.*'cut'"):
        GrammarLogitsProcessor(COMPILED, finish="whole")
    with pytest.raises(ValueError, match="max_tokens is -1"):
        GrammarLogitsProcessor(COMPILED, max_tokens=-1)


@pytest.mark.parametrize("way", WAYS)
def test_texts_do_not_end_before_their_tokens(way: str) -> None:
    for number, least in enumerate((FEWEST + 1, FEWEST + 9)):
        # What generate is told, or the processor.
        told = [{"min_new_tokens": least}, {}][number % 2]
        processor = GrammarLogitsProcessor(COMPILED, min_tokens=[0, least][number % 2])
        rows = generate(processor, seed=number, max_new_tokens=least + 8, **told, **WAYS[way])
        for row, text in zip(rows[:, PROMPT.shape[1] :].tolist(), texts_of(rows), strict=True):
            assert len([token for token in row if token not in (END, PAD)]) >= least
            jsonschema.validate(json.loads(text), SCHEMA)


def test_more_tokens_than_any_text_takes_are_an_error_before_the_first_one() -> None:
    short = palmette.Grammar.from_regex("ab?").compile(COMPILED.vocabulary)
    with pytest.raises(palmette.TooManyTokens, match="request 0 is to take 3 more tokens at least.*lower min_new_tokens") as raised:
        generate(GrammarLogitsProcessor(short), max_new_tokens=9, min_new_tokens=3)
    assert (raised.value.needed, raised.value.left) == (3, 9)
    with pytest.raises(ValueError, match="min_tokens is -1"):
        GrammarLogitsProcessor(short, min_tokens=-1)


def test_texts_break_off_where_they_may() -> None:
    rows = generate(GrammarLogitsProcessor(COMPILED, finish="cut"), max_new_tokens=FEWEST - 1)
    (text,) = texts_of(rows)
    matcher = COMPILED.matcher()
    assert matcher.accepted_prefix(rows[0, PROMPT.shape[1] :].tolist()) == FEWEST - 1
    with pytest.raises(ValueError, match="Unterminated|Expecting"):
        json.loads(text)


def test_requests_of_a_batch_end_each_by_its_grammar() -> None:
    letters = palmette.Grammar.from_regex("[ab]{2,}c").compile(VOCABULARY)
    rows = generate(
        GrammarLogitsProcessor([COMPILED, None, letters]),
        PROMPT.repeat(3, 1),
        max_new_tokens=FEWEST + 4,
    )
    one, _, other = texts_of(rows)
    jsonschema.validate(json.loads(one), SCHEMA)
    assert other.endswith(b"c") and set(other[:-1]) <= set(b"ab")


def test_a_text_that_was_begun_in_the_prompt_ends_in_time() -> None:
    begun = [TEXTS.index(piece) for piece in (b'{"', b"name", b'":')]
    prompt = torch.cat((PROMPT, torch.tensor([begun], device=DEVICE)), dim=1)
    matcher = COMPILED.matcher()
    matcher.commit_all(begun)
    needed = matcher.fewest_tokens()
    processor = GrammarLogitsProcessor(COMPILED, prompt_length=PROMPT.shape[1])
    for most in (needed, needed + 3):
        (text,) = texts_of(generate(processor, prompt, max_new_tokens=most))
        jsonschema.validate(json.loads(text), SCHEMA)
    with pytest.raises(palmette.TooFewTokens, match=f"takes {needed} more tokens"):
        generate(processor, prompt, max_new_tokens=needed - 1)


def test_a_loop_of_ones_own_says_the_tokens() -> None:
    adversary = Adversary(3)
    for most in (FEWEST, FEWEST + 5):
        processor = GrammarLogitsProcessor(COMPILED, max_tokens=most)
        rows = PROMPT
        while rows.shape[1] < PROMPT.shape[1] + most:
            scores = adversary(rows, torch.zeros(1, END + 1, device=DEVICE))
            token = processor(rows, scores).argmax(dim=-1, keepdim=True)
            if token.item() == END:
                break
            rows = torch.cat((rows, token), dim=1)
        (text,) = texts_of(rows)
        jsonschema.validate(json.loads(text), SCHEMA)
    with pytest.raises(palmette.TooFewTokens):
        GrammarLogitsProcessor(COMPILED, max_tokens=FEWEST - 1)(PROMPT, torch.zeros(1, END + 1))
    # Of two numbers the smaller one counts.
    rows = generate(GrammarLogitsProcessor(COMPILED, max_tokens=FEWEST), max_new_tokens=FEWEST + 9)
    jsonschema.validate(json.loads(texts_of(rows)[0]), SCHEMA)


def test_a_text_that_is_whole_with_its_last_token_is_complete() -> None:
    output = generate(
        GrammarLogitsProcessor(COMPILED),
        max_new_tokens=FEWEST,
        num_beams=3,
        num_return_sequences=3,
        return_dict_in_generate=True,
        output_scores=True,
    )
    (found,) = text_results(output, COMPILED, PROMPT.shape[1])
    assert found and all(each.is_complete and len(each.tokens) <= FEWEST for each in found)


def test_a_text_to_whose_end_no_way_is_known_may_break_off() -> None:
    # No token ends it: `]` is not among them.
    texts = [None, None, None, b"a", b"b"]
    vocabulary = palmette.Vocabulary([*texts, None], ends=[len(texts)])
    compiled = palmette.Grammar.from_regex("a[ab]*\\]").compile(vocabulary)
    assert compiled.matcher().fewest_tokens() is None
    rows = tiny_model("qwen3", len(texts) + 1).generate(
        PROMPT,
        attention_mask=torch.ones_like(PROMPT),
        logits_processor=[GrammarLogitsProcessor(compiled)],
        max_new_tokens=4,
        do_sample=False,
        eos_token_id=len(texts),
        pad_token_id=PAD,
    )
    text = vocabulary.decode(rows[0, PROMPT.shape[1] :].tolist())
    assert len(text) == 4 and text.startswith(b"a")
