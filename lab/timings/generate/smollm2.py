#!/usr/bin/env python3
"""JSON, tool calls and code of SmolLM2-135M-Instruct through `palmette generate`, checked by foreign validators.

    python lab/timings/generate/smollm2.py --model /tmp/smollm2 --palmette target/release/palmette --out /tmp/generated

Writes `prompts.jsonl`, then `masked.jsonl` and `free.jsonl`: answers to the same prompts with the same seeds, with the mask and without.
JSON and the arguments of calls are checked by `jsonschema`, Python by `ast.parse`, queries by `lark`. Prints a Markdown table: the share of
valid answers, forced tokens, what masks cost; and tokens a second of processor time.

Answers come in runs of `--chunk`, each appended to what is there; a run that was broken off is gone on with.

With `--budget` and `--finish` answers get few tokens instead, `1.5x` the shortest answer's or `200`, under each of the rules: how many are valid, and
in how many every member says something (`says`).

An answer without a mask is also looked at with more patience: its first ``` block, or what is between the first { and the last }.
"""

import argparse
import ast
import json
import math
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import lark


def text(longest: int, **more) -> dict:
    return {"type": "string", "minLength": 1, "maxLength": longest, **more}


def record(**properties) -> dict:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def some(items: dict, most: int) -> dict:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most}


SCHEMAS = {
    "a person": record(
        name=text(30), age={"type": "integer", "minimum": 0, "maximum": 120}, email=text(40, pattern=r"^[a-z.]+@[a-z]+\.(com|org)$")
    ),
    "an order in a shop": record(
        id=text(8, pattern="^[A-Z]{2}-[0-9]{4}$"),
        lines=some(record(item=text(20), quantity={"type": "integer", "minimum": 1, "maximum": 9}), 3),
        express={"type": "boolean"},
    ),
    "an event": record(title=text(40), date={"type": "string", "format": "date"}, place=text(30), seats={"type": ["integer", "null"], "minimum": 1, "maximum": 5000}),
    "a recipe": record(name=text(30), minutes={"type": "integer", "minimum": 1, "maximum": 600}, ingredients=some(text(20), 5)),
    "a review of a book": record(book=text(40), stars={"type": "integer", "minimum": 1, "maximum": 5}, verdict={"enum": ["buy", "borrow", "skip"]}),
    "the weather of a day": record(
        city=text(20), sky={"enum": ["clear", "cloudy", "rain", "snow"]}, degrees={"type": "integer", "minimum": -40, "maximum": 50}
    ),
    "a ticket of a help desk": record(
        subject=text(40), priority={"enum": ["low", "normal", "high"]}, tags=some({"enum": ["billing", "login", "bug", "other"]}, 3)
    ),
    "a point on a map": record(
        name=text(30),
        at=record(latitude=text(6, pattern=r"^-?[0-9]{1,2}\.[0-9]{2}$"), longitude=text(7, pattern=r"^-?[0-9]{1,3}\.[0-9]{2}$")),
    ),
}

TOOLS = [
    ("get_weather", "Weather of a city now", record(city=text(20), unit={"enum": ["celsius", "fahrenheit"]})),
    ("send_message", "Send a short message to a person", record(to=text(20), body=text(80))),
    ("set_timer", "Start a timer", record(minutes={"type": "integer", "minimum": 1, "maximum": 240}, label=text(20))),
    ("find_route", "Route between two places", record(start=text(20), goal=text(20), by={"enum": ["car", "bike", "foot"]})),
]

WISHES = [
    "What is the weather in Oslo?",
    "Tell Anna that I will be late.",
    "Wake me in twenty minutes, the cake is in the oven.",
    "How do I get from Bonn to Cologne by bike?",
    "Is it raining in Lima? In degrees Celsius, please.",
    "Write to Tom: dinner at eight?",
    "Remind me of the tea in four minutes.",
    "I want to walk from the museum to the harbour.",
]

