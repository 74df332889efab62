"""Device tables under JAX: against a search by definition, under `jit`, and the twin of STATIC's decoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip(
    "jax", reason="jax is not installed (it needs Python 3.12): its device tables are untested"
)

import jax.numpy as jnp  # noqa: E402
import palmette  # noqa: E402
from palmette.jax import decode, device_tables, edge_masks, select, sparse_transition_jax  # noqa: E402
from reference import DictConstraint, random_items, search, static_arrays  # noqa: E402


def random_constraint(
    rng: np.random.Generator, num_items: int, num_codes: int, num_levels: int
) -> DictConstraint:
    level_tokens = [rng.permutation(num_codes * 2)[:num_codes] + 3 for _ in range(num_levels)]
    return DictConstraint(
        random_items(rng, num_items, level_tokens), 2 * num_codes + 5, level_tokens
    )


def bigram(seed: int, num_tokens: int) -> tuple[Any, Any]:
    """A model that reads the last token alone: as a function of ids, and of a prefix (the first token is 2)."""
    logits = (
        np.random.default_rng(seed).standard_normal((num_tokens, num_tokens)).astype(np.float32)
    )
    table = jnp.asarray(logits)

    def log_probs(prefix: tuple[int, ...]) -> np.ndarray:
        row = logits[prefix[-1] if prefix else 2]
        return row - np.log(np.exp(row).sum())

    return table, log_probs


def check(tokens: Any, scores: Any, expected: list[tuple[tuple[int, ...], float]]) -> None:
    """The expected rows first, in order, with their scores; then nothing but rows scored -inf."""
    count = len(expected)
    assert [tuple(row) for row in np.asarray(tokens)[:count].tolist()] == [
        row for row, _ in expected
    ]
    np.testing.assert_allclose(
        np.asarray(scores)[:count], [score for _, score in expected], atol=1e-5
    )
    assert np.isneginf(np.asarray(scores)[count:]).all()


@pytest.mark.parametrize("seed", range(4))
def test_decode_under_jit_equals_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_levels = int(rng.integers(1, 5))
    constraint = random_constraint(
        rng, int(rng.integers(1, 120)), int(rng.integers(2, 10)), num_levels
    )
    table, log_probs = bigram(seed, constraint.num_tokens)
    tables = device_tables(constraint)
    widths = [int(width) for width in rng.integers(1, 30, size=num_levels)]

    @jax.jit
    def run(tables: Any, masks: Any = None) -> Any:
        return decode(
            lambda level, tokens, parents: table[
                jnp.full(2, 2) if tokens is None else tokens[:, 0]
            ],
            tables,
            2,
            widths,
            masks,
        )

    found = run(tables)
    assert found.tokens.shape == (2, widths[-1], num_levels)
    for request in range(2):
        check(found.tokens[request], found.scores[request], search(log_probs, constraint, widths))
    few = constraint.filtered([name for name in constraint.rows if rng.random() < 0.4])
    found = run(tables, edge_masks(constraint, few, None))
    for request, allowed in enumerate((few, constraint)):
        check(found.tokens[request], found.scores[request], search(log_probs, allowed, widths))


@pytest.mark.parametrize("seed", range(8))
def test_mask_rows_choose_what_edges_choose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_levels, num_codes = int(rng.integers(1, 4)), int(rng.integers(1, 70))
    num_items = int(rng.choice([1, 30, num_codes**2, 3 * num_codes**2]))
    tokens = [
        3 + num_codes * level + np.arange(num_codes) if seed % 2 else rng.permutation(num_codes * 2)[:num_codes] + 3
        for level in range(num_levels)
    ]
    num_tokens = 3 + num_codes * max(2, num_levels)
    catalog = palmette.Catalog.build(rng.integers(0, num_codes, size=(num_items, num_levels)))
    constraint = catalog.constraint(tokens, num_tokens=num_tokens)
    dense, plain = device_tables(constraint), device_tables(constraint, dense_bytes=0)
    assert dense.rows[0] is not None and plain.rows == (None,) * num_levels
    names = np.array(catalog.ids())
    few = constraint.filtered(catalog.items_with_ids(names[rng.random(num_items) < 0.3].tolist()))
    widths = [int(width) for width in rng.integers(1, 60, size=num_levels)]
    for masks in (None, edge_masks(constraint, few), edge_masks(constraint, few, None)):
        nodes, scores = jnp.zeros((2, 1), jnp.int32), jnp.zeros((2, 1), jnp.float32)
        for level, width in enumerate(widths):
            log_probs = jnp.asarray(-rng.integers(0, 4, size=(nodes.size, num_tokens)).astype(np.float32))
            ours, theirs = (
                [np.asarray(each) for each in select(tables, level, log_probs, nodes, scores, width, masks)]
                for tables in (dense, plain)
            )
            assert np.array_equal(ours[3], theirs[3])
            valid = ours[3] > -np.inf
            for one, other in zip(ours[:3], theirs[:3], strict=True):
                assert np.array_equal(one[valid], other[valid])
            nodes, scores = jnp.asarray(ours[2]), jnp.asarray(ours[3])


@pytest.mark.parametrize("seed", range(4))
def test_the_twin_of_static_is_exact_whatever_tokens_per_beam_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_levels = int(rng.integers(2, 5))
    constraint = random_constraint(rng, int(rng.integers(1, 60)), 7, num_levels)
    num_tokens = constraint.num_tokens
    packed, pointers, branches, start = static_arrays(list(constraint.rows.values()), num_tokens)
    table, log_probs = bigram(seed, num_tokens)

    def model(ids: Any, key: Any) -> Any:
        return table[ids], key

    for width in (3, num_tokens + 20):
        tokens, scores = sparse_transition_jax(
            model,
            jax.random.PRNGKey(0),
            2,
            width,
            1,
            2,
            num_levels,
            num_tokens,
            branches,
            jnp.asarray(packed),
            jnp.asarray(pointers),
            jnp.asarray(start),
            None,
            None,
            return_scores=True,
        )
        assert tokens.shape == (2, width, num_levels)
        for request in range(2):
            check(
                tokens[request],
                scores[request],
                search(log_probs, constraint, [width] * num_levels),
            )
