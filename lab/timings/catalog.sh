#!/usr/bin/env bash
# The runs behind the catalog's figures and tables: the cold step by number of items, by codebook and
# by branching, for the index and the engines it is compared with.
#
#   lab/timings/catalog.sh OUT_DIR             everything; hours, and most of the memory of a large machine
#   ITEMS="1000000" VOCABS="256 2048" BRANCHINGS="8 64" SAMPLES=20 lab/timings/catalog.sh OUT_DIR
#
# A run whose output exists is not repeated. Afterwards:
#   python3 lab/peers/plot_catalog.py --out OUT_DIR/catalog.svg OUT_DIR/*.json
set -euo pipefail
cd "$(dirname "$0")/../.."

out=${1:?usage: lab/timings/catalog.sh OUT_DIR}
ITEMS=${ITEMS-"1000000 3000000 10000000 20000000 50000000 100000000"}  # figure 2, at 8 levels of 2,048
VOCABS=${VOCABS-"256 512 1024 2048 4096 8192 16384 32768"}            # figure 3
VOCAB_ITEMS=${VOCAB_ITEMS:-10000000}
BRANCHINGS=${BRANCHINGS-"2 8 32 128 512 2048 8192"}                   # figure 4, at 3 levels
BRANCHING_ITEMS=${BRANCHING_ITEMS:-8388608}                           # divided by every branching
DISTRIBUTIONS=${DISTRIBUTIONS-"power clustered"}                      # the table, at the first of ITEMS
SAMPLES=${SAMPLES:-200}
PEER_SAMPLES=${PEER_SAMPLES:-20}

cargo build --locked -p palmette-cli --features bench --profile dist
palmette=${CARGO_TARGET_DIR:-target}/dist/palmette
mkdir -p "$out"

run() { # name, then arguments
  local file="$out/$1.json"
  shift
  [ -s "$file" ] && return
  echo "$file: $*" >&2
  "$palmette" bench catalog --peers --samples "$SAMPLES" --peer-samples "$PEER_SAMPLES" --json "$@" > "$file.part"
  mv "$file.part" "$file"
}

for items in $ITEMS; do
  run "uniform-$items-8x2048" --items "$items" --levels 8 --vocab 2048
done
for vocab in $VOCABS; do
  run "uniform-$VOCAB_ITEMS-8x$vocab" --items "$VOCAB_ITEMS" --levels 8 --vocab "$vocab"
done
for branching in $BRANCHINGS; do
  # The codebook grows with the branching, as in the paper's appendix D; 2 dense levels leave the last sparse.
  vocab=$((branching > 2048 ? branching : 2048))
  run "comb-$BRANCHING_ITEMS-3x$vocab-$branching" --items "$BRANCHING_ITEMS" --levels 3 --vocab "$vocab" \
    --distribution comb --branching "$branching" --dense 2
done
for distribution in $DISTRIBUTIONS; do
  items=${ITEMS%% *}
  run "$distribution-$items-8x2048" --items "$items" --levels 8 --vocab 2048 --distribution "$distribution"
done
