#!/usr/bin/env python3
"""Answers of two builds beside one another: questions over HTTP, help of every command, the OpenAPI document.

    same_answers.py --palmette BEFORE --palmette AFTER [--questions 10000] [--seed 1] [--ignore mode] [--record FILE]

Each program serves the built-in shop twice, frozen and as a live catalog with three generations of which two are kept, and is asked the
same random questions: histories by id and by codes with unknown items among them, all modes, widths, filters, rules, exclusions, fields,
generations, and bodies that break a rule. Answers are compared whole but for request ids, times and what `--ignore` names; differences
are counted by the place of the first, with one example each. `--record FILE` writes the first program's answers, and a file in place of
a program is compared with: a build that is gone can be compared with later. Exit status 1 where anything differs.
"""

import argparse
import collections
import http.client
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile

PASSING = {"request_id", "timings_ms", "retry_after_ms", "cached", "narrowed"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--palmette", action="append", required=True, type=pathlib.Path, help="a program, or a record of one")
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ignore", action="append", default=[], help="members of answers that may differ")
    parser.add_argument("--record", type=pathlib.Path)
    return parser.parse_args()


def filter_of(rng, items):
    """A random condition over the shop's attributes; now and then one that is wrong."""
    item = rng.choice(items)
    match rng.choice([0, 1, 2, 3, 4, 5] * 4 + [6]):
        case 0:
            return {"must": [{"match": {"brand": item["brand"]}}]}
        case 1:
            low = rng.uniform(0, 80)
            return {"must": [{"range": {"price": {"gte": low, "lt": low + rng.uniform(5, 100)}}}]}
        case 2:
            return {"must_not": [{"match": {"brand": item["brand"]}}], "must": [{"range": {"stock": {"gt": 0}}}]}
        case 3:
            return {"should": [{"match": {"brand": rng.choice(items)["brand"]}} for _ in range(3)]}
        case 4:
            return {"must": [{"ids": [of["item_id"] for of in rng.sample(items, 12)]}]}
        case 5:
            return {"exclude": [of["item_id"] for of in rng.sample(items, 5)]}
        case _:
            return {"must": [{"match": {"bramd": "x"}}]}


def rules_of(rng, items):
    rules = {}
    if rng.random() < 0.4:
        rules["at_most"] = [{"attribute": "brand", "items": rng.randint(1, 3)}]
    if rng.random() < 0.3:
        rules["boosts"] = [{"filter": filter_of(rng, items), "add": rng.uniform(-2, 2)}]
    if rng.random() < 0.3:
        rules["must_include"] = [of["item_id"] for of in rng.sample(items, rng.randint(1, 2))]
    if rng.random() < 0.3:
        rules["must_exclude"] = [of["item_id"] for of in rng.sample(items, 4)]
    if rng.random() < 0.2:
        rules["tie_break"] = {"attribute": "price", "order": rng.choice(["ascending", "descending"])}
    if rng.random() < 0.2:
        rules["diversity"] = {"lambda": 0.5, "pool": rng.randint(20, 90)}
    if rng.random() < 0.1:
        rules["at_most_per_semantic_id"] = rng.choice([0, 1, 1, 1])
    return rules


def question(rng, items, target):
    """A body of /v1/recommend."""
    names = [of["item_id"] for of in items]
    history = [rng.choice(names) for _ in range(rng.choice([0, 1, 2, 5, 20]))]
    if rng.random() < 0.1:
        history.append(rng.choice(["nobody", "P9999", 7, "1-2-3-4"]))
    if rng.random() < 0.2:
        codes = rng.choice(items)["codes"]
        history.append(rng.choice([codes, {"codes": codes}]))
    body = {"target": target, "history": history, "k": rng.choice([1, 2, 5, 10, 10, 30, 100]), "deadline_ms": 10_000}
    maybe = {
        "beam_width": (0.6, lambda: rng.choice([1, 4, 16, 64, 128, 200, 512])),
        "widths": (0.06, lambda: [rng.choice([4, 32, 256]) for _ in range(rng.choice([4] * 9 + [3]))]),
        "mode": (0.3, lambda: rng.choice(["beam", "probed"] * 6 + ["draft", "wide"])),
        "filter": (0.4, lambda: filter_of(rng, items)),
        "rules": (0.3, lambda: rules_of(rng, items)),
        "exclude": (0.2, lambda: [rng.choice(names + ["nobody"]) for _ in range(3)]),
        "exclude_seen": (0.2, lambda: rng.random() < 0.5),
        "unknown_items": (0.2, lambda: rng.choice(["skip", "skip", "error"])),
        "fields": (0.3, lambda: rng.choice([["*"], ["brand", "price"], ["brand"], ["price"], ["prise"]])),
        "query": (0.01, lambda: "boots"),
        "think_tokens": (0.01, lambda: rng.choice([0, 10])),
        "remember": (0.1, lambda: False),
        "explain_items": (0.01, lambda: {"items": 1, "max_tokens": 5}),
        "generation": (0.2 if target == "live" else 0.02, lambda: rng.choice([1, 2, 3, 9, "spring"])),
        "min_generation": (0.1, lambda: rng.choice([1, 2])),
        "min_beam_width": (0.05, lambda: rng.choice([0, 8])),
    }
    for name, (share, value) in maybe.items():
        if rng.random() < share:
            body[name] = value()
    if rng.random() < 0.03:
        body[rng.choice(list(body))] = rng.choice([None, "x", -1, {"a": 1}, [[]]])
    if rng.random() < 0.01:
        body["misspelt"] = 1
    return body


def without(value, ignored):
    if isinstance(value, dict):
        return {name: without(of, ignored) for name, of in value.items() if name not in ignored}
    return [without(of, ignored) for of in value] if isinstance(value, list) else value


def answers(program, options, ignored):
    """What a program says: of each question, of its commands' help, and its OpenAPI document."""
    found = {"help": {}, "openapi": None, "answers": []}

    def help_of(words):
        text = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True).stdout
        found["help"][" ".join(words)] = text.replace(program.name, "palmette")
        commands = text.split("Commands:\n", 1)[1].split("\n\n")[0] if "Commands:\n" in text else ""
        for name in re.findall(r"^  (\S+)", commands, re.MULTILINE):
            if name != "help":
                help_of([*words, name])

    help_of([])
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)

        def run(*words):
            subprocess.run([program, *map(str, words)], check=True, capture_output=True)

        run("demo", "--export", work / "shop")
        run("catalog", "build", work / "shop/items.jsonl", "--out", work / "shop/shop.palm")
        run("catalog", "live", "init", work / "live", "--from", work / "shop/shop.palm", "--model", work / "shop/model")
        lines = (work / "shop/items.jsonl").read_text().splitlines()
        items = [json.loads(line) for line in lines]
        server = subprocess.Popen(
            [program, "serve", "--catalog", f"frozen={work / 'shop/shop.palm'}", "--catalog", f"live={work / 'live'}",
             "--model", f"demo={work / 'shop/model'}", "--target", "frozen=demo:frozen", "--target", "live=demo:live",
             "--listen", "127.0.0.1:0", "--json", "--answer-cache-mb", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            port = int(json.loads(server.stdout.readline())["listening"].rsplit(":", 1)[1])
            http_ = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

            def ask(method, path, body=None):
                http_.request(method, path, json.dumps(body) if body is not None else None, {"content-type": "application/json"})
                response = http_.getresponse()
                return response.status, json.loads(response.read() or "null")

            found["openapi"] = ask("GET", "/openapi.json")[1]
            for name, gone in (("spring", "P0001"), (None, "P0002"), ("summer", "P0003")):
                assert ask("DELETE", f"/v1/catalogs/live/items/{gone}")[0] == 200
                if name:
                    status, said = ask("POST", "/v1/catalogs/live/generations", {"name": name})
                    assert status in (200, 201), said
            rng = random.Random(options.seed)
            for _ in range(options.questions):
                body = question(rng, items, rng.choice(["frozen", "live"]))
                status, answer = ask("POST", "/v1/recommend", body)
                found["answers"].append([body, status, without(answer, ignored)])
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    return found


def first_difference(one, other, place=""):
    """The place at which two values differ first; None where they do not."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            if name not in one or name not in other:
                return f"{place}/{name} ({'new' if name in other else 'gone'})"
            found = first_difference(one[name], other[name], f"{place}/{name}")
            if found:
                return found
        return None
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next(filter(None, (first_difference(a, b, f"{place}/*") for a, b in zip(one, other))), None)
    return None if one == other else place or "/"


def main():
    options = arguments()
    ignored = PASSING | set(options.ignore)
    found = []
    for program in options.palmette:
        is_record = program.suffix == ".json"
        found.append(json.loads(program.read_text()) if is_record else answers(program.absolute(), options, PASSING))
    if options.record:
        options.record.write_text(json.dumps(found[0]))
    statuses = collections.Counter(status for _, status, _ in found[0]["answers"])
    print(f"{len(found[0]['answers'])} questions:", ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items())))
    failed = False
    for program, other in zip(options.palmette[1:], found[1:]):
        places, examples = collections.Counter(), {}
        for (body, status, answer), (_, now_status, now) in zip(found[0]["answers"], other["answers"], strict=True):
            place = None if status == now_status else f"status {status} -> {now_status}"
            place = place or first_difference(without(answer, ignored), without(now, ignored))
            if place:
                places[place] += 1
                examples.setdefault(place, (body, answer, now))
        helps = [name for name in sorted(found[0]["help"] | other["help"]) if found[0]["help"].get(name) != other["help"].get(name)]
        document = first_difference(found[0]["openapi"], other["openapi"])
        print(f"{program}: {sum(places.values())} answers differ; help of {helps or 'no command'}; OpenAPI at {document or 'no place'}")
        for place, count in places.most_common():
            body, answer, now = examples[place]
            print(f"  {count} at {place}\n    {json.dumps(body)}\n    {json.dumps(answer)[:600]}\n    {json.dumps(now)[:600]}")
        failed |= bool(places or helps or document)
    sys.exit(failed)


if __name__ == "__main__":
    main()
