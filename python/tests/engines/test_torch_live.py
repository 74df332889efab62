"""Device tables of a live catalog against tables built anew after every change, and what is uploaded and let go of."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: live tables are untested")

import palmette  # noqa: E402
from palmette.torch_live import GenerationTables, LiveDeviceTables, _is_narrow  # noqa: E402
from palmette.torch_steps import LevelSteps  # noqa: E402
from palmette.torch_tables import DeviceBeams, DeviceTables, decode, device_tables, select  # noqa: E402
from reference import DEVICE  # noqa: E402

LEVELS = 3


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def searched(
    tables: Any, num_tokens: int, width: int, seed: int, ties: bool, masks: Any = None, requests: int = 2
) -> DeviceBeams:
    """A search whose logits depend on the beam's tokens, so that equal searches see equal logits."""
    codes = torch.zeros((requests, 1, 0), dtype=torch.int64)

    def logits(level: int, tokens: Any, parents: Any) -> torch.Tensor:
        nonlocal codes
        if tokens is not None:
            chosen = codes.gather(1, parents.cpu().unsqueeze(-1).expand(-1, -1, level - 1))
            codes = torch.cat((chosen, tokens.cpu().view(requests, -1, 1)), dim=2)
        rows = []
        for request in range(requests):
            for row in codes[request].tolist():
                random = np.random.default_rng([seed, request, *row])
                rows.append(random.integers(0, 3, num_tokens) if ties else random.standard_normal(num_tokens))
        return torch.from_numpy(np.array(rows, np.float32)).to(DEVICE)

    return decode(logits, tables, requests, width, masks)


def check_same(ours: DeviceBeams, theirs: DeviceBeams) -> None:
    assert torch.equal(ours.scores, theirs.scores)
    assert torch.equal(ours.tokens[ours.valid], theirs.tokens[theirs.valid])


