#!/usr/bin/env python3
"""Processor seconds of a recommendation on every surface: the command, the server, Python (which goes through the Rust facade).

    surfaces.py --palmette PROGRAM [--python PYTHON] [--requests 60] [--beams 128,512]

The same histories of the built-in shop, ten items each, on one thread: `recommend --histories` less the same with one history,
`serve` by its process's times between the first and the last answer, and `Recommender.recommend` by `process_time`. `--python` is an
interpreter with the package; without it that row is left out, and said. The rows of one beam differ by what a surface adds: they should
be within a tenth of the best. Prints milliseconds of processor time a request.
"""

import argparse
import http.client
import json
import os
import pathlib
import resource
import signal
import subprocess
import tempfile

IN_PYTHON = """
import json, sys, time
from palmette import Catalog, Recommender
model, catalog, histories, beam = sys.argv[1:]
recommender = Recommender(model, Catalog.open(catalog))
histories = json.load(open(histories))
for history in histories[:5]:
    recommender.recommend(history, beam_width=int(beam))
began = time.process_time()
for history in histories:
    recommender.recommend(history, beam_width=int(beam))
print(time.process_time() - began)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--palmette", required=True, type=pathlib.Path)
    parser.add_argument("--python")
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--beams", default="128,512")
    options = parser.parse_args()
    palmette = options.palmette.absolute()
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)

        def run(*words):
            subprocess.run([palmette, *map(str, words)], check=True, capture_output=True)

        run("demo", "--export", work / "shop")
        run("catalog", "build", work / "shop/items.jsonl", "--out", work / "shop.palm")
        histories = list(json.loads((work / "shop/histories.json").read_text()).values())[: options.requests]
        histories = [history[-10:] for history in histories]
        (work / "histories.json").write_text(json.dumps(histories))
        for beam in options.beams.split(","):
            rows = {"command": by_command(palmette, work, histories, beam), "server": by_server(palmette, work, histories, int(beam))}
            if options.python:
                words = [work / "shop/model", work / "shop.palm", work / "histories.json", beam]
                done = subprocess.run([options.python, "-c", IN_PYTHON, *map(str, words)], check=True, capture_output=True, text=True)
                rows["Python"] = float(done.stdout)
            else:
                print("Python: left out, give --python")
            best = min(rows.values())
            for name, seconds in rows.items():
                print(f"beam {beam}: {name:8} {seconds / len(histories) * 1e3:7.2f} ms a request, {seconds / best:.2f}x")


def by_command(palmette, work, histories, beam):
    """Processor seconds of all histories, less those of a run over one."""

    def seconds(some):
        (work / "in.jsonl").write_text("".join(json.dumps({"items": history}) + "\n" for history in some))
        words = ["recommend", "--model", work / "shop/model", "--catalog", work / "shop.palm", "--threads", "1", "--beam-width", beam]
        words += ["--histories", work / "in.jsonl", "--out", work / "out.jsonl"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([palmette, *map(str, words)], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    once = min(seconds(histories[:1]) for _ in range(3))
    return (seconds(histories) - once) * len(histories) / (len(histories) - 1)


def by_server(palmette, work, histories, beam):
    words = ["serve", "--model", work / "shop/model", "--catalog", work / "shop.palm", "--listen", "127.0.0.1:0", "--json"]
    words += ["--answer-cache-mb", "0", "--threads", "1"]
    server = subprocess.Popen([palmette, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = int(json.loads(server.stdout.readline())["listening"].rsplit(":", 1)[1])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def ask(history):
            body = json.dumps({"history": history, "beam_width": beam, "deadline_ms": 20_000})
            connection.request("POST", "/v1/recommend", body, {"content-type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            response.read()

        def seconds():
            fields = pathlib.Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        for history in histories[:5]:
            ask(history)
        before = seconds()
        for history in histories:
            ask(history)
        return seconds() - before
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


if __name__ == "__main__":
    main()
