"""SGLang's beam search over a catalog: valid, equal to transformers', and its time over a search without a catalog.

A random model of OneRec-1.7B's shape (Qwen3-1.7B with three codebooks of 8,192 behind its vocabulary) over a million items, a prompt of
1,024 tokens, 128 and 512 beams. SGLang's own functions choose the beams (`_rows_topk_logprobs`, `_select_group` of its coordinator) around
the forward pass of transformers: without a catalog, with one, and with a filter that a hundredth of the items meet. Results have to be
items that meet the filter, and those of `palmette.transformers` to the token; the script fails otherwise. Times are medians of `--rounds`.

`--engine` runs SGLang itself besides, over the same weights, where it is installed with its kernels. `--tiny` is small enough for any CPU.

    python python/bench/sglang_beams.py --device cuda [--engine]     # some minutes
    PALMETTE_SGLANG=FOLDER python python/bench/sglang_beams.py --tiny     # FOLDER has SGLang's unzipped wheel
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if "PALMETTE_SGLANG" in os.environ:
    sys.path.insert(0, os.environ["PALMETTE_SGLANG"])
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "engines"))

import numpy as np
import palmette
import torch
import transformers
from palmette._catalog_requests import DeviceItems
from palmette.sglang import beams as hooks
from palmette.torch_tables import device_tables
from palmette.transformers import beam_search
from palmette.transformers.attention import Padding
from palmette.transformers.beam_search import _prefill
from palmette.transformers.forward import beams_on
from palmette.transformers.selection import Chosen
from sglang.srt.beam_search.beam_group import BeamGroup
from sglang.srt.plugins.hook_registry import HookRegistry
from sglang_sources import coordinator as coordinator_of

coordinator = coordinator_of()

LEVELS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--beams", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--prompt", type=int, default=1024)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--codes", type=int, default=8192, help="codes a level")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--engine", action="store_true", help="SGLang itself, too")
    parser.add_argument("--tiny", action="store_true", help="a model of two layers, 300 items, 8 and 40 beams")
    options = parser.parse_args()
    if options.tiny:
        options.beams, options.prompt, options.items, options.codes, options.rounds = [8, 40], 12, 300, 16, 2
    hooks.register()
    HookRegistry.apply_hooks()

    model, first = make_model(options)
    shop = Shop(options, first, model.config.vocab_size)
    prompt = torch.randint(0, first, (1, options.prompt), generator=torch.Generator().manual_seed(1)).to(options.device)
    print(
        f"{options.items:,} items, {LEVELS} levels of {options.codes}, prompt {options.prompt}, vocabulary {model.config.vocab_size:,}, "
        f"{model.config.num_hidden_layers} layers of {model.config.hidden_size}, {model.dtype}, {options.device}, torch {torch.__version__}, "
        f"transformers {transformers.__version__}"
    )
    print(f"{'beams':>6}  {'search':28}{'ms':>9}{'of it the choice':>18}{'over no catalog':>17}{'results':>9}{'invalid':>9}")
    found: dict[tuple[int, str], list[list[int]]] = {}
    for width in options.beams:
        measure(options, model, prompt, shop, width, found)
    if options.engine:
        in_engine(options, model, prompt, shop, found)


class Shop:
    """A catalog with a filter that a hundredth of its items meet, in the model's tokens, on the device."""

    def __init__(self, options: argparse.Namespace, first: int, num_tokens: int) -> None:
        rng = np.random.default_rng(0)
        codes = rng.integers(0, options.codes, size=(options.items, LEVELS))
        self.catalog = palmette.Catalog.build(codes, attributes={"share": rng.permutation(options.items).tolist()})
        self.code_tokens = [[first + level * options.codes, options.codes] for level in range(LEVELS)]
        spelled = [(token, num) for token, num in self.code_tokens]
        self.constraint = self.catalog.constraint(spelled, num_tokens=num_tokens)
        self.filter = {"range": {"share": {"lt": max(options.items // 100, 1)}}}
        begun = time.perf_counter()
        self.tables = device_tables(self.constraint, options.device)
        built = time.perf_counter()
        self.few = self.constraint.filtered(self.filter)
        self.masks = self.tables.edge_masks(self.few)
        print(f"tables {self.tables.nbytes / 1e6:.1f} MB in {built - begun:.2f} s, the filter {time.perf_counter() - built:.3f} s")

    def items(self, is_filtered: bool) -> DeviceItems:
        return DeviceItems(self.tables, self.masks if is_filtered else None, self.constraint.num_tokens)

    def num_invalid(self, rows: list[list[int]], is_filtered: bool) -> int:
        if not rows:
            return 0
        constraint = self.few if is_filtered else self.constraint
        return sum(not ids for ids in constraint.decode(np.array(rows)))


def make_model(options: argparse.Namespace) -> tuple[Any, int]:
    """The model, and the token of the first level's first code."""
    torch.manual_seed(0)
    words = 64 if options.tiny else 151_936
    shape: dict[str, Any] = {"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16}
    shape |= {"num_key_value_heads": 8, "head_dim": 128}
    if options.tiny:
        shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
        shape |= {"num_key_value_heads": 2, "head_dim": 8}
    config = transformers.Qwen3Config(
        vocab_size=words + LEVELS * options.codes,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=None,
        **shape,
    )
    dtype = torch.float32 if options.device == "cpu" else torch.bfloat16
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(options.device):
            model: Any = transformers.Qwen3ForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)
    # Logits of a trained model are further apart than those of a random one.
    with torch.no_grad():
        model.model.norm.weight.mul_(4.0)
    return model, words


class Choice:
    """SGLang's choice of beams by its own functions, with the time that it takes on the device."""

    def __init__(self, width: int, items: DeviceItems | None, device: torch.device) -> None:
        plain = BeamGroup(beam_width=width, max_new_tokens=LEVELS, device=device)
        plain.leader, plain.prompt_len = None, 0
        self.group = plain if items is None else hooks.ItemGroup(plain, items)
        self.device = device
        self.marks: list[tuple[Any, Any]] = []

    def step(self, logits: torch.Tensor) -> Chosen:
        begin = self._mark()
        pieces = [logits[:1], logits[1:]]
        top_logprobs, top_tokens = coordinator._rows_topk_logprobs(pieces, self.group.num_candidates)
        tokens, parents = coordinator.BeamCoordinator._select_group(None, self.group, top_logprobs, top_tokens, 0)
        self.marks.append((begin, self._mark()))
        if parents is None:
            parents = torch.zeros_like(tokens)
        return Chosen(parents.unsqueeze(0), tokens.unsqueeze(0), np.array([len(tokens)]))

    def _mark(self) -> Any:
        if self.device.type == "cpu":
            return time.perf_counter()
        mark = torch.cuda.Event(enable_timing=True)
        mark.record()
        return mark

    def milliseconds(self) -> float:
        if self.device.type == "cpu":
            return sum(end - begin for begin, end in self.marks) * 1e3
        torch.cuda.synchronize()
        return sum(float(begin.elapsed_time(end)) for begin, end in self.marks)


def sglang_search(model: Any, input_ids: torch.Tensor, *_: Any, generation_config: Any = None, choice: Choice, **kwargs: Any) -> Any:
    """A search as `custom_generate`: the forward passes are transformers', the choice is SGLang's."""
    for unused in ("logits_processor", "stopping_criteria"):
        kwargs.pop(unused, None)
    with torch.inference_mode():
        padding = Padding.from_mask(kwargs.get("attention_mask"))
        outputs, kwargs = _prefill(model, input_ids, generation_config, kwargs)
        chosen = choice.step(outputs.logits[:, -1])
        beams = beams_on(model, input_ids, kwargs, share_prompt=None, padding=padding, num_levels=LEVELS)
        for _ in range(1, LEVELS):
            chosen = choice.step(beams.advance(model, chosen))
    choice.group.commit_pending()
    return choice.group.finalize()


def measure(
    options: argparse.Namespace, model: Any, prompt: torch.Tensor, shop: Shop, width: int, found: dict[tuple[int, str], list[list[int]]]
) -> None:
    kinds: Sequence[tuple[str, DeviceItems | None, bool]] = (
        ("no catalog", None, False),
        ("catalog", shop.items(False), False),
        ("catalog, filter of 1%", shop.items(True), True),
    )
    times: dict[str, list[tuple[float, float]]] = {name: [] for name, *_ in kinds}
    device = prompt.device
    common: dict[str, Any] = {"do_sample": False, "max_new_tokens": LEVELS, "attention_mask": torch.ones_like(prompt)}
    for number in range(options.rounds + 2):  # The first rounds warm up.
        for name, items, _ in kinds:
            choice = Choice(width, items, device)
            begun = time.perf_counter()
            results = model.generate(prompt, custom_generate=sglang_search, choice=choice, **common)
            if device.type != "cpu":
                torch.cuda.synchronize()
            if number > 1:
                times[name].append(((time.perf_counter() - begun) * 1e3, choice.milliseconds()))
            found[width, name] = [result.tokens for result in results]
    base = statistics.median(wall for wall, _ in times["no catalog"])
    wrong = []
    for name, items, is_filtered in kinds:
        wall, choosing = (statistics.median(each) for each in zip(*times[name], strict=True))
        rows = found[width, name]
        invalid = shop.num_invalid(rows, is_filtered)
        print(f"{width:6}  {name:28}{wall:9.1f}{choosing:18.2f}{wall / base:16.2f}x{len(rows):9}{invalid:9}")
        if items is None:
            continue
        expected = model.generate(
            prompt,
            custom_generate=beam_search,
            constraint=shop.constraint,
            beam_width=width,
            filters=[shop.few.items] if is_filtered else None,
            tables=shop.tables,
            **common,
        )
        if invalid:
            wrong.append(f"{width} beams, {name}: {invalid} results are no items")
        if rows != expected.sequences.tolist():
            wrong.append(f"{width} beams, {name}: other tokens than those of palmette.transformers")
    if wrong:
        raise SystemExit("\n".join(wrong))


def in_engine(
    options: argparse.Namespace, model: Any, prompt: torch.Tensor, shop: Shop, found: dict[tuple[int, str], list[list[int]]]
) -> None:
    """SGLang with its kernels, scheduler and cache, over the same weights: validity, time, and how much of the results is the same.

    Its kernels round in other places than transformers', so that near scores may change places.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save_pretrained(folder / "model")
        shop.catalog.save(folder / "shop.palm")
        (folder / "catalogs.json").write_text(json.dumps({"shop": {"path": str(folder / "shop.palm"), "code_tokens": shop.code_tokens}}))
        os.environ["PALMETTE_CATALOGS"] = str(folder / "catalogs.json")
        import sglang

        engine = sglang.Engine(
            model_path=str(folder / "model"),
            skip_tokenizer_init=True,
            page_size=1,
            max_running_requests=2 * max(options.beams),
            mem_fraction_static=0.5,
        )
        try:
            for width in options.beams:
                for kind, argument in (
                    ("no catalog", None),
                    ("catalog", {}),
                    ("catalog, filter of 1%", {"filter": shop.filter}),
                ):
                    report_engine(engine, options, prompt, shop, width, kind, argument, found[width, kind])
        finally:
            engine.shutdown()


def report_engine(
    engine: Any,
    options: argparse.Namespace,
    prompt: torch.Tensor,
    shop: Shop,
    width: int,
    kind: str,
    argument: dict[str, Any] | None,
    expected: list[list[int]],
) -> None:
    params: dict[str, Any] = {"beam_width": width, "n": width, "max_new_tokens": LEVELS, "ignore_eos": True}
    if argument is not None:
        params["custom_params"] = {"palmette": json.dumps(argument)}
    ask: Callable[[], Any] = lambda: engine.generate(input_ids=[prompt[0].tolist()], sampling_params=params)  # noqa: E731
    times = []
    for _ in range(options.rounds + 2):
        begun = time.perf_counter()
        (answer,) = ask()
        times.append((time.perf_counter() - begun) * 1e3)
    rows = [list(each["output_ids"]) for each in answer["meta_info"]["beam_results"]]
    invalid = shop.num_invalid(rows, argument is not None and bool(argument))
    same = len({tuple(row) for row in rows} & {tuple(row) for row in expected})
    print(
        f"{width:6}  engine: {kind:20}{statistics.median(times[2:]):9.1f}{'':35}{len(rows):9}{invalid:9}   {same} of {len(expected)} as above"
    )
    if argument is not None and invalid:
        raise SystemExit(f"SGLang, {width} beams, {kind}: {invalid} results are no items")


if __name__ == "__main__":
    main()
