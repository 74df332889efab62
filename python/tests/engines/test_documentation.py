"""The Python blocks of the documentation that need an engine: they run, and print what the page says.

Those of docs/python.md without one are run by `tests/core`.
"""

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

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "python.md"


def blocks_of(page: Path, heading: str) -> list[str]:
    """The Python blocks of a page's section."""
    if not page.exists():
        pytest.skip(f"{page} is not there: the tests run away from the repository")
    section = page.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


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


def test_the_block_of_the_readme_runs() -> None:
    """With the names that a reader has: a model, its tokenizer, items and a prompt."""
    import numpy as np
    import palmette
    import torch
    from models import tiny_model
    from reference import DEVICE
    from unzipped import small_tokenizer

    tokenizer = small_tokenizer({"a": 8, "b": 8, "c": 8})
    codes = np.random.default_rng(1).integers(0, 8, size=(40, 3))
    ids = [f"item-{number}" for number in range(40)]
    ids_of_prompt = torch.tensor([[3, 4, 5]], device=DEVICE)
    names: dict[str, Any] = {
        "codes": codes,
        "ids": ids,
        "tokenizer": tokenizer,
        "model": tiny_model("qwen3", len(tokenizer)),
        "prompt": {"input_ids": ids_of_prompt, "attention_mask": torch.ones_like(ids_of_prompt)},
        "schema": {"enum": [True]},
        "bitmask": palmette.allocate_bitmask(1, len(tokenizer)),
        "token": tokenizer.convert_tokens_to_ids("true"),
    }
    (block,) = blocks_of(ROOT / "README.md", "From Python")
    exec(block, names)
    assert all(item in ids for item, _ in names["best"][0].ranked())
    assert names["matcher"].is_accepting


def test_the_names_of_peers_are_imported_as_the_page_says() -> None:
    (block,) = blocks_of(ROOT / "docs" / "python-engines.md", "Moving from llguidance and XGrammar")
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["llguidance"].LLMatcher and names["xgr"].GrammarCompiler
