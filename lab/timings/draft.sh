#!/bin/sh
# What a draft head costs in quality and saves in time, next to beam search with the same model: the published form of
# NEZHA and its ablations (transition, input, verification, MTP), for several seeds, with a paired test. The tables of
# docs/benchmarks.md, "Draft heads". What is there already in WORK is kept, so an interrupted run goes on.
#
# A model of codes is trained here: give the data set's directory (of CollisionGenRec) and name, and WORK:
#
#   lab/timings/draft.sh ~/data/Scientific Scientific work/scientific
#
# Any model's folder, of codes or of text (with prompt_template.json), is taken as it is: MODEL, CATALOG and HISTORIES
# stand in place of the data set. Searches with their queries are rows with the item that came next: HOLD_OUT=nothing,
# and those that are asked in TEST (HISTORIES where it is not set).
#
#   MODEL=my-model CATALOG=shop.palm HISTORIES=train.jsonl TEST=test.jsonl HOLD_OUT=nothing lab/timings/draft.sh work/shop
#
# EPOCHS (base model, 90), DRAFT_EPOCHS (head with decoder, 20), HEAD_EPOCHS (head alone, 30), DROPOUT (0.2),
# NEXT_TOKEN_WEIGHT (1), DRAFT_OPTIONS (others of `palmette-train draft`), HOW ("joint head"), SEEDS ("0 1 2"), USERS (8000), WIDTHS ("10 50 512"), THREADS (2) and REPEAT
# (200; 0 times nothing) may be set. Beam search is timed as it is without a probe, which finds the same. Latency is of
# one user with the longest history of the file, or of QUERY where the template reads one.
set -eu

if [ -n "${MODEL:-}" ]; then
    work=$1 base=$MODEL catalog=$CATALOG histories=$HISTORIES
else
    data=$1 name=$2 work=$3
    base=$work/base catalog=$work/$name.palm histories=$data/$name.inter.json
fi
test=${TEST:-$histories} hold_out=${HOLD_OUT:-both}
epochs=${EPOCHS:-90} draft_epochs=${DRAFT_EPOCHS:-20} head_epochs=${HEAD_EPOCHS:-30} how_all=${HOW:-"joint head"}
users=${USERS:-8000} widths=${WIDTHS:-"10 50 512"} threads=${THREADS:-2} repeat=${REPEAT:-200} seeds=${SEEDS:-"0 1 2"}
dropout=${DROPOUT:-0.2} weight=${NEXT_TOKEN_WEIGHT:-1}
palmette=${PALMETTE:-palmette} train=${PALMETTE_TRAIN:-palmette-train}
mkdir -p "$work"

[ -e "$catalog" ] ||
    "$palmette" catalog build "$data/indexes/rqvae_zcr/$name.index.json" --out "$catalog"
[ -e "$base/model.safetensors" ] ||
    "$train" train --catalog "$catalog" --histories "$histories" --out "$base" \
        --epochs "$epochs" --validate-every 10 --dropout "$dropout" --seed 0 --threads "$threads"

