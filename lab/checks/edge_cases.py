#!/usr/bin/env python3
"""Small inputs at the edges, a line each: what each of several builds of the command makes of them.

    lab/checks/edge_cases.py CASES PALMETTE [PALMETTE…] [--text-model DIR] [--python PYTHON…]

CASES is a folder with `catalog`, `grammar`, `server` and `python`, which are not part of this repository; a case whose file is not there
is said to be skipped. With two programs, the earlier first, the table is before and after; `--python` names an interpreter a program,
with the package installed. Servers listen on loopback alone. The status is 1 where the last program is not right everywhere.
"""
import argparse
import gzip
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("cases", type=pathlib.Path)
parser.add_argument("palmette", type=pathlib.Path, nargs="+")
parser.add_argument("--text-model", type=pathlib.Path)
parser.add_argument("--python", type=pathlib.Path, nargs="*", default=[])
parser.add_argument("--only", help="rows whose name has this text")
given = parser.parse_args()


class Run:
    """One program in a folder of its own, with the demonstration's shop in it."""

    def __init__(self, program, python, folder):
        self.program, self.python, self.folder = program.resolve(), python, pathlib.Path(folder)
        self.ok("demo", "--export", "shop")
        self.ok("catalog", "build", "shop/items.jsonl", "--out", "shop.palm")

    def __call__(self, *arguments, seconds=120):
        """Status, standard output and error stream of one command."""
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=seconds)
        return done.returncode, done.stdout, done.stderr

    def ok(self, *arguments, seconds=120):
        status, out, err = self(*arguments, seconds=seconds)
        if status:
            raise AssertionError(f"{' '.join(map(str, arguments))[:60]}: {last(err)}")
        return out

    def case(self, name):
        path = given.cases / name
        if not path.exists():
            raise FileNotFoundError(path)
        return path.resolve()

    def rows(self, catalog, query, *options):
        """Ids that a filter lists."""
        document = json.loads(self.ok("catalog", "filter", catalog, json.dumps(query), "--limit", "1000", "--json", *options))
        return [row["id"] for row in document["first"]]

    def live(self, name, items, *options):
        """A live catalog of a file."""
        self.ok("catalog", "build", self.case(items), "--out", f"{name}.palm", *options)
        self.ok("catalog", "live", "init", name, "--from", f"{name}.palm")
        return name


