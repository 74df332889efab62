"""Values, ids and codes as arrays, frames and tables hold them: nothing becomes another thing without a word."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pytest

from palmette import Catalog, CatalogError, LiveCatalog, Recommender

CODES = [[1], [2]]


def values_of(values) -> list:
    catalog = Catalog.build(CODES, attributes={"x": values})
    return [catalog.item(id)["attributes"].get("x") for id in ("0", "1")]


def test_times_of_numpy() -> None:
    for unit in ("D", "h", "s", "ms", "us", "ns"):
        array = np.array(["2026-01-02", "NaT"], f"datetime64[{unit}]")
        for values in (array, list(array)):
            catalog = Catalog.build(CODES, attributes={"x": values})
            assert catalog.item("0")["attributes"] == {"x": "2026-01-02T00:00:00Z"}, unit
            assert catalog.item("1")["attributes"] == {}
            assert catalog.filter({"range": {"x": {"lt": "2026-01-03"}}}).ids() == ["0"]
    for wrong in (
        np.array([1, 2], "timedelta64[ns]"),
        [np.timedelta64(1, "s"), None],
        [datetime.time(12, 30), None],
        [datetime.timedelta(1), None],
    ):
        with pytest.raises((TypeError, ValueError), match="no value that JSON has"):
            Catalog.build(CODES, attributes={"x": wrong})


def test_lengths_of_time_of_pandas() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: its values are not read")
    with pytest.raises((TypeError, ValueError), match="no value that JSON has"):
        Catalog.build(CODES, attributes={"x": pandas.Series(pandas.to_timedelta([1, 2], unit="s"))})
    with pytest.raises((TypeError, ValueError), match="no value that JSON has"):
        Catalog.build(CODES, attributes={"x": [pandas.Timedelta(1), None]})
    assert values_of(pandas.Series(pandas.to_datetime(["2026-01-02", None]))) == ["2026-01-02T00:00:00Z", None]


def test_masked_arrays() -> None:
    masked = np.ma.masked_array([7, 8], [False, True])
    assert values_of(masked) == [7, None]
    for arguments in ({"codes": np.ma.masked_array([[1], [2]], [[False], [True]])}, {"codes": CODES, "ids": masked}):
        with pytest.raises(ValueError, match="masked elements"):
            Catalog.build(**arguments)
    whole = np.ma.masked_array([[1], [2]], False)
    assert Catalog.build(whole).to_bytes() == Catalog.build(CODES).to_bytes()


def test_ids_are_what_was_given() -> None:
    large = np.array([2**63, 2**64 - 1], np.uint64)
    assert Catalog.build(CODES, large).ids() == [str(2**63), str(2**64 - 1)]
    for ids in (np.array([3, -4]), [np.int16(3), np.int64(-4)], np.array([3, -4], object)):
        catalog = Catalog.build(CODES, ids)
        assert catalog.ids() == ["3", "-4"] and catalog.item(np.int32(3))["codes"] == [1]
    for wrong in ([1.0, 2.0], [True, False], [np.True_, np.False_], np.array([1.5, 2.0]), [None, "a"]):
        with pytest.raises(TypeError, match="is no id"):
            Catalog.build(CODES, wrong)
    with pytest.raises(CatalogError, match='the id "1" stands twice'):
        Catalog.from_index_json({1: ["<a_1>"], "1": ["<a_2>"]})


def test_what_has_no_order_is_no_column(demo) -> None:
    # `DataFrame.to_dict()` has a dict a column, whose names would be taken for values.
    for column in ({0: "ash", 1: "birch"}, {"ash", "birch"}, frozenset(["ash", "birch"])):
        with pytest.raises(TypeError, match='attribute "brand": a .* is no list of values in order'):
            Catalog.build(CODES, attributes={"brand": column})
        with pytest.raises(TypeError, match="no list of values in order"):
            Catalog.build(CODES, column)
    with pytest.raises(TypeError, match="no list of values in order"):
        Catalog.build(CODES, "ab")
    recommender = Recommender(demo / "model", Catalog.open(demo / "shop.palm"))
    for history in ({"P0001", "P0060"}, {"P0001": 1}):
        with pytest.raises(TypeError, match="no list of values in order"):
            recommender.recommend(history)
        with pytest.raises(TypeError, match="no list of values in order"):
            recommender.recommend_batch([history])
    # What is excluded has no order.
    assert "P0048" not in [item.id for item in recommender.recommend([], exclude={"P0048"})]


def test_values_of_several_kinds_are_said() -> None:
    with pytest.warns(UserWarning, match=r'row 1: attribute "x" is "dear" \(text\), and 1 \(numbers\) in row 0'):
        Catalog.build(CODES, attributes={"x": [1, "dear"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Catalog.build(CODES, attributes={"x": [1, None], "y": [[], ["a"]]})


def test_filters_that_are_kept_can_be_seen_and_let_go_of(tmp_path) -> None:
    frozen = Catalog.build(CODES, attributes={"x": [1, 2]})
    with LiveCatalog.create(tmp_path / "live", frozen) as live:
        for catalog in (frozen, live.snapshot()):
            assert catalog.cache_statistics["filters"] == 0
            first = catalog.filter({"match": {"x": 1}})
            catalog.filter({"match": {"x": 1}})
            catalog.filter({"match": {"x": 2}})
            counted = catalog.cache_statistics
            assert (counted["filters"], counted["hits"], counted["built"]) == (2, 1, 2)
            assert 0 < counted["bytes"] <= counted["max_bytes"]
            catalog.clear_cache()
            assert (catalog.cache_statistics["filters"], catalog.cache_statistics["bytes"]) == (0, 0)
            assert first.ids() == ["0"] == catalog.filter({"match": {"x": 1}}).ids()
            assert catalog.cache_statistics["built"] == 3


def test_columns_of_histories_by_name(demo) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are not answered")
    recommender = Recommender(demo / "model", Catalog.open(demo / "shop.palm"))
    usual = pa.table({"user": ["u"], "history": [["P0001", "P0060"]]})
    expected = pa.table(recommender.recommend_table(usual, k=3, beam_width=8)).to_pylist()
    named = pa.table({"who": ["u"], "seen": [["P0060", "P0001"]], "when": [[2_000_000_000, 1_000_000_000]], "age": [7]})
    options = {"user_column": "who", "history_column": "seen", "time_column": "when"}
    with pytest.warns(UserWarning, match="not read: age"):
        answers = recommender.recommend_table(named, k=3, beam_width=8, **options)
    assert pa.table(answers).to_pylist() == expected
    joined = pa.table({"user": ["u"], "history": ["P0001|P0060"]})
    answers = recommender.recommend_table(joined, k=3, beam_width=8, list_separator="|")
    assert pa.table(answers).to_pylist() == expected
    # Without it the row says why it has no answer.
    (row,) = pa.table(recommender.recommend_table(joined, k=3, beam_width=8)).to_pylist()
    assert "is no list" in row["error"]
    with pytest.raises(ValueError, match='no column "whom"'):
        recommender.recommend_table(usual, user_column="whom")
    with pytest.raises(ValueError, match="netflix"):
        recommender.recommend_table(usual, layout="netflix")
    with pytest.raises(ValueError, match='two columns are called "history"'):
        twice = pa.Table.from_arrays([usual["history"], usual["history"]], names=["history", "history"])
        recommender.recommend_table(twice)
