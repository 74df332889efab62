"""Output layers cut to the codes of a level."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from palmette.transformers.requests import indices
from palmette.transformers.settings import check_width


class CutHeads:
    """Output layers with the rows of one level's codes: their logits are the model's own, without the other columns.

    The model itself is left as it is: a shallow copy of its outer module gets the cut layer. Models whose output layer
    is not a plain `Linear` directly below them (or has hooks) compute all logits, of which the columns are taken.
    """

    def __init__(self, model: Any, constraint: Any) -> None:
        self.whole = model
        self.tokens = [tokens[tokens >= 0].astype(np.int64) for tokens in constraint.code_tokens]
        head = model.get_output_embeddings()
        check_width(len(head.weight), constraint.num_tokens)
        names = [name for name, module in model._modules.items() if module is head]
        plain = (
            type(head) is torch.nn.Linear
            and not hasattr(head, "_hf_hook")
            and not head._forward_hooks
            and not head._forward_pre_hooks
        )
        self.name = names[0] if names and plain else None

    def model(self, level: int) -> Any:
        if self.name is None:
            return self.whole
        head = self.whole._modules[self.name]
        rows = indices(self.tokens[level], head.weight.device)
        cut = torch.nn.Linear(1, 1, bias=False)
        cut.weight = torch.nn.Parameter(head.weight[rows], requires_grad=False)
        if head.bias is not None:
            cut.bias = torch.nn.Parameter(head.bias[rows], requires_grad=False)
        model = copy.copy(self.whole)
        model.__dict__["_modules"] = {**self.whole._modules, self.name: cut}
        return model

    def columns(
        self, level: int, logits: torch.Tensor, tokens: npt.NDArray[np.int64]
    ) -> tuple[torch.Tensor, npt.NDArray[np.int64]]:
        """Logits [rows, codes of the level], and the column of each token there."""
        if self.name is None:
            logits = logits[:, indices(self.tokens[level], logits.device)]
        order = np.argsort(self.tokens[level], kind="stable")
        return logits, order[np.searchsorted(self.tokens[level][order], tokens)]
