"""Logits processors for `generate`: catalogs and grammars, exact under beams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import LogitsProcessor

from palmette import Follower
from palmette.torch import apply_bitmask_
from palmette.transformers.requests import (
    constraints_of,
    indices,
    item_sets,
    refuse_short_items,
    successors,
)
from palmette.transformers.settings import check_width


class CatalogLogitsProcessor(LogitsProcessor):
    """Allows the tokens that continue a semantic ID of the catalog, in every row, at every step.

    Stateless over the codes: a row is walked from its start at each call, so beams may be reordered, copied and dropped.
    A row that begins no item (a placeholder beam) is denied everything instead of raising. One call into Rust and one
    indexed write a step, for all rows.

    `filters`: a filter or item set a request (None: all items); rows are dealt out to them evenly, as `generate` does.
    `num_beams` is only checked. Raises `ValueError` when a row is longer than an item: set `max_new_tokens` to
    `constraint.num_levels`.
    """

    supports_continuous_batching = False

    def __init__(
        self,
        constraint: Any,
        prompt_length: int | None = None,
        filters: Sequence[Any] | None = None,
        num_beams: int | None = None,
    ) -> None:
        self.constraint = constraint
        self.num_beams = num_beams
        self._items = item_sets(constraints_of(constraint, filters))
        self._generation = Generation(prompt_length)

    def reset(self) -> None:
        """Forgets the prompt: the next call begins a `generate`."""
        self._generation.reset()

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        suffixes, _ = self._generation.suffixes(input_ids)
        if suffixes.shape[1] >= self.constraint.num_levels:
            raise ValueError(
                f"{suffixes.shape[1]} tokens were generated and items have {self.constraint.num_levels}: "
                f"set max_new_tokens={self.constraint.num_levels}"
                " (a new processor, or prompt_length=, when an earlier result is the prompt)"
            )
        check_width(scores.shape[-1], self.constraint.num_tokens)
        refuse_short_items(self.constraint, suffixes)
        rows, tokens, _ = successors(
            self.constraint, suffixes, self._items, self._requests(len(suffixes))
        )
        row, token = indices(rows, scores.device), indices(tokens, scores.device)
        allowed = torch.full_like(scores, -torch.inf)
        allowed[row, token] = scores[row, token]
        return allowed

    def _requests(self, num_rows: int) -> npt.NDArray[np.int64] | None:
        """The request of each row, when requests differ."""
        num_requests = 1 if self._items is None else len(self._items)
        per_request, rest = divmod(num_rows, num_requests)
        if rest or (
            self.num_beams is not None and self._items is not None and per_request != self.num_beams
        ):
            beams = f" of {self.num_beams} beams" if self.num_beams is not None else ""
            raise ValueError(
                f"{num_rows} rows are not those of {num_requests} requests{beams}: give one filter a request of the batch"
            )
        return None if self._items is None else np.repeat(np.arange(num_requests), per_request)


class GrammarLogitsProcessor(LogitsProcessor):
    """Allows the tokens that continue a text of the grammar; exact under beams.

    Nobody tells a processor which beam a row came from: `Follower` finds the parent by content, since equal texts have
    equal states. `ends` are the end tokens (default: the vocabulary's); give `generate` the same as `eos_token_id`. A
    row that has ended may only end again, so that sampled batches with finished rows keep a token to draw; any other
    row that the grammar refuses (a placeholder beam) is denied everything.

    One `generate` at a time: give `prompt_length`, or call `reset`, before an earlier text becomes the next prompt.
    """

    supports_continuous_batching = False

    def __init__(
        self, compiled: Any, prompt_length: int | None = None, ends: Sequence[int] | None = None
    ) -> None:
        self.compiled = compiled
        self.ends = np.asarray(list(compiled.vocabulary.ends if ends is None else ends), np.int64)
        self._num_tokens = int(compiled.vocabulary.num_tokens)
        self._generation = Generation(prompt_length)
        self._follower = Follower(compiled, ends=self.ends.tolist())
        self._bitmask = np.zeros((0, (self._num_tokens + 31) // 32), np.int32)

    def reset(self) -> None:
        """Forgets the prompt: the next call begins a `generate`."""
        self._generation.reset()

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        check_width(scores.shape[-1], self._num_tokens)
        suffixes, begins = self._generation.suffixes(input_ids)
        if begins:
            self._follower.reset()
        if len(self._bitmask) != len(suffixes):
            self._bitmask = np.zeros((len(suffixes), self._bitmask.shape[1]), np.int32)
        self._follower.advance(np.ascontiguousarray(suffixes), self._bitmask)
        self._let_ended_rows_end(suffixes)
        return apply_bitmask_(scores.clone(), torch.from_numpy(self._bitmask))

    def _let_ended_rows_end(self, suffixes: npt.NDArray[np.int64]) -> None:
        if suffixes.shape[1] == 0 or len(self.ends) == 0:
            return
        ended = np.isin(suffixes, self.ends).any(axis=1) & ~self._bitmask.any(axis=1)
        for end in self.ends:
            self._bitmask.view(np.uint32)[ended, end >> 5] |= np.uint32(1 << (int(end) & 31))


class Generation:
    """The boundary between prompt and generated tokens, found by watching the calls of one processor.

    A processor is told neither when a `generate` begins nor how long its prompt is. The first call shows the prompt; a
    call continues it when it has the same rows, one token more, and the same tokens before the boundary. Any other call
    begins a new `generate`. N.B. an earlier result given back as the prompt, unchanged and complete, looks like one more
    step: fix `prompt_length`, or take a new processor, for that.
    """

    def __init__(self, prompt_length: int | None) -> None:
        self.fixed = prompt_length
        self.prompt: torch.Tensor | None = None
        self.last = -1

    def reset(self) -> None:
        self.prompt = None
        self.last = -1

    def suffixes(self, input_ids: torch.Tensor) -> tuple[npt.NDArray[np.int64], bool]:
        """Generated tokens of each row, int64 [rows, generated], and if this call begins a `generate`."""
        if self.fixed is not None:
            if input_ids.shape[1] < self.fixed:
                raise ValueError(
                    f"rows of {input_ids.shape[1]} tokens are shorter than the prompt length {self.fixed} given to the processor"
                )
            suffix = input_ids[:, self.fixed :].cpu().numpy()
            return suffix, suffix.shape[1] == 0
        begins = not self._continues(input_ids)
        if begins:
            self.prompt = input_ids
        assert self.prompt is not None
        self.last = input_ids.shape[1]
        return input_ids[:, self.prompt.shape[1] :].cpu().numpy(), begins

    def _continues(self, input_ids: torch.Tensor) -> bool:
        prompt = self.prompt
        return (
            prompt is not None
            and input_ids.shape[1] == self.last + 1
            and input_ids.shape[0] == prompt.shape[0]
            and input_ids.device == prompt.device
            and torch.equal(input_ids[:, : prompt.shape[1]], prompt)
        )
