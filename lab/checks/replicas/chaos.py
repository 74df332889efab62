#!/usr/bin/env python3
"""Three servers over one log, while they are killed, paused and wiped: nothing acknowledged is lost or there twice.

    lab/checks/replicas/chaos.py --palmette target/release/palmette --log file:///tmp/log --kills 100
    lab/checks/replicas/chaos.py --palmette ... --log s3://palmette/chaos     # with AWS_ENDPOINT_URL and keys in the environment
    lab/checks/replicas/chaos.py --palmette ... --log postgres://localhost/palmette

Two writers send batches of 1 to 40 items, each with a key, to any of the servers, and repeat one that got no answer elsewhere. A reader asks
for recommendations all the time. Meanwhile a random server is killed (-9) and started again, `--kills` times; every tenth time one is
stopped for a while (SIGSTOP) and every fifteenth loses its directory. Then it is required that

- all servers are ready, at one generation, which is the number of batches;
- the answers to the writers name each generation once: every batch made one, and none made two;
- exports are equal to the byte, and so are the items of 500 requests with filters;
- the reader got nothing but answers, 503 and broken connections.

Seconds and counts are printed as one JSON line. Only processes that it started are ended."""

import argparse
import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time


class Server:
    def __init__(self, palmette, name, root, log, more):
        self.palmette, self.name, self.log_address, self.more = palmette, name, log, more
        self.data = os.path.join(root, name)
        self.log = open(os.path.join(root, f"{name}.log"), "ab")
        self.process = None
        self.port = None
        self.listen = "127.0.0.1:0"
        self.drain_delay = "0"

    def start(self, more=()):
        command = [self.palmette, "serve", "--shared-log", self.log_address, "--data-dir", self.data,
                   "--listen", self.listen, "--json", "--drain-delay", self.drain_delay, "--log", "warn",
                   "--streams", "1", "--threads", "1", *self.more, *more]
        self.port = None
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log)
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()

    def _read(self, process):
        line = process.stdout.readline()
        if line.startswith(b'{"listening"') and process is self.process:
            self.port = int(json.loads(line)["listening"].rsplit(":", 1)[1])

    def ask(self, method, path, body=None, headers=None, timeout=40):
        """Status and body; `None` where there is no answer."""
        port = self.port
        if port is None:
            return None
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def is_ready(self):
        answer = self.ask("GET", "/readyz", timeout=5)
        return answer is not None and answer[0] == 200

    def wait_ready(self, seconds=180):
        began = time.monotonic()
        while not self.is_ready():
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended with {self.process.returncode}: see {self.log.name}")
            if time.monotonic() - began > seconds:
                raise SystemExit(f"{self.name} is not ready: {self.ask('GET', '/healthz')}, see {self.log.name}")
            time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.port = None


def write(servers, number, stop, acknowledged, counts, seed):
    """Sends batches until it is told to stop; each is repeated until it is acknowledged."""
    rng = random.Random(seed)
    at = 0
    while not stop.is_set():
        key = f"w{number}-{at}"
        lines = []
        for item in range(rng.randint(1, 40)):
            name = f"{key}-{item}" if item == 0 else f"shared{rng.randrange(300)}"
            if item and rng.random() < 0.2:
                lines.append({"delete": name})
            else:
                lines.append({"item_id": name, "codes": [rng.randrange(8), rng.randrange(8), rng.randrange(8), 0],
                              "price": rng.choice([3, 4.5, 7.0, 19.9]), "stock": rng.randrange(3), "title": f"from {key}"})
        body = "\n".join(map(json.dumps, lines)).encode()
        while True:
            server = rng.choice(servers)
            began = time.monotonic()
            answer = server.ask("POST", "/v1/catalogs/shop/items", body, {
                "content-type": "application/x-ndjson", "idempotency-key": key})
            if answer is not None and answer[0] == 200:
                acknowledged.append((key, json.loads(answer[1])["generation"]))
                counts["append_ms"].append((time.monotonic() - began) * 1e3)
                break
            if answer is not None and answer[0] not in (503,):
                raise SystemExit(f"writer {number}: {answer}")
            counts["repeats"] += 1
            time.sleep(0.02)
        at += 1


def question(rng):
    history = [f"P{rng.randrange(1, 120):04d}" for _ in range(rng.randint(1, 8))]
    price = rng.choice([5, 15, 40, 80])
    filters = [{"must": [{"key": "price", "range": {"lt": price}}]},
               {"must_not": [{"key": "price", "range": {"gte": price}}]},
               {"should": [{"key": "price", "range": {"gte": price}}, {"exists": {"field": "stock"}}]}]
    return {"history": history, "k": rng.randint(1, 20), "beam_width": 32, "filter": rng.choice(filters),
            "fields": ["*"], "deadline_ms": 30000, "exclude_seen": rng.random() < 0.5}


