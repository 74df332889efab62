"""STATIC's arrays against a slow builder, and what STATIC takes without a word."""

from __future__ import annotations

import numpy as np
import pytest

import palmette
from palmette.static import build_static_index


def by_definition(sids: list[list[int]], vocab: int, dense: int) -> tuple:
    """The arrays by their description: states are numbered a level after the other, each in sorted order."""
    rows = sorted({tuple(row) for row in sids})
    levels = len(rows[0])
    state = {}
    for length in range(1, levels):
        for prefix in sorted({row[:length] for row in rows}):
            state[prefix] = prefix[0] + 1 if length == 1 else vocab + 1 + sum(len(p) > 1 for p in state)
    num_states = vocab + 1 + sum(len(prefix) > 1 for prefix in state)
    children: dict[int, list[tuple[int, int]]] = {}
    for length in range(2, levels + 1):
        for prefix in sorted({row[:length] for row in rows}):
            child = 0 if length == levels else state[prefix]
            children.setdefault(state[prefix[:-1]], []).append((prefix[-1], child))
    edges, indptr = [], [0]
    for number in range(num_states):
        edges += children.get(number, [])
        indptr.append(len(edges))
    indptr.append(len(edges) + vocab)
    edges += [(vocab, 0)] * vocab
    branches = [len({row[0] for row in rows})]
    for length in range(1, levels):
        branches.append(max(len(children[state[prefix]]) for prefix in state if len(prefix) == length))
    start_mask = np.zeros(vocab, dtype=bool)
    dense_mask, dense_states = np.zeros([vocab] * dense, dtype=bool), np.zeros([vocab] * dense, dtype=np.int32)
    for row in rows:
        start_mask[row[0]] = True
        dense_mask[row[:dense]] = True
        dense_states[row[:dense]] = state[row[:dense]]
    arrays = np.array(edges, dtype=np.int32), np.array(indptr, dtype=np.int32)
    return *arrays, tuple(branches), start_mask, dense_mask, dense_states


def check(found: tuple, expected: tuple) -> None:
    assert len(found) == 6 and found[2] == expected[2]
    for place in (0, 1, 3, 4, 5):
        assert found[place].dtype == expected[place].dtype, place
        assert found[place].shape == expected[place].shape, place
        assert (found[place] == expected[place]).all(), place


@pytest.mark.parametrize(
    ("items", "levels", "size", "vocab", "dense"),
    [(200, 3, 8, 8, 2), (1, 3, 8, 9, 1), (60, 2, 5, 7, 1), (300, 5, 4, 6, 3), (500, 4, 9, 20, 2), (40, 8, 2, 2, 2)],
)
def test_all_six_arrays_are_equal(items: int, levels: int, size: int, vocab: int, dense: int) -> None:
    random = np.random.default_rng(items)
    sids = random.integers(0, size, (items, levels))
    expected = by_definition(sids.tolist(), vocab, dense)
    # In any order, with what comes twice.
    check(build_static_index(sids, vocab, dense), expected)
    check(build_static_index(np.unique(sids, axis=0).astype(np.int32), vocab, dense), expected)
    catalog = palmette.Catalog.build(sids)
    check(catalog.to_static(vocab_size=vocab, dense_lookup_layers=dense), expected)
    packed, indptr, _, start_mask, _, _ = expected
    back = palmette.Catalog.from_static(packed, indptr, start_mask, num_levels=levels)
    assert back.codes().tolist() == np.unique(sids, axis=0).tolist()
    assert back.ids() == [str(number) for number in range(len(back))]
    check(back.to_static(vocab, dense), expected)


def test_what_static_gets_wrong_is_refused_or_right() -> None:
    sids = np.array([[1, 2, 3], [0, 1, 1]])
    for wrong, message in [
        (np.array([[1, 2, 3], [0, -1, 1]]), "row 1.*code -1 at level 1"),
        (np.array([[1, 2, 3], [0, 1, 9]]), r"code 9 at level 2; with vocab_size=8"),
    ]:
        with pytest.raises(palmette.CatalogError, match=message):
            build_static_index(wrong, vocab_size=8)
    for dense in (0, 3, 70):
        with pytest.raises(palmette.CatalogError, match=f"dense_lookup_layers is {dense}.*1 to 2"):
            build_static_index(sids, 8, dense)
    with pytest.raises(palmette.CatalogError, match="to the power of 2"):
        build_static_index(sids, 200_000)
    with pytest.raises(TypeError, match="float64"):
        build_static_index(sids * 1.0)
    with pytest.raises(ValueError, match=r"\(3,\)"):
        build_static_index(sids[0])
    ragged = palmette.Catalog.build([[1, 2, 3], [1, 2]])
    with pytest.raises(palmette.CatalogError, match="has 2 codes where others have 3"):
        ragged.to_static()


def test_the_empty_set_denies_all() -> None:
    packed, indptr, branches, start, dense, states = build_static_index(np.zeros((0, 4), dtype=np.int32), 5)
    assert packed.tolist() == [[5, 0]] * 5 and branches == (0, 0, 0, 0)
    assert indptr.tolist() == [0] * 7 + [5]
    assert not start.any() and not dense.any() and not states.any()


def test_damaged_tables_are_refused() -> None:
    packed, indptr, _, start, _, _ = build_static_index(np.array([[1, 2, 3], [0, 1, 1]]), 8)
    build = palmette.Catalog.from_static
    lost = packed.copy()
    lost[0, 1] = 10_000
    with pytest.raises(palmette.CatalogError, match="state 10000"):
        build(lost, indptr, start, 3)
    with pytest.raises(palmette.CatalogError, match="state 0"):
        build(packed, indptr, start, 5)
    far = indptr.copy()
    far[2:] = 10_000
    with pytest.raises(palmette.CatalogError, match="has edges"):
        build(packed, far, start, 3)
    looped = packed.copy()
    looped[:, 1] = 1
    full = np.full_like(indptr, 0)
    full[2:] = len(packed)
    with pytest.raises(palmette.CatalogError, match="several ways"):
        build(looped, full, start, 40)
