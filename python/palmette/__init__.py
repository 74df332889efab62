"""Language models that write only what is valid: items of a catalog, texts of a grammar.

Grammars: a :class:`Vocabulary` once a model, a :class:`CompiledGrammar` once a schema, a :class:`Matcher` once a sequence.

>>> import palmette
>>> vocabulary = palmette.Vocabulary.encoding("o200k_base")
>>> compiled = palmette.Grammar.from_json_schema({"enum": ["red", "green"]}).compile(vocabulary)
>>> matcher = compiled.matcher()
>>> bitmask = palmette.allocate_bitmask(1, vocabulary.num_tokens)
>>> matcher.fill_mask(bitmask)
True
>>> matcher.commit_all(vocabulary.encode('"green"'))
>>> matcher.is_accepting
True
"""

from __future__ import annotations

import importlib
from types import ModuleType

from palmette._arrays import allocate_bitmask, bitmask_words
from palmette._batch import BatchRecommender
from palmette._palmette import (
    Answer,
    AnswerTable,
    Beams,
    Catalog,
    CatalogConstraint,
    CatalogError,
    CompiledGrammar,
    Compiler,
    Error,
    Filter,
    FilterError,
    Follower,
    Grammar,
    GrammarError,
    ItemSet,
    Lexicon,
    LimitExceeded,
    LiveCatalog,
    LiveReader,
    MaskBuffer,
    Matcher,
    Member,
    NotAllowed,
    RecommendError,
    Recommendation,
    Recommender,
    SchemaUnsupported,
    TooFewTokens,
    TooManyTokens,
    Substrings,
    Vocabulary,
    VocabularyError,
    __version__,
    fill_masks,
    fill_masks_with_drafts,
    fill_masks_with_trees,
    load,
)

#: Modules that are imported when they are first named: all but ``catalogs``, ``cuda``, ``numpy``, ``static`` and ``types`` need a framework.
_SUBMODULES = (
    "catalogs",
    "compat",
    "cuda",
    "jax",
    "mlx",
    "numpy",
    "sglang",
    "static",
    "torch",
    "torch_live",
    "torch_steps",
    "torch_tables",
    "transformers",
    "types",
    "vllm",
)

__all__ = [
    "Answer",
    "AnswerTable",
    "BatchRecommender",
    "Beams",
    "Catalog",
    "CatalogConstraint",
    "CatalogError",
    "CompiledGrammar",
    "Compiler",
    "Error",
    "Filter",
    "FilterError",
    "Follower",
    "Grammar",
    "GrammarError",
    "ItemSet",
    "Lexicon",
    "LimitExceeded",
    "LiveCatalog",
    "LiveReader",
    "MaskBuffer",
    "Matcher",
    "Member",
    "NotAllowed",
    "RecommendError",
    "Recommendation",
    "Recommender",
    "SchemaUnsupported",
    "TooFewTokens",
    "TooManyTokens",
    "Substrings",
    "Vocabulary",
    "VocabularyError",
    "__version__",
    "allocate_bitmask",
    "bitmask_words",
    "fill_masks",
    "fill_masks_with_drafts",
    "fill_masks_with_trees",
    "load",
]


def __getattr__(name: str) -> ModuleType:
    if name in _SUBMODULES:
        return importlib.import_module(f"palmette.{name}")
    raise AttributeError(f"module 'palmette' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
