"""Masks over logits on a GPU: `palmette.cuda` beside torch, by type of logits and by how much a mask allows.

Random words for `--rows` rows of `--tokens` logits. Prints microseconds (median) of one call in a CUDA graph, and the rate at which bytes
are written: `apply_bitmask`; `bitmask_by_id` of `--masks` masks; torch's spread of bits and `masked_fill_`, as `palmette.torch` has it; and
`masked_fill_` alone with a bool a logit, which somebody has to make and send first.
Run: `python bench/device_masks.py [--device cuda] [--rows 64] [--tokens 128256]`.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import palmette.torch
import torch
from palmette import cuda


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=128_256)
    parser.add_argument("--masks", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    torch.cuda.set_device(options.device)
    print(
        f"{options.rows} rows of {options.tokens:,} logits, {torch.cuda.get_device_name()}, torch {torch.__version__}"
    )
    words = -(-options.tokens // 32)
    for allowed in (0.0, 0.001, 0.5, 1.0):
        rng = np.random.default_rng(0)
        bits = rng.random((options.masks, words * 32)) < allowed
        masks = torch.from_numpy(np.packbits(bits, axis=1, bitorder="little").view(np.int32)).to(options.device)
        ids = torch.from_numpy(rng.integers(0, options.masks, options.rows).astype(np.int32)).to(options.device)
        dictionary = cuda.MaskDictionary(options.tokens, options.masks, options.device)
        dictionary.words.copy_(masks)
        chosen = masks[ids.long()]
        forbidden = ~torch.from_numpy(bits[:, : options.tokens]).to(options.device)[ids.long()]
        for dtype in (torch.float32, torch.bfloat16):
            logits = torch.randn(options.rows, options.tokens, device=options.device).to(dtype)
            want = logits.masked_fill(forbidden, -torch.inf)
            for name, call in (
                ("palmette.cuda.apply_bitmask", lambda to: cuda.apply_bitmask(to, chosen)),
                ("palmette.cuda.bitmask_by_id", lambda to: cuda.bitmask_by_id(to, dictionary, ids)),
                ("palmette.torch.apply_bitmask_", lambda to: palmette.torch.apply_bitmask_(to, chosen)),
                ("torch masked_fill_ of bools", lambda to: to.masked_fill_(forbidden, -torch.inf)),
            ):
                given = logits.clone()
                call(given)
                if not torch.equal(given, want):
                    raise SystemExit(f"{name} has other logits than masked_fill of {allowed:.1%} allowed")
                took = microseconds(call, logits, options.rounds)
                written = forbidden.sum().item() * logits.element_size()
                print(f"{allowed:6.1%} allowed {str(dtype)[6:]:9} {name:30} {took:8.1f} us {written / took / 1e3:8.0f} GB/s")


def microseconds(call: Callable[[Any], Any], logits: torch.Tensor, rounds: int) -> float:
    """Median of a call in a graph, over copies of the logits of which no cache holds all."""
    count = max(-(-(256 << 20) // logits.nbytes), 2)
    copies = [logits.clone() for _ in range(count)]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        call(copies[0])
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for each in copies:
            call(each)
    times = []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        captured.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / count)
    return statistics.median(times)


if __name__ == "__main__":
    main()
