"""XGrammar's processor for transformers, which here follows beams and drafts too."""

from __future__ import annotations

from palmette.compat.xgrammar.compiler import CompiledGrammar
from palmette.transformers import GrammarLogitsProcessor


class LogitsProcessor(GrammarLogitsProcessor):
    """Restricts the rows of `generate` to grammars: one for all, or a list with one a request.

    Several rows of one grammar may be beams, which change places from step to step.
    """

    def __init__(self, compiled_grammar: CompiledGrammar | list[CompiledGrammar]) -> None:
        self.compiled_grammars = compiled_grammar if isinstance(compiled_grammar, list) else [compiled_grammar]
        self.full_vocab_size = self.compiled_grammars[0].tokenizer_info.vocab_size
        super().__init__([one.palmette for one in self.compiled_grammars])
