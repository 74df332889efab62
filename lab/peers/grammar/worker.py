"""Engines with an interface in Python over the cases that `palmette bench grammar` measures: a JSON line for each.

The same protocol as the programs beside this file: `--cases FILE --vocab FILE [--skip N] [--walks N]`. An engine is a class made of the
bytes of all tokens and the end's number: `compile` takes a JSON Schema as text or raises what it refuses, `size` tells bytes or None,
`start` begins a text; `fill` writes the mask, `allows` reads a token in it, `commit` takes one.
"""

import argparse
import base64
import json
import time


def main(engine_class, about):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--walks", type=int, default=3)
    args = parser.parse_args()

    vocabulary = json.load(open(args.vocab))
    tokens = [base64.b64decode(token) if token else b"" for token in vocabulary["tokens"]]
    engine = engine_class(tokens, vocabulary["end"])
    for line in list(open(args.cases))[args.skip :]:
        case = json.loads(line)
        print(json.dumps(walk(case, engine, vocabulary["end"], args.walks)), flush=True)


def walk(case, engine, end, walks):
    outcome = {"name": case["name"], "compiled": False, "compile_ms": 0.0, "texts": []}
    columns = {name: [] for name in ["mask_us_cold", "mask_us", "commit_us", "step_us"]}
    began = time.perf_counter()
    try:
        if case["kind"] != "json_schema":
            raise ValueError("Lark grammars are not read")
        compiled = engine.compile(case["grammar"])
    except Exception as error:  # noqa: BLE001: whatever it raises is the outcome
        outcome["error"] = str(error)[:300]
        compiled = None
    outcome["compile_ms"] = (time.perf_counter() - began) * 1e3
    if compiled is None:
        return outcome | columns
    outcome["compiled"] = True
    for text in case["texts"]:
        first = len(columns["mask_us"])
        for nth in range(walks):
            engine.start(compiled)
            accepted = True
            for step, token in enumerate(text["tokens"] + [end]):
                began = time.perf_counter()
                engine.fill()
                mask_us = (time.perf_counter() - began) * 1e6
                allowed = engine.allows(token)
                accepted = accepted and allowed
                began = time.perf_counter()
                committed = allowed and token != end and engine.commit(token)
                commit_us = (time.perf_counter() - began) * 1e6
                values = {"mask_us": mask_us, "commit_us": commit_us, "step_us": mask_us + commit_us}
                if nth == 0:
                    columns["mask_us_cold"].append(mask_us)
                for name, value in values.items():
                    if nth == 0:
                        columns[name].append(value)
                    else:
                        columns[name][first + step] = min(columns[name][first + step], value)
                if not committed:
                    accepted = accepted and token == end
                    break
        steps = len(columns["mask_us"]) - first
        outcome["texts"].append({"valid": text["valid"], "accepted": accepted, "steps": steps})
    size = engine.size(compiled)
    return outcome | columns | ({} if size is None else {"bytes": size})
