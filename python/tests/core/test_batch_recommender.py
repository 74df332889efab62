"""Tables of histories to tables of recommendations."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import pickle
import random
import re
import subprocess
import sys
import threading
import time

import pytest

import palmette
from palmette import BatchRecommender, Catalog, LiveCatalog, Recommender

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are not answered")

COLUMNS = ["user", "items", "scores", "codes", "proven", "missed_at_most", "skipped", "error"]


@pytest.fixture(scope="module")
def histories(demo):
    """Forty rows: among them an empty history, a null one, unknown items, a user without a name, and one that stands twice."""
    users = list(json.loads((demo / "histories.json").read_text()).items())[:40]
    rows = [{"user_id": user, "history": items, "age": 30} for user, items in users]
    rows[3]["history"] = []
    rows[5]["history"] = None
    rows[7]["history"] = [*rows[7]["history"], "gone"]
    rows[9]["user_id"] = None
    rows[11]["user_id"] = rows[10]["user_id"]
    return pa.Table.from_pylist(rows)


def of(demo, **options) -> BatchRecommender:
    return BatchRecommender(demo / "model", str(demo / "shop.palm"), **{"k": 4, "beam_width": 8, **options})


def test_rows_equal_single_requests(demo, histories) -> None:
    answers = of(demo, unknown_items="error")(histories)
    assert isinstance(answers, pa.Table) and answers.column_names == COLUMNS and len(answers) == len(histories)
    assert answers["user"].to_pylist() == histories["user_id"].to_pylist()
    alone = Recommender(demo / "model", Catalog.open(demo / "shop.palm"))
    for place, (row, history) in enumerate(zip(answers.to_pylist(), histories["history"].to_pylist(), strict=True)):
        if place in (5, 7):
            assert row["items"] is None and row["scores"] is None and row["codes"] is None and row["proven"] is None
            continue
        items = alone.recommend(history, k=4, beam_width=8)
        assert (row["proven"], row["missed_at_most"]) == (items.proven, items.missed_at_most)
        assert row["items"] == [item.id for item in items] and row["codes"] == [item.codes for item in items]
        assert row["scores"] == [item.score for item in items] and (row["skipped"], row["error"]) == (0, None)
    errors = answers["error"].to_pylist()
    assert errors[5] == "`history` is missing" and '"gone" is not in the catalog' in errors[7]

    skipping = of(demo, unknown_items="skip")(histories)
    assert skipping["skipped"].to_pylist() == [int(place == 7) for place in range(40)]
    known = [item for item in histories["history"][7].as_py() if item != "gone"]
    assert skipping["items"][7].as_py() == [item.id for item in alone.recommend(known, k=4, beam_width=8)]


def test_answers_depend_on_their_row_alone(demo, histories) -> None:
    answer = of(demo, threads=2)
    whole = answer(histories).to_pylist()
    shuffled = random.Random(0).sample(range(40), 40)
    cuts = [0, 1, 8, 8, 31, 40]
    for start, end in zip(cuts, cuts[1:]):
        places = shuffled[start:end]
        assert answer(histories.take(pa.array(places, pa.int64()))).to_pylist() == [whole[place] for place in places]
    assert of(demo, threads=1)(histories).to_pylist() == whole
    assert of(demo, beam_width=200)(histories).to_pylist() == of(demo, beam_width=200, mode="beam")(histories).to_pylist()


def test_pickles_have_paths_and_options_alone(demo, histories) -> None:
    fresh = of(demo, filter={"must": {"range": {"price": {"lt": 50}}}})
    assert len(pickle.dumps(fresh)) < 1000
    expected = fresh(histories)
    again = pickle.loads(pickle.dumps(fresh))
    assert len(pickle.dumps(again)) < 1000 and repr(again) == repr(fresh)
    assert again(histories).equals(expected) and not of(demo)(histories).equals(expected)


def test_the_command_gives_the_same_rows(demo, histories, tmp_path) -> None:
    from pyarrow import parquet

    parquet.write_table(histories, tmp_path / "in.parquet", row_group_size=7)
    expected = of(demo)(histories).to_pylist()
    run = [sys.executable, "-m", "palmette", "recommend", "--model", str(demo / "model"), "--catalog", str(demo / "shop.palm")]
    run += ["--histories", "in.parquet", "--out", "out.parquet", "-k", "4", "--beam-width", "8"]
    answered = []
    for shard in range(3):
        subprocess.run([*run, "--shard", f"{shard}/3"], cwd=tmp_path, check=True, capture_output=True)
        answered += parquet.read_table(tmp_path / f"out-{shard:05}-of-00003.parquet").to_pylist()
    for row in answered:
        # Only files have places.
        row["error"] = row["error"] and row["error"].removeprefix("row 6: ")
    assert answered == expected


def test_batches_polars_and_other_columns(demo, histories) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    answer = of(demo)
    expected = answer(histories)
    (batch,) = histories.combine_chunks().to_batches()
    assert answer(batch).equals(expected)
    strange = histories.append_column("blob", pa.array([b"\0"] * 40))
    assert answer(strange).equals(expected)
    recommender = Recommender(demo / "model", Catalog.open(demo / "shop.palm"))
    frame = polars.DataFrame(recommender.recommend_table(polars.from_arrow(histories), k=4, beam_width=8))
    assert frame["items"].to_list() == expected["items"].to_pylist()
    empty = answer(histories.slice(0, 0))
    assert len(empty) == 0 and empty.schema == expected.schema


def test_the_interpreter_is_free_meanwhile(demo, histories) -> None:
    answer = of(demo, beam_width=100, mode="beam", threads=1)
    answer(histories.slice(0, 1))
    done = threading.Event()
    thread = threading.Thread(target=lambda: (answer(histories), done.set()))
    steps = 0
    thread.start()
    while not done.is_set():
        steps += 1
        time.sleep(0.001)
    thread.join()
    assert steps > 5, "this thread ran while the other answered"


def test_a_live_catalog_is_read_at_a_kept_generation(demo, histories, tmp_path) -> None:
    with LiveCatalog.create(tmp_path / "live", Catalog.open(demo / "shop.palm")) as live:
        live.keep("tonight")
        best = of(demo)(histories)["items"][0].as_py()[0]
        live.apply([{"delete": best}])
        there = BatchRecommender(demo / "model", tmp_path / "live", k=4, beam_width=8, generation="tonight")
        assert there(histories).equals(of(demo)(histories))
        with pytest.raises(ValueError, match="name the one to read"):
            BatchRecommender(demo / "model", tmp_path / "live")(histories)
        with pytest.raises(palmette.Error, match="tomorrow"):
            BatchRecommender(demo / "model", tmp_path / "live", generation="tomorrow")(histories)


def test_wrong_tables_and_options_are_named(demo, histories) -> None:
    answer = of(demo)
    with pytest.raises(ValueError, match="nothing is called as a history"):
        answer(histories.select(["age"]))
    with pytest.raises(ValueError, match="group them first"):
        answer(pa.table({"user_id": ["U1"], "item_id": ["P0001"]}))
    with pytest.raises(TypeError, match="no table"):
        answer(["P0001"])
    with pytest.raises(ValueError, match="column \"history\""):
        answer(pa.table({"history": pa.array([b"P0001"])}))
    with pytest.raises(palmette.RecommendError, match="k is 0"):
        of(demo, k=0)(histories)
    with pytest.raises(palmette.Error, match="colour"):
        of(demo, filter={"must": {"match": {"colour": "red"}}})(histories)
    with pytest.raises(palmette.RecommendError, match="unknown_items is \"drop\"; it must be one of skip, error"):
        of(demo, unknown_items="drop")(histories)
    with pytest.raises(ValueError, match="is a file"):
        of(demo, generation=3)(histories)
    rows = answer(pa.table({"history": [["P0001"], ["P0001", None]]})).to_pylist()
    assert rows[0]["user"] is None and rows[0]["error"] is None and "item null" in rows[1]["error"]


def test_the_example_of_the_documentation_prints_what_the_page_says(demo, monkeypatch) -> None:
    page = pathlib.Path(__file__).parents[3] / "docs" / "python.md"
    if not page.exists():
        pytest.skip(f"{page} is not there: the tests run away from the repository")
    text = page.read_text().partition("### Recommendations for everyone")[2]
    program, expected = re.search(r"```python\n(.*?)```\n```text\n(.*?)```", text, re.DOTALL).groups()
    monkeypatch.chdir(demo.parent)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(program, {})
    assert printed.getvalue() == expected
