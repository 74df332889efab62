"""Workers that are forked: those of torch's DataLoader, and of `datasets.map`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: its workers are not tried")

import palmette  # noqa: E402

ITEMS = 100_000
CATALOG = palmette.Catalog.build(
    np.random.default_rng(0).integers(0, 256, size=(ITEMS, 4)), attributes={"price": np.arange(ITEMS)}
)
VOCABULARY = palmette.Vocabulary([bytes([byte]) for byte in range(256)] + [None], ends=[256])
COMPILED = palmette.Grammar.from_json_schema({"type": "object"}).compile(VOCABULARY)


def answers(number: int) -> list[int]:
    """Work that the parent did as well: a filter, a catalog, a grammar, masks."""
    cheap = CATALOG.filter({"range": {"price": {"lt": 10 * number}}})
    few = palmette.Catalog.build(np.random.default_rng(number).integers(0, 9, size=(20_000, 3)))
    compiled = palmette.Grammar.from_regex(f"[a-f]{{{number + 1}}}x").compile(VOCABULARY)
    bitmask = palmette.allocate_bitmask(64, 257)
    palmette.fill_masks([compiled.matcher(), COMPILED.matcher()] * 32, bitmask)
    return [len(cheap), few.nbytes, int(bitmask.sum())]


class Numbers(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, number: int) -> torch.Tensor:
        return torch.tensor(answers(number))


def test_workers_of_a_data_loader() -> None:
    expected = [answers(number) for number in range(6)]
    loader = torch.utils.data.DataLoader(
        Numbers(), num_workers=2, timeout=120, multiprocessing_context="fork"
    )
    assert [row.tolist()[0] for row in loader] == expected


def test_datasets_are_mapped() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: its workers are not tried")
    expected = [answers(number) for number in range(6)]
    rows = datasets.Dataset.from_dict({"number": list(range(6))})
    rows = rows.map(lambda row: {"answers": answers(row["number"])}, num_proc=2)
    assert [row["answers"] for row in rows] == expected
