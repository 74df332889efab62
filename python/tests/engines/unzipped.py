"""Sources of engines that cannot run here, unzipped from their wheels, and a tokenizer for them.

`PALMETTE_VLLM` and `PALMETTE_SGLANG` name the folders. Their base classes, managers and loaders run without an accelerator, so
that tests hold against the engines themselves and not against doubles of them.
"""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest


def require(package: str, variable: str, *modules: str) -> None:
    """Makes an engine's package importable, or skips the whole file with the reason."""
    for module in ("torch", "transformers", *modules):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"NOT TESTED: {package} needs {module}, which is not installed", allow_module_level=True)
    folder = os.environ.get(variable)
    if folder is None and importlib.util.find_spec(package) is None:
        pytest.skip(
            f"NOT TESTED: {package} is not installed, and {variable} does not name a folder with its unzipped wheel",
            allow_module_level=True,
        )
    if folder is not None:
        if not os.path.isdir(os.path.join(folder, package)):
            raise RuntimeError(f"{variable}={folder}: there is no folder {package!r} in it")
        sys.path.insert(0, folder)


WORDS = ["tr", "ue", "true", "fal", "se", '":', '{"', "12", "  ", "<f", "=a>"]
SPECIAL = ["<|end|>", "<|stop|>", "<|tool|>"]


def small_tokenizer(codes: dict[str, int] | None = None):
    """A fast tokenizer with a token a byte, some longer ones, and special ones; `codes` adds `<a_0>`, `<a_1>`, … a level."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    space = "Ġ"
    vocabulary = {piece: number for number, piece in enumerate(alphabet)}
    merges = []
    for word in WORDS:
        pieces = list(word.replace(" ", space))
        while len(pieces) > 1:
            left, right = pieces[0], pieces[1]
            if left + right not in vocabulary:
                vocabulary[left + right] = len(vocabulary)
                merges.append((left, right))
            pieces[:2] = [left + right]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=SPECIAL[0])
    fast.add_special_tokens({"additional_special_tokens": SPECIAL[1:]})
    fast.add_tokens([f"<{level}_{code}>" for level, num in (codes or {}).items() for code in range(num)], special_tokens=True)
    return fast


def allowed(row, num_tokens: int | None = None) -> set[int]:
    """Tokens that a row of a bitmask allows, bit by bit."""
    words = [int(word) & 0xFFFFFFFF for word in row]
    return {
        32 * place + bit
        for place, word in enumerate(words)
        for bit in range(32)
        if word >> bit & 1 and (num_tokens is None or 32 * place + bit < num_tokens)
    }
