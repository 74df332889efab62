#!/usr/bin/env python3
"""An operator's day in minutes: mixed load while models are switched and the disk is full now and then.

    operate.py --palmette target/debug/palmette [--seconds 1500] [--full-seconds 75] [--every 300]

Starts `palmette serve` over the built-in shop as a live catalog on a small file system in memory (mount -t tmpfs: root), with
`--memory-mb 64`, and at once: clients that recommend and name no target; one that changes stock; one that asks batches of 200 requests of
1,000 items with all fields; one that loads models, points `next` and then the default at them, and takes the old ones away; and every
so often the disk is filled for a while and freed. Rules, of which each breach is a fault:

- whoever names no target is answered, always;
- a change is 200, or 503 while the disk is full; after it is freed changes are taken again within 10 s, without a restart;
- a change that was refused is not there afterwards, one that was answered is;
- while the disk is full /readyz says so with 200, and palmette_catalog_write_failed is 1;
- memory of the last half does not grow.

Memory is told by class: what the allocator has (private and anonymous), mapped files of catalogs and models, the program, and of the
first what the server says that it keeps (palmette_memory_bytes).

Where `prometheus` is found it scrapes the server with deploy/alerts.yaml, and PalmetteCannotWrite must have fired each time; else its rule is
followed by hand. Exit status 1 on any fault.
"""

import argparse
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--palmette", required=True)
    parser.add_argument("--seconds", type=float, default=1500)
    parser.add_argument("--every", type=float, default=300, help="seconds from one full disk to the next")
    parser.add_argument("--full-seconds", type=float, default=75)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--pause-ms", type=float, default=50, help="pause of a client after each answer")
    return parser.parse_args()


def resident(pid):
    """Resident bytes of a process by class, from its map of memory."""
    classes = {"allocated": 0, "files": 0, "program": 0}
    program = os.path.realpath(f"/proc/{pid}/exe")
    kind = "allocated"
    for line in open(f"/proc/{pid}/smaps"):
        parts = line.split()
        if "-" in parts[0] and not parts[0].endswith(":"):
            path = parts[5] if len(parts) > 5 else ""
            library = path == program or ".so" in path or path.startswith("[v")
            kind = "program" if library else "files" if path.startswith("/") else "allocated"
        elif parts[0] == "Rss:":
            classes[kind] += int(parts[1]) * 1024
    return classes


