"""One recommendation: Hugging Face `generate` with an item trie, beside `palmette recommend`.

Same checkpoint, same prompt, same beam width, same threads. README.md says how to run it, what
is inside each timing, and where `generate` differs from a plain beam search.
"""

import argparse
import json
import math
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, GenerationConfig
from transformers.generation.logits_process import PrefixConstrainedLogitsProcessor

# `generate` gives a row that only fills the beam a score of -1e9 or less, never a real item.
FILLER_SCORE = -1e8

Codes = tuple[int, ...]
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Level:
    prefix: str
    first_token: int
    num_codes: int


class SemanticIds:
    """How items are spelled in tokens: `semantic_ids.json` of the model, and the item index.

    `items` maps an item's ID to its codes. Several items may share their codes; `items_of` gives
    them all.
    """

    def __init__(self, model_dir: Path, index: Path):
        spec = json.loads((model_dir / "semantic_ids.json").read_text())
        self.bos_token: int = spec["bos_token"]
        self.pad_token: int = spec["pad_token"]
        self.max_history_items: int = spec["max_history_items"]
        self.levels = [
            Level(level["prefix"], level["first_token"], level["num_codes"])
            for level in spec["levels"]
        ]
        self.items: dict[str, Codes] = {
            item: self.read_codes(spelled) for item, spelled in json.loads(index.read_text()).items()
        }
        self.items_of: dict[Codes, list[str]] = {}
        for item, codes in self.items.items():
            self.items_of.setdefault(codes, []).append(item)

    def read_codes(self, spelled: list) -> Codes:
        """Codes from `["<a_105>", "<b_30>", ...]`, with or without the brackets, or from numbers."""
        if len(spelled) != len(self.levels):
            raise ValueError(f"{spelled} has {len(spelled)} codes; the model has {len(self.levels)} levels")
        codes = []
        for level, code in zip(self.levels, spelled):
            if not isinstance(code, int):
                match = re.fullmatch(r"<?([^\W_]+)_(\d+)>?", code)
                if match is None or match[1] != level.prefix:
                    raise ValueError(f"{code!r} is not a code of level {level.prefix!r}")
                code = int(match[2])
            if not 0 <= code < level.num_codes:
                raise ValueError(f"{level.prefix}_{code}: the level has {level.num_codes} codes")
            codes.append(code)
        return tuple(codes)

    def tokens(self, codes: Codes) -> Tokens:
        return tuple(level.first_token + code for level, code in zip(self.levels, codes))

    def codes(self, tokens) -> Codes:
        return tuple(token - level.first_token for level, token in zip(self.levels, tokens))

    def prompt(self, history: list[str]) -> list[int]:
        recent = history[-self.max_history_items :]
        return [self.bos_token] + [t for item in recent for t in self.tokens(self.items[item])]


class ItemTrie:
    """Every prefix of an item's tokens, with the tokens that may follow it.

    A row that fills the beam may hold a prefix of no item. `generate` refuses an empty list, so
    such a row is sent to the padding token; its score is at most -1e9 and stays there.
    """

    def __init__(self, ids: SemanticIds):
        follow: dict[Tokens, set[int]] = {}
        for codes in ids.items_of:
            tokens = ids.tokens(codes)
            for length, token in enumerate(tokens):
                follow.setdefault(tokens[:length], set()).add(token)
        self.follow: dict[Tokens, list[int]] = {p: sorted(s) for p, s in follow.items()}
        self.dead_end = [ids.pad_token]

    def callback(self, prompt_length: int):
        follow, dead_end = self.follow, self.dead_end

        def allowed_tokens(_batch: int, row: torch.Tensor) -> list[int]:
            return follow.get(tuple(row[prompt_length:].tolist()), dead_end)

        return allowed_tokens


@dataclass(frozen=True)
class Ranking:
    """Distinct code sequences, best first, with their scores."""

    codes: list[Codes]
    scores: list[float]

    def first(self, count: int) -> "Ranking":
        return Ranking(self.codes[:count], self.scores[:count])


class OnlyThisLevel:
    """Hides the logits of other levels' tokens, so that the softmax runs over one level's codes.

    `generate` takes its softmax before any logits processor runs, so this hooks the model itself.
    """

    def __init__(self, model, ids: SemanticIds):
        self.levels = ids.levels
        self.step = 0
        model.register_forward_hook(self)

    def restart(self) -> None:
        self.step = 0

    def __call__(self, _model, _inputs, output):
        level = self.levels[self.step]
        kept = slice(level.first_token, level.first_token + level.num_codes)
        hidden = torch.full_like(output.logits, -math.inf)
        hidden[..., kept] = output.logits[..., kept]
        output.logits = hidden
        self.step += 1
        return output


