"""Searches by `Beams` against the definition: every allowed extension scored, and sorted."""

from __future__ import annotations

import numpy as np
import pytest
from catalogs import Shop, rows_of, shop

import palmette


def log_probs_of(seed: int, prefix: tuple[int, ...], num_tokens: int, grades: int) -> np.ndarray:
    """A row of log-probabilities that is a function of the tokens so far; few grades make many ties."""
    random = np.random.default_rng([seed, *prefix])
    logits = random.integers(0, grades, num_tokens).astype(np.float32)
    return logits - np.log(np.exp(logits).sum(dtype=np.float32), dtype=np.float32)


def by_definition(
    stock: Shop, trie: dict, seed: int, width: int, levels: int, grades: int
) -> list[tuple[tuple[int, ...], np.float32]]:
    beams = [((), np.float32(0))]
    for _ in range(levels):
        extensions = []
        for row, (prefix, score) in enumerate(beams):
            log_probs = log_probs_of(seed, prefix, stock.num_tokens, grades)
            for token in trie.get(prefix, ()):
                extensions.append((-(score + log_probs[token]), row, token, prefix))
        extensions.sort(key=lambda extension: extension[:3])
        beams = [((*prefix, token), -cost) for cost, _, token, prefix in extensions[:width]]
    return beams


def search(
    stock: Shop, constraint: palmette.CatalogConstraint, seed: int, width: int, levels: int, grades: int
) -> palmette.Beams:
    beams = palmette.Beams(constraint, width)
    for level in range(levels):
        assert beams.level == level
        rows = [tuple(row) for row in beams.tokens.tolist()]
        log_probs = [log_probs_of(seed, row, stock.num_tokens, grades) for row in rows]
        matrix = np.array(log_probs, dtype=np.float32).reshape(len(rows), stock.num_tokens)
        beams.advance(*beams.select(matrix))
    return beams


@pytest.mark.parametrize("tables", [False, True])
@pytest.mark.parametrize("grades", [2, 50])
def test_searches_equal_the_definition(grades: int, tables: bool) -> None:
    for seed in range(8):
        stock = shop(seed, tables=tables)
        condition, cheap = stock.matching("ash", 70)
        for constraint, allowed in ((stock.constraint(), None), (stock.constraint(items=condition), cheap)):
            items = stock.items(allowed)
            for width in (1, 4, 40, 300):
                expected = by_definition(stock, stock.trie(allowed), seed, width, 3, grades)
                beams = search(stock, constraint, seed, width, 3, grades)
                assert [tuple(row) for row in beams.tokens.tolist()] == [prefix for prefix, _ in expected]
                assert beams.scores.tolist() == [score for _, score in expected]
                assert beams.items() == [items[prefix] for prefix, _ in expected]
                assert beams.num_rows == len(expected) <= width


@pytest.mark.parametrize("seed", range(1000))
def test_no_search_has_an_invalid_row(seed: int) -> None:
    stock = shop(seed % 7, items=1 + seed % 50)
    brand = ["ash", "birch", "cedar"][seed % 3]
    condition, allowed = stock.matching(brand, seed % 101)
    items = stock.items(allowed)
    width = 1 + seed % 17
    beams = palmette.Beams(stock.constraint(items=condition), width)
    random = np.random.default_rng(seed)
    for _ in range(3):
        beams.advance(*beams.select(random.normal(size=(beams.num_rows, stock.num_tokens)).astype(np.float32)))
    rows = [tuple(row) for row in beams.tokens.tolist()]
    assert len(set(rows)) == len(rows) == beams.num_rows and all(row in items for row in rows)
    if not allowed:
        assert beams.num_rows == 0 and beams.items() == []
    if width >= len(items):
        assert set(rows) == set(items)


def test_successors_and_masks_are_those_of_the_constraint() -> None:
    stock = shop(4)
    con = stock.constraint()
    beams = search(stock, con, 1, 10, 2, 5)
    tokens = beams.tokens
    assert rows_of(beams.successors()) == rows_of(con.successors(tokens))
    words = palmette.bitmask_words(stock.num_tokens)
    ours, theirs = np.zeros((2, 12, words), dtype=np.int32)
    beams.fill_masks(ours)
    con.fill_masks(tokens, theirs)
    assert (ours == theirs).all() and ours[:10].any(axis=1).all()
    backwards = np.zeros((10, words), dtype=np.int32)
    beams.fill_masks(backwards, rows=np.arange(10)[::-1])
    assert (backwards[::-1] == ours[:10]).all()


def test_rows_are_copied_dropped_and_kept_on_errors() -> None:
    stock = shop(5)
    beams = palmette.Beams(stock.constraint(), 4)
    _, tokens, _ = beams.successors()
    first, second = tokens[:2]
    beams.advance([0, 0, 0], [first, second, first])
    assert beams.tokens.tolist() == [[first], [second], [first]] and beams.scores.tolist() == [0, 0, 0]
    before = rows_of(beams.successors())
    assert before[0] == before[2]
    forbidden = next(token for token in range(stock.num_tokens) if token not in before[1])
    with pytest.raises(palmette.NotAllowed, match=f"token {forbidden} may not follow row 1") as raised:
        beams.advance([0, 1], [before[0][0], forbidden])
    assert (raised.value.token, raised.value.position) == (forbidden, 1)
    with pytest.raises(ValueError, match=r"parents\[0\] is 3, but there are 3 rows"):
        beams.advance([3], [before[0][0]])
    with pytest.raises(ValueError, match="2 tokens are given for 1 parents"):
        beams.advance([0], [1, 2])
    assert rows_of(beams.successors()) == before and beams.level == 1
    beams.advance([], [])
    assert beams.num_rows == 0 and beams.tokens.shape == (0, 2) and beams.items() == []
    beams.advance(*beams.select(np.zeros((0, stock.num_tokens), dtype=np.float32)))
    assert beams.num_rows == 0


def test_wrong_log_probs_are_refused() -> None:
    stock = shop(6)
    beams = palmette.Beams(stock.constraint(), 4)
    with pytest.raises(ValueError, match="log_probs has the shape"):
        beams.select(np.zeros((2, stock.num_tokens), dtype=np.float32))
    with pytest.raises(ValueError, match="log_probs has the shape"):
        beams.select(np.zeros((1, stock.num_tokens - 1), dtype=np.float32))
    with pytest.raises(TypeError, match="float64"):
        beams.select(np.zeros((1, stock.num_tokens)))
    with pytest.raises(ValueError, match="NaN"):
        beams.select(np.full((1, stock.num_tokens), np.nan, dtype=np.float32))
    with pytest.raises(ValueError, match="width is 0"):
        palmette.Beams(stock.constraint(), 0)
    # Minus infinity is a score, that of what a model holds impossible.
    lost = beams.select(np.full((1, stock.num_tokens + 5), -np.inf, dtype=np.float32))
    assert len(lost[0]) == 4 and np.isneginf(lost[2]).all()
