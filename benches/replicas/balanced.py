#!/usr/bin/env python3
"""HAProxy before three servers of one log: a server that is killed under load costs no request beyond those that it held.

    benches/replicas/balanced.py --palmette target/release/palmette [--haproxy haproxy] [--kills 20] [--rate 40]

Clients ask by an open loop through the balancer, whose configuration is `haproxy.cfg` beside this file: it asks `/readyz`, and sends a
request that met a dead server, or got no answer, to another. A random server is killed (-9) every other second and started again. Counted are the
requests that failed, and those that were on the killed server at that moment (the balancer's own count); drains (SIGTERM) must cost
none at all. One JSON line is printed; the exit status is 1 where more failed than were held. Only processes that it started are
ended."""

import argparse
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from chaos import Server, question


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--palmette", required=True)
    options.add_argument("--haproxy", default="haproxy")
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--drains", type=int, default=5)
    options.add_argument("--rate", type=float, default=40.0)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    rng = random.Random(given.seed)
    root = tempfile.mkdtemp(prefix="palmette-balanced-")
    run = lambda *args: subprocess.run([given.palmette, *args], check=True, stdout=subprocess.DEVNULL)
    shop = os.path.join(root, "shop")
    run("demo", "--export", shop)
    run("catalog", "build", f"{shop}/items.jsonl", "--out", f"{shop}/shop.palm")
    log = f"file://{root}/log"
    servers = [Server(given.palmette, name, root, log, []) for name in ("one", "two", "three")]
    ports = {server.name: free_port() for server in servers}
    for server in servers:
        # The balancer knows the ports beforehand.
        server.listen, server.drain_delay = f"127.0.0.1:{ports[server.name]}", "3"
    front, stats = free_port(), os.path.join(root, "haproxy.sock")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "haproxy.cfg")) as file:
        text = file.read()
    for name, value in [("FRONT", f"127.0.0.1:{front}"), ("SOCKET", stats)] + [(f"SERVER_{n}", f"127.0.0.1:{ports[s.name]}") for n, s in enumerate(servers, 1)]:
        text = text.replace(f"@{name}@", value)
    config = os.path.join(root, "haproxy.cfg")
    with open(config, "w") as file:
        file.write(text)
    balancer = None
    try:
        first = ["--model", f"shop={shop}/model", "--catalog", f"shop={shop}/shop.palm"]
        servers[0].start(first)
        servers[0].wait_ready()
        for server in servers[1:]:
            server.start()
        for server in servers:
            server.wait_ready()
        balancer = subprocess.Popen([given.haproxy, "-db", "-f", config], stderr=open(os.path.join(root, "haproxy.log"), "w"))
        time.sleep(2)
        outcomes, lock, stop = {}, threading.Lock(), threading.Event()
        slow = []

        def ask(at, body):
            delay = at - time.monotonic()
            if delay > 0:
                time.sleep(delay)
            connection = http.client.HTTPConnection("127.0.0.1", front, timeout=60)
            try:
                connection.request("POST", "/v1/recommend", body, {"content-type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                outcome = answer.status
            except (OSError, http.client.HTTPException) as error:
                outcome = type(error).__name__
            finally:
                connection.close()
            with lock:
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                slow.append(time.monotonic() - at)

        def load():
            at = time.monotonic()
            while not stop.is_set():
                at += rng.expovariate(given.rate)
                body = json.dumps({**question(rng), "deadline_ms": 20000})
                threading.Thread(target=ask, args=(at, body), daemon=True).start()
                delay = at - time.monotonic()
                if delay > 0:
                    time.sleep(delay)

        loading = threading.Thread(target=load)
        loading.start()
        held = 0
        for turn in range(given.kills + given.drains):
            time.sleep(rng.uniform(1.5, 2.5))
            server = rng.choice(servers)
            if turn < given.kills:
                held += held_by(stats, server.name)
                server.kill()
            else:
                server.process.send_signal(signal.SIGTERM)
                server.process.wait()
            server.start()
            server.wait_ready()
        stop.set()
        loading.join()
        time.sleep(3)
        failed = {str(outcome): count for outcome, count in outcomes.items() if outcome != 200}
        slow.sort()
        print(json.dumps({"kills": given.kills, "drains": given.drains, "requests": sum(outcomes.values()), "failed": failed,
                          "held_when_killed": held, "seconds_p99": round(slow[len(slow) * 99 // 100], 3), "seconds_max": round(slow[-1], 3)}))
        if sum(failed.values()) > held:
            sys.exit(1)
    finally:
        for process in [server.process for server in servers] + [balancer]:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def held_by(path, name):
    """Requests that the balancer has on a server now."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(path)
        asking.sendall(b"show stat\n")
        text = b"".join(iter(lambda: asking.recv(65536), b"")).decode()
    head = text.splitlines()[0].lstrip("# ").split(",")
    for line in text.splitlines()[1:]:
        row = dict(zip(head, line.split(",")))
        if row.get("svname") == name:
            return int(row["scur"] or 0)
    return 0


if __name__ == "__main__":
    main()
