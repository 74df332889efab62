#!/bin/sh
# What a draft head costs in quality and saves in time, next to beam search with the same model: the tables of
# docs/benchmarks.md, "Draft heads". Give the data set's directory (of CollisionGenRec) and name, and a directory
# for what is made; what is there already is kept, so an interrupted run goes on.
#
#   lab/timings/draft.sh ~/data/Scientific Scientific work/scientific
#
# EPOCHS (base model, 90), DRAFT_EPOCHS (head with decoder, 20), HEAD_EPOCHS (head alone, 30), DROPOUT (0.2), NEXT_TOKEN_WEIGHT
# (1), USERS (8000), WIDTHS ("50 512"), THREADS (2) and REPEAT (200) may be set. Beam search is timed as it is without a probe,
# which finds the same. Latency is of one user with the longest history of the file.
set -eu

data=$1 name=$2 work=$3
epochs=${EPOCHS:-90} draft_epochs=${DRAFT_EPOCHS:-20} head_epochs=${HEAD_EPOCHS:-30}
users=${USERS:-8000} widths=${WIDTHS:-"50 512"} threads=${THREADS:-2} repeat=${REPEAT:-200}
dropout=${DROPOUT:-0.2} weight=${NEXT_TOKEN_WEIGHT:-1}
palmette=${PALMETTE:-palmette} train=${PALMETTE_TRAIN:-palmette-train}
histories=$data/$name.inter.json
mkdir -p "$work"
catalog=$work/$name.palm

[ -e "$catalog" ] ||
    "$palmette" catalog build "$data/indexes/rqvae_zcr/$name.index.json" --out "$catalog"
[ -e "$work/base/model.safetensors" ] ||
    "$train" train --catalog "$catalog" --histories "$histories" --out "$work/base" \
        --epochs "$epochs" --validate-every 10 --dropout "$dropout" --seed 0 --threads "$threads"

# The published form and its ablations, with the decoder (joint) and alone (head).
forms="nezha:both:rnn nezha-1:placeholder:rnn nezha-2:state:rnn nezha-3:both:add mtp:prompt:rnn"
for form in $forms; do
    label=${form%%:*} rest=${form#*:}
    input=${rest%%:*} transition=${rest#*:}
    for how in joint head; do
        out=$work/$label-$how
        [ -e "$out/done" ] && continue
        extra="--epochs $draft_epochs --dropout $dropout --next-token-weight $weight"
        [ $how = head ] && extra="--head-only --epochs $head_epochs --learning-rate 2e-3"
        # shellcheck disable=SC2086
        "$train" draft --model "$work/base" --catalog "$catalog" --histories "$histories" --out "$out" \
            --overwrite --input "$input" --transition "$transition" --seed 0 --threads "$threads" $extra
        touch "$out/done"
    done
done

# HR and NDCG, and the valid share. "free" is NEZHA-4: what is generated when nothing verifies it.
for width in $widths; do
    for model in base nezha-joint nezha-head nezha-1-joint nezha-1-head nezha-2-joint nezha-2-head \
        nezha-3-joint nezha-3-head mtp-joint mtp-head; do
        modes="beam"
        case $model in
        nezha-joint) modes="beam masks keys" ;;
        base) ;;
        *) modes="masks keys" ;;
        esac
        for mode in $modes; do
            result=$work/eval-$model-$mode-$width.json
            [ -e "$result" ] && continue
            how="--mode draft --verify $mode"
            [ "$mode" = beam ] && how=""
            # shellcheck disable=SC2086
            "$palmette" eval --model "$work/$model" --catalog "$catalog" --histories "$histories" \
                --users "$users" --beam-width "$width" --threads "$threads" $how --json >"$result.part"
            mv "$result.part" "$result"
        done
    done
done

# One request, median of REPEAT: on one thread and on all.
longest=$(python3 -c '
import json, sys
print(json.dumps(max(json.load(open(sys.argv[1])).values(), key=len)))' "$histories")
for width in $widths; do
    for count in 1 "$threads"; do
        for model in base:beam nezha-joint:masks nezha-joint:keys nezha-joint:none nezha-1-joint:keys nezha-2-joint:keys \
            nezha-3-joint:keys mtp-joint:keys; do
            mode=${model#*:} model=${model%%:*}
            result=$work/time-$model-$mode-$width-$count.json
            [ -e "$result" ] && continue
            how="--mode draft --verify $mode"
            [ "$mode" = beam ] && how="--probe 0"
            # shellcheck disable=SC2086
            "$palmette" recommend --model "$work/$model" --catalog "$catalog" --history "$longest" --beam-width "$width" \
                --threads "$count" --timings --repeat "$repeat" $how --json >"$result.part"
            mv "$result.part" "$result"
        done
    done
done

python3 - "$work" <<'PYTHON'
import glob, json, os, sys

def table(heads, rows):
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()

def parts(path, what):
    return os.path.basename(path)[len(what) + 1 : -len(".json")].rsplit("-", 2 if what == "eval" else 3)

rows = []
for path in sorted(glob.glob(sys.argv[1] + "/eval-*.json")):
    got = json.load(open(path))
    model, mode, width = parts(path, "eval")
    for line, row in (("model", mode), ("not verified", "free")):
        if line in got["metrics"]:
            at = got["metrics"][line]
            numbers = [f"{at[key]:.4f}" for key in ("hit_rate@5", "ndcg@5", "hit_rate@10", "ndcg@10")]
            shares = [got["valid"][key] for key in ("unconstrained", "unconstrained_beam")]
            shares = [f"{100 * share['share']:.2f}%" if share and line != "model" else "" for share in shares]
            rows.append([model, row if line == "model" else f"{mode}, free", width] + numbers + shares)
table(["model", "search", "beam", "HR@5", "NDCG@5", "HR@10", "NDCG@10", "valid, best 10", "valid, beam"], rows)

rows = []
for path in sorted(glob.glob(sys.argv[1] + "/time-*.json")):
    ms = json.load(open(path))["timings_ms"]
    rows.append(parts(path, "time") + [f"{ms[key]:.2f}" for key in ("prefill", "decode", "mask", "top_k", "total")])
table(["model", "search", "beam", "threads", "prefill", "decode", "mask", "top-k", "total ms"], rows)
PYTHON
