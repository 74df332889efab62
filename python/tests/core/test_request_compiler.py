"""Compilation of engines' requests within limits."""

from __future__ import annotations

import threading

import palmette
import pytest
from conftest import PIECES, SCHEMA

from palmette import _request_compiler
from palmette._request_compiler import LIMITS_ENVIRONMENT, REQUEST_LIMITS, RequestCompiler

#: A grammar whose reading takes work.
HARD = palmette.Grammar.from_regex("(a|b|ab){1,60}c(a|b|x){1,60}")
GRAMMAR = palmette.Grammar.from_json_schema(SCHEMA, whitespace="compact")


def test_limits_are_those_of_the_module_and_of_the_environment(vocabulary, monkeypatch):
    monkeypatch.delenv(LIMITS_ENVIRONMENT, raising=False)
    assert RequestCompiler(vocabulary).limits == REQUEST_LIMITS
    monkeypatch.setenv(LIMITS_ENVIRONMENT, '{"max_states": 5000}')
    assert RequestCompiler(vocabulary).limits == REQUEST_LIMITS | {"max_states": 5000}
    for text, message in [
        ("{", "is not JSON"),
        ("[]", "object of whole numbers"),
        ('{"steps": 1.5}', "object of whole numbers"),
        ('{"steps": true}', "object of whole numbers"),
        ('{"steps": -1}', "object of whole numbers"),
        ('{"step": 1}', "no limit \"step\"; there are steps, max_states"),
    ]:
        monkeypatch.setenv(LIMITS_ENVIRONMENT, text)
        with pytest.raises(ValueError, match=message):
            RequestCompiler(vocabulary)


def test_a_grammar_beyond_the_limits_is_refused_alone(vocabulary, monkeypatch):
    monkeypatch.setenv(LIMITS_ENVIRONMENT, '{"steps": 1000}')
    compiler = RequestCompiler(vocabulary)
    for _ in range(2):
        with pytest.raises(palmette.LimitExceeded, match="budget of 1000 steps.*PALMETTE_COMPILE_LIMITS") as raised:
            compiler.compile(HARD)
        assert raised.value.limit == "steps" and str(raised.value).count("PALMETTE_COMPILE_LIMITS") == 1
    assert compiler.compile(palmette.Grammar.from_regex("a")).matcher().allowed().tolist() == [PIECES.index(b"a")]
    monkeypatch.setenv(LIMITS_ENVIRONMENT, "{}")
    assert RequestCompiler(vocabulary).compile(HARD).matcher().allowed().tolist()


def test_a_grammar_is_read_within_the_limits():
    _request_compiler.checked(GRAMMAR, REQUEST_LIMITS)
    with pytest.raises(palmette.LimitExceeded, match="PALMETTE_COMPILE_LIMITS"):
        _request_compiler.checked(GRAMMAR, {"steps": 3})
    with pytest.raises(palmette.GrammarError):
        _request_compiler.checked(palmette.Grammar.from_regex("(a"), REQUEST_LIMITS)


def test_equal_grammars_are_compiled_once(vocabulary):
    compiler, found = RequestCompiler(vocabulary), []
    threads = [threading.Thread(target=lambda: found.append(compiler.compile(GRAMMAR))) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(found) == 6 and compiler._compiler.statistics["built"] == 1
    assert {tuple(each.matcher().allowed().tolist()) for each in found} == {tuple(GRAMMAR.compile(vocabulary).matcher().allowed().tolist())}
