"""Device tables: bytes, building, and a beam step on the CPU or a GPU, beside STATIC's own code when its path is given.

Random items of `--levels` codes of `--codes`; `--requests` x `--beams` rows of random log-probabilities at each level. Prints the
milliseconds of one step a level (median; of CPU time on the CPU): as it is, by edges alone (without mask rows), with `--compile`
compiled, on a GPU as a CUDA graph and by `palmette.cuda`, which has to choose the same beams, with `--jax` the twin under JAX, and with `--live` the tables of a live catalog after 1,000 upserts
and 1,000 deletes; then `beam_search` of a random Qwen3-shaped model on the same
device. The peer's step is its mask followed by its top-k, as in its decoder. The ways take turns, so that what else the machine does
falls on all of them.
Run: `python bench/device_tables.py [--device cuda] [--static ../static-constraint-decoding] [--compile] [--jax] [--live]`.
"""

from __future__ import annotations

import argparse
import importlib
import pathlib
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import palmette
import torch
import transformers
from palmette.torch_live import LiveDeviceTables
from palmette.torch_steps import LevelSteps
from palmette.torch_tables import DeviceTables, advance, device_tables, select
from palmette.transformers import beam_search


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--levels", type=int, default=8)
    parser.add_argument("--codes", type=int, default=2048)
    parser.add_argument("--requests", type=int, default=2)
    parser.add_argument("--beams", type=int, default=70)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--compile",
        action="store_true",
        help="also compile the step by torch.compile(fullgraph=True)",
    )
    parser.add_argument("--jax", action="store_true", help="also time the twin under JAX")
    parser.add_argument("--live", action="store_true", help="also time tables of a live catalog")
    parser.add_argument("--no-search", action="store_true", help="leave the whole searches out")
    parser.add_argument("--static", help="a checkout of STATIC, to run its code beside ours")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(
        f"{options.items:,} items, {options.levels} levels of {options.codes}, "
        f"{options.requests} x {options.beams} beams, {device_name(options.device)}, {options.threads} thread(s), torch {torch.__version__}"
    )
    codes = np.random.default_rng(0).integers(
        0, options.codes, size=(options.items, options.levels), dtype=np.int32
    )
    start = time.process_time()
    catalog = palmette.Catalog.build(codes)
    tables = device_tables(catalog, options.device)
    print(
        f"palmette: {time.process_time() - start:.1f} CPU s to build, "
        f"{tables.nbytes / tables.num_semantic_ids:.1f} bytes an item on the device"
    )
    plain = device_tables(catalog, options.device, dense_bytes=0)
    dense = [level for level, rows in enumerate(tables.rows) if rows is not None]
    print(f"mask rows at levels {dense}, {tables.nbytes - plain.nbytes:,} bytes of them")
    walks = walk(tables, options)
    ways: dict[str, list[Callable[[], Any]]] = {
        name: [lambda step=step, each=each: select(each, *step, options.beams) for step in walks]
        for name, each in (("palmette select", tables), ("palmette select, by edges", plain))
    }
    if options.compile:
        steps = LevelSteps("compile")
        ways["palmette select, compiled"] = [
            lambda step=step: steps.run(
                step[0], lambda *inputs: select(tables, step[0], *inputs, options.beams), *step[1:]
            )
            for step in walks
        ]
        start = time.process_time()
        for step in ways["palmette select, compiled"]:
            step()
        print(f"torch.compile: {time.process_time() - start:.1f} CPU s for all levels")
    if options.device != "cpu":
        ways["palmette select, graph"] = [
            graph(lambda step=step: select(tables, *step, options.beams)) for step in walks
        ]
        kernels = kernel_steps(catalog, tables, walks, options)
        ways["palmette.cuda select"] = kernels
        ways["palmette.cuda select, graph"] = [graph(step) for step in kernels]
    codes_so_far = [
        torch.zeros((*step[2].shape, level), dtype=torch.int64, device=options.device)
        for level, step in enumerate(walks)
    ]
    ways["palmette advance"] = [
        lambda step=step, so_far=so_far: advance(tables, *step, so_far, options.beams)
        for step, so_far in zip(walks, codes_so_far, strict=True)
    ]
    if options.live:
        ways["palmette select, live"] = live_steps(catalog, codes, options)
    if options.jax:
        ways["palmette.jax select"] = jax_steps(catalog, walks, options)
    static_steps: list[Callable[[], Any]] = []
    static_graphs: list[Callable[[], Any]] = []
    if options.static:
        static_steps, static_graphs = peer(codes, options)
        ways["STATIC mask + top-k"] = static_steps
        if len(static_graphs) == options.levels:
            ways["STATIC, graph"] = static_graphs
    rows = medians(ways, options)
    print(f"{'ms a step, by level':28}" + "".join(f"{level:>9}" for level in range(options.levels)))
    for name, times in rows.items():
        print(f"{name:28}" + "".join(f"{each * 1e3:9.3f}" for each in times))
    if not options.no_search:
        whole_search(catalog, options)


