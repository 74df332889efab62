#!/usr/bin/env python3
"""Servers that end behind HAProxy: which requests are lost?

    balancer.py --palmette target/release/palmette [--haproxy haproxy] [--rate 15] [--shared-log] [--plain]

Starts three `palmette serve` on loopback over the built-in shop and HAProxy before them, by deploy/haproxy.cfg but for the
addresses. Clients ask at times that were drawn beforehand, on connections that stay. Meanwhile one server is drained by SIGTERM and
started again, all are, one after the other, and then each of some is killed and started again. For each phase: requests sent, answers
of ten items, others by status or failure, those that were being answered by anybody when a server was killed, and the slowest.
With `--shared-log` the servers follow one log in a directory, which the first brings model and catalog. `--plain` takes `retry-on` out of the configuration, to see what it is for: then what a killed server had is lost, and what was sent into
idle connections that it had. Exit status 1 where anything is lost with it.
"""

import argparse
import http.client
import json
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).parents[3]


class Server:
    """One `palmette serve`, which comes back at its address."""

    def __init__(self, options, folder, name):
        self.options, self.folder, self.name = options, folder, name
        self.address = "127.0.0.1:0"
        self.start()

    def start(self):
        files = ["--model", f"shop={self.folder}/shop/model", "--catalog", f"shop={self.folder}/shop.palm"]
        if self.options.shared_log:
            # Given where the log has none of the name: the first brings them, the others have them from it.
            files = files if self.name == "replica-1" else []
            files += ["--shared-log", f"file://{self.folder}/log", "--data-dir", f"{self.folder}/{self.name}"]
        limits = ["--streams", "1", "--threads", "1", "--drain-delay", str(self.options.drain_delay), "--answer-cache-mb", "0"]
        command = [self.options.palmette, "serve", *files, *limits, "--listen", self.address, "--json"]
        self.log = open(f"{self.folder}/{self.name}.log", "a")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.address = json.loads(self.process.stdout.readline())["listening"]

    def end(self, how):
        self.process.send_signal(how)
        return self.process.wait(timeout=60)


def balancer(options, folder, servers):
    """HAProxy by the configuration that is shipped, with these servers at a free port."""
    text = (ROOT / "deploy/haproxy.cfg").read_text()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    text = text.replace("127.0.0.1:8000", address)
    for number, server in enumerate(servers, 1):
        text, found = re.subn(rf"(server replica-{number}) \S+", rf"\1 {server.address}", text)
        assert found == 2, "two backends name each server"
    if options.plain:
        text = re.sub(r"retry-on .*|option http-buffer-request", "", text)
    path = f"{folder}/haproxy.cfg"
    pathlib.Path(path).write_text(text)
    log = open(f"{folder}/haproxy.log", "w")
    process = subprocess.Popen([options.haproxy, "-db", "-f", path], stdout=log, stderr=log)
    return process, address


