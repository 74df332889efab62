"""Live catalogs against a plain dict, their snapshots, generations and readers."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from catalogs import rows_of

import palmette
from palmette import Catalog, LiveCatalog, LiveReader


def check(snapshot: Catalog, items: dict[str, list[int]]) -> None:
    """Checks that a snapshot holds exactly these items, and what follows each prefix is right."""
    assert len(snapshot) == len(items) and set(snapshot.ids()) == set(items)
    con = snapshot.constraint([[5, 2, 9, 0], (1, 4)], num_tokens=10)
    first = [5, 2, 9, 0]
    spelled = {item: (first[codes[0]], 1 + codes[1]) for item, codes in items.items()}
    assert rows_of(con.successors(np.zeros((1, 0), dtype=np.int32))) == [sorted({a for a, _ in spelled.values()})]
    expected = [sorted({b for a, b in spelled.values() if a == token}) for token in range(10)]
    assert rows_of(con.successors(np.arange(10).reshape(10, 1))) == expected
    bitmask = np.zeros((10, 1), dtype=np.int32)
    con.fill_masks(np.arange(10).reshape(10, 1), bitmask)
    assert bitmask[:, 0].tolist() == [sum(1 << token for token in row) for row in expected]
    rows = sorted(set(spelled.values()))
    if rows:
        decoded = [set(ids) for ids in con.decode(np.array(rows))]
        assert decoded == [{item for item in items if spelled[item] == row} for row in rows]
    prefixes = np.array([[code] for code in range(5)])
    assert snapshot.contains_prefix(prefixes).tolist() == [
        any(codes[0] == code for codes in items.values()) for code in range(5)
    ]
    assert {item: snapshot.item(item)["codes"] for item in items} == items
    assert sorted(map(tuple, snapshot.codes().tolist())) == sorted(map(tuple, items.values()))


@pytest.mark.parametrize("seed", range(4))
def test_updates_equal_a_dict(tmp_path, seed: int) -> None:
    random = np.random.default_rng(seed)
    items: dict[str, list[int]] = {}
    with LiveCatalog.create(tmp_path / "live") as live:
        assert live.generation == 0 and len(live) == 0
        for generation in range(1, 8):
            batch: list[dict] = []
            for _ in range(random.integers(1, 12)):
                item = f"item{random.integers(0, 15)}"
                if random.random() < 0.3:
                    batch.append({"delete": item})
                    items.pop(item, None)
                else:
                    codes = random.integers(0, 4, 2).tolist()
                    batch.append({"id": item, "codes": codes, "stock": int(codes[0])})
                    items[item] = codes
            assert live.apply(batch) == generation == live.generation
            check(live.snapshot(), items)
            low = live.snapshot().filter({"must": {"range": {"stock": {"lt": 2}}}}) if items else None
            assert low is None or set(low.ids()) == {item for item, codes in items.items() if codes[0] < 2}
    with LiveCatalog.open(tmp_path / "live") as live:
        check(live.snapshot(), items)
        frozen = tmp_path / "frozen.palm"
        live.snapshot().save(frozen)
    check(Catalog.open(frozen), items)


def test_snapshots_generations_and_batches(tmp_path) -> None:
    live = LiveCatalog.create(tmp_path / "live", Catalog.build([[1, 2], [3, 0]], ["a", "b"]))
    before = live.snapshot()
    kept = live.keep("before")
    live.apply([{"delete": "a"}, {"id": "c", "codes": [2, 2]}])
    check(before, {"a": [1, 2], "b": [3, 0]})
    check(live.snapshot(), {"b": [3, 0], "c": [2, 2]})
    assert before.generation == kept and live.snapshot().generation == live.generation == kept + 1
    # All or none.
    with pytest.raises(palmette.CatalogError, match="update 1") as raised:
        live.apply([{"delete": "b"}, {"id": "unknown", "price": 1}])
    assert raised.value.line == 2
    with pytest.raises(palmette.CatalogError, match="update 0"):
        live.apply([{"id": "d", "codes": [-1]}])
    with pytest.raises(TypeError, match="update 0 is a int"):
        live.apply([5])
    with pytest.raises(TypeError, match="list of dicts"):
        live.apply({"delete": "b"})
    check(live.snapshot(), {"b": [3, 0], "c": [2, 2]})
    live.apply([{"id": "b", "price": 2.5}])
    assert live.snapshot().item("b")["attributes"] == {"price": 2.5}
    live.rollback(kept)
    check(live.snapshot(), {"a": [1, 2], "b": [3, 0]})
    with pytest.raises(palmette.CatalogError, match="not kept"):
        live.rollback(77)
    with pytest.raises(palmette.CatalogError, match="another process"):
        LiveCatalog.open(tmp_path / "live")
    live.close()
    with pytest.raises(palmette.CatalogError, match="was closed"):
        live.snapshot()
    with pytest.raises(palmette.CatalogError, match="no live catalog"):
        LiveCatalog.open(tmp_path / "nothing")


def test_sets_belong_to_their_generation(tmp_path) -> None:
    live = LiveCatalog.create(tmp_path / "live", Catalog.build([[1, 2], [3, 0]], ["a", "b"]))
    first = live.snapshot()
    live.apply([{"delete": "a"}])
    with pytest.raises(ValueError, match="generation"):
        live.snapshot().constraint([(0, 4), (4, 4)]).filtered(first.all_items())
    assert first.constraint([(0, 4), (4, 4)]).filtered(first.all_items()).items.ids() == ["a", "b"]
    live.close()


def test_a_table_of_updates(tmp_path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: its tables are not applied")
    live = LiveCatalog.create(tmp_path / "live", Catalog.build([[3, 3]], ["a"]))
    table = {"id": ["a", "b", "c"], "codes": [None, [0, 1], [3, 3]], "_delete": [True, False, None]}
    live.apply(arrow.table(table))
    check(live.snapshot(), {"b": [0, 1], "c": [3, 3]})
    live.close()


def test_readers_follow_a_writer(tmp_path) -> None:
    live = LiveCatalog.create(tmp_path / "live", Catalog.build([[1, 2]], ["a"]))
    reader = LiveReader.open(tmp_path / "live")
    check(reader.snapshot(), {"a": [1, 2]})
    generation = live.apply([{"id": "b", "codes": [0, 0]}])
    deadline = time.monotonic() + 20
    while reader.refresh() < generation and time.monotonic() < deadline:
        time.sleep(0.005)
    assert reader.generation == generation
    check(reader.snapshot(), {"a": [1, 2], "b": [0, 0]})
    live.close()


def test_readers_in_threads_while_it_changes(tmp_path) -> None:
    live = LiveCatalog.create(tmp_path / "live", Catalog.build([[3, 3]], ["base"]))
    ended, wrong = threading.Event(), []

    def read() -> None:
        while not ended.is_set():
            snapshot = live.snapshot()
            con = snapshot.constraint([(0, 4), (4, 4)])
            total = sum(len(ids) for ids in con.decode([[a, 4 + b] for a in range(4) for b in range(4)]))
            # Batches are of two items: half of one is never seen.
            if total != len(snapshot) or total % 2 != 1:
                wrong.append(total)

    threads = [threading.Thread(target=read) for _ in range(2)]
    [thread.start() for thread in threads]
    for number in range(20):
        live.apply([{"id": f"{number}{side}", "codes": [number % 4, 1]} for side in "ab"])
    ended.set()
    [thread.join() for thread in threads]
    assert not wrong and len(live) == 41
    live.close()
