#!/usr/bin/env python3
"""A shopping assistant over a live shop: a language model writes items while their stock changes.

    assistant.py --palmette target/release/palmette --model smollm2 [--answers 500] [--free 100] [--clients 4]

Starts `palmette serve` over the built-in shop as a live catalog and a text model, and asks for answers that name up to three items, each
with SKU, title and a reason, under a schema whose SKUs and titles are the catalog's, in stock, no item twice. Meanwhile items are sold
out and restocked, ten changes a second. Rules, of which each breach is a fault:

- the answer is JSON of the schema (plain loops check it, not the engine);
- every SKU exists, has had stock at the generation that the answer names, comes once, and has that title;
- the members that the answer lists are the SKUs and titles that its text has, at their places.

The same prompts are asked without a form, and under the schema with plain strings in place of the catalog's: of these the share of SKUs is told
that do not exist, and of those that do and have no stock. The prompts show a few items of the shop, so that a model can know what SKUs look like.

Needs no package. Exit status 1 on any fault.
"""

import argparse
import http.client
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

NEEDS = ["a rainy day", "a long train journey", "a picnic", "working late", "a birthday of a friend", "a cold morning", "a small kitchen", "the garden", "a child who draws", "a week in the mountains"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--palmette", required=True)
    parser.add_argument("--model", required=True, help="folder of a text model")
    parser.add_argument("--answers", type=int, default=500)
    parser.add_argument("--free", type=int, default=100, help="answers without a form, and as many with plain strings")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--shown", type=int, default=5, help="items of the shop that a prompt shows")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", action="append", default=[], help="another argument of palmette serve")
    return parser.parse_args()


def schema(from_catalog):
    def text(field):
        return {"type": "string", "x-catalog": f"shop.{field}"} if from_catalog else {"type": "string", "maxLength": 80}
    item = {
        "type": "object", "additionalProperties": False, "required": ["sku", "title", "reason"],
        "properties": {"sku": text("id"), "title": text("title"), "reason": {"type": "string", "minLength": 1, "maxLength": 60}},
    }
    items = {"type": "array", "minItems": 1, "maxItems": 3, "items": item}
    if from_catalog:
        item["x-record"] = "shop"
        items["x-distinct"] = "shop"
    return {"type": "object", "additionalProperties": False, "required": ["items"], "properties": {"items": items}}


class Shop:
    """What is true of the shop, by generation."""

    def __init__(self, items):
        self.titles = {item["item_id"]: item["title"] for item in items}
        self.first = {item["item_id"]: item["stock"] for item in items}
        self.changes = {}

    def change(self, generation, item, stock):
        self.changes.setdefault(item, []).append((generation, stock))

    def stock(self, item, generation):
        stock = self.first[item]
        for changed_at, value in self.changes.get(item, []):
            if changed_at <= generation:
                stock = value
        return stock


