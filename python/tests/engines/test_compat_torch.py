"""The layers of llguidance's and XGrammar's names with torch tensors and transformers' beams."""

from __future__ import annotations

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="NOT TESTED: torch is not installed")
transformers = pytest.importorskip("transformers", reason="NOT TESTED: transformers is not installed")

from unzipped import allowed, small_tokenizer

import palmette.compat.llguidance.hf
import palmette.compat.llguidance.torch as llg_torch
from palmette.compat import llguidance
from palmette.compat import xgrammar as xgr

TOKENIZER = small_tokenizer()
NUM_TOKENS = len(TOKENIZER) + 5
END = TOKENIZER.eos_token_id
PATTERN = "(true|false)(, (true|false)){1,2}"


def test_tokenizers_of_transformers():
    info = xgr.TokenizerInfo.from_huggingface(TOKENIZER, vocab_size=NUM_TOKENS)
    assert info.vocab_type is xgr.VocabType.BYTE_LEVEL and not info.add_prefix_space
    assert info.vocab_size == NUM_TOKENS and info.stop_token_ids == [END]
    assert info.decoded_vocab[TOKENIZER.convert_tokens_to_ids("true")] == b"true"
    tokenizer = palmette.compat.llguidance.hf.from_tokenizer(TOKENIZER)
    text = "say true 👋 12"
    assert tokenizer.tokenize_str(text) == TOKENIZER.encode(text)
    assert tokenizer.decode_str(TOKENIZER.encode(text)) == text
    assert tokenizer.eos_token == END and tokenizer.is_special_token(END)


def test_both_layers_have_one_mask_in_tensors_and_arrays():
    info = xgr.TokenizerInfo.from_huggingface(TOKENIZER)
    matcher = xgr.GrammarMatcher(xgr.GrammarCompiler(info).compile_regex(PATTERN))
    tokenizer = palmette.compat.llguidance.hf.from_tokenizer(TOKENIZER)
    other = llguidance.LLMatcher(tokenizer, llguidance.grammar_from("regex", PATTERN))
    for token in [*TOKENIZER.encode("true, false"), None]:
        tensor = xgr.allocate_token_bitmask(2, info.vocab_size)
        assert isinstance(tensor, torch.Tensor) and matcher.fill_next_token_bitmask(tensor, 1)
        second = llg_torch.allocate_token_bitmask(1, tokenizer.vocab_size)
        llg_torch.fill_next_token_bitmask(other, second)
        assert torch.equal(tensor[1], second[0]) and (tensor[0] == -1).all()
        assert second.numpy().tobytes() == other.compute_bitmask()
        if token is not None:
            assert matcher.accept_token(token) and other.consume_token(token)
    assert other.consume_token(END)
    llg_torch.fill_next_token_bitmask(other, second)
    assert allowed(second[0].tolist()) == {END}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_logits_are_masked_by_definition(dtype):
    chance = np.random.default_rng(7)
    bits = chance.integers(0, 2, size=(3, 96)).astype(np.uint8)
    bitmask = torch.from_numpy(np.packbits(bits, axis=1, bitorder="little").view(np.int32).copy())
    logits = torch.randn(3, 100).to(dtype)
    wanted = logits.clone()
    for row in range(3):
        for token in range(100):
            if token >= 96 or not bits[row, token]:
                wanted[row, token] = -torch.inf
    for apply in (xgr.apply_token_bitmask_inplace, llg_torch.apply_token_bitmask_inplace):
        masked = logits.clone()
        apply(masked, bitmask)
        assert torch.equal(masked, wanted)
    part = logits.clone()
    xgr.apply_token_bitmask_inplace(part, bitmask, vocab_size=90, indices=[2])
    assert torch.equal(part[:2], logits[:2]) and torch.equal(part[2, :90], wanted[2, :90])
    assert torch.equal(part[2, 90:], logits[2, 90:])


@pytest.mark.parametrize("num_beams", [1, 6])
def test_beams_of_transformers_stay_in_the_grammar(num_beams):
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=NUM_TOKENS,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        eos_token_id=END,
        pad_token_id=END,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    info = xgr.TokenizerInfo.from_huggingface(TOKENIZER, vocab_size=NUM_TOKENS)
    compiled = xgr.GrammarCompiler(info).compile_regex(PATTERN)
    prompts = torch.tensor([[5, 6, 7], [8, 9, 10]])
    found = model.generate(
        prompts,
        attention_mask=torch.ones_like(prompts),
        max_new_tokens=30,
        do_sample=False,
        num_beams=num_beams,
        num_return_sequences=num_beams,
        logits_processor=[xgr.contrib.hf.LogitsProcessor(compiled)],
    )
    texts = [TOKENIZER.decode(row[3:], skip_special_tokens=True) for row in found]
    assert len(texts) == 2 * num_beams and all(re.fullmatch(PATTERN, text) for text in texts), texts
    sequences = {tuple(row.tolist()) for row in found}
    assert len(sequences) == 2 * num_beams, "beams are apart"
