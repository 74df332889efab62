"""Device tables under torch: against a dict of dicts and a search by definition, with static shapes and compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: device tables are untested")

import palmette  # noqa: E402
from palmette import torch_tables  # noqa: E402
from palmette.torch_tables import (
    DeviceTables,
    decode,
    device_tables,
    select,
    sparse_transition_torch,
)  # noqa: E402
from reference import DEVICE, DictConstraint, prefix_log_probs, random_items, search, static_arrays  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


class PrefixModel:
    """Logits by prefix, kept a beam as a model keeps its cache: reordered by the parents that `decode` hands over."""

    def __init__(self, seeds: list[int], num_tokens: int) -> None:
        self.rows = [prefix_log_probs(seed, num_tokens) for seed in seeds]
        self.prefixes: list[list[tuple[int, ...]]] = [[()] for _ in seeds]

    def __call__(self, level: int, tokens: Any, parents: Any) -> torch.Tensor:
        if tokens is not None:
            last = tokens.view(len(self.rows), -1).tolist()
            self.prefixes = [
                [old[parent] + (token,) for parent, token in zip(*each, strict=True)]
                for old, *each in zip(self.prefixes, parents.tolist(), last, strict=True)
            ]
        assert all(len(prefix) == level for each in self.prefixes for prefix in each)
        return torch.from_numpy(
            np.stack(
                [
                    row(prefix)
                    for row, each in zip(self.rows, self.prefixes, strict=True)
                    for prefix in each
                ]
            )
        ).to(DEVICE)


def random_constraint(
    rng: np.random.Generator, num_items: int, num_codes: int, num_levels: int
) -> DictConstraint:
    level_tokens = [rng.permutation(num_codes * 2)[:num_codes] + 3 for _ in range(num_levels)]
    return DictConstraint(
        random_items(rng, num_items, level_tokens), 2 * num_codes + 5, level_tokens
    )


def check(
    found: Any,
    request: int,
    expected: list[tuple[tuple[int, ...], float]],
    tables: DeviceTables | None,
) -> None:
    """The expected rows first, in order, with their scores and numbers; then nothing but rows marked as none."""
    count = len(expected)
    assert [tuple(row) for row in found.tokens[request, :count].tolist()] == [
        row for row, _ in expected
    ]
    np.testing.assert_allclose(
        found.scores[request, :count].tolist(), [score for _, score in expected], atol=1e-5
    )
    assert found.valid[request].tolist() == [True] * count + [False] * (
        found.valid.shape[1] - count
    )
    if tables is not None:
        named = tables.host.semantic_ids()[found.semantic_ids[request, :count].cpu().numpy()]
        assert [tuple(row) for row in named.tolist()] == [row for row, _ in expected]


@pytest.mark.parametrize("seed", range(10))
def test_equal_scores_come_in_the_order_of_beams_then_tokens(seed: int) -> None:
    rng = np.random.default_rng(seed)
    constraint = random_constraint(rng, 60, 7, 3)
    tables = device_tables(constraint, DEVICE)
    found = decode(
        lambda level, tokens, parents: torch.zeros(
            1 if tokens is None else len(tokens), constraint.num_tokens, device=DEVICE
        ),
        tables,
        1,
        11,
    )
    first = sorted({tuple(row) for row in tables.host.semantic_ids().tolist()})[:11]
    assert [tuple(row) for row in found.tokens[0].tolist()] == first


def test_equal_scores_of_both_signs_of_zero_and_of_none() -> None:
    zero = torch.tensor([[-torch.inf, -0.0, 1.0, 0.0, -2.0, -2.0, -torch.inf]], device=DEVICE)
    best, places = torch_tables.top(zero, 7)
    assert places.tolist() == [[2, 1, 3, 4, 5, 0, 6]]
    assert best.tolist() == [[1.0, 0.0, 0.0, -2.0, -2.0, -torch.inf, -torch.inf]]


@pytest.mark.parametrize("seed", range(25))
def test_decode_equals_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_levels = int(rng.integers(1, 6))
    constraint = random_constraint(
        rng, int(rng.integers(1, 120)), int(rng.integers(2, 10)), num_levels
    )
    tables = device_tables(constraint, DEVICE)
    widths = [int(width) for width in rng.integers(1, 30, size=num_levels)]
    found = decode(PrefixModel([seed, seed + 1], constraint.num_tokens), tables, 2, widths)
    assert found.tokens.shape == (2, widths[-1], num_levels)
    for request in range(2):
        check(
            found,
            request,
            search(prefix_log_probs(seed + request, constraint.num_tokens), constraint, widths),
            tables,
        )


@pytest.mark.parametrize("seed", range(12))
def test_edge_masks_are_filters(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    constraint = random_constraint(rng, 60, 6, 3)
    tables = device_tables(constraint, DEVICE)
    wanted = [
        {name for name in constraint.rows if rng.random() < share} for share in (0.3, 0.0, 0.9)
    ]
    filtered = [constraint.filtered(names) for names in wanted]
    masks = tables.edge_masks(*filtered, None)
    found = decode(PrefixModel([1, 2, 3, 4], constraint.num_tokens), tables, 4, 9, masks)
    for request, few in enumerate([*filtered, constraint]):
        check(
            found,
            request,
            search(prefix_log_probs(request + 1, constraint.num_tokens), few, [9] * 3),
            tables,
        )
    one = decode(
        PrefixModel([5, 6], constraint.num_tokens), tables, 2, 9, tables.edge_masks(filtered[0])
    )
    for request in range(2):
        check(
            one,
            request,
            search(prefix_log_probs(5 + request, constraint.num_tokens), filtered[0], [9] * 3),
            tables,
        )


def walked(
    tables: DeviceTables, seed: int, widths: list[int], masks: Any, num_tokens: int, ties: bool
) -> list[tuple[torch.Tensor, ...]]:
    """What `select` gives at each level of a search of two requests whose scores are random, or of a few values alone."""
    generator = torch.Generator().manual_seed(seed)
    nodes = torch.zeros((2, 1), dtype=torch.int64, device=DEVICE)
    scores = torch.zeros((2, 1), device=DEVICE)
    steps = []
    for level, width in enumerate(widths):
        shape = (nodes.numel(), num_tokens)
        log_probs = (
            -torch.randint(0, 3, shape, generator=generator).float()
            if ties
            else torch.log_softmax(torch.randn(shape, generator=generator), dim=-1)
        ).to(DEVICE)
        found = select(tables, level, log_probs, nodes, scores, width, masks)
        steps.append(found)
        _, _, nodes, scores = found
    return steps


def check_same(ours: list[tuple[torch.Tensor, ...]], theirs: list[tuple[torch.Tensor, ...]]) -> None:
    """Equal beams to the bit, and as many of them."""
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one[3], other[3])
        valid = one[3] > -torch.inf
        for a, b in zip(one[:3], other[:3], strict=True):
            assert torch.equal(a[valid], b[valid])


@pytest.mark.parametrize("seed", range(40))
def test_mask_rows_choose_what_edges_choose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_levels, num_codes = int(rng.integers(1, 5)), int(rng.integers(1, 70))
    num_items = int(rng.choice([1, 30, num_codes**2, 3 * num_codes**2]))
    run = bool(rng.integers(2))
    tokens = [
        3 + num_codes * level + np.arange(num_codes) if run else rng.permutation(num_codes * 2)[:num_codes] + 3
        for level in range(num_levels)
    ]
    num_tokens = 3 + num_codes * max(2, num_levels)
    catalog = palmette.Catalog.build(rng.integers(0, num_codes, size=(num_items, num_levels)))
    constraint = catalog.constraint(tokens, num_tokens=num_tokens)
    dense, plain = device_tables(constraint, DEVICE), device_tables(constraint, DEVICE, dense_bytes=0)
    assert dense.rows[0] is not None and plain.rows == (None,) * num_levels
    assert dense.nbytes >= plain.nbytes
    widths = [int(width) for width in rng.integers(1, 60, size=num_levels)]
    names = np.array(catalog.ids())
    few = [constraint.filtered(catalog.items_with_ids(names[rng.random(num_items) < share].tolist())) for share in (0.1, 0.7)]
    for filtered in ((), few, [few[0], None], few[1:]):
        masks = [each.edge_masks(*filtered) if filtered else None for each in (dense, plain)]
        for ties in (False, True):
            expected = walked(plain, seed, widths, masks[1], num_tokens, ties)
            check_same(walked(dense, seed, widths, masks[0], num_tokens, ties), expected)
            # Masks of edges are read by edges.
            check_same(walked(dense, seed, widths, masks[1], num_tokens, ties), expected)


def test_mask_rows_of_the_invented_shop(tmp_path: Any) -> None:
    command = [sys.executable, "-m", "palmette"]
    made = subprocess.run([*command, "demo", "--export", "shop"], cwd=tmp_path, capture_output=True)
    if made.returncode != 0:
        pytest.skip(f"this build has no demonstration to export: {made.stderr[-200:]!r}")
    build = [*command, "catalog", "build", "shop/items.jsonl", "--out", "shop.palm"]
    subprocess.run(build, cwd=tmp_path, capture_output=True, check=True)
    shop = palmette.Catalog.open(tmp_path / "shop.palm")
    sizes = shop.codes_per_level
    constraint = shop.constraint([(sum(sizes[:level]), size) for level, size in enumerate(sizes)])
    dense, plain = device_tables(constraint, DEVICE), device_tables(constraint, DEVICE, dense_bytes=0)
    assert sum(rows is not None for rows in dense.rows) >= 2
    brand = constraint.filtered({"match": {"brand": "Fernhollow"}})
    for filtered in ((), (brand,), (None, brand)):
        masks = [each.edge_masks(*filtered) if filtered else None for each in (dense, plain)]
        for ties in (False, True):
            check_same(
                walked(dense, 1, [50] * 4, masks[0], sum(sizes), ties),
                walked(plain, 1, [50] * 4, masks[1], sum(sizes), ties),
            )


@pytest.mark.parametrize("seed", range(30))
def test_the_best_of_long_rows_with_and_without_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = torch.from_numpy(rng.standard_normal((3, torch_tables.LONG_ROW + seed)).astype(np.float32))
    if seed % 3:
        rows = rows.mul(4 if seed % 3 == 1 else 4000).round()  # Many ties, or a few.
    rows[rng.random(rows.shape) < rng.choice([0.0, 0.5, 0.999])] = -torch.inf
    rows[:, ::97] = -0.0
    order = torch.sort(rows + 0.0, dim=1, descending=True, stable=True)
    for width in (1, 70, 700):
        best, at = torch_tables.top(rows, width)
        found = order.values[:, :width] > -torch.inf
        assert torch.equal(best, order.values[:, :width])
        assert torch.equal(at[found], order.indices[:, :width][found])


@pytest.mark.parametrize("dense_bytes", [0, 1 << 20])
@pytest.mark.parametrize("seed", range(4))
def test_masks_of_leaves_are_those_of_the_filtered_tree(seed: int, dense_bytes: int) -> None:
    rng = np.random.default_rng(seed)
    num_codes, num_levels = 2 + 5 * seed, 1 + seed
    codes = rng.integers(0, num_codes, size=(int(rng.integers(1, 200)), num_levels))
    catalog = palmette.Catalog.build(codes, attributes={"price": rng.integers(0, 9, len(codes)).tolist()})
    tokens = [rng.permutation(num_codes) + 7 + level * num_codes for level in range(num_levels)]
    constraint = catalog.constraint(tokens)
    tables = device_tables(constraint, DEVICE, dense_bytes=dense_bytes)
    ordered = catalog.codes()
    rows = np.stack([tokens[level][ordered[:, level]] for level in range(num_levels)], axis=1)
    leaves = tables.host.leaves_of(rows)
    assert (tables.host.semantic_ids()[leaves] == rows).all()
    for most in range(9):
        items = catalog.filter({"range": {"price": {"lte": most}}})
        numbers = [catalog.ids().index(name) for name in items.ids()]
        found = tables.edge_masks_of_leaves(leaves[numbers])
        for one, other in zip(found, tables.edge_masks(constraint.filtered(items)), strict=True):
            assert one.dtype == other.dtype and torch.equal(one, other)
    assert (tables.host.leaves_of(rows + 1000) == -1).all()


def test_a_mask_of_other_items_is_refused() -> None:
    constraint = random_constraint(np.random.default_rng(1), 30, 6, 3)
    few = constraint.filtered(list(constraint.rows)[:9])
    with pytest.raises(ValueError, match="built from other items"):
        device_tables(few).edge_masks(constraint)


@pytest.mark.parametrize("seed", range(10))
def test_static_arrays_give_the_same_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    constraint = random_constraint(rng, int(rng.integers(1, 90)), 7, int(rng.integers(2, 5)))
    packed, pointers, branches, start = static_arrays(
        list(constraint.rows.values()), constraint.num_tokens
    )
    ours, theirs = (
        device_tables(constraint).host,
        device_tables((packed, pointers, branches, start, None, None)).host,
    )
    assert np.array_equal(ours.semantic_ids(), np.unique(list(constraint.rows.values()), axis=0))
    assert np.array_equal(ours.semantic_ids(), theirs.semantic_ids())
    assert ours.branches == tuple(branches) == theirs.branches


@pytest.mark.parametrize("seed", range(6))
def test_a_catalog_its_constraint_and_its_index_give_the_same_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_levels, num_codes = int(rng.integers(1, 5)), int(rng.integers(2, 12))
    codes = rng.integers(0, num_codes, size=(int(rng.integers(1, 90)), num_levels))
    catalog = palmette.Catalog.build(codes)
    expected = np.unique(codes, axis=0)
    first = 5 + num_codes * np.arange(num_levels)
    constraint = catalog.constraint([(int(token), num_codes) for token in first])
    assert np.array_equal(device_tables(catalog).host.semantic_ids(), expected)
    assert np.array_equal(device_tables(constraint).host.semantic_ids(), expected + first)
    if num_levels > 1:
        arrays = catalog.to_static(num_codes, 1)
        assert np.array_equal(device_tables(arrays).host.semantic_ids(), expected)
    few = catalog.items_with_ids([catalog.find(codes[0].tolist())[0]])
    masks = device_tables(constraint, dense_bytes=0).edge_masks(constraint.filtered(few))
    assert [int(mask.sum()) for mask in masks] == [1] * num_levels


@pytest.mark.parametrize("seed", range(10))
def test_the_twin_of_static_is_exact_whatever_tokens_per_beam_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_levels = int(rng.integers(2, 5))
    constraint = random_constraint(rng, int(rng.integers(1, 60)), 7, num_levels)
    num_tokens = constraint.num_tokens
    packed, pointers, branches, start = (
        torch.from_numpy(each).to(DEVICE) if isinstance(each, np.ndarray) else each
        for each in static_arrays(list(constraint.rows.values()), num_tokens)
    )
    by_last = torch.from_numpy(
        np.random.default_rng(seed).standard_normal((num_tokens, num_tokens)).astype(np.float32)
    ).to(DEVICE)

    def log_probs(prefix: tuple[int, ...]) -> np.ndarray:
        return torch.log_softmax(by_last[prefix[-1] if prefix else 2], dim=-1).cpu().numpy()

    for width in (3, 10, num_tokens + 20):
        tokens, scores = sparse_transition_torch(
            lambda ids: by_last[ids],
            2,
            width,
            1,
            2,
            num_levels,
            num_tokens,
            branches,
            packed,
            pointers,
            start,
            None,
            None,
            DEVICE,
            return_scores=True,
        )
        expected = search(log_probs, constraint, [width] * num_levels)
        for request in range(2):
            assert [tuple(row) for row in tokens[request].tolist()] == [row for row, _ in expected]
            np.testing.assert_allclose(
                scores[request].tolist(), [score for _, score in expected], atol=1e-5
            )


def test_no_items_is_no_result() -> None:
    constraint = random_constraint(np.random.default_rng(1), 20, 5, 3).filtered([])
    found = decode(PrefixModel([1], constraint.num_tokens), device_tables(constraint, DEVICE), 1, 4)
    assert found.tokens.shape == (1, 4, 3) and not found.valid.any()
    tables = device_tables(constraint, DEVICE)
    found = decode(PrefixModel([1], constraint.num_tokens), tables, 1, 4, tables.edge_masks(constraint))
    assert not found.valid.any()


def test_levels_of_single_edges_store_no_bounds() -> None:
    rng = np.random.default_rng(2)
    rows = np.unique(rng.integers(0, 1000, size=(500, 6)), axis=0)
    host = device_tables(
        DictConstraint({str(number): tuple(row) for number, row in enumerate(rows.tolist())}, 1000)
    ).host
    assert host.first[-1] is None and host.first[-2] is None
    assert np.array_equal(host.semantic_ids(), rows)
    assert host.nbytes < 500 * 6 * 3 + 6 * 1000 * 8 + 4 * 2 * 501


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_a_step_compiles_whole(backend: str) -> None:
    if backend == "inductor" and not os.environ.get("PALMETTE_TEST_INDUCTOR"):
        pytest.skip(
            "compiling by inductor takes a C++ compiler and a minute: set PALMETTE_TEST_INDUCTOR=1"
        )
    rng = np.random.default_rng(3)
    constraint = random_constraint(rng, 80, 8, 3)
    tables = device_tables(constraint, DEVICE)
    torch._dynamo.reset()
    step = torch.compile(select, fullgraph=True, backend=backend)
    nodes = torch.zeros((2, 1), dtype=torch.int64, device=DEVICE)
    scores = torch.zeros((2, 1), device=DEVICE)
    for level in range(3):
        log_probs = torch.log_softmax(
            torch.from_numpy(
                rng.standard_normal((2 * nodes.shape[1], constraint.num_tokens)).astype(np.float32)
            ).to(DEVICE),
            dim=-1,
        )
        plain = select(tables, level, log_probs, nodes, scores, 7)
        compiled = step(tables, level, log_probs, nodes, scores, 7)
        for ours, theirs in zip(compiled, plain, strict=True):
            torch.testing.assert_close(ours, theirs)
        _, _, nodes, scores = plain
