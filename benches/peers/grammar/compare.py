"""Runs grammar engines over the same cases and puts them into one table.

Each engine is a command that prints a JSON line for each case (the programs of the folders here, `xgrammar_worker.py`,
`palmette bench grammar --lines`): named one by one with --engine, or found with --palmette, --peers and --xgrammar.
A case that takes longer than --seconds ends that engine's process; it counts as not compiled, and the engine goes on
behind it. README.md says how to run it.
"""

import argparse
import json
import math
import os
import pathlib
import queue
import shlex
import subprocess
import sys
import threading


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--engine", action="append", default=[], metavar="NAME=COMMAND",
                        help="the command without --cases and --skip")
    parser.add_argument("--palmette", metavar="PROGRAM", help="adds palmette")
    parser.add_argument("--peers", metavar="FOLDER", help="adds the peers' programs that are in this folder")
    parser.add_argument("--xgrammar", nargs=2, metavar=("PYTHON", "VOCABULARY"), help="adds XGrammar's worker")
    parser.add_argument("--walks", type=int, default=3, help="for the engines that are not named by --engine")
    parser.add_argument("--seconds", type=float, default=60, help="for one case")
    parser.add_argument("--out", required=True, help="the summary, as JSON")
    parser.add_argument("--lines", help="folder for each engine's lines")
    args = parser.parse_args()

    cases = [json.loads(line) for line in open(args.cases)]
    summaries = {}
    engines = [spec.split("=", 1) for spec in args.engine] + list(found(args))
    if not engines:
        parser.error("no engine: --engine, --palmette, --peers or --xgrammar")
    for name, command in engines:
        # Kept as they come: an engine may take longer than one has.
        kept = open(f"{args.lines}/{name}.jsonl", "w") if args.lines else None
        lines = []
        for line in run(shlex.split(command), args.cases, cases, args.seconds):
            lines.append(line)
            if kept:
                print(json.dumps(line), file=kept, flush=True)
            if sys.stderr.isatty():
                print(f"\r{name} {len(lines)}/{len(cases)}", end="", file=sys.stderr)
        summaries[name] = summary(lines)
        print(json.dumps({name: summaries[name]}), flush=True)
    json.dump(summaries, open(args.out, "w"), indent=1)
    print(table(summaries))


def found(args):
    """The engines that are asked for by where they are; says which are not there."""
    walks = f"--walks {args.walks}"
    if args.palmette:
        yield from present("palmette", args.palmette, f"bench grammar --lines {walks}")
    if args.peers:
        for name in ["llguidance", "glrmask", "outlines"]:
            yield from present(name, f"{args.peers}/{name}-peer", f"run {walks}")
    if args.xgrammar:
        python, vocabulary = args.xgrammar
        worker = pathlib.Path(__file__).with_name("xgrammar_worker.py")
        yield from present("xgrammar", python, f"{worker} --vocab {vocabulary} {walks}")


def present(name, program, arguments):
    if os.access(program, os.X_OK):
        yield name, f"{program} {arguments}"
    else:
        print(f"ABSENT: {name}: there is no program {program}; the table goes without it", file=sys.stderr)


def run(command, path, cases, seconds):
    """The engine's line for each case, in order, as they come."""
    done = 0
    while done < len(cases):
        process = subprocess.Popen(command + ["--cases", path, "--skip", str(done)],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        arrived = queue.Queue()
        threading.Thread(target=forward, args=(process.stdout, arrived), daemon=True).start()
        # Loading the vocabulary comes before the first case.
        wait = seconds + 60
        while done < len(cases):
            try:
                line = arrived.get(timeout=wait)
            except queue.Empty:
                process.kill()
                yield lost(cases[done], f"took more than {seconds} s")
                done += 1
                break
            if line is None:
                yield lost(cases[done], f"the process ended, {process.wait()}")
                done += 1
                break
            yield json.loads(line)
            done += 1
            wait = seconds
        process.wait()


def forward(stdout, arrived):
    """Each line of an engine, then None."""
    for line in stdout:
        arrived.put(line)
    arrived.put(None)


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
