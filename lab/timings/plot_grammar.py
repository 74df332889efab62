"""Tables and tail plots from the lines that `palmette bench grammar --keep-lines FOLDER` keeps.

    python3 plot_grammar.py --lines FOLDER [--by-case] [--common ENGINE…] [--out tails.svg]

Prints a table in Markdown, a row an engine (with --by-case a row for each engine of each case; with --common only cases with texts that all of
these engines compile, so that times are of the same steps), and draws, with --out and
matplotlib, what share of steps takes longer than what: on the horizontal axis 1 / (1 - share), so that each line across is a
nine more, on the vertical one the time.
"""

import argparse
import json
import math
import pathlib
import sys

COLUMNS = {"mask_us": "mask", "mask_us_cold": "mask, first walk", "step_us": "mask + commit"}
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999, "max": 1.0}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", required=True, type=pathlib.Path)
    parser.add_argument("--engines", nargs="*", help="which, in this order; without it all, by name")
    parser.add_argument("--by-case", action="store_true")
    parser.add_argument("--common", nargs="*", help="only cases with texts that these engines compile; without a name, all of them")
    parser.add_argument("--title", default="")
    parser.add_argument("--out", help="an SVG")
    args = parser.parse_args()

    names = args.engines or sorted(path.stem for path in args.lines.glob("*.jsonl"))
    engines = {name: [json.loads(line) for line in open(args.lines / f"{name}.jsonl")] for name in names}
    if args.common is not None:
        engines = common(engines, args.common or names)
    print(by_case(engines) if args.by_case else by_engine(engines))
    if args.out:
        draw(engines, args.title, args.out)


def common(engines, names):
    """The lines of cases with texts that these engines compile."""
    has = [{line["name"] for line in engines[name] if line["compiled"] and line["texts"]} for name in names]
    cases = set.intersection(*has)
    print(f"{len(cases)} cases\n")
    return {name: [line for line in lines if line["name"] in cases] for name, lines in engines.items()}


def by_engine(engines):
    head = ["engine", "compiled", "valid rejected", "invalid accepted", "compile ms p50 / p99 / max", *heads()]
    return markdown(head, [[name, *row(lines)] for name, lines in engines.items()])


def by_case(engines):
    head = ["case", "engine", "outcome", "compile ms", *heads()]
    rows = []
    names = dict.fromkeys(line["name"] for lines in engines.values() for line in lines)
    for case in names:
        for engine, lines in engines.items():
            for line in lines:
                if line["name"] == case:
                    rows.append([case, engine, outcome(line), *figures([line], ["max"])])
    return markdown(head, rows)


def heads():
    shares = " / ".join(SHARES)
    return [f"mask us {shares}", f"first walk us {shares}", "commit us p50 / p99.9", "memory MB"]


def row(lines):
    compiled = [line for line in lines if line["compiled"]]
    texts = [text for line in compiled for text in line["texts"]]
    wrong = lambda valid: sum(text["valid"] == valid and text["accepted"] != valid for text in texts)
    count = lambda valid: sum(text["valid"] == valid for text in texts)
    return [f"{len(compiled)}/{len(lines)}", f"{wrong(True)}/{count(True)}", f"{wrong(False)}/{count(False)}",
            *figures(compiled, ["p50", "p99", "max"])]


def figures(lines, compile_shares):
    """Compilation, masks, commits and memory."""
    compiled = [line for line in lines if line["compiled"]]
    pick = lambda values, shares: " / ".join(short(at(values, SHARES[share])) for share in shares) if values else "-"
    values = lambda name: sorted(value for line in compiled for value in line[name])
    memory = [line["bytes"] / 1e6 for line in compiled if "bytes" in line]
    return [pick(sorted(line["compile_ms"] for line in compiled), compile_shares), pick(values("mask_us"), SHARES),
            pick(values("mask_us_cold"), SHARES), pick(values("commit_us"), ["p50", "p99.9"]), pick(sorted(memory), ["max"])]


def outcome(line):
    if not line["compiled"]:
        return "not compiled: " + line.get("error", "?").splitlines()[0].replace("|", "\\|")[:80]
    wrong = [text for text in line["texts"] if text["accepted"] != text["valid"]]
    rejected = sum(text["valid"] for text in wrong)
    says = [f"{rejected} valid rejected"] if rejected else []
    says += [f"{len(wrong) - rejected} invalid accepted"] if len(wrong) > rejected else []
    return ", ".join(says) or "right"


def at(values, share):
    """The least value that this share of all do not exceed."""
    return values[min(len(values), max(1, math.ceil(share * len(values)))) - 1]


def short(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def markdown(head, rows):
    lines = ["| " + " | ".join(row) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def draw(engines, title, out):
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    matplotlib.rcParams["svg.hashsalt"] = "palmette"

    figure, axes = pyplot.subplots(1, len(COLUMNS), figsize=(15, 5), sharey=True)
    for axis, (column, label) in zip(axes, COLUMNS.items()):
        for name, lines in engines.items():
            values = sorted(value for line in lines if line["compiled"] for value in line[column])
            if not values:
                continue
            # The k-th of n values is passed by n - k of them; the greatest is drawn as if by half a step.
            tail = [(len(values) / max(0.5, len(values) - 1 - at), value) for at, value in enumerate(values)]
            kept = thin(tail)
            axis.plot([x for x, _ in kept], [max(y, 0.01) for _, y in kept], label=name, linewidth=1.5)
        axis.set(xscale="log", yscale="log", title=label, xlabel="percentile")
        nines = [1, 2, 10, 100, 1_000, 10_000, 100_000]
        axis.set_xticks(nines, ["min", "50", "90", "99", "99.9", "99.99", "99.999"])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("microseconds")
    axes[0].legend()
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


def thin(points):
    """Points that can be told apart when drawn."""
    kept = [points[0]]
    for point in points[1:]:
        (x, y), (last_x, last_y) = point, kept[-1]
        if x > last_x * 1.02 or y > last_y * 1.05 or point is points[-1]:
            kept.append(point)
    return kept


if __name__ == "__main__":
    sys.exit(main())
