"""The command line inside the wheel, Ctrl-C in long calls, and examples of the documentation."""

import doctest
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import palmette
from palmette import _palmette

ROOT = pathlib.Path(__file__).parents[3]


@pytest.mark.skipif(not hasattr(_palmette, "run_command"), reason="this build is without the command (--no-default-features)")
def test_the_command_runs():
    run = [sys.executable, "-m", "palmette"]
    shown = subprocess.run([*run, "--version"], capture_output=True, text=True)
    assert shown.returncode == 0 and shown.stdout.startswith("palmette ")
    refused = subprocess.run([*run, "no-such-command"], capture_output=True, text=True)
    assert refused.returncode == 2 and "no-such-command" in refused.stderr


@pytest.mark.skipif(not hasattr(_palmette, "run_command"), reason="this build is without the command (--no-default-features)")
def test_files_of_the_command_are_files_of_the_package(tmp_path):
    (tmp_path / "v.json").write_text('["a", "b", "</s>"]')
    (tmp_path / "g.regex").write_text("ab*")
    run = [sys.executable, "-m", "palmette", "grammar", "compile", "g.regex", "--vocab", "v.json", "-o", "g.pmg"]
    subprocess.run(run, cwd=tmp_path, check=True, capture_output=True)
    compiled = palmette.load(tmp_path / "g.pmg", palmette.Vocabulary.open(tmp_path / "v.json"))
    assert compiled.matcher().allowed().tolist() == [0]


LONG_CALL = """
import palmette
vocabulary = palmette.Vocabulary([b"a"])
grammar = palmette.Grammar.from_{maker}
print("begun", flush=True)
try:
    grammar.compile(vocabulary)
except KeyboardInterrupt:
    print("called off", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on Unix")
def test_ctrl_c_calls_a_compilation_off():
    """A grammar that takes minutes ends soon after SIGINT, by the exception that Python's handler raises."""
    maker = "json_schema({'allOf': [{'anyOf': [{'required': [f'p{i}_{j}']} for j in range(8)]} for i in range(12)]}, "
    maker += "max_cases=10**9, max_work=10**12)"
    process = subprocess.Popen(
        [sys.executable, "-c", LONG_CALL.format(maker=maker)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.3)
    assert process.poll() is None, "it takes long enough to be called off"
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert said == "called off\n" and process.returncode == 0


def test_importing_the_package_needs_numpy_alone():
    code = "import palmette, sys; print([name for name in ('torch', 'jax', 'transformers', 'pyarrow') if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_examples_of_the_package_run():
    assert doctest.testmod(palmette).failed == 0
    assert doctest.testmod(palmette).attempted > 5


def test_examples_of_the_documentation_run():
    page = ROOT / "docs" / "python.md"
    if not page.exists():
        pytest.skip(f"{page} is not there: the tests run away from the repository")
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 10 and result.failed == 0
