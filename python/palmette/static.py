"""STATIC's index of semantic IDs, built by Palmette: the same six arrays, from rows in any order, with wrong input refused.

STATIC (Sparse Transition-Accelerated Trie Index) keeps a prefix tree as arrays, so that decoding under XLA or CUDA graphs is
gathers alone. A program that uses it changes one import:

>>> from palmette.static import build_static_index
>>> import numpy as np
>>> arrays = build_static_index(np.array([[3, 1, 0], [0, 7, 2], [0, 2, 2]]), vocab_size=8)
>>> packed_csr, indptr, layer_max_branches, start_mask, dense_mask, dense_states = arrays
>>> layer_max_branches
(2, 2, 1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from palmette._palmette import Catalog

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["build_static_index"]


def build_static_index(
    fresh_sids: npt.ArrayLike, vocab_size: int = 2048, dense_lookup_layers: int = 2
) -> tuple[
    npt.NDArray[np.int32],
    npt.NDArray[np.int32],
    tuple[int, ...],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    npt.NDArray[np.int32],
]:
    """The arrays ``(packed_csr, indptr, layer_max_branches, start_mask, dense_mask, dense_states)`` of semantic IDs ``[N, L]``.

    Rows may come in any order and several times, and there may be none. A negative code, one of ``vocab_size`` or more, and
    ``dense_lookup_layers`` that are not between 1 and L - 1 are a ``CatalogError`` that names them.

    Shapes, with V = ``vocab_size``, E edges and S states: ``packed_csr`` int32 ``[E + V, 2]``, ``indptr`` int32 ``[S + 2]``,
    ``layer_max_branches`` L numbers, ``start_mask`` bool ``[V]``, ``dense_mask`` bool and ``dense_states`` int32 ``[V, …, V]``.
    """
    sids: Any = np.asarray(fresh_sids)
    if sids.ndim != 2:
        raise ValueError(f"fresh_sids has the shape {sids.shape}; semantic IDs [N, L] are expected")
    if sids.size == 0:
        sids = sids.astype(np.int32)
    return Catalog.build(sids).to_static(vocab_size, dense_lookup_layers, num_levels=sids.shape[1])
