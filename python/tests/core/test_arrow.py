"""Tables of pyarrow, polars, pandas and DuckDB, by the stream that all hand over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import palmette
from palmette import Catalog

ROWS = {
    "item_id": ["lamp", "tent", "mat"],
    "codes": [[3, 1], [0, 7], [0, 2]],
    "brand": ["ash", "birch", None],
    "price": [9.5, 120.0, 30.25],
}


def expected() -> bytes:
    attributes = {"brand": ROWS["brand"], "price": ROWS["price"]}
    return Catalog.build(np.array(ROWS["codes"]), ROWS["item_id"], attributes).to_bytes()


def tables() -> Any:
    """Each library's table of the same rows, where it is installed."""
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: its tables are not read")
    table = arrow.table(ROWS)
    yield "pyarrow", table
    yield "batches", arrow.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1))
    fixed = table.set_column(1, "codes", arrow.array(ROWS["codes"], arrow.list_(arrow.uint16(), 2)))
    yield "fixed", fixed.set_column(2, "brand", table.column("brand").dictionary_encode())


def test_tables_of_pyarrow() -> None:
    for name, table in tables():
        assert Catalog.from_arrow(table).to_bytes() == expected(), name


def test_tables_of_polars() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed: its tables are not read")
    assert Catalog.from_arrow(polars.DataFrame(ROWS)).to_bytes() == expected()
    # A codes column a level.
    levels = polars.DataFrame({"sku": ROWS["item_id"], "a": [3, 0, 0], "b": [1, 7, 2]})
    catalog = Catalog.from_arrow(levels, id="sku", codes=["a", "b"])
    assert catalog.to_bytes() == Catalog.build(ROWS["codes"], ROWS["item_id"]).to_bytes()


def test_tables_of_pandas() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: its tables are not read")
    pytest.importorskip("pyarrow", reason="pandas hands tables over by pyarrow")
    assert Catalog.from_arrow(pandas.DataFrame(ROWS)).to_bytes() == expected()


def test_tables_of_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: its tables are not read")
    relation = duckdb.sql(
        "SELECT * FROM (VALUES ('lamp', [3, 1], 'ash', 9.5::DOUBLE), ('tent', [0, 7], 'birch', 120.0), "
        "('mat', [0, 2], NULL, 30.25)) AS items(item_id, codes, brand, price)"
    )
    assert Catalog.from_arrow(relation).to_bytes() == expected()


def test_attributes_of_a_table() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: its tables are not read")
    attributes = arrow.table({"brand": ROWS["brand"], "price": ROWS["price"]})
    built = Catalog.build(np.array(ROWS["codes"]), arrow.array(ROWS["item_id"]), attributes)
    assert built.to_bytes() == expected()
    with pytest.raises(ValueError, match="3 rows for 2 rows of codes"):
        Catalog.build([[1], [2]], attributes=attributes)
    moments = arrow.table({"since": arrow.array([0, 86_400], arrow.timestamp("s"))})
    since = Catalog.build([[1], [2]], attributes=moments)
    assert since.item("1")["attributes"] == {"since": "1970-01-02T00:00:00Z"}
    assert since.filter({"must": {"range": {"since": {"gt": "1970-01-01T12:00:00Z"}}}}).ids() == ["1"]


def test_wrong_tables_are_named() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: its tables are not read")
    with pytest.raises(TypeError, match="dict is no table"):
        Catalog.from_arrow({})
    with pytest.raises(palmette.CatalogError, match="codes"):
        Catalog.from_arrow(arrow.table({"item_id": ["a"]}))
    for column, row in (([[1], [-1]], 2), ([[1], None], 2), ([[1], [None]], 2)):
        with pytest.raises(palmette.CatalogError) as raised:
            Catalog.from_arrow(arrow.table({"item_id": ["a", "b"], "codes": column}))
        assert raised.value.line == row, column
    with pytest.raises(palmette.CatalogError, match="twice"):
        Catalog.from_arrow(arrow.table({"id": ["a", "a"], "codes": [[1], [2]]}))


def test_streams_are_taken_once() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: its tables are not read")
    table = arrow.table(ROWS)
    capsule = table.__arrow_c_stream__()

    class Once:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return capsule

    assert len(Catalog.from_arrow(Once())) == 3
    with pytest.raises(ValueError, match="stream"):
        Catalog.from_arrow(Once())

    class Other:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return "no capsule"

    with pytest.raises(TypeError):
        Catalog.from_arrow(Other())

    class Named:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return table.schema.__arrow_c_schema__()

    with pytest.raises(ValueError, match="PyCapsule"):
        Catalog.from_arrow(Named())


def test_files_of_arrow_and_parquet(tmp_path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: no files to read")
    feather, parquet = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table(ROWS)
    feather.write_feather(table, tmp_path / "items.arrow", compression="uncompressed")
    assert Catalog.from_parquet(tmp_path / "items.arrow").to_bytes() == expected()
    parquet.write_table(table, tmp_path / "items.parquet")
    try:
        assert Catalog.from_parquet(tmp_path / "items.parquet").to_bytes() == expected()
    except palmette.CatalogError as error:
        if "build with the feature" not in str(error):
            raise
        pytest.skip(f"{error}")
    with pytest.raises(FileNotFoundError):
        Catalog.from_parquet(tmp_path / "none.parquet")
