#!/usr/bin/env python3
"""Texts that quote and texts that do not, with guesses by look-up or a draft model and without: the same answers, and how long they take.

    drafts.py --palmette target/release/palmette --text smol=DIR [--draft-model DIR] [--drafts 0,4,8] [--threads N] [--repeat 3]

Asks one server after the other for each number of guessed tokens, the likeliest tokens always, and again with the draft model. Prints a table: seconds of an answer and
passes of the model, ratios to no guesses, the share of guessed tokens that came true. Ends with status 1 where an answer differs.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
import urllib.request

PEOPLE = """Mireille Okonkwo leads the harbour office in Trondheim. Bartholomew Quist keeps the archive in Ljubljana. \
Anneliese Vanterpool repairs clocks in Valparaíso. Tiberius Hallgrimsson teaches navigation in Reykjavik."""
CODE = """def total_price(items, discount):
    total = 0
    for item in items:
        total = total + item.price * item.count
    if discount:
        total = total - total * discount
    return total
"""
PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 30}, "work": {"type": "string", "maxLength": 40},
                                           "city": {"type": "string", "maxLength": 20}}, "required": ["name", "work", "city"]}
PEOPLE_SCHEMA = {"type": "object", "properties": {"people": {"type": "array", "items": PERSON, "minItems": 4, "maxItems": 4}}, "required": ["people"]}
CASES = [
    ("people of a text as JSON", f"List name, work and city of each person.\n\n{PEOPLE}",
     {"response_format": {"type": "json_schema", "json_schema": {"name": "people", "schema": PEOPLE_SCHEMA}}}),
    ("code with a name changed", f"Write this again with `total` named `amount`.\n\n{CODE}", {}),
    ("a text said again", f"Repeat this text.\n\n{PEOPLE}", {}),
    ("a free answer", "Why is the sky blue?", {}),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--palmette", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--drafts", default="0,4,8")
    parser.add_argument("--draft-model")
    parser.add_argument("--threads", default="0")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=160)
    options = parser.parse_args()
    found = {}
    for drafts in options.drafts.split(","):
        found[drafts] = ask_all(options, drafts, [])
        if options.draft_model and drafts != "0":
            name = options.text.split("=")[0]
            found[drafts + " by the draft model too,"] = ask_all(options, drafts, ["--text-draft-model", f"{name}={options.draft_model}"])
    drafts, differ = list(found), False
    print("| text | tokens | " + " | ".join(f"{n} guessed" for n in drafts) + " |")
    print("|---|---|" + "---|" * len(drafts))
    for name, *_ in CASES:
        cells = []
        for n in drafts:
            first, this = found[drafts[0]][name], found[n][name]
            differ |= this["text"] != first["text"]
            cell = f"{this['seconds']:.2f} s, {this['passes']} passes"
            if n != drafts[0]:
                cell += f", {this['seconds'] / first['seconds']:.2f}, {this['hits']} of {this['drafted']} true"
            cells.append(cell)
        print(f"| {name} | {found[drafts[0]][name]['tokens']} | " + " | ".join(cells) + " |")
    sys.exit("answers differ" if differ else 0)


def ask_all(options, drafts, extra):
    command = [options.palmette, "serve", "--text", options.text, "--listen", "127.0.0.1:0", "--text-draft-tokens", drafts, *extra]
    if options.threads != "0":
        command += ["--threads", options.threads]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        url = None
        while url is None:
            line = server.stdout.readline()
            if not line:
                sys.exit("the server ended before it listened")
            address = re.search(r"http://[0-9.:]+", line)
            url = address and address.group()
        answers = {}
        for name, words, more in CASES:
            body = {"messages": [{"role": "user", "content": words}], "max_tokens": options.max_tokens, "temperature": 0, **more}
            took = []
            for _ in range(options.repeat + 1):
                before, began = counts(url), time.perf_counter()
                answer = post(url + "/v1/chat/completions", body)
                took.append(time.perf_counter() - began)
                after = counts(url)
            answers[name] = {
                "text": answer["choices"][0]["message"]["content"], "tokens": answer["usage"]["completion_tokens"],
                "seconds": statistics.median(took[1:]), **{key: int(after[key] - before[key]) for key in after},
            }
        return answers
    finally:
        server.terminate()
        server.wait(60)


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)


def counts(url):
    with urllib.request.urlopen(url + "/metrics") as answer:
        text = answer.read().decode()
    of = lambda pattern: sum(float(value) for value in re.findall(pattern + r" ([0-9.e+]+)$", text, re.M))  # noqa: E731
    return {"passes": of(r"palmette_text_passes_total\{[^}]*\}"), "drafted": of(r'palmette_text_tokens_total\{[^}]*kind="drafted"[^}]*\}'),
            "hits": of(r'palmette_text_tokens_total\{[^}]*kind="draft_hit"[^}]*\}')}


if __name__ == "__main__":
    main()
