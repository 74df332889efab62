#!/bin/sh
# What does a recommendation cost, by prompt and beam width, next to its bound and to other programs?
#
#   lab/timings/recommend.sh OUT_DIR
#
# Writes one JSON file a case into OUT_DIR: `palmette bench recommend`'s report, and beside it what the peers took at
# the same shape. PALMETTE is the program; PEER_PYTHONS are "engine=python" pairs, empty for no peers; THREADS, PROMPTS
# and BEAMS choose the cases.
set -eu

out=${1:?usage: lab/timings/recommend.sh OUT_DIR}
palmette=${PALMETTE:-target/release/palmette}
mkdir -p "$out"
for threads in ${THREADS:-1 2}; do
    for prompt in ${PROMPTS:-64 512}; do
        for beam in ${BEAMS:-128 512}; do
            name=$out/prompt$prompt-beam$beam-threads$threads
            "$palmette" bench recommend --params "${PARAMS:-10m}" --prompt "$prompt" --beam "$beam" \
                --levels 3 --codes 256 --items "${ITEMS:-1000000}" --threads "$threads" \
                --repeat "${REPEAT:-20}" --json > "$name.json"
            for peer in ${PEER_PYTHONS:-}; do
                engine=${peer%%=*}
                "${peer#*=}" "$(dirname "$0")/../peers/random_generate.py" --engine "$engine" \
                    --report "$name.json" --repeat "${PEER_REPEAT:-3}" > "$name-$engine.json"
            done
        done
    done
done
