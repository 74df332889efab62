"""One argument, one meaning: the same values given in different ways make the same object, or an error that says the way."""

from __future__ import annotations

import datetime
import signal
import subprocess
import sys

import numpy as np
import pytest
from conftest import END

import palmette
from palmette import Catalog

ROWS = [[3, 1], [0, 7], [0, 2]]
IDS = ["x", "y", "z"]


def rows_in_other_ways():
    array = np.array(ROWS)
    yield "lists", ROWS
    yield "tuples", tuple(map(tuple, ROWS))
    yield "a matrix", array.astype(np.uint16)
    yield "arrays", list(array)
    yield "arrays of other types", [np.array(row, dtype) for row, dtype in zip(ROWS, ("u1", "i8", "<i2"), strict=True)]
    yield "scalars of NumPy", [list(row) for row in array]
    objects = np.empty(3, object)
    objects[:] = list(array)
    yield "an array of arrays", objects
    try:
        import pandas

        yield "a Series of arrays", pandas.Series(list(array))
        yield "a Series of lists", pandas.Series(ROWS)
        yield "a frame", pandas.DataFrame(array)
    except ImportError:
        pass
    try:
        import polars

        yield "a Series of polars", polars.Series(ROWS)
    except ImportError:
        pass
    try:
        import pyarrow

        yield "a column of Arrow", pyarrow.array(ROWS)
        yield "chunks of Arrow", pyarrow.chunked_array([ROWS[:1], ROWS[1:]])
    except ImportError:
        pass


@pytest.mark.parametrize(("way", "rows"), list(rows_in_other_ways()), ids=lambda value: value if isinstance(value, str) else "")
def test_rows_of_codes(way, rows):
    assert Catalog.build(rows, IDS).to_bytes() == Catalog.build(ROWS, IDS).to_bytes()


def test_square_codes_are_rows_whatever_they_are_made_of():
    square = [[3, 1], [0, 7]]
    for codes in (square, np.array(square), [np.array(row) for row in square], np.array(square, order="F")):
        assert Catalog.build(codes, ["x", "y"]).item("x")["codes"] == [3, 1]
    columns = [np.array([3, 0]), np.array([1, 7])]
    assert Catalog.build(code_columns=columns, ids=["x", "y"]).item("x")["codes"] == [3, 1]
    ragged = Catalog.build([np.array([3, 1, 4]), np.array([2])], ["x", "y"])
    assert ragged.item("y")["codes"] == [2] and ragged.num_levels == 3


def test_codes_that_are_given_in_no_way_or_in_two():
    flat = np.array([3, 1])
    for arguments in (
        {},
        {"ids": ["x"]},
        {"codes": [[1]], "code_columns": [flat]},
        {"code_columns": [flat], "offsets": [0, 2]},
    ):
        with pytest.raises(TypeError, match="codes in one way"):
            Catalog.build(**arguments)
    for codes, message in (
        ([1, 2], "row 0 of codes is 1; the codes of an item are a list or array"),
        ([[1], [2.5]], r"row 1 of codes is \[2.5\]"),
        ([[1], None], "row 1 of codes is None"),
        ([[1], np.array([[2, 3]])], "row 1 of codes is array"),
        ([np.array([1.0])], "row 0 of codes is array"),
        (["12"], "row 0 of codes is '12'"),
    ):
        with pytest.raises(TypeError, match=message):
            Catalog.build(codes)
    with pytest.raises(ValueError, match="two dimensions"):
        Catalog.build(flat)


