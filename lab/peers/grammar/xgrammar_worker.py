"""XGrammar over the cases that `palmette bench grammar` measures: a JSON line for each.

The same protocol as the programs beside this file: `--cases FILE --vocab FILE [--skip N] [--walks N]`.
"""

import argparse
import base64
import json
import sys
import time

import torch
import xgrammar


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--walks", type=int, default=3)
    args = parser.parse_args()

    torch.set_num_threads(1)
    vocabulary = json.load(open(args.vocab))
    end = vocabulary["end"]
    tokens = [base64.b64decode(token) if token else b"" for token in vocabulary["tokens"]]
    info = xgrammar.TokenizerInfo(
        tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[end]
    )
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    mask = xgrammar.allocate_token_bitmask(1, len(tokens))

    for line in list(open(args.cases))[args.skip :]:
        case = json.loads(line)
        print(json.dumps(walk(case, compiler, mask, end, args.walks)), flush=True)


def walk(case, compiler, mask, end, walks):
    outcome = {"name": case["name"], "compiled": False, "compile_ms": 0.0, "texts": []}
    columns = {name: [] for name in ["mask_us_cold", "mask_us", "commit_us", "step_us"]}
    began = time.perf_counter()
    try:
        if case["kind"] == "json_schema":
            # strict_mode would close objects and arrays that the schema leaves open.
            compiled = compiler.compile_json_schema(case["grammar"], strict_mode=False)
        else:
            raise ValueError("Lark grammars are not read")
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
            matcher = xgrammar.GrammarMatcher(compiled)
            accepted = True
            for step, token in enumerate(text["tokens"] + [end]):
                began = time.perf_counter()
                matcher.fill_next_token_bitmask(mask)
                mask_us = (time.perf_counter() - began) * 1e6
                word = int(mask[0, token // 32])
                allowed = bool(word >> (token % 32) & 1)
                accepted = accepted and allowed
                began = time.perf_counter()
                committed = allowed and token != end and matcher.accept_token(token)
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
    return outcome | columns | {"bytes": compiled.memory_size_bytes}


if __name__ == "__main__":
    sys.exit(main())
