"""The item sets of a batch's requests, and what may follow their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch


def constraints_of(constraint: Any, filters: Sequence[Any] | None) -> list[Any] | None:
    """The constraint of each request; None where none has a filter."""
    if filters is None:
        return None
    if isinstance(filters, (str, dict)):
        raise TypeError("filters are a list, one a request of the batch (None where it has none)")
    return [constraint if each is None else constraint.filtered(each) for each in filters]


def item_sets(constraints: list[Any] | None) -> list[Any] | None:
    """The item set of each request, as `successors` takes them."""
    return None if constraints is None else [each.items for each in constraints]


def successors(
    constraint: Any,
    tokens: npt.NDArray[np.int64],
    items: list[Any] | None,
    request: npt.NDArray[np.int64] | None,
) -> tuple[Any, Any, Any]:
    """Rows, tokens and offsets of what may follow each row of tokens, under the items of its request."""
    rows, followers, offsets = (
        constraint.successors(tokens)
        if items is None
        else constraint.successors(tokens, items=items, item_of_row=request)
    )
    return rows, followers, offsets


def refuse_short_items(constraint: Any, tokens: npt.NDArray[np.int64]) -> None:
    """Raises `ValueError` when a row of tokens is an item already: steps here are of items of one length.

    Rows that may go on and rows that are complete would have to be compared; nothing is left out without a word.
    """
    if not 0 < tokens.shape[1] < constraint.num_levels:
        return
    short = next((ids for ids in constraint.decode(tokens) if ids), None)
    if short is not None:
        raise ValueError(
            f"item {short[0]!r} has {tokens.shape[1]} codes where others have {constraint.num_levels}: "
            "give all items as many codes, for example one more code that tells them apart"
        )


def indices(values: npt.NDArray[np.integer[Any]], device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, np.int64)).to(device, non_blocking=True)
