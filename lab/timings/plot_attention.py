"""Draws attention of many beams over one prompt, by the way in which keys and values are kept: time and memory over beam width.

    cargo run --release -p palmette-bench --example attention > attention.jsonl
    python3 lab/timings/plot_attention.py attention.jsonl --prompt 512 --out attention.svg

Needs matplotlib.
"""

import argparse
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402: the backend comes first

NAMES = {
    "copied": "a copy for each beam",
    "paged": "pages, the prompt's shared",
    "tree": "one list, a mask",
    "staged": "staged: the prompt once",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()

    with open(args.lines, encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["prompt"] == args.prompt]
    plt.rcParams["svg.hashsalt"] = "attention"
    figure, (times, memory) = plt.subplots(1, 2, figsize=(9, 3.4))
    for way, name in NAMES.items():
        of_way = [row for row in rows if row["way"] == way]
        beams = [row["beams"] for row in of_way]
        times.plot(beams, [row["ms"] for row in of_way], marker="o", markersize=3, label=name)
        memory.plot(beams, [(row["bytes"] + row["mask_bytes"]) / 1e6 for row in of_way], marker="o", markersize=3, label=name)
    for panel, label in [(times, "ms of a layer and pass"), (memory, "MB of a layer: keys, values, mask")]:
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xlabel(f"beams, prompt of {args.prompt}")
        panel.set_ylabel(label)
        panel.grid(alpha=0.3)
    times.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(args.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