def read(servers, stop, counts, failures, seed):
    rng = random.Random(seed)
    newest = {}
    while not stop.is_set():
        server = rng.choice(servers)
        answer = server.ask("POST", "/v1/recommend", json.dumps(question(rng)), {"content-type": "application/json"})
        counts["reads"] += 1
        if answer is None:
            counts["broken"] += 1
        elif answer[0] == 200:
            generation = json.loads(answer[1])["generation"]
            process = server.process
            if generation < newest.get(process, 0):
                failures.append(f"{server.name} went back from {newest[process]} to {generation}")
            newest[process] = max(generation, newest.get(process, 0))
        elif answer[0] not in (429, 503, 504):
            failures.append(f"{server.name}: {answer}")
        time.sleep(0.01)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--palmette", required=True)
    options.add_argument("--log", required=True, help="address of a log that has nothing so far")
    options.add_argument("--kills", type=int, default=70)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--every", type=float, default=1.0, help="seconds between kills, about")
    options.add_argument("--questions", type=int, default=500)
    options.add_argument("--base-entries", default="200")
    options.add_argument("--keep", action="store_true", help="leave the directory")
    given = options.parse_args()
    rng = random.Random(given.seed)
    root = tempfile.mkdtemp(prefix="palmette-chaos-")
    run = lambda *args: subprocess.run([given.palmette, *args], check=True, stdout=subprocess.DEVNULL)
    shop = os.path.join(root, "shop")
    run("demo", "--export", shop)
    run("catalog", "build", f"{shop}/items.jsonl", "--out", f"{shop}/shop.palm")
    more = ["--base-entries", given.base_entries]
    servers = [Server(given.palmette, name, root, given.log, more) for name in ("one", "two", "three")]
    began = time.monotonic()
    try:
        servers[0].start(["--model", f"shop={shop}/model", "--catalog", f"shop={shop}/shop.palm"])
        servers[0].wait_ready()
        for server in servers[1:]:
            server.start()
        for server in servers:
            server.wait_ready()
        stop, failures = threading.Event(), []
        counts = {"repeats": 0, "reads": 0, "broken": 0, "append_ms": []}
        acknowledged = [[], []]
        threads = [threading.Thread(target=write, args=(servers, n, stop, acknowledged[n], counts, given.seed * 10 + n)) for n in (0, 1)]
        threads.append(threading.Thread(target=read, args=(servers, stop, counts, failures, given.seed)))
        for thread in threads:
            thread.start()
        pauses = wipes = starts_killed = 0
        for kill in range(1, given.kills + 1):
            time.sleep(rng.uniform(0.2, 2 * given.every))
            server = rng.choice(servers)
            if kill % 10 == 0:
                paused = rng.choice([other for other in servers if other is not server])
                paused.process.send_signal(signal.SIGSTOP)
                time.sleep(rng.uniform(1, 6))
                paused.process.send_signal(signal.SIGCONT)
                pauses += 1
            starts_killed += server.port is None
            server.kill()
            if kill % 15 == 0:
                shutil.rmtree(server.data, ignore_errors=True)
                wipes += 1
            server.start()
            if all(other.port is None for other in servers):
                # One at least is to be asked.
                rng.choice(servers).wait_ready()
        stop.set()
        for thread in threads:
            thread.join()
        written = sorted(acknowledged[0] + acknowledged[1], key=lambda of: of[1])
        generations = [generation for _, generation in written]
        for server in servers:
            server.wait_ready()
        last = generations[-1]
        until = time.monotonic() + 60
        status = lambda server: json.loads(server.ask("GET", "/v1/catalogs/shop")[1])
        while any(status(server)["generation"] < last for server in servers):
            assert time.monotonic() < until, [status(server) for server in servers]
            time.sleep(0.05)
        assert [status(server)["generation"] for server in servers] == [last] * 3
        assert generations == list(range(1, len(written) + 1)), "a batch was lost, or there twice"
        assert len({key for key, _ in written}) == len(written)
        exports = [hashlib.sha256(server.ask("GET", "/v1/catalogs/shop/export", timeout=120)[1]).hexdigest() for server in servers]
        assert len(set(exports)) == 1, exports
        # One at random, by its own item: what was acknowledged is there.
        for key, _ in rng.sample(written, min(200, len(written))):
            answer = servers[0].ask("GET", f"/v1/catalogs/shop/items/{key}-0")
            assert answer[0] == 200, (key, answer)
        short = 0
        for _ in range(given.questions):
            body = json.dumps({**question(rng), "generation": last})
            answers = []
            for server in servers:
                answer = server.ask("POST", "/v1/recommend", body, {"content-type": "application/json"})
                assert answer[0] == 200, answer
                text = answer[1]
                # The items as they stand in the body.
                begin = text.index(b'"items":')
                answers.append(text[begin:text.index(b'"shortfall"')])
            assert len(set(answers)) == 1, (body, answers)
            short += answers[0] == b'"items":[],'
        assert not failures, failures[:5]
        times = sorted(counts["append_ms"])
        print(json.dumps({
            "log": given.log.split("://")[0], "kills": given.kills, "killed_while_starting": starts_killed, "pauses": pauses, "wipes": wipes,
            "batches": len(written), "repeats": counts["repeats"], "lost": 0, "twice": 0, "reads": counts["reads"],
            "reads_broken": counts["broken"], "questions": given.questions, "questions_without_items": short,
            "append_ms_p50": round(times[len(times) // 2], 1), "append_ms_p99": round(times[len(times) * 99 // 100], 1),
            "seconds": round(time.monotonic() - began, 1)}))
    finally:
        for server in servers:
            if server.process is not None and server.process.poll() is None:
                server.process.send_signal(signal.SIGCONT)
                server.kill()
        if given.keep:
            print(root, file=sys.stderr)
        elif sys.exc_info()[0] is None:
            shutil.rmtree(root, ignore_errors=True)
        else:
            print(f"logs are in {root}", file=sys.stderr)


if __name__ == "__main__":
    main()
