"""Catalogs from arrays, their items, filters and sets, files and pickles."""

from __future__ import annotations

import pickle
from datetime import datetime, timezone

import numpy as np
import pytest
from catalogs import shop

import palmette
from palmette import Catalog

CODES = np.array([[3, 1, 2], [0, 7, 1], [0, 2, 5], [3, 1, 2]])
IDS = ["lamp", "tent", "mat", "torch"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_codes_of_every_type_and_order(dtype: str, order: str) -> None:
    catalog = Catalog.build(np.array(CODES, dtype=dtype, order=order), IDS)
    assert len(catalog) == 4 and catalog.num_levels == 3
    assert catalog.codes_per_level == [4, 8, 6]
    assert catalog.find([3, 1, 2]) == ["lamp", "torch"]
    assert [0, 7, 1] in catalog and [0, 7, 2] not in catalog and [0] not in catalog and [-1, 7, 1] not in catalog
    assert catalog.ids() == ["mat", "tent", "lamp", "torch"]
    assert catalog.codes().tolist() == [[0, 2, 5], [0, 7, 1], [3, 1, 2], [3, 1, 2]]


def test_views_columns_and_lists_are_the_same_items() -> None:
    wide = np.zeros((8, 9), dtype=np.int64)
    wide[::2, 1:7:2] = CODES
    same = [
        wide[::2, 1:7:2],
        CODES[::-1][::-1],
        [CODES[:, level].astype(kind) for level, kind in enumerate(["int64", "uint16", "int32"])],
        CODES.tolist(),
        [tuple(row) for row in CODES.tolist()],
    ]
    expected = Catalog.build(CODES, IDS).to_bytes()
    columns = same.pop(2)
    assert Catalog.build(ids=IDS, code_columns=columns).to_bytes() == expected
    for codes in same:
        assert Catalog.build(codes, IDS).to_bytes() == expected
    backwards = Catalog.build(CODES[::-1], IDS[::-1])
    assert backwards.find([3, 1, 2]) == ["torch", "lamp"]


def test_rows_of_any_length() -> None:
    rows = [[1, 2], [1], [1, 2, 3]]
    by_lists = Catalog.build(rows)
    flat, offsets = np.array([1, 2, 1, 1, 2, 3]), np.array([0, 2, 3, 6])
    assert Catalog.build(flat, offsets=offsets).to_bytes() == by_lists.to_bytes()
    assert by_lists.codes().tolist() == [[1, -1, -1], [1, 2, -1], [1, 2, 3]]
    assert by_lists.ids() == ["1", "0", "2"]


def test_ids_may_be_numbers() -> None:
    for ids in ([7, 8, 9, 10], np.array([7, 8, 9, 10], dtype=np.uint16), np.array(["7", "8", "9", "10"])):
        assert Catalog.build(CODES, ids).find([0, 7, 1]) == ["8"]


def test_items_and_attributes() -> None:
    attributes = {
        "title": ["Lamp", "Tent", None, "Torch"],
        "price": np.array([9.5, 120.0, 30.25, 4.0], dtype=np.float64),
        "sizes": [[1, 2], [], [3], [4]],
        "since": [datetime(2026, 5, 1, 12, 0, tzinfo=timezone.utc), None, datetime(2026, 5, 2), None],
    }
    catalog = Catalog.build(CODES, IDS, attributes)
    assert catalog.item("lamp") == {
        "id": "lamp",
        "codes": [3, 1, 2],
        "attributes": {"title": "Lamp", "price": 9.5, "sizes": [1, 2], "since": "2026-05-01T12:00:00Z"},
    }
    assert catalog.item("mat")["attributes"] == {"price": 30.25, "sizes": [3], "since": "2026-05-02T00:00:00Z"}
    late = catalog.filter({"must": {"range": {"since": {"gt": "2026-05-01T13:00:00Z"}}}})
    assert late.ids() == ["mat"]
    with pytest.raises(KeyError, match="sofa"):
        catalog.item("sofa")


@pytest.mark.parametrize(
    ("codes", "more", "error", "message"),
    [
        ([[1, 2], [3, -1]], {}, palmette.CatalogError, r"row 1: item \"1\" has code -1 at level 1"),
        (np.array([[1], [2**31]]), {}, palmette.CatalogError, "row 1.*2147483648"),
        (CODES, {"ids": ["a", "b", "a", "c"]}, palmette.CatalogError, r"row 2: item \"a\" stands twice, first in row 0"),
        (CODES, {"ids": ["a", "b", "", "c"]}, palmette.CatalogError, "row 2.*empty id"),
        (CODES, {"ids": ["a"]}, ValueError, "1 ids are given for 4 rows"),
        (CODES, {"ids": [1.5, 2, 3, 4]}, TypeError, "1.5 is no id"),
        (CODES, {"attributes": {"a": [1]}}, ValueError, r"\"a\" has 1 values for 4 rows"),
        (CODES, {"attributes": {"a": [float("nan")] * 4}}, ValueError, r"\"a\", row 0: NaN"),
        (CODES, {"attributes": {"a": [object()] * 4}}, ValueError, r"\"a\", row 0.*object"),
        (CODES, {"attributes": {"a": "text"}}, TypeError, "one text"),
        (CODES, {"attributes": [1, 2]}, TypeError, "dict of columns or an Arrow table"),
        (CODES * 0.5, {}, TypeError, "float64"),
        (CODES[0], {}, ValueError, r"\(3,\)"),
        (CODES.reshape(1, 4, 3), {}, ValueError, r"\(1, 4, 3\)"),
        ([[1, "x"]], {}, TypeError, "row 0"),
        (None, {"code_columns": [np.array([1, 2]), np.array([1])]}, ValueError, "column 1.*1 rows.*2"),
        (np.array([1, 2]), {"offsets": [0, 3]}, ValueError, r"offsets\[1\] is 3"),
        (np.array([1, 2]), {"offsets": [0, 1]}, ValueError, "end with the number of codes, 2"),
    ],
)
def test_wrong_input_is_named(codes: object, more: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Catalog.build(codes, **more)


def test_errors_have_attributes() -> None:
    with pytest.raises(palmette.CatalogError) as raised:
        Catalog.build([[1], [-2]], ["a", "b"])
    assert (raised.value.line, raised.value.item, raised.value.column) == (2, "b", None)
    assert isinstance(raised.value, palmette.Error) and isinstance(raised.value, ValueError)


def test_the_empty_catalog() -> None:
    for codes in (np.zeros((0, 3), dtype=np.int32), []):
        catalog = Catalog.build(codes)
        assert len(catalog) == 0 and catalog.ids() == [] and [1] not in catalog
        assert catalog.contains_prefix([[1], [2]]).tolist() == [False, False]
        con = catalog.constraint([(0, 4)])
        rows, tokens, offsets = con.successors(np.zeros((2, 0), dtype=np.int64))
        assert len(rows) == len(tokens) == 0 and offsets.tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_prefixes_equal_the_definition(seed: int) -> None:
    stock = shop(seed)
    random = np.random.default_rng(seed)
    for length in range(4):
        asked = random.integers(-1, 7, (200, length))
        have = {tuple(codes[:length]) for codes in stock.codes}
        found = stock.catalog.contains_prefix(asked)
        assert found.dtype == bool
        assert found.tolist() == [tuple(row) in have for row in asked.tolist()]


@pytest.mark.parametrize("seed", range(5))
def test_sets_equal_the_definition(seed: int) -> None:
    stock = shop(seed)
    condition, cheap = stock.matching("ash", 50)
    other, rest = stock.matching("birch", 80)
    a, b = stock.catalog.filter(condition), stock.catalog.filter(palmette.Filter(other))
    assert set(a.ids()) == cheap and set(b.ids()) == rest and len(a) == len(cheap)
    assert set((a | b).ids()) == cheap | rest
    assert len(a & b) == 0 and (a & b).ids() == []
    assert set((stock.catalog.all_items() - a).ids()) == set(stock.ids) - cheap
    assert a == a | a and a != b and hash(a) == hash(a & a)
    assert all(item in a for item in cheap) and "sofa" not in a
    assert stock.catalog.items_with_ids(sorted(cheap)) == a
    with pytest.raises(palmette.FilterError, match="colour"):
        stock.catalog.filter({"must": {"match": {"colour": "red"}}})
    with pytest.raises(palmette.FilterError):
        stock.catalog.filter("{")
    with pytest.raises(ValueError, match="another catalog"):
        a & shop(seed + 100).catalog.all_items()


def test_files_and_pickles(tmp_path) -> None:
    stock = shop(3)
    path = tmp_path / "shop.palm"
    stock.catalog.save(path)
    opened = Catalog.open(path)
    assert opened.to_bytes() == path.read_bytes() == stock.catalog.to_bytes()
    assert pickle.loads(pickle.dumps(opened)).to_bytes() == path.read_bytes()
    items = stock.catalog.filter({"must": {"match": {"brand": "ash"}}})
    assert pickle.loads(pickle.dumps(items)).ids() == items.ids()
    catalog, items = pickle.loads(pickle.dumps((opened, opened.filter({"must": {"match": {"brand": "ash"}}}))))
    con = catalog.constraint(stock.tokens, stock.num_tokens, items)
    assert con.catalog is catalog and con.items == items
    again = pickle.loads(pickle.dumps(con))
    first = np.zeros((1, 0), dtype=np.int32)
    assert again.successors(first)[1].tolist() == con.successors(first)[1].tolist()
    assert again.items.ids() == items.ids() and again.num_tokens == con.num_tokens
    kept = palmette.Filter({"must": {"match": {"brand": "ash"}}})
    assert pickle.loads(pickle.dumps(kept)) == kept and kept.to_dict()["must"]
    with pytest.raises(FileNotFoundError, match="nothing.palm"):
        Catalog.open(tmp_path / "nothing.palm")
    with pytest.raises(palmette.CatalogError):
        Catalog.from_bytes(path.read_bytes()[:-7])


def test_an_index_of_json(tmp_path) -> None:
    index = {"0": ["<a_12>", "<b_3>"], "7": ["<a_1>", "<b_30>"]}
    catalog = Catalog.from_index_json(index)
    assert catalog.level_prefixes == ["a", "b"]
    assert catalog.find([1, 30]) == ["7"]
    path = tmp_path / "index.json"
    path.write_text('{"0": ["<a_12>", "<b_3>"], "7": ["<a_1>", "<b_30>"]}')
    assert Catalog.from_index_json(path).to_bytes() == catalog.to_bytes()
    with pytest.raises(palmette.CatalogError, match="<a_x>"):
        Catalog.from_index_json({"0": ["<a_x>"]})
    with pytest.raises(FileNotFoundError):
        Catalog.from_index_json(tmp_path / "none.json")