class Load:
    """Requests at drawn times by many clients; what became of each."""

    def __init__(self, options, address, histories):
        self.rate, self.histories, self.width = options.rate, histories, options.beam_width
        self.host, self.port = address.split(":")
        self.lock = threading.Lock()
        self.done = []  # (sent, seconds, status or name of the failure)
        self.random = random.Random(1)
        self.free = []
        self.stop = threading.Event()

    def ask(self, history):
        sent = time.monotonic()
        connection = self.take(sent)
        try:
            connection = connection or http.client.HTTPConnection(self.host, int(self.port), timeout=30)
            body = json.dumps({"history": history, "k": 10, "beam_width": self.width, "deadline_ms": 10_000})
            connection.request("POST", "/v1/recommend", body, {"content-type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            what = response.status
            if what == 200 and len(json.loads(answer)["items"]) != 10:
                what = "an answer of another length"
            if not response.will_close:
                with self.lock:
                    self.free.append((time.monotonic(), connection))
        except Exception as error:
            what = type(error).__name__
        with self.lock:
            self.done.append((sent, time.monotonic() - sent, what))

    def take(self, now):
        """A connection that HAProxy keeps still (`timeout http-keep-alive`): one that is being closed would lose the request."""
        with self.lock:
            while self.free:
                since, connection = self.free.pop()
                if now - since < 10:
                    return connection
                connection.close()
        return None

    def run(self):
        due = time.monotonic()
        while not self.stop.is_set():
            due += self.random.expovariate(self.rate)
            time.sleep(max(0.0, due - time.monotonic()))
            threading.Thread(target=self.ask, args=(self.random.choice(self.histories),), daemon=True).start()

    def between(self, start, end):
        with self.lock:
            return [one for one in self.done if start <= one[0] < end]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--palmette", required=True)
    parser.add_argument("--haproxy", default="haproxy")
    parser.add_argument("--rate", type=float, default=15)
    parser.add_argument("--beam-width", type=int, default=32)
    parser.add_argument("--drain-delay", type=float, default=5)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--shared-log", action="store_true")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--keep-log", help="where HAProxy's log goes")
    options = parser.parse_args()
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        run = lambda *command: subprocess.run([options.palmette, *command], cwd=folder, check=True, capture_output=True)
        run("demo", "--export", "shop")
        run("catalog", "build", "shop/items.jsonl", "--out", "shop.palm")
        histories = list(json.loads(pathlib.Path(folder, "shop/histories.json").read_text()).values())
        servers = [Server(options, folder, f"replica-{number}") for number in (1, 2, 3)]
        proxy, address = balancer(options, folder, servers)
        load = Load(options, address, histories)
        try:
            time.sleep(3)
            assert proxy.poll() is None, pathlib.Path(folder, "haproxy.log").read_text()
            threading.Thread(target=load.run, daemon=True).start()
            marks = []
            killed = []

            def phase(name, act):
                start = time.monotonic()
                act()
                time.sleep(4)
                marks.append((name, start, time.monotonic()))

            def drain(server):
                status = server.end(signal.SIGTERM)
                if status != 0:
                    faults.append(f"a drained server ended with {status}")
                time.sleep(2)
                server.start()
                # As long as HAProxy takes to see it.
                time.sleep(4)

            def kill(server):
                # Those that it will have were sent in this phase.
                time.sleep(2)
                killed.append(time.monotonic())
                server.end(signal.SIGKILL)
                time.sleep(2)
                server.start()

            phase("nothing ends", lambda: time.sleep(6))
            phase("one is drained and comes back", lambda: drain(servers[0]))
            phase("all are, one after the other", lambda: [drain(server) for server in servers])
            for number in range(options.kills):
                phase(f"one is killed and comes back ({number + 1})", lambda: kill(servers[number % 3]))
            load.stop.set()
            # The last have their deadline.
            time.sleep(12)
        finally:
            proxy.terminate()
            for server in servers:
                server.process.kill()
        log = pathlib.Path(folder, "haproxy.log").read_text()
        if options.keep_log:
            pathlib.Path(options.keep_log).write_text(log)
        print(f"{'phase':<36}{'sent':>6}{'answered':>10}{'refused':>9}{'lost':>6}{'at the kill':>13}{'slowest, s':>12}")
        for name, start, end in marks:
            done = load.between(start, end)
            # 429 is an answer: the fleet had no time for it.
            refused = sum(what == 429 for _, _, what in done)
            lost = [one for one in done if one[2] not in (200, 429)]
            moment = next((moment for moment in killed if start <= moment < end), None)
            held = [one for one in done if moment and one[0] <= moment <= one[0] + one[1]]
            slowest = max((seconds for _, seconds, _ in done), default=0)
            kinds = sorted({str(what) for _, _, what in lost})
            answered = len(done) - refused - len(lost)
            print(f"{name:<36}{len(done):>6}{answered:>10}{refused:>9}{len(lost):>6}{len(held) if moment else '':>13}{slowest:>12.2f}  {', '.join(kinds)}")
            if lost and not options.plain:
                faults.append(f"{name}: {len(lost)} lost")
        # Times and counters of a line: …/retries, `+` where another server was taken.
        again = re.findall(r" \d+/\d+/\d+/\d+/(\+?\d+) \d+/\d+ ", log)
        print(f"sent again by HAProxy: {sum(number.lstrip('+') != '0' for number in again)} of {len(again)}")
    for fault in faults:
        print("FAULT:", fault)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
