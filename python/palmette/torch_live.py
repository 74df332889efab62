"""Device tables of a live catalog: tables a segment, bits of what is there, generations that share them.

A live catalog is a few immutable segments and, for each, which of its items are still there. `LiveDeviceTables` keeps the
tables of each segment on the device under the segment's key. `refresh` goes to the newest generation: it uploads the segments
that are new, and of the others the bits that changed. What it gives, `GenerationTables`, never changes, so that a search goes
on over the generation it began with; tables that no generation needs any more are let go of with the last search that has them.

A position is a node in each segment, -1 where the segment has none; what may follow is what may follow in any of them, and a
token that several segments have is one continuation. Scores, beams and their order are those of tables built anew.

Letters: S segments, B requests, M beams a request, K most edges of a node of one segment's level, T tokens of a level.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from palmette._tables import LevelTables, tables_of, tables_of_rows
from palmette.torch_steps import LevelSteps, Step, Tensors
from palmette.torch_tables import EdgeMasks, masked, padded, top

__all__ = ["GenerationTables", "LiveDeviceTables", "SegmentTables"]

# Uses of a shape within a generation before it is captured: a generation may be gone before that pays.
CAPTURE_AFTER = 3


@dataclass(frozen=True)
class SegmentTables:
    """One segment's tree on the device, and which of its edges lead to an item that is there.

    `edges[l]` and `first[l]` are those of `LevelTables`. `columns[l]`: int64, the place among the level's tokens of each token
    that the segment uses. `alive[l]`: bool [edges], None where all are. `leaf_of_item`: on the host, the semantic ID's number
    of each item, -1 where a code has no token.
    """

    key: int
    host: LevelTables
    edges: tuple[torch.Tensor, ...]
    first: tuple[torch.Tensor | None, ...]
    columns: tuple[torch.Tensor, ...]
    alive: tuple[torch.Tensor | None, ...]
    alive_on_host: tuple[np.ndarray, ...]
    leaf_of_item: np.ndarray
    num_gone: int

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        kept = (*self.edges, *self.first, *self.columns, *self.alive)
        return sum(each.nbytes for each in kept if each is not None)

    def has_edges(self, level: int) -> bool:
        return len(self.host.edges[level]) > 0

    def edges_of(self, level: int, nodes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Edges [B, M, K] of nodes [B, M], and which of them there are; the others are 0."""
        there = (nodes >= 0).unsqueeze(-1)
        node = nodes.clamp(min=0)
        first = self.first[level]
        if first is None:  # Every node has one edge, of the node's number.
            edge = node.unsqueeze(-1)
        else:
            start, end = first[node].long(), first[node + 1].long()
            count = max(self.host.branches[level], 1)
            edge = start.unsqueeze(-1) + torch.arange(count, device=nodes.device)
            there = there & (edge < end.unsqueeze(-1))
            edge = torch.where(there, edge, 0)
        alive = self.alive[level]
        return edge, there if alive is None else there & alive[edge]


    def child_of(
        self, level: int, nodes: torch.Tensor, column: torch.Tensor
    ) -> torch.Tensor:
        """The node behind a token, given by its column, of each node [B, M]; -1 where none is that there is."""
        columns, first, alive = self.columns[level], self.first[level], self.alive[level]
        code = torch.searchsorted(columns, column).clamp(max=len(columns) - 1)
        there = (nodes >= 0) & (columns[code] == column)
        node = nodes.clamp(min=0)
        edges = self.edges[level]
        if self.host.is_complete(level):
            edge = node * len(columns) + code
        elif first is None:  # Every node has one edge, of the node's number.
            edge = node
        else:
            # The first edge of the node that is not below the code, by halves.
            edge, end = first[node].long(), first[node + 1].long()
            last, count = end - 1, end - edge
            for _ in range(self.host.branches[level].bit_length()):
                half = count >> 1
                is_below = (count > 0) & (edges[torch.minimum(edge + half, last).clamp(min=0)] < code)
                edge = torch.where(is_below, edge + half + 1, edge)
                count = torch.where(is_below, count - half - 1, half)
            there = there & (edge < end)
            edge = torch.minimum(edge, last).clamp(min=0)
        there = there & (edges[edge] == code)
        if alive is not None:
            there = there & alive[edge]
        return torch.where(there, edge, -1)


