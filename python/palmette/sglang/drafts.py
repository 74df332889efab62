"""Masks at SGLang's trees of drafts: of a whole batch in one call.

SGLang verifies drafts under masks at every node of a tree (EAGLE, NGRAM) or chain, which it fills by a walk in Python that accepts
and takes back a token a node, request after request. `plan_trees` puts one call of `palmette.fill_masks_with_trees` in the place of
these walks, with the same rows: what drafts share is walked once, on several threads and without the interpreter's lock. A request
that reasons, or whose grammar is not Palmette's, is walked as before.

A tree is three arrays: the token of each node, its first child, and its next sibling, -1 where there is none. Node 0 is the last token
of the text, whose row is the mask before all drafts. Rows of nodes that cannot be reached, or behind an end token, allow all, since
nobody reads them and logits without any token would be no numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarObject

import palmette
from palmette.sglang.backend import PalmetteGrammar


def plan_trees(module: Any) -> None:
    """Puts the call in the place of `generate_token_bitmask` of SGLang's module, `sglang.srt.speculative.spec_utils`."""
    if module.generate_token_bitmask.__module__ == __name__:
        return

    def generate_token_bitmask(
        reqs: list[Any],
        retrieve_next_token_cpu: torch.Tensor,
        retrieve_next_sibling_cpu: torch.Tensor,
        draft_tokens_cpu: torch.Tensor,
        vocab_size: int,
    ) -> tuple[torch.Tensor | None, BaseGrammarObject | None]:
        written = [(place, req.grammar) for place, req in enumerate(reqs) if req.grammar is not None]
        if not written:
            return None, None
        num_nodes = draft_tokens_cpu.shape[-1]
        mask = written[0][1].allocate_vocab_mask(
            vocab_size=vocab_size, batch_size=draft_tokens_cpu.numel(), device="cpu"
        )
        ours, others = [], []
        for place, grammar in written:
            position = _position(grammar)
            if position is None:
                others.append((place, grammar))
            elif not position.is_terminated():
                children, siblings = retrieve_next_token_cpu[place].tolist(), retrieve_next_sibling_cpu[place].tolist()
                tree = Tree.of(children, siblings, draft_tokens_cpu[place].tolist(), vocab_size)
                ours.append((place * num_nodes, position, tree))
        try:
            _fill(ours, mask)
        except (palmette.LimitExceeded, palmette.TooFewTokens):  # of some row, which the walks will tell
            mask.fill_(-1)
            others = written
        for place, grammar in others:
            module.traverse_tree(
                retrieve_next_token_cpu[place],
                retrieve_next_sibling_cpu[place],
                draft_tokens_cpu[place],
                grammar,
                mask[place * num_nodes : (place + 1) * num_nodes],
                vocab_size=vocab_size,
            )
        return mask, written[-1][1]

    module.generate_token_bitmask = generate_token_bitmask


def _position(grammar: BaseGrammarObject) -> PalmetteGrammar | None:
    """The position that a tree is walked from; None where the wrapper for reasoning has a say."""
    if isinstance(grammar, ReasonerGrammarObject) and not grammar.reasoning_in_grammar and grammar.tokens_after_end >= 0:
        grammar = grammar.grammar
    return grammar if isinstance(grammar, PalmetteGrammar) else None


@dataclass(frozen=True)
class Tree:
    """Nodes that can be reached, without the root: `nodes` are their numbers in SGLang's arrays, each behind its parent.

    `parents` are places in `nodes`, -1 behind the root. `depth` is that of the deepest.
    """

    nodes: list[int]
    tokens: list[int]
    parents: list[int]
    depth: int

    @classmethod
    def of(cls, children: list[int], siblings: list[int], tokens: list[int], num_tokens: int) -> Tree:
        """Of SGLang's arrays; without nodes whose token is none of the vocabulary's, and what is behind them."""
        parent_of: dict[int, int] = {}
        depth_of = {0: 0}
        open_nodes = [0]
        while open_nodes:
            node = open_nodes.pop()
            child = children[node]
            while child != -1 and child not in depth_of:
                if 0 <= tokens[child] < num_tokens:
                    parent_of[child], depth_of[child] = node, depth_of[node] + 1
                    open_nodes.append(child)
                child = siblings[child]
        # Draft models number parents first; a tree that is numbered otherwise is sorted by depth.
        nodes = sorted(parent_of)
        if any(parent_of[node] > node for node in nodes):
            nodes.sort(key=lambda node: depth_of[node])
        place = {0: -1} | {node: at for at, node in enumerate(nodes)}
        return cls(nodes, [tokens[node] for node in nodes], [place[parent_of[node]] for node in nodes], max(depth_of.values()))

    @property
    def is_in_place(self) -> bool:
        """Whether rows in the order of `nodes` are the rows that SGLang reads."""
        return self.nodes == list(range(1, len(self.nodes) + 1))


def _fill(each: list[tuple[int, PalmetteGrammar, Tree]], mask: torch.Tensor) -> None:
    """Fills the rows of positions' trees, which begin at these rows of the mask."""
    in_place = [one for one in each if one[2].is_in_place]
    _fill_rows(in_place, [first for first, *_ in in_place], mask)
    for one in each:
        first, _, tree = one
        if not tree.is_in_place:
            scratch = torch.full((len(tree.nodes) + 1, mask.shape[1]), -1, dtype=mask.dtype)
            _fill_rows([one], [0], scratch)
            mask[[first, *(first + node for node in tree.nodes)]] = scratch


def _fill_rows(each: list[tuple[int, PalmetteGrammar, Tree]], firsts: list[int], mask: torch.Tensor) -> None:
    if not each:
        return
    kept = palmette.fill_masks_with_trees(
        [position.matcher for _, position, _ in each],
        [(tree.tokens, tree.parents) for *_, tree in each],
        mask,
        rows=firsts,
        tokens_left=[position.tokens_left_with(tree.depth) for _, position, tree in each],
    )
    unread = []
    for (_, position, tree), first, are_kept in zip(each, firsts, kept, strict=True):
        ends = set(position.matcher.ends)
        unread += [
            first + 1 + at
            for at, (token, is_kept) in enumerate(zip(tree.tokens, are_kept, strict=True))
            if not is_kept or token in ends
        ]
    if unread:
        mask[unread] = -1