def test_missing_values_are_alike_in_columns_and_frames():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: its columns are not tried")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: frames of pandas are not read")
    frame = pandas.DataFrame(
        {
            "text": ["ash", None, "birch"],
            "text of its own": pandas.array(["ash", None, "birch"], dtype="string"),
            "number": [9.5, np.nan, 3.0],
            "whole": pandas.array([1, None, 3], dtype="Int64"),
            "small": pandas.array([1, 2, None], dtype="UInt8"),
            "float of its own": pandas.array([1.5, None, 2.5], dtype="Float32"),
            "truth": pandas.array([True, None, False], dtype="boolean"),
            "category": pandas.Categorical(["s", None, "t"]),
            "moment": pandas.to_datetime(["2024-01-01", None, "2024-02-01T10:00:00.123456"], format="ISO8601"),
            "zoned": pandas.to_datetime(["2024-01-01", None, "2024-02-01"], utc=True),
            "list": pandas.Series([["a", "b"], None, []]),
            "nothing": [None, None, None],
        }
    )
    whole = Catalog.build([[1], [2], [3]], IDS, attributes=frame)
    columns = Catalog.build([[1], [2], [3]], IDS, attributes={name: frame[name] for name in frame})
    for item in IDS:
        assert columns.item(item) == whole.item(item)
    for name in frame:
        for column in (frame[name], frame[name].array):
            alone = Catalog.build([[1], [2], [3]], IDS, attributes={name: column})
            for item in IDS:
                expected = {name: whole.item(item)["attributes"][name]} if name in whole.item(item)["attributes"] else {}
                assert alone.item(item)["attributes"] == expected, name
    assert columns.item("y")["attributes"] == {"small": 2} and "number" in columns.item("x")["attributes"]
    assert len(columns.filter({"range": {"moment": {"gt": "2024-01-15"}}})) == 1
    mixed = {"whole": [1, pandas.NA, None], "moment": [pandas.Timestamp("2024-01-01"), pandas.NaT, None]}
    listed = Catalog.build([[1], [2], [3]], IDS, attributes=mixed)
    assert [listed.item(item)["attributes"] for item in ("y", "z")] == [{}, {}]
    assert listed.item("x")["attributes"]["whole"] == 1 and len(listed.filter({"range": {"moment": {"gt": "2023-01-01"}}})) == 1
    with pytest.raises(ValueError, match="row 1: NaN is no value that JSON has; a missing value is None"):
        Catalog.build([[1], [2]], attributes={"price": [1.0, float("nan")]})


def test_nulls_in_columns_of_codes():
    """The last levels of a shorter semantic ID are null, no others."""
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are not tried")
    for level in range(3):
        columns = {f"c{n}": [1, None if n == level else 2] for n in range(3)}
        table = arrow.table({"id": ["a", "b"], **columns})
        if level == 2:
            assert Catalog.from_arrow(table, codes=["c0", "c1", "c2"]).item("b")["codes"] == [2, 2]
            continue
        with pytest.raises(palmette.CatalogError, match=f"row 2, column \"c{level}\".*the code of level {level} is null"):
            Catalog.from_arrow(table, codes=["c0", "c1", "c2"])


def test_a_vocabulary_of_numbers():
    ids = {b"b": 3, b"a": 0, "é".encode(): 1}
    made = palmette.Vocabulary(ids, ends=[5], special_tokens={"<tool>": 2})
    listed = palmette.Vocabulary([b"a", "é".encode(), None, b"b", None, None], ends=[5], special_tokens={"<tool>": 2})
    assert made == listed and made.num_tokens == 6 and made.special_tokens == {"<tool>": 2}
    assert palmette.Vocabulary(dict(reversed(ids.items())), ends=[5], special_tokens={"<tool>": 2}) == made
    for tokens, error, message in (
        ({"a": 0}, TypeError, "'a'.*is neither bytes nor None.*from_tokenizer"),
        ({b"a": "0"}, TypeError, "that of b'a' is '0'"),
        ({b"a": -1}, TypeError, "that of b'a' is -1"),
        ({b"a": 1, b"b": 1}, palmette.VocabularyError, 'token 1 is both b"a" and b"b"'),
        ({b"a": 2**40}, ValueError, "at most 16777216 tokens"),
        ({b"a": 5}, palmette.VocabularyError, "5"),
    ):
        with pytest.raises(error, match=message):
            palmette.Vocabulary(tokens, ends=[5])


