"""A catalog on the device under JAX: level tables as arrays, and an exact beam step with static shapes for `jax.jit`.

The twin of `palmette.torch_tables`: the same tables, the same functions, the same answers. `DeviceTables` is a pytree
whose widths are static, so it is an ordinary argument of a compiled function, and other tables of the same shapes need
no new compilation. Nothing here calls back to the host.

Letters: B requests, M beams a request, V the model's vocabulary, K most successors of a prefix of one level.
With fewer valid items than beams the rest has the score -inf, never an invalid row with a score. Ties: beam, then token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from palmette._tables import DENSE_BYTES, LevelTables, level_widths, tables_of

__all__ = [
    "DeviceBeams",
    "DeviceTables",
    "advance",
    "decode",
    "device_tables",
    "edge_masks",
    "select",
    "sparse_transition_jax",
]

Array = jax.Array
# One bool array a level: [edges], or [B, edges] with a row a request.
EdgeMasks = tuple[Array, ...]


@jax.tree_util.register_pytree_node_class
class DeviceTables:
    """`LevelTables` as JAX arrays: see there for the layout. `branches[l]`, K of level `l`, is static.

    `rows[l]`: the level as mask rows, its words and starts, an empty tuple where every node has every token, None where it is
    read by edges alone. `first_tokens[l]`, static: the first of tokens that follow one another, else None.
    """

    def __init__(
        self,
        edges: Sequence[Any],
        first: Sequence[Any],
        tokens: Sequence[Any],
        branches: Sequence[int],
        rows: Sequence[Any] | None = None,
        first_tokens: Sequence[int | None] | None = None,
    ) -> None:
        none = (None,) * len(tuple(edges))
        self.edges, self.first, self.tokens = tuple(edges), tuple(first), tuple(tokens)
        self.branches = tuple(branches)
        self.rows = none if rows is None else tuple(rows)
        self.first_tokens = none if first_tokens is None else tuple(first_tokens)

    @property
    def num_levels(self) -> int:
        return len(self.edges)

    @property
    def num_semantic_ids(self) -> int:
        return int(self.edges[-1].shape[0])

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        arrays = (self.edges, self.first, self.tokens, self.rows)
        return arrays, (self.branches, self.first_tokens)

    @classmethod
    def tree_unflatten(cls, static: tuple[Any, ...], arrays: tuple[Any, ...]) -> DeviceTables:
        branches, first_tokens = static
        edges, first, tokens, rows = arrays
        return cls(edges, first, tokens, branches, rows, first_tokens)


@jax.tree_util.register_pytree_node_class
class DeviceBeams:
    """Beams of a static shape: `tokens` int32 [B, M, levels], `scores` float32 [B, M], -inf where there is no beam,
    `semantic_ids` int32 [B, M], the number of each semantic ID in the order of its tokens."""

    def __init__(self, tokens: Any, scores: Any, semantic_ids: Any) -> None:
        self.tokens, self.scores, self.semantic_ids = tokens, scores, semantic_ids

    @property
    def valid(self) -> Array:
        """bool [B, M]: False in the rows to leave out."""
        return self.scores > -jnp.inf

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        return (self.tokens, self.scores, self.semantic_ids), None

    @classmethod
    def tree_unflatten(cls, _: None, leaves: tuple[Any, ...]) -> DeviceBeams:
        return cls(*leaves)


def device_tables(
    source: Any, device: Any = None, *, dense_bytes: int = DENSE_BYTES
) -> DeviceTables:
    """Tables of a catalog constraint (the model's tokens), a catalog (its codes), or the six arrays of a STATIC index.

    Levels that most tokens may continue get mask rows where these take `dense_bytes` at most; 0 keeps to edges.
    """
    host = tables_of(source)
    put = partial(jax.device_put, device=device)

    def rows(level: int) -> tuple[Any, ...] | None:
        if not host.is_dense(level, dense_bytes):
            return None
        made = host.mask_rows(level)
        return () if made.is_complete else (put(made.words), put(made.starts))

    levels = range(host.num_levels)
    return DeviceTables(
        [put(each) for each in host.edges],
        [None if each is None else put(each) for each in host.first],
        [put(each.astype(np.int32)) for each in host.tokens],
        host.branches,
        [rows(level) for level in levels],
        [host.first_token(level) for level in levels],
    )


def edge_masks(source: Any, *filtered: Any, device: Any = None) -> EdgeMasks:
    """Edge masks of filters over the tables of `source`: one for all requests, or several, a request each.

    Each is what tables are built from (`constraint.filtered(…)`), or None for all items.
    """
    host: LevelTables = tables_of(source)
    masks = [
        tuple(np.ones(len(edges), np.bool_) for edges in host.edges)
        if each is None
        else host.edge_masks(tables_of(each))
        for each in filtered
    ]
    levels = (
        masks[0] if len(masks) == 1 else [np.stack(level) for level in zip(*masks, strict=True)]
    )
    return tuple(jax.device_put(level, device) for level in levels)


@partial(jax.jit, static_argnames=("level", "width"))
def select(
    tables: DeviceTables,
    level: int,
    log_probs: Array,
    nodes: Array,
    scores: Array,
    width: int,
    edge_masks: EdgeMasks | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The best `width` continuations of the beams of each request at one level.

    `log_probs`: float32 [B * m, V] of the m beams there are now (one at level 0); `nodes`: int32 [B, m] (0 at level 0);
    `scores`: float32 [B, m]. Returns, each [B, width]: the beam continued (0..m), its token, the new node, the new score.
    """
    mask = None if edge_masks is None else edge_masks[level]
    return _select(tables, level, log_probs, nodes, scores, width, mask)


def _select(
    tables: DeviceTables,
    level: int,
    log_probs: Array,
    nodes: Array,
    scores: Array,
    width: int,
    mask: Array | None,
) -> tuple[Array, Array, Array, Array]:
    rows = tables.rows[level]
    if rows is not None and (mask is None or not rows):
        return _select_columns(tables, level, log_probs, nodes, scores, width, mask)
    num_requests, num_beams = nodes.shape
    edge, exists = _edges_of(tables, level, nodes)
    token = (
        tables.tokens[level][tables.edges[level][edge]]
        if tables.edges[level].size
        else jnp.zeros_like(edge)
    )
    if mask is not None:
        flat = edge.reshape(num_requests, -1)
        exists &= (
            mask[edge]
            if mask.ndim == 1
            else jnp.take_along_axis(mask, flat, axis=1).reshape(edge.shape)
        )
    gathered = jnp.take_along_axis(log_probs.reshape(num_requests, num_beams, -1), token, axis=2)
    total = jnp.where(exists, scores[..., None] + gathered, -jnp.inf).reshape(num_requests, -1)
    best, at = _top(total, width)
    beam = at // edge.shape[2]
    token = jnp.take_along_axis(token.reshape(num_requests, -1), at, axis=1)
    node = jnp.take_along_axis(edge.reshape(num_requests, -1), at, axis=1)
    return _padded(width, beam, token, node, best)


def _select_columns(
    tables: DeviceTables,
    level: int,
    log_probs: Array,
    nodes: Array,
    scores: Array,
    width: int,
    mask: Array | None,
) -> tuple[Array, Array, Array, Array]:
    """`_select` by mask rows: columns of scores under a row of bits a beam; edges are numbered once they are chosen."""
    num_requests, num_beams = nodes.shape
    rows, tokens, run = tables.rows[level], tables.tokens[level], tables.first_tokens[level]
    size = tokens.shape[0]
    columns = log_probs[:, tokens] if run is None else log_probs[:, run : run + size]
    total = scores[..., None] + columns.reshape(num_requests, num_beams, size)
    code = jnp.arange(size, dtype=jnp.int32)
    if mask is not None:  # Every node has every token: its edges lie one after another.
        edge = (nodes[..., None] * size + code).reshape(num_requests, -1)
        allowed = mask[edge] if mask.ndim == 1 else jnp.take_along_axis(mask, edge, axis=1)
        total = jnp.where(allowed.reshape(total.shape), total, -jnp.inf)
    if rows:
        words = rows[0][nodes[..., None], code >> 5]
        total = jnp.where((words >> (code & 31)) & 1 == 1, total, -jnp.inf)
    best, at = _top(total.reshape(num_requests, -1), width)
    beam, chosen = at // size, at % size
    parent = jnp.take_along_axis(nodes, beam, axis=1)
    if rows:
        half = (rows[0][parent, chosen >> 5] >> (chosen & 16)) & ((jnp.int32(1) << (chosen & 15)) - 1)
        node = rows[1][parent, chosen >> 4] + jax.lax.population_count(half)
        # A token that no bit stands for has no edge, and may be past the last.
        node = jnp.where(best > -jnp.inf, node, 0)
    else:
        node = parent * size + chosen
    return _padded(width, beam, tokens[chosen], node, best)


def _padded(
    width: int, beam: Array, token: Array, node: Array, best: Array
) -> tuple[Array, Array, Array, Array]:
    """The same, `width` wide: beams that there are not score -inf."""
    rest = ((0, 0), (0, width - best.shape[1]))
    return (
        jnp.pad(beam, rest),
        jnp.pad(token, rest),
        jnp.pad(node, rest),
        jnp.pad(best, rest, constant_values=-jnp.inf),
    )


@partial(jax.jit, static_argnames=("level", "width"))
def advance(
    tables: DeviceTables,
    level: int,
    logits: Array,
    nodes: Array,
    scores: Array,
    codes: Array,
    width: int,
    edge_masks: EdgeMasks | None = None,
) -> tuple[Array, Array, Array, Array, Array]:
    """A whole level from logits [B * m, V], compiled once for each shape.

    `codes`: int32 [B, m, level], the tokens so far. Returns what `select` returns, and the new codes.
    """
    mask = None if edge_masks is None else edge_masks[level]
    log_probs = jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)
    parents, token, nodes, scores = _select(tables, level, log_probs, nodes, scores, width, mask)
    past = jnp.take_along_axis(codes, parents[..., None], axis=1)
    return parents, token, nodes, scores, jnp.concatenate((past, token[..., None]), axis=2)