def walk(tables: DeviceTables, options: argparse.Namespace) -> list[tuple[Any, ...]]:
    """The arguments of `select` at each level of one search."""
    steps = []
    nodes = torch.zeros((options.requests, 1), dtype=torch.int64, device=options.device)
    scores = torch.zeros((options.requests, 1), device=options.device)
    for level in range(options.levels):
        steps.append((level, log_probs(nodes.numel(), options, level), nodes, scores))
        _, _, nodes, scores = select(tables, *steps[-1], options.beams)
    return steps


def log_probs(rows: int, options: argparse.Namespace, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.log_softmax(torch.randn((rows, options.codes), generator=generator), dim=-1).to(
        options.device
    )


def kernel_steps(
    catalog: Any, tables: DeviceTables, walks: list[tuple[Any, ...]], options: argparse.Namespace
) -> list[Callable[[], Any]]:
    """The same steps by `palmette.cuda`; ends the program where one chooses other beams."""
    from palmette import cuda

    by_kernels = cuda.device_tables(catalog, options.device)
    print(f"palmette.cuda: {by_kernels.nbytes / tables.num_semantic_ids:.1f} bytes an item on the device")
    beams = by_kernels.start(options.requests, options.beams)
    steps: list[Callable[[], Any]] = []
    for step in walks:
        steps.append(lambda rows=step[1], beams=beams: cuda.select(rows, beams, by_kernels, is_log_probs=True))
        beams = steps[-1]()
        parents, tokens, _, scores = select(tables, *step, options.beams)
        there = scores > -torch.inf
        for one, other in ((beams.scores, scores), (beams.parents, parents), (beams.tokens[..., -1], tokens)):
            if not torch.equal(one[there], other[there]) or not torch.equal(beams.valid, there):
                sys.exit(f"palmette.cuda chose other beams at level {step[0]}")
    return steps


def graph(step: Callable[[], Any]) -> Callable[[], None]:
    """A step captured in a CUDA graph: what the device takes, without Python and launches."""
    side = torch.cuda.Stream()
    with torch.inference_mode(), torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(captured):
        step()
    return captured.replay


def live_steps(
    catalog: Any, codes: np.ndarray, options: argparse.Namespace
) -> list[Callable[[], Any]]:
    """The same steps over a live catalog of several segments; prints what its refreshes upload and take."""
    steps: list[Callable[[], Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        live = palmette.LiveCatalog.create(f"{folder}/live", catalog)
        tables = LiveDeviceTables(live, options.device)
        rng = np.random.default_rng(1)
        # Codes that are there, so that the newest segment's paths are the base's in part.
        new = codes[rng.integers(0, len(codes), size=1000)].copy()
        new[:, -1] = rng.integers(0, options.codes, size=1000)
        for updates in (
            [{"id": f"new{number}", "codes": row} for number, row in enumerate(new.tolist())],
            [{"delete": str(number)} for number in range(1000)],
        ):
            live.apply(updates)
            before, start = tables.uploaded_bytes, time.process_time()
            now = tables.refresh()
            print(
                f"refresh after {len(updates):,} updates: {tables.uploaded_bytes - before:,} of {now.nbytes:,} bytes uploaded, "
                f"{time.process_time() - start:.2f} CPU s, {len(now.segments)} segments"
            )
        live.close()
    nodes = now.start(options.requests)
    scores = torch.zeros((options.requests, 1), device=options.device)
    for level in range(options.levels):
        rows = log_probs(scores.numel(), options, level)
        step = (level, rows, nodes, scores, options.beams)
        steps.append(lambda step=step: select(now, *step))
        _, _, nodes, scores = steps[-1]()
    return steps


def jax_steps(
    catalog: Any, walks: list[tuple[Any, ...]], options: argparse.Namespace
) -> list[Callable[[], Any]]:
    """The same steps by `palmette.jax`, each compiled before it is timed."""
    import jax
    import jax.numpy as jnp
    from palmette import jax as twin

    print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind}")
    tables = twin.device_tables(catalog)
    steps = []
    for level, log_probs, nodes, scores in walks:
        inputs = [jnp.asarray(each.cpu().numpy()) for each in (log_probs, nodes.int(), scores)]
        steps.append(
            lambda level=level, inputs=inputs: jax.block_until_ready(
                twin.select(tables, level, *inputs, options.beams)
            )
        )
    return steps


def peer(
    codes: np.ndarray, options: argparse.Namespace
) -> tuple[list[Callable[[], Any]], list[Callable[[], Any]]]:
    """STATIC's step at each level, and on a GPU as a graph. Its builder wants sorted rows; sorting is counted, and its top-k asks for existing beams."""
    sys.path.insert(0, options.static)
    build = importlib.import_module("static_decoding.csr_utils").build_static_index
    masked = importlib.import_module("static_decoding.decoding_pt").generate_and_apply_logprobs_mask
    start = time.process_time()
    ordered = codes[np.lexsort(codes.T[::-1])]
    packed, pointers, branches, mask, dense, states = build(ordered, options.codes)
    nbytes = sum(each.nbytes for each in (packed, pointers, mask, dense, states))
    print(
        f"STATIC: {time.process_time() - start:.1f} CPU s to sort and build, {nbytes / len(codes):.1f} bytes an item on the device"
    )
    packed, pointers, mask, dense, states = (
        torch.from_numpy(each).to(options.device)
        for each in (packed, pointers, mask, dense, states)
    )
    steps: list[Callable[[], Any]] = []
    graphed: list[Callable[[], Any]] = []
    low = torch.tensor(-torch.inf, device=options.device)
    beams = torch.zeros((options.requests, 1), device=options.device)
    state = torch.zeros((options.requests, 1), dtype=torch.int64, device=options.device)
    for level in range(options.levels):
        rows = log_probs(state.numel(), options, level)
        limit = options.beams if level == 1 else int(branches[level])

        def step(
            level: int = level,
            rows: torch.Tensor = rows,
            limit: int = limit,
            state: torch.Tensor = state,
            beams: torch.Tensor = beams,
        ) -> tuple[torch.Tensor, torch.Tensor]:
            if level == 0:
                best, token = torch.topk(torch.where(mask, rows, low), options.beams)
                return best, token + 1
            flat = state.reshape(-1)
            if level == 1:
                best, token = torch.topk(torch.where(dense[flat - 1], rows, low), limit)
                following = states[(flat - 1)[:, None], token]
            else:
                best, _, following = masked(
                    rows, flat, packed, pointers, limit, options.codes, options.device
                )
            total = (beams.unsqueeze(-1) + best.view(options.requests, -1, limit)).flatten(1)
            best, at = torch.topk(total, options.beams)
            return best, following.reshape(options.requests, -1).gather(1, at).long()

        with torch.inference_mode():
            steps.append(step)
            following = step()
            if options.device != "cpu" and len(graphed) == level:
                try:
                    graphed.append(graph(step))
                except RuntimeError as error:
                    # Nothing else runs after this on a device whose capture failed but the peer's own steps.
                    print(
                        f"STATIC's step is not captured at level {level}: {str(error).splitlines()[0]}"
                    )
            beams, state = following
    return steps, graphed


def whole_search(catalog: Any, options: argparse.Namespace) -> None:
    """`beam_search` with a Qwen3-shaped model of 4 layers whose vocabulary is the codes, a prompt of 200 tokens a request."""
    num_tokens = 16 + options.codes * options.levels
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=num_tokens, hidden_size=256, intermediate_size=768, num_hidden_layers=4,
        num_attention_heads=8, num_key_value_heads=4, head_dim=32,
        pad_token_id=0, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = transformers.Qwen3ForCausalLM(config).eval().to(options.device)
    constraint = catalog.constraint(
        [(16 + options.codes * level, options.codes) for level in range(options.levels)],
        num_tokens=num_tokens,
    )
    ids = torch.randint(
        0, 16, (options.requests, 200), generator=torch.Generator().manual_seed(1)
    ).to(options.device)
    settings = {
        "do_sample": False,
        "max_new_tokens": options.levels,
        "custom_generate": beam_search,
        "constraint": constraint,
        "beam_width": options.beams,
    }
    on_device = device_tables(constraint, options.device)
    for share_prompt, tables in (
        (True, None),
        (False, None),
        (True, on_device),
        (False, on_device),
    ):
        more = {"share_prompt": share_prompt, "tables": tables}
        took = median(
            lambda more=more: model.generate(
                ids, attention_mask=torch.ones_like(ids), **more, **settings
            ),
            options,
            rounds=5,
        )
        print(
            f"beam_search of {options.requests} requests, {'shared' if share_prompt else 'repeated'} prompt, "
            f"beams chosen {'on the host' if tables is None else 'on the device'}: {took * 1e3:.1f} ms"
        )


def medians(
    ways: dict[str, list[Callable[[], Any]]], options: argparse.Namespace
) -> dict[str, list[float]]:
    """Median seconds of each way's step at each level, the ways by turns."""
    clock = time.process_time if options.device == "cpu" else time.perf_counter
    found: dict[str, list[float]] = {name: [] for name in ways}
    order = random.Random(1)
    with torch.inference_mode():
        for level in range(options.levels):
            times: dict[str, list[float]] = {name: [] for name in ways}
            for number in range(options.rounds + 2):
                # In another order each time: a way finds the caches as the one before left them.
                for name in order.sample(list(ways), len(ways)):
                    start = clock()
                    ways[name][level]()
                    if options.device != "cpu":
                        torch.cuda.synchronize()
                    if number >= 2:
                        times[name].append(clock() - start)
            for name, each in times.items():
                found[name].append(statistics.median(each))
    return found


def median(run: Callable[[], Any], options: argparse.Namespace, rounds: int | None = None) -> float:
    """Median seconds of a call, the device's work included; on the CPU, CPU seconds, which other programs do not change."""
    clock = time.process_time if options.device == "cpu" else time.perf_counter
    times = []
    with torch.inference_mode():
        for number in range((rounds or options.rounds) + 2):
            start = clock()
            run()
            if options.device != "cpu":
                torch.cuda.synchronize()
            if number >= 2:
                times.append(clock() - start)
    return statistics.median(times)


def device_name(device: str) -> str:
    if device != "cpu":
        return torch.cuda.get_device_name(device)
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


if __name__ == "__main__":
    main()