class Run:
    def __init__(self, options, port, shop):
        self.options, self.port, self.shop = options, port, shop
        self.faults = []
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.tokens = 0

    def fault(self, text):
        with self.lock:
            self.faults.append(text)
        print("fault:", text, file=sys.stderr)

    def ask(self, method, path, body, kind="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request(method, path, body, {"content-type": kind})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def sell(self):
        """Sells items out and restocks them; the only writer."""
        rng = random.Random(self.options.seed)
        ids = sorted(self.shop.titles)
        while not self.stop.wait(0.1):
            item = rng.choice(ids)
            stock = 0 if rng.random() < 0.5 else rng.randrange(1, 50)
            line = json.dumps({"item_id": item, "stock": stock}) + "\n"
            status, answer = self.ask("POST", "/v1/catalogs/shop/items", line, "application/x-ndjson")
            if status != 200:
                self.fault(f"a change: {status} {answer}")
                return
            self.shop.change(answer["generation"], item, stock)

    def prompt(self, number):
        rng = random.Random(f"{self.options.seed} {number}")
        shown = rng.sample(sorted(self.shop.titles), self.options.shown)
        lines = "\n".join(f"- {item}: {self.shop.titles[item]}" for item in shown)
        return (f"You help in a shop. Some of its items, by SKU:\n{lines}\nI look for something for {rng.choice(NEEDS)}. "
                "Recommend up to three items of the shop, each with its SKU, its title and a short reason, as JSON.")

    def chat(self, number, form):
        body = {"messages": [{"role": "user", "content": self.prompt(number)}], "seed": number, "max_tokens": 300, "temperature": 0.8}
        if form is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema(form)}}
        if form:
            body["catalogs"] = {"shop": {"catalog": "shop", "filter": {"range": {"stock": {"gt": 0}}}}}
        status, answer = self.ask("POST", "/v1/chat/completions", json.dumps(body))
        if status != 200:
            self.fault(f"answer {number}: {status} {json.dumps(answer)[:300]}")
            return None
        with self.lock:
            self.tokens += answer["usage"]["completion_tokens"]
        return answer

    def answers(self, count, form):
        """Answers by number, asked by several clients."""
        given, numbers = {}, iter(range(count))

        def client():
            while len(self.faults) < 20:
                with self.lock:
                    number = next(numbers, None)
                if number is None:
                    return
                answer = self.chat(number, form)
                if answer is not None:
                    given[number] = answer
                    print(f"\r{'catalog' if form else 'string' if form is False else 'free'}: {len(given)} of {count}", end="", file=sys.stderr)
        clients = [threading.Thread(target=client) for _ in range(self.options.clients)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        print(file=sys.stderr)
        return given

    def check(self, number, answer):
        """Checks an answer under the catalog; the number of its items."""
        [choice] = answer["choices"]
        text = choice["message"]["content"]
        if choice["finish_reason"] != "stop":
            # Broken off by the limit on tokens: what it has must still be right.
            items = []
        else:
            items = json.loads(text)["items"]
            if not 1 <= len(items) <= 3 or any(sorted(item) != ["reason", "sku", "title"] for item in items):
                self.fault(f"answer {number} is not of the schema: {text}")
        generation = answer["catalogs"]["shop"]["generation"]
        written = []
        for item in items:
            sku, title = item["sku"], item["title"]
            if sku not in self.shop.titles:
                self.fault(f"answer {number}: {sku} does not exist")
            elif self.shop.stock(sku, generation) <= 0:
                self.fault(f"answer {number}: {sku} has no stock at generation {generation}")
            elif title != self.shop.titles[sku]:
                self.fault(f"answer {number}: {sku} is {self.shop.titles[sku]!r}, not {title!r}")
            written += [sku, title]
        skus = written[::2]
        if len(set(skus)) < len(skus):
            self.fault(f"answer {number} has an item twice: {skus}")
        content = text.encode()
        members = choice["members"]
        for member in members:
            begin, end = member["span"]
            if json.loads(b'"' + content[begin:end].removesuffix(b'"') + b'"') != member["value"]:
                self.fault(f"answer {number}: {member} is not at its place")
        # In a record the order of members is that of its properties.
        if items and sorted(written) != sorted(member["value"] for member in members):
            self.fault(f"answer {number} lists {members}, and its text has {written}")
        return len(items)

    def invented(self, given):
        """How many SKUs answers have that no catalog held: in all, not there, there and sold out."""
        seen = missing = sold_out = 0
        for answer in given.values():
            text = answer["choices"][0]["message"]["content"]
            try:
                items = json.loads(text)["items"]
                skus = [str(item["sku"]) for item in items]
            except (ValueError, KeyError, TypeError):
                skus = re.findall(r"\bP\d+\b|(?<=\"sku\": \")[^\"]+", text, re.IGNORECASE)
            for sku in skus:
                seen += 1
                if sku not in self.shop.titles:
                    missing += 1
                elif self.shop.stock(sku, float("inf")) <= 0:
                    sold_out += 1
        return {"answers": len(given), "skus": seen, "do_not_exist": missing, "sold_out": sold_out,
                "share_that_does_not_exist": round(missing / seen, 3) if seen else None}


def main():
    options = arguments()
    palmette = str(pathlib.Path(options.palmette).resolve())
    work = pathlib.Path(tempfile.mkdtemp(prefix="assistant-"))
    run = lambda *args: subprocess.run([palmette, *map(str, args)], check=True, stdout=subprocess.DEVNULL)  # noqa: E731
    run("demo", "--export", work / "shop")
    run("catalog", "build", work / "shop/items.jsonl", "--out", work / "shop.palm")
    run("catalog", "live", "init", work / "live", "--from", work / "shop.palm")
    shop = Shop([json.loads(line) for line in open(work / "shop/items.jsonl")])
    log = open(work / "log", "w")
    server = subprocess.Popen(
        [palmette, "serve", "--catalog", f"shop={work / 'live'}", "--text", f"assistant={options.model}", "--listen", "127.0.0.1:0", "--json", *options.serve],
        stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        line = server.stdout.readline()
        if not line:
            sys.exit(f"the server does not start:\n{(work / 'log').read_text()}")
        port = int(json.loads(line)["listening"].rsplit(":", 1)[1])
        asked = Run(options, port, shop)
        writer = threading.Thread(target=asked.sell)
        writer.start()
        began = time.monotonic()
        held = asked.answers(options.answers, True)
        seconds, tokens = time.monotonic() - began, asked.tokens
        strings = asked.answers(options.free, False)
        free = asked.answers(options.free, None)
        asked.stop.set()
        writer.join()
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
    items = sum(asked.check(number, answer) for number, answer in held.items())
    whole = sum(answer["choices"][0]["finish_reason"] == "stop" for answer in held.values())
    generations = [answer["catalogs"]["shop"]["generation"] for answer in held.values()]
    print(json.dumps({
        "answers": len(held), "whole": whole, "items": items, "faults": len(asked.faults), "first_faults": asked.faults[:5],
        "generations": [min(generations, default=None), max(generations, default=None)],
        "changes": sum(map(len, shop.changes.values())), "seconds": round(seconds), "tokens": tokens,
        "plain_strings": asked.invented(strings), "no_form": asked.invented(free), "log": str(work / "log"),
    }, indent=1))
    sys.exit(1 if asked.faults or len(held) < options.answers else 0)


if __name__ == "__main__":
    main()
