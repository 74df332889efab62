"""Results of a search: the items or texts found, and what is left of the output of `generate` without its placeholders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from palmette._tables import check_choices
from palmette.transformers.requests import constraints_of

# Beams that `generate` starts with this score stand for nothing: a sum of log-probabilities is never so low.
PLACEHOLDER = -1e8


@dataclass(frozen=True)
class BeamResult:
    """Items found for a batch of requests, best first in each: flat arrays, request after request.

    `sequences`: int64 [results, num_levels], the items' tokens without the prompt. `scores`: float32 [results].
    `items`: ids of the items of each result (several, when items share a semantic ID). `offsets`: request `r` owns the
    results `offsets[r]..offsets[r + 1]`; requests may have fewer results than beams, or none.
    """

    sequences: torch.Tensor
    scores: torch.Tensor
    items: list[list[str]]
    offsets: list[int]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, request: int) -> BeamResult:
        if not -len(self) <= request < len(self):
            raise IndexError(f"request {request} of {len(self)}")
        start, end = self.offsets[request % len(self)], self.offsets[request % len(self) + 1]
        return BeamResult(
            self.sequences[start:end],
            self.scores[start:end],
            self.items[start:end],
            [0, end - start],
        )

    def __iter__(self) -> Iterator[BeamResult]:
        return (self[request] for request in range(len(self)))

    def ranked(self) -> list[tuple[str, float]]:
        """Pairs of item and score, best first; items that share a semantic ID stand together."""
        return [
            (item, score)
            for items, score in zip(self.items, self.scores.tolist(), strict=True)
            for item in items
        ]


def beam_result(
    output: Any,
    constraint: Any,
    num_requests: int = 1,
    filters: Sequence[Any] | None = None,
    length_penalty: float = 0.0,
) -> BeamResult:
    """The items in the output of `generate(..., num_beams=…, return_dict_in_generate=True, output_scores=True)`.

    With fewer valid items than beams `generate` fills its result with copies scored -1e9 and rows that are no items;
    these are left out, and so are repetitions. Scores are freed of `length_penalty`.
    """
    if getattr(output, "sequences_scores", None) is None:
        raise ValueError(
            "the output has no sequences_scores: call generate with num_beams > 1, return_dict_in_generate=True, output_scores=True"
        )
    sequences = output.sequences[:, -constraint.num_levels :]
    per_request, rest = divmod(len(sequences), num_requests)
    if rest:
        raise ValueError(f"{len(sequences)} sequences are not those of {num_requests} requests")
    check_choices(filters, num_requests)
    allowed = constraints_of(constraint, filters)
    scores = output.sequences_scores.float() * constraint.num_levels**length_penalty
    rows, kept, items, offsets = sequences.cpu().numpy(), [], [], [0]
    for request in range(num_requests):
        seen: set[bytes] = set()
        for row in range(request * per_request, (request + 1) * per_request):
            key = rows[row].tobytes()
            if float(scores[row]) <= PLACEHOLDER or key in seen:
                continue
            found = (allowed[request] if allowed else constraint).decode(rows[row : row + 1])[0]
            if found:
                seen.add(key)
                kept.append(row)
                items.append(found)
        offsets.append(len(kept))
    index = torch.tensor(kept, dtype=torch.int64, device=sequences.device)
    return BeamResult(sequences[index], scores[index.to(scores.device)], items, offsets)


@dataclass(frozen=True)
class TextResult:
    """One text of a grammar: its `tokens` without prompt, end token and padding, its `score`, and if it is complete.

    A text that is not was cut off by `max_new_tokens`: it is the beginning of a text of the grammar. One that is whole with its last
    token is complete without an end token.
    """

    tokens: list[int]
    text: bytes
    score: float
    is_complete: bool


def text_results(
    output: Any,
    compiled: Any,
    prompt_length: int,
    num_requests: int = 1,
    ends: Sequence[int] | None = None,
    length_penalty: float = 0.0,
) -> list[list[TextResult]]:
    """The texts in the output of `generate(..., num_beams=…)` under a `GrammarLogitsProcessor`, best first a request.

    Placeholders scored -1e9, repetitions, and rows that no text of the grammar begins with are left out. Scores are freed
    of `length_penalty` (1.0 is the default of `generate`).
    """
    if getattr(output, "sequences_scores", None) is None:
        raise ValueError(
            "the output has no sequences_scores: call generate with num_beams > 1, return_dict_in_generate=True, output_scores=True"
        )
    rows, scores = output.sequences[:, prompt_length:].tolist(), output.sequences_scores.tolist()
    per_request, rest = divmod(len(rows), num_requests)
    if rest:
        raise ValueError(f"{len(rows)} sequences are not those of {num_requests} requests")
    ends = list(compiled.vocabulary.ends if ends is None else ends)
    results: list[list[TextResult]] = [[] for _ in range(num_requests)]
    seen: set[tuple[int, ...]] = set()
    for number, (row, score) in enumerate(zip(rows, scores, strict=True)):
        if number % per_request == 0:
            seen = set()
        end = next((at for at, token in enumerate(row) if token in ends), None)
        tokens = row[:end]
        score *= (len(tokens) + (end is not None)) ** length_penalty
        if score <= PLACEHOLDER or tuple(row[: None if end is None else end + 1]) in seen:
            continue
        matcher = compiled.matcher(ends=ends)
        if matcher.accepted_prefix(tokens) < len(tokens):
            continue
        matcher.commit_all(tokens)
        is_complete = matcher.is_accepting
        if end is not None and not is_complete:
            continue
        seen.add(tuple(row[: None if end is None else end + 1]))
        results[number // per_request].append(
            TextResult(tokens, compiled.vocabulary.decode(tokens), score, is_complete)
        )
    return results
