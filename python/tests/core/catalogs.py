"""Random catalogs, and what they mean by plain dicts: the oracle of the catalog tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import palmette

BRANDS = ["ash", "birch", "cedar"]


@dataclass
class Shop:
    """Items as plain lists, the catalog built of them, and the tokens that spell their codes."""

    codes: list[list[int]]
    ids: list[str]
    brands: list[str]
    prices: list[float]
    catalog: palmette.Catalog
    tokens: list[np.ndarray]
    num_tokens: int

    def spelled(self, codes: list[int]) -> tuple[int, ...]:
        return tuple(int(self.tokens[level][code]) for level, code in enumerate(codes))

    def trie(self, allowed: set[str] | None = None) -> dict[tuple[int, ...], set[int]]:
        """The tokens that may follow each prefix of an item that is allowed."""
        trie: dict[tuple[int, ...], set[int]] = {}
        for codes, item in zip(self.codes, self.ids):
            if allowed is None or item in allowed:
                tokens = self.spelled(codes)
                for level, token in enumerate(tokens):
                    trie.setdefault(tokens[:level], set()).add(token)
        return trie

    def items(self, allowed: set[str] | None = None) -> dict[tuple[int, ...], list[str]]:
        """The ids of the items with each sequence of tokens, in the order in which they were given."""
        found: dict[tuple[int, ...], list[str]] = {}
        for codes, item in zip(self.codes, self.ids):
            if allowed is None or item in allowed:
                found.setdefault(self.spelled(codes), []).append(item)
        return found

    def matching(self, brand: str, below: float) -> tuple[dict[str, Any], set[str]]:
        """A filter, and the ids that it matches."""
        condition = {"must": [{"match": {"brand": brand}}, {"range": {"price": {"lt": below}}}]}
        rows = zip(self.ids, self.brands, self.prices)
        return condition, {item for item, of, price in rows if of == brand and price < below}

    def constraint(self, **kinds: Any) -> palmette.CatalogConstraint:
        return self.catalog.constraint(self.tokens, self.num_tokens, **kinds)


def shop(seed: int, items: int = 60, levels: int = 3, size: int = 6, tables: bool = True) -> Shop:
    """A random catalog with collisions; its codes are spelled by runs, or by tables in any order."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, size, (items, levels)).astype(np.int32)
    ids = [f"item{n}" for n in range(items)]
    brands = [BRANDS[n] for n in random.integers(0, 3, items)]
    prices = [float(n) for n in random.integers(0, 100, items)]
    num_tokens = 3 + levels * size + 40
    tokens = []
    for level in range(levels):
        if tables:
            tokens.append(random.permutation(num_tokens)[:size].astype(np.int32))
        else:
            tokens.append(np.arange(3 + level * size, 3 + (level + 1) * size, dtype=np.int32))
    catalog = palmette.Catalog.build(codes, ids, {"brand": brands, "price": prices})
    return Shop(codes.tolist(), ids, brands, prices, catalog, tokens, num_tokens)


def rows_of(successors: tuple[np.ndarray, np.ndarray, np.ndarray]) -> list[list[int]]:
    """The tokens that may follow each row; the three arrays must agree."""
    rows, tokens, offsets = successors
    assert rows.dtype == tokens.dtype == offsets.dtype == np.int32
    assert rows.tolist() == np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)).tolist()
    return [tokens[a:b].tolist() for a, b in zip(offsets, offsets[1:])]
