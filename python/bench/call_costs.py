"""Cost of a call from Python above the same work in Rust, beside llguidance's and XGrammar's helpers where they are installed.

Each figure is the least of several runs of a loop, less a call that does nothing. Of masks the time of the same mask in Rust is
taken off too, as measured in the same process: what is left is the interpreter, the array's checks and the lock.

    python python/bench/call_costs.py [--vocabulary o200k_base] [--runs 300]
"""

from __future__ import annotations

import argparse
import importlib
import platform
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import palmette

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}

#: The text before the mask: any string may go on.
BEGUN = '{"name": "Jo'


#: Time of one run.
RUN_SECONDS = 0.0005


def nanoseconds(statement: str, names: dict[str, Any], runs: int) -> float:
    """The least time of a statement over runs that are short enough to fall between two turns of other programs."""
    timer = timeit.Timer(statement, globals=names)
    timer.timeit(10)
    once = min(timer.repeat(20, 10)) / 10
    number = max(1, int(RUN_SECONDS / max(once, 1e-9)))
    return min(timer.repeat(runs, number)) / number * 1e9


def module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        print(f"  ({name} is left out: {missing})")
        return None


def peers_tokens(vocabulary: palmette.Vocabulary) -> list[bytes]:
    return [vocabulary.text(token) for token in range(len(vocabulary))]


def llguidance_matcher(llguidance: Any, vocabulary: palmette.Vocabulary) -> Any:
    class Tokenizer:
        eos_token_id, bos_token_id = vocabulary.ends[0], None
        tokens = [text or b"<special>" for text in peers_tokens(vocabulary)]
        special_token_ids = [token for token, text in enumerate(peers_tokens(vocabulary)) if not text]

        def __call__(self, text: str | bytes) -> list[int]:
            return vocabulary.encode(text if isinstance(text, str) else text.decode(errors="replace"))

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
    matcher = llguidance.LLMatcher(tokenizer, llguidance.LLMatcher.grammar_from_json_schema(SCHEMA))
    matcher.consume_tokens(vocabulary.encode(BEGUN))
    return matcher


def xgrammar_matcher(xgrammar: Any, vocabulary: palmette.Vocabulary) -> Any:
    info = xgrammar.TokenizerInfo(peers_tokens(vocabulary), stop_token_ids=vocabulary.ends)
    compiled = xgrammar.GrammarCompiler(info).compile_json_schema(SCHEMA, strict_mode=False)
    matcher = xgrammar.GrammarMatcher(compiled)
    matcher.accept_string(BEGUN)
    return matcher


def report(name: str, total: float, inner: float | None = None) -> None:
    above = "" if inner is None else f"{total - inner:10.0f}"
    print(f"  {name:<58}{total:10.0f}{above}")


def own(label: str, vocabulary: palmette.Vocabulary, text: bytes, runs: int, arrays: dict[str, Any]) -> None:
    compiled = palmette.Grammar.from_json_schema(SCHEMA).compile(vocabulary)
    matcher = compiled.matcher()
    matcher.commit_bytes(text)
    token = int(matcher.allowed()[0])
    empty = nanoseconds("nothing()", {"nothing": ().__len__}, runs)
    rows = palmette.allocate_bitmask(64, len(vocabulary))
    matcher.fill_mask(rows)
    times = 500
    inner = min(matcher._seconds_of_masks(rows, times) for _ in range(runs)) / times * 1e9
    print(f"palmette, {label}: {len(vocabulary)} tokens, {rows.shape[1]} words; the mask in Rust: {inner:.0f} ns")
    print(f"  {'call':<58}{'ns':>10}{'above Rust':>10}")
    for name, make in arrays.items():
        array = make(64, len(vocabulary))
        cost = nanoseconds("fill(array, 0)", {"fill": matcher.fill_mask, "array": array}, runs) - empty
        report(f"fill_mask, {name}", cost, inner)
    names = {"m": matcher, "t": token, "many": [compiled.matcher() for _ in range(64)], "a": rows}
    names["fill"] = palmette.fill_masks
    for name, statement in [
        ("try_commit + rollback", "m.try_commit(t); m.rollback(1)"),
        ("is_accepting", "m.is_accepting"),
        ("position", "m.position"),
        ("fork", "m.fork()"),
        ("allowed", "m.allowed()"),
        ("fill_masks of 64, one thread", "fill(many, a, None, 1)"),
        ("fill_masks of 64, all threads", "fill(many, a)"),
    ]:
        report(name, nanoseconds(statement, names, runs) - empty)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--vocabulary", default="o200k_base")
    arguments.add_argument("--runs", type=int, default=300)
    given = arguments.parse_args()
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    torch = module("torch")
    arrays: dict[str, Callable[[int, int], Any]] = {
        "NumPy": palmette.allocate_bitmask,
        "MaskBuffer": lambda rows, tokens: palmette.MaskBuffer(palmette.allocate_bitmask(rows, tokens)),
    }
    if torch:
        arrays["torch"] = lambda rows, tokens: palmette.allocate_bitmask(rows, tokens, "torch", False)
        arrays["torch as NumPy"] = lambda rows, tokens: arrays["torch"](rows, tokens).numpy()
    small = palmette.Vocabulary([bytes([byte]) for byte in range(32, 64)])
    own("smallest", small, b"", given.runs, arrays)
    vocabulary = palmette.Vocabulary.encoding(given.vocabulary)
    own("in a string", vocabulary, BEGUN.encode(), given.runs, arrays)

    empty = nanoseconds("nothing()", {"nothing": ().__len__}, given.runs)
    llguidance = module("llguidance")
    if llguidance:
        helper = importlib.import_module("llguidance.numpy")
        matcher = llguidance_matcher(llguidance, vocabulary)
        array = np.full((64, palmette.bitmask_words(len(vocabulary))), -1, np.int32)
        names = {"m": matcher, "a": array, "fill": helper.fill_next_token_bitmask, "p": array.ctypes.data}
        print(f"llguidance, in a string: {len(vocabulary)} tokens")
        inner = nanoseconds(f"m.unsafe_compute_mask_ptr(p, {array.shape[1] * 4})", names, given.runs) - empty
        report("unsafe_compute_mask_ptr (an address)", inner)
        report("numpy.fill_next_token_bitmask", nanoseconds("fill(m, a, 0)", names, given.runs) - empty, inner)
        if torch:
            names["fill"] = importlib.import_module("llguidance.torch").fill_next_token_bitmask
            names["a"] = torch.full(array.shape, -1, dtype=torch.int32)
            report("torch.fill_next_token_bitmask", nanoseconds("fill(m, a, 0)", names, given.runs) - empty, inner)
        report("is_accepting", nanoseconds("m.is_accepting()", names, given.runs) - empty)
        report("deep_copy", nanoseconds("m.deep_copy()", names, given.runs) - empty)
    xgrammar = module("xgrammar") if torch else None
    if xgrammar:
        matcher = xgrammar_matcher(xgrammar, vocabulary)
        names = {"m": matcher, "a": xgrammar.allocate_token_bitmask(64, len(vocabulary))}
        print(f"xgrammar, in a string: {len(vocabulary)} tokens (no way to call it without its wrapper)")
        report("fill_next_token_bitmask", nanoseconds("m.fill_next_token_bitmask(a, 0)", names, given.runs) - empty)
        report("fork", nanoseconds("m.fork()", names, given.runs) - empty)


if __name__ == "__main__":
    main()