class Server:
    """A server on a free port of loopback, ended with its block."""

    def __init__(self, run, *options, wait=120):
        self.errors = tempfile.TemporaryFile("w+")
        command = [run.program, "serve", *map(str, options), "--listen", "127.0.0.1:0", "--drain-delay", "0"]
        self.process = subprocess.Popen(command, cwd=run.folder, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        line = self.process.stdout.readline()
        if "http://" not in line:
            self.process.wait(timeout=wait)
            self.errors.seek(0)
            raise AssertionError(f"the server did not start: {last(self.errors.read())}")
        self.port = int(line.rsplit(":", 1)[1].split("/")[0])
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ask(self, method, path, body=None, headers=None):
        """Status and answer; a body that is no text goes as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read().decode()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text


def last(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error")]
    return (errors or lines or [""])[0 if errors else -1][:140]


CASES = []


def case(name):
    def register(function):
        CASES.append((name, function))
        return function

    return register


# Each returns whether it is right, and what came out.


@case("catalog: fields within attributes, frozen and live")
def _(run):
    live, query = run.live("dotted", "catalog/dotted_live.jsonl"), {"match": {"variants.c": "red"}}
    frozen = run.rows("dotted.palm", query)
    try:
        return run.rows(live, query) == frozen == ["1", "2"], f"frozen {frozen}, live {run.rows(live, query)}"
    except AssertionError as error:
        return False, f"frozen {frozen}, live: {error}"


@case("catalog: expire by a number or a word")
def _(run):
    live, said = run.live("expire", "catalog/expire_number.jsonl"), []
    for arguments in (["expire", live, "--by", "price"], ["expire", live, "--by", "title", "--now", "z"], ["apply", live, os.devnull, "--expire-by", "price"]):
        status, _, err = run("catalog", "live", *arguments)
        said.append(f"{status}")
    left = len(run.rows(live, {"must": []}))
    return left == 2 and "0" not in said, f"statuses {', '.join(said)}; {left} of 2 items left"


@case("catalog: lines that end in CR alone")
def _(run):
    status, out, err = run("catalog", "build", run.case("catalog/cr_only.csv"), "--out", "cr.palm")
    return status != 0 or out.startswith("2 items"), (out.splitlines() or [last(err)])[0]


@case("catalog: quotes in tab-separated items and histories")
def _(run):
    run.ok("catalog", "build", run.case("catalog/quotes.tsv"), "--out", "quotes.palm")
    items = len(run.rows("quotes.palm", {"must": []}))
    run("recommend", "--model", "shop/model", "--catalog", "shop.palm", "--histories", run.case("catalog/quotes_histories.tsv"), "--out", "q.jsonl", "-k", "1")
    users = len((run.folder / "q.jsonl").read_text().splitlines())
    return (items, users) == (4, 3), f"{items} of 4 items, {users} of 3 users"


@case("catalog: floors of rows with the next item")
def _(run):
    text = run.ok("eval", "--model", "shop/model", "--catalog", "shop.palm", "--histories", run.case("catalog/rows_sliding.csv"), seconds=900)
    lines = [line for line in text.splitlines() if "item-item" in line or "item to item" in line]
    figures = [float(w) for line in lines for w in line.replace("%", "").split() if w.replace(".", "", 1).isdigit()]
    return bool(figures) and max(f for f in figures if f <= 1) < 0.6, "; ".join(" ".join(l.split()) for l in lines)[:140] or "no floor is printed"


@case("catalog: times, targets and events of histories by option")
def _(run):
    options = ["--model", "shop/model", "--catalog", "shop.palm", "--histories", run.case("catalog/times_date.csv"), "--out", "dates.jsonl", "-k", "1"]
    status, out, err = run("recommend", *options, "--time-column", "date")
    plain = run("recommend", *options)
    said = "date" in (plain[1] + plain[2]).replace("times_date", "").replace("dates.jsonl", "")
    return status == 0 and said, f"--time-column: {last(err) if status else 'taken'}; without: {'column said' if said else 'nothing said'}"


@case("catalog: a patch keeps an item's place")
def _(run):
    run.ok("catalog", "build", run.case("catalog/ties.jsonl"), "--codes-per-level", "64,64,64,64", "--out", "ties.palm")
    run.ok("catalog", "live", "init", "ties", "--from", "ties.palm", "--model", "shop/model")

    def order():
        out = run.ok("recommend", "--model", "shop/model", "--catalog", "ties", "--history", "", "-k", "8", "--force-ids", "--json")
        return [item["id"] for item in json.loads(out)["items"]]

    before = order()
    run.ok("catalog", "live", "apply", "ties", run.case("catalog/ties_patch.jsonl"))
    return before == order() and before[0] == "T0", f"{' '.join(before)} -> {' '.join(order())}"


@case("catalog: kinds of cells as declared")
def _(run):
    a = run("catalog", "build", run.case("catalog/csv_keyword_digits.csv"), "--column", "zip=keyword", "--out", "zip.palm")
    b = run("catalog", "build", run.case("catalog/csv_pandas_bool.csv"), "--column", "flag=boolean", "--out", "bool.palm")
    if a[0] or b[0]:
        return False, last(a[2] or b[2])
    rows = run.rows("zip.palm", {"match": {"zip": "01234"}}), run.rows("bool.palm", {"match": {"flag": True}})
    return rows == (["B"], ["A"]), str(rows)


@case("catalog: JSON in cells")
def _(run):
    run.ok("catalog", "build", run.case("catalog/cells_gorse.csv"), "--column", "labels=json", "--out", "gorse.palm")
    rows = run.rows("gorse.palm", {"match": {"labels.genre": "fiction"}})
    return rows == ["book1"], str(rows)


@case("catalog: options and gzip for the file of attributes")
def _(run):
    meta = run.folder / "meta.jsonl.gz"
    meta.write_bytes(gzip.compress(run.case("catalog/meta_amazon2023.jsonl").read_bytes()))
    for path in (run.case("catalog/meta_amazon2023.jsonl"), meta):
        run.ok("catalog", "build", run.case("catalog/meta_sids.json"), "--attributes", path, "--id-column", "parent_asin", "--leave-out", "images", "--out", "meta.palm")
    out = run.ok("catalog", "filter", "meta.palm", '{"must": []}', "--json")
    return "images" not in out and "leather" in out.lower(), out[:100]


@case("catalog: whole numbers that are dates")
def _(run):
    status, out, err = run("catalog", "build", run.case("catalog/date_digits.csv"), "--column", "released=timestamp", "--out", "dates.palm")
    return status != 0 or "released" in err, last(err) or "nothing said"


@case("catalog: kinds for a live catalog begun with nothing")
def _(run):
    run.ok("catalog", "live", "init", "nothing", "--model", "shop/model", "--column", "valid_to=timestamp", "--column", "tags=keywords")
    run.ok("catalog", "live", "apply", "nothing", run.case("catalog/live_from_nothing.jsonl"))
    (run.folder / "rules.json").write_text('{"valid": {"to": "valid_to"}}')
    status, out, err = run("recommend", "--model", "shop/model", "--catalog", "nothing", "--history", "", "-k", "1", "--rules", "rules.json")
    return status == 0, last(err) or "the rule is taken"


@case("catalog: nothing could be answered")
def _(run):
    out = run.folder / "o.jsonl"
    out.write_text("yesterday\n")
    status, _, err = run("recommend", "--model", "shop/model", "--catalog", "shop.palm", "--histories", run.case("catalog/amazon2018_one_line.json"), "--out", "o.jsonl")
    kept = out.read_text() == "yesterday\n"
    return status != 0 and kept, f"status {status}, earlier file {'kept' if kept else 'replaced'}: {last(err)[:90]}"


@case("catalog: times as text in histories")
def _(run):
    status, _, err = run("recommend", "--model", "shop/model", "--catalog", "shop.palm", "--histories", run.case("catalog/times_blank.jsonl"), "--out", "t.jsonl")
    return status == 0, last(err) if status else "taken"


@case("catalog: NumPy big-endian and in Fortran order")
def _(run):
    said = []
    for name in ("big_endian", "fortran"):
        status, out, err = run("catalog", "build", run.case(f"catalog/{name}.npy"), "--out", "n.palm")
        said.append(last(err) if status else out.splitlines()[0])
    return all(line.startswith("3 items") for line in said), "; ".join(said)


@case("catalog: filters of other engines")
def _(run):
    run.ok("catalog", "build", run.case("catalog/filters_items.jsonl"), "--out", "filters.palm")
    said = []
    for line in run.case("catalog/filters.jsonl").read_text().splitlines():
        try:
            said.append(run.rows("filters.palm", json.loads(line)["filter"]))
        except AssertionError as error:
            said.append(str(error).rsplit("error: ")[-1][:60])
    # The first: a missing attribute matches nothing, as the page says. The third: the item, or an error that names `title`.
    right = said[0] in (["3"], []) and said[1] == ["1", "2", "3", "4", "5"] and (said[2] == ["1"] or "title" in str(said[2]))
    return right, str(said)


@case("catalog: an empty file over a catalog")
def _(run):
    shutil.copy(run.folder / "shop.palm", run.folder / "kept.palm")
    status, out, err = run("catalog", "build", run.case("catalog/empty.jsonl"), "--out", "kept.palm")
    asked = run("catalog", "build", run.case("catalog/empty.jsonl"), "--out", "kept.palm", "--allow-empty")
    return status != 0 and asked[0] == 0, f"status {status}; --allow-empty: {asked[0]}"


def grammar_case(folder):
    def judge(run):
        opts = (folder / "opts").read_text().split() if (folder / "opts").exists() else []
        grammar = next(p for p in folder.iterdir() if p.name.startswith(("schema.", "grammar.")))
        start = time.monotonic()
        status, out, err = run("grammar", "check", grammar, *opts, seconds=300)
        took, wrong = time.monotonic() - start, []
        if folder.name == "json-required-not-allowed":
            return "b" in last(err) and "required" in last(err), last(err)
        if folder.name == "check-text-with-line-end":
            text = next(folder.glob("invalid*.txt"))
            _, out, _ = run("grammar", "check", grammar, *opts, "--text", text)
            return "no text is in the language" not in out, last(out)
        if folder.name == "tag-misspelt-member" and status and "at_least_one" in last(err):
            return True, last(err)
        if status and not out:
            return False, f"refused: {last(err)}"
        for text in sorted(folder.glob("*valid*.txt")):
            _, out, err = run("grammar", "check", grammar, *opts, "--text", text, seconds=300)
            if (": in the language" in out) != text.name.startswith("valid"):
                wrong.append(("forbids " if text.name.startswith("valid") else "allows ") + text.name)
        warned = "warning" in (out + err).lower()
        if folder.name == "lark-class-operations-silent" and (warned or not wrong):
            return True, "warned" if warned else "read"
        # A misspelt member may be refused or warned of by name.
        return not wrong and took < 1.5, ", ".join(wrong) or f"right, checked in {took:.2f} s"

    return judge


for folder in sorted((given.cases / "grammar").glob("*/")):
    CASES.append((f"grammar: {folder.name}", grammar_case(folder.resolve())))


def shop(run, *options):
    return Server(run, "--model", "demo=shop/model", "--catalog", "shop=live", *options)


def fresh_live(run):
    shutil.rmtree(run.folder / "live", ignore_errors=True)
    run.ok("catalog", "live", "init", "live", "--from", "shop.palm", "--model", "shop/model")


@case("server: a page of another origin, and names that lead here")
def _(run):
    fresh_live(run)
    with shop(run) as server:
        path, body = "/v1/catalogs/shop/items", '{"delete": "P0099"}\n'
        ndjson = {"Content-Type": "application/x-ndjson"}
        said = [
            server.ask("POST", path, body)[0],
            server.ask("POST", path, body, ndjson | {"Origin": "http://evil.example"})[0],
            server.ask("POST", path, body, ndjson | {"Host": "evil.example"})[0],
            server.ask("POST", path, body, ndjson)[0],
        ]
    return said == [415, 403, 403, 200], f"no type {said[0]}, Origin {said[1]}, Host {said[2]}, as documented {said[3]}"


@case("server: a second target")
def _(run):
    fresh_live(run)
    with shop(run) as server:
        before = server.ask("POST", "/v1/recommend", {"k": 1})[0]
        server.ask("PUT", "/v1/targets/next", {"model": "demo", "catalog": "shop"})
        after = server.ask("POST", "/v1/recommend", {"k": 1})[0]
    return (before, after) == (200, 200), f"{before} -> {after}"


@case("server: a disk that was full once")
def _(run):
    if os.geteuid() != 0:
        raise FileNotFoundError("a tmpfs needs root")
    with tempfile.TemporaryDirectory() as mount:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", mount], check=True)
        try:
            run.ok("catalog", "live", "init", f"{mount}/live", "--from", "shop.palm", "--model", "shop/model")
            with Server(run, "--model", "demo=shop/model", "--catalog", f"shop={mount}/live") as server:
                try:
                    with open(f"{mount}/ballast", "wb") as ballast:
                        ballast.write(bytes(9_000_000))
                except OSError:
                    pass
                lines = "".join(json.dumps({"item_id": f"P0{100 + i % 800}", "note": "x" * 60 + str(i)}) + "\n" for i in range(3000))
                ndjson = {"Content-Type": "application/x-ndjson"}
                full = server.ask("POST", "/v1/catalogs/shop/items", lines, ndjson)[0]
                ready = server.ask("GET", "/readyz")
                told = "write" in json.dumps(ready[1]).lower() or "write" in json.dumps(server.ask("GET", "/healthz")[1]).lower()
                os.remove(f"{mount}/ballast")
                time.sleep(1)
                freed = server.ask("POST", "/v1/catalogs/shop/items", '{"item_id": "P0005", "stock": 1}\n', ndjson)[0]
        finally:
            subprocess.run(["umount", mount], check=True)
    return full >= 500 and freed == 200 and told, f"full {full}, {'said' if told else 'not said'} by probes, freed {freed}"


@case("server: a key of one name twice")
def _(run):
    shutil.rmtree(run.folder / "twice", ignore_errors=True)
    (run.folder / "twice").unlink(missing_ok=True)
    for _ in range(2):
        run.ok("key", "web", "--add-to", "twice")
    fresh_live(run)
    with shop(run, "--keys", "twice"):
        return True, "serves with both"


@case("server: models that were loaded can be unloaded")
def _(run):
    fresh_live(run)
    shutil.copytree(run.folder / "shop/model", run.folder / "data/models/m2", dirs_exist_ok=True)
    with shop(run, "--data-dir", "data") as server:
        loaded = server.ask("POST", "/v1/models", {"name": "m2-1", "path": "m2"})[0]
        gone = server.ask("DELETE", "/v1/models/m2-1")[0]
    return loaded < 300 and gone < 300, f"load {loaded}, DELETE {gone}"


@case("server: OpenAPI with descriptions, unique ids, securitySchemes")
def _(run):
    fresh_live(run)
    with shop(run) as server:
        document = server.ask("GET", "/openapi.json")[1]
    operations = [o for methods in document["paths"].values() for o in methods.values() if isinstance(o, dict)]
    bare = sum("description" not in r for o in operations for r in o["responses"].values())
    ids = [o["operationId"] for o in operations]
    twice = len(ids) - len(set(ids))
    schemes = bool(document["components"].get("securitySchemes"))
    return not bare and not twice and schemes, f"{bare} answers without description, {twice} ids twice, securitySchemes: {schemes}"


@case("server: null, 3.0 and numbers as ids")
def _(run):
    fresh_live(run)
    bodies = [json.loads(line) for line in run.case("server/null-members.jsonl").read_text().splitlines()]
    with shop(run) as server:
        said = [server.ask("POST", "/v1/recommend", body)[0] for body in bodies]
        wrong = server.ask("POST", "/v1/recommend", {"k": "many"})
    plain = wrong[0] == 422 and "usize" not in json.dumps(wrong[1]) and "/k" in json.dumps(wrong[1])
    return set(said) == {200} and plain, f"{said}; a word as k: {wrong[0]}"


@case("server: memory of a batch's answers under --memory-mb 64")
def _(run):
    fresh_live(run)
    with shop(run, "--memory-mb", "64", "--answer-cache-mb", "0") as server:
        body = {"defaults": {"k": 1000, "fields": ["*"]}, "requests": [{"history": [f"P{i + 1:04}"]} for i in range(500)]}
        status = server.ask("POST", "/v1/recommend/batch", body)[0]
        with open(f"/proc/{server.process.pid}/status") as lines:
            peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024
    return peak < 300, f"{status}, {peak} MB at peak"


texts = {}


def text_server(run):
    if given.text_model is None:
        raise FileNotFoundError("needs --text-model")
    if run not in texts:
        texts[run] = Server(run, "--text", f"smol={given.text_model.resolve()}", "--tool-format", "smol=hermes")
    return texts[run]


def chat(run, name):
    lines = run.case(f"server/{name}").read_text().splitlines()
    bodies = [json.loads(line) for line in lines]
    for body in bodies:
        body.pop("why", None)
    server = text_server(run)
    return [server.ask("POST", "/v1/chat/completions", body) for body in bodies]


@case("server: forms that OpenAI's and vLLM's clients send")
def _(run):
    answers = chat(run, "openai-forms.jsonl")
    statuses = [status for status, _ in answers]
    return statuses[:4] == [200] * 4 and statuses[4] in (400, 422), str(statuses)


@case("server: a regex or Lark grammar without a text")
def _(run):
    statuses = [status for status, _ in chat(run, "empty-language.jsonl")]
    return set(statuses) <= {400, 422}, str(statuses)


@case("server: a tool without parameters; no thinking where the model has none")
def _(run):
    answers = chat(run, "tools.jsonl")
    calls = [answer["choices"][0]["message"] for _, answer in answers]
    arguments = [json.loads(c["function"]["arguments"]) for c in calls[0].get("tool_calls") or []]
    thought = any(message.get("reasoning_content") for message in calls)
    return arguments == [{}] and not thought and bool(calls[1].get("tool_calls")), f"arguments {arguments}, thinking {thought}"


@case("server: members in the schema's order")
def _(run):
    body = json.loads(run.case("server/field-order.json").read_text())
    first, server = [], text_server(run)
    for seed in range(10):
        content = server.ask("POST", "/v1/chat/completions", body | {"seed": seed})[1]["choices"][0]["message"]["content"]
        first.append(content.lstrip("{ \n\t").startswith('"reasoning"'))
    return all(first), f"{sum(first)} of 10 think first"


@case("server: plain pydantic schemas")
def _(run):
    person = {"title": "Person", "type": "object", "required": ["name", "age"], "properties": {
        "name": {"title": "Name", "type": "string", "maxLength": 20}, "age": {"title": "Age", "type": "integer", "minimum": 0, "maximum": 120}}}
    bad, server = 0, text_server(run)
    for seed in range(20):
        body = {"model": "smol", "seed": seed, "temperature": 0.7, "max_tokens": 200, "guided_json": person,
                "messages": [{"role": "user", "content": "Invent a person and tell me name and age."}]}
        content = server.ask("POST", "/v1/chat/completions", body)[1]["choices"][0]["message"]["content"]
        try:
            bad += set(json.loads(content)) != {"name", "age"}
        except ValueError:
            bad += 1
    return bad == 0, f"{bad} of 20 run away"


PYTHON = {
    "assisted.py": lambda out: "False" not in out,
    "dataloader_filter.py": lambda out: "[" in out,
    "fork_hangs.py": lambda out: "HANGS" not in out and out.count("ok") == 5,
    "pandas_missing.py": lambda out: "->" not in out and out.count("\n") >= 7,
}


def python_case(name, right):
    def judge(run):
        if run.python is None:
            raise FileNotFoundError("needs --python")
        done = subprocess.run([run.python, run.case(f"python/{name}")], cwd=run.folder, capture_output=True, text=True, timeout=600)
        # An exception by name is as good as a right answer where a call cannot be meant.
        return right(done.stdout) and (done.returncode == 0 or "Error" in done.stderr), last(done.stderr if done.returncode else done.stdout)

    return judge


for name, right in PYTHON.items():
    CASES.append((f"python: {name}", python_case(name, right)))


def main():
    wrong, skipped = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for i, program in enumerate(given.palmette):
            os.mkdir(f"{folder}/{i}")
            runs.append(Run(program, given.python[i].absolute() if i < len(given.python) else None, f"{folder}/{i}"))
        for name, judge in CASES:
            if given.only and given.only not in name:
                continue
            cells = []
            for run in runs:
                try:
                    right, said = judge(run)
                except FileNotFoundError as error:
                    right, said = None, f"SKIPPED: {error}"
                except Exception as error:  # One case that breaks does not hide the others.
                    right, said = False, f"{type(error).__name__}: {error}"
                cells.append(f"{'-' if right is None else 'right' if right else 'WRONG'} ({' '.join(str(said).split())[:150]})")
            wrong += right is False
            skipped += right is None
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        for server in texts.values():
            server.__exit__()
    print(f"{len(CASES) - wrong - skipped} right, {wrong} wrong, {skipped} skipped, by the last program", file=sys.stderr)
    sys.exit(wrong > 0)


main()
