"""Language models that write only what is valid: items of a catalog, texts of a grammar.

Grammars: a :class:`Vocabulary` once a model, a :class:`CompiledGrammar` once a schema, a :class:`Matcher` once a sequence.

>>> import palmette
>>> vocabulary = palmette.Vocabulary.named("o200k_base")
>>> compiled = palmette.Grammar.from_json_schema({"enum": ["red", "green"]}).compile(vocabulary)
>>> matcher = compiled.matcher()
>>> bitmask = palmette.allocate_bitmask(1, vocabulary.num_tokens)
>>> matcher.fill_mask(bitmask)
True
>>> matcher.commit_all(vocabulary.encode('"green"'))
>>> matcher.is_accepting
True
"""

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
    LimitExceeded,
    LiveCatalog,
    LiveReader,
    MaskBuffer,
    Matcher,
    NotAllowed,
    RecommendError,
    Recommendation,
    Recommender,
    SchemaUnsupported,
    Vocabulary,
    VocabularyError,
    fill_masks,
    fill_masks_with_drafts,
    load,
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
    "LimitExceeded",
    "LiveCatalog",
    "LiveReader",
    "MaskBuffer",
    "Matcher",
    "NotAllowed",
    "RecommendError",
    "Recommendation",
    "Recommender",
    "SchemaUnsupported",
    "Vocabulary",
    "VocabularyError",
    "allocate_bitmask",
    "bitmask_words",
    "fill_masks",
    "fill_masks_with_drafts",
    "load",
]
