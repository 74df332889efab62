"""Runs grammar engines over the same cases and puts them into one table.

Each engine is a command that prints a JSON line for each case (`llguidance`, `glrmask`, `xgrammar_worker.py`,
`palmette bench grammar --lines`). A case that takes longer than --seconds ends that engine's process; it
counts as not compiled, and the engine goes on behind it. README.md says how to run it.
"""

import argparse
import json
import math
import queue
import shlex
import subprocess
import sys
import threading


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--engine", action="append", required=True, metavar="NAME=COMMAND",
                        help="the command without --cases and --skip")
    parser.add_argument("--seconds", type=float, default=60, help="for one case")
    parser.add_argument("--out", required=True, help="the summary, as JSON")
    parser.add_argument("--lines", help="folder for each engine's lines")
    args = parser.parse_args()

    cases = [json.loads(line) for line in open(args.cases)]
    summaries = {}
    for spec in args.engine:
        name, command = spec.split("=", 1)
        lines = run(name, shlex.split(command), args.cases, cases, args.seconds)
        if args.lines:
            with open(f"{args.lines}/{name}.jsonl", "w") as out:
                out.writelines(json.dumps(line) + "\n" for line in lines)
        summaries[name] = summary(lines)
        print(json.dumps({name: summaries[name]}), flush=True)
    json.dump(summaries, open(args.out, "w"), indent=1)
    print(table(summaries))


def run(name, command, path, cases, seconds):
    """The engine's line for each case, in order."""
    lines = []
    while len(lines) < len(cases):
        process = subprocess.Popen(command + ["--cases", path, "--skip", str(len(lines))],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        arrived = queue.Queue()
        threading.Thread(target=lambda: [*map(arrived.put, process.stdout), arrived.put(None)],
                         daemon=True).start()
        # Loading the vocabulary comes before the first case.
        wait = seconds + 60
        while True:
            try:
                line = arrived.get(timeout=wait)
            except queue.Empty:
                process.kill()
                lines.append(lost(cases[len(lines)], f"took more than {seconds} s"))
                break
            if line is None:
                if len(lines) < len(cases):
                    lines.append(lost(cases[len(lines)], f"the process ended, {process.wait()}"))
                break
            lines.append(json.loads(line))
            wait = seconds
            if sys.stderr.isatty():
                print(f"\r{name} {len(lines)}/{len(cases)}", end="", file=sys.stderr)
        process.wait()
    return lines


def lost(case, why):
    return {"name": case["name"], "compiled": False, "error": why, "compile_ms": math.nan, "texts": [],
            "mask_us_cold": [], "mask_us": [], "commit_us": [], "step_us": []}


def summary(lines):
    compiled = [line for line in lines if line["compiled"]]
    texts = [text for line in compiled for text in line["texts"]]
    column = lambda name: [value for line in compiled for value in line[name]]
    return {
        "schemas": len(lines),
        "compiled": len(compiled),
        "too_slow_or_crashed": sum(line["compile_ms"] != line["compile_ms"] for line in lines),
        "valid": sum(text["valid"] for text in texts),
        "valid_rejected": sum(text["valid"] and not text["accepted"] for text in texts),
        "schemas_with_valid_rejected": sum(
            any(text["valid"] and not text["accepted"] for text in line["texts"]) for line in compiled),
        "invalid": sum(not text["valid"] for text in texts),
        "invalid_accepted": sum(not text["valid"] and text["accepted"] for text in texts),
        "compile_ms": percentiles([line["compile_ms"] for line in compiled]),
        "mask_us_cold": percentiles(column("mask_us_cold")),
        "mask_us": percentiles(column("mask_us")),
        "commit_us": percentiles(column("commit_us")),
        "step_us": percentiles(column("step_us")),
    }


def percentiles(values):
    if not values:
        return None
    values = sorted(values)
    at = lambda share: round(values[min(len(values) - 1, math.ceil(share * len(values)) - 1)], 3)
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
    return {"count": len(values), "mean": round(sum(values) / len(values), 3),
            **{name: at(share) for name, share in shares.items()}, "max": round(values[-1], 3)}


def table(summaries):
    rows = [["engine", "compiled", "valid rejected", "invalid accepted", "compile ms p50 / p99 / max",
             "mask us p50 / p99 / p99.9 / max", "first walk p50 / p99.9 / max", "commit us p50 / p99.9"]]
    for name, s in summaries.items():
        pick = lambda field, keys: " / ".join(f"{s[field][key]:.3g}" if s[field] else "-" for key in keys)
        rows.append([name, f"{s['compiled']}/{s['schemas']}", f"{s['valid_rejected']}/{s['valid']}",
                     f"{s['invalid_accepted']}/{s['invalid']}", pick("compile_ms", ["p50", "p99", "max"]),
                     pick("mask_us", ["p50", "p99", "p999", "max"]),
                     pick("mask_us_cold", ["p50", "p999", "max"]), pick("commit_us", ["p50", "p999"])])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


if __name__ == "__main__":
    sys.exit(main())
