#!/usr/bin/env python3
"""Tokens a second of `palmette serve --text` with several streams at once, and the share of time that masks take.

    palmette serve --text smol --listen 127.0.0.1:8080 &
    python streams.py --url http://127.0.0.1:8080 [--streams 1 4 8] [--tokens 128] [--rounds 3]

For each number of streams, and each of `free` (no constraint) and `schema` (a JSON Schema with free strings): so many requests at once,
each for exactly so many tokens (`schema`: until it is whole, at most so many), all of them streamed. Printed are tokens a second of all
streams together, the time to the first token, and of the metrics' differences: time in passes, in masks (on threads of their own), in
drawing tokens, and the time that the model stood still for want of a mask, each as a share of the wall time. Needs nothing but Python.
"""

import argparse
import http.client
import json
import threading
import time
import urllib.parse
import urllib.request

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 12}, "minItems": 8, "maxItems": 8},
        "ratings": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 100}, "minItems": 10, "maxItems": 10},
        "summary": {"type": "string", "minLength": 200},
    },
    "required": ["title", "tags", "ratings", "summary"],
    "additionalProperties": False,
}


def stages(url):
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    found = {}
    for line in lines:
        if line.startswith(("palmette_text_stage_seconds{", "palmette_text_passes_total{", "palmette_text_rows_total{")):
            name, value = line.rsplit(" ", 1)
            stage = name.split('stage="')[1].split('"')[0] if "stage=" in name else name.split("{")[0]
            found[stage] = found.get(stage, 0) + float(value)
    return found


def stream(url, kind, tokens, number, results):
    body = {
        "messages": [{"role": "user", "content": f"Write about the number {number} and a palm tree, as long as you can."}],
        "max_tokens": tokens,
        "temperature": 0.8,
        "seed": number,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if kind == "schema":
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    else:
        body["ignore_eos"] = True
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=600)
    began, first = time.monotonic(), None
    connection.request("POST", "/v1/chat/completions", json.dumps(body))
    answer = connection.getresponse()
    usage = None
    for line in answer:
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        if "error" in event:
            raise RuntimeError(event)
        if first is None and event["choices"] and event["choices"][0]["delta"].get("content"):
            first = time.monotonic() - began
        usage = event.get("usage") or usage
    results.append((usage["completion_tokens"], first, time.monotonic() - began))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print("| constraint | streams | tokens/s | first token, s | rows a pass | passes | masks | drawing | standing still |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind in ("free", "schema"):
        # Compiles the grammar, and finds its first masks.
        stream(arguments.url, kind, 8, 0, [])
        for streams in arguments.streams:
            best = None
            for turn in range(arguments.rounds):
                results, before, began = [], stages(arguments.url), time.monotonic()
                threads = [
                    threading.Thread(target=stream, args=(arguments.url, kind, arguments.tokens, 100 * turn + n, results))
                    for n in range(streams)
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                wall, after = time.monotonic() - began, stages(arguments.url)
                spent = {name: after[name] - before.get(name, 0) for name in after}
                rate = sum(tokens for tokens, _, _ in results) / wall
                if best is None or rate > best[0]:
                    best = (rate, sum(first for _, first, _ in results) / streams, wall, spent)
            rate, first, wall, spent = best
            rows = spent["palmette_text_rows_total"] / max(1, spent["palmette_text_passes_total"])
            shares = [f"{100 * spent[stage] / wall:.1f} %" for stage in ("pass", "mask", "choose", "stall")]
            print(f"| {kind} | {streams} | {rate:.1f} | {first:.2f} | {rows:.1f} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
