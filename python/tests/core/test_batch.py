"""Batches of masks against masks one by one, on any number of threads."""

import os
import random
import threading

import numpy as np
import pytest
from conftest import END, PIECES, SCHEMA, tokens_in

import palmette
from palmette import Grammar, fill_masks, fill_masks_with_drafts, fill_masks_with_trees


def some_matchers(compiled, count, seed=1):
    rng, matchers = random.Random(seed), []
    for _ in range(count):
        matcher = compiled.matcher()
        for _ in range(rng.randrange(6)):
            allowed = matcher.allowed()
            if len(allowed):
                matcher.commit(rng.choice(allowed.tolist()))
        matchers.append(matcher)
    return matchers


def one_by_one(matchers, num_tokens, rows=None, out=None):
    out = palmette.allocate_bitmask(len(matchers), num_tokens) if out is None else out
    for matcher, row in zip(matchers, rows or range(len(matchers)), strict=True):
        if matcher is not None:
            matcher.fill_mask(out, row)
    return out


@pytest.mark.parametrize("threads", [None, 1, 2, 3, 64])
def test_a_batch_is_its_rows(schema, threads):
    matchers = some_matchers(schema, 40)
    batch = palmette.allocate_bitmask(40, schema.num_tokens)
    assert fill_masks(matchers, batch, threads=threads) is True
    assert (batch == one_by_one(matchers, schema.num_tokens)).all()


def test_rows_in_any_order_and_none(schema):
    matchers = some_matchers(schema, 4)
    matchers[2] = None
    rows = [5, 0, 3, 1]
    batch = palmette.allocate_bitmask(6, schema.num_tokens)
    fill_masks(matchers, batch, rows)
    assert (batch == one_by_one(matchers, schema.num_tokens, rows, np.full_like(batch, -1))).all()
    assert (batch[[2, 3, 4]] == -1).all(), "rows of nobody, and of None, stay"
    again = np.full_like(batch, -1)
    fill_masks(iter(matchers), palmette.MaskBuffer(again), np.array(rows))
    assert (again == batch).all()
    assert fill_masks([], batch) is False and fill_masks([None], batch) is False


def test_grammars_and_vocabularies_may_differ(schema, large):
    other = Grammar.from_json_schema(SCHEMA).compile(large)
    matchers = [*some_matchers(schema, 3), *some_matchers(other, 3)]
    batch = palmette.allocate_bitmask(6, large.num_tokens + 500)
    fill_masks(matchers, batch, threads=2)
    assert (batch == one_by_one(matchers, large.num_tokens + 500)).all()
    assert max(tokens_in(batch, 0)) < schema.num_tokens, "bits past a vocabulary are 0"


def test_one_matcher_may_come_twice(schema):
    matcher = some_matchers(schema, 1)[0]
    batch = palmette.allocate_bitmask(2, schema.num_tokens)
    fill_masks([matcher, matcher], batch, threads=2)
    assert (batch[0] == batch[1]).all()


