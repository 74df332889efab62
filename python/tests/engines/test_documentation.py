"""The blocks of docs/python.md about transformers and devices, run as one program, print what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "torch", reason="torch is not installed: these examples of the documentation do not run"
)
pytest.importorskip(
    "transformers",
    reason="transformers is not installed: these examples of the documentation do not run",
)

PAGE = Path(__file__).parents[3] / "docs" / "python.md"


def test_examples_print_what_the_page_says() -> None:
    if not PAGE.exists():
        pytest.skip(f"{PAGE} is not there: the tests run away from the repository")
    text = PAGE.read_text().partition("## transformers")[2]
    blocks = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    for program, expected in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(program, names)
        assert printed.getvalue() == expected
