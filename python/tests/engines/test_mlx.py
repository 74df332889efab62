"""mlx-lm with a small model of random weights, and with SmolLM2 where `PALMETTE_SMOLLM2` names its folder."""

from __future__ import annotations

import json
import os
import pathlib
import re

import numpy as np
import pytest

mx = pytest.importorskip("mlx.core", reason="NOT TESTED: mlx is not installed (pip install 'mlx[cpu]' mlx-lm)")
pytest.importorskip("mlx_lm", reason="NOT TESTED: mlx-lm is not installed")

from unzipped import small_tokenizer

import palmette
import palmette.mlx
from mlx_lm.generate import generate_step
from mlx_lm.sample_utils import make_sampler

SMOLLM2 = os.environ.get("PALMETTE_SMOLLM2")


@pytest.fixture(scope="module")
def tokenizer():
    return small_tokenizer({"a": 3, "b": 3})


@pytest.fixture(scope="module")
def model(tokenizer):
    from mlx_lm.models.llama import Model, ModelArgs

    mx.random.seed(5)
    return Model(
        ModelArgs(
            model_type="llama",
            hidden_size=32,
            num_hidden_layers=1,
            intermediate_size=32,
            num_attention_heads=2,
            num_key_value_heads=1,
            rms_norm_eps=1e-5,
            vocab_size=len(tokenizer) + 9,
            tie_word_embeddings=True,
        )
    )


def generated(model, processor, prompt=(1, 2, 3), max_tokens=60, temperature=1.0, ends=()):
    tokens = []
    for token, _ in generate_step(
        mx.array(prompt), model, max_tokens=max_tokens, sampler=make_sampler(temp=temperature), logits_processors=[processor]
    ):
        tokens.append(int(token))
        if tokens[-1] in ends:
            break
    return tokens


@pytest.mark.parametrize("seed", range(4))
def test_random_model_writes_texts_of_the_grammar(model, tokenizer, seed):
    mx.random.seed(seed)
    compiled = palmette.Grammar.from_regex("(true|false)(, (true|false)){0,2}").compile(
        palmette.mlx.vocabulary(tokenizer, num_tokens=len(tokenizer) + 9)
    )
    ends = compiled.vocabulary.ends
    tokens = generated(model, palmette.mlx.GrammarLogitsProcessor(compiled), ends=ends)
    assert tokens[-1] in ends
    text = tokenizer.decode(tokens[:-1])
    assert 1 <= len(text.split(", ")) <= 3 and set(text.split(", ")) <= {"true", "false"}


@pytest.mark.parametrize("seed", range(3))
def test_texts_are_whole_within_max_tokens(model, tokenizer, seed):
    mx.random.seed(seed)
    schema = {"type": "array", "items": {"type": "array"}, "minItems": 2}
    compiled = palmette.Grammar.from_json_schema(schema).compile(palmette.mlx.vocabulary(tokenizer, num_tokens=len(tokenizer) + 9))
    ends, fewest = compiled.vocabulary.ends, compiled.matcher().fewest_tokens()
    for most in (fewest, fewest + 1, fewest + 6):
        processor = palmette.mlx.GrammarLogitsProcessor(compiled, max_tokens=most)
        tokens = [token for token in generated(model, processor, max_tokens=most, ends=ends) if token not in ends]
        assert len(tokens) <= most and len(json.loads(tokenizer.decode(tokens))) >= 2
    with pytest.raises(palmette.TooFewTokens, match=f"takes {fewest} more tokens.*leave it out if it may break off"):
        palmette.mlx.GrammarLogitsProcessor(compiled, max_tokens=fewest - 1)


@pytest.mark.parametrize("seed", range(3))
def test_texts_do_not_end_before_min_tokens(model, tokenizer, seed):
    mx.random.seed(seed)
    compiled = palmette.Grammar.from_regex("[a-z]{2,20}").compile(palmette.mlx.vocabulary(tokenizer, num_tokens=len(tokenizer) + 9))
    ends = compiled.vocabulary.ends
    for least in (3, 9):
        processor = palmette.mlx.GrammarLogitsProcessor(compiled, max_tokens=least + 2, min_tokens=least)
        tokens = [token for token in generated(model, processor, max_tokens=least + 2, ends=ends) if token not in ends]
        assert least <= len(tokens) <= least + 2 and processor.matcher.is_accepting
    with pytest.raises(palmette.TooManyTokens, match="is to take 21 more tokens at least"):
        palmette.mlx.GrammarLogitsProcessor(compiled, min_tokens=21)


def test_masks_equal_their_bits():
    chance = np.random.default_rng(1)
    for width, words in ((64, 2), (70, 2), (50, 2)):
        logits = chance.normal(size=(3, width)).astype(np.float32)
        bits = chance.integers(0, 2, size=(3, 32 * words)).astype(np.uint8)
        bitmask = np.packbits(bits, axis=1, bitorder="little").view(np.int32)
        kept = np.pad(bits, ((0, 0), (0, max(0, width - 32 * words))))[:, :width].astype(bool)
        found = np.array(palmette.mlx.apply_bitmask(mx.array(logits), bitmask))
        assert np.array_equal(found, np.where(kept, logits, -np.inf))


