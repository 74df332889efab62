"""XGrammar's processor for transformers, which here follows beams too."""

from __future__ import annotations

import torch
import transformers

import palmette
from palmette.compat.xgrammar.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from palmette.compat.xgrammar.compiler import CompiledGrammar


class LogitsProcessor(transformers.LogitsProcessor):
    """Restricts the rows of one `generate` to grammars: one for all, or a list with one a row.

    Several rows of one grammar may be beams, which change places from step to step.
    """

    def __init__(self, compiled_grammar: CompiledGrammar | list[CompiledGrammar]) -> None:
        self.compiled_grammars = compiled_grammar if isinstance(compiled_grammar, list) else [compiled_grammar]
        self.full_vocab_size = self.compiled_grammars[0].tokenizer_info.vocab_size
        self._prompt: int | None = None
        self._followers: list[palmette.Follower] = []

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        rows = input_ids.shape[0]
        if self._prompt is None:
            if len(self.compiled_grammars) not in (1, rows):
                raise ValueError(
                    f"there are {len(self.compiled_grammars)} grammars for {rows} rows: give one, or one a row"
                )
            self._prompt = input_ids.shape[1]
            self._followers = [palmette.Follower(one.palmette) for one in self.compiled_grammars]
        bitmask = allocate_token_bitmask(rows, self.full_vocab_size)
        suffixes = input_ids[:, self._prompt :].cpu().contiguous()
        if len(self._followers) == 1:
            self._followers[0].advance(suffixes, bitmask)
        else:
            for row, follower in enumerate(self._followers):
                follower.advance(suffixes[row : row + 1], bitmask[row : row + 1])
        apply_token_bitmask_inplace(scores, bitmask.to(scores.device))
        return scores
