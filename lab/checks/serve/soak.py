#!/usr/bin/env python3
"""Soak of a server: requests beside updates, every answer held against a model of the catalog.

    soak.py --url http://127.0.0.1:8080 --catalog items --target items --items 100000 --seconds 600 [--updates 20] [--clients 2]
            [--users 400]

Needs `palmette serve` (or the example `random`) over items 0 … N-1 with `stock` from 0 to 9. One thread applies so many batches a
second: stock of five items, and now and then an item that goes or comes back. The model keeps for every item the generations at
which its stock changed. Clients ask for items in stock and check that each answer's generation never falls on their connection, that
as many items came as were asked for or are eligible, and that every item was in stock at that very generation. With `--users` a client
asks for one of so many users who come back, each with the item more that it was given before, which a server with `--prompt-cache-mb`
remembers. The server's resident memory and what it keeps of prompts are read from /metrics once a second; memory's slope after the
first quarter is printed. Exit status 1 on any fault.
"""

import argparse
import bisect
import http.client
import json
import random
import sys
import threading
import time
import urllib.parse


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--catalog", default="items")
    parser.add_argument("--target", default="items")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--updates", type=float, default=20)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--pause-ms", type=float, default=0, help="pause of a client after each answer")
    parser.add_argument("--beam-width", type=int, default=128)
    parser.add_argument("--users", type=int, default=0, help="users of a client who come back; none: every history is new")
    parser.add_argument("--longest", type=int, default=150, help="items of a user who starts anew after them")
    return parser.parse_args()


class Connection:
    """One connection that stays; opened anew where it broke."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.http = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)

    def ask(self, method, path, body=None, kind="application/json"):
        headers = {"content-type": kind} if body is not None else {}
        self.http.request(method, path, body, headers)
        response = self.http.getresponse()
        return response.status, response.read()


class Model:
    """Stock of every item by generation: a list of (generation, stock or None where it is gone)."""

    def __init__(self, items):
        self.lock = threading.Lock()
        self.changes = [[(0, n % 10)] for n in range(items)]
        self.known = 0

    def apply(self, generation, changes):
        with self.lock:
            for item, stock in changes.items():
                self.changes[item].append((generation, stock))
            self.known = generation

    def stock(self, item, generation):
        with self.lock:
            changes = self.changes[item]
            place = bisect.bisect_right(changes, generation, key=lambda change: change[0])
            return changes[place - 1][1]


def update(options, model, stop, faults, counts):
    rng = random.Random(1)
    connection = Connection(options.url)
    gone = []
    due = time.monotonic()
    while not stop.is_set():
        due += 1 / options.updates
        changes, lines = {}, []
        for _ in range(5):
            item = rng.randrange(options.items)
            if item in changes or model.stock(item, 1 << 60) is None:
                continue
            changes[item] = rng.randrange(10)
            lines.append(json.dumps({"item_id": str(item), "stock": changes[item]}))
        if rng.random() < 0.2:
            item = rng.randrange(options.items)
            if item not in changes and model.stock(item, 1 << 60) is not None:
                changes[item] = None
                gone.append(item)
                lines.append(json.dumps({"delete": str(item)}))
        status, body = connection.ask(
            "POST", f"/v1/catalogs/{options.catalog}/items", "\n".join(lines), "application/x-ndjson")
        if status != 200:
            faults.append(f"update: {status} {body[:300]!r}")
            return
        model.apply(json.loads(body)["generation"], changes)
        counts["updates"] += 1
        time.sleep(max(0.0, due - time.monotonic()))


def recommend(options, model, stop, faults, counts, seed):
    rng = random.Random(seed)
    connection = Connection(options.url)
    newest = 0
    users = [[] for _ in range(options.users)]
    while not stop.is_set():
        history = rng.choice(users) if users else []
        if not history or len(history) >= options.longest:
            history[:] = [str(rng.randrange(options.items)) for _ in range(rng.randrange(1, options.longest if users else 20))]
        body = json.dumps({
            "target": options.target, "history": history, "k": 10, "beam_width": options.beam_width,
            "filter": {"must": {"range": {"stock": {"gt": 0}}}}, "fields": ["stock"],
        })
        status, text = connection.ask("POST", "/v1/recommend", body)
        if status != 200:
            faults.append(f"recommend: {status} {text[:300]!r}")
            return
        answer = json.loads(text)
        generation, items = answer["generation"], answer["items"]
        if generation < newest:
            faults.append(f"generation {generation} after {newest}")
        newest = generation
        if len(items) != 10:
            faults.append(f"{len(items)} items: {answer['shortfall']}")
        # The update's own answer may still be on its way to the model.
        while model.known < generation and not stop.is_set():
            time.sleep(0.001)
        for item in items:
            there = model.stock(int(item["id"]), generation)
            if there is None or there == 0 or item["fields"]["stock"] != there:
                faults.append(f"item {item['id']} at {generation}: answered {item['fields']}, it was {there}")
        history.extend(item["id"] for item in items[:1])
        counts["answers"] += 1
        time.sleep(options.pause_ms / 1e3)


def watch(options, stop, memory, kept):
    connection = Connection(options.url)
    while not stop.is_set():
        _, text = connection.ask("GET", "/metrics")
        values = {}
        for line in text.decode().splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                name = name.split("{")[0]
                values[name] = values.get(name, 0.0) + float(value)
        memory.append((time.monotonic(), values["process_resident_memory_bytes"]))
        kept.update({name: value for name, value in values.items() if name.startswith("palmette_prefix_")})
        stop.wait(1)


def main():
    options = arguments()
    model, stop, faults, memory, kept = Model(options.items), threading.Event(), [], [], {}
    counts = {"updates": 0, "answers": 0}
    threads = [threading.Thread(target=update, args=(options, model, stop, faults, counts)),
               threading.Thread(target=watch, args=(options, stop, memory, kept))]
    for seed in range(options.clients):
        threads.append(threading.Thread(target=recommend, args=(options, model, stop, faults, counts, seed)))
    for thread in threads:
        thread.start()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end and not faults:
        time.sleep(0.2)
    stop.set()
    for thread in threads:
        thread.join()
    late = [point for point in memory if point[0] > memory[0][0] + options.seconds / 4] or memory
    mean_t = sum(t for t, _ in late) / len(late)
    mean_m = sum(m for _, m in late) / len(late)
    spread = sum((t - mean_t) ** 2 for t, _ in late) or 1.0
    slope = sum((t - mean_t) * (m - mean_m) for t, m in late) / spread
    print(json.dumps({
        "seconds": options.seconds, **counts, "faults": len(faults), "first_faults": faults[:5],
        "memory_mb": [round(memory[0][1] / 1e6, 1), round(late[0][1] / 1e6, 1), round(memory[-1][1] / 1e6, 1)],
        "slope_mb_a_minute": round(slope * 60 / 1e6, 3), "highest_mb": round(max(m for _, m in late) / 1e6, 1), "kept": kept,
    }, indent=1))
    sys.exit(1 if faults else 0)


main()
