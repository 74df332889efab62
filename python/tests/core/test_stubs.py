"""The stub file against the extension module."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mypy", reason="mypy is not installed: the stubs are not compared")

ALLOWLIST = pathlib.Path(__file__).parent / "stubtest-allowlist.txt"


def test_stubs_are_those_of_the_module(tmp_path):
    compared = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "palmette._palmette", "--concise"]
        + ["--allowlist", str(ALLOWLIST), "--ignore-unused-allowlist"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert compared.returncode == 0, compared.stdout + compared.stderr
