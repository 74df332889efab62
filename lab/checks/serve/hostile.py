#!/usr/bin/env python3
"""Hostile clients of a server, each against the rule that it must keep.

    lab/checks/serve/hostile.py --palmette target/release/palmette [--connections 10000] [--keys 10000] [--json]

Starts `palmette serve` over the built-in shop on a free port, with `--read-timeout 2` and, where the build has them, keys; runs the
cases one after the other, a client beside them asking for recommendations all the time; and ends the server. Python's
library is all that is needed. A case that breaks its rule is printed with what came, and the exit status is 1.

Rules that hold for all cases: the process lives, no answer has status 500 or above but 503 and 504, every error is a problem document, and the client beside
is answered. No absolute times are asserted but those that the server itself promises (`--read-timeout`), with room.
"""

import argparse
import gzip
import http.client
import json
import os
import resource
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

READ_TIMEOUT = 2
# Room for a busy machine on top of a promised time.
ROOM = 15
CASES = []


def case(of):
    CASES.append(of)
    return of


class Broken(Exception):
    """A rule that was not kept."""


def must(holds, what):
    if not holds:
        raise Broken(what)


class Server:
    def __init__(self, palmette, keys):
        self.dir = tempfile.TemporaryDirectory()
        at = self.dir.name
        run = lambda *args: subprocess.run([palmette, *args], check=True, stdout=subprocess.DEVNULL)
        run("demo", "--export", f"{at}/shop")
        run("catalog", "build", f"{at}/shop/items.jsonl", "--out", f"{at}/shop.palm")
        run("catalog", "live", "init", f"{at}/live", "--from", f"{at}/shop.palm", "--model", f"{at}/shop/model")
        args = [palmette, "serve", "--model", f"demo={at}/shop/model", "--catalog", f"shop={at}/live"]
        args += ["--listen", "127.0.0.1:0", "--json", "--read-timeout", str(READ_TIMEOUT), "--idle-timeout", str(READ_TIMEOUT), "--drain-delay", "0", "--log", "debug"]
        args += ["--data-dir", f"{at}/data", "--connections", "30000", "--max-upload-mb", "64"]
        self.key = None
        help_text = subprocess.run([palmette, "serve", "--help"], capture_output=True, text=True).stdout
        if keys and "--keys <" in help_text:
            self.key = "a-key-of-the-hostile-bench"
            import hashlib

            with open(f"{at}/keys", "w") as file:
                file.write(f"bench recommend,items,admin * {hashlib.sha256(self.key.encode()).hexdigest()}\n")
            args += ["--keys", f"{at}/keys"]
        self.log_path = f"{at}/log"
        self.log = open(self.log_path, "w")
        self.process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = ""
        while not line.rstrip().endswith("}"):
            part = self.process.stdout.readline()
            must(part, f"the server did not start: {open(self.log_path).read()}")
            line += part
        must("listening" in line, f"the server did not start: {line}")
        self.host, port = json.loads(line)["listening"].rsplit(":", 1)
        self.port = int(port)

    def connect(self, timeout=60):
        return socket.create_connection((self.host, self.port), timeout=timeout)

    def headers(self, more=None):
        headers = {"content-type": "application/json"}
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        headers.update(more or {})
        return headers

    def ask(self, body, path="/v1/recommend", method="POST", headers=None, timeout=120):
        """Status, headers and bytes of an answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            try:
                connection.request(method, path, body=body, headers=self.headers(headers))
            except (BrokenPipeError, ConnectionResetError):
                # A body that is too large is answered before it has been sent.
                pass
            answer = connection.getresponse()
            return answer.status, dict((k.lower(), v) for k, v in answer.getheaders()), answer.read()
        finally:
            connection.close()

    def refused(self, body, *statuses, path="/v1/recommend", headers=None, words=()):
        status, headers, text = self.ask(body, path=path, headers=headers)
        shown = body if len(body) < 100 else body[:100] + (b"..." if isinstance(body, bytes) else "...")
        must(status in statuses, f"{shown!r}: status {status}, not {statuses}: {text[:300]!r}")
        must(headers["content-type"] == "application/problem+json", f"{shown!r}: {headers['content-type']}")
        problem = json.loads(text)
        must(problem["status"] == status and problem["request_id"] == headers["x-request-id"], f"{shown!r}: {problem}")
        must(len(text) < 20_000, f"{shown!r}: an answer of {len(text)} bytes")
        for word in words:
            must(word in problem["detail"] + json.dumps(problem.get("errors", [])), f"{shown!r}: {problem} lacks {word!r}")
        return problem

    def metric(self, name, labels=""):
        _, _, text = self.ask(None, path="/metrics", method="GET")
        total = 0.0
        for line in text.decode().splitlines():
            if line.startswith(name) and labels in line and not line.startswith("#"):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def memory_mb(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))


class Beside(threading.Thread):
    """A client that asks all the time, and counts what it got."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.statuses, self.slowest, self.ends = server, {}, 0.0, False
        self.errors = []

    def run(self):
        number = 0
        while not self.ends:
            number += 1
            body = json.dumps({"history": [f"P{number % 3000 + 1:04}"], "k": 3, "beam_width": 8, "deadline_ms": 10000})
            began = time.monotonic()
            try:
                status, _, _ = self.server.ask(body)
                self.statuses[status] = self.statuses.get(status, 0) + 1
            except OSError as error:
                self.errors.append(repr(error))
            self.slowest = max(self.slowest, time.monotonic() - began)
            time.sleep(0.05)