def test_tokens_come_as_lists_arrays_and_tensors(schema, vocabulary):
    row = [tokens for tokens in range(END) if schema.matcher().accepted_prefix([tokens])][:1]
    row += [int(schema_after(schema, row)[0])]
    for tokens in (row, tuple(row), np.array(row), np.array([row], np.int32), np.array(row, np.uint8), iter(row)):
        matcher = schema.matcher()
        matcher.commit_all(tokens)
        assert matcher.position == 2
    for tokens in (row, np.array(row), np.array([row])):
        assert schema.matcher().accepted_prefix(tokens) == 2 and vocabulary.decode(tokens) == vocabulary.decode(row)
    matcher = schema.matcher()
    matcher.commit_all(np.zeros(0, np.int64))
    assert matcher.position == 0
    for tokens, error, message in (
        (np.array([row, row]), ValueError, r"shape \(2, 2\)"),
        (np.array(row, float), TypeError, "float64; give integers"),
        ("ab", TypeError, "'str'"),
        (3, TypeError, "'int'"),
    ):
        with pytest.raises(error, match=message):
            matcher.commit_all(tokens)
    bitmask = palmette.allocate_bitmask(6, vocabulary.num_tokens)
    drafts = [np.array(row), row]
    assert palmette.fill_masks_with_drafts([schema.matcher()] * 2, drafts, bitmask) == [2, 2]


def schema_after(compiled, row):
    matcher = compiled.matcher()
    matcher.commit_all(row)
    return matcher.allowed()


def test_modules_are_where_the_documentation_says():
    program = (
        "import palmette, numpy\n"
        "logits = numpy.zeros((1, 32), numpy.float32)\n"
        "palmette.numpy.apply_bitmask_(logits, numpy.zeros((1, 1), numpy.int32))\n"
        "assert palmette.static.build_static_index and palmette.types.Bitmask and palmette.compat.llguidance\n"
        "assert 'torch' in dir(palmette)\n"
        "try: palmette.nowhere\n"
        "except AttributeError as error: print(palmette.__version__, error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown == f"{palmette.__version__} module 'palmette' has no attribute 'nowhere'\n"
    command = subprocess.run([sys.executable, "-m", "palmette", "--version"], capture_output=True, text=True, check=True)
    assert palmette.__version__ in command.stdout


def test_caches_are_seen_and_emptied(vocabulary):
    fresh = palmette.Vocabulary([b"a", b"b", None], ends=[2])
    kept = palmette.Grammar.from_regex("ab*").compile(fresh)
    compiler = palmette.Compiler(fresh, cache_bytes=1 << 20)
    compiler.compile(palmette.Grammar.from_regex("ab*"))
    for counters, clear in ((lambda: fresh.cache_statistics, fresh.clear_cache), (lambda: compiler.statistics, compiler.clear)):
        seen = counters()
        assert seen["grammars"] == seen["built"] == 1 and 0 < seen["bytes"] <= seen["max_bytes"]
        clear()
        assert counters()["grammars"] == counters()["bytes"] == 0
    assert kept.matcher().allowed().tolist() == [0]


def test_notes_are_logged_once(caplog):
    import logging

    from palmette import _requests

    logger, note = logging.getLogger("palmette.tried"), f"a note of {datetime.datetime.now()}"
    for _ in range(3):
        _requests.log_notes(logger, [note, note + " too"])
    assert [record.getMessage() for record in caplog.records] == [
        f"not fully enforced: {note}",
        f"not fully enforced: {note} too",
    ]


@pytest.mark.parametrize("way", ["codes", "attributes", "arrow", "parquet"])
def test_ctrl_c_ends_a_build(way, tmp_path):
    """Within the time of a stage, not of the whole."""
    if way in ("arrow", "parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed: there are no tables")
    program = """
import numpy, palmette, sys, time
way, file = sys.argv[1:]
codes = numpy.random.default_rng(0).integers(0, 2048, size=(4_000_000, 8))
attributes = {"p": list(range(4_000_000))} if way == "attributes" else None
if way in ("arrow", "parquet"):
    import pyarrow, pyarrow.parquet
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(codes.reshape(-1)), 8)
    table = pyarrow.table({"item_id": numpy.arange(4_000_000), "codes": lists})
if way == "parquet":
    pyarrow.parquet.write_table(table, file)
print("ready", flush=True)
begun = time.monotonic()
try:
    if way == "arrow":
        palmette.Catalog.from_arrow(table)
    elif way == "parquet":
        palmette.Catalog.from_parquet(file)
    else:
        palmette.Catalog.build(codes, attributes=attributes)
    print("built")
except KeyboardInterrupt:
    print("called off", time.monotonic() - begun < 60)
"""
    process = subprocess.Popen([sys.executable, "-c", program, way, str(tmp_path / "items.parquet")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=120)[0] == "called off True\n"
