"""Draws what `palmette bench catalog --peers --json` gave: cold step time by items, codebook and branching.

    python3 plot_catalog.py --out catalog.svg results/*.json

Needs matplotlib. Each file is one run. Runs with the distribution `comb` make the third panel (by the
branching of the last level, whose step it shows); of the others, runs that differ in items alone make
the first and runs that differ in the codebook alone the second, as STATIC's figures 2, 3 and 4
(arXiv 2602.22647) do. There a step is the mean over the levels; a run of several distributions or
lengths is drawn for the one that most files have.
"""

import argparse
import collections
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import matplotlib.ticker


def engines(run):
    """Each measured engine: name and step times by level."""
    yield "index", run["step_us"]
    for peer in run.get("peers", []):
        if "skipped" not in peer:
            yield peer["name"] + ("" if peer["exact"] else " (not exact)"), peer["step_us"]


def mean_step(steps):
    return sum(level["p50"] for level in steps.values()) / len(steps)


def last_step(steps):
    return steps[max(steps, key=int)]["p50"]


def commonest(runs, key):
    """The runs that agree in `key` with the most others."""
    if not runs:
        return []
    value, _ = collections.Counter(map(key, runs)).most_common(1)[0]
    return [run for run in runs if key(run) == value]


def draw(axes, runs, x_of, y_of, title, x_label):
    lines = collections.defaultdict(list)
    for run in runs:
        for name, steps in engines(run):
            lines[name].append((x_of(run), y_of(steps)))
    for name, points in sorted(lines.items(), key=lambda line: line[0] != "index"):
        points.sort()
        exact = "not exact" not in name
        axes.plot(*zip(*points), marker="o", markersize=3, label=name, linestyle="-" if exact else "--",
                  linewidth=2.5 if name == "index" else 1.2)
    axes.set(title=title, xlabel=x_label, xscale="log", yscale="log")
    axes.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    axes.grid(True, which="major", alpha=0.3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="JSON outputs")
    parser.add_argument("--out", default="catalog.svg")
    args = parser.parse_args()
    runs = []
    for path in args.runs:
        with open(path) as file:
            runs.append(json.load(file))

    combs = [run for run in runs if run["distribution"] == "comb"]
    others = [run for run in runs if run["distribution"] != "comb"]
    shape = lambda run: (run["distribution"], run["levels"], run["beams"])
    by_items = commonest(others, lambda run: (*shape(run), run["vocab"]))
    by_vocab = commonest(others, lambda run: (*shape(run), run["items"]))

    figure, panels = plt.subplots(1, 3, figsize=(15, 4.6), sharey=True)
    draw(panels[0], by_items, lambda run: run["items"], mean_step, "by number of items", "items")
    draw(panels[1], by_vocab, lambda run: run["vocab"], mean_step, "by codebook", "codes a level")
    draw(panels[2], combs, lambda run: list(run["branching"].values())[-1], last_step,
         "by branching of the last level", "codes that may follow")
    panels[0].set_ylabel("cold step, µs (p50)")
    labelled = max(panels, key=lambda axes: len(axes.get_lines()))
    figure.legend(*labelled.get_legend_handles_labels(), loc="lower center", ncol=7, frameon=False)
    machine = runs[0]["machine"]
    figure.suptitle(f"{runs[0]['beams']} beams, one thread, {machine['cpu']}", fontsize=10)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(args.out)
    print(args.out)


main()
