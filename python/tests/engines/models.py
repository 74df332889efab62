"""Tiny random models of the shapes that recommenders have, and catalogs over their tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import palmette
import torch
import transformers
from reference import DEVICE, DictConstraint, random_items

PAD, START = 0, 1
FIRST_CODE = 8


def tiny_model(kind: str, num_tokens: int, seed: int = 0) -> Any:
    """A random model in float32, its output layer scaled up so that the order of beams is clear."""
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {
        "vocab_size": num_tokens,
        "pad_token_id": PAD,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    small = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    if kind == "qwen3":
        config: Any = transformers.Qwen3Config(**sizes, **small, num_key_value_heads=2, head_dim=8)
    elif kind == "llama":
        config = transformers.LlamaConfig(**sizes, **small, num_key_value_heads=2)
    elif kind == "qwen2":
        config = transformers.Qwen2Config(**sizes, **small, num_key_value_heads=2)
    elif kind == "mistral":
        config = transformers.MistralConfig(
            **sizes, **small, num_key_value_heads=2, sliding_window=None
        )
    elif kind == "gpt2":
        config = transformers.GPT2Config(**sizes, n_embd=32, n_layer=2, n_head=4, n_positions=256)
    elif kind == "gpt_neox":
        config = transformers.GPTNeoXConfig(**sizes, **small)
    elif kind == "bart":
        config = transformers.BartConfig(
            **sizes | {"eos_token_id": 2},
            d_model=32,
            encoder_layers=1,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            decoder_start_token_id=START,
            forced_eos_token_id=2,
            tie_word_embeddings=False,
        )
        bart: Any = sharpen(transformers.BartForConditionalGeneration(config))
        bart.generation_config.forced_eos_token_id = 2
        return bart
    elif kind == "t5":
        config = transformers.T5Config(
            **sizes,
            d_model=32,
            d_kv=8,
            d_ff=64,
            num_layers=2,
            num_heads=4,
            decoder_start_token_id=START,
            tie_word_embeddings=False,
        )
        model: Any = transformers.T5ForConditionalGeneration(config)
        return sharpen(model)
    else:
        raise ValueError(kind)
    return sharpen(transformers.AutoModelForCausalLM.from_config(config))


def sharpen(model: Any) -> Any:
    with torch.no_grad():
        head = model.get_output_embeddings()
        head.weight = torch.nn.Parameter(torch.randn_like(head.weight))
    return model.eval().to(DEVICE)


def catalog_pair(
    rng: np.random.Generator, num_items: int, num_codes: int, num_levels: int, shuffled: bool = True
) -> tuple[Any, DictConstraint, Any, int]:
    """The same random items as a palmette constraint and as a dict; the catalog, and the size of the vocabulary.

    Tokens of a level's codes are in random order when `shuffled`, as a tokenizer may have them.
    """
    num_tokens = FIRST_CODE + num_codes * num_levels + 5
    level_tokens = [
        FIRST_CODE + num_codes * level + np.arange(num_codes) for level in range(num_levels)
    ]
    if shuffled:
        level_tokens = [rng.permutation(tokens) for tokens in level_tokens]
    codes = np.array(
        [
            list(row)
            for row in random_items(rng, num_items, [range(num_codes)] * num_levels).values()
        ]
    )
    names = [f"item-{number}" for number in range(num_items)]
    catalog = palmette.Catalog.build(codes, ids=names)
    constraint = catalog.constraint(level_tokens, num_tokens=num_tokens)
    rows = {
        name: tuple(int(level_tokens[level][code]) for level, code in enumerate(row))
        for name, row in zip(names, codes, strict=True)
    }
    return constraint, DictConstraint(rows, num_tokens, level_tokens), catalog, num_tokens


def model_log_probs(model: Any, prompt: torch.Tensor) -> Any:
    """Full-vocabulary log-probabilities after prompt and prefix, by one pass without a cache; prompt int64 [n]."""

    def log_probs(prefix: tuple[int, ...]) -> np.ndarray:
        tokens = torch.tensor(prefix, dtype=torch.int64, device=prompt.device)
        with torch.inference_mode():
            if model.config.is_encoder_decoder:
                logits = model(
                    input_ids=prompt[None],
                    decoder_input_ids=torch.cat((tokens.new_tensor([START]), tokens))[None],
                ).logits
            else:
                logits = model(input_ids=torch.cat((prompt, tokens))[None]).logits
        return torch.log_softmax(logits[0, -1].float(), dim=-1).cpu().numpy()

    return log_probs
