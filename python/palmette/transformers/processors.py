"""Logits processors for `generate`: catalogs and grammars, exact under beams and under drafts."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from transformers import LogitsProcessor

from palmette import Follower, TooFewTokens
from palmette._requests import NO_ENDS, checked_finish, too_few_tokens, too_many_tokens
from palmette._text_start import WatchedLoop
from palmette.torch import apply_bitmask_
from palmette.transformers.requests import (
    constraints_of,
    indices,
    item_sets,
    refuse_short_items,
    successors,
)
from palmette.transformers.running import RunningGenerate, running_generate
from palmette.transformers.settings import check_width


class TextProcessor(LogitsProcessor):
    """A logits processor that knows which tokens of a row are the text, and which the prompt.

    `prompt_length` says it. Otherwise the call of `generate` that runs the processor does, so that a processor serves one
    `generate` after another, whatever their prompts, and several threads at once. A loop that goes through no `generate` is
    watched, one text at a time: what may be another prompt is an error until `reset`.
    """

    supports_continuous_batching = False

    def __init__(self, prompt_length: int | None, num_tokens: int) -> None:
        if prompt_length is not None and prompt_length < 0:
            raise ValueError(f"prompt_length is {prompt_length}: give the number of tokens of the prompt, 0 or more")
        self.prompt_length = prompt_length
        self._num_tokens = num_tokens
        TextProcessor.reset(self)

    def reset(self) -> None:
        """Forgets the prompt of a loop that is watched: the next call shows another."""
        self._watched = WatchedLoop("processor")
        self._may_go_on = True

    def for_prompt(self, prompt: int | torch.Tensor) -> Self:
        """A processor of its own for one request: `prompt` is its length, or its rows `[rows, tokens]`."""
        made = copy.copy(self)
        made.prompt_length = prompt if isinstance(prompt, int) else int(prompt.shape[-1])
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_watched", "_local")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.reset()

    # Where `generate` itself is compiled, this stays as it is.
    @torch.compiler.disable
    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        run = running_generate(self)
        if run is not None and run.is_other_vocabulary(input_ids, scores.shape[-1], self._num_tokens):
            # A proposal in other tokens: what becomes of it in ours is checked as it is verified.
            return scores
        check_width(scores.shape[-1], self._num_tokens)
        text = self._text(input_ids, run)
        allowed, refused = self._allowed(text, scores, run)
        if run is None and self.prompt_length is None:
            self._check_watched(refused)
        if run is not None and refused.all():
            self._check_begun(text.shape[1], run)
        if run is not None and run.is_assisted and refused.any():
            # Behind a token that is refused: the whole draft is cut there, and some of its rows must have a token to draw.
            rows = torch.from_numpy(np.flatnonzero(refused)).to(scores.device)
            allowed[rows] = scores[rows]
        return allowed

    def _allowed(
        self, text: npt.NDArray[np.int64], scores: torch.Tensor, run: RunningGenerate | None
    ) -> tuple[torch.Tensor, npt.NDArray[np.bool_]]:
        """The scores with minus infinity where a token is not allowed, and the rows that nothing of the set begins with."""
        raise NotImplementedError

    def _text(self, input_ids: torch.Tensor, run: RunningGenerate | None) -> npt.NDArray[np.int64]:
        """The tokens behind the prompt."""
        length = self.prompt_length
        if length is None and run is not None:
            length = run.prompt.shape[1]
        if length is None:
            return self._watched.text(input_ids.cpu().numpy())
        if input_ids.shape[1] < length:
            raise ValueError(
                f"rows of {input_ids.shape[1]} tokens are shorter than the prompt length {length} given to the processor"
            )
        return input_ids[:, length:].cpu().numpy()

    def _check_begun(self, length: int, run: RunningGenerate) -> None:
        """Refuses a prompt length behind which the prompt itself is no text, before a token is written."""
        begun = 0 if self.prompt_length is None else run.prompt.shape[1] - self.prompt_length
        if 0 < length <= begun:
            raise ValueError(
                f"prompt_length={self.prompt_length} makes the last {begun} tokens of the prompt the beginning of the text, and no "
                f"text begins so: the prompt has {run.prompt.shape[1]} tokens, which prompt_length may leave out"
            )

    def _check_watched(self, refused: npt.NDArray[np.bool_]) -> None:
        """Refuses a call of which no row is a text, although the call before allowed tokens: it may be another prompt."""
        if len(refused) and refused.all() and self._may_go_on:
            raise self._watched.error("no row of this call is the beginning of a text")
        self._may_go_on = not refused.all()


def request_of_row(num_rows: int, num_requests: int, what: str) -> npt.NDArray[np.int64]:
    """The request of each row, rows being dealt out evenly, as `generate` does."""
    per_request, rest = divmod(num_rows, num_requests)
    if rest or not per_request:
        raise ValueError(f"{num_rows} rows are not those of {num_requests} requests: give one {what} a request of the batch")
    return np.repeat(np.arange(num_requests), per_request)


class CatalogLogitsProcessor(TextProcessor):
    """Allows the tokens that continue a semantic ID of the catalog, in every row, at every step.

    Stateless over the codes: a row is walked from its start at each call, so beams may be reordered, copied and dropped, and
    drafts be taken back. A row that begins no item (a placeholder beam) is denied everything instead of raising. One call into
    Rust and one indexed write a step, for all rows.

    `filters`: a filter or item set a request (None: all items); rows are dealt out to them evenly, as `generate` does.
    `num_beams` is only checked. Raises `ValueError` when a row is longer than an item: set `max_new_tokens` to
    `constraint.num_levels`.
    """

    def __init__(
        self,
        constraint: Any,
        prompt_length: int | None = None,
        filters: Sequence[Any] | None = None,
        num_beams: int | None = None,
    ) -> None:
        super().__init__(prompt_length, constraint.num_tokens)
        self.constraint = constraint
        self.num_beams = num_beams
        self._items = item_sets(constraints_of(constraint, filters))

    def _allowed(
        self, text: npt.NDArray[np.int64], scores: torch.Tensor, run: RunningGenerate | None
    ) -> tuple[torch.Tensor, npt.NDArray[np.bool_]]:
        refused = np.zeros(len(text), np.bool_)
        if text.shape[1] >= self.constraint.num_levels:
            self._check_is_draft(text.shape[1], run)
            return scores, refused
        refuse_short_items(self.constraint, text)
        rows, tokens, offsets = successors(
            self.constraint, text, self._items, self._requests(len(text))
        )
        row, token = indices(rows, scores.device), indices(tokens, scores.device)
        allowed = torch.full_like(scores, -torch.inf)
        allowed[row, token] = scores[row, token]
        return allowed, np.diff(offsets) == 0

    def _check_is_draft(self, length: int, run: RunningGenerate | None) -> None:
        """Raises unless it is the end of a draft, which `generate` cuts at its `max_length`."""
        levels = self.constraint.num_levels
        if run is not None and run.is_assisted and run.max_length is not None:
            start = run.prompt.shape[1] if self.prompt_length is None else self.prompt_length
            if run.max_length <= start + levels:
                return
        raise ValueError(
            f"{length} tokens were generated and items have {levels}: set max_new_tokens={levels}"
            " (a new processor, or prompt_length=, when an earlier result is the prompt)"
        )

    def _requests(self, num_rows: int) -> npt.NDArray[np.int64] | None:
        """The request of each row, when requests differ."""
        if self._items is None:
            return None
        requests = request_of_row(num_rows, len(self._items), "filter")
        per_request = num_rows // len(self._items)
        if self.num_beams is not None and per_request != self.num_beams:
            raise ValueError(
                f"{num_rows} rows are not those of {len(self._items)} requests of {self.num_beams} beams: "
                "give one filter a request of the batch"
            )
        return requests


class GrammarLogitsProcessor(TextProcessor):
    """Allows the tokens that continue a text of the grammar; exact under beams and drafts.

    `compiled` is a grammar, or a list with one a request of the batch, None for a request that writes freely; rows are dealt
    out to them evenly, as `generate` does. Nobody tells a processor which beam a row came from: `Follower` finds the parent by
    content, since equal texts have equal states. `ends` are the end tokens (default: the vocabulary's); give `generate` the same
    as `eos_token_id`. A row that has ended may only end again, so that sampled batches with finished rows keep a token to draw;
    any other row that the grammar refuses (a placeholder beam) is denied everything.

    Texts are whole within their tokens: those of `generate` (`max_new_tokens`, or `max_length` without the prompt), or
    `max_tokens` if that is less, for loops that go through no `generate` too. They do not end before `min_tokens`, or those of
    `generate` (`min_new_tokens`, or `min_length` without the prompt) if they are more. `TooFewTokens` is raised before the first
    token where a text takes more, `TooManyTokens` where none is known that takes so many; where no way to its end is known, and
    with `finish="cut"`, it may break off, and end early.
    """

    def __init__(
        self,
        compiled: Any | Sequence[Any],
        prompt_length: int | None = None,
        ends: Sequence[int] | None = None,
        *,
        max_tokens: int | None = None,
        min_tokens: int = 0,
        finish: Literal["promised", "cut"] = "promised",
    ) -> None:
        if max_tokens is not None and max_tokens < 0:
            raise ValueError(f"max_tokens is {max_tokens}: give the most tokens of a text, 0 or more")
        if min_tokens < 0:
            raise ValueError(f"min_tokens is {min_tokens}: give the fewest tokens of a text, 0 or more")
        self.max_tokens, self.min_tokens, self.finish = max_tokens, min_tokens, checked_finish(finish)
        self.compiled, self.ends = compiled, None if ends is None else list(ends)
        self._grammars = list(compiled) if isinstance(compiled, (list, tuple)) else [compiled]
        sizes = [int(each.num_tokens) for each in self._grammars if each is not None]
        if not sizes:
            raise ValueError("there are no grammars: give one, or a list with one a request")
        super().__init__(prompt_length, max(sizes))
        self._ends = [None if each is None else self._ends_of(each) for each in self._grammars]
        # Tokens of the shortest way through each grammar that is known; not found out before it is asked for.
        self._fewest: dict[int, int | None] = {}
        self._local = threading.local()

    def _ends_of(self, compiled: Any) -> npt.NDArray[np.int64]:
        ends = compiled.vocabulary.ends if self.ends is None else self.ends
        if not ends:
            raise ValueError(NO_ENDS)
        return np.asarray(list(ends), np.int64)

    def reset(self) -> None:
        super().reset()
        self._local = threading.local()

    def _allowed(
        self, text: npt.NDArray[np.int64], scores: torch.Tensor, run: RunningGenerate | None
    ) -> tuple[torch.Tensor, npt.NDArray[np.bool_]]:
        followers = self._followers()
        bitmask = np.zeros((len(text), (self._num_tokens + 31) // 32), np.int32)
        refused = np.zeros(len(text), np.bool_)
        constrained = []
        left, needed = self._tokens_left(text, run), self._tokens_needed(text, run)
        requests = request_of_row(len(text), len(followers), "grammar")
        for request, (follower, ends) in enumerate(zip(followers, self._ends, strict=True)):
            if follower is None or ends is None:
                continue
            rows = np.flatnonzero(requests == request)
            own = np.ascontiguousarray(text[rows])
            is_open = (left is None and needed is None) or self._fewest_tokens(request) is None
            within, least = (None, None) if is_open else (left, needed)
            if not is_open and text.shape[1] == self._begun(run):
                self._check_room(request, own, within, least)
            follower.advance(own, bitmask, rows.tolist(), tokens_left=within, tokens_needed=least)
            _let_ended_rows_end(text, bitmask, rows, ends)
            refused[rows] = ~bitmask[rows].any(axis=1)
            constrained += rows.tolist()
        masked = apply_bitmask_(scores.clone(), torch.from_numpy(bitmask), constrained)
        return masked, refused

    def _tokens_left(self, text: npt.NDArray[np.int64], run: RunningGenerate | None) -> int | None:
        """Tokens that the texts may still have; None where they may break off, or nobody says how many there are."""
        if self.finish == "cut":
            return None
        most = [] if self.max_tokens is None else [self.max_tokens]
        if run is not None and run.max_length is not None:
            most.append(run.max_length - run.prompt.shape[1] + self._begun(run))
        # What a draft has behind the last token is cut off.
        return max(min(most) - text.shape[1], 0) if most else None

    def _tokens_needed(self, text: npt.NDArray[np.int64], run: RunningGenerate | None) -> int | None:
        """Tokens that the texts must still have; None where they may end at once."""
        if self.finish == "cut":
            return None
        least = self.min_tokens
        if run is not None:
            least = max(least, run.min_length - run.prompt.shape[1] + self._begun(run))
        return least - text.shape[1] if least > text.shape[1] else None

    def _begun(self, run: RunningGenerate | None) -> int:
        """Tokens of the texts that stand in the prompts."""
        return 0 if run is None or self.prompt_length is None else run.prompt.shape[1] - self.prompt_length

    def _fewest_tokens(self, request: int) -> int | None:
        """Tokens of the shortest text of a request's grammar that is known; None where none is, so that nothing is promised."""
        if request not in self._fewest:
            self._fewest[request] = self._matcher(request).fewest_tokens()
        return self._fewest[request]

    def _matcher(self, request: int) -> Any:
        ends = self._ends[request]
        assert ends is not None
        return self._grammars[request].matcher(ends=ends.tolist())

    def _check_room(self, request: int, rows: npt.NDArray[np.int64], left: int | None, least: int | None) -> None:
        """Refuses texts that cannot be whole within their tokens, or not so long, before a token is written."""
        for row in np.unique(rows, axis=0):
            matcher = self._matcher(request)
            if matcher.accepted_prefix(row) < len(row):
                continue  # no beginning of a text, which is told elsewhere
            matcher.commit_all(row)
            needed = matcher.fewest_tokens()
            if needed is None:
                raise TooFewTokens(
                    f"request {request} begins with a text to whose end no way is known: set finish=\"cut\" if it may break off"
                )
            text = f"the text of request {request}"
            if left is not None and needed > left:
                raise too_few_tokens(needed, left, "max_new_tokens", 'finish="cut"', text)
            if least is not None and not matcher.has_way(tokens_left=left, tokens_needed=least):
                raise too_many_tokens(least, left, "min_new_tokens", "max_new_tokens", 'finish="cut"', text)

    def _followers(self) -> list[Any]:
        """Followers of this thread: those of another may be amid another text."""
        if not hasattr(self._local, "followers"):
            self._local.followers = [
                None if ends is None else Follower(each, ends=ends.tolist())
                for each, ends in zip(self._grammars, self._ends, strict=True)
            ]
        followers: list[Any] = self._local.followers
        return followers


def _let_ended_rows_end(
    text: npt.NDArray[np.int64],
    bitmask: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
) -> None:
    ended = rows[np.isin(text[rows], ends).any(axis=1) & ~bitmask[rows].any(axis=1)]
    for end in ends:
        bitmask.view(np.uint32)[ended, end >> 5] |= np.uint32(1 << (int(end) & 31))