class HuggingFace:
    """`generate` as a user would call it for one recommendation."""

    def __init__(self, args, ids: SemanticIds):
        self.model = AutoModelForCausalLM.from_pretrained(
            args.model,
            dtype=getattr(torch, args.dtype),
            attn_implementation=args.attention,
            local_files_only=True,
        ).eval()
        # What the directory asks for (a sampling temperature, an end token) must not leak in.
        self.model.generation_config = GenerationConfig()
        self.ids, self.trie = ids, ItemTrie(ids)
        self.beam_width = args.beam_width
        self.only_level = OnlyThisLevel(self.model, ids) if args.softmax_over == "level" else None

    def recommend(self, prompt: list[int], count: int, prompt_once=False, callback=None) -> Ranking:
        """The best `count` code sequences; `prompt_once` reads the prompt for one row, not W."""
        if self.only_level:
            self.only_level.restart()
        input_ids = torch.tensor([prompt])
        cache = {"past_key_values": self.read_prompt(prompt)} if prompt_once else {}
        output = self.model.generate(
            input_ids,
            attention_mask=torch.ones_like(input_ids),
            num_beams=self.beam_width,
            num_return_sequences=count,
            prefix_allowed_tokens_fn=callback or self.trie.callback(len(prompt)),
            max_new_tokens=len(self.ids.levels),
            do_sample=False,
            length_penalty=0.0,
            early_stopping=False,
            eos_token_id=None,
            pad_token_id=self.ids.pad_token,
            return_dict_in_generate=True,
            output_scores=True,
            **cache,
        )
        return self.ranking(output.sequences[:, len(prompt) :], output.sequences_scores)

    @torch.no_grad()
    def read_prompt(self, prompt: list[int]):
        """The keys and values of all prompt tokens but the last, repeated for every beam."""
        model = self.model.model  # The decoder without its head: no logits are needed here.
        cache = model(input_ids=torch.tensor([prompt[:-1]]), use_cache=True).past_key_values
        cache.batch_repeat_interleave(self.beam_width)
        return cache

    def ranking(self, sequences: torch.Tensor, scores: torch.Tensor) -> Ranking:
        kept = [
            (self.ids.codes(row), score)
            for row, score in zip(sequences.tolist(), scores.tolist())
            if score > FILLER_SCORE
        ]
        return Ranking([codes for codes, _ in kept], [score for _, score in kept])

    def constraint_times(self, prompt: list[int], count: int) -> dict[str, float]:
        """One run with clocks: milliseconds in the callback, in all of the constraint, in total."""
        spent = {"callback": 0.0, "constraint": 0.0}
        allowed_tokens = self.trie.callback(len(prompt))
        plain_call = PrefixConstrainedLogitsProcessor.__call__

        def timed(name, function):
            def run(*arguments):
                start = time.perf_counter()
                result = function(*arguments)
                spent[name] += (time.perf_counter() - start) * 1e3
                return result

            return run

        PrefixConstrainedLogitsProcessor.__call__ = timed("constraint", plain_call)
        try:
            start = time.perf_counter()
            self.recommend(prompt, count, callback=timed("callback", allowed_tokens))
            spent["total"] = (time.perf_counter() - start) * 1e3
        finally:
            PrefixConstrainedLogitsProcessor.__call__ = plain_call
        return spent

    @torch.no_grad()
    def level_log_probs(self, rows: list[list[int]], level: int) -> torch.Tensor:
        """`[rows, V]`: log-probabilities of the next token, every row read whole, without a cache."""
        if self.only_level:
            self.only_level.step = level
        logits = self.model(input_ids=torch.tensor(rows), use_cache=False, logits_to_keep=1).logits
        return logits[:, -1].float().log_softmax(dim=-1)

    def beam_search_by_definition(self, prompt: list[int]) -> Ranking:
        """Beam search, executed as it is defined: only live rows, only allowed tokens."""
        beams: list[tuple[Tokens, float]] = [((), 0.0)]
        for level in range(len(self.ids.levels)):
            log_probs = self.level_log_probs([prompt + list(t) for t, _ in beams], level)
            grown = [
                (tokens + (token,), score + row[token].item())
                for (tokens, score), row in zip(beams, log_probs)
                for token in self.trie.follow[tokens]
            ]
            beams = sorted(grown, key=lambda beam: -beam[1])[: self.beam_width]
        return Ranking([self.ids.codes(t) for t, _ in beams], [s for _, s in beams])

    def largest_error_as_sums(self, prompt: list[int], ranking: Ranking) -> float:
        """How far the scores are from plain sums of log-probabilities."""
        sums = [0.0] * len(ranking.codes)
        tokens = [self.ids.tokens(codes) for codes in ranking.codes]
        for level in range(len(self.ids.levels)):
            log_probs = self.level_log_probs([prompt + list(t[:level]) for t in tokens], level)
            sums = [s + row[t[level]].item() for s, row, t in zip(sums, log_probs, tokens)]
        return max((abs(a - b) for a, b in zip(sums, ranking.scores)), default=0.0)


