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

from palmette._tables import LevelTables, level_widths, tables_of

__all__ = [
    "DeviceBeams",
    "DeviceTables",
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
    """`LevelTables` as JAX arrays: see there for the layout. `branches[l]`, K of level `l`, is static."""

    def __init__(
        self,
        edges: Sequence[Any],
        first: Sequence[Any],
        tokens: Sequence[Any],
        branches: Sequence[int],
    ) -> None:
        self.edges, self.first, self.tokens, self.branches = (
            tuple(edges),
            tuple(first),
            tuple(tokens),
            tuple(branches),
        )

    @property
    def num_levels(self) -> int:
        return len(self.edges)

    @property
    def num_semantic_ids(self) -> int:
        return int(self.edges[-1].shape[0])

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        return (self.edges, self.first, self.tokens), self.branches

    @classmethod
    def tree_unflatten(cls, branches: tuple[int, ...], leaves: tuple[Any, ...]) -> DeviceTables:
        return cls(*leaves, branches)


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


def device_tables(source: Any, device: Any = None) -> DeviceTables:
    """Tables of a catalog constraint (the model's tokens), a catalog (its codes), or the six arrays of a STATIC index."""
    host = tables_of(source)
    put = partial(jax.device_put, device=device)
    return DeviceTables(
        [put(each) for each in host.edges],
        [None if each is None else put(each) for each in host.first],
        [put(each.astype(np.int32)) for each in host.tokens],
        host.branches,
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
    num_requests, num_beams = nodes.shape
    edge, exists = _edges_of(tables, level, nodes)
    token = (
        tables.tokens[level][tables.edges[level][edge]]
        if tables.edges[level].size
        else jnp.zeros_like(edge)
    )
    if edge_masks is not None:
        mask = edge_masks[level]
        flat = edge.reshape(num_requests, -1)
        exists &= (
            mask[edge]
            if mask.ndim == 1
            else jnp.take_along_axis(mask, flat, axis=1).reshape(edge.shape)
        )
    gathered = jnp.take_along_axis(log_probs.reshape(num_requests, num_beams, -1), token, axis=2)
    total = jnp.where(exists, scores[..., None] + gathered, -jnp.inf).reshape(num_requests, -1)
    taken = min(width, total.shape[1])
    best, at = jax.lax.top_k(total, taken)
    beam = at // edge.shape[2]
    token = jnp.take_along_axis(token.reshape(num_requests, -1), at, axis=1)
    node = jnp.take_along_axis(edge.reshape(num_requests, -1), at, axis=1)
    rest = ((0, 0), (0, width - taken))
    return (
        jnp.pad(beam, rest),
        jnp.pad(token, rest),
        jnp.pad(node, rest),
        jnp.pad(best, rest, constant_values=-jnp.inf),
    )


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
    """Beam search over all levels with static shapes; call it inside `jax.jit` with the tables as an argument.

    `logits(level, tokens, parents)` returns the model's logits [B * m, V] for the next token: at level 0 both are None
    and m is 1; later `tokens` [B * m, 1] are the beams' last tokens and `parents` [B, m] the beams of the level before
    that they continue, by which a model reorders its cache.
    """
    nodes = jnp.zeros((num_requests, 1), jnp.int32)
    scores = jnp.zeros((num_requests, 1), jnp.float32)
    codes = jnp.zeros((num_requests, 1, 0), jnp.int32)
    tokens = parents = None
    for level, width in enumerate(level_widths(widths, tables.num_levels)):
        log_probs = jax.nn.log_softmax(logits(level, tokens, parents).astype(jnp.float32), axis=-1)
        parents, token, nodes, scores = select(
            tables, level, log_probs, nodes, scores, width, edge_masks
        )
        codes = jnp.concatenate(
            (jnp.take_along_axis(codes, parents[..., None], axis=1), token[..., None]), axis=2
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
