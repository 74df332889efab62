#!/usr/bin/env python3
"""Share of XGrammar's and llguidance's own Python tests that pass over Palmette's compatibility layers.

    python peer_suites.py PATH… [--json FILE]

A path is a test file or a folder of tests of a checkout of XGrammar (`tests/python`) or llguidance (`python/torch_tests`),
which stay outside this repository. Each file runs in a process of its own, in which `import xgrammar` and `import llguidance`
find `palmette.compat`. Needs pytest, torch, transformers and pydantic, no GPU and no network: tests that load models from the
internet count as not run.

What of XGrammar's package is no interface of its engine is taken from the checkout: `structural_tag` and
`builtin_structural_tag`, models of documents that Palmette reads. `testing` is written here.

Palmette makes no texts in EBNF. Where a test compares such a text of XGrammar's, the comparison is left out, and what the test
asks besides counts: which texts are matched, which masks there are. A test that asks for nothing else, or for passes over
inner forms, is counted as one of inner form, whatever comes of it.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path

TEST_SECONDS = 60

# Classes of failures by what their messages say, the first that fits; the last takes the rest.
REASONS = [
    (
        "inner form of XGrammar: EBNF texts, passes, automata, kernels",
        r"PeerInternals|No module named 'xgrammar.kernels'|Palmette does not go by way of EBNF|has no text in EBNF",
    ),
    ("styles of arguments that are not JSON", r"the style .* of arguments is not known"),
    ("macros of XGrammar's EBNF", r"unexpected '[,=]'; here may stand a rule's name|this construct of XGrammar is not known"),
    ("attributes of rules that are not there", r"there is no attribute"),
    ("captures", r"captures are not recorded"),
    ("temperatures in grammars", r"temperatures?:? |temperature"),
    ("whitespace or separators that are not offered", r"max_whitespace_cnt|indent=|separators"),
    ("grammars that refer to named others", r"named_grammars|refer to each other|not joined with others"),
    ("serialised form", r"deserialize|serialize|__VERSION__"),
    ("needs another package", r"No module named '(?!xgrammar|llguidance|palmette)"),
    ("needs the internet", r"huggingface\.co|OSError.*(load|connect)|LocalEntryNotFound|ConnectionError|offline"),
    ("other NotImplementedError", r"NotImplementedError"),
    ("wording of an error", r"Regex pattern did not match|Pattern:|DID NOT MATCH|assert .* in '"),
    ("refused by Palmette's front end", r"GrammarRefused|GrammarError|SchemaUnsupported|InvalidStructuralTagError|LimitExceeded"),
    ("accepted where the peer refuses", r"DID NOT RAISE"),
    ("missing name", r"AttributeError|ImportError|ModuleNotFoundError|unexpected keyword"),
    ("another set of texts or tokens", r"AssertionError|assert "),
    ("other", r""),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--json", type=Path, help="write the outcome of each test there")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return run_file(arguments.paths[0], arguments.child)
    outcomes: dict[str, dict[str, list[str]]] = {}
    for path in (file for given in arguments.paths for file in files(given)):
        outcomes[str(path)] = in_process(path)
        show_file(path, outcomes[str(path)])
    show_total(outcomes)
    if arguments.json:
        arguments.json.write_text(json.dumps(outcomes, indent=1))
    return 0


def files(given: Path) -> list[Path]:
    return sorted(given.glob("test_*.py")) if given.is_dir() else [given]


def in_process(path: Path) -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory() as work:
        result = Path(work, "outcomes.json")
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        command = [sys.executable, __file__, str(path), "--child", str(result)]
        log = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
        if result.exists():
            return json.loads(result.read_text())
        return {str(path): ["failed", f"the file does not run: {(log.stdout + log.stderr)[-400:]}"]}


def show_file(path: Path, outcomes: dict[str, list[str]]) -> None:
    count = collections.Counter(outcome for outcome, _ in outcomes.values())
    print(f"{path.name:<52} {count['passed']:>5} of {count['passed'] + count['failed']:>5}, {count['skipped']} not run")
    sys.stdout.flush()


def show_total(outcomes: dict[str, dict[str, list[str]]]) -> None:
    all_ = [one for found in outcomes.values() for one in found.values()]
    count = collections.Counter(outcome for outcome, _ in all_)
    reasons = collections.Counter(reason_of(text) for outcome, text in all_ if outcome == "failed")
    run = count["passed"] + count["failed"]
    inner = reasons[REASONS[0][0]]
    print(f"\n{count['passed']} of {run} pass ({share(count['passed'], run)}), {count['skipped']} not run;", end=" ")
    print(f"without the peer's inner form {share(count['passed'], run - inner)}\n")
    for reason, number in reasons.most_common():
        print(f"{number:>6}  {reason}")


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "none"


def reason_of(text: str) -> str:
    return next(name for name, pattern in REASONS if re.search(pattern, text))


# In the child process.


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder of `peer` and its submodules in Palmette's layer, in the checkout, or in this file."""

    def __init__(self, peer: str, checkout: Path) -> None:
        self._peer = peer
        self._checkout = checkout
        self._here = {"xgrammar.testing": xgrammar_testing, "xgrammar.config": xgrammar_config}

    def find_spec(self, name, path=None, target=None):
        if name != self._peer and not name.startswith(self._peer + "."):
            return None
        if name.rpartition(".")[2] in ("structural_tag", "builtin_structural_tag", "openai_tool_call_schema"):
            file = self._checkout.joinpath("python", *name.split(".")).with_suffix(".py")
            return importlib.util.spec_from_file_location(name, file) if file.exists() else None
        if name in self._here:
            return importlib.machinery.ModuleSpec(name, self)
        if importlib.util.find_spec(f"palmette.compat.{name}") is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        if spec.name in self._here:
            return self._here[spec.name]()
        return importlib.import_module(f"palmette.compat.{spec.name}")

    def exec_module(self, module) -> None:
        pass


