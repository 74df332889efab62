"""Recommending with transformers: items as tokens of a tokenizer, a filter a user, and the beam search of the package.

The model is small and random, so what it likes means nothing; that every answer is an item of the catalog which passes the user's
filter does. Run: `python examples/recommend_with_transformers.py` (needs torch and transformers, downloads nothing).
"""

from __future__ import annotations

import numpy as np
import palmette
import torch
from palmette.transformers import (
    CatalogLogitsProcessor,
    beam_result,
    beam_search,
    code_tokens,
    exact_settings,
)
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

LEVELS, CODES, ITEMS = 3, 32, 500


def main() -> None:
    # A tokenizer with a token a code: <a_0>…<a_31>, <b_0>…, as recommenders train them.
    words = [
        "<pad>",
        "<user>",
        *(f"<{letter}_{code}>" for letter in "abc" for code in range(CODES)),
    ]
    words = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<pad>")
    )
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", padding_side="left"
    )

    # A catalog: a semantic ID an item, and attributes to filter by.
    random = np.random.default_rng(0)
    codes = random.integers(0, CODES, size=(ITEMS, LEVELS))
    catalog = palmette.Catalog.build(
        codes,
        ids=[f"item-{number}" for number in range(ITEMS)],
        attributes={
            "price": random.integers(5, 200, size=ITEMS).tolist(),
            "brand": [("Fernhollow", "Tarnbeck")[number % 2] for number in range(ITEMS)],
        },
    )
    constraint = catalog.constraint(code_tokens(tokenizer, LEVELS), num_tokens=len(tokenizer))

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        pad_token_id=0, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config).eval()

    # Two users with histories of different lengths, each with a filter.
    prompts = tokenizer(
        [history(codes, [3, 141, 59]), history(codes, [26, 5])], padding=True, return_tensors="pt"
    )
    filters = [
        {"must": {"range": {"price": {"lt": 20}}}},
        {"must": {"match": {"brand": "Tarnbeck"}}},
    ]
    arguments = {"input_ids": prompts["input_ids"], "attention_mask": prompts["attention_mask"]}
    found = model.generate(
        **arguments,
        do_sample=False,
        max_new_tokens=LEVELS,
        custom_generate=beam_search,
        constraint=constraint,
        beam_width=20,
        num_results=3,
        filters=filters,
    )
    for user, result in enumerate(found):
        print(f"user {user}")
        for item, score in result.ranked():
            print(f"  {item:9} {score:8.4f}  {catalog.item(item)['attributes']}")

    # The same by generate as it is, with a logits processor.
    processor = CatalogLogitsProcessor(constraint, filters=filters)
    output = model.generate(
        **arguments,
        logits_processor=[processor],
        **exact_settings(constraint, 20, 3, model.generation_config),
    )
    same = beam_result(output, constraint, num_requests=2, filters=filters)
    print(
        "generate finds the same items:",
        [result.items for result in same] == [result.items for result in found],
    )


def history(codes: np.ndarray, items: list[int]) -> str:
    """A prompt: the codes of the items that a user had."""
    return " ".join(
        [
            "<user>",
            *(
                f"<{letter}_{code}>"
                for item in items
                for letter, code in zip("abc", codes[item], strict=True)
            ),
        ]
    )


if __name__ == "__main__":
    main()
