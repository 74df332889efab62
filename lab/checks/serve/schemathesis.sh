#!/usr/bin/env bash
# The server against its own OpenAPI document: requests that the document permits, and requests that it does not.
#
#   PALMETTE=target/release/palmette lab/checks/serve/schemathesis.sh [options of schemathesis run]
#
# Starts `palmette serve` over the built-in shop on a free port and asks it by schemathesis, which this script installs from
# PyPI into a temporary directory (VENV names another, which is kept), all phases: no status 5xx but those the document names,
# statuses, content types and bodies as documented, bodies against the schema refused. Needs Python 3.10 or newer.
#
# One check is left out: `positive_data_acceptance`. What a schema cannot say is refused too: an attribute that the catalog does not
# have, `widths` beside `beam_width`, a target that is not there.
set -euo pipefail

palmette=${PALMETTE:-palmette} version=${SCHEMATHESIS:-4.32.5}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null || true; rm -rf "$work"' EXIT

venv=${VENV:-$work/venv}
if [ ! -x "$venv/bin/schemathesis" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" --quiet install "schemathesis==$version"
fi

"$palmette" demo --export "$work/shop" > "$work/exported"
"$palmette" catalog build "$work/shop/items.jsonl" --out "$work/shop.palm" > "$work/built"
"$palmette" catalog live init "$work/live" --from "$work/shop.palm" --model "$work/shop/model" > "$work/made"
mkdir "$work/data"
# Short timeouts, so that bodies which never end do not hold up the run.
"$palmette" serve --model "demo=$work/shop/model" --catalog "shop=$work/live" --data-dir "$work/data" --listen 127.0.0.1:0 --json \
  --read-timeout 2 --drain-delay 0 > "$work/address" 2> "$work/log" &
server=$!
for _ in $(seq 100); do
  url=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["url"])' "$work/address" 2> /dev/null) && break
  kill -0 "$server" || { cat "$work/log" >&2; exit 1; }
  sleep 0.1
done

# Batches and streams have a status for each request: where one breaks the schema, the whole is still answered with 200. Catalogs that are
# made or deleted meanwhile are fine.
cat > "$work/schemathesis.toml" << 'TOML'
[checks]
positive_data_acceptance.enabled = false
# Both are documented: a drain, and a generation that does not come by the deadline.
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 503, 504]
# 410, a generation that is not kept, refuses as well.
negative_data_rejection.expected-statuses = ["4xx", 503, 504]

# Catalog and item that are there, so that more than 404 is seen.
[parameters]
"path.c" = "shop"
"path.id" = "P0001"

[phases.stateful.inference]
algorithms = ["location-headers"]

[[operations]]
include-path = "/v1/recommend/batch"
checks.negative_data_rejection.enabled = false

[[operations]]
include-path = "/v1/recommend/stream"
checks.negative_data_rejection.enabled = false
TOML
# Media types that schemathesis does not know: text is sent as it is.
cat > "$work/hooks.py" << 'PYTHON'
import json

import schemathesis


@schemathesis.serializer("application/x-ndjson", "text/csv", "application/octet-stream")
def lines(context, value):
    return value if isinstance(value, bytes) else (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "replace")
PYTHON

# Where a bound of the scheduler's was met, a request may be refused: it is documented.
status=0
(cd "$work" && SCHEMATHESIS_HOOKS=hooks PYTHONPATH=. "$venv/bin/schemathesis" run "$url/openapi.json" --phases examples,coverage,fuzzing,stateful \
  --seed 1 --no-color --continue-on-failure --request-timeout 60 "$@") || status=$?

kill -0 "$server" || { echo "the server ended:" >&2; cat "$work/log" >&2; exit 1; }
if grep -n panicked "$work/log" >&2; then status=1; fi
exit "$status"