# Names are none of Python's keywords, and all parts are bounded, so that every text ends.
PYTHON = r"""
start: "def " NAME "(" [NAME (", " NAME) ~ 0..2] "):\n" line ~ 0..3 "    return " value "\n"
line: "    " NAME " = " value "\n" | "    if " term COMPARE term ":\n        return " value "\n"
value: term (OPERATOR term) ~ 0..3
term: NAME | NUMBER | NAME "(" [NAME (", " NAME) ~ 0..2] ")" | "(" NAME OPERATOR NAME ")"
COMPARE: " < " | " > " | " == " | " <= " | " != "
OPERATOR: " + " | " - " | " * " | " / " | " % "
NUMBER: /0|[1-9][0-9]{0,3}/
NAME: /(?!(False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield)\b)[a-z][a-z_0-9]{0,11}/
"""

FUNCTIONS = [
    "adds two numbers",
    "returns the larger of two numbers",
    "computes the area of a rectangle",
    "tells the remainder of a division",
    "returns the average of three numbers",
    "converts hours to minutes",
    "returns twice its argument if it is below a limit",
    "computes a price with tax",
]

QUERY = r"""
start: "SELECT " columns " FROM " NAME [" WHERE " test (JOIN test) ~ 0..2] [" ORDER BY " NAME [" DESC"]] [" LIMIT " NUMBER] ";"
columns: "*" | NAME (", " NAME) ~ 0..3 | "COUNT(*)"
test: NAME COMPARE (NUMBER | TEXT)
JOIN: " AND " | " OR "
COMPARE: " = " | " < " | " > " | " <> "
NUMBER: /[0-9]{1,6}/
TEXT: /'[A-Za-z0-9 ]{1,20}'/
NAME: /[a-z][a-z_]{0,15}/
"""

QUESTIONS = [
    "all customers from Paris",
    "the ten most expensive products",
    "the number of orders above 100",
    "names and ages of employees older than 40",
    "open invoices of the year 2026",
    "titles of books by an author named Smith",
    "cities with more than a million people",
    "users who never logged in",
]