def run_palmette(args, ids: SemanticIds, history: list[str]) -> tuple[Ranking, dict[str, float]]:
    """Palmette's answer as distinct code sequences, and its own timings in milliseconds."""
    command = [
        args.palmette, "recommend", "--include-seen",
        "--model", str(args.model),
        "--catalog", str(args.catalog),
        "--history", ",".join(history),
        "-k", str(args.k),
        "--beam-width", str(args.beam_width),
        "--threads", str(args.threads),
        "--repeat", str(args.repeat),
        "--timings", "--json",
        *args.palmette_arg,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}\nended with {done.returncode}:\n{done.stderr}")
    answer = json.loads(done.stdout)
    best: dict[Codes, float] = {}
    for item in answer["items"]:
        codes = ids.read_codes(item["codes"])
        if ids.items.get(str(item["id"])) != codes:
            raise ValueError(f"item {item['id']} has codes {codes}, which the index does not say")
        best.setdefault(codes, item["score"])
    return Ranking(list(best), list(best.values())), answer["timings_ms"]


@dataclass(frozen=True)
class Agreement:
    """Whether two rankings are the same, up to swaps of equal scores.

    `same_order` looks at the reference's scores only: the sequence the other one puts at place i
    must score there, by the reference, what the reference's own place i scores. So sequences
    that tie may swap, with each other or across the cut at k, and nothing else may move.
    """

    same_order: bool
    num_compared: int
    num_same_place: int
    max_score_difference: float | None
    reason: str

    def __str__(self) -> str:
        if not self.same_order:
            return f"NO: {self.reason}"
        swaps = self.num_compared - self.num_same_place
        return f"yes ({swaps} tied swap{'s' * (swaps != 1)})" if swaps else "yes"


def agreement(reference: Ranking, other: Ranking, expected: int, tolerance: float) -> Agreement:
    """Compares the first `expected` places; `reference` holds more than those, for ties at the cut."""
    score_of = dict(zip(reference.codes, reference.scores))
    reason = ""
    expected = min(expected, len(reference.codes))
    if len(other.codes) != expected:
        reason = f"{len(other.codes)} sequences, {expected} expected"
    places = list(zip(reference.codes, reference.scores, other.codes))[:expected]
    for place, (_, score, codes) in enumerate(places, start=1):
        there = score_of.get(codes, -math.inf)
        if not abs(there - score) <= tolerance and not reason:
            name = "-".join(map(str, codes))
            known = f"scores {there:.5f}" if codes in score_of else "is not in the reference's beam"
            reason = f"place {place} is {name}, which {known}; the reference's scores {score:.5f}"
    shared = [abs(score_of[c] - s) for c, s in zip(other.codes, other.scores) if c in score_of]
    return Agreement(
        same_order=not reason,
        num_compared=len(places),
        num_same_place=sum(a == b for a, _, b in places),
        max_score_difference=max(shared, default=None),
        reason=reason,
    )


def expected_places(ids: SemanticIds, reference: Ranking, k: int) -> int:
    """How many distinct code sequences k items make: items that share codes take several places."""
    places = filled = 0
    for codes in reference.codes:
        if filled >= k:
            break
        filled += len(ids.items_of[codes])
        places += 1
    return places