class Day:
    def __init__(self, options):
        self.options = options
        self.stop = threading.Event()
        self.faults = []
        self.counts = {}
        self.memory = []
        self.classes = []
        self.pid = 0
        self.failed = []
        self.alerts = []
        self.is_full = False
        self.freed = 0.0
        self.stock = {}
        self.port = 0

    def fault(self, text):
        self.faults.append(text)
        print("fault:", text, file=sys.stderr)

    def count(self, name, by=1):
        self.counts[name] = self.counts.get(name, 0) + by

    def ask(self, method, path, body=None, kind="application/json", timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            headers = {"content-type": kind} if body is not None else {}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def run(self, name, step):
        def loop():
            while not self.stop.is_set():
                try:
                    step()
                except Exception as error:  # noqa: BLE001: whatever it is, it is a fault of the day
                    self.fault(f"{name}: {error!r}")
                    self.stop.wait(1)
        thread = threading.Thread(target=loop, name=name)
        thread.start()
        return thread

    # What clients do.

    def recommend(self):
        history = [f"P{random.randrange(1, 4000):04}" for _ in range(random.randrange(1, 20))]
        status, text = self.ask("POST", "/v1/recommend", json.dumps({"history": history, "k": 10, "deadline_ms": 20000}))
        if status != 200:
            self.fault(f"recommend: {status} {text[:200]!r}")
        self.count("answers")
        self.stop.wait(self.options.pause_ms / 1e3)

    def change(self):
        item, stock = f"P{random.randrange(1, 4000):04}", random.randrange(10_000)
        lines = "".join(json.dumps({"item_id": item, "stock": stock, "note": "x" * 200 + str(n)}) + "\n" for n in range(20))
        was_full = self.is_full
        status, text = self.ask("POST", "/v1/catalogs/shop/items", lines, "application/x-ndjson")
        # Room that was there is used up before anything is refused.
        may_fail = was_full or self.is_full or time.monotonic() < self.freed + 10
        if status == 200:
            self.stock[item] = stock
            self.count("changes")
        elif status == 503 and may_fail:
            self.count("changes refused")
        else:
            self.fault(f"change: {status} {text[:200]!r}")
        if item in self.stock:
            status, text = self.ask("GET", f"/v1/catalogs/shop/items/{item}")
            there = json.loads(text)["attributes"]["stock"] if status == 200 else status
            if there != self.stock[item]:
                self.fault(f"{item} has stock {there}, the last change that was answered says {self.stock[item]}")
        self.stop.wait(0.1)

    def batch(self):
        requests = [{"history": [f"P{random.randrange(1, 4000):04}"]} for _ in range(200)]
        body = json.dumps({"defaults": {"k": 1000, "fields": ["*"]}, "requests": requests})
        status, text = self.ask("POST", "/v1/recommend/batch", body, timeout=600)
        results = json.loads(text)["results"] if status == 200 else []
        if status != 200 or [result["status"] for result in results] != [200] * 200:
            self.fault(f"batch: {status} {text[:200]!r}")
        self.count("batches")
        self.stop.wait(5)

    def switch(self):
        number = self.counts.get("switches", 0)
        name = f"m{number % 3}"
        steps = [
            ("POST", "/v1/models", {"name": name, "path": "demo"}, 201),
            ("PUT", "/v1/targets/next", {"model": name, "catalog": "shop"}, 200),
            ("POST", "/v1/targets", {"actions": [{"set": {"alias": "shop", "model": name, "catalog": "shop"}},
                                                 {"delete": {"alias": "next"}}]}, 200),
        ]
        for method, path, body, wanted in steps:
            status, text = self.ask(method, path, json.dumps(body))
            # The file of targets is on the disk that is full.
            if status == 503 and (self.is_full or time.monotonic() < self.freed + 10):
                self.count("switches refused")
                self.stop.wait(5)
                return
            if status != wanted:
                self.fault(f"{method} {path}: {status} {text[:200]!r}")
        models = json.loads(self.ask("GET", "/v1/models")[1])["models"]
        in_memory = [model["name"] for model in models if model["in_memory"]]
        if len(in_memory) > 3:
            self.fault(f"{in_memory} are in memory")
        for model in models:
            if model["name"] not in (name, "demo"):
                status, text = self.ask("DELETE", f"/v1/models/{model['name']}")
                if status != 204:
                    self.fault(f"DELETE {model['name']}: {status} {text[:200]!r}")
        self.count("switches")
        self.stop.wait(3)

    def watch(self):
        _, text = self.ask("GET", "/metrics")
        now = time.monotonic()
        classes = resident(self.pid)
        for line in text.decode().splitlines():
            if line.startswith("palmette_memory_bytes{"):
                classes["of it " + line.split('"')[1]] = float(line.split()[1])
            if line.startswith("process_resident_memory_bytes "):
                self.memory.append((now, float(line.split()[1])))
            if line.startswith("palmette_catalog_write_failed{"):
                self.failed.append((now, float(line.split()[1])))
        self.classes.append((now, classes))
        self.stop.wait(1)

    # What happens to the disk.

    def disk(self, folder):
        if self.stop.wait(self.options.every / 2):
            return
        with open(folder / "ballast", "wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 16)):
                    pass
            except OSError:
                pass
        self.is_full = True
        began = time.monotonic()
        self.stop.wait(self.options.full_seconds)
        status, ready = self.ask("GET", "/readyz")
        if status != 200 or b"cannot write" not in ready:
            self.fault(f"/readyz over a full disk: {status} {ready!r}")
        fired = self.firing(began)
        if not fired:
            self.fault("PalmetteCannotWrite did not fire")
        self.alerts.append(fired)
        (folder / "ballast").unlink()
        self.freed = time.monotonic()
        self.is_full = False
        while not self.stop.is_set() and (self.failed[-1][1] != 0 or self.ask("GET", "/readyz")[1] != b"ok"):
            if time.monotonic() > self.freed + 20:
                self.fault(f"20 s after there is room: {self.ask('GET', '/readyz')[1]!r}")
                break
            time.sleep(0.2)
        self.count("full disks")
        print(f"a full disk: {self.options.full_seconds:.0f} s, alert {fired}, "
              f"back {time.monotonic() - self.freed:.1f} s after it was freed", file=sys.stderr)
        self.stop.wait(self.options.every / 2)

    def firing(self, began):
        """Whether the alert fires: as Prometheus says, or by the rule, a gauge of 1 for half a minute."""
        if self.prometheus:
            connection = http.client.HTTPConnection("127.0.0.1", self.prometheus, timeout=10)
            connection.request("GET", "/api/v1/alerts")
            alerts = json.loads(connection.getresponse().read())["data"]["alerts"]
            names = sorted({f"{alert['labels']['alertname']} {alert['state']}" for alert in alerts})
            return "PalmetteCannotWrite firing" in names and names
        of_now = [value for at, value in self.failed if at > time.monotonic() - 30]
        return self.failed[0][0] < time.monotonic() - 30 and any(of_now) and "by the rule"


def start_prometheus(day, folder):
    day.prometheus = None
    if not shutil.which("prometheus"):
        return None
    day.prometheus = 9400 + os.getpid() % 500
    config = folder / "prometheus.yml"
    config.write_text(
        f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{ROOT / 'deploy/alerts.yaml'}]\n"
        f"scrape_configs:\n  - job_name: palmette\n    static_configs: [{{targets: ['127.0.0.1:{day.port}']}}]\n")
    return subprocess.Popen(
        ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}",
         f"--web.listen-address=127.0.0.1:{day.prometheus}", "--log.level=error"])


