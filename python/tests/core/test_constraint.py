"""Constraints without state against a dict of prefixes."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from catalogs import rows_of, shop

import palmette


def bits(bitmask: np.ndarray, num_tokens: int) -> list[list[int]]:
    words = np.ascontiguousarray(bitmask).view(np.uint8)
    allowed = np.unpackbits(words, axis=1, bitorder="little")
    assert not allowed[:, num_tokens:].any()
    return [np.flatnonzero(row).tolist() for row in allowed]


@pytest.mark.parametrize("tables", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_successors_and_masks_equal_the_definition(seed: int, tables: bool) -> None:
    stock = shop(seed, tables=tables)
    condition, cheap = stock.matching("ash", 60)
    con = stock.constraint()
    assert con.num_tokens == stock.num_tokens and con.num_levels == 3
    for constraint, allowed in ((con, None), (con.filtered(condition), cheap)):
        trie = stock.trie(allowed)
        for length in range(4):
            prefixes = [list(prefix) for prefix in trie if len(prefix) == length]
            prefixes += [[0] * length, [-1] * length, [stock.num_tokens] * length]
            tokens = np.array(prefixes, dtype=np.int64).reshape(len(prefixes), length)
            expected = [sorted(trie.get(tuple(row), ())) for row in prefixes]
            assert rows_of(constraint.successors(tokens)) == expected
            bitmask = palmette.allocate_bitmask(len(prefixes), stock.num_tokens)
            constraint.fill_masks(tokens, bitmask)
            assert bits(bitmask, stock.num_tokens) == expected
            # Rows in another order, of a wider bitmask.
            order = np.random.default_rng(seed).permutation(len(prefixes) + 3)[: len(prefixes)]
            wide = palmette.allocate_bitmask(len(prefixes) + 3, stock.num_tokens + 70)
            constraint.fill_masks(tokens, wide, rows=order)
            assert bits(wide[order], stock.num_tokens) == expected
            others = np.setdiff1d(np.arange(len(wide)), order)
            assert (wide[others] == -1).all()


@pytest.mark.parametrize("seed", range(4))
def test_rows_decode_to_ids(seed: int) -> None:
    stock = shop(seed)
    condition, cheap = stock.matching("cedar", 70)
    con = stock.constraint(items=condition)
    assert set(con.items.ids()) == cheap and stock.constraint().items is None
    for constraint, allowed in ((stock.constraint(), None), (con, cheap)):
        items = stock.items(allowed)
        rows = [stock.spelled(codes) for codes in stock.codes] + [(-1, 0, 5), (0, 0, 0)]
        assert constraint.decode(np.array(rows)) == [items.get(row, []) for row in rows]
    assert con.decode(np.zeros((2, 1), dtype=np.int32)) == [[], []]


@pytest.mark.parametrize("seed", range(4))
def test_rows_may_have_item_sets_of_their_own(seed: int) -> None:
    stock = shop(seed)
    con = stock.constraint()
    first, cheap = stock.matching("ash", 60)
    second, rest = stock.matching("birch", 90)
    sets = [stock.catalog.filter(first), None, stock.catalog.filter(second)]
    tries = [stock.trie(cheap), stock.trie(), stock.trie(rest)]
    random = np.random.default_rng(seed)
    for length in range(3):
        every = [list(prefix) for prefix in tries[1] if len(prefix) == length] * 3
        random.shuffle(every)
        of_row = random.integers(0, 3, len(every))
        tokens = np.array(every, dtype=np.int32).reshape(len(every), length)
        expected = [sorted(tries[of].get(tuple(row), ())) for row, of in zip(every, of_row)]
        assert rows_of(con.successors(tokens, items=sets, item_of_row=of_row)) == expected
    assert rows_of(con.successors(np.zeros((3, 0), dtype=np.int32), items=sets)) == [sorted(t[()]) for t in tries]
    with pytest.raises(ValueError, match="3 item sets are given for 2 rows"):
        con.successors(np.zeros((2, 0), dtype=np.int32), items=sets)
    with pytest.raises(ValueError, match=r"item_of_row\[1\] is 3"):
        con.successors(np.zeros((2, 0), dtype=np.int32), items=sets, item_of_row=[0, 3])
    with pytest.raises(TypeError, match="dict"):
        con.successors(np.zeros((1, 0), dtype=np.int32), items=[{}])


def test_filters_compose_and_may_match_nothing() -> None:
    stock = shop(1)
    _, cheap = stock.matching("ash", 60)
    con = stock.constraint().filtered({"must": {"match": {"brand": "ash"}}})
    con = con.filtered({"must": {"range": {"price": {"lt": 60}}}})
    assert set(con.items.ids()) == cheap
    none = con.filtered({"must": {"match": {"brand": "birch"}}})
    assert len(none.items) == 0
    assert rows_of(none.successors(np.zeros((2, 0), dtype=np.int64))) == [[], []]
    bitmask = palmette.allocate_bitmask(2, stock.num_tokens)
    none.fill_masks(np.zeros((2, 0), dtype=np.int64), bitmask)
    assert not bitmask.any()
    first = stock.spelled(stock.codes[0])
    assert rows_of(none.successors(np.array([first[:2]]))) == [[]]
    assert none.decode(np.array([first])) == [[]]


def test_the_tokens_of_codes() -> None:
    catalog = palmette.Catalog.build([[0, 2], [2, 1]], ["a", "b"])
    con = catalog.constraint([(5, 3), [9, 4, 1]])
    assert con.num_tokens == 10
    assert [level.tolist() for level in con.code_tokens] == [[5, 6, 7], [9, 4, 1]]
    assert con.decode([[5, 1], [7, 4], [7, 1]]) == [["a"], ["b"], []]
    gaps = catalog.constraint([[3, -1, 2], [-1, 4, 1]], num_tokens=50)
    assert gaps.num_tokens == 50 and rows_of(gaps.successors([[3], [2]])) == [[1], [4]]
    for tokens, num_tokens, message in [
        ([(5, 3)], None, "2 codes, the model spells 1 levels"),
        ([(5, 3), (0, 2)], None, r"code 2 at level 1 \(item \"a\"\)"),
        ([[3, 4, -1], (0, 3)], None, r"code 2 at level 0 \(item \"b\"\), which has no token"),
        ([[3, 4, 3], (0, 3)], None, "codes 0 and 2 of level 0 have the same token 3"),
        ([(5, 3), (0, 3)], 7, "level 0 needs tokens 5 to 7, but the vocabulary has 7"),
        ([[3, 2, 9], (0, 3)], 9, "code 2 of level 0 has token 9, but the vocabulary has 9"),
    ]:
        with pytest.raises(palmette.CatalogError, match=message):
            catalog.constraint(tokens, num_tokens)
    with pytest.raises(TypeError, match="first token, number of codes"):
        catalog.constraint([(1, 2, 3), (0, 3)])
    with pytest.raises(ValueError, match="code 1 of level 0 has token -5"):
        catalog.constraint([[1, -5, 3], (0, 3)])


def test_wrong_arrays_are_refused() -> None:
    stock = shop(0)
    con = stock.constraint()
    words = palmette.bitmask_words(stock.num_tokens)
    rows = np.zeros((2, 0), dtype=np.int64)
    with pytest.raises(ValueError, match=r"\(3,\)"):
        con.successors(np.zeros(3, dtype=np.int64))
    with pytest.raises(TypeError, match="float32"):
        con.successors(np.zeros((3, 1), dtype=np.float32))
    with pytest.raises(TypeError, match="int64"):
        con.fill_masks(rows, np.zeros((2, words), dtype=np.int64))
    with pytest.raises(ValueError, match=r"\(2, 1\)"):
        con.fill_masks(rows, np.zeros((2, 1), dtype=np.int32))
    read_only = np.zeros((2, words), dtype=np.int32)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        con.fill_masks(rows, read_only)
    with pytest.raises(ValueError, match="C order"):
        con.fill_masks(rows, np.zeros((2, 2 * words), dtype=np.int32)[:, ::2])
    with pytest.raises(ValueError, match="has 1 rows, and 2"):
        con.fill_masks(rows, np.zeros((1, words), dtype=np.int32))
    with pytest.raises(IndexError, match="row 5"):
        con.fill_masks(rows, np.zeros((2, words), dtype=np.int32), rows=[0, 5])
    with pytest.raises(ValueError, match="twice"):
        con.fill_masks(rows, np.zeros((2, words), dtype=np.int32), rows=[1, 1])


def test_two_threads_at_once() -> None:
    stock = shop(2, items=400, size=12)
    con = stock.constraint()
    trie = stock.trie()
    prefixes = [prefix for prefix in trie if len(prefix) == 2]
    tokens = np.array(prefixes, dtype=np.int64)
    expected = [sorted(trie[prefix]) for prefix in prefixes]
    wrong = []

    def ask() -> None:
        bitmask = palmette.allocate_bitmask(len(prefixes), stock.num_tokens)
        for _ in range(100):
            if rows_of(con.successors(tokens)) != expected:
                wrong.append("successors")
            con.fill_masks(tokens, bitmask)
        if bits(bitmask, stock.num_tokens) != expected:
            wrong.append("masks")

    threads = [threading.Thread(target=ask) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong
