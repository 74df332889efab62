"""Beam search over the texts of a grammar.

A beam has a position of the grammar, forked from that of the beam it continues. Masks of a step are filled while the forward pass
runs, from tokens that the step before chose: those are copied to the host as they are chosen, and waited for a pass later. Scores are
log-probabilities over the whole vocabulary; equal ones come in the order of beams, then of tokens. Texts are whole within the tokens
of the request: with the last one only tokens are left that end a text.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any

import torch
from sglang.srt.beam_search.beam_group import BeamGroup
from sglang.srt.beam_search.joint_select import FinalSelect, SelectResult
from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject, InvalidGrammarObject

import palmette
from palmette import _requests
from palmette.sglang.backend import PalmetteBackend, PalmetteGrammar
from palmette.sglang.groups import ConstrainedGroup
from palmette.torch import apply_bitmask_
from palmette.torch_tables import top

logger = logging.getLogger(__name__)

KINDS = {"json_schema": "json", "regex": "regex", "ebnf": "ebnf", "structural_tag": "structural_tag"}
"""Members of a request that are grammars, and their kinds."""


class TextGroup(ConstrainedGroup):
    """A search whose beams are beginnings of texts.

    `grammar` is the request's, or a future of it, which is waited for when the prompt was read.
    """

    def __init__(
        self, plain: BeamGroup, grammar: BaseGrammarObject | Future[BaseGrammarObject], is_promised: bool, keep: Any
    ) -> None:
        super().__init__(plain, plain.stop_token_ids.tolist(), plain.max_new_tokens)
        self._grammar, self._is_promised, self._keep = grammar, is_promised, keep
        self._matchers: list[palmette.Matcher | None] = []
        self._chosen: _Chosen | None = None

    def select(self, logits: torch.Tensor, tick: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        try:
            mask = self._masks(logits.shape[0])
        except ValueError as error:  # palmette.Error is one; and what the backend refused
            self._end_with(str(error))
            mask = None
        if mask is None:
            none = self.stop_token_ids.new_zeros(0)
            empty = FinalSelect(tokens=none, parent_idx=none, cum_logprobs=none.float())
            self.advance_final_frontier(empty, tick)
            return none.new_zeros(self.beam_width), None
        scores = logits.float()
        sums = torch.logsumexp(scores, dim=-1, keepdim=True)
        scores = apply_bitmask_(scores.clone() if scores is logits else scores, mask)
        best, tokens = top(scores, self.num_candidates)
        total = self.frontier_cum_logprobs.unsqueeze(1) + (best - sums)
        if self.next_step_is_final():
            ranked, parents, tokens = _ranked(total, tokens, self.beam_width)
            self.advance_final_frontier(FinalSelect(tokens=tokens, parent_idx=parents, cum_logprobs=ranked), tick)
            return tokens, None
        chosen = chosen_beams(*_ranked(total, tokens, self.num_candidates), self.stop_token_ids, self.beam_width)
        self._chosen = _Chosen(chosen)
        self.advance_frontier(chosen, tick)
        return chosen.next_tokens, chosen.parent_idx

    def _masks(self, num_rows: int) -> torch.Tensor | None:
        """The masks of all beams; None where none goes on."""
        self._follow()
        there = [matcher for matcher in self._matchers if matcher is not None]
        if not there:
            return None
        mask = palmette.allocate_bitmask(num_rows, there[0].compiled.num_tokens, like="torch")
        mask.zero_()
        left = None
        if self._is_promised:
            left = [
                matcher and _requests.near_end(matcher, self.max_new_tokens - self.num_generated) for matcher in self._matchers
            ]
        palmette.fill_masks(self._matchers, mask, tokens_left=left)
        return mask

    def _follow(self) -> None:
        """Moves the positions to the beams of the step before."""
        if self._chosen is None:
            self._matchers = [self._begun()]
            return
        tokens, parents, scores = self._chosen.on_host()
        before, after = self._matchers, []
        for token, parent, score in zip(tokens, parents, scores, strict=True):
            matcher = before[parent] if score > -torch.inf else None
            if matcher is not None:
                matcher = matcher.fork()
                matcher.commit(token)
            after.append(matcher)
        self._matchers = after

    def _begun(self) -> palmette.Matcher:
        """The position before the text."""
        grammar = self._grammar
        if isinstance(grammar, Future):
            try:
                grammar = grammar.result()
            except Exception as error:  # whatever it is, it is this request's
                raise ValueError(f"the grammar could not be compiled: {error}") from error
            self._keep(grammar.copy())
        if isinstance(grammar, InvalidGrammarObject):
            raise ValueError(grammar.error_message)
        assert isinstance(grammar, PalmetteGrammar), "of Palmette's backend"
        if self._is_promised:
            grammar.end_within(self.max_new_tokens)
            self._is_promised = grammar.matcher.fewest_tokens() is not None
        return grammar.matcher

    def _end_with(self, message: str) -> None:
        from sglang.srt.managers.schedule_batch import FINISH_ABORT

        logger.error("a search over texts ends: %s", message)
        self._matchers = []
        self.leader.to_finish = FINISH_ABORT(message)

    def _commit_final(self, sel: FinalSelect) -> bool:
        is_finished = super()._commit_final(sel)
        ends = set(self.stop_token_ids.tolist())
        for beam in self.completed:
            if beam.matched_token is None and beam.leaf is not None and beam.leaf.token in ends:
                beam.matched_token = beam.leaf.token
        return is_finished


class _Chosen:
    """Beams that a step chose, on their way to the host."""

    def __init__(self, chosen: SelectResult) -> None:
        self._arrays = (chosen.next_tokens, chosen.parent_idx, chosen.new_cum_logprobs)
        self._done: Any = None
        if chosen.next_tokens.device.type != "cpu":
            self._arrays = tuple(  # type: ignore[assignment]
                torch.empty(each.shape, dtype=each.dtype, pin_memory=True).copy_(each, non_blocking=True) for each in self._arrays
            )
            self._done = torch.get_device_module(chosen.next_tokens.device).Event()
            self._done.record()

    def on_host(self) -> list[list[Any]]:
        if self._done is not None:
            self._done.synchronize()
        return [each.tolist() for each in self._arrays]


def _ranked(
    total: torch.Tensor, tokens: torch.Tensor, width: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The best of candidates [beams, C]: scores, beams and tokens, equal scores in the order of beams, then of tokens."""
    best, at = top(total.reshape(1, -1), width)
    return best[0], at[0] // total.shape[1], tokens.reshape(-1)[at[0]]