def prompts(count: int) -> list[dict]:
    """A round of four JSON, three calls and three texts of code in ten; the seed is the number of the prompt."""
    made = []
    for number in range(count):
        kind = ["json", "python", "json", "tools", "query", "json", "tools", "json", "tools", "python" if number % 20 < 10 else "query"][number % 10]
        turn = number // 10
        line = {"id": f"{kind}-{number}", "seed": number, "max_tokens": 200}
        if kind == "json":
            names = list(SCHEMAS)
            name = names[(turn * 4 + number % 10 // 2) % len(names)]
            wish = f"Make up {name} and describe it as a JSON object with the members {', '.join(SCHEMAS[name]['properties'])}."
            made.append({**line, "guided_json": SCHEMAS[name], "messages": asked(wish)})
        elif kind == "tools":
            tools = [{"type": "function", "function": {"name": n, "description": d, "parameters": p}} for n, d, p in TOOLS]
            listed = "\n".join(f"{n}: {d}. Arguments: {', '.join(p['properties'])}" for n, d, p in TOOLS)
            system = f'You call tools. A call is <tool_call>\n{{"name": …, "arguments": {{…}}}}\n</tool_call>. There are:\n{listed}'
            wish = WISHES[(turn * 3 + number % 10 // 3) % len(WISHES)]
            made.append({**line, "tools": tools, "tool_choice": "required", "parallel_tool_calls": False, "messages": asked(wish, system)})
        elif kind == "python":
            wish = f"Write a Python function that {FUNCTIONS[turn % len(FUNCTIONS)]}. Write the code alone."
            made.append({**line, "guided_grammar": PYTHON.strip() + "\n", "messages": asked(wish)})
        else:
            wish = f"Write one SQL query for {QUESTIONS[turn % len(QUESTIONS)]}. Write the query alone."
            made.append({**line, "guided_grammar": QUERY.strip() + "\n", "messages": asked(wish)})
    return made


def asked(wish: str, system: str | None = None) -> list[dict]:
    first = [{"role": "system", "content": system}] if system else []
    return [*first, {"role": "user", "content": wish}]


def json_of(answer: str, schema: dict) -> None:
    jsonschema.validate(json.loads(answer), schema, format_checker=jsonschema.FormatChecker())


def call_of(answer: dict) -> None:
    [call] = answer["tool_calls"]
    schemas = {name: schema for name, _, schema in TOOLS}
    json_of(call["arguments"], schemas[call["name"]])


PARSERS = {"query": lark.Lark(QUERY), "python": lark.Lark(PYTHON)}


def check(prompt: dict, answer: dict, patient: bool) -> str | None:
    """The reason why an answer is not valid; `None` for one that is."""
    kind = prompt["id"].split("-")[0]
    written = answer["text"]
    if patient and kind != "tools":
        written = inner(written, kind)
    try:
        if kind == "json":
            json_of(written, prompt["guided_json"])
        elif kind == "tools":
            call_of(answer)
        elif kind == "python":
            body = ast.parse(written).body
            assert len(body) == 1 and isinstance(body[0], ast.FunctionDef), "no function alone"
        else:
            PARSERS["query"].parse(written)
    except Exception as error:  # noqa: BLE001: whatever the validator has against it
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return None


def inner(written: str, kind: str) -> str:
    block = re.search(r"```[a-z]*\n(.*?)```", written, re.DOTALL)
    if block:
        return block.group(1).strip() if kind != "python" else block.group(1)
    braces = re.search(r"\{.*\}", written, re.DOTALL)
    return braces.group(0) if kind == "json" and braces else written.strip()


def says(value, schema: dict) -> bool:
    """True where every member says something: lists have elements, and texts that the schema leaves open have three letters or digits."""
    if isinstance(value, dict):
        return all(says(member, schema["properties"][name]) for name, member in value.items())
    if isinstance(value, list):
        return bool(value) and all(says(element, schema["items"]) for element in value)
    is_open = isinstance(value, str) and not {"enum", "pattern", "format"} & schema.keys()
    return not is_open or sum(map(str.isalnum, value)) >= 3


def answer_says(prompt: dict, answer: dict) -> bool | None:
    """`says` of an answer or the arguments of its call; `None` for code."""
    match prompt["id"].split("-")[0]:
        case "json":
            return says(json.loads(answer["text"]), prompt["guided_json"])
        case "tools":
            [call] = answer["tool_calls"]
            return says(json.loads(call["arguments"]), {name: schema for name, _, schema in TOOLS}[call["name"]])
    return None


def answers_of(arguments: argparse.Namespace, name: str) -> list[dict]:
    path = arguments.out / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def runs_of(arguments: argparse.Namespace, name: str) -> list[dict]:
    """The runs that gave the answers: the first of each, the one after its last, processor time."""
    path = arguments.out / f"{name}.runs.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def command_of(arguments: argparse.Namespace, batch: Path, more: list[str]) -> list[str]:
    command = [arguments.palmette, "generate", "--model", arguments.model, "--batch", batch, "--weights", arguments.weights, "--quiet"]
    command += ["--whitespace", "spaced", "--tool-format", "hermes", "--temperature", "0.7", "--top-p", "0.95", *more]
    if arguments.threads:
        command += ["--threads", str(arguments.threads)]
    return [str(part) for part in command]


def shortest(arguments: argparse.Namespace, wanted: list[dict]) -> list[int]:
    """Tokens of the shortest answer to each prompt, which the refusal of one token names."""
    batch = arguments.out / "batch.jsonl"
    batch.write_text("".join(json.dumps(line | {"max_tokens": 1}) + "\n" for line in wanted))
    told = subprocess.run(command_of(arguments, batch, []), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    refusals = [json.loads(line)["error"] for line in told.splitlines()]
    return [int(re.search(r"shortest text of the grammar takes (\d+) tokens", refusal).group(1)) for refusal in refusals]


def within(wanted: list[dict], needed: list[int], budget: str) -> list[dict]:
    """The prompts with a budget of tokens: `1.5x` of the shortest answer's, or `200`."""
    times = float(budget[:-1]) if budget.endswith("x") else None
    tokens = [int(budget) if times is None else math.ceil(times * each) for each in needed]
    return [line | {"max_tokens": each} for line, each in zip(wanted, tokens)]


def run(arguments: argparse.Namespace, wanted: list[dict], name: str, more: list[str]) -> None:
    """Appends answers to prompts, after those of earlier runs."""
    first = len(answers_of(arguments, name))
    batch = arguments.out / "batch.jsonl"
    batch.write_text("".join(json.dumps(line) + "\n" for line in wanted[first:]))
    command = command_of(arguments, batch, more)
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with (arguments.out / f"{name}.jsonl").open("a") as out:
        subprocess.run(command, stdout=out, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    with (arguments.out / f"{name}.runs.jsonl").open("a") as runs:
        runs.write(json.dumps({"from": first, "to": len(wanted), "cpu_seconds": cpu}) + "\n")
    print(f"{name}: answers {first} to {len(wanted)} in {time.perf_counter() - started:.0f} s, {cpu:.0f} CPU-seconds", file=sys.stderr, flush=True)


def run_in_turns(arguments: argparse.Namespace, wanted: list[dict]) -> None:
    """Runs of `--chunk` answers, masked ones and free ones by `--free-share`, until all are there or the time is over."""
    wants = {"masked": len(wanted), "free": round(arguments.free_share * len(wanted))}
    names = [name for name in wants if arguments.only in (None, name)]
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        done = {name: len(answers_of(arguments, name)) for name in names}
        open_ones = [name for name in names if done[name] < wants[name]]
        if not open_ones:
            break
        name = min(open_ones, key=lambda name: done[name] / wants[name])
        to = min(done[name] + arguments.chunk, wants[name])
        run(arguments, wanted[:to], name, ["--no-mask"] if name == "free" else [])


def run_budgets(arguments: argparse.Namespace, wanted: list[dict]) -> bool:
    """Runs each budget under each rule, `--chunk` answers at a time, and prints the table; false where an answer is not valid."""
    needed, end = shortest(arguments, wanted), time.monotonic() + arguments.seconds
    kinds = {(budget, rule): within(wanted, needed, budget) for budget in arguments.budget for rule in arguments.finish}
    names = {kind: "-".join(kind) for kind in kinds}
    while time.monotonic() < end:
        done, kind = min((len(answers_of(arguments, names[kind])), place) for place, kind in enumerate(kinds))
        if done == len(wanted):
            break
        kind = list(kinds)[kind]
        run(arguments, kinds[kind][: done + arguments.chunk], names[kind], ["--finish", kind[1]])
    heads = ["tokens", "rule", "answers", "valid", "of JSON and calls", "all say something", "tokens an answer", "answers with steered tokens", "leaning tokens an answer"]
    print("|" + "|".join(heads) + "|\n|" + "|".join(["---"] * len(heads)) + "|")
    all_valid = True
    for (budget, rule), prompts in kinds.items():
        answers = answers_of(arguments, names[budget, rule])
        if not answers:
            continue
        pairs = list(zip(prompts, answers))
        bad = [(prompt["id"], reason) for prompt, answer in pairs if (reason := check(prompt, answer, patient=False))]
        if bad and rule != "cut":
            all_valid = False
            print(f"not valid within {budget}: {bad}", file=sys.stderr)
        invalid = {name for name, _ in bad}
        said = [answer_says(prompt, answer) if prompt["id"] not in invalid else False for prompt, answer in pairs]
        said = [each for (prompt, _), each in zip(pairs, said) if prompt["id"].split("-")[0] in ("json", "tools")]
        told = [answer.get("finish", {}) for answer in answers]
        steered = sum(each.get("steered", 0) > 0 for each in told)
        leaning = sum(each.get("leaning", 0) for each in told) / len(answers)
        tokens = sum(answer["usage"]["completion_tokens"] for answer in answers) / len(answers)
        cells = [budget, rule, len(answers), len(answers) - len(bad), len(said), f"{sum(said)} ({100 * sum(said) / max(len(said), 1):.0f} %)"]
        print("|" + "|".join(map(str, [*cells, f"{tokens:.1f}", steered, f"{leaning:.1f}"])) + "|")
    return all_valid


def is_whole(answer: dict) -> bool:
    """False of an answer that its most tokens cut off: a mask lets it go on to a valid one, and nobody does."""
    return answer["finish_reason"] != "length"


def row(title: str, wanted: list[dict], answers: list[dict]) -> tuple[list[str], list[tuple]]:
    reasons = [check(prompt, answer, patient=False) for prompt, answer in zip(wanted, answers)]
    patient = [check(prompt, answer, patient=True) for prompt, answer in zip(wanted, answers)]
    bad = [(prompt["id"], reason) for prompt, answer, reason in zip(wanted, answers, reasons) if reason and is_whole(answer)]

    def total(part: str, key: str) -> float:
        return sum(answer[part][key] for answer in answers)

    tokens, seconds = total("usage", "completion_tokens"), {key: total("seconds", key) for key in ["prompt", "passes", "masks", "choices"]}
    cells = [
        title,
        f"{len(answers):,}",
        f"{sum(is_whole(answer) for answer in answers):,}",
        f"{sum(reason is None for reason in reasons):,}",
        f"{sum(reason is None for reason in patient):,}",
        f"{tokens:,.0f}",
        f"{100 * total('usage', 'forced_tokens') / tokens:.1f} %",
        f"{100 * seconds['masks'] / sum(seconds.values()):.2f} %",
        f"{1e6 * seconds['masks'] / tokens:.0f}",
    ]
    return cells, bad


def speed(arguments: argparse.Namespace, name: str, answers: list[dict]) -> str:
    """Tokens a second of processor time over the runs whose time is known, prompts and loading the model included."""
    runs = [run for run in runs_of(arguments, name) if run["to"] <= len(answers)]
    tokens = sum(answer["usage"]["completion_tokens"] for run in runs for answer in answers[run["from"] : run["to"]])
    prompts = sum(answer["usage"]["prompt_tokens"] for run in runs for answer in answers[run["from"] : run["to"]])
    cpu = sum(run["cpu_seconds"] for run in runs)
    if not cpu:
        return f"{name}: no whole run"
    return f"{name}: {tokens:,} tokens after prompts of {prompts:,} in {cpu:,.0f} CPU-seconds, {tokens / cpu:.1f} a second, in {len(runs)} runs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--palmette", default="palmette")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--free-share", type=float, default=1.0, help="answers without a mask for each with one")
    parser.add_argument("--chunk", type=int, default=50, help="answers of a run; the model is loaded for each")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no run later; 0 for the tables alone")
    parser.add_argument("--weights", default="int8")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--only", choices=["masked", "free"])
    parser.add_argument("--budget", nargs="+", help="tokens of an answer: 1.5x the shortest's, or 200")
    parser.add_argument("--finish", nargs="+", default=["promised", "gentle"], choices=["promised", "gentle", "cut"], help="rules, with --budget")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    wanted = prompts(arguments.count)
    (arguments.out / "prompts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in wanted))
    if arguments.budget:
        sys.exit(0 if run_budgets(arguments, wanted) else 1)
    run_in_turns(arguments, wanted)
    heads = ["", "answers", "whole", "valid", "with patience", "tokens", "forced", "masks", "us a mask and token"]
    print("|" + "|".join(heads) + "|\n|" + "|".join(["---"] * len(heads)) + "|")
    failed, speeds = False, []
    for name in ["masked", "free"]:
        answers = answers_of(arguments, name)[: len(wanted)]
        assert [answer["id"] for answer in answers] == [prompt["id"] for prompt in wanted[: len(answers)]], "answers of other prompts: remove them"
        speeds.append(speed(arguments, name, answers))
        for kind in ["json", "tools", "python", "query", ""]:
            chosen = [(p, a) for p, a in zip(wanted, answers) if p["id"].startswith(kind)]
            if not chosen:
                continue
            title = f"{name}, {kind or 'all'}"
            cells, bad = row(title, *map(list, zip(*chosen)))
            print("|" + "|".join(cells) + "|")
            if name == "masked" and not kind and bad:
                failed = True
                print(f"\nwhole and not valid: {bad}", file=sys.stderr)
    print("\n" + "\n".join(speeds))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