def _edges_of(tables: DeviceTables, level: int, nodes: Array) -> tuple[Array, Array]:
    """Edges of each node, int32 [B, m, K], and which of the K exist; edges that do not are 0."""
    first = tables.first[level]
    if first is None:  # Every node has one edge, of the node's number.
        return nodes[..., None], jnp.ones((*nodes.shape, 1), jnp.bool_)
    edge = first[nodes][..., None] + jnp.arange(max(tables.branches[level], 1), dtype=jnp.int32)
    exists = edge < first[nodes + 1][..., None]
    return jnp.where(exists, edge, 0), exists


def decode(
    logits: Callable[[int, Array | None, Array | None], Array],
    tables: DeviceTables,
    num_requests: int,
    widths: int | Sequence[int],
    edge_masks: EdgeMasks | None = None,
) -> DeviceBeams:
    """Beam search over all levels with static shapes. Each level is compiled once a shape; inside `jax.jit`, with the tables as
    an argument, the whole is one program.

    `logits(level, tokens, parents)` returns the model's logits [B * m, V] for the next token: at level 0 both are None
    and m is 1; later `tokens` [B * m, 1] are the beams' last tokens and `parents` [B, m] the beams of the level before
    that they continue, by which a model reorders its cache.
    """
    nodes = jnp.zeros((num_requests, 1), jnp.int32)
    scores = jnp.zeros((num_requests, 1), jnp.float32)
    codes = jnp.zeros((num_requests, 1, 0), jnp.int32)
    tokens = parents = None
    for level, width in enumerate(level_widths(widths, tables.num_levels)):
        parents, token, nodes, scores, codes = advance(
            tables, level, logits(level, tokens, parents), nodes, scores, codes, width, edge_masks
        )
        tokens = token.reshape(-1, 1)
    return DeviceBeams(codes, scores, nodes)


