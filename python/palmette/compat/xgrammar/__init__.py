"""XGrammar's names over Palmette: `from palmette.compat import xgrammar as xgr`.

Masks, positions and batches are Palmette's: exact, and with rollback and forks without limit. Four things differ, each on
the side of the schema: with `any_order=True` required keys stay required and none comes twice; keywords that XGrammar leaves
out (`multipleOf`, `uniqueItems`, `contains`, formats) are enforced or reported in `CompiledGrammar.notes`; special tokens
never spell text; logits past the end of a bitmask become minus infinity unless `vocab_size` says otherwise.

Bitmasks are torch tensors where torch is installed, as XGrammar's, and NumPy arrays where it is not.
"""

from palmette.compat.xgrammar import contrib, exception
from palmette.compat.xgrammar.compiler import CompiledGrammar, GrammarCompiler
from palmette.compat.xgrammar.exception import (
    DeserializeFormatError,
    DeserializeVersionError,
    InvalidJSONError,
    InvalidStructuralTagError,
)
from palmette.compat.xgrammar.grammar import Grammar, StructuralTagItem
from palmette.compat.xgrammar.matcher import BatchGrammarMatcher, GrammarMatcher
from palmette.compat.xgrammar.bitmask import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    get_bitmask_shape,
    reset_token_bitmask,
)
from palmette.compat.xgrammar.structural_tag import StructuralTag, get_builtin_structural_tag, get_model_structural_tag
from palmette.compat.xgrammar.tokenizer_info import TokenizerInfo, VocabType

__all__ = [
    "BatchGrammarMatcher",
    "CompiledGrammar",
    "DeserializeFormatError",
    "DeserializeVersionError",
    "Grammar",
    "GrammarCompiler",
    "GrammarMatcher",
    "InvalidJSONError",
    "InvalidStructuralTagError",
    "StructuralTag",
    "StructuralTagItem",
    "TokenizerInfo",
    "VocabType",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "bitmask_dtype",
    "contrib",
    "exception",
    "get_bitmask_shape",
    "get_builtin_structural_tag",
    "get_model_structural_tag",
    "reset_token_bitmask",
]


def __getattr__(name: str):
    # Only on demand: torch and transformers take seconds to import.
    if name == "bitmask_dtype":
        import torch

        return torch.int32
    if name == "hf":
        from palmette.compat.xgrammar.contrib import hf

        return hf
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