@dataclass(frozen=True)
class GenerationTables:
    """Tables of one generation: what `select`, `advance`, `decode` and `beam_search` take in place of `DeviceTables`.

    `tokens[l]`: int64, the tokens of the level, increasing; `first_tokens[l]`: the first where they follow one another, else
    None. `constraint`: the catalog of the generation in the model's tokens. Nodes are int64 [S, B, M]. A semantic ID's number is
    that of the first segment that has it, counted on from segment to segment.
    """

    segments: tuple[SegmentTables, ...]
    tokens: tuple[torch.Tensor, ...]
    first_tokens: tuple[int | None, ...]
    constraint: Any
    generation: int
    owner: LiveDeviceTables

    @property
    def num_levels(self) -> int:
        return len(self.tokens)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(each.nbytes for each in self.segments) + sum(each.nbytes for each in self.tokens)

    @property
    def device(self) -> torch.device:
        return self.tokens[0].device

    def edge_masks(self, *filtered: Any) -> EdgeMasks:
        """Edge masks of filters over this generation: one for all requests, or several, a request each.

        Each is `generation.constraint.filtered(…)`, or None for all items. A mask is bool [edges of all segments].
        """
        found = []
        for each in filtered:
            allowed = None if each is None else tables_of(each)
            parts = [
                tuple(np.ones(len(edges), np.bool_) for edges in segment.host.edges)
                if allowed is None
                else segment.host.edge_masks(allowed, is_part=True)
                for segment in self.segments
            ]
            found.append(
                [
                    np.concatenate([np.zeros(0, np.bool_), *(part[level] for part in parts)])
                    for level in range(self.num_levels)
                ]
            )
        return tuple(
            torch.from_numpy(np.stack(level) if len(level) > 1 else level[0]).to(self.device)
            for level in zip(*found, strict=True)
        )

    def edge_masks_of_items(self, numbers: Any) -> EdgeMasks:
        """Edge masks of some items of the generation's catalog, by their numbers: those of a filter of these, for all requests.

        Milliseconds where `edge_masks` builds the tree of the filtered items.
        """
        parts, start, segments = [], 0, iter(self.segments)
        for _, num_items, num_gone in self.constraint.catalog._segments():
            # Items are numbered segment by segment, with those that are gone; segments without others have no tables.
            if num_items > num_gone:
                segment = next(segments)
                inside = numbers[(numbers >= start) & (numbers < start + num_items)] - start
                leaves = segment.leaf_of_item[inside]
                parts.append(segment.host.masks_of_leaves(leaves[leaves >= 0]))
            start += num_items
        return tuple(
            torch.from_numpy(np.concatenate([np.zeros(0, np.bool_), *(part[level] for part in parts)])).to(self.device)
            for level in range(self.num_levels)
        )

    def start(self, num_requests: int) -> torch.Tensor:
        """The nodes of searches that begin."""
        shape = (len(self.segments), num_requests, 1)
        return torch.zeros(shape, dtype=torch.int64, device=self.device)

    def run(self, key: tuple[int, int], step: Step, *inputs: torch.Tensor) -> Tensors:
        """A step as the owner's settings say; as it is once another generation is the newest, which none should keep."""
        if self.owner.generation != self.generation:
            return step(*inputs)
        return self.owner.steps.run((self.generation, *key), step, *inputs)

    def numbers(self, nodes: torch.Tensor) -> torch.Tensor:
        """The semantic ID's number of each node behind the last level, int64 [B, M]."""
        found = nodes.new_zeros(nodes.shape[1:])
        ends = np.cumsum([segment.host.num_semantic_ids for segment in self.segments])
        for segment in reversed(range(len(self.segments))):
            offset = int(ends[segment - 1]) if segment else 0
            found = torch.where(nodes[segment] >= 0, nodes[segment] + offset, found)
        return found

    def choose(
        self,
        level: int,
        log_probs: torch.Tensor,
        nodes: torch.Tensor,
        scores: torch.Tensor,
        width: int,
        mask: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """`select` over all segments."""
        segments = [each for each in self.segments if each.has_edges(level)]
        num_requests, num_beams = nodes.shape[1:]
        columns: list[torch.Tensor] = []
        exists: list[torch.Tensor] = []
        offset = 0
        for place, segment in enumerate(self.segments):
            if not segment.has_edges(level):
                continue
            edge, there = segment.edges_of(level, nodes[place])
            if mask is not None:
                there = there & masked(mask, edge + offset)
            offset += len(segment.host.edges[level])
            code = segment.edges[level][edge].long()
            # A segment that uses all of the level's tokens has each in its own place.
            is_whole = len(segment.columns[level]) == len(self.tokens[level])
            columns.append(code if is_whole else segment.columns[level][code])
            exists.append(there)
        tokens, size, run = self.tokens[level], len(self.tokens[level]), self.first_tokens[level]
        if run is not None:
            log_probs = log_probs[:, run : run + size]
        by_beam = log_probs.view(num_requests, num_beams, -1)
        if not segments:
            best = scores.new_full((num_requests, 0), -torch.inf)
            column = beam = torch.zeros_like(best, dtype=torch.int64)
        elif _is_narrow([segment.host.branches[level] for segment in segments], size):
            _leave_out_repetitions(columns, exists)
            column, there = torch.cat(columns, dim=2), torch.cat(exists, dim=2)
            gathered = by_beam.gather(2, tokens[column] if run is None else column)
            total = torch.where(there, scores.unsqueeze(-1) + gathered, -torch.inf)
            edges, flat = column.shape[2], column.flatten(1)
            best, at = top(
                total.flatten(1), width, lambda at: at // edges * size + flat.gather(1, at)
            )
            beam, column = at // edges, flat.gather(1, at)
        else:
            allowed = torch.zeros(
                (num_requests, num_beams, size + 1), dtype=torch.bool, device=nodes.device
            )
            for column, there in zip(columns, exists, strict=True):
                # What there is not goes to a place behind the last.
                allowed.scatter_(2, torch.where(there, column, size), True)
            total = scores.unsqueeze(-1) + (by_beam[:, :, tokens] if run is None else by_beam)
            total = torch.where(allowed[:, :, :size], total, -torch.inf)
            best, at = top(total.flatten(1), width)
            beam, column = at // size, at % size
        following = nodes.new_full((len(self.segments), num_requests, width), -1)
        for place, segment in enumerate(self.segments):
            if segment.has_edges(level):
                parent = nodes[place].gather(1, beam)
                child = segment.child_of(level, parent, column)
                following[place, :, : child.shape[1]] = torch.where(best > -torch.inf, child, -1)
        beam, token, _, best = padded(width, beam, tokens[column], beam, best)
        return beam, token, following, best


class LiveDeviceTables:
    """Tables on a device that follow a `LiveCatalog` or a `LiveReader`.

    Args:
        source: what has `snapshot()`.
        device: where the tables are.
        code_tokens, num_tokens: as `Catalog.constraint` takes them; without them code `c` is token `c`.
        steps: as `device_tables` takes it. A shape is captured once it was used some times within one generation.
    """

    def __init__(
        self,
        source: Any,
        device: torch.device | str = "cpu",
        *,
        code_tokens: Sequence[Any] | None = None,
        num_tokens: int | None = None,
        steps: str = "auto",
    ) -> None:
        if not hasattr(source, "snapshot"):
            raise TypeError(
                f"source is a {type(source).__name__}; give a LiveCatalog or a LiveReader, or a frozen catalog to device_tables"
            )
        self.source, self.device = source, torch.device(device)
        self.code_tokens = None if code_tokens is None else list(code_tokens)
        self.num_tokens = num_tokens
        self.steps = LevelSteps(steps, after=CAPTURE_AFTER)
        self._lock = threading.Lock()
        self._now: GenerationTables | None = None
        self._uploaded = 0
        self.refresh()

    @property
    def uploaded_bytes(self) -> int:
        """Bytes that were copied to the device so far."""
        return self._uploaded

    @property
    def generation(self) -> int:
        """The generation that `refresh` gave last."""
        return self.now.generation

    @property
    def now(self) -> GenerationTables:
        """The tables that `refresh` gave last."""
        assert self._now is not None, "made by the first refresh"
        return self._now

    def refresh(self) -> GenerationTables:
        """The tables of the newest generation. Uploads segments that are new, and of others the bits that changed.

        Raises `ValueError` for an item with fewer codes than others have, and `CatalogError` for a code without a token; the
        tables then stay those of the generation before.
        """
        with self._lock:
            snapshot = self.source.snapshot()
            before = self._now
            if before is not None and before.generation == snapshot.generation:
                return before
            constraint = self._constraint(snapshot)
            codes_of_level = [np.asarray(each, np.int64) for each in constraint.code_tokens]
            tokens = self._tokens(codes_of_level, before)
            known = {} if before is None else {each.key: each for each in before.segments}
            segments = []
            for place, (key, num_items, num_gone) in enumerate(snapshot._segments()):
                if num_items == num_gone:
                    continue
                segment = known.get(key)
                if segment is None or segment.host.num_levels != len(tokens):
                    segment = self._segment(snapshot, place, key, codes_of_level, known)
                if segment.num_gone != num_gone:
                    segment = self._with_gone(segment, snapshot._segment_live(place), num_gone)
                segments.append(segment)
            first_tokens = tuple(map(_first_token, codes_of_level))
            now = GenerationTables(
                tuple(segments), tokens, first_tokens, constraint, snapshot.generation, self
            )
            self._now = now
            # What was captured reads tables of before.
            self.steps.clear()
            return now

    def _constraint(self, snapshot: Any) -> Any:
        if snapshot.num_levels == 0:
            raise ValueError("the catalog has no items yet: tables need to know how many codes an item has")
        if self.code_tokens is not None:
            return snapshot.constraint(self.code_tokens, self.num_tokens)
        return snapshot.constraint([(0, size) for size in snapshot.codes_per_level], self.num_tokens)

    def _tokens(
        self, codes_of_level: list[np.ndarray], before: GenerationTables | None
    ) -> tuple[torch.Tensor, ...]:
        """The tokens of each level, increasing; a tensor of the generation before where it is the same."""
        found = []
        for level, tokens in enumerate(codes_of_level):
            ordered = np.sort(tokens[tokens >= 0])
            if before is not None and before.num_levels == len(codes_of_level):
                old = before.tokens[level]
                # Without tokens of its own a level only grows, and with them it stays as it is.
                if len(old) == len(ordered):
                    found.append(old)
                    continue
            found.append(self._upload(ordered))
        return tuple(found)

    def _segment(
        self,
        snapshot: Any,
        place: int,
        key: int,
        codes_of_level: list[np.ndarray],
        known: dict[int, SegmentTables],
    ) -> SegmentTables:
        """The tables of a segment that is new; those of one of before where its tree is the same.

        The newest segment of a live catalog is made anew by each batch, also by one that does not touch it.
        """
        codes, live = snapshot._segment_codes(place), snapshot._segment_live(place)
        if (codes[live] < 0).any():
            raise ValueError(
                f"some items have fewer than {snapshot.num_levels} codes: tables are of items of one length"
            )
        host, leaf_of_item = _tree(codes, codes_of_level)
        columns = [
            np.searchsorted(np.sort(tokens[tokens >= 0]), host.tokens[level])
            for level, tokens in enumerate(codes_of_level)
        ]
        same = next((each for each in known.values() if each.host.is_same(host)), None)
        segment = SegmentTables(
            key=key,
            host=host,
            edges=same.edges if same else tuple(map(self._upload, host.edges)),
            first=same.first
            if same
            else tuple(None if each is None else self._upload(each) for each in host.first),
            columns=same.columns if same else tuple(map(self._upload, columns)),
            alive=(None,) * host.num_levels,
            alive_on_host=tuple(np.ones(len(each), np.bool_) for each in host.edges),
            leaf_of_item=leaf_of_item,
            num_gone=0,
        )
        num_gone = int(len(live) - live.sum())
        return self._with_gone(segment, live, num_gone) if num_gone else segment

    def _with_gone(self, segment: SegmentTables, live: np.ndarray, num_gone: int) -> SegmentTables:
        """The segment with the bits of the items that are there; bits that stay as they are are shared."""
        leaves = segment.leaf_of_item[live]
        on_host = segment.host.masks_of_leaves(leaves[leaves >= 0])
        alive = []
        for level, (now, before) in enumerate(zip(on_host, segment.alive_on_host, strict=True)):
            changed = np.flatnonzero(now != before)
            bits = segment.alive[level]
            if len(changed):
                # Searches under way have the bits of before.
                bits = (
                    torch.ones(len(now), dtype=torch.bool, device=self.device)
                    if bits is None
                    else bits.clone()
                )
                bits[self._upload(changed.astype(np.int32)).long()] = self._upload(now[changed])
            alive.append(bits)
        return SegmentTables(
            segment.key, segment.host, segment.edges, segment.first, segment.columns,
            tuple(alive), on_host, segment.leaf_of_item, num_gone,
        )  # fmt: skip

    def _upload(self, array: np.ndarray) -> torch.Tensor:
        self._uploaded += array.nbytes
        # A tensor of its own, on the host too: whoever made the array may change it.
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device, copy=True)