def clock(function, repeat: int) -> list[float]:
    """Milliseconds of each of `repeat` calls, after one that is not counted."""
    function()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def compare_one(args, ids: SemanticIds, hf: HuggingFace, user: str, history: list[str]) -> dict:
    prompt = ids.prompt(history)
    row = {"user": user, "history_items": len(history), "prompt_tokens": len(prompt)}

    row["hf_ms"] = clock(lambda: hf.recommend(prompt, args.k), args.repeat)
    row["hf_median_ms"] = statistics.median(row["hf_ms"])
    if args.prompt_once:
        row["hf_prompt_once_ms"] = clock(lambda: hf.recommend(prompt, args.k, True), args.repeat)
        row["hf_prompt_once_median_ms"] = statistics.median(row["hf_prompt_once_ms"])
    row["hf_constraint_ms"] = hf.constraint_times(prompt, args.k)

    wide = hf.recommend(prompt, args.beam_width)
    row["hf_score_error_as_sums"] = hf.largest_error_as_sums(prompt, wide.first(args.k))
    row["hf_items"] = [
        {"ids": ids.items_of[codes], "codes": codes, "score": score}
        for codes, score in zip(wide.codes[: args.k], wide.scores)
    ]
    if args.prompt_once:
        once = hf.recommend(prompt, args.k, True)
        row["hf_prompt_once_agrees"] = vars(agreement(wide, once, args.k, args.tolerance))
    if args.check_hf:
        defined = hf.beam_search_by_definition(prompt)
        checked = agreement(defined, wide, args.beam_width, args.tolerance)
        row["hf_against_definition"] = vars(checked)
        if not checked.same_order:
            print(f"user {user}: generate is not the defined beam search: {checked.reason}")

    if args.palmette:
        answer, timings = run_palmette(args, ids, history)
        places = expected_places(ids, wide, args.k)
        compared = agreement(wide, answer, places, args.tolerance)
        row["palmette_ms"] = timings
        row["ratio"] = row["hf_median_ms"] / timings["total"]
        row["agreement"] = vars(compared)
        row["agreement_text"] = str(compared)
    return row


def choose_users(args, ids: SemanticIds) -> list[tuple[str, list[str]]]:
    """The users with the longest histories, and the last `--history-items` of each."""
    histories = json.loads(args.histories.read_text())
    longest_first = sorted(histories.items(), key=lambda pair: -len(pair[1]))
    kept = min(args.history_items, ids.max_history_items)
    return [(user, [str(i) for i in items[-kept:]]) for user, items in longest_first[: args.users]]


def print_table(args, rows: list[dict]) -> None:
    print(
        f"\nMedian milliseconds of one recommendation: beam width {args.beam_width}, k {args.k}, "
        f"{args.threads} threads, {args.repeat} repeats\n"
    )
    head = f"{'user':>8} {'prompt':>6} {'HF':>10} {'HF, once':>10} {'palmette':>10} {'ratio':>7}"
    print(head + f" {'max |Δ|':>9}  same order")
    for row in rows:
        once = f"{row['hf_prompt_once_median_ms']:.2f}" if args.prompt_once else "-"
        line = f"{row['user']:>8} {row['prompt_tokens']:>6} {row['hf_median_ms']:>10.2f} {once:>10}"
        if "palmette_ms" in row:
            difference = row["agreement"]["max_score_difference"]
            shown = "none" if difference is None else f"{difference:.1e}"
            line += f" {row['palmette_ms']['total']:>10.2f} {row['ratio']:>6.1f}x {shown:>9}"
            line += f"  {row['agreement_text']}"
        print(line)


def warn_of_noise(args, rows: list[dict], load: float) -> None:
    """Busy cores slow threaded torch many times over: such numbers compare nothing."""
    if load > 0.5:
        print(f"WARNING: the load average was {load:.1f} before the first run; use an idle machine")
    columns = ["hf_ms"] + ["hf_prompt_once_ms"] * args.prompt_once
    spread = max(max(row[c]) / min(row[c]) for row in rows for c in columns)
    if spread > 1.5:
        print(f"WARNING: repeats of one HF run differ by up to {spread:.1f}x")


