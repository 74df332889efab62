"""One question on every surface: random documents over HTTP, through the command, and as keywords (which go through the Rust facade)."""

from __future__ import annotations

import http.client
import json
import random
import signal
import subprocess
import sys

import pytest

import palmette
from palmette import Catalog, Recommender
from palmette.types import RecommendQuestion

RUN = [sys.executable, "-m", "palmette"]


@pytest.fixture(scope="module")
def server(demo):
    """Port of a server over the shop, with limits as wide as the engine's."""
    words = ["serve", "--model", demo / "model", "--catalog", demo / "shop.palm", "--listen", "127.0.0.1:0", "--json"]
    words += ["--max-beam-width", "65536", "--max-k", "65536", "--max-deadline-ms", "60000"]
    process = subprocess.Popen([*RUN, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    if not line:
        message = process.communicate()[1]
        if "unrecognized subcommand" in message:
            pytest.skip("this build has no server")
        raise AssertionError(message)
    yield int(json.loads(line)["listening"].rsplit(":", 1)[1])
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)


def document(rng: random.Random, items: list[dict]) -> dict:
    """A random question; about a third break a rule."""
    ids = [item["item_id"] for item in items]
    history = rng.choices(ids, k=rng.choice([0, 1, 2, 6]))
    if rng.random() < 0.3:
        history.append(rng.choice(["nobody", 7, "9-9-9", rng.choice(items)["codes"], {"codes": rng.choice(items)["codes"]}]))
    question = {"history": history, "k": rng.choice([1, 3, 10, 20]) if rng.random() < 0.9 else rng.choice([0, "many"])}
    brand = {"match": {"brand": rng.choice(items)["brand"]}}
    members = {
        "beam_width": lambda: rng.choice([1, 8, 64, 256] * 4 + [0]),
        "widths": lambda: rng.choice([[8, 16, 32, 32], [4, 4]]),
        "mode": lambda: rng.choice(["auto", "beam", "probed", "proven"] * 4 + ["draft", "wide"]),
        "probe_width": lambda: rng.choice([0, 2, 20]),
        "prove_width": lambda: rng.choice([0, 20, 512]),
        "verify": lambda: "keys",
        "filter": lambda: rng.choice([{"must": [brand]}, {"must_not": [brand]}] * 5 + [{"match": {"bramd": "x"}}, {"mast": 1}]),
        "rules": lambda: rng.choice([
            {"at_most": [{"attribute": "brand", "items": 1}]},
            {"boosts": [{"filter": brand, "add": 1.5}], "tie_break": {"attribute": "price", "order": "ascending"}},
            {"must_include": [rng.choice(ids)], "must_exclude": rng.choices(ids, k=2)},
            {"diversity": {"lambda": 0.5, "pool": 30}},
            *[{"at_mots": []}, {"valid": {"from": "age_days"}}][: rng.choice([0, 0, 0, 2])],
        ]),
        "exclude": lambda: [*rng.choices(ids, k=2), "nobody", 7],
        "exclude_seen": lambda: rng.choice([True, False] * 5 + [3]),
        "unknown_items": lambda: rng.choice(["skip", "error"]),
        "fields": lambda: rng.choice([["brand", "price"], ["*"], ["prise"]]),
        "trace": lambda: True,
        "query": lambda: "boots",
        "user": lambda: {"age": 30},
        "think_tokens": lambda: 5,
        "think_temperature": lambda: 0.5,
        "explain_items": lambda: {"items": 1, "max_tokens": 4},
        "paged": lambda: True,
        "cursor": lambda: rng.choice(["nonsense", 7]),
        "remember": lambda: rng.choice([True, False]),
    }
    common = ("beam_width", "filter", "rules", "exclude", "exclude_seen", "unknown_items", "trace", "mode")
    for name, value in members.items():
        if rng.random() < (0.25 if name in common else 0.03):
            question[name] = value()
    if rng.random() < 0.03:
        question["misspelt"] = 1
    return question


def shape(items, levels) -> dict:
    """What all surfaces say of an answer; scores as the 32-bit numbers they are."""
    import numpy as np

    beams = [[(list(codes), np.float32(score)) for codes, score in beams] for beams in levels or []]
    return {"items": [(name, np.float32(score), list(codes)) for name, score, codes in items], "levels": beams}


def over_http(port: int, question: dict):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = {**question, "deadline_ms": 60_000}
    connection.request("POST", "/v1/recommend", json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    if response.status != 200:
        assert response.status == 422, answer
        return answer["detail"]
    found = shape(
        [(item["id"], item["score"], item["codes"]) for item in answer["items"]],
        [[(beam["codes"], beam["score"]) for beam in beams] for beams in answer.get("levels", [])],
    )
    return found, answer["history"]["unknown"], answer["history"]["used"]


def by_command(demo, question: dict):
    words = ["recommend", "--model", demo / "model", "--catalog", demo / "shop.palm", "--question", "-", "--json"]
    done = subprocess.run([*RUN, *map(str, words)], input=json.dumps(question), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        assert done.returncode == 1 and not done.stderr, done
        return json.loads(done.stdout)["error"]
    answer = json.loads(done.stdout)
    found = shape(
        [(item["id"], item["score"], item["codes"]) for item in answer["items"]],
        [[(beam["codes"], beam["score"]) for beam in beams] for beams in answer.get("levels", [])],
    )
    unknown = [item if isinstance(item, str) else "-".join(map(str, item)) for item in answer["unknown"]]
    return found, unknown, answer["history_used"]


def by_keywords(recommender: Recommender, question: dict):
    keywords = {name: value for name, value in question.items() if name != "history"}
    try:
        answer = recommender.recommend(question["history"], **keywords)
    except (palmette.Error, TypeError) as error:
        return str(error)
    found = shape([(item.id, item.score, item.codes) for item in answer], answer.levels)
    return found, answer.unknown, answer.history_used


def test_every_surface_answers_alike(demo, server) -> None:
    items = [json.loads(line) for line in (demo / "items.jsonl").read_text().splitlines()]
    recommender = Recommender(demo / "model", Catalog.open(demo / "shop.palm"))
    rng = random.Random(20)
    answered = refused = 0
    for place in range(160):
        question = document(rng, items)
        expected = over_http(server, question)
        keywords = by_keywords(recommender, question)
        # Each is a process: some of them tell enough.
        commanded = by_command(demo, question) if place % 4 == 0 else None
        if isinstance(expected, str):
            refused += 1
            assert isinstance(keywords, str), (question, expected)
            # In Python a filter is read before the question is made, and an unknown keyword is as of any function.
            if question.get("filter") != {"mast": 1} and "misspelt" not in question:
                assert keywords == expected, question
            assert commanded is None or (isinstance(commanded, str) and expected in commanded), (question, expected, commanded)
        else:
            answered += 1
            assert keywords == expected, question
            assert commanded is None or commanded == expected, question
    assert answered > 50 and refused > 30


def test_keywords_are_the_members_of_the_document(demo, server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server, timeout=60)
    connection.request("GET", "/openapi.json")
    body = json.loads(connection.getresponse().read())["components"]["schemas"]["RecommendBody"]["properties"]
    envelope = {"target", "generation", "min_generation", "deadline_ms", "priority"}
    assert set(body) - envelope == set(RecommendQuestion.__annotations__) | {"history", "k"}
    recommender = Recommender(demo / "model", Catalog.open(demo / "shop.palm"))
    with pytest.raises(TypeError) as refused:
        recommender.recommend([], misspelt=1)
    assert set(RecommendQuestion.__annotations__) | {"k"} == set(str(refused.value).split("it has ")[1].split(", "))