@pytest.mark.parametrize("seed", range(6))
def test_random_model_names_items(model, tokenizer, seed):
    mx.random.seed(seed)
    items = {"red": (0, 0), "blue": (0, 2), "green": (2, 1), "black": (2, 1)}
    catalog = palmette.Catalog.build(np.array(list(items.values()), np.int32), ids=list(items))
    words = tokenizer.get_vocab()
    levels = [[words[f"<{level}_{code}>"] for code in range(3)] for level in "ab"]
    processor = palmette.mlx.CatalogLogitsProcessor(catalog.constraint(levels), ends=[tokenizer.eos_token_id])
    tokens = generated(model, processor, max_tokens=3)
    assert tokens[2] == tokenizer.eos_token_id
    named = tuple(levels[level].index(token) for level, token in enumerate(tokens[:2]))
    assert processor.items == [name for name, codes in items.items() if codes == named] != []


def test_a_token_that_was_not_allowed_is_said(tokenizer):
    compiled = palmette.Grammar.from_regex("ab").compile(palmette.mlx.vocabulary(tokenizer))
    processor = palmette.mlx.GrammarLogitsProcessor(compiled)
    logits = mx.zeros((1, len(tokenizer)))
    processor(mx.array([1]), logits)
    with pytest.raises(palmette.NotAllowed):
        processor(mx.array([1, tokenizer.convert_tokens_to_ids("x")]), logits)


def test_the_block_of_the_documentation_runs(model, tokenizer, monkeypatch, capsys):
    import mlx_lm
    from mlx_lm.tokenizer_utils import TokenizerWrapper

    page = pathlib.Path(__file__).parents[3] / "docs" / "python-engines.md"
    if not page.exists():
        pytest.skip(f"{page} is not there: the tests run away from the repository")
    section = page.read_text().partition("\n## mlx-lm\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    wrapped = TokenizerWrapper(tokenizer, eos_token_ids={tokenizer.eos_token_id})
    monkeypatch.setattr(mlx_lm, "load", lambda name: (model, wrapped))
    mx.random.seed(1)
    exec(block, {"palmette": palmette, "schema": {"enum": [True, 12]}, "prompt": [1, 2, 3]})
    assert capsys.readouterr().out.strip() in ("true", "12")


def test_a_kept_processor_and_drafts(tokenizer):
    """What goes on from the call before is followed, back and forth; anything else is an error."""
    vocabulary = palmette.mlx.vocabulary(tokenizer)
    compiled = palmette.Grammar.from_regex("(12)*(true)?").compile(vocabulary)
    twelve, true = (tokenizer.convert_tokens_to_ids(word) for word in ("12", "true"))
    processor, logits = palmette.mlx.GrammarLogitsProcessor(compiled), mx.zeros((1, len(tokenizer)))
    for text in ([], [twelve], [twelve, twelve], [twelve, true], [twelve], [], [true], [true]):
        row = np.array(processor(mx.array([1, 2, *text]), logits))[0]
        matcher = compiled.matcher()
        matcher.commit_all(text)
        assert np.flatnonzero(np.isfinite(row)).tolist() == matcher.allowed().tolist(), text
    for tokens in ([1, 3], [1], [1, 2, true, true, true]):
        with pytest.raises(ValueError, match="follows one text"):
            processor(mx.array(tokens), logits)
    endless = palmette.Grammar.from_regex("a").compile(palmette.Vocabulary([b"a"]))
    with pytest.raises(ValueError, match="no end tokens"):
        palmette.mlx.GrammarLogitsProcessor(endless)


@pytest.mark.skipif(not SMOLLM2, reason="NOT TESTED: PALMETTE_SMOLLM2 does not name SmolLM2's folder (test-data/smollm2.py)")
def test_smollm2_writes_json_of_the_schema():
    jsonschema = pytest.importorskip("jsonschema")
    from mlx_lm import load, stream_generate

    model_, tokenizer_ = load(SMOLLM2)
    model_.set_dtype(mx.float32)
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    compiled = palmette.Grammar.from_json_schema(schema, whitespace="compact", order="schema").compile(
        palmette.mlx.vocabulary(tokenizer_)
    )
    for wish in ("Describe a person as a JSON object.", "Who is the queen of England?"):
        prompt = tokenizer_.apply_chat_template([{"role": "user", "content": wish}], add_generation_prompt=True)
        processor = palmette.mlx.GrammarLogitsProcessor(compiled)
        parts = stream_generate(model_, tokenizer_, prompt, max_tokens=64, logits_processors=[processor])
        text = "".join(part.text for part in parts)
        assert processor.matcher.is_accepting or processor.matcher.is_ended
        jsonschema.validate(json.loads(text), schema)
