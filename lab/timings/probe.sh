#!/bin/sh
# What a narrow search saves that goes before a wide one: the table of docs/benchmarks.md, "Probe". Give a
# trained model's directory, its catalog and its histories, and a directory for the evaluations.
#
#   lab/timings/probe.sh scientific scientific.palm Scientific.inter.json work
#
# USERS (1000), WIDTHS ("32 50 64 128 256 512"), PROBES ("0 10 16 24 32"; 0 is none) and PALMETTE may be set. Milliseconds
# are the evaluation's over its users, one thread: reading the prompt is in them. All searches of a width must have the
# same metrics, or this fails.
set -eu

model=$1 catalog=$2 histories=$3 work=$4
users=${USERS:-1000} widths=${WIDTHS:-"32 50 64 128 256 512"} probes=${PROBES:-"0 10 16 24 32"}
palmette=${PALMETTE:-palmette}
mkdir -p "$work"

for width in $widths; do
    for probe in $probes; do
        [ "$probe" -lt "$width" ] || continue
        "$palmette" eval --model "$model" --catalog "$catalog" --histories "$histories" --users "$users" \
            --beam-width "$width" --probe "$probe" --no-unconstrained --threads 1 --json >"$work/probe-$width-$probe.json"
    done
done

python3 - "$work" <<'PYTHON'
import glob, json, os, sys

runs = {}
for path in glob.glob(sys.argv[1] + "/probe-*.json"):
    width, probe = map(int, os.path.basename(path)[len("probe-") : -len(".json")].split("-"))
    runs.setdefault(width, {})[probe] = json.load(open(path))
probes = sorted({probe for by_probe in runs.values() for probe in by_probe if probe})
heads = ["beam", "HR@10", "NDCG@10", "no probe, ms"] + [f"{head}" for p in probes for head in (f"probe {p}, ms", "times")]
print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
for width, by_probe in sorted(runs.items()):
    metrics = {json.dumps(got["metrics"]["model"], sort_keys=True) for got in by_probe.values()}
    if len(metrics) > 1:
        sys.exit(f"beam {width}: probes change the answer: {metrics}")
    ms = {probe: got["seconds"] * 1e3 / got["users"] for probe, got in by_probe.items()}
    at = by_probe[0]["metrics"]["model"]
    row = [str(width), f"{at['hit_rate@10']:.4f}", f"{at['ndcg@10']:.4f}", f"{ms[0]:.2f}"]
    for probe in probes:
        row += [f"{ms[probe]:.2f}", f"{ms[0] / ms[probe]:.1f}"] if probe in ms else ["", ""]
    print("| " + " | ".join(row) + " |")
PYTHON
