"""Compilation of engines' requests within limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import palmette
import pytest
from conftest import END, PIECES, SCHEMA

from palmette import _request_compiler
from palmette._request_compiler import FOLDER_ENVIRONMENT, LIMITS_ENVIRONMENT, REQUEST_LIMITS, RequestCompiler

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


#: A process of an engine: compiles, waits for the folder, and tells what came of it and the masks along a text.
PROCESS = """
import sys, json, palmette
from palmette._request_compiler import RequestCompiler
pieces, end, schema = json.loads(sys.argv[1])
vocabulary = palmette.Vocabulary([bytes(piece) if piece is not None else None for piece in pieces], ends=[end])
compiler = RequestCompiler(vocabulary)
matcher = compiler.compile(palmette.Grammar.from_json_schema(schema)).matcher()
assert compiler._compiler.wait(120)
masks = []
while not matcher.is_ended and len(masks) < 12:
    masks.append(matcher.allowed().tolist())
    matcher.commit(masks[-1][-1])
print(json.dumps([compiler._compiler.statistics, masks]))
"""


def test_processes_share_masks_through_a_folder(tmp_path, vocabulary):
    said = json.dumps([[*(list(piece) for piece in PIECES), None], END, SCHEMA])

    def start(folder: str) -> subprocess.Popen:
        environment = {**os.environ, FOLDER_ENVIRONMENT: folder}
        return subprocess.Popen([sys.executable, "-c", PROCESS, said], stdout=subprocess.PIPE, env=environment)

    processes = [start(str(tmp_path / "masks")) for _ in range(3)]
    found = [json.loads(each.communicate(timeout=300)[0]) for each in processes]
    assert sum(statistics["saved"] for statistics, _ in found) == 1
    assert sum(statistics["opened"] for statistics, _ in found) == 2
    statistics, alone = json.loads(start("").communicate(timeout=300)[0])
    assert "saved" not in statistics and all(masks == alone for _, masks in found) and len(alone) > 3


def test_a_file_that_is_damaged_is_logged_by_name(tmp_path, vocabulary, monkeypatch, caplog):
    monkeypatch.setenv(FOLDER_ENVIRONMENT, str(tmp_path / "masks"))
    compiler = RequestCompiler(vocabulary)
    compiler.compile(GRAMMAR)
    assert compiler._compiler.wait(120)
    (file,) = (tmp_path / "masks").glob("*.pmg")
    file.write_bytes(file.read_bytes()[:-1])
    another = RequestCompiler(vocabulary)
    allowed = another.compile(GRAMMAR).matcher().allowed().tolist()
    assert another._compiler.wait(120)
    # What happened between two requests is told with the second.
    assert another.compile(GRAMMAR).matcher().allowed().tolist() == allowed
    assert file.name in caplog.text and "cut short" in caplog.text
    assert another._compiler.statistics["refused"] == another._compiler.statistics["saved"] == 1
    assert allowed == GRAMMAR.compile(vocabulary).matcher().allowed().tolist()


def test_a_folder_that_cannot_be_used_is_logged_once(tmp_path, vocabulary, monkeypatch, caplog):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv(FOLDER_ENVIRONMENT, str(tmp_path / "file" / "masks"))
    compiler = RequestCompiler(vocabulary)
    assert compiler.compile(GRAMMAR).matcher().allowed().tolist()
    assert caplog.text.count(FOLDER_ENVIRONMENT) == 1 and "saved" not in compiler._compiler.statistics
    with pytest.raises(OSError):
        palmette.Compiler(vocabulary, folder=tmp_path / "file")
    with pytest.raises(TypeError, match="give folder"):
        palmette.Compiler(vocabulary, folder_bytes=1)
