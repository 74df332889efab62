"""A catalog on the device: level tables as torch tensors, and an exact beam step made of gathers with static shapes.

`device_tables(constraint_or_catalog, device)` copies the tree once; `select` is one level of beam search without a word
to the host, so it can be compiled whole (`torch.compile(select, fullgraph=True)`) and captured in a CUDA graph, as
`advance` does with the whole level by itself (`torch_steps`). `decode` runs all levels around a model. Tables that follow a
live catalog are in `torch_live`. `sparse_transition_torch` takes the arrays of a STATIC index and its decoder's arguments.

Letters: B requests, M beams a request, V the model's vocabulary, K most successors of a prefix of one level.
Shapes are static: with fewer valid items than beams the rest has the score -inf (`DeviceBeams.valid` is False there),
never an invalid row with a score. Nothing is cut before the top-M, so the search is exact. Equal scores come
in the order of beams, then of tokens, on any device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch

from palmette._tables import DENSE_BYTES, LevelTables, level_widths, tables_of
from palmette.torch_steps import LevelSteps, Step, Tensors

__all__ = [
    "DeviceBeams",
    "DeviceTables",
    "EdgeMasks",
    "advance",
    "decode",
    "device_tables",
    "select",
    "sparse_transition_torch",
]

# A tensor a level, with a row a request or one for all: bool [edges] or [B, edges], and where the tables have mask rows
# for the level, int32 [nodes, words] or [B, nodes, words]. Bool is read there too, by edges.
EdgeMasks = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class DeviceRows:
    """`MaskRows` of one level as tensors; `words` and `starts` are None where every node has every token.

    `first_token`: the first of tokens that follow one another, else None. `bits`: int32 [32], each bit of a word. `counts`:
    uint8 [2 ** 15], the bits of each number, None as `words` is.
    """

    words: torch.Tensor | None
    starts: torch.Tensor | None
    first_token: int | None
    bits: torch.Tensor
    counts: torch.Tensor | None


@dataclass(frozen=True)
class DeviceTables:
    """`LevelTables` as tensors of one device: see there for the layout.

    `edges[l]` int16 or int32, `first[l]` int32 or None, `tokens[l]` int64; `branches[l]` is K of level `l`. `rows[l]`: the
    level as mask rows, None where it is read by edges alone. `steps`: steps over these tables, captured by shape.
    """

    edges: tuple[torch.Tensor, ...]
    first: tuple[torch.Tensor | None, ...]
    tokens: tuple[torch.Tensor, ...]
    branches: tuple[int, ...]
    host: LevelTables
    rows: tuple[DeviceRows | None, ...]
    steps: LevelSteps = field(default_factory=LevelSteps, compare=False, repr=False)

    @property
    def num_levels(self) -> int:
        return len(self.edges)

    @property
    def num_semantic_ids(self) -> int:
        return self.host.num_semantic_ids

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        rows = (each for level in self.rows if level is not None for each in (level.words, level.starts))
        return self.host.nbytes + sum(each.nbytes for each in rows if each is not None)

    @property
    def device(self) -> torch.device:
        return self.edges[0].device

    def edge_masks(self, *filtered: Any) -> EdgeMasks:
        """Edge masks of filters: one for all requests, or several, a request each.

        Each is what tables are built from (`constraint.filtered(…)`), or None for all items.
        """
        masks = [
            self._all_edges() if each is None else self.host.edge_masks(tables_of(each))
            for each in filtered
        ]
        return tuple(
            torch.from_numpy(np.stack(level) if len(level) > 1 else level[0]).to(self.device)
            for level in zip(*(self._as_read(mask) for mask in masks), strict=True)
        )

    def edge_masks_of_leaves(self, leaves: Any) -> EdgeMasks:
        """Edge masks of some semantic IDs, by their numbers: those of a filter of these, for all requests.

        Milliseconds where `edge_masks` builds the tree of the filtered items.
        """
        masks = self._as_read(self.host.masks_of_leaves(leaves))
        return tuple(torch.from_numpy(each).to(self.device) for each in masks)

    def start(self, num_requests: int) -> torch.Tensor:
        """The nodes of searches that begin, int64 [B, 1]."""
        return torch.zeros((num_requests, 1), dtype=torch.int64, device=self.device)

    def run(self, key: tuple[int, int], step: Step, *inputs: torch.Tensor) -> Tensors:
        """A step as `steps` says."""
        return self.steps.run(key, step, *inputs)

    def numbers(self, nodes: torch.Tensor) -> torch.Tensor:
        """The semantic ID's number of each node behind the last level."""
        return nodes

    def choose(
        self,
        level: int,
        log_probs: torch.Tensor,
        nodes: torch.Tensor,
        scores: torch.Tensor,
        width: int,
        mask: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """`select`, under the level's mask."""
        return _select(self, level, log_probs, nodes, scores, width, mask)

    def _all_edges(self) -> tuple[np.ndarray, ...]:
        return tuple(np.ones(len(edges), np.bool_) for edges in self.host.edges)

    def _as_read(self, masks: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The masks of edges, as words where a level has mask rows."""
        return [
            mask if self.rows[level] is None else self.host.words_of(level, mask)
            for level, mask in enumerate(masks)
        ]


class Tables(Protocol):
    """What a search reads: `DeviceTables`, or the tables of a live catalog's generation (`palmette.torch_live`)."""

    @property
    def num_levels(self) -> int: ...
    @property
    def device(self) -> torch.device: ...
    def edge_masks(self, *filtered: Any) -> EdgeMasks: ...
    def start(self, num_requests: int) -> torch.Tensor: ...
    def run(self, key: tuple[int, int], step: Step, *inputs: torch.Tensor) -> Tensors: ...
    def numbers(self, nodes: torch.Tensor) -> torch.Tensor: ...
    def choose(
        self,
        level: int,
        log_probs: torch.Tensor,
        nodes: torch.Tensor,
        scores: torch.Tensor,
        width: int,
        mask: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]: ...


@dataclass(frozen=True)
class DeviceBeams:
    """Beams of a static shape, best first in each request.

    `tokens`: int64 [B, M, levels]; `scores`: float32 [B, M], -inf where there is no beam; `semantic_ids`: int64 [B, M],
    the number of each semantic ID in the order of its tokens, 0 where there is no beam.
    """

    tokens: torch.Tensor
    scores: torch.Tensor
    semantic_ids: torch.Tensor

    @property
    def valid(self) -> torch.Tensor:
        """bool [B, M]: False in the rows to leave out."""
        return self.scores > -torch.inf


def device_tables(
    source: Any,
    device: torch.device | str = "cpu",
    *,
    dense_bytes: int = DENSE_BYTES,
    steps: str | LevelSteps = "auto",
) -> DeviceTables:
    """Tables of a catalog constraint (the model's tokens), a catalog (its codes), or the six arrays of a STATIC index.

    Levels that most tokens may continue get mask rows where these take `dense_bytes` at most; 0 keeps to edges. `steps`
    is how `decode` and `beam_search` run a level: `"auto"` captures each shape in a CUDA graph where the device is one,
    `"plain"` launches its kernels one by one, `"compile"` has torch compile it; see `palmette.torch_steps`.
    """
    host = tables_of(source)
    return DeviceTables(
        edges=tuple(torch.from_numpy(each).to(device) for each in host.edges),
        first=tuple(
            None if each is None else torch.from_numpy(each).to(device) for each in host.first
        ),
        tokens=tuple(torch.from_numpy(each).to(device) for each in host.tokens),
        branches=host.branches,
        host=host,
        rows=tuple(
            _rows_of(host, level, device) if host.is_dense(level, dense_bytes) else None
            for level in range(host.num_levels)
        ),
        steps=LevelSteps(steps) if isinstance(steps, str) else steps,
    )


def _rows_of(host: LevelTables, level: int, device: torch.device | str) -> DeviceRows:
    rows = host.mask_rows(level)
    words, starts = (
        None if rows.is_complete else torch.from_numpy(each).to(device)
        for each in (rows.words, rows.starts)
    )
    bits = (torch.ones(32, dtype=torch.int32) << torch.arange(32, dtype=torch.int32)).to(device)
    counts = None
    if not rows.is_complete:
        numbers = np.arange(1 << 15, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
        ones = np.unpackbits(numbers, axis=1).sum(axis=1, dtype=np.uint8)
        counts = torch.from_numpy(ones).to(device)
    return DeviceRows(words, starts, host.first_token(level), bits, counts)


def select(
    tables: Tables,
    level: int,
    log_probs: torch.Tensor,
    nodes: torch.Tensor,
    scores: torch.Tensor,
    width: int,
    edge_masks: EdgeMasks | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The best `width` continuations of the beams of each request at one level.

    `log_probs`: float32 [B * m, V] of the m beams there are now (one at level 0); `nodes`: int64 [B, m] (0 at level 0);
    `scores`: float32 [B, m]. Returns, each [B, width]: the beam continued (0..m), its token, the new node, the new score.
    """
    mask = None if edge_masks is None else edge_masks[level]
    return tables.choose(level, log_probs, nodes, scores, width, mask)


def _select(
    tables: DeviceTables,
    level: int,
    log_probs: torch.Tensor,
    nodes: torch.Tensor,
    scores: torch.Tensor,
    width: int,
    mask: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    rows = tables.rows[level]
    if rows is not None and (mask is None or mask.dtype == torch.int32):
        return _select_columns(tables, rows, level, log_probs, nodes, scores, width, mask)
    num_requests, num_beams = nodes.shape
    edge, exists = _edges_of(tables, level, nodes)
    token = (
        tables.tokens[level][tables.edges[level][edge].long()]
        if tables.edges[level].numel()
        else torch.zeros_like(edge)
    )
    if mask is not None and tables.edges[level].numel():
        exists = exists & masked(mask, edge)
    gathered = log_probs.view(num_requests, num_beams, -1).gather(2, token)
    total = torch.where(exists, scores.unsqueeze(-1) + gathered, -torch.inf).flatten(1)
    best, at = top(total, width)
    beam = at // edge.shape[2]
    token, node = token.flatten(1).gather(1, at), edge.flatten(1).gather(1, at)
    return padded(width, beam, token, node, best)


def _select_columns(
    tables: DeviceTables,
    rows: DeviceRows,
    level: int,
    log_probs: torch.Tensor,
    nodes: torch.Tensor,
    scores: torch.Tensor,
    width: int,
    mask: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """`select` by mask rows: columns of scores under a row of bits a beam; edges are numbered once they are chosen."""
    num_requests, num_beams = nodes.shape
    tokens = tables.tokens[level]
    size = len(tokens)
    columns = (
        log_probs[:, tokens]
        if rows.first_token is None
        else log_probs[:, rows.first_token : rows.first_token + size]
    )
    words = rows.words if mask is None else mask
    if words is None and num_beams == 1:
        total = scores + columns
    elif words is None:
        total = (scores.unsqueeze(-1) + columns.view(num_requests, num_beams, size)).flatten(1)
    else:
        if words.dim() == 3:
            request = torch.arange(num_requests, device=nodes.device).unsqueeze(1)
            row = words[request, nodes]
        else:
            row = words[nodes]
        allowed = ((row.unsqueeze(-1) & rows.bits) != 0).flatten(2)[..., :size]
        total = scores.unsqueeze(-1) + columns.view(num_requests, num_beams, size)
        total = torch.where(allowed, total, -torch.inf).flatten(1)
    best, at = top(total, width)
    if num_beams == 1:
        beam, code, parent = torch.zeros_like(at), at, nodes
    else:
        beam, code = at // size, at % size
        parent = nodes.gather(1, beam)
    if rows.words is None or rows.starts is None or rows.counts is None:
        node = code if level == 0 else parent * size + code
    else:
        place = parent * rows.starts.shape[1] + (code >> 4)
        half = rows.words.view(torch.int16).flatten()[place] & ((1 << (code & 15)) - 1)
        node = rows.starts.flatten()[place] + rows.counts[half]
        # A token that no bit stands for has no edge, and may be past the last.
        node = torch.where(best > -torch.inf, node.long(), 0)
    return padded(width, beam, tokens[code], node, best)


def padded(
    width: int, beam: torch.Tensor, token: torch.Tensor, node: torch.Tensor, best: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same, `width` wide: beams that there are not score -inf."""
    if best.shape[1] == width:
        return beam, token, node, best
    rest = (0, width - best.shape[1])
    beam, token, node = (torch.nn.functional.pad(each, rest) for each in (beam, token, node))
    return beam, token, node, torch.nn.functional.pad(best, rest, value=-torch.inf)


def _edges_of(
    tables: DeviceTables, level: int, nodes: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Edges of each node, int64 [B, m, K], and which of the K exist; edges that do not are 0."""
    first = tables.first[level]
    if first is None:  # Every node has one edge, of the node's number.
        return nodes.unsqueeze(-1), torch.ones_like(nodes, dtype=torch.bool).unsqueeze(-1)
    start, end = first[nodes].long(), first[nodes + 1].long()
    edge = start.unsqueeze(-1) + torch.arange(max(tables.branches[level], 1), device=nodes.device)
    exists = edge < end.unsqueeze(-1)
    return torch.where(exists, edge, 0), exists


def advance(
    tables: Tables,
    level: int,
    logits: torch.Tensor,
    nodes: torch.Tensor,
    scores: torch.Tensor,
    codes: torch.Tensor,
    width: int,
    edge_masks: EdgeMasks | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A whole level from logits [B * m, V], captured or compiled as `tables.steps` says.

    `codes`: int64 [B, m, level], the tokens so far. Returns what `select` returns, and the new codes.
    """
    masks = () if edge_masks is None else (edge_masks[level],)

    def step(
        logits: torch.Tensor,
        nodes: torch.Tensor,
        scores: torch.Tensor,
        codes: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        log_probs = torch.log_softmax(logits.float(), dim=-1)
        parents, token, nodes, scores = tables.choose(level, log_probs, nodes, scores, width, mask)
        past = codes.gather(1, parents.unsqueeze(-1).expand(-1, -1, level))
        return parents, token, nodes, scores, torch.cat((past, token.unsqueeze(-1)), dim=2)

    parents, token, nodes, scores, codes = tables.run(
        (level, width), step, logits, nodes, scores, codes, *masks
    )
    return parents, token, nodes, scores, codes


def masked(mask: torch.Tensor, edge: torch.Tensor) -> torch.Tensor:
    if mask.dim() == 1:
        return mask[edge]
    return mask.gather(1, edge.flatten(1)).view(edge.shape)


def decode(
    logits: Callable[[int, torch.Tensor | None, torch.Tensor | None], torch.Tensor],
    tables: Tables,
    num_requests: int,
    widths: int | Sequence[int],
    edge_masks: EdgeMasks | None = None,
) -> DeviceBeams:
    """Beam search over all levels with static shapes; the host is asked for nothing.

    `logits(level, tokens, parents)` returns the model's logits [B * m, V] for the next token: at level 0 both are None
    and m is 1; later `tokens` [B * m, 1] are the beams' last tokens and `parents` [B, m] the beams of the level before
    that they continue, by which a model reorders its cache.
    """
    device = tables.device
    nodes = tables.start(num_requests)
    scores = torch.zeros((num_requests, 1), dtype=torch.float32, device=device)
    codes = torch.zeros((num_requests, 1, 0), dtype=torch.int64, device=device)
    tokens: torch.Tensor | None = None
    parents: torch.Tensor | None = None
    for level, width in enumerate(level_widths(widths, tables.num_levels)):
        parents, token, nodes, scores, codes = advance(
            tables, level, logits(level, tokens, parents), nodes, scores, codes, width, edge_masks
        )
        tokens = token.view(-1, 1)
    return DeviceBeams(codes, scores, tables.numbers(nodes))


@torch.inference_mode()
def sparse_transition_torch(
    model: Callable[[torch.Tensor], torch.Tensor],
    batch_size: int,
    beam_size: int,
    tokens_per_beam: int,
    start_token: int,
    max_sample_len: int,
    vocab_size: int,
    max_branch_factors: Sequence[int],
    packed_csr: torch.Tensor,
    csr_indptr: torch.Tensor,
    start_mask: torch.Tensor,
    dense_mask: torch.Tensor | None,
    dense_states: torch.Tensor | None,
    device: torch.device | str,
    d_dense: int = 2,
    *,
    return_scores: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Beam search over the arrays of a STATIC index, with the arguments of STATIC's decoder of this name.

    `model(ids [rows, 1])` returns logits [rows, 1, V]. Returns tokens [B, m, levels], with scores [B, m] when
    `return_scores`, best first. Differences: the search is exact (`tokens_per_beam` cuts nothing), m is `beam_size` or
    the number of semantic IDs if there are fewer, a beam wider than the vocabulary is fine, and rows that the model gives
    no probability hold -1 and score -inf. `dense_mask` and `dense_states` are not read: the rows say the same at any `d_dense`.
    """
    del tokens_per_beam, dense_mask, dense_states, d_dense
    if start_mask.shape[0] != vocab_size or len(max_branch_factors) != max_sample_len:
        raise ValueError(
            f"an index of {start_mask.shape[0]} tokens and {len(max_branch_factors)} levels "
            f"does not fit vocab_size={vocab_size}, max_sample_len={max_sample_len}"
        )
    ids = torch.full((batch_size, 1), start_token, dtype=torch.int64, device=device)
    log_probs = torch.log_softmax(model(ids)[:, 0].float(), dim=-1)
    scores, tokens = top(torch.where(start_mask, log_probs, -torch.inf), beam_size)
    codes, states = tokens.unsqueeze(-1), tokens + 1
    for level in range(1, max_sample_len):
        branches = int(max_branch_factors[level])
        log_probs = torch.log_softmax(model(tokens.view(-1, 1))[:, 0].float(), dim=-1).view(
            batch_size, tokens.shape[1], -1
        )
        start, end = csr_indptr[states].long(), csr_indptr[states + 1].long()
        edge = start.unsqueeze(-1) + torch.arange(max(branches, 1), device=start.device)
        exists = edge < end.unsqueeze(-1)
        pair = packed_csr[torch.where(exists, edge, 0)].long()
        token, state = pair[..., 0].clamp(max=vocab_size - 1), pair[..., 1]
        total = torch.where(exists, scores.unsqueeze(-1) + log_probs.gather(2, token), -torch.inf)
        scores, at = top(total.flatten(1), beam_size)
        parents = at // edge.shape[2]
        tokens, states = token.flatten(1).gather(1, at), state.flatten(1).gather(1, at)
        codes = torch.cat(
            (codes.gather(1, parents.unsqueeze(-1).expand(-1, -1, level)), tokens.unsqueeze(-1)),
            dim=2,
        )
    # A semantic ID is an edge of the last level, so one count bounds the results of every request.
    found = int((scores > -torch.inf).sum(dim=1).max()) if scores.numel() else 0
    codes, scores = codes[:, :found], scores[:, :found]
    codes = torch.where((scores > -torch.inf).unsqueeze(-1), codes, -1)
    return (codes, scores) if return_scores else codes


def top(
    scores: torch.Tensor,
    width: int,
    order: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The best of each row of float32 scores, best first, the first of equals first; and their places.

    `order`: what equals are ordered by, below 2 ** 31, of places [rows, n]; left out, the places themselves.

    `topk` of scores gives equal ones in an order of its own, which differs between devices. Each score is made an integer of
    the same order, less its place behind it, so that no two are equal.
    """
    if (
        scores.shape[1] >= LONG_ROW
        and scores.device.type == "cpu"
        and not torch.compiler.is_compiling()
    ):
        found = _top_without_ties(scores, width, order)
        if found is not None:
            return found
    # -0.0 becomes 0.0, which it equals.
    bits = (scores + 0.0).view(torch.int32).long()
    ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    places = torch.arange(scores.shape[1], device=scores.device)
    if order is not None:
        places = order(places.expand(scores.shape))
    keys = (ordered << 32) - places
    at = torch.topk(keys, min(width, scores.shape[1]), dim=1).indices
    return scores.gather(1, at), at


# Scores a row from which a look for ties costs the host less than keys.
LONG_ROW = 10_000


def _top_without_ties(
    scores: torch.Tensor, width: int, order: Callable[[torch.Tensor], torch.Tensor] | None
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The same where no score equals the last one that is taken and is left out; else None. It asks, so it is the host's."""
    count = min(width, scores.shape[1])
    best, at = torch.topk(scores, count, dim=1)
    last = best[:, -1:]
    if bool((((scores >= last).sum(dim=1, keepdim=True) > count) & (last > -torch.inf)).any()):
        return None
    if order is None:
        at = at.sort(dim=1).values
    else:
        at = at.gather(1, order(at).argsort(dim=1))
    best, by_score = scores.gather(1, at).sort(dim=1, descending=True, stable=True)
    return best, at.gather(1, by_score)