def summarise(args, rows: list[dict]) -> dict:
    def median_of(value) -> float:
        return statistics.median(value(row) for row in rows)

    summary = {
        "hf_median_ms": median_of(lambda r: r["hf_median_ms"]),
        "hf_constraint_ms": median_of(lambda r: r["hf_constraint_ms"]["constraint"]),
        "hf_callback_share": median_of(
            lambda r: r["hf_constraint_ms"]["callback"] / r["hf_constraint_ms"]["total"]
        ),
        "hf_constraint_share": median_of(
            lambda r: r["hf_constraint_ms"]["constraint"] / r["hf_constraint_ms"]["total"]
        ),
        "hf_score_error_as_sums": max(r["hf_score_error_as_sums"] for r in rows),
    }
    print(
        f"\nIn HF's time: allowed-tokens callback {summary['hf_callback_share']:.1%}, "
        f"callback and mask together {summary['hf_constraint_share']:.1%} "
        f"({summary['hf_constraint_ms']:.2f} ms)"
    )
    print(f"HF's scores are sums of log-probabilities within {summary['hf_score_error_as_sums']:.1e}")
    if args.prompt_once:
        summary["hf_prompt_once_median_ms"] = median_of(lambda r: r["hf_prompt_once_median_ms"])
        summary["hf_prompt_once_agrees"] = sum(r["hf_prompt_once_agrees"]["same_order"] for r in rows)
    if args.check_hf:
        same = sum(r["hf_against_definition"]["same_order"] for r in rows)
        summary["hf_is_defined_beam_search"] = same
        print(f"HF's whole beam equals beam search by definition for {same} of {len(rows)} users")
    if args.palmette:
        summary["palmette_median_ms"] = median_of(lambda r: r["palmette_ms"]["total"])
        summary["ratio"] = summary["hf_median_ms"] / summary["palmette_median_ms"]
        summary["users_agreeing"] = sum(r["agreement"]["same_order"] for r in rows)
        differences = [r["agreement"]["max_score_difference"] for r in rows]
        summary["max_score_difference"] = max((d for d in differences if d is not None), default=None)
        summary["ratio_prompt_once"] = None
        if args.prompt_once:
            summary["ratio_prompt_once"] = (
                summary["hf_prompt_once_median_ms"] / summary["palmette_median_ms"]
            )
        print(
            f"Over users: HF {summary['hf_median_ms']:.2f} ms, palmette "
            f"{summary['palmette_median_ms']:.2f} ms, ratio {summary['ratio']:.1f}x"
        )
        if args.prompt_once:
            print(
                f"With the prompt read once: HF {summary['hf_prompt_once_median_ms']:.2f} ms, "
                f"ratio {summary['ratio_prompt_once']:.1f}x"
            )
        print(
            f"Same items in the same order for {summary['users_agreeing']} of {len(rows)} users, "
            f"largest score difference {summary['max_score_difference']}"
        )
    return summary


def cpu_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    names = re.findall(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return names[0] if names else platform.machine()


def about_this_run(args, load: float) -> dict:
    about = {
        "command": shlex.join(sys.argv),
        "date": time.strftime("%Y-%m-%d"),
        "cpu": cpu_model(),
        "threads": args.threads,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "dtype": args.dtype,
        "attention": args.attention,
        "softmax_over": args.softmax_over,
        "load_average_before": load,
    }
    if args.palmette:
        version = subprocess.run([args.palmette, "--version"], capture_output=True, text=True, check=False)
        about["palmette"] = version.stdout.strip() or "unknown"
    return about


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--model", type=Path, required=True, help="Hugging Face directory with semantic_ids.json")
    add("--index", type=Path, required=True, help="item index: {item: ['<a_1>', ...]}")
    add("--histories", type=Path, required=True, help="{user: [items, oldest first]}")
    add("--catalog", type=Path, help="catalog built by palmette from the same index")
    add("--palmette", help="the palmette program; without it only Hugging Face runs")
    add("--palmette-arg", action="append", default=[], help="one more argument for palmette")
    add("--users", type=int, default=5)
    add("--history-items", type=int, default=50)
    add("--beam-width", type=int, default=128)
    add("-k", type=int, default=10)
    add("--threads", type=int, default=2)
    add("--repeat", type=int, default=5)
    add("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    add("--attention", default="sdpa", choices=["sdpa", "eager"])
    add("--softmax-over", default="vocabulary", choices=["vocabulary", "level"])
    add("--tolerance", type=float, default=1e-4, help="scores this close count as tied")
    add("--no-prompt-once", dest="prompt_once", action="store_false", help="skip that column")
    add("--check-hf", action="store_true", help="compare generate with beam search by definition")
    add("--json", type=Path, help="write everything measured here")
    args = parser.parse_args()
    if args.palmette and not args.catalog:
        parser.error("--palmette needs --catalog")
    if not 1 <= args.k <= args.beam_width:
        parser.error("-k must be at least 1 and at most the beam width")
    return args


def main() -> int:
    args = read_arguments()
    load = os.getloadavg()[0]
    torch.set_num_threads(args.threads)
    ids = SemanticIds(args.model, args.index)
    hf = HuggingFace(args, ids)
    rows = []
    for user, history in choose_users(args, ids):
        rows.append(compare_one(args, ids, hf, user, history))
        print(f"user {user}: done", file=sys.stderr)
    print_table(args, rows)
    summary = summarise(args, rows)
    warn_of_noise(args, rows, load)
    if args.json:
        report = {"about": about_this_run(args, load), "summary": summary, "users": rows}
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if all(row.get("agreement", {"same_order": True})["same_order"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
