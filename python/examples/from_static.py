"""From STATIC to Palmette: the same arrays by one import, then filters, ids and exact beams.

    python python/examples/from_static.py
"""

from __future__ import annotations

import numpy as np

import palmette
from palmette.static import build_static_index

VOCAB, LEVELS = 64, 4


def main() -> None:
    random = np.random.default_rng(0)
    sids = random.integers(0, VOCAB, (5_000, LEVELS))

    # 1. The index that a decoder under XLA or CUDA graphs gathers from. Rows need not be sorted, and may come twice.
    packed_csr, indptr, layer_max_branches, start_mask, dense_mask, dense_states = build_static_index(
        sids, vocab_size=VOCAB, dense_lookup_layers=2
    )
    print("edges", len(packed_csr) - VOCAB, "branches", layer_max_branches)

    # 2. An index that was built before becomes a catalog.
    catalog = palmette.Catalog.from_static(packed_csr, indptr, start_mask, num_levels=LEVELS)
    print(catalog, f"{catalog.nbytes / len(catalog):.1f} bytes an item")

    # 3. The same items with ids and attributes: what may be recommended is then chosen by the request.
    price = random.uniform(1, 100, len(sids)).round(2)
    shop = palmette.Catalog.build(sids, ids=[f"P{n:04}" for n in range(len(sids))], attributes={"price": price})
    cheap = shop.filter({"must": {"range": {"price": {"lt": 10}}}})
    constraint = shop.constraint([(0, VOCAB)] * LEVELS, items=cheap)
    print(constraint)

    # 4. Beams: a filter that leaves few items gives few rows, never an invalid one.
    beams = palmette.Beams(constraint, width=8)
    for _ in range(LEVELS):
        logits = random.normal(size=(beams.num_rows, VOCAB)).astype(np.float32)  # your model's
        log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        beams.advance(*beams.select(log_probs))
    for score, ids in zip(beams.scores, beams.items()):
        assert all(item in cheap for item in ids)
        print(f"{score:8.3f}  {' '.join(ids)}")

    # 5. The arrays of the items that a filter leaves, for a decoder on the device.
    some = [shop.item(item)["codes"] for item in cheap.ids()]
    print("edges of the cheap items", len(build_static_index(some, VOCAB)[0]) - VOCAB)


if __name__ == "__main__":
    main()
