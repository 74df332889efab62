"""Beam search over a catalog in transformers, the ways in one run: `prefix_allowed_tokens_fn`, our processor, `beam_search`.

A random Qwen3-shaped model of 4 layers over 4,344 items of 4 levels of 256 codes, a prompt of 200 tokens, 50 beams. Each way is
timed in turn, `--rounds` times, and the medians of wall and CPU time are printed with their ratio; the ten best items have to be
the same in all. Tree attention, one mask over all beams' keys, is `tests/engines/tree_attention.py`, the baseline of merged
attention. `--only-searches` leaves `generate` out. Last come both attentions alone: one layer at the last level. Run: `python bench/transformers_beams.py [--threads 1] [--device cuda]`.
"""

from __future__ import annotations

import argparse
import pathlib
import platform
import statistics
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import palmette
import torch
import transformers
from palmette.transformers import (
    BeamResult,
    CatalogLogitsProcessor,
    beam_result,
    beam_search,
    exact_settings,
)
from palmette.transformers.attention import BeamCache, shared_prompt_attention

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "engines"))
from tree_attention import tree_attention  # noqa: E402

FIRST_CODE = 16


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=4344)
    parser.add_argument("--codes", type=int, default=256, help="codes a level")
    parser.add_argument("--levels", type=int, default=4)
    parser.add_argument("--prompt", type=int, default=200)
    parser.add_argument("--beams", type=int, default=50)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--requests", type=int, default=1)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--bfloat16", action="store_true")
    parser.add_argument("--only-searches", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    num_tokens = FIRST_CODE + options.codes * options.levels
    model = make_model(num_tokens, options).to(options.device)
    constraint, prefix_tree = make_catalog(options, num_tokens)
    ids = torch.randint(
        0, FIRST_CODE, (options.requests, options.prompt), generator=torch.Generator().manual_seed(1)
    ).to(options.device)
    settings = exact_settings(constraint, options.beams)

    def allowed(_: int, row: torch.Tensor) -> list[int]:
        node = prefix_tree
        for token in row[options.prompt :].tolist():
            node = node.get(token, {})
        return list(node)

    def search(share_prompt: bool | None = None, scores: str = "vocabulary") -> BeamResult:
        return model.generate(
            ids,
            do_sample=False,
            max_new_tokens=constraint.num_levels,
            custom_generate=beam_search,
            constraint=constraint,
            beam_width=options.beams,
            share_prompt=share_prompt,
            scores=scores,
        )

    def tree() -> BeamResult:
        with tree_attention():
            return search()

    ways: dict[str, Callable[[], BeamResult]] = {
        "generate, prefix_allowed_tokens_fn": lambda: beam_result(
            model.generate(ids, prefix_allowed_tokens_fn=allowed, **settings),
            constraint,
            options.requests,
        ),
        "generate, CatalogLogitsProcessor": lambda: beam_result(
            model.generate(ids, logits_processor=[CatalogLogitsProcessor(constraint)], **settings),
            constraint,
            options.requests,
        ),
        "beam_search, cache repeated": lambda: search(share_prompt=False),
        "beam_search, tree attention": tree,
        "beam_search": search,
        'beam_search, scores="catalog"': lambda: search(scores="catalog"),
    }
    if options.only_searches:
        ways = {name: way for name, way in ways.items() if name.startswith("beam")}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    results: dict[str, BeamResult] = {}
    for number in range(options.rounds + 1):  # The first round warms up.
        for name, way in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            results[name] = way()
            if options.device != "cpu":
                torch.cuda.synchronize()
            if number:
                times[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    if not options.bfloat16:  # Eight bits, rounded in other places, are near and not the same.
        check(results)
    report(options, times)
    attention_alone(options)


def make_model(num_tokens: int, options: argparse.Namespace) -> Any:
    torch.manual_seed(0)
    hidden = options.hidden
    config = transformers.Qwen3Config(
        vocab_size=num_tokens,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=hidden // 8,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = transformers.Qwen3ForCausalLM(config).eval()
    return model.to(torch.bfloat16) if options.bfloat16 else model


def make_catalog(options: argparse.Namespace, num_tokens: int) -> tuple[Any, dict[int, Any]]:
    codes = np.random.default_rng(0).integers(
        0, options.codes, size=(options.items, options.levels)
    )
    first = FIRST_CODE + options.codes * np.arange(options.levels)
    constraint = palmette.Catalog.build(codes).constraint(
        [(int(token), options.codes) for token in first], num_tokens=num_tokens
    )
    tree: dict[int, Any] = {}
    for row in (codes + first).tolist():
        node = tree
        for token in row:
            node = node.setdefault(token, {})
    return constraint, tree


def check(results: dict[str, BeamResult]) -> None:
    names = [name for name in results if "catalog" not in name]
    first = results[names[0]]
    for name in names[1:]:
        if not torch.equal(first.sequences[:10], results[name].sequences[:10]):
            raise SystemExit(f"{name} finds other items than {names[0]}")
        print(
            f"{name}: the same ten items, scores within {(first.scores[:10] - results[name].scores[:10]).abs().max():.1e}"
        )


def report(options: argparse.Namespace, times: dict[str, list[tuple[float, float]]]) -> None:
    print(
        f"{options.items} items, {options.levels} levels of {options.codes}, prompt {options.prompt}, "
        f"{options.beams} beams, {options.requests} request(s), {options.layers} layers of {options.hidden}, "
        f"{'bfloat16' if options.bfloat16 else 'float32'}, {options.device}, {options.threads} thread(s), "
        f"torch {torch.__version__}, transformers {transformers.__version__}, {processor()}"
    )
    medians = {
        name: tuple(statistics.median(each) * 1e3 for each in zip(*rows, strict=True))
        for name, rows in times.items()
    }
    base = next(iter(medians.values()))
    print(f"{'':38}{'wall ms':>9}{'cpu ms':>9}{'cpu ratio':>11}")
    for name, (wall, cpu) in medians.items():
        print(f"{name:38}{wall:9.1f}{cpu:9.1f}{base[1] / cpu:10.1f}x")


def attention_alone(options: argparse.Namespace) -> None:
    """One layer's attention at the last level, the cache's part included: merged, and under one mask over all keys."""
    requests, width, fed = options.requests, options.beams, options.levels - 1
    heads, key_heads, size = 8, 4, options.hidden // 8
    dtype = torch.bfloat16 if options.bfloat16 else torch.float32

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=options.device).to(dtype)

    prompt = random(requests, key_heads, options.prompt, size)
    cache = BeamCache(SimpleNamespace(layers=[SimpleNamespace(keys=prompt, values=prompt.clone())]), None, None)
    cache.begin_step(torch.arange(requests * width, device=options.device))
    query = random(requests, width, heads, size).transpose(1, 2)
    new = random(requests, width, key_heads, size).transpose(1, 2)
    own = random(requests * width, key_heads, fed - 1, size) if fed > 1 else None
    all_keys = torch.cat((prompt, random(requests, key_heads, width * (fed - 1), size)), dim=2)
    mask = torch.zeros((requests, 1, width, options.prompt + width * fed), device=options.device).to(dtype)

    def merged() -> None:
        cache.beams[0].keys = cache.beams[0].values = own
        keys, values = cache.beams[0].update(new, new)
        shared_prompt_attention(
            SimpleNamespace(layer_idx=0), query, keys, values, None, shared_prompt=cache
        )

    def tree() -> None:
        keys, values = torch.cat((all_keys, new), dim=2), torch.cat((all_keys, new), dim=2)
        torch.nn.functional.scaled_dot_product_attention(
            query, keys, values, attn_mask=mask, enable_gqa=True
        )

    clock = time.process_time if options.device == "cpu" else time.perf_counter
    times: dict[str, list[float]] = {"merged": [], "tree": []}
    with torch.inference_mode():
        for _ in range(40):
            for name, run in (("merged", merged), ("tree", tree)):
                start = clock()
                run()
                if options.device != "cpu":
                    torch.cuda.synchronize()
                times[name].append(clock() - start)
    found = {name: statistics.median(each[5:]) * 1e3 for name, each in times.items()}
    print(
        f"attention of one layer, last level: merged {found['merged']:.2f} ms, tree {found['tree']:.2f} ms, "
        f"{found['tree'] / found['merged']:.1f}x"
    )


def processor() -> str:
    """The processor's name."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
