"""Level tables: the tree of a catalog's semantic IDs as a few integer arrays a level, for decoders with static shapes.

A node is numbered by the edge that leads to it: edge `e` of level `l` ends in node `e` of level `l + 1`, so no array of
next states is kept, and a node without siblings on its level needs no row bounds either. The root is node 0 of level 0;
a node of level `num_levels` is a semantic ID, numbered in the order of its tokens.

Built here in NumPy, read by `palmette.torch_tables` and `palmette.jax`. Bytes: 2 an edge where a level has at most
32,767 different tokens (else 4), and 4 a node on levels where some node has more than one edge.

A level that nearly every token may continue has mask rows as well (`MaskRows`): a bit a token, so that a step reads columns
of scores and looks up no edge before it has chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.integer[Any]]

# Prefixes handed to the constraint in one call while its tree is read.
CHUNK = 1 << 20


# Mask rows are read in place of edges where a level has no more tokens than this many times its largest number of edges.
DENSE_TOKENS = 2
# Bytes of a level's mask rows, at most.
DENSE_BYTES = 16 << 20


@dataclass(frozen=True)
class MaskRows:
    """A level's edges as bits: one row of words a node, bit `c % 32` of word `c // 32` for the token `tokens[l][c]`.

    `words`: int32 [nodes, words]. `starts`: int32 [nodes, 2 * words], the first edge in each half of a word or behind it, so
    that an edge's number is that and the bits below its own. `is_complete`: every node has every token; then edge `c` of node `n`
    has the number `n * len(tokens[l]) + c`, and neither array is needed.
    """

    words: Ints
    starts: Ints
    is_complete: bool


@dataclass(frozen=True)
class LevelTables:
    """A tree of semantic IDs, level by level.

    `edges[l]`: int16 or int32 [edges of level l], each edge's index into `tokens[l]`, increasing within a node.
    `first[l]`: int32 [nodes of level l + 1], node `n` owns edges `first[l][n]..first[l][n + 1]`; None where every node
    of the level has exactly one edge, which then has the node's number.
    `tokens[l]`: int64, the model's tokens that level `l` uses, increasing.
    `branches[l]`: most edges that a node of level `l` has: the static width of the level's gather.
    """

    edges: tuple[Ints, ...]
    first: tuple[Ints | None, ...]
    tokens: tuple[Ints, ...]
    branches: tuple[int, ...]

    @property
    def num_levels(self) -> int:
        return len(self.edges)

    @property
    def num_semantic_ids(self) -> int:
        return len(self.edges[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = [
            *self.edges,
            *self.tokens,
            *(bounds for bounds in self.first if bounds is not None),
        ]
        return sum(array.nbytes for array in arrays)

    def semantic_ids(self) -> Ints:
        """All rows of tokens, int64 [semantic IDs, levels], in the order of their numbers."""
        rows = np.zeros((self.num_semantic_ids, self.num_levels), np.int64)
        node: Ints = np.arange(self.num_semantic_ids)
        for level in reversed(range(self.num_levels)):
            rows[:, level] = self.tokens[level][self.edges[level][node]]
            node = self.parents(level)[node]
        return rows

    def edge_masks(
        self, allowed: LevelTables, *, is_part: bool = False
    ) -> tuple[npt.NDArray[np.bool_], ...]:
        """Edges of this tree that `allowed`, a tree of some of its semantic IDs, has too: bool [edges] a level.

        Raises `ValueError` when `allowed` has a prefix that this tree lacks, unless this is a part of the tree that it is of.
        """
        if allowed.num_levels != self.num_levels:
            raise ValueError(
                f"the filtered items have {allowed.num_levels} levels, these tables {self.num_levels}"
            )
        masks = []
        node: Ints = np.zeros(1, np.int64)  # The node here of each node there.
        for level in range(self.num_levels):
            edge = self._edges_behind(
                level, node[allowed.parents(level)], allowed.tokens[level][allowed.edges[level]]
            )
            found = edge >= 0
            # Of a part: behind a prefix that is not here lies nothing that is.
            if not is_part and not found.all():
                raise ValueError(
                    f"level {level} of the filtered items has prefixes that these tables lack: they were built from other items"
                )
            mask = np.zeros(len(self.edges[level]), np.bool_)
            mask[edge[found]] = True
            masks.append(mask)
            node = edge
        return tuple(masks)

    def leaves_of(self, rows: Ints) -> Ints:
        """The number of the semantic ID that each row of tokens [rows, levels] is, int64; -1 for one that is none."""
        node: Ints = np.zeros(len(rows), np.int64)
        for level in range(self.num_levels):
            node = self._edges_behind(level, node, rows[:, level])
        return node

    def masks_of_leaves(self, leaves: Ints) -> tuple[npt.NDArray[np.bool_], ...]:
        """Edges on the ways to some semantic IDs, by their numbers: bool [edges] a level. A pass over the edges, and no tree is built."""
        there = np.zeros(self.num_semantic_ids, np.bool_)
        there[leaves] = True
        masks: list[npt.NDArray[np.bool_]] = []
        for level in reversed(range(self.num_levels)):
            masks.insert(0, there)
            parents = np.zeros(self.num_nodes(level), np.bool_)
            parents[self.parents(level)[there]] = True
            there = parents
        return tuple(masks)

    def _edges_behind(self, level: int, node: Ints, token: Ints) -> Ints:
        """The edge of each node for its token, int64; -1 where there is none, and behind node -1."""
        span = len(self.tokens[level]) + 1
        keys = self.parents(level) * span + self.edges[level]
        code = np.searchsorted(self.tokens[level], token)
        known = code < len(self.tokens[level])
        known[known] = self.tokens[level][code[known]] == token[known]
        wanted = node * span + np.where(known, code, span - 1)
        edge: Ints = np.searchsorted(keys, wanted)
        found = edge < len(keys)
        found[found] = keys[edge[found]] == wanted[found]
        return np.where(found & (node >= 0), edge, -1)

    def is_same(self, other: LevelTables) -> bool:
        """Whether both have the same semantic IDs in the same tokens."""
        pairs = zip(
            (*self.edges, *self.tokens, *self.first),
            (*other.edges, *other.tokens, *other.first),
            strict=False,
        )
        return self.num_levels == other.num_levels and all(
            one is another if one is None or another is None else np.array_equal(one, another)
            for one, another in pairs
        )

    def num_nodes(self, level: int) -> int:
        """Nodes of a level."""
        first = self.first[level]
        return len(self.edges[level]) if first is None else len(first) - 1

    def is_complete(self, level: int) -> bool:
        """Whether every node of a level has every token: edge `c` of node `n` then has the number `n * tokens + c`."""
        return len(self.edges[level]) == self.num_nodes(level) * len(self.tokens[level])

    def is_dense(self, level: int, max_bytes: int = DENSE_BYTES) -> bool:
        """Whether a step reads mask rows faster than edges: most tokens of the level may follow some node, and rows are few."""
        tokens = len(self.tokens[level])
        words = -(-tokens // 32)
        return (
            0 < tokens <= DENSE_TOKENS * self.branches[level]
            and 4 * words * self.num_nodes(level) <= max_bytes
        )

    def mask_rows(self, level: int) -> MaskRows:
        """The level as mask rows."""
        nodes = self.num_nodes(level)
        bits = self._bits(level, np.ones(len(self.edges[level]), np.bool_))
        counts = bits.reshape(nodes, -1, 16).sum(axis=2, dtype=np.int64)
        first = self.first[level]
        owned = np.arange(nodes) if first is None else first[:-1].astype(np.int64)
        starts = np.cumsum(counts, axis=1) - counts + owned.reshape(-1, 1)
        return MaskRows(_packed(bits), starts.astype(np.int32), self.is_complete(level))

    def words_of(self, level: int, edge_mask: npt.NDArray[np.bool_]) -> Ints:
        """Some edges of a level as mask rows' words, int32 [nodes, words]."""
        return _packed(self._bits(level, edge_mask))

    def _bits(self, level: int, edge_mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        width = -(-len(self.tokens[level]) // 32) * 32
        bits = np.zeros((self.num_nodes(level), width), np.bool_)
        bits[self.parents(level)[edge_mask], self.edges[level][edge_mask]] = True
        return bits

    def parents(self, level: int) -> Ints:
        """The node that each edge of the level leaves, int64 [edges]."""
        first = self.first[level]
        if first is None:
            return np.arange(len(self.edges[level]))
        return np.repeat(np.arange(len(first) - 1), np.diff(first))

    def first_token(self, level: int) -> int | None:
        """The first token of a level whose tokens follow one another, else None."""
        tokens = self.tokens[level]
        run = len(tokens) > 0 and int(tokens[-1]) - int(tokens[0]) + 1 == len(tokens)
        return int(tokens[0]) if run else None


def _packed(bits: npt.NDArray[np.bool_]) -> Ints:
    packed: Ints = np.packbits(bits, axis=1, bitorder="little").view("<i4").astype(np.int32)
    return packed


def tables_of(source: Any, num_levels: int | None = None) -> LevelTables:
    """Level tables of a catalog constraint (its tokens), a catalog (its codes), or the arrays of a STATIC index.

    The last is a tuple whose first, second and fourth arrays are the packed edges, the row pointers and the start mask.
    """
    if isinstance(source, LevelTables):
        return source
    if hasattr(source, "successors"):
        return _collect(_levels_of_constraint(source), source.num_levels)
    if hasattr(source, "to_static"):
        return _tables_of_catalog(source)
    if isinstance(source, tuple) and len(source) == 6:
        packed, pointers, branches, start = source[:4]
        return _collect(
            _levels_of_static(
                np.asarray(packed), np.asarray(pointers), np.asarray(start), len(branches)
            ),
            len(branches),
        )
    raise TypeError(
        "tables are built from a catalog, its constraint, or the six arrays of build_static_index, "
        f"not from {type(source).__name__}"
    )


def tables_of_rows(rows: Ints) -> LevelTables:
    """Level tables of rows of tokens [semantic IDs, levels] in any order, repetitions counted once."""
    rows = np.unique(np.asarray(rows, np.int64), axis=0)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"rows of tokens have the shape [semantic IDs, levels], not {rows.shape}")
    return _collect(_levels_of_rows(rows), rows.shape[1])


# One level: (edges that each node has, the edges' tokens).
_Level = tuple[Ints, Ints]


def _levels_of_rows(rows: Ints) -> Iterator[_Level]:
    begins = np.zeros(len(rows), np.bool_)
    begins[:1] = True
    for level in range(rows.shape[1]):
        node = np.cumsum(begins) - 1
        num_nodes = int(begins.sum()) if level else 1
        begins[1:] |= rows[1:, level] != rows[:-1, level]
        yield np.bincount(node[begins], minlength=num_nodes), rows[begins, level]


def _levels_of_constraint(constraint: Any) -> Iterator[_Level]:
    catalog = getattr(constraint, "catalog", None)
    if catalog is not None and (catalog.codes()[:, -1:] < 0).any():
        raise ValueError(
            f"some items have fewer than {constraint.num_levels} codes: tables are of items of one length"
        )
    prefixes = np.zeros((1, 0), np.int64)
    for _ in range(constraint.num_levels):
        counts, tokens = [], []
        for start in range(0, max(len(prefixes), 1), CHUNK):
            _, found, offsets = constraint.successors(prefixes[start : start + CHUNK])
            counts.append(_lengths(offsets))
            tokens.append(np.asarray(found, np.int64))
        count, token = np.concatenate(counts), np.concatenate(tokens)
        yield count, token
        prefixes = np.column_stack((np.repeat(prefixes, count, axis=0), token))


def _levels_of_static(
    packed: Ints, pointers: Ints, start: npt.NDArray[np.bool_], num_levels: int
) -> Iterator[_Level]:
    # States of one token are that token + 1; longer prefixes are numbered from vocabulary + 1, level by level, in the
    # order of the edges that lead to them.
    nodes = np.flatnonzero(start)
    yield np.array([len(nodes)]), nodes
    edge, state = 0, len(start) + 1
    for level in range(1, num_levels):
        if level == 1:
            count: Ints = pointers[nodes + 2].astype(np.int64) - pointers[nodes + 1]
            num_nodes = len(nodes)
        else:
            count = _lengths(pointers[state : state + num_nodes + 1])
            state += num_nodes
        num_edges = int(count.sum())
        yield count, packed[edge : edge + num_edges, 0].astype(np.int64)
        edge, num_nodes = edge + num_edges, num_edges


def _lengths(bounds: Ints) -> Ints:
    """Lengths of the ranges between bounds."""
    wide: Ints = np.asarray(bounds, np.int64)
    return wide[1:] - wide[:-1]


def _tables_of_catalog(catalog: Any) -> LevelTables:
    if catalog.num_levels == 1:  # A STATIC index has at least one level below its dense ones.
        return _collect(
            _levels_of_constraint(catalog.constraint([(0, catalog.codes_per_level[0])])), 1
        )
    packed, pointers, branches, start, *_ = catalog.to_static(dense_lookup_layers=1)
    return _collect(_levels_of_static(packed, pointers, start, len(branches)), len(branches))


def _collect(levels: Iterator[_Level], num_levels: int) -> LevelTables:
    edges: list[Ints] = []
    first: list[Ints | None] = []
    tokens: list[Ints] = []
    branches: list[int] = []
    for count, token in levels:
        if len(token) >= 1 << 31:
            raise ValueError(
                f"a level of {len(token):,} edges does not fit tables of 32-bit numbers"
            )
        used, index = np.unique(token, return_inverse=True)
        edges.append(index.astype(np.int16 if len(used) < 1 << 15 else np.int32))
        tokens.append(used.astype(np.int64))
        branches.append(int(count.max(initial=0)))
        single = len(count) == len(token) and bool((count == 1).all()) and len(edges) > 1
        first.append(None if single else np.concatenate(([0], np.cumsum(count))).astype(np.int32))
    if len(edges) != num_levels:
        raise ValueError(f"{len(edges)} levels where {num_levels} were announced")
    return LevelTables(tuple(edges), tuple(first), tuple(tokens), tuple(branches))


def check_choices(choices: Sequence[Any] | None, num_requests: int) -> None:
    """Refuses a list of per-request values of another length than the batch."""
    if choices is not None and len(choices) != num_requests:
        raise ValueError(
            f"{len(choices)} filters for {num_requests} requests: give one a request, None where it has none"
        )


def level_widths(widths: int | Sequence[int], num_levels: int) -> list[int]:
    """The beam width of each level: one number for all, or a number a level; refuses others."""
    each = [widths] * num_levels if isinstance(widths, int) else list(widths)
    if len(each) != num_levels or min(each) < 1:
        raise ValueError(
            f"beam widths {each} for {num_levels} levels: give one number from 1, or one a level"
        )
    return each
