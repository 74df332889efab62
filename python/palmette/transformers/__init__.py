"""Catalogs and grammars in `transformers`: logits processors that are exact under beams, and a beam search of its own.

Two ways, which find the same items in the same order with the same scores:

- `CatalogLogitsProcessor` and `GrammarLogitsProcessor` constrain `model.generate(..., num_beams=…)` as it is.
  `exact_settings` gives the settings under which its scores are plain sums of log-probabilities, and `beam_result`
  removes the rows that are no results (`generate` fills up with placeholders when few items are valid).
- `beam_search` replaces the loop: `model.generate(ids, custom_generate=beam_search, constraint=c, beam_width=50)`. The
  prompt is computed once a request instead of once a beam, and nothing but valid items is returned.

Scores are sums of log-softmax over the whole vocabulary in float32, so that they do not depend on the item set.
Needs transformers 5 and torch; nothing else of the package imports them.
"""

from palmette.transformers.beam_search import beam_search
from palmette.transformers.codes import code_tokens
from palmette.transformers.processors import CatalogLogitsProcessor, GrammarLogitsProcessor
from palmette.transformers.results import BeamResult, TextResult, beam_result, text_results
from palmette.transformers.settings import exact_settings

__all__ = [
    "BeamResult",
    "CatalogLogitsProcessor",
    "GrammarLogitsProcessor",
    "TextResult",
    "beam_result",
    "beam_search",
    "code_tokens",
    "exact_settings",
    "text_results",
]