def test_batches_that_are_refused(schema, large):
    matchers = some_matchers(schema, 3)
    batch = palmette.allocate_bitmask(3, schema.num_tokens)
    for call, error, text in [
        (lambda: fill_masks(matchers, batch[:2]), ValueError, "3 matchers need as many rows.*has 2"),
        (lambda: fill_masks(matchers, batch, [0, 1]), ValueError, "3 matchers and 2 rows"),
        (lambda: fill_masks(matchers, batch, [0, 1, 1]), ValueError, "row 1 of the bitmask is given twice"),
        (lambda: fill_masks(matchers, batch, [0, 1, 3]), IndexError, "row 3"),
        (lambda: fill_masks(matchers, batch, [0, 1, -1]), IndexError, "row -1"),
        (lambda: fill_masks(matchers, batch, threads=0), ValueError, "threads is 0"),
        (lambda: fill_masks(matchers, batch, threads=-3), ValueError, "threads is -3"),
        (lambda: fill_masks([3], batch), TypeError, "int"),
        (lambda: fill_masks(3, batch), TypeError, "iterable"),
        (lambda: fill_masks([Grammar.from_regex("a").compile(large).matcher()], batch), ValueError, "takes 6251 words"),
        (lambda: fill_masks_with_drafts(matchers, [[]], batch), ValueError, "3 matchers and 1 drafts"),
        (lambda: fill_masks_with_drafts(matchers, [[], [], [1]], batch), ValueError, "4 masks"),
        (lambda: fill_masks_with_drafts(matchers, [[1], [], []], batch, [2, 0, 1]), IndexError, "row 3"),
        (lambda: fill_masks_with_drafts(matchers, [[1], [], []], batch, [0, 1, 2]), ValueError, "row 1 .* twice"),
        (lambda: fill_masks_with_drafts(matchers, [[-5], [], []], palmette.allocate_bitmask(4, 99)), ValueError, "-5"),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_masks_along_drafts(schema):
    rng = random.Random(5)
    for _ in range(60):
        matchers = some_matchers(schema, 4, rng.random())
        drafts = []
        for matcher in matchers:
            ahead, draft = matcher.fork(), []
            for _ in range(rng.randrange(5)):
                allowed = ahead.allowed().tolist()
                good = allowed and rng.random() < 0.8
                draft.append(rng.choice(allowed) if good else rng.randrange(schema.num_tokens))
                ahead.try_commit(draft[-1])
            drafts.append(draft)
        positions = [matcher.position for matcher in matchers]
        total = sum(len(draft) + 1 for draft in drafts)
        batch = palmette.allocate_bitmask(total, schema.num_tokens)
        kept = fill_masks_with_drafts(matchers, drafts, batch, threads=rng.choice([1, 2, None]))
        assert [matcher.position for matcher in matchers] == positions
        assert kept == [matcher.accepted_prefix(draft) for matcher, draft in zip(matchers, drafts, strict=True)]
        row = 0
        for matcher, draft, count in zip(matchers, drafts, kept, strict=True):
            ahead = matcher.fork()
            for place in range(len(draft) + 1):
                expected = set(ahead.allowed().tolist()) if place <= count else set()
                assert tokens_in(batch, row) == expected
                row += 1
                if place < count:
                    ahead.commit(draft[place])


def test_masks_at_trees(schema):
    """Each node as the draft from the root to it; with lengths, too."""
    rng = random.Random(6)
    for _ in range(60):
        matchers = some_matchers(schema, 3, rng.random())
        trees, states = [], []
        for matcher in matchers:
            tokens, parents, ahead = [], [], []
            for node in range(rng.randrange(7)):
                parent = rng.randrange(-1, node)
                before = matcher if parent < 0 else ahead[parent]
                allowed = [] if before is None else before.allowed().tolist()
                good = allowed and rng.random() < 0.8
                tokens.append(rng.choice(allowed) if good else rng.randrange(schema.num_tokens))
                parents.append(parent)
                after = None if before is None else before.fork()
                ahead.append(after if after is not None and after.try_commit(tokens[-1]) else None)
            trees.append((tokens, np.array(parents, np.int32) if rng.random() < 0.5 else parents))
            states.append(ahead)
        lengths = [matcher.fewest_tokens() for matcher in matchers]
        left = None if rng.random() < 0.5 or None in lengths else [fewest + rng.randrange(3) for fewest in lengths]
        total = sum(len(tokens) + 1 for tokens, _ in trees)
        batch = palmette.allocate_bitmask(total, schema.num_tokens)
        kept = fill_masks_with_trees(matchers, trees, batch, threads=rng.choice([1, 2, None]), tokens_left=left)
        row = 0
        for place, (matcher, (tokens, parents)) in enumerate(zip(matchers, trees, strict=True)):
            for node in range(-1, len(tokens)):
                path = []
                at = node
                while at >= 0:
                    path.append(tokens[at])
                    at = parents[at]
                chain = palmette.allocate_bitmask(len(path) + 1, schema.num_tokens)
                room = None if left is None else [left[place]]
                (count,) = fill_masks_with_drafts([matcher], [path[::-1]], chain, tokens_left=room)
                assert (batch[row] == chain[-1]).all()
                assert node < 0 or kept[place][node] == (count == len(path))
                row += 1
            accepted = matcher.accepted_tree(tokens, parents)
            assert accepted == [after is not None for after in states[place]]
            assert left is not None or accepted == kept[place]


def test_trees_that_are_none(schema):
    batch = palmette.allocate_bitmask(9, schema.num_tokens)
    for tree, error, text in [
        (([0, 0], [-1]), ValueError, "2 tokens and 1 parents"),
        (([0, 0], [-1, 1]), ValueError, "token 1 of the draft has parent 1"),
        (([0], [3]), ValueError, "token 0 of the draft has parent 3"),
        (([0], [-2]), ValueError, "a parent is -2"),
        (([-1], [-1]), ValueError, "-1"),
        ([0], ValueError, "unpack|tuple"),
    ]:
        with pytest.raises((error, TypeError), match=text):
            fill_masks_with_trees([schema.matcher()], [tree], batch)
        if len(tree) == 2:
            with pytest.raises(error, match=text):
                schema.matcher().accepted_tree(*tree)
    with pytest.raises(ValueError, match="1 matchers and 0 trees"):
        fill_masks_with_trees([schema.matcher()], [], batch)


def test_drafts_in_rows_of_a_stride(schema):
    """As engines have them: a row a request and draft token, whether or not there is a draft."""
    matchers = [schema.matcher(), None, schema.matcher()]
    drafts = [[PIECES.index(b'{"'), PIECES.index(b"a")], [], np.array([END])]
    batch = np.full((9, palmette.bitmask_words(schema.num_tokens)), 77, np.int32)
    assert fill_masks_with_drafts(matchers, drafts, batch, rows=[0, 3, 6]) == [2, 0, 0]
    assert (batch[[3, 4, 5, 8]] == 77).all() and not batch[7].any()
    assert tokens_in(batch, 6) == set(schema.matcher().allowed().tolist())


def test_threads_fill_their_rows_of_one_bitmask(schema):
    """Four Python threads, each with its rows of one array, as vLLM's manager has them."""
    matchers = some_matchers(schema, 64)
    expected = one_by_one(matchers, schema.num_tokens)
    batch = palmette.allocate_bitmask(64, schema.num_tokens)
    wrong = []

    def fill(first):
        rows = range(first, 64, 4)
        for _ in range(50):
            if first % 2:
                fill_masks([matchers[row] for row in rows], batch, rows, threads=2)
            else:
                for row in rows:
                    matchers[row].fill_mask(batch, row)
            if not (batch[first::4] == expected[first::4]).all():
                wrong.append(first)

    threads = [threading.Thread(target=fill, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and (batch == expected).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(schema):
    """The threads of the parent are not in the child: a batch there must not wait for them."""
    matchers = some_matchers(schema, 8)
    batch = palmette.allocate_bitmask(8, schema.num_tokens)
    fill_masks(matchers, batch, threads=2)
    expected = batch.copy()
    child = os.fork()
    if child == 0:
        batch.fill(0)
        fill_masks(matchers, batch, threads=2)
        compiled = Grammar.from_regex("ab*").compile(schema.vocabulary)
        os._exit(0 if (batch == expected).all() and compiled.matcher().allowed().size else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    fill_masks(matchers, batch, threads=2)
    assert (batch == expected).all()