def slope(points):
    mean_t = sum(t for t, _ in points) / len(points)
    mean_m = sum(m for _, m in points) / len(points)
    spread = sum((t - mean_t) ** 2 for t, _ in points) or 1.0
    return sum((t - mean_t) * (m - mean_m) for t, m in points) / spread


def main():
    options = arguments()
    day = Day(options)
    palmette = str(pathlib.Path(options.palmette).resolve())
    work = pathlib.Path(tempfile.mkdtemp(prefix="operate-"))
    disk = work / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)], check=True)
    server = prometheus = None
    try:
        run = lambda *args: subprocess.run([palmette, *map(str, args)], check=True, stdout=subprocess.DEVNULL)  # noqa: E731
        run("demo", "--export", work / "shop")
        run("catalog", "build", work / "shop/items.jsonl", "--out", work / "shop.palm")
        run("catalog", "live", "init", disk / "live", "--from", work / "shop.palm", "--model", work / "shop/model")
        shutil.copytree(work / "shop/model", disk / "data/models/demo")
        log = open(work / "log", "w")
        server = subprocess.Popen(
            [palmette, "serve", "--catalog", f"shop={disk / 'live'}", "--model", f"demo={work / 'shop/model'}", "--data-dir", disk / "data",
             "--target", "shop=demo:shop", "--listen", "127.0.0.1:0", "--json", "--memory-mb", "64", "--answer-cache-mb", "16"],
            stdout=subprocess.PIPE, stderr=log, text=True)
        day.pid = server.pid
        day.port = int(json.loads(server.stdout.readline())["listening"].rsplit(":", 1)[1])
        prometheus = start_prometheus(day, work)
        threads = [day.run("watch", day.watch), day.run("change", day.change), day.run("batch", day.batch), day.run("switch", day.switch)]
        threads += [day.run("recommend", day.recommend) for _ in range(options.clients)]
        threads.append(day.run("disk", lambda: day.disk(disk)))
        end = time.monotonic() + options.seconds
        while time.monotonic() < end and len(day.faults) < 20 and server.poll() is None:
            time.sleep(0.5)
        day.stop.set()
        for thread in threads:
            thread.join()
        if server.poll() is not None:
            day.fault(f"the server ended: {server.returncode}")
        server.send_signal(signal.SIGTERM)
        if server.wait(90) != 0:
            day.fault(f"it ended with {server.returncode}")
        if "panicked" in (work / "log").read_text():
            day.fault("a panic in the log")
        run("catalog", "verify", disk / "live")
    finally:
        for process in (server, prometheus):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        subprocess.run(["umount", "-l", str(disk)], check=False)
    late = [point for point in day.memory if point[0] > day.memory[0][0] + options.seconds / 2]
    grows = slope(late) * 60 / 1e6
    if grows > 2:
        day.fault(f"memory grows by {grows:.2f} MB a minute")
    by_class = {}
    for name in day.classes[0][1]:
        points = [(at, classes[name]) for at, classes in day.classes]
        half = [point for point in points if point[0] > points[0][0] + options.seconds / 2]
        tenths = [points[len(points) * tenth // 10][1] for tenth in range(10)] + [points[-1][1]]
        by_class[name] = {"mb_by_tenths": [round(bytes / 1e6, 1) for bytes in tenths],
                          "slope_mb_a_minute": round(slope(half) * 60 / 1e6, 3)}
    print(json.dumps({
        "seconds": options.seconds, **day.counts, "alerts": day.alerts, "faults": day.faults[:10],
        "memory_mb": {"first": round(day.memory[0][1] / 1e6), "half": round(late[0][1] / 1e6), "last": round(late[-1][1] / 1e6),
                      "most": round(max(m for _, m in day.memory) / 1e6)},
        "slope_mb_a_minute": round(grows, 3), "by_class": by_class, "log": str(work / "log"),
    }, indent=1))
    sys.exit(1 if day.faults else 0)


main()