def chosen_beams(
    scores: torch.Tensor, parents: torch.Tensor, tokens: torch.Tensor, stop_token_ids: torch.Tensor, width: int
) -> SelectResult:
    """SGLang's rule over ranked candidates: end tokens finish as long as fewer than `width` beams that go on come before them.

    It is `joint_select`, with an order of equal scores and without candidates of no probability: beams that there are not have the
    score -inf.
    """
    exists = scores > -torch.inf
    is_stop = torch.isin(tokens, stop_token_ids)
    goes_on = exists & ~is_stop
    rank = goes_on.long().cumsum(0)
    survives = goes_on & (rank <= width)
    finishes = exists & is_stop & (rank < width)

    def placed(values: torch.Tensor, which: torch.Tensor, size: int, rest: float) -> torch.Tensor:
        room = values.new_full((size + 1,), rest)
        room.scatter_(0, torch.where(which, which.long().cumsum(0) - 1, size), values)
        return room[:size]

    count = len(tokens)
    return SelectResult(
        next_tokens=placed(tokens, survives, width, 0),
        parent_idx=placed(parents, survives, width, 0),
        new_cum_logprobs=placed(scores, survives, width, -torch.inf),
        num_survivors=width,
        fin_tokens=placed(tokens, finishes, count, 0),
        fin_parent_idx=placed(parents, finishes, count, 0),
        fin_cum_logprobs=placed(scores, finishes, count, -torch.inf),
        num_finished=finishes.long().sum(),
    )


def grammar_of(backend: Any, req: Any) -> tuple[Any, bool, Any] | None:
    """A request's grammar or a future of it, whether its texts are promised to be whole, and what keeps the grammar; None without one.

    Raises ValueError where the server or the request cannot have it.
    """
    params = req.sampling_params
    asked = [(kind, getattr(params, member)) for member, kind in KINDS.items() if getattr(params, member) is not None]
    if not asked:
        return None
    if not isinstance(backend, PalmetteBackend):
        raise ValueError("beams under a grammar are for --grammar-backend palmette without --reasoning-parser")
    if params.ignore_eos:
        raise ValueError("ignore_eos holds end tokens back, by which texts of a grammar end: leave it out")
    is_promised = _requests.is_promised(params.custom_params)
    key = asked[0]
    grammar, _ = backend.get_cached_or_future_value(key, False)
    return grammar, is_promised, lambda made: backend.set_cache(key, made)