class World:
    """A live catalog of random items, its tables, and tables made anew to compare with."""

    def __init__(self, folder: Any, seed: int, num_items: int, num_codes: int, run: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.num_codes = num_codes
        self.tokens: list[Any] = [
            (4 + num_codes * level, num_codes) if run else self.rng.permutation(2 * num_codes)[:num_codes] + 3
            for level in range(LEVELS)
        ]
        self.num_tokens = 4 + num_codes * LEVELS
        self.ids = [f"item{number}" for number in range(num_items)]
        codes = self.rng.integers(0, num_codes, size=(num_items, LEVELS))
        stock = self.rng.integers(0, 9, size=num_items)
        catalog = palmette.Catalog.build(codes, ids=self.ids, attributes={"stock": stock})
        self.live = palmette.LiveCatalog.create(folder, catalog)
        if catalog.codes_per_level != [num_codes] * LEVELS:
            self.live.widen([num_codes] * LEVELS)
        self.tables = LiveDeviceTables(
            self.live, DEVICE, code_tokens=self.tokens, num_tokens=self.num_tokens
        )

    def upserts(self, count: int) -> list[dict[str, Any]]:
        made = []
        for _ in range(count):
            name = f"new{self.rng.integers(1 << 30)}" if self.rng.random() < 0.7 else str(self.rng.choice(self.ids))
            self.ids.append(name)
            codes = self.rng.integers(0, self.num_codes, LEVELS).tolist()
            made.append({"id": name, "codes": codes, "stock": int(self.rng.integers(9))})
        return made

    def deletes(self, count: int) -> list[dict[str, Any]]:
        names = self.rng.permutation(sorted(set(self.ids)))[:count].tolist()
        self.ids = [name for name in self.ids if name not in set(names)]
        return [{"delete": name} for name in names]

    def anew(self) -> DeviceTables:
        return device_tables(self.live.snapshot().constraint(self.tokens, self.num_tokens), DEVICE)

    def check(self, now: GenerationTables, anew: DeviceTables, width: int = 20) -> None:
        seed = int(self.rng.integers(1 << 30))
        for ties in (False, True):
            check_same(
                searched(now, self.num_tokens, width, seed, ties),
                searched(anew, self.num_tokens, width, seed, ties),
            )
        plain = self.live.snapshot().constraint(self.tokens, self.num_tokens)
        few = {"range": {"stock": {"lt": 3}}}
        _, (_, numbers) = now.constraint.catalog.filter(few).__reduce__()
        check_same(
            searched(now, self.num_tokens, width, seed, True, now.edge_masks_of_items(numbers)),
            searched(anew, self.num_tokens, width, seed, True, anew.edge_masks(plain.filtered(few))),
        )
        for filters in ((few,), (None, few)):
            masks = [
                tables.edge_masks(*(None if each is None else constraint.filtered(each) for each in filters))
                for tables, constraint in ((now, now.constraint), (anew, plain))
            ]
            check_same(
                searched(now, self.num_tokens, width, seed, False, masks[0]),
                searched(anew, self.num_tokens, width, seed, False, masks[1]),
            )


@pytest.mark.parametrize("seed", range(6))
def test_tables_equal_those_made_anew_after_every_change(tmp_path: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_codes = int(rng.choice([4, 9, 40]))
    world = World(tmp_path / "live", seed, int(rng.choice([1, 40, 900])), num_codes, bool(seed % 2))
    for _ in range(7):
        change = rng.integers(4)
        if change == 0:
            world.live.apply(world.upserts(int(rng.choice([1, 20, 700]))))
        elif change == 1:
            world.live.apply(world.deletes(int(rng.integers(1, 30))) or world.upserts(3))
        elif change == 2:
            world.live.apply([*world.upserts(30), *world.deletes(3)])
        else:
            patched = world.upserts(5)
            world.live.apply(patched)
            world.live.apply([{"id": each["id"], "stock": 0} for each in patched])
        now = world.tables.refresh()
        assert now.generation == world.live.generation == world.tables.generation
        assert world.tables.refresh() is now
        world.check(now, world.anew(), int(rng.choice([1, 7, 60])))
    world.live.close()


def test_many_segments_and_all_items_gone(tmp_path: Any) -> None:
    world = World(tmp_path / "live", 11, 300, 12, True)
    most = 0
    for _ in range(4):
        world.live.apply(world.upserts(1100))
        most = max(most, len(world.tables.refresh().segments))
        world.check(world.tables.now, world.anew())
    assert most >= 2
    world.live.apply([{"delete": name} for name in sorted(set(world.ids))])
    now = world.tables.refresh()
    found = searched(now, world.num_tokens, 5, 1, False)
    assert found.tokens.shape == (2, 5, LEVELS) and not found.valid.any()
    world.ids = []
    world.live.apply(world.upserts(5))
    world.check(world.tables.refresh(), world.anew())


def test_only_what_changed_is_uploaded(tmp_path: Any) -> None:
    world = World(tmp_path / "live", 1, 20_000, 64, True)
    whole = world.tables.uploaded_bytes
    assert whole == world.tables.now.nbytes > 20_000 * 3
    # Ten new items are a segment of their own.
    world.live.apply(world.upserts(10))
    world.tables.refresh()
    added = world.tables.uploaded_bytes - whole
    assert 0 < added < 3000
    new = world.tables.now.segments[-1]
    assert added <= new.nbytes + 5 * 3 * LEVELS * 10
    # Two items that are gone are some bits of theirs, and no table.
    before = world.tables.uploaded_bytes
    old = world.tables.now.segments[0]
    gone = [name for name in world.ids if name.startswith("item")][:2]
    world.live.apply([{"delete": name} for name in gone])
    world.tables.refresh()
    assert 0 < world.tables.uploaded_bytes - before <= 2 * LEVELS * 5
    kept = world.tables.now.segments[0]
    assert kept.edges is old.edges and kept.first is old.first and kept.columns is old.columns
    # An attribute is in no table: the item is another's successor in a new segment of one item, or the same tree.
    before = world.tables.uploaded_bytes
    assert world.tables.refresh() is world.tables.now and world.tables.uploaded_bytes == before
    world.check(world.tables.now, world.anew())


def test_tables_of_old_generations_go_with_the_last_search(tmp_path: Any) -> None:
    world = World(tmp_path / "live", 2, 2000, 20, True)
    world.live.apply(world.upserts(50))
    held = world.tables.refresh()
    anew = world.anew()
    memory = weakref.ref(held.segments[-1].edges[0])
    base = weakref.ref(held.segments[0].edges[0])
    for _ in range(3):
        world.live.apply([*world.upserts(20), *world.deletes(5)])
        world.tables.refresh()
    seed = 5
    # A search that began then goes on over what was there then.
    check_same(
        searched(held, world.num_tokens, 30, seed, True), searched(anew, world.num_tokens, 30, seed, True)
    )
    assert memory() is not None
    del held
    gc.collect()
    assert memory() is None and base() is not None


def test_captured_steps_are_of_one_generation(tmp_path: Any) -> None:
    captured: list[Callable[[], Any]] = []

    def recorder(step: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
        captured.append(step)
        outputs = step()

        def replay() -> None:
            for place, found in zip(outputs, step(), strict=True):
                place.copy_(found)

        return outputs, replay

    world = World(tmp_path / "live", 3, 500, 12, True)
    world.tables.steps = LevelSteps("graph", after=1, recorder=recorder)
    held = world.tables.now
    for _ in range(3):
        world.live.apply([*world.upserts(20), *world.deletes(5)])
        now, anew = world.tables.refresh(), world.anew()
        assert len(world.tables.steps) == 0, "nothing that is kept reads tables of before"
        for _ in range(3):
            world.check(now, anew)
        # No filter, a filter for all and filters a request.
        assert len(world.tables.steps) == 3 * LEVELS
        count = len(captured)
        searched(held, world.num_tokens, 9, 1, False)
        assert len(captured) == count, "an old generation's steps run as they are"


def test_wide_and_narrow_steps_are_the_same(tmp_path: Any, monkeypatch: Any) -> None:
    from palmette import torch_live

    assert _is_narrow([5, 2], 100) and not _is_narrow([90, 20], 100) and not _is_narrow([300, 300], 2000)
    world = World(tmp_path / "live", 4, 700, 16, False)
    world.live.apply([*world.upserts(300), *world.deletes(40)])
    now, anew = world.tables.refresh(), world.anew()
    for narrow in (True, False):
        monkeypatch.setattr(torch_live, "_is_narrow", lambda *_, narrow=narrow: narrow)
        for width in (1, 30):
            world.check(now, anew, width)


def test_numbers_of_semantic_ids_differ(tmp_path: Any) -> None:
    world = World(tmp_path / "live", 6, 60, 6, True)
    world.live.apply(world.upserts(30))
    found = searched(world.tables.refresh(), world.num_tokens, 200, 1, False, requests=1)
    rows = [tuple(row) for row in found.tokens[found.valid].tolist()]
    numbers = found.semantic_ids[found.valid].tolist()
    assert len(set(rows)) == len(rows) == len(set(numbers))
    assert set(rows) == {tuple(row) for row in world.anew().host.semantic_ids().tolist()}


@pytest.mark.parametrize("backend", ["eager"])
def test_a_step_over_segments_compiles_whole(tmp_path: Any, backend: str) -> None:
    world = World(tmp_path / "live", 7, 300, 12, True)
    world.live.apply([*world.upserts(40), *world.deletes(9)])
    now = world.tables.refresh()
    torch._dynamo.reset()
    step = torch.compile(select, fullgraph=True, backend=backend)
    nodes, scores = now.start(2), torch.zeros((2, 1), device=DEVICE)
    for level in range(LEVELS):
        shape = (2 * nodes.shape[2], world.num_tokens)
        log_probs = torch.log_softmax(torch.randn(shape, generator=torch.Generator().manual_seed(level)), dim=-1).to(DEVICE)
        plain = select(now, level, log_probs, nodes, scores, 7)
        for ours, theirs in zip(step(now, level, log_probs, nodes, scores, 7), plain, strict=True):
            torch.testing.assert_close(ours, theirs)
        _, _, nodes, scores = plain


def test_a_reader_of_another_process_is_followed_too(tmp_path: Any) -> None:
    world = World(tmp_path / "live", 8, 200, 8, True)
    reader = palmette.LiveReader.open(tmp_path / "live")
    followed = LiveDeviceTables(reader, DEVICE, code_tokens=world.tokens, num_tokens=world.num_tokens)
    world.live.apply([*world.upserts(20), *world.deletes(5)])
    reader.refresh()
    world.check(followed.refresh(), world.anew())
    assert followed.generation == world.live.generation


def test_codes_are_tokens_where_none_are_given(tmp_path: Any) -> None:
    live = palmette.LiveCatalog.create(tmp_path / "live", palmette.Catalog.build([[1, 2], [0, 3]]))
    tables = LiveDeviceTables(live, DEVICE)
    live.apply([{"id": "n", "codes": [1, 1]}, {"id": "m", "codes": [1, 2]}, {"delete": "0"}])
    found = searched(tables.refresh(), 4, 9, 1, False, requests=1)
    assert sorted(found.tokens[found.valid].tolist()) == [[0, 3], [1, 1], [1, 2]]


def test_what_cannot_be_followed_is_named(tmp_path: Any) -> None:
    with pytest.raises(TypeError, match="source is a Catalog; give a LiveCatalog"):
        LiveDeviceTables(palmette.Catalog.build([[1, 2]]))
    with palmette.LiveCatalog.create(tmp_path / "empty") as live, pytest.raises(ValueError, match="no items yet"):
        LiveDeviceTables(live)
    short = palmette.Catalog.build([[1, 2], [1], [0, 3]])
    with palmette.LiveCatalog.create(tmp_path / "short", short) as live:
        with pytest.raises(ValueError, match="fewer than 2 codes"):
            LiveDeviceTables(live)
        live.apply([{"delete": "1"}])
        assert searched(LiveDeviceTables(live, DEVICE).now, 4, 5, 1, False).valid.sum() == 4
    with palmette.LiveCatalog.create(tmp_path / "live", palmette.Catalog.build([[1, 2], [0, 3]])) as live:
        tables = LiveDeviceTables(live, DEVICE, code_tokens=[(0, 2), (2, 4)])
        before = tables.now
        live.widen([3, 4])
        live.apply([{"id": "new", "codes": [2, 0]}])
        with pytest.raises(palmette.CatalogError):
            tables.refresh()
        assert tables.now is before
        live.apply([{"delete": "new"}])
        assert tables.refresh().generation > 1
        assert searched(tables.now, 8, 5, 1, False, requests=1).valid.sum() == 2


def test_beam_search_takes_a_generation(tmp_path: Any) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    from models import tiny_model
    from palmette.transformers import beam_search

    world = World(tmp_path / "live", 9, 200, 8, True)
    model = tiny_model("qwen3", world.num_tokens)
    ids = torch.randint(1, 4, (2, 6), generator=torch.Generator().manual_seed(1)).to(DEVICE)
    for _ in range(2):
        world.live.apply([*world.upserts(20), *world.deletes(5)])
        now = world.tables.refresh()
        filters = [None, {"range": {"stock": {"lt": 4}}}]
        for each in (None, filters):
            found = [
                model.generate(
                    ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=LEVELS,
                    custom_generate=beam_search, constraint=now.constraint, beam_width=12, filters=each, tables=tables,
                )
                for tables in (None, now)
            ]  # fmt: skip
            assert torch.equal(found[0].sequences, found[1].sequences)
            assert found[0].items == found[1].items and found[0].offsets == found[1].offsets
            torch.testing.assert_close(found[0].scores, found[1].scores)