@partial(
    jax.jit,
    static_argnames=(
        "model",
        "batch_size",
        "beam_size",
        "tokens_per_beam",
        "start_token",
        "max_sample_len",
        "vocab_size",
        "max_branch_factors",
        "d_dense",
        "return_scores",
    ),
)
def sparse_transition_jax(
    model: Callable[[Array, Array], tuple[Array, Array]],
    key: Array,
    batch_size: int,
    beam_size: int,
    tokens_per_beam: int,
    start_token: int,
    max_sample_len: int,
    vocab_size: int,
    max_branch_factors: tuple[int, ...],
    packed_csr: Array,
    csr_indptr: Array,
    start_mask: Array,
    dense_mask: Array | None,
    dense_states: Array | None,
    d_dense: int = 2,
    *,
    return_scores: bool = False,
) -> Array | tuple[Array, Array]:
    """Beam search over the arrays of a STATIC index, with the arguments of STATIC's decoder of this name.

    `model(ids [rows, 1], key)` returns logits [rows, 1, V] and the next key. Returns tokens [B, beam_size, levels], with
    scores [B, beam_size] when `return_scores`, best first. Differences: the search is exact (`tokens_per_beam` cuts
    nothing) and a beam wider than the vocabulary is fine. Shapes are static under `jit`, so where fewer semantic IDs than
    beams exist the rows that are left hold -1 and score -inf. `dense_mask` and `dense_states` are not read.
    """
    del tokens_per_beam, dense_mask, dense_states, d_dense
    if start_mask.shape[0] != vocab_size or len(max_branch_factors) != max_sample_len:
        raise ValueError(
            f"an index of {start_mask.shape[0]} tokens and {len(max_branch_factors)} levels "
            f"does not fit vocab_size={vocab_size}, max_sample_len={max_sample_len}"
        )
    logits, key = model(jnp.full((batch_size, 1), start_token, jnp.int32), key)
    log_probs = jax.nn.log_softmax(logits[:, 0].astype(jnp.float32), axis=-1)
    scores, tokens = _top(jnp.where(start_mask, log_probs, -jnp.inf), beam_size)
    codes, states = tokens[..., None], tokens + 1
    for level in range(1, max_sample_len):
        logits, key = model(tokens.reshape(-1, 1), key)
        log_probs = jax.nn.log_softmax(logits[:, 0].astype(jnp.float32), axis=-1).reshape(
            batch_size, tokens.shape[1], -1
        )
        edge = csr_indptr[states][..., None] + jnp.arange(max(int(max_branch_factors[level]), 1))
        exists = edge < csr_indptr[states + 1][..., None]
        pair = packed_csr[jnp.where(exists, edge, 0)]
        token, state = jnp.minimum(pair[..., 0], vocab_size - 1), pair[..., 1]
        total = jnp.where(
            exists, scores[..., None] + jnp.take_along_axis(log_probs, token, axis=2), -jnp.inf
        )
        scores, at = _top(total.reshape(batch_size, -1), beam_size)
        parents = at // edge.shape[2]
        tokens = jnp.take_along_axis(token.reshape(batch_size, -1), at, axis=1)
        states = jnp.take_along_axis(state.reshape(batch_size, -1), at, axis=1)
        codes = jnp.concatenate(
            (jnp.take_along_axis(codes, parents[..., None], axis=1), tokens[..., None]), axis=2
        )
    rest = ((0, 0), (0, beam_size - scores.shape[1]))
    codes, scores = jnp.pad(codes, (*rest, (0, 0))), jnp.pad(scores, rest, constant_values=-jnp.inf)
    codes = jnp.where((scores > -jnp.inf)[..., None], codes, -1)
    return (codes, scores) if return_scores else codes


def _top(scores: Array, width: int) -> tuple[Array, Array]:
    best, at = jax.lax.top_k(scores, min(width, scores.shape[1]))
    return best, at
