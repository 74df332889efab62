"""Grammar engines side by side in one process: the same schemas, the same tokens, the same arrays.

For every schema and every text whose verdict is known (JSONSchemaBench's `tests`), the text is cut into tokens once, and each
engine fills the mask before every token and commits it. Reported are the times of compiling, of masks and of commits, and wrong
answers: a valid text refused, or an invalid one taken to its end. Then 64 rows at once, as a batch of requests has them.

    python python/bench/peers.py schemas.jsonl[.xz] [--engines palmette,llguidance,xgrammar,glrmask] [--schemas 100]

The file has a line a schema: `{"name", "schema", "tests": [{"valid", "data"}]}`. Engines that cannot be imported are left out and
named. All of them run on this machine at once with whatever else it does: compare columns of one run, not runs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import lzma
import os
import pathlib
import random
import time
from typing import Any

import numpy as np

import palmette


class Refused(Exception):
    """A schema that the engine does not take."""


class Palmette:
    """Options as they are by default: any order of members, bounded whitespace, notes on what is enforced in part."""

    def __init__(self, vocabulary: palmette.Vocabulary):
        self.vocabulary, self.name = vocabulary, "palmette"

    def compile(self, schema: str) -> Any:
        try:
            return palmette.Grammar.from_json_schema(schema).compile(self.vocabulary)
        except palmette.Error as error:
            raise Refused(str(error)) from error

    def start(self, compiled: Any) -> Any:
        return compiled.matcher()

    def fill(self, matcher: Any, bitmask: Any, row: int) -> None:
        matcher.fill_mask(bitmask, row)

    def commit(self, matcher: Any, token: int) -> bool:
        return matcher.try_commit(token)

    def accepts(self, matcher: Any) -> bool:
        return matcher.is_accepting

    def bitmask(self, rows: int) -> Any:
        return palmette.allocate_bitmask(rows, len(self.vocabulary))

    def words(self, bitmask: Any) -> np.ndarray:
        return bitmask

    def fill_batch(self, matchers: list[Any], bitmask: Any) -> None:
        palmette.fill_masks(matchers, bitmask)


class LLGuidance:
    def __init__(self, vocabulary: palmette.Vocabulary):
        self.engine = importlib.import_module("llguidance")
        self.helper = importlib.import_module("llguidance.numpy")
        self.name = f"llguidance {self.engine.__version__}" if hasattr(self.engine, "__version__") else "llguidance"
        texts = [vocabulary.text(token) for token in range(len(vocabulary))]

        class Tokenizer:
            eos_token_id, bos_token_id = vocabulary.ends[0], None
            tokens = [text or b"<special>" for text in texts]
            special_token_ids = [token for token, text in enumerate(texts) if not text]

            def __call__(self, text: str | bytes) -> list[int]:
                return vocabulary.encode(text if isinstance(text, str) else text.decode(errors="replace"))

        self.tokenizer = self.engine.LLTokenizer(self.engine.TokenizerWrapper(Tokenizer()))
        self.num_tokens = len(vocabulary)
        self.executor = self.engine.LLExecutor()

    def compile(self, schema: str) -> Any:
        try:
            grammar = self.engine.LLMatcher.grammar_from_json_schema(schema)
            matcher = self.engine.LLMatcher(self.tokenizer, grammar, log_level=0)
        except ValueError as error:
            raise Refused(str(error)) from error
        if matcher.is_error():
            raise Refused(matcher.get_error())
        return matcher

    def start(self, compiled: Any) -> Any:
        return compiled.deep_copy()

    def fill(self, matcher: Any, bitmask: Any, row: int) -> None:
        self.helper.fill_next_token_bitmask(matcher, bitmask, row)

    def commit(self, matcher: Any, token: int) -> bool:
        return matcher.consume_token(token)

    def accepts(self, matcher: Any) -> bool:
        return matcher.is_accepting()

    def bitmask(self, rows: int) -> Any:
        return self.helper.allocate_token_bitmask(rows, self.num_tokens)

    def words(self, bitmask: Any) -> np.ndarray:
        return bitmask

    def fill_batch(self, matchers: list[Any], bitmask: Any) -> None:
        pairs = [(matcher, row) for row, matcher in enumerate(matchers)]
        self.helper.fill_next_token_bitmask_par(self.executor, pairs, bitmask)


class XGrammar:
    """`strict_mode=False` and `any_order=True` where it is known: what the standard says."""

    def __init__(self, vocabulary: palmette.Vocabulary):
        self.engine = importlib.import_module("xgrammar")
        self.name = f"xgrammar {getattr(self.engine, '__version__', '')}".strip()
        texts = [vocabulary.text(token) for token in range(len(vocabulary))]
        self.info = self.engine.TokenizerInfo(texts, stop_token_ids=vocabulary.ends)
        self.compiler = self.engine.GrammarCompiler(self.info, cache_enabled=False)
        self.batch = self.engine.BatchGrammarMatcher(max_threads=os.cpu_count() or 1)
        self.num_tokens = len(vocabulary)

    def compile(self, schema: str) -> Any:
        try:
            return self.compiler.compile_json_schema(schema, strict_mode=False)
        except RuntimeError as error:
            raise Refused(str(error)) from error

    def start(self, compiled: Any) -> Any:
        return self.engine.GrammarMatcher(compiled)

    def fill(self, matcher: Any, bitmask: Any, row: int) -> None:
        matcher.fill_next_token_bitmask(bitmask, row)

    def commit(self, matcher: Any, token: int) -> bool:
        return matcher.accept_token(token)

    def accepts(self, matcher: Any) -> bool:
        return matcher.is_completed()

    def bitmask(self, rows: int) -> Any:
        return self.engine.allocate_token_bitmask(rows, self.num_tokens)

    def words(self, bitmask: Any) -> np.ndarray:
        return bitmask.numpy()

    def fill_batch(self, matchers: list[Any], bitmask: Any) -> None:
        self.batch.batch_fill_next_token_bitmask(matchers, bitmask)


class GlrMask:
    def __init__(self, vocabulary: palmette.Vocabulary):
        self.engine = importlib.import_module("glrmask")
        self.name = f"glrmask {getattr(self.engine, '__version__', '')}".strip()
        texts = {token: vocabulary.text(token) for token in range(len(vocabulary)) if vocabulary.text(token)}
        self.vocabulary = self.engine.Vocab.from_id_to_bytes(texts)
        self.num_tokens = len(vocabulary)

    def compile(self, schema: str) -> Any:
        try:
            return self.engine.Grammar.from_json_schema(schema).compile(self.vocabulary)
        except ValueError as error:
            raise Refused(str(error)) from error

    def start(self, compiled: Any) -> Any:
        return compiled.start()

    def fill(self, matcher: Any, bitmask: Any, row: int) -> None:
        matcher.fill_mask(bitmask[row])

    def commit(self, matcher: Any, token: int) -> bool:
        return matcher.commit_token(token)

    def accepts(self, matcher: Any) -> bool:
        accepting = matcher.is_accepting
        return accepting() if callable(accepting) else accepting

    def bitmask(self, rows: int) -> Any:
        return palmette.allocate_bitmask(rows, self.num_tokens)

    def words(self, bitmask: Any) -> np.ndarray:
        return bitmask

    fill_batch = None


ENGINES = {"palmette": Palmette, "llguidance": LLGuidance, "xgrammar": XGrammar, "glrmask": GlrMask}


class Tally:
    def __init__(self) -> None:
        self.refused = self.false_yes = self.false_no = self.right = self.not_in_mask = 0
        self.compile: list[float] = []
        self.first: list[float] = []
        self.fill: list[float] = []
        self.commit: list[float] = []


def percentile(values: list[float], share: float) -> float:
    return float(np.percentile(values, share)) if values else float("nan")


def run_text(engine: Any, compiled: Any, tokens: list[int], bitmask: Any, tally: Tally, clock: Any) -> bool:
    """True when the engine takes the text, with a mask before each token."""
    matcher, words = engine.start(compiled), engine.words(bitmask)
    for place, token in enumerate(tokens):
        began = clock()
        engine.fill(matcher, bitmask, 0)
        filled = clock()
        (tally.first if place == 0 else tally.fill).append(filled - began)
        if not int(words[0, token // 32]) >> (token % 32) & 1:
            return False
        began = clock()
        taken = engine.commit(matcher, token)
        tally.commit.append(clock() - began)
        if not taken:
            tally.not_in_mask += 1
            return False
    return engine.accepts(matcher)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("schemas", type=pathlib.Path)
    arguments.add_argument("--engines", default=",".join(ENGINES))
    arguments.add_argument("--vocabulary", default="o200k_base")
    arguments.add_argument("--schemas", dest="count", type=int, default=100)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--longest", type=int, default=400, help="tokens of a text")
    given = arguments.parse_args()

    opened = lzma.open(given.schemas, "rt") if given.schemas.suffix == ".xz" else given.schemas.open()
    with opened as lines:
        cases = [json.loads(line) for line in lines]
    random.Random(given.seed).shuffle(cases)
    cases = cases[: given.count]

    vocabulary = palmette.Vocabulary.encoding(given.vocabulary)
    engines, left_out = [], []
    for name in given.engines.split(","):
        try:
            engines.append(ENGINES[name](vocabulary))
        except ImportError as missing:
            left_out.append(f"{name} ({missing})")
    texts = {}
    for case in cases:
        # Laid out as `json.dumps` does: every engine's whitespace allows it.
        known = [(json.dumps(test["data"], ensure_ascii=False), test["valid"]) for test in case["tests"]]
        cut = [(vocabulary.encode(text), valid) for text, valid in known]
        texts[case["name"]] = [(tokens, valid) for tokens, valid in cut if len(tokens) <= given.longest]
    num_texts = sum(map(len, texts.values()))
    print(f"{len(cases)} schemas, {num_texts} texts of known verdict, {len(vocabulary)} tokens, {os.cpu_count()} processors")
    for missing in left_out:
        print(f"left out: {missing}")

    clock, tallies, ready = time.perf_counter, {}, {}
    for engine in engines:
        tally = tallies[engine.name] = Tally()
        bitmask, ready[engine.name] = engine.bitmask(1), []
        for case in cases:
            schema = json.dumps(case["schema"], ensure_ascii=False)
            began = clock()
            try:
                compiled = engine.compile(schema)
            except Refused:
                tally.refused += 1
                continue
            tally.compile.append(clock() - began)
            for tokens, valid in texts[case["name"]]:
                taken = run_text(engine, compiled, tokens, bitmask, tally, clock)
                tally.right += taken == valid
                tally.false_yes += taken and not valid
                tally.false_no += valid and not taken
                if valid and taken:
                    ready[engine.name].append((case["name"], compiled, tokens))

    head = f"{'':<22}" + "".join(f"{engine.name:>20}" for engine in engines)
    print(head)
    rows = [
        ("schemas refused", lambda t: f"{t.refused}"),
        ("texts judged right", lambda t: f"{t.right}"),
        ("invalid text taken", lambda t: f"{t.false_yes}"),
        ("valid text refused", lambda t: f"{t.false_no}"),
        ("in the mask, refused", lambda t: f"{t.not_in_mask}"),
        ("compile p50, ms", lambda t: f"{percentile(t.compile, 50) * 1e3:.2f}"),
        ("compile p99, ms", lambda t: f"{percentile(t.compile, 99) * 1e3:.2f}"),
        ("first mask p50, us", lambda t: f"{percentile(t.first, 50) * 1e6:.1f}"),
        ("mask p50, us", lambda t: f"{percentile(t.fill, 50) * 1e6:.1f}"),
        ("mask p99, us", lambda t: f"{percentile(t.fill, 99) * 1e6:.1f}"),
        ("mask p99.9, us", lambda t: f"{percentile(t.fill, 99.9) * 1e6:.1f}"),
        ("mask mean, us", lambda t: f"{float(np.mean(t.fill or [np.nan])) * 1e6:.1f}"),
        ("commit p50, us", lambda t: f"{percentile(t.commit, 50) * 1e6:.1f}"),
        ("commit p99, us", lambda t: f"{percentile(t.commit, 99) * 1e6:.1f}"),
    ]
    for label, value in rows:
        print(f"{label:<22}" + "".join(f"{value(tallies[engine.name]):>20}" for engine in engines))

    # 64 requests of the schemas that all engines take, each in the middle of a text, step by step.
    common = set.intersection(*({name for name, _, _ in ready[engine.name]} for engine in engines))
    order = [case["name"] for case in cases if case["name"] in common]
    if not order:
        return
    print(f"\n64 rows at once, of {len(order)} schemas that all took, 32 steps: ms a step")
    for engine in engines:
        if engine.fill_batch is None:
            print(f"  {engine.name:<20} fills no batches")
            continue
        known = {}
        for name, compiled, tokens in ready[engine.name]:
            known.setdefault(name, (compiled, tokens))
        bitmask, times = engine.bitmask(64), []
        requests = []
        for row in range(64):
            compiled, tokens = known[order[row % len(order)]]
            requests.append([engine.start(compiled), tokens, 0])
        for _ in range(32):
            began = clock()
            engine.fill_batch([request[0] for request in requests], bitmask)
            times.append(clock() - began)
            for request in requests:
                matcher, tokens, place = request
                if place < len(tokens):
                    engine.commit(matcher, tokens[place])
                    request[2] += 1
        print(
            f"  {engine.name:<20} p50 {percentile(times, 50) * 1e3:8.3f}   p99 {percentile(times, 99) * 1e3:8.3f}"
            f"   least {min(times) * 1e3:8.3f}"
        )


if __name__ == "__main__":
    main()