def run_file(path: Path, result: Path) -> int:
    import faulthandler
    import signal

    import pytest

    path = path.resolve()
    peer = "xgrammar" if "xgrammar" in path.read_text() else "llguidance"
    checkout = path
    while checkout.parent != checkout and not (checkout / "python" / peer).is_dir():
        checkout = checkout.parent
    sys.meta_path.insert(0, Alias(peer, checkout))
    if peer == "xgrammar":
        import xgrammar

        for name in ("testing", "config", "structural_tag", "builtin_structural_tag"):
            setattr(xgrammar, name, importlib.import_module(f"xgrammar.{name}"))
        for name in ("get_max_recursion_depth", "set_max_recursion_depth", "max_recursion_depth", "get_serialization_version"):
            setattr(xgrammar, name, getattr(xgrammar.config, name))
        for name in ("get_builtin_structural_tag", "get_model_structural_tag", "normalize_tool_choice"):
            if hasattr(xgrammar.builtin_structural_tag, name):
                setattr(xgrammar, name, getattr(xgrammar.builtin_structural_tag, name))
        leave_out_ebnf(xgrammar)
        xgrammar.StructuralTag = xgrammar.structural_tag.StructuralTag
        xgrammar.StructuralTagItem = xgrammar.structural_tag.StructuralTagItem

    outcomes: dict[str, list[str]] = {}

    class Recorder:
        def pytest_runtest_setup(self, item):
            def over(*_):
                raise TimeoutError(f"more than {TEST_SECONDS} s")

            EbnfText.compared = EbnfText.matched = False
            signal.signal(signal.SIGALRM, over)
            signal.alarm(TEST_SECONDS)

        def pytest_runtest_logreport(self, report):
            if report.when == "call" or report.outcome != "passed":
                text = str(report.longrepr)[-3000:] if report.failed else ""
                outcome = "skipped" if report.skipped else report.outcome
                if EbnfText.compared and not EbnfText.matched and outcome == "passed":
                    outcome, text = "failed", "PeerInternals: EBNF texts are compared, and nothing else is asked"
                if outcome == "failed" and reason_of(text).startswith("needs"):
                    outcome = "skipped"
                outcomes[report.nodeid] = [outcome, text]
                signal.alarm(0)

        def pytest_collectreport(self, report):
            if report.failed:
                text = str(report.longrepr)[-3000:]
                outcomes[report.nodeid] = ["skipped" if reason_of(text).startswith("needs") else "failed", text]

    faulthandler.enable()
    pytest.main(["-q", "-q", "-p", "no:cacheprovider", "--tb=short", str(path)], plugins=[Recorder()])
    result.write_text(json.dumps(outcomes))
    return 0


class PeerInternals(Exception):
    """Raised where a test asks for what is inside the peer, and no interface of its engine."""


class EbnfText(str):
    """Stands for the text in EBNF that XGrammar would make of `grammar`: what it is compared with is not looked at."""

    compared = False
    """True once a test has compared such a text."""
    matched = False
    """True once a test has asked what a grammar matches, or for a mask."""

    def __new__(cls, grammar):
        text = super().__new__(cls, grammar.source.get("grammar", "# no text in EBNF"))
        text.grammar = grammar
        return text

    def __str__(self):
        return self

    def __eq__(self, other):
        EbnfText.compared = True
        return True

    def __contains__(self, part):
        EbnfText.compared = True
        return True

    __hash__ = str.__hash__


def leave_out_ebnf(xgrammar: types.ModuleType) -> None:
    """Lets grammars show an `EbnfText`, and notes what tests ask of matchers."""
    xgrammar.Grammar.__str__ = lambda grammar: EbnfText(grammar)

    def noting(method):
        def call(*arguments, **options):
            EbnfText.matched = True
            return method(*arguments, **options)

        return call

    for name in ("accept_string", "accept_token", "fill_next_token_bitmask"):
        setattr(xgrammar.GrammarMatcher, name, noting(getattr(xgrammar.GrammarMatcher, name)))


