"""The choice of beams at a level: on the host by the constraint, or on the device by tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from palmette import Error
from palmette.torch_tables import Tables, advance
from palmette.transformers.heads import CutHeads
from palmette.transformers.requests import indices, item_sets, refuse_short_items, successors
from palmette.transformers.results import BeamResult


@dataclass(frozen=True)
class Chosen:
    """The next beams, request after request: the beam of the level before that each continues, its token, and how many
    beams each request has now. On the host (NumPy), or on the device with as many beams in every request."""

    parents: Any
    tokens: Any
    counts: npt.NDArray[np.int64]

    @property
    def is_empty(self) -> bool:
        return len(self.tokens) == 0


class Selection:
    """Live beams of all requests: their codes and scores, and the choice of the next ones.

    Beams of one request are neighbours, best first; requests may have different numbers of them. Candidates are gathered
    on the logits' device and compared on the host: a few thousand floats a level.
    """

    def __init__(
        self, constraint: Any, allowed: list[Any] | None, widths: list[int], num_requests: int
    ) -> None:
        self.constraint, self.allowed, self.widths = constraint, allowed, widths
        self.items = item_sets(allowed)
        self.level = 0
        self.codes = np.zeros((num_requests, 0), np.int64)
        self.scores = np.zeros(num_requests, np.float32)
        self.request = np.arange(num_requests)
        self.num_requests = num_requests

    def step(
        self,
        logits: torch.Tensor,
        heads: CutHeads | None,
        places: npt.NDArray[np.int64] | None = None,
    ) -> Chosen:
        """Chooses the next beams from logits [rows, V]. `places`: the row of each beam, when there are more rows than beams."""
        rows, tokens, _ = successors(
            self.constraint,
            self.codes,
            self.items,
            self.request if self.items is not None else None,
        )
        rows, tokens = rows.astype(np.int64), tokens.astype(np.int64)
        log_probs = self._log_probs(logits, rows if places is None else places[rows], tokens, heads)
        total = self.scores[rows] + log_probs
        bounds = np.searchsorted(self.request[rows], np.arange(self.num_requests + 1))
        width = self.widths[self.level]
        best = np.concatenate(
            [
                start + _best(total[start:end], width)
                for start, end in zip(bounds[:-1], bounds[1:], strict=True)
            ]
        )
        parents, chosen = rows[best], tokens[best]
        self.codes = np.column_stack((self.codes[parents], chosen))
        refuse_short_items(self.constraint, self.codes)
        self.scores, self.request = total[best], self.request[parents]
        self.level += 1
        return Chosen(parents, chosen, np.bincount(self.request, minlength=self.num_requests))

    def _log_probs(
        self,
        logits: torch.Tensor,
        rows: npt.NDArray[np.int64],
        tokens: npt.NDArray[np.int64],
        heads: CutHeads | None,
    ) -> npt.NDArray[np.float32]:
        columns = tokens
        logits = logits.float()
        if heads is not None:
            logits, columns = heads.columns(self.level, logits, tokens)
        norms = torch.logsumexp(logits, dim=-1)
        row, column = indices(rows, logits.device), indices(columns, logits.device)
        values = (logits[row, column] - norms[row]).cpu().numpy()
        if np.isnan(values).any() or bool(torch.isnan(norms).any()):
            raise _not_numbers(self.level)
        return values

    def result(self, device: torch.device) -> BeamResult:
        if self.codes.shape[1] < self.constraint.num_levels:  # No request had a beam any more.
            self.codes, self.scores, self.request = (
                np.zeros((0, self.constraint.num_levels), np.int64),
                np.zeros(0, np.float32),
                self.request[:0],
            )
        return _result(
            self.constraint,
            self.allowed,
            self.codes,
            self.scores,
            np.bincount(self.request, minlength=self.num_requests),
            device,
        )


class DeviceSelection:
    """The same on the device, by tables: [requests, beams], where beams without an item have the score -inf."""

    def __init__(
        self,
        constraint: Any,
        allowed: list[Any] | None,
        widths: list[int],
        num_requests: int,
        tables: Tables,
    ) -> None:
        self.constraint, self.allowed, self.widths, self.tables = (
            constraint,
            allowed,
            widths,
            tables,
        )
        self.masks = None
        if allowed is not None:
            # One mask would be meant for all requests, and is where there is one request.
            self.masks = tables.edge_masks(*allowed)
        self.level = 0
        self.nodes = tables.start(num_requests)
        self.scores = torch.zeros((num_requests, 1), device=tables.device)
        self.codes = torch.zeros((num_requests, 1, 0), dtype=torch.int64, device=tables.device)

    def step(self, logits: torch.Tensor, heads: CutHeads | None, places: Any = None) -> Chosen:
        width = self.widths[self.level]
        parents, tokens, self.nodes, self.scores, self.codes = advance(
            self.tables, self.level, logits, self.nodes, self.scores, self.codes, width, self.masks
        )
        self.level += 1
        return Chosen(parents, tokens, np.full(len(tokens), width))

    def result(self, device: torch.device) -> BeamResult:
        scores, codes = self.scores.cpu().numpy(), self.codes.cpu().numpy()
        if np.isnan(scores).any():
            raise _not_numbers(self.level - 1)
        valid = scores > -np.inf
        return _result(
            self.constraint, self.allowed, codes[valid], scores[valid], valid.sum(axis=1), device
        )


def _result(
    constraint: Any,
    allowed: list[Any] | None,
    codes: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float32],
    counts: npt.NDArray[np.int64],
    device: torch.device,
) -> BeamResult:
    offsets = np.concatenate(([0], np.cumsum(counts)))
    # Items that share a semantic ID may differ in what the filter says.
    constraints = allowed or [constraint] * len(counts)
    items = [
        ids
        for request, each in enumerate(constraints)
        for ids in each.decode(codes[offsets[request] : offsets[request + 1]])
    ]
    return BeamResult(
        torch.from_numpy(codes).to(device),
        torch.from_numpy(scores).to(device),
        items,
        offsets.tolist(),
    )


def _not_numbers(level: int) -> Error:
    return Error(
        f"the model's logits at level {level} are not numbers (NaN): check its weights and its float type"
    )


def _best(scores: npt.NDArray[np.float32], width: int) -> npt.NDArray[np.int64]:
    """Indices of the best `width` finite scores, best first, the first of equals first."""
    kept = np.flatnonzero(scores > -np.inf)
    if len(kept) > width:
        values = scores[kept]
        kept = kept[values >= np.partition(values, len(values) - width)[len(values) - width]]
    return kept[np.argsort(-scores[kept], kind="stable")[:width]]