def request(server, body, more="", length=None):
    key = f"Authorization: Bearer {server.key}\r\n" if server.key else ""
    length = "" if length is False else f"Content-Length: {len(body) if length is None else length}\r\n"
    head = f"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{key}{length}{more}\r\n"
    return head.encode() + body


def until_end(stream, timeout):
    """Bytes until the server closes; `None` where it does not in time."""
    got, end = b"", time.monotonic() + timeout
    while True:
        stream.settimeout(max(0.01, end - time.monotonic()))
        try:
            part = stream.recv(1 << 16)
        except (TimeoutError, socket.timeout):
            return None
        except OSError:
            return got
        if not part:
            return got
        got += part


@case
def slow_headers(server, _):
    """A byte a second, or none: closed by the read timeout."""
    beginnings = [b"", b"PRI * HT", b"GET /li", b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: "]
    streams = [server.connect() for _ in beginnings]
    dripping = server.connect()
    for stream, begin in zip(streams, beginnings):
        stream.sendall(begin)
    began = time.monotonic()
    text = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 10_000
    for byte in text:
        try:
            dripping.sendall(bytes([byte]))
        except OSError:
            break
        if select.select([dripping], [], [], 0.25)[0] and not dripping.recv(1 << 16):
            break
        must(time.monotonic() - began < READ_TIMEOUT + ROOM, "dripping headers are read for longer than the read timeout")
    for stream, begin in zip(streams, beginnings):
        must(until_end(stream, READ_TIMEOUT + ROOM) is not None, f"{begin!r} keeps its connection")
    idle = server.connect()
    idle.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
    must(until_end(idle, READ_TIMEOUT + ROOM), "an idle connection is kept for longer than the read timeout")


@case
def slow_bodies(server, _):
    """A byte a quarter of a second: 408."""
    streams = [server.connect() for _ in range(20)]
    for stream in streams:
        stream.sendall(request(server, b"", length=100_000))
    began = time.monotonic()
    left = list(streams)
    while left:
        must(time.monotonic() - began < READ_TIMEOUT + ROOM, "dripping bodies are read for longer than the read timeout")
        for stream in select.select(left, [], [], 0)[0]:
            got = stream.recv(1 << 16)
            must(got.startswith(b"HTTP/1.1 408"), f"a slow body got {got[:200]!r}")
            must(b"application/problem+json" in got, f"{got[:200]!r}")
            left.remove(stream)
        for stream in left:
            stream.sendall(b" ")
        time.sleep(0.25)


@case
def large_bodies(server, _):
    """100 MB, announced or in chunks: 413, and the memory stays."""
    before = server.memory_mb()
    for path in ["/v1/recommend", "/v1/recommend/batch", "/v1/targets"]:
        for more, piece in [(f"Content-Length: {100 << 20}", b" " * (1 << 20)), ("Transfer-Encoding: chunked", b"100000\r\n" + b" " * (1 << 20) + b"\r\n")]:
            stream = server.connect()
            key = f"Authorization: Bearer {server.key}\r\n" if server.key else ""
            stream.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{key}{more}\r\n\r\n".encode())
            sent = 0
            try:
                while sent < 100 and not select.select([stream], [], [], 0)[0]:
                    stream.sendall(piece)
                    sent += 1
                got = until_end(stream, READ_TIMEOUT + ROOM) or b""
            except OSError:
                got = until_end(stream, 1) or b""
            must(got.startswith(b"HTTP/1.1 413") or (not got and sent < 100), f"{path}, {more}: {sent} MB, {got[:200]!r}")
    # What the largest permitted bodies take while they are read.
    must(server.memory_mb() < before + 600, f"memory went from {before:.0f} to {server.memory_mb():.0f} MB")


@case
def chunk_bombs(server, _):
    """Chunks of 2^64 bytes, of one byte each, with endless extensions, and two lengths that contradict each other."""
    chunked = "Transfer-Encoding: chunked\r\n"
    for body in [b"ffffffffffffffff\r\n{", b"fffffffffffffffff\r\n{", b"-1\r\n{", b"1;" + b"a" * 200_000, b"zz\r\n{"]:
        stream = server.connect()
        try:
            stream.sendall(request(server, body, chunked, length=False))
        except OSError:
            pass
        got = until_end(stream, READ_TIMEOUT + ROOM)
        must(got is not None, f"{body[:20]!r} keeps its connection")
        must(not got or got[9:10] == b"4", f"{body[:20]!r}: {got[:200]!r}")
    text = json.dumps({"history": ["P0001"], "k": 2}).encode()
    stream = server.connect()
    stream.sendall(request(server, b"".join(b"1\r\n%c\r\n" % byte for byte in text) + b"0\r\n\r\n", chunked, length=False))
    got = until_end(stream, READ_TIMEOUT + ROOM) or b""
    must(got.startswith(b"HTTP/1.1 200"), f"chunks of one byte: {got[:200]!r}")
    # Request smuggling: two lengths.
    stream = server.connect()
    stream.sendall(request(server, b"0\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", chunked, length=5))
    got = until_end(stream, READ_TIMEOUT + ROOM) or b""
    must(got.count(b"HTTP/1.1") <= 1 or b"HTTP/1.1 200" not in got, f"two lengths: {got[:300]!r}")


@case
def headers_too_many(server, _):
    """Thousands of headers, a header of megabytes, a path of megabytes."""
    for head in [
        b"".join(b"x-%d: y\r\n" % n for n in range(10_000)),
        b"x-long: " + b"a" * (4 << 20) + b"\r\n",
    ]:
        stream = server.connect()
        try:
            stream.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n")
        except OSError:
            pass
        got = until_end(stream, READ_TIMEOUT + ROOM)
        must(got is not None and (not got or got[9:10] == b"4"), f"{head[:10]!r}: {got and got[:200]!r}")
    stream = server.connect()
    try:
        stream.sendall(b"GET /" + b"a" * (2 << 20) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    except OSError:
        pass
    got = until_end(stream, READ_TIMEOUT + ROOM)
    must(got is not None and (not got or got[9:10] == b"4"), f"a long path: {got and got[:200]!r}")


@case
def absurd_numbers(server, _):
    """Numbers that no request has: 422 with the place, or 400 where they are no JSON."""
    huge = ["9223372036854775808", "18446744073709551615", "18446744073709551616", "1e308", "-1", "0.5", "1e400", '"3"', "[]", "{}", "null"]
    for value in huge + ["0"]:
        for name in ["k", "beam_width", "min_beam_width", "deadline_ms"]:
            if value == "null" and name != "k":
                continue
            server.refused(f'{{"history": [], "{name}": {value}}}', 400, 422)
    for value in ["NaN", "Infinity", "-Infinity", "0x10", "1e", "01"]:
        server.refused(f'{{"k": {value}}}', 400, words=())
    for widths in ["[0]", "[]", "[1,2,3,4,5]", "[0,0,0,0]", "[18446744073709551615,1,1,1]", "[4096,4096,4096,4097]", "7"]:
        server.refused(f'{{"history": [], "widths": {widths}}}', 422)
    for filter in [
        '{"range": {"price": {"lt": 1e400}}}', '{"range": {"price": {"lt": NaN}}}', '{"range": {"prise": {"lt": 1}}}',
        '{"min_should": {"conditions": [], "min_count": 18446744073709551616}}', '{"must": 7}', "[]", "7", '""',
    ]:
        server.refused(f'{{"history": [], "filter": {filter}}}', 400, 422)
    for rules in ['{"at_most": [{"attribute": "brand", "items": 0}]}', '{"at_most": [{"attribute": "brand", "items": -1}]}', '{"boosts": 1e308}', "7"]:
        server.refused(f'{{"history": [], "rules": {rules}}}', 422)
    for codes in ["[99]", "[]", "[0,0,0,4294967296]", "[0,0,0,-1]", "[0,0,0,4294967295]", "{}"]:
        server.refused(f'{{"history": [{{"codes": {codes}}}], "unknown_items": "error"}}', 422)
    for generation in ["18446744073709551615", '"none"', "-1", "0.5", '"../../etc/passwd"']:
        server.refused(f'{{"history": [], "generation": {generation}}}', 410, 422)
    server.refused('{"history": [], "min_generation": 18446744073709551615, "deadline_ms": 200}', 504)
    for target in ["", "x", "demo:none", "none:shop", "a:b:c", "\\u0000", "../x", "x" * 100_000]:
        server.refused(f'{{"history": [], "target": "{target}"}}', 404, 422)


@case
def long_histories(server, _):
    """A million items; the most that are allowed; ids of a megabyte."""
    server.refused(json.dumps({"history": ["P1"] * 150_000}), 422, words=["150000"])
    server.refused('{"history": [' + "0," * 1_000_000 + "0]}", 413, 422)
    server.refused(json.dumps({"history": ["P1"] * 1_000_000}), 413)
    server.refused(json.dumps({"history": ["x" * 900_000], "unknown_items": "error"}), 422)
    status, _, text = server.ask(json.dumps({"history": ["P0001"] * 1000, "k": 3, "deadline_ms": 10000}))
    must(status == 200 and json.loads(text)["history"]["given"] == 1000, f"1,000 items: {status} {text[:200]!r}")
    status, _, text = server.ask(json.dumps({"history": [], "exclude": ["P%d" % n for n in range(100_000)], "deadline_ms": 10000}))
    must(status in (200, 413, 422, 429), f"100,000 exclusions: {status} {text[:200]!r}")


@case
def deep_nesting(server, _):
    """Brackets 10^5 deep, in every member that takes a structure, as objects and as lists."""
    deep = 100_000
    nested = ['{"must": ' * deep + '{"match": {"brand": "x"}}' + "}" * deep, '{"must_not": [' * deep + "]}" * deep, "[" * deep + "]" * deep]
    for value in nested:
        for member in ["filter", "rules", "history", "target", "fields", "generation", "no_such_member"]:
            server.refused(f'{{"{member}": {value}}}', 400, 422, 413)
        server.refused(value, 400, 422, 413)
        # Each request of a batch has a status of its own.
        status, _, text = server.ask(f'{{"requests": [{value}]}}', path="/v1/recommend/batch")
        must(status == 200 and json.loads(text)["results"][0]["status"] in (400, 413, 422), f"in a batch: {status} {text[:200]!r}")
        server.refused(f'{{"defaults": {value}, "requests": []}}', 400, 413, 422, path="/v1/recommend/batch")
        server.refused(f'{{"actions": [{value}]}}', 400, 413, 422, path="/v1/targets")
    # As deep as is read, and wide: ends soon.
    for depth in [20, 60, 100, 127]:
        value = '{"must": [' * depth + '{"match": {"brand": "x"}}' + "]}" * depth
        status, _, text = server.ask(f'{{"history": [], "filter": {value}, "deadline_ms": 10000}}')
        must(status in (200, 400, 422, 429), f"depth {depth}: {status} {text[:200]!r}")
    wide = json.dumps({"history": [], "filter": {"should": [{"match": {"brand": f"b{n}"}} for n in range(20_000)]}, "deadline_ms": 10000})
    status, _, text = server.ask(wide)
    must(status in (200, 413, 422, 429, 504), f"20,000 alternatives: {status} {text[:200]!r}")


@case
def no_json(server, _):
    """Bad UTF-8, byte order marks, UTF-16, lone surrogates, duplicate members, trailing text, compression that is not read, other types."""
    for body in [
        b"", b" ", b"\xff\xfe", b'\xef\xbb\xbf{"k": 3}', '{"k": 3}'.encode("utf-16"), b'{"target": "\xff\xff"}', b'{"target": "\xc0\xaf"}',
        b'{"target": "\\ud800"}', b'{"k": 3} {"k": 3}', b'{"k": 3', b"{'k': 3}", b'{"k": 3,}', b'{"k": 3 /* x */}', b"null", b"7", b'"x"', b"[]",
        b"\x00" * 1000, b'{"history": ["\x01"]}', b'{"k": 3, "k": 4}', b'{"\\u006b": 3, "k": 4}', b'{"K": 3}', b'{"__proto__": {}}',
        gzip.compress(b'{"k": 3}'),
    ]:
        server.refused(body, 400, 422)
    for headers in [{"content-type": "text/plain"}, {"content-type": "application/xml"}, {"content-type": "\xff"}, {"content-type": "multipart/form-data; boundary=x"}]:
        server.refused('{"k": 3}', 415, headers=headers)
    for path in ["/v1/recommend/", "/v1//recommend", "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/v1/targets/%00", "/v1/none", "/" + "a" * 5000]:
        status, headers, text = server.ask(None, path=path, method="GET")
        must(status in (400, 404, 405), f"{path[:50]}: {status} {text[:200]!r}")
    for path in ["..", "/etc", "../../../etc", "a/../../b", "\\u0000", "x" * 5000, "."]:
        server.refused(f'{{"name": "m", "path": "{path}"}}', 409, 422, path="/v1/models")
    for method in ["TRACE", "PATCH", "BREW", "CONNECT", "OPTIONS"]:
        status, _, _ = server.ask(None, method=method)
        must(status in (400, 404, 405), f"{method}: {status}")
    # Sound ids only come back; nothing else goes into headers or the log.
    status, headers, _ = server.ask("{}", headers={"x-request-id": "a" * 5000})
    must(len(headers["x-request-id"]) < 65, "a long request id came back")


@case
def streams(server, _):
    """Lines that are no requests have problems in their places; the others are answered; a line without an end stops the stream."""
    lines = ["{}", "[", "7", '{"k": 1e400}', '{"history": ["P0001"], "k": 1}', "", "\x00", '{"filter": ' + "[" * 1000 + "]" * 1000 + "}"]
    status, headers, text = server.ask("\n".join(lines), path="/v1/recommend/stream", headers={"content-type": "application/x-ndjson"})
    results = [json.loads(line) for line in text.splitlines()]
    must(status == 200 and [r["status"] for r in results[:1] + results[4:5]] == [200, 200] and len(results) == 7, f"{status}, {[r['status'] for r in results]}")
    must(all(400 <= r["status"] < 500 for r in results[1:4] + results[5:]), f"{[r['status'] for r in results]}")
    status, _, text = server.ask(b" " * (3 << 20), path="/v1/recommend/stream", headers={"content-type": "application/x-ndjson"})
    must(json.loads(text.splitlines()[-1])["status"] == 413, f"a line of 3 MB: {text[:200]!r}")
    # Whoever takes no answers is not read either: the memory stays.
    before = server.memory_mb()
    stream = server.connect()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    key = f"Authorization: Bearer {server.key}\r\n" if server.key else ""
    stream.sendall(f"POST /v1/recommend/stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n{key}Transfer-Encoding: chunked\r\n\r\n".encode())
    stream.setblocking(False)
    line = b'{"history": ["P0001"], "k": 100, "fields": ["*"]}\n' * 100
    sent, end = 0, time.monotonic() + 4
    pending = b"%x\r\n" % len(line) + line + b"\r\n"
    buffer = pending
    while time.monotonic() < end:
        if not select.select([], [stream], [], 0.2)[1]:
            continue
        count = stream.send(buffer)
        sent += count
        buffer = buffer[count:] or pending
    must(sent < 64 << 20, f"{sent >> 20} MB of lines were read though nobody took the answers")
    must(server.memory_mb() < before + 200, f"memory went from {before:.0f} to {server.memory_mb():.0f} MB")
    stream.close()


@case
def uploads(server, _):
    """Sixty megabytes of lines that are no items, of requests that are none, and files that are no catalogs: refused within memory."""
    lines = {"content-type": "application/x-ndjson"}
    file = {"content-type": "application/octet-stream"}
    for line in [b"{}\n", b"\n", b"[\n", b'{"item_id":"x"}\n', b'{"delete":"x"}\n', b"\xff\n"]:
        server.refused(line * ((60 << 20) // len(line)), 413, 422, path="/v1/catalogs/shop/items", headers=lines)
    for body in [
        b'{"item_id": "x", "codes": [18446744073709551615]}', b'{"item_id": "x", "codes": [0, 0, 0, 64]}', b'{"item_id": "x", "codes": []}',
        b'{"item_id": "", "codes": [0, 0, 0, 0]}', b'{"item_id": "x", "codes": [0,0,0,0], "price": 1e400}', b'{"item_id": "P0001", "price": "a"}',
        b'{"item_id": "x", "codes": [0,0,0,0], "a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ]:
        server.refused(body, 422, path="/v1/catalogs/shop/items", headers=lines)
    server.refused(b'{"requests": [' + b"[]," * (20 << 20) + b"[]]}", 422, path="/v1/recommend/batch")
    put = lambda body, headers: server.ask(body, path="/v1/catalogs/hostile", method="PUT", headers=headers)
    for body, headers in [
        (b"PALMCAT" + os.urandom(1 << 20), file), (os.urandom(1 << 20), file), (b"", file), (b"\x00" * (10 << 20), file),
        (b'{"item_id": "x"}\n' * 1000, lines), (b"a,b\n1,2\n", {"content-type": "text/csv"}), (b"," * (10 << 20), {"content-type": "text/csv"}),
        (b'"' * (10 << 20), {"content-type": "text/csv"}), (gzip.compress(b" " * (1 << 30), 1), lines),
    ]:
        status, _, text = put(body, headers)
        must(status in (400, 413, 415, 422) and len(text) < 20_000, f"{body[:20]!r}, {headers}: {status} {text[:200]!r}")
    for name in ["..", "%2e%2e%2fx", ".hidden", "a%2fb", "x" * 300, "%00"]:
        status, _, text = server.ask(b"", path=f"/v1/catalogs/{name}", method="PUT", headers=file)
        must(400 <= status < 500, f"{name}: {status} {text[:200]!r}")
    with open(f"/proc/{server.process.pid}/status") as status:
        most = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    must(most < 2000, f"{most:.0f} MB at once")
    return f"kept; at most {most:.0f} MB at once"


@case
def wrong_keys(server, options):
    """Wrong keys: 401, each time the same body but for its id, and nothing of them in the log."""
    if not server.key:
        return "skipped: this build has no --keys"
    bodies, took = set(), []
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    for number in range(options.keys):
        wrong = [f"Bearer wrong-key-{number}", "Bearer ", "Basic YTpi", f"Bearer {server.key}x", f"Bearer {server.key[:-1]}", ""][number % 6]
        headers = {"x-request-id": "same"}
        if wrong:
            headers["authorization"] = wrong
        began = time.monotonic()
        connection.request("GET", "/v1/targets", headers=headers)
        answer = connection.getresponse()
        bodies.add(answer.read())
        took.append(time.monotonic() - began)
        must(answer.status == 401 and answer.getheader("www-authenticate", "").startswith("Bearer"), f"{wrong}: {answer.status}")
    must(len(bodies) == 1, f"{len(bodies)} bodies: {list(bodies)[:2]}")
    log = open(server.log_path).read()
    must("wrong-key" not in log and server.key not in log, "a key is in the log")
    took.sort()
    return f"{len(took)} refused, p50 {took[len(took) // 2] * 1e3:.2f} ms"


@case
def idle_connections(server, options):
    """Thousands of connections that ask once, or nothing: others are answered, all are closed in the end, files come back."""
    streams = []
    try:
        for number in range(options.connections):
            stream = server.connect()
            if number % 2:
                stream.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            streams.append(stream)
    except OSError as error:
        must(len(streams) > 100, f"{len(streams)} connections: {error}")
    most = server.memory_mb()
    status, _, _ = server.ask('{"history": ["P0001"], "k": 1, "deadline_ms": 10000}')
    must(status == 200, f"beside {len(streams)} idle connections: {status}")
    end = time.monotonic() + READ_TIMEOUT + 4 * ROOM
    open_files = lambda: len(os.listdir(f"/proc/{server.process.pid}/fd"))
    while open_files() > 100:
        must(time.monotonic() < end, f"{open_files()} files are still open")
        time.sleep(0.5)
    count = len(streams)
    for stream in streams:
        stream.close()
    return f"{count} connections, {most:.0f} MB"


@case
def clients_that_leave(server, _):
    """Requests whose clients go away: their work stops, and does not hold up others."""
    def stages():
        return server.metric("palmette_recommend_stage_seconds_count", 'stage="decode"')

    body = lambda n: json.dumps({"history": [f"P{m + n:04}" for m in range(1, 31)], "k": 100, "beam_width": 4096, "deadline_ms": 30000}).encode()
    began = time.monotonic()
    status, _, text = server.ask(body(0))
    alone = time.monotonic() - began
    must(status == 200, f"the request alone: {status} {text[:200]!r}")
    # Each is sure to have begun or to be queued when its client leaves, and none is answered.
    before, count = stages(), 40
    for number in range(1, count + 1):
        stream = server.connect()
        stream.sendall(request(server, body(number)))
        time.sleep(0.02)
        stream.close()
    end = time.monotonic() + 60
    while server.metric("palmette_queue_requests") + server.metric("palmette_streams", 'state="busy"') > 1:
        must(time.monotonic() < end, "work goes on for clients that left")
        time.sleep(0.1)
    # The client beside answers some of its own; those that left would all have a width of 4,096.
    slow = server.metric("palmette_recommend_stage_seconds_count", 'stage="decode"') - before
    took = time.monotonic() - began - alone
    must(took < count * alone, f"{count} requests that were left took {took:.1f} s, {alone:.2f} s each alone")
    return f"{count} left, done after {took:.1f} s; {alone:.2f} s one alone; {slow:.0f} answers meanwhile"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--palmette", default="palmette", help="the command")
    parser.add_argument("--connections", type=int, default=10_000, help="idle connections at once")
    parser.add_argument("--keys", type=int, default=10_000, help="wrong keys")
    parser.add_argument("--only", help="run this case alone")
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < options.connections + 1000:
        options.connections = hard - 1000
        print(f"at most {hard} files: {options.connections} connections")
    server = Server(options.palmette, keys=options.keys > 0)
    failed = []
    print(f"| case | rule | result | memory, MB | slowest answer beside, s |\n|{' --- |' * 5}")
    for run in CASES:
        if options.only and run.__name__ != options.only:
            continue
        beside = Beside(server)
        beside.start()
        time.sleep(0.2)
        try:
            result = run(server, options) or "kept"
        except (Broken, OSError, http.client.HTTPException, ValueError, KeyError, IndexError) as error:
            result = f"BROKEN: {type(error).__name__}: {error}"
        beside.ends = True
        beside.join(60)
        others = {status: n for status, n in beside.statuses.items() if status != 200}
        if server.process.poll() is not None:
            result = f"BROKEN: the server ended with {server.process.returncode}; {result}"
        elif others or beside.errors or not beside.statuses:
            result += f"; BROKEN: beside it {beside.statuses} {beside.errors[:2]}"
        if "BROKEN" in result:
            failed.append(run.__name__)
        memory = server.memory_mb() if server.process.poll() is None else 0
        rule = run.__doc__.splitlines()[0]
        print(f"| {run.__name__.replace('_', ' ')} | {rule} | {result} | {memory:.0f} | {beside.slowest:.2f} |", flush=True)
        if server.process.poll() is not None:
            break
    if server.process.poll() is None:
        internal = server.metric("palmette_http_requests_total", 'status="500"')
        if internal:
            failed.append(f"{internal:.0f} answers had status 500")
        server.process.terminate()
        try:
            code = server.process.wait(60)
        except subprocess.TimeoutExpired:
            server.process.kill()
            code = "a kill"
        if code != 0:
            failed.append(f"SIGTERM ended the server with {code}")
    log = open(server.log_path).read()
    if "panicked" in log:
        failed.append("a panic in the log: " + log[log.index("panicked") - 200 :][:600])
    if failed:
        sys.exit("rules that were broken: " + "; ".join(failed))


if __name__ == "__main__":
    main()