def xgrammar_testing() -> types.ModuleType:
    """XGrammar's `testing`: what asks whether a text is accepted, over the layer; its inner forms are refused."""
    import numpy as np
    import xgrammar

    module = types.ModuleType("xgrammar.testing")
    info = xgrammar.TokenizerInfo([])

    def matcher_of(grammar, **options):
        grammar = getattr(grammar, "grammar", grammar) if isinstance(grammar, EbnfText) else grammar
        compiled = xgrammar.GrammarCompiler(info, cache_enabled=False).compile_grammar(grammar)
        return xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=True, **options)

    def accepts(grammar, input_str, *, debug_print=False, print_time=False, require_termination=True):
        matcher = matcher_of(grammar)
        return matcher.accept_string(input_str) and (not require_termination or matcher.is_terminated())

    def masked_tokens(bitmask, vocab_size, index=0):
        allowed = np.unpackbits(bitmask[index].numpy().view(np.uint8), bitorder="little")[:vocab_size]
        return np.flatnonzero(allowed == 0).tolist()

    def single_token(bitmask, vocab_size, index):
        allowed = np.unpackbits(bitmask[index].numpy().view(np.uint8), bitorder="little")[:vocab_size]
        tokens = np.flatnonzero(allowed)
        return (True, int(tokens[0])) if len(tokens) == 1 else (False, -1)

    def bitmask_to_bool(bitmask, vocab_size=None):
        import torch

        bits = np.unpackbits(bitmask.cpu().numpy().view(np.uint8), axis=-1, bitorder="little").astype(bool)
        return torch.from_numpy(bits[..., :vocab_size])

    def bool_to_bitmask(mask):
        padded = np.zeros((len(mask), -(-mask.shape[1] // 32) * 32), np.uint8)
        padded[:, : mask.shape[1]] = mask.numpy()
        import torch

        return torch.from_numpy(np.packbits(padded, axis=1, bitorder="little").view(np.int32).copy())

    def traverse(*arguments, **options):
        *trees, matcher, bitmask = arguments[:5]
        return matcher.traverse_draft_tree(*trees, bitmask, *arguments[5:], **options)

    def schema_text(schema, *, json_format="json", any_order=False, **options):
        if json_format == "json":
            return EbnfText(xgrammar.Grammar.from_json_schema(schema, any_order=any_order, **options))
        schema = json.loads(schema) if isinstance(schema, str) else getattr(schema, "model_json_schema", lambda: schema)()
        schema = schema if options.pop("strict_mode", True) is False else xgrammar.grammar.closed(schema)
        if options:
            raise PeerInternals(f"{json_format} with {options}")
        form = {"type": "json_schema", "json_schema": schema, "style": json_format, "any_order": any_order}
        return EbnfText(xgrammar.Grammar.from_structural_tag({"type": "structural_tag", "format": form}))

    module._json_schema_to_ebnf = schema_text
    module._regex_to_ebnf = lambda regex, with_rule_name=True: EbnfText(xgrammar.Grammar.from_regex(regex))
    module._get_matcher_from_grammar = matcher_of
    module._is_grammar_accept_string = accepts
    module._get_masked_tokens_from_bitmask = masked_tokens
    module._is_single_token_bitmask = single_token
    module.bool_mask_to_bitmask = bool_to_bitmask
    module.bitmask_to_bool_mask = bitmask_to_bool
    module._traverse_draft_tree = traverse
    module._get_matcher_from_grammar_and_tokenizer_info = lambda grammar, given=info, **options: xgrammar.GrammarMatcher(
        xgrammar.GrammarCompiler(given, cache_enabled=False).compile_grammar(grammar), **options
    )

    def refused(name):
        def call(*_, **__):
            raise PeerInternals(name)

        return call

    class Functor:
        pass

    module.GrammarFunctor = Functor
    for name in (
        "structure_normalizer",
        "rule_inliner",
        "byte_string_fuser",
        "dead_code_eliminator",
        "lookahead_assertion_analyzer",
        "grammar_optimizer",
        "fsm_builder",
        "repetition_normalizer",
    ):
        setattr(Functor, name, staticmethod(refused(name)))
    module.__getattr__ = lambda name: refused(name) if name.startswith("_") and not name.startswith("__") else _missing(name)
    return module


def _missing(name: str):
    raise AttributeError(name)


def xgrammar_config() -> types.ModuleType:
    """XGrammar's depth of recursion, of which Palmette has none."""
    import contextlib

    module = types.ModuleType("xgrammar.config")
    depth = [10_000]

    def set_depth(value):
        depth[0] = value

    @contextlib.contextmanager
    def within(value):
        before, depth[0] = depth[0], value
        yield
        depth[0] = before

    module.get_max_recursion_depth = lambda: depth[0]
    module.set_max_recursion_depth = set_depth
    module.max_recursion_depth = within
    module.get_serialization_version = lambda: "palmette-1"
    return module


if __name__ == "__main__":
    sys.exit(main())
