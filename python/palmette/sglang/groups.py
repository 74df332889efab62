"""State of one of SGLang's beam searches whose beams are beginnings of what may be found."""

from __future__ import annotations

import logging
from typing import Any

import torch
from sglang.srt.beam_search.beam_group import BeamGroup, BeamResult
from sglang.srt.beam_search.joint_select import FinalSelect

logger = logging.getLogger(__name__)


class WholeRows(int):
    """The number of candidates of a group that chooses among whole rows of logits."""


class ConstrainedGroup(BeamGroup):
    """A group that chooses its beams itself, of what may follow each.

    Beams that there are not go on as rows with the score -inf, since SGLang's rows are of one number; they are no results.
    """

    def __init__(self, plain: BeamGroup, stop_token_ids: list[int], max_new_tokens: int) -> None:
        super().__init__(
            beam_width=plain.beam_width,
            length_penalty=plain.length_penalty,
            stop_token_ids=stop_token_ids,
            max_new_tokens=max_new_tokens,
            num_return=plain.num_return,
            device=plain.frontier_cum_logprobs.device,
        )
        self.leader: Any = plain.leader
        self.prompt_len = plain.prompt_len
        self.num_candidates = WholeRows(2 * self.beam_width)
        self._is_over = False

    def choose(self, logits: torch.Tensor, tick: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The tokens of the next beams, and the beams that they continue; None where none go on."""
        if self._is_over:
            # A pass that was begun before the host knew of the end; SGLang drops what comes of it.
            return self.stop_token_ids.new_zeros(self.beam_width), None
        return self.select(logits, tick)

    def advance_final_frontier(self, sel: FinalSelect, tick: int = 0) -> None:
        super().advance_final_frontier(sel, tick)
        self._is_over = True

    def select(self, logits: torch.Tensor, tick: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Chooses the next beams from logits [beams, V] and stages the choice; `choose` gives what it returns."""
        raise NotImplementedError

    def finalize(self) -> list[BeamResult]:
        """What was found, best first."""
        found = [result for result in super().finalize() if result.cum_logprob > -torch.inf]
        if not found:
            # SGLang reads the first result of every group that ends.
            logger.error("a search found nothing: the model gives no probability to what may follow, or its logits are no numbers")
            lowest = torch.finfo(torch.float32).min
            found = [BeamResult(tokens=[], cum_logprob=lowest, beam_score=lowest, matched_token=None)]
        return found
