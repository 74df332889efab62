"""Draws what streamlining leaves of a mask store: rows after each step, and their distribution over lexer states.

    python3 lab/timings/plot_mask_store.py terminals.json --out terminals.svg

`terminals.json` is what the example `streamline` of palmette-mask-store writes; needs matplotlib.
"""

import argparse
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402: the backend comes first

NAMES = [
    "as it is",
    "1: interchangeable",
    "2: successors",
    "3: pairs",
    "4: whole rows",
    "5: two before",
    "6: same stacks",
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()

    steps = json.load(open(args.json))["steps"]
    plt.rcParams["svg.hashsalt"] = "mask store"
    bars, curves = plt.subplots(1, 2, figsize=(11, 4))[1]
    rows = [step["rows"] for step in steps]
    names = [NAMES[step["step"]] for step in steps]
    bars.bar(names, rows, color="tab:blue")
    bars.set_ylabel("rows of the mask store")
    bars.tick_params(axis="x", rotation=30)
    for at, count in enumerate(rows):
        bars.text(at, count, f"{count:,}", ha="center", va="bottom", fontsize=8)
    for step, name in zip(steps, names):
        # A point where the number changes: the rest of the curve goes straight on.
        of_states, share = [], []
        counts = sorted(step["rows_per_state"])
        for at, count in enumerate(counts):
            if at + 1 == len(counts) or counts[at + 1] != count:
                of_states.append(count)
                share.append((at + 1) / len(counts))
        curves.step(of_states, share, where="post", label=name)
    curves.set_xscale("symlog", linthresh=1)
    curves.set_xlabel("rows of a lexer state")
    curves.set_ylabel("share of lexer states with at most so many")
    curves.legend(fontsize=8, loc="lower right")
    plt.tight_layout()
    plt.savefig(args.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