def _first_token(tokens: np.ndarray) -> int | None:
    """The first of a level's tokens where they follow one another, else None."""
    used = tokens[tokens >= 0]
    is_run = len(used) > 0 and int(used.max()) - int(used.min()) + 1 == len(used)
    return int(used.min()) if is_run else None


def _tree(codes: np.ndarray, codes_of_level: list[np.ndarray]) -> tuple[LevelTables, np.ndarray]:
    """The tree of items' codes [items, levels] in tokens, and the semantic ID's number of each, -1 where a code has no token."""
    rows = np.full(codes.shape, -1, np.int64)
    for level, tokens in enumerate(codes_of_level):
        column = codes[:, level].astype(np.int64)
        known = (column >= 0) & (column < len(tokens))
        rows[known, level] = tokens[column[known]]
    spelled = (rows >= 0).all(axis=1)
    leaf_of_item = np.full(len(rows), -1, np.int64)
    distinct, leaf = np.unique(rows[spelled], axis=0, return_inverse=True)
    leaf_of_item[spelled] = leaf.reshape(-1)
    return tables_of_rows(distinct), leaf_of_item


def _is_narrow(branches: Sequence[int], size: int) -> bool:
    """Whether edges of all segments side by side, compared pair by pair, are less work than all tokens of the level."""
    pairs = sum(
        count * sum(branches[:place]) for place, count in enumerate(branches) if place
    )
    return sum(branches) <= size and pairs <= 4 * size


def _leave_out_repetitions(columns: list[torch.Tensor], exists: list[torch.Tensor]) -> None:
    """Keeps of a token that several segments have the first segment's."""
    for place in range(1, len(columns)):
        repeated = torch.zeros_like(exists[place])
        for earlier in range(place):
            same = columns[place].unsqueeze(-1) == columns[earlier].unsqueeze(-2)
            repeated |= (same & exists[earlier].unsqueeze(-2)).any(dim=-1)
        exists[place] = exists[place] & ~repeated
