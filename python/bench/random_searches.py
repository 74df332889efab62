"""Random searches over random catalogs and filters: how many of their rows are no item.

    python python/bench/random_searches.py [searches]

Each search has a catalog of 1 to 2,000 items, a filter that leaves some of them or none, a width of 1 to 64, tokens in any order, and
random log-probabilities; its rows are compared with the items that the filter leaves, told apart without Palmette.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import palmette

CATALOGS = 200
KINDS = 5


def main(searches: int) -> int:
    random = np.random.default_rng(1)
    invalid = twice = missing = rows_seen = done = 0
    began = time.perf_counter()
    for _ in range(CATALOGS):
        items, levels, size = int(random.integers(1, 2001)), int(random.integers(1, 6)), int(random.integers(1, 40))
        codes = random.integers(0, size, (items, levels)).astype(np.uint16)
        kinds = random.integers(0, KINDS, items)
        catalog = palmette.Catalog.build(codes, attributes={"kind": kinds})
        num_tokens = levels * size + int(random.integers(1, 50))
        tokens = [random.permutation(num_tokens)[:size] for _ in range(levels)]
        constraint = catalog.constraint(tokens, num_tokens)
        spelled = np.stack([tokens[level][codes[:, level]] for level in range(levels)], axis=1)
        kinds_of = [{"must": {"match": {"kind": kind}}} for kind in range(KINDS)]
        # Kinds that no item has match nothing.
        filtered = [constraint.filtered(condition) for condition in kinds_of]
        valid = [set(map(tuple, spelled[kinds == kind].tolist())) for kind in range(KINDS)]
        for _ in range(-(-searches // CATALOGS)):
            kind, width = int(random.integers(0, KINDS)), int(random.integers(1, 65))
            beams = palmette.Beams(filtered[kind], width)
            for _ in range(levels):
                log_probs = random.standard_normal((beams.num_rows, num_tokens), dtype=np.float32)
                beams.advance(*beams.select(log_probs))
            rows = [tuple(row) for row in beams.tokens.tolist()]
            invalid += sum(row not in valid[kind] for row in rows)
            twice += len(rows) - len(set(rows))
            missing += width >= len(valid[kind]) and len(rows) != len(valid[kind])
            rows_seen += len(rows)
            done += 1
    took = time.perf_counter() - began
    print(f"{done} searches, {rows_seen} rows: {invalid} invalid, {twice} twice, {missing} incomplete; {took:.1f} s")
    return int(invalid + twice + missing > 0)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