# The published form and its ablations, with the decoder (joint) and alone (head).
forms="nezha:both:rnn nezha-1:placeholder:rnn nezha-2:state:rnn nezha-3:both:add mtp:prompt:rnn"
for seed in $seeds; do
    for form in $forms; do
        label=${form%%:*} rest=${form#*:}
        input=${rest%%:*} transition=${rest#*:}
        for how in $how_all; do
            out=$work/$label-$how-$seed
            [ -e "$out/done" ] && continue
            extra="--epochs $draft_epochs --dropout $dropout --next-token-weight $weight"
            [ "$how" = head ] && extra="--head-only --epochs $head_epochs --learning-rate 2e-3"
            # shellcheck disable=SC2086
            "$train" draft --model "$base" --catalog "$catalog" --histories "$histories" --out "$out" --overwrite \
                --hold-out "$hold_out" --input "$input" --transition "$transition" --seed "$seed" --threads "$threads" $extra ${DRAFT_OPTIONS:-}
            touch "$out/done"
        done
    done
done

# HR and NDCG, the valid share, and the place of each user's item. "free" is NEZHA-4: what is generated when nothing
# verifies it.
ask() { # model folder, its name in results, mode, width
    result=$work/eval-$2-$3-$4.json
    [ -e "$result" ] && return
    how="--mode draft --verify $3"
    [ "$3" = beam ] && how=""
    # shellcheck disable=SC2086
    "$palmette" eval --model "$1" --catalog "$catalog" --histories "$test" -k 5,10 --users "$users" \
        --beam-width "$4" --threads "$threads" $how --json --places >"$result.part"
    mv "$result.part" "$result"
}
for width in $widths; do
    ask "$base" base-0 beam "$width"
    for seed in $seeds; do
        for form in $forms; do
            for how in $how_all; do
                model=${form%%:*}-$how-$seed
                [ "$how:${form%%:*}" = joint:nezha ] && ask "$work/$model" "$model" beam "$width"
                ask "$work/$model" "$model" masks "$width"
                ask "$work/$model" "$model" keys "$width"
            done
        done
    done
done

# One request, median of REPEAT: on one thread and on all.
if [ "$repeat" -gt 0 ]; then
    longest=$(python3 -c '
import json, sys
text = open(sys.argv[1]).read()
try:
    rows = list(json.loads(text).values())
except (ValueError, AttributeError):
    rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    rows = [row.get("items", row.get("history")) for row in rows]
print(json.dumps(max(rows, key=len)))' "$test")
    first=${seeds%% *} how=${how_all%% *}
    for width in $widths; do
        for count in 1 "$threads"; do
            for model in base:beam nezha:masks nezha:keys nezha:none nezha-1:keys nezha-2:keys nezha-3:keys mtp:keys; do
                mode=${model#*:} model=${model%%:*}
                result=$work/time-$model-$mode-$width-$count.json
                [ -e "$result" ] && continue
                folder=$work/$model-$how-$first
                [ "$model" = base ] && folder=$base
                options="--mode draft --verify $mode"
                [ "$mode" = beam ] && options="--probe 0"
                # shellcheck disable=SC2086
                "$palmette" recommend --model "$folder" --catalog "$catalog" --history "$longest" ${QUERY:+--query "$QUERY"} \
                    --beam-width "$width" --threads "$count" --timings --repeat "$repeat" $options --json >"$result.part"
                mv "$result.part" "$result"
            done
        done
    done
fi

python3 - "$work" <<'PYTHON'
import collections, glob, json, math, os, sys

def table(heads, rows):
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()

def parts(path, what):
    return os.path.basename(path)[len(what) + 1 : -len(".json")].rsplit("-", 3)

def gains(places, k):
    """Of each user: a hit, and what it counts in NDCG."""
    within = [place is not None and place < k for place in places]
    return [float(hit) for hit in within], [1 / math.log2(place + 2) if hit else 0.0 for hit, place in zip(within, places)]

KEYS = [("HR@5", 5, 0), ("NDCG@5", 5, 1), ("HR@10", 10, 0), ("NDCG@10", 10, 1)]

# Model, mode and width: the users' gains of each seed, and what was generated without the catalog.
found, free = collections.defaultdict(list), {}
for path in sorted(glob.glob(sys.argv[1] + "/eval-*.json")):
    got = json.load(open(path))
    model, seed, mode, width = parts(path, "eval")
    found[model, mode, width].append([gains(got["places"], k)[which] for _, k, which in KEYS])
    if "not verified" in got["metrics"] and got["valid"]["unconstrained"]:
        shares = [got["valid"][key]["share"] for key in ("unconstrained", "unconstrained_beam")]
        at = got["metrics"]["not verified"]
        metrics = [at[key] for key in ("hit_rate@5", "ndcg@5", "hit_rate@10", "ndcg@10")]
        free.setdefault((model, width), []).append(metrics + shares)

def mean(values):
    return sum(values) / len(values)

def spread(values):
    at = mean(values)
    return f"{at:.4f}" if len(values) < 2 else f"{at:.4f} ± {math.sqrt(sum((v - at) ** 2 for v in values) / (len(values) - 1)):.4f}"

def paired(ours, theirs):
    """Difference of two means over the same users, and its two-sided p by the paired normal test."""
    differences = [a - b for a, b in zip(ours, theirs)]
    n, at = len(differences), mean(differences)
    deviation = math.sqrt(sum((d - at) ** 2 for d in differences) / max(n - 1, 1) / n)
    p = math.erfc(abs(at) / deviation / math.sqrt(2)) if deviation else 1.0
    return f"{at:+.4f} (p {p:.3g})"

rows, tests = [], []
for (model, mode, width), seeds in sorted(found.items()):
    rows.append([model, mode, width, str(len(seeds))] + [spread([mean(seed[key]) for seed in seeds]) for key in range(4)])
    base = found.get(("base", "beam", width))
    if model != "base" and base:
        # A user's gain is the mean over seeds: users are what is drawn, seeds are not more of them.
        users = [[mean(of) for of in zip(*(seed[key] for seed in seeds))] for key in range(4)]
        tests.append([model, mode, width] + [paired(users[key], base[0][key]) for key in range(4)])
names = [name for name, _, _ in KEYS]
print("Means over seeds ± their deviation:\n")
table(["model", "search", "beam", "seeds"] + names, rows)
print("Differences from beam search by the base model at the same width, users paired:\n")
table(["model", "search", "beam"] + names, tests)
rows = []
for (model, width), seeds in sorted(free.items()):
    columns = [mean(column) for column in zip(*seeds)]
    rows.append([model, width] + [f"{value:.4f}" for value in columns[:4]] + [f"{100 * share:.2f}%" for share in columns[4:]])
print("Not verified (NEZHA-4):\n")
table(["model", "beam"] + names + ["valid, best 10", "valid, beam"], rows)

rows = []
for path in sorted(glob.glob(sys.argv[1] + "/time-*.json")):
    ms = json.load(open(path))["timings_ms"]
    rows.append(parts(path, "time") + [f"{ms[key]:.2f}" for key in ("prefill", "decode", "mask", "top_k", "total")])
if rows:
    table(["model", "search", "beam", "threads", "prefill", "decode", "mask", "top-k", "total ms"], rows)
PYTHON
