"""Slow, obvious doubles of the package: a catalog as a dict of dicts, and a beam search as its definition.

Tests compare the package with these; nothing here is fast, and nothing here uses the package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

# Where models and tables are: `PALMETTE_TEST_DEVICE=cuda` tests them on a GPU.
DEVICE = os.environ.get("PALMETTE_TEST_DEVICE", "cpu")


class DictConstraint:
    """The interface of `palmette.CatalogConstraint` over a dict of dicts of tokens.

    `items`: rows of tokens by item id. A filter is a predicate of the item id, or a set of ids.
    """

    def __init__(
        self,
        items: dict[str, tuple[int, ...]],
        num_tokens: int,
        level_tokens: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.rows = items
        self.num_tokens = num_tokens
        self.num_levels = len(next(iter(items.values()))) if items else 1
        self._level_tokens = level_tokens
        self.trie: dict[int, Any] = {}
        for row in items.values():
            node = self.trie
            for token in row:
                node = node.setdefault(int(token), {})

    @property
    def items(self) -> frozenset[str]:
        return frozenset(self.rows)

    @property
    def code_tokens(self) -> list[np.ndarray]:
        if self._level_tokens is not None:
            return [np.asarray(tokens) for tokens in self._level_tokens]
        return [np.unique(column) for column in zip(*self.rows.values(), strict=True)]

    def filtered(self, wanted: Callable[[str], bool] | Iterable[str]) -> DictConstraint:
        keep = wanted if callable(wanted) else set(wanted).__contains__
        few = DictConstraint(
            {name: row for name, row in self.rows.items() if keep(name)},
            self.num_tokens,
            self._level_tokens,
        )
        few.num_levels = self.num_levels
        return few

    def next_tokens(self, prefix: Iterable[int]) -> list[int]:
        node = self.trie
        for token in prefix:
            node = node.get(int(token), {})
        return sorted(node)

    def successors(
        self, tokens: Any, items: Sequence[Any] | None = None, item_of_row: Any = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sets = [self if each is None else self.filtered(each) for each in items or [None]]
        which = item_of_row if item_of_row is not None else [0] * len(tokens)
        found = [
            sets[which[row]].next_tokens(prefix) for row, prefix in enumerate(np.asarray(tokens))
        ]
        rows = np.repeat(np.arange(len(found)), [len(each) for each in found])
        offsets = np.cumsum([0, *(len(each) for each in found)])
        return (
            rows.astype(np.int32),
            np.array([token for each in found for token in each], np.int32),
            offsets.astype(np.int32),
        )

    def decode(self, tokens: Any) -> list[list[str]]:
        return [
            [name for name, row in self.rows.items() if tuple(row) == tuple(int(t) for t in each)]
            for each in np.asarray(tokens)
        ]


def random_items(
    rng: np.random.Generator, num_items: int, level_tokens: Sequence[Sequence[int]]
) -> dict[str, tuple[int, ...]]:
    """Items with random tokens of each level; some share a semantic ID when the space is small."""
    columns = [rng.choice(np.asarray(tokens), num_items) for tokens in level_tokens]
    return {
        f"item-{number}": tuple(int(token) for token in row)
        for number, row in enumerate(zip(*columns, strict=True))
    }


def search(
    log_probs: Callable[[tuple[int, ...]], np.ndarray],
    constraint: DictConstraint,
    widths: Sequence[int],
) -> list[tuple[tuple[int, ...], float]]:
    """Beam search by definition: every valid continuation of every beam, sorted; ties by beam, then token."""
    beams: list[tuple[tuple[int, ...], np.float32]] = [((), np.float32(0.0))]
    for width in widths:
        candidates = []
        for prefix, score in beams:
            row = log_probs(prefix)
            candidates += [
                (prefix + (token,), np.float32(score + row[token]))
                for token in constraint.next_tokens(prefix)
            ]
        beams = sorted(candidates, key=lambda each: -each[1])[:width]
    return [(prefix, float(score)) for prefix, score in beams]


def prefix_log_probs(seed: int, num_tokens: int) -> Callable[[tuple[int, ...]], np.ndarray]:
    """A model as a function of the prefix: float32 log-probabilities drawn from the prefix itself."""

    def log_probs(prefix: tuple[int, ...]) -> np.ndarray:
        logits = (
            np.random.default_rng([seed, *prefix]).standard_normal(num_tokens).astype(np.float32)
        )
        return logits - np.log(np.exp(logits).sum(dtype=np.float64)).astype(np.float32)

    return log_probs


def static_arrays(rows: Sequence[Sequence[int]], num_tokens: int) -> tuple[Any, ...]:
    """The arrays of a STATIC index, by walking a dict trie level by level: (edges, pointers, branches, start mask)."""
    ordered = sorted({tuple(int(token) for token in row) for row in rows})
    num_levels = len(ordered[0])
    state = {row[:1]: row[0] + 1 for row in ordered}
    next_state = num_tokens + 1
    children: dict[int, list[tuple[int, int]]] = {}
    branches = [len(state)]
    for level in range(1, num_levels):
        for prefix in sorted({row[: level + 1] for row in ordered}):
            last = level == num_levels - 1
            state[prefix] = 0 if last else next_state
            next_state += not last
            children.setdefault(state[prefix[:-1]], []).append((prefix[-1], state[prefix]))
        branches.append(
            max(len(children[state[prefix]]) for prefix in {row[:level] for row in ordered})
        )
    edges = [edge for each in range(next_state) for edge in children.get(each, [])]
    pointers = np.cumsum(
        [0, *(len(children.get(each, [])) for each in range(next_state)), num_tokens]
    ).astype(np.int32)
    packed = np.array([*edges, *[(num_tokens, 0)] * num_tokens], np.int32)
    start = np.zeros(num_tokens, bool)
    start[[row[0] for row in ordered]] = True
    return packed, pointers, tuple(branches), start
