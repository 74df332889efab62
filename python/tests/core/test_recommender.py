"""Recommendations by the demonstration's model."""

from __future__ import annotations

import threading

import pytest

import palmette
from palmette import Catalog, LiveCatalog, Recommender

HISTORY = ["P0001", "P0060"]


def parts(demo) -> tuple:
    return demo / "model", Catalog.open(demo / "shop.palm")


def test_recommendations_filters_and_rules(demo) -> None:
    model, catalog = parts(demo)
    recommender = Recommender(model, catalog)
    best = recommender.recommend(HISTORY, k=8)
    assert len(best) == 8 and [item.score for item in best] == sorted((item.score for item in best), reverse=True)
    for item in best:
        assert item.id in catalog.find(item.codes) and item.id not in HISTORY
        assert item.attributes == catalog.item(item.id)["attributes"] and item.title == item.attributes.get("title")
        assert (item.boost, item.pinned) == (0, False)
    without = recommender.recommend(HISTORY, k=8, exclude=[best[0].id])
    assert [item.id for item in without][:7] == [item.id for item in best][1:]
    brand = best[-1].attributes["brand"]
    condition = {"must": {"match": {"brand": brand}}}
    of_brand = recommender.recommend(HISTORY, k=5, filter=condition)
    assert of_brand and all(item.attributes["brand"] == brand for item in of_brand)
    assert [i.id for i in recommender.recommend(HISTORY, k=5, filter=palmette.Filter(condition))] == [
        i.id for i in of_brand
    ]
    pinned = recommender.recommend(HISTORY, k=5, rules={"must_include": ["P0002"]})
    assert [item.id for item in pinned if item.pinned] == ["P0002"]
    probed = recommender.recommend(HISTORY, k=8, probe_width=16)
    assert [(item.id, item.score) for item in probed] == [(item.id, item.score) for item in best]


def test_batches_equal_single_requests(demo) -> None:
    model, catalog = parts(demo)
    recommender = Recommender(model, catalog)
    ids = catalog.ids()
    histories = [ids[n : n + 3] for n in range(6)] + [[]]
    answers = recommender.recommend_batch(histories, k=4, threads=2)
    assert len(answers) == 7
    for history, answer in zip(histories, answers):
        assert [(i.id, i.score) for i in answer] == [(i.id, i.score) for i in recommender.recommend(history, k=4)]
    found = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: recommender.recommend(histories[n], k=4)}))
        for n in range(3)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all([i.id for i in found[n]] == [i.id for i in answers[n]] for n in range(3))


def test_answers_say_what_of_the_history_was_used(demo) -> None:
    model, catalog = parts(demo)
    recommender = Recommender(model, catalog)
    known = recommender.recommend(HISTORY, k=4)
    assert (known.unknown, known.history_used, known.generation) == ([], 2, None)
    best = recommender.recommend(["gone", HISTORY[0], 7, HISTORY[1], "gone"], k=4)
    assert (best.unknown, best.history_used) == (["gone", "7", "gone"], 2)
    assert [(i.id, i.score) for i in best] == [(i.id, i.score) for i in known]
    batch = recommender.recommend_batch([["gone"], HISTORY], k=4)
    assert [answer.unknown for answer in batch] == [["gone"], []]
    assert "unknown=[\"gone\", " in repr(best) and "unknown" not in repr(known)


def test_an_answer_is_a_sequence(demo) -> None:
    best = Recommender(*parts(demo)).recommend(HISTORY, k=4)
    items = list(best)
    assert len(best) == len(items) == 4 and best[-1] is items[3] and best[True] is items[1]
    assert best[1:3] == items[1:3] and best[::-1] == items[::-1] and items[2] in best
    for place in (4, -5):
        with pytest.raises(IndexError, match="of 4 items"):
            best[place]
    with pytest.raises(TypeError):
        best["id"]


def test_a_live_catalog_is_seen_at_once(demo, tmp_path) -> None:
    model, catalog = parts(demo)
    with LiveCatalog.create(tmp_path / "live", catalog) as live:
        recommender = Recommender(model, live)
        best = recommender.recommend(HISTORY, k=3)
        live.apply([{"delete": best[0].id}])
        assert [i.id for i in recommender.recommend(HISTORY, k=2)] == [i.id for i in best[1:]]
        assert recommender.catalog.generation == live.generation


def test_wrong_requests_are_named(demo) -> None:
    model, catalog = parts(demo)
    recommender = Recommender(model, catalog)
    with pytest.raises(palmette.RecommendError):
        recommender.recommend(HISTORY, k=0)
    with pytest.raises(palmette.FilterError):
        recommender.recommend(HISTORY, filter={"mast": 1})
    with pytest.raises(palmette.RecommendError, match="at_mots"):
        recommender.recommend(HISTORY, rules={"at_mots": []})
    with pytest.raises(palmette.RecommendError, match="mode is \"wide\""):
        recommender.recommend(HISTORY, mode="wide")
    with pytest.raises(TypeError, match="put it in a list"):
        recommender.recommend("P0001")
    with pytest.raises(TypeError, match='no "include_sene"; it has k, beam_width'):
        recommender.recommend(HISTORY, include_sene=True)
    with pytest.raises(palmette.RecommendError, match="beam_width is 0.*; .*verify is about drafts"):
        recommender.recommend(HISTORY, beam_width=0, verify="keys")
    with pytest.raises(palmette.RecommendError, match="history 0"):
        recommender.recommend_batch([HISTORY, HISTORY], k=0)


def test_no_model(tmp_path) -> None:
    with pytest.raises(palmette.RecommendError, match="semantic_ids.json|config.json"):
        Recommender(tmp_path, Catalog.build([[1]]))
    with pytest.raises(TypeError, match="str is no catalog"):
        Recommender(tmp_path, "catalog")
