"""Texts that end within their tokens: the fewest to the end, and masks that leave a way."""

import random

import numpy as np
import pytest
from conftest import END, PIECES, tokens_in

import palmette


def masks_of(matcher, left):
    bitmask = palmette.allocate_bitmask(1, len(PIECES) + 2)
    matcher.fill_mask(bitmask, tokens_left=left)
    return tokens_in(bitmask)


def test_masks_are_those_of_the_fewest_tokens_after_each(schema):
    matcher = schema.matcher()
    fewest = matcher.fewest_tokens()
    for seed in range(20):
        draw = random.Random(seed)
        at, left = matcher.fork(), fewest + seed % 5
        while left >= 0:
            allowed = masks_of(at, left)
            expected = set()
            for token in at.allowed().tolist():
                after = at.fork()
                after.commit(token)
                needed = after.fewest_tokens()
                if token == END or (left and needed is not None and needed < left):
                    expected.add(token)
            assert allowed == expected
            assert allowed >= (masks_of(at, left - 1) if left > at.fewest_tokens() else set())
            texts = sorted(allowed - {END})
            if not texts:
                break
            at.commit(draw.choice(texts))
            left -= 1
        assert at.is_accepting


def test_the_shortest_completion_is_a_text_of_as_many_tokens(schema):
    matcher = schema.matcher()
    tokens, text = matcher.shortest_completion()
    assert len(tokens) == matcher.fewest_tokens() and text == b"".join(PIECES[token] for token in tokens)
    matcher.commit_all(tokens)
    assert matcher.is_accepting and matcher.fewest_tokens() == 0 and matcher.shortest_completion() == ([], b"")


def test_too_few_tokens_are_an_error_with_the_number(schema):
    matcher = schema.matcher()
    fewest = matcher.fewest_tokens()
    bitmask = palmette.allocate_bitmask(2, len(PIECES) + 2)
    with pytest.raises(palmette.TooFewTokens, match=f"takes {fewest} more tokens") as raised:
        matcher.fill_mask(bitmask, tokens_left=fewest - 1)
    assert (raised.value.needed, raised.value.left, raised.value.row) == (fewest, fewest - 1, None)
    with pytest.raises(ValueError, match="tokens_left is -1"):
        matcher.fill_mask(bitmask, tokens_left=-1)
    assert isinstance(raised.value, palmette.Error)


def test_rows_of_a_batch_have_tokens_of_their_own(schema):
    matchers = [schema.matcher(), None, schema.matcher(), schema.matcher()]
    fewest = matchers[0].fewest_tokens()
    bitmask = palmette.allocate_bitmask(4, len(PIECES) + 2)
    before = bitmask[1].copy()
    palmette.fill_masks(matchers, bitmask, tokens_left=[fewest, 7, None, fewest + 2])
    assert tokens_in(bitmask, 0) == masks_of(matchers[0], fewest)
    assert np.array_equal(bitmask[1], before)
    assert tokens_in(bitmask, 2) == set(matchers[2].allowed().tolist())
    assert tokens_in(bitmask, 3) == masks_of(matchers[3], fewest + 2)
    with pytest.raises(palmette.TooFewTokens, match="row 3") as raised:
        palmette.fill_masks(matchers, bitmask, tokens_left=[None, None, None, 0])
    assert (raised.value.row, raised.value.needed, raised.value.left) == (3, fewest, 0)
    assert tokens_in(bitmask, 0) == set(matchers[0].allowed().tolist()), "the others are filled"
    with pytest.raises(ValueError, match="4 matchers and 1 numbers"):
        palmette.fill_masks(matchers, bitmask, tokens_left=[3])


def test_rows_that_are_followed_end_in_time(schema):
    follower, draw = palmette.Follower(schema), random.Random(5)
    most = schema.matcher().fewest_tokens() + 4
    rows = np.zeros((6, 0), np.int64)
    bitmask = palmette.allocate_bitmask(6, len(PIECES) + 2)
    for written in range(most):
        follower.advance(rows, bitmask, tokens_left=most - written)
        drawn = []
        for row, tokens in enumerate(rows.tolist()):
            matcher = schema.matcher()
            is_text = matcher.accepted_prefix(tokens) == len(tokens)
            if is_text:
                matcher.commit_all(tokens)
            needed = matcher.fewest_tokens()
            # The last row takes any token that the grammar allows, as a beam without a score: it may lose its way.
            if not is_text or matcher.is_ended or needed > most - written:
                assert tokens_in(bitmask, row) == set() and (END in tokens or row == 5)
                drawn.append(END)
                continue
            assert tokens_in(bitmask, row) == masks_of(matcher, most - written)
            drawn.append(draw.choice(sorted(tokens_in(bitmask, row) if row < 5 else matcher.allowed().tolist())))
        rows = np.concatenate([rows, np.array(drawn)[:, None]], axis=1)
    for tokens in rows[:5].tolist():
        matcher = schema.matcher()
        matcher.commit_all(tokens[: tokens.index(END)] if END in tokens else tokens)
        assert matcher.is_accepting
    with pytest.raises(ValueError, match="tokens_left is -1"):
        follower.advance(rows, bitmask, tokens_left=-1)


def test_rows_along_drafts_have_one_token_less_each(schema):
    fewest = schema.matcher().fewest_tokens()
    for seed in range(12):
        draw, at, draft = random.Random(seed), schema.matcher(), []
        while len(draft) < 7 and not at.is_ended:
            draft.append(draw.choice(at.allowed().tolist()))
            at.commit(draft[-1])
        left = fewest + seed % 6
        bitmask = palmette.allocate_bitmask(len(draft) + 1, len(PIECES) + 2)
        (kept,) = palmette.fill_masks_with_drafts([schema.matcher()], [draft], bitmask, tokens_left=[left])
        at = schema.matcher()
        for row in range(len(draft) + 1):
            if row > kept or at.is_ended:
                assert tokens_in(bitmask, row) == set()
                continue
            mask = masks_of(at, left - row)
            assert tokens_in(bitmask, row) == mask
            if row < len(draft):
                assert (draft[row] in mask) == (row < kept)
                at.commit(draft[row])
    with pytest.raises(palmette.TooFewTokens, match="row 0"):
        palmette.fill_masks_with_drafts([schema.matcher()], [[]], bitmask, tokens_left=[fewest - 1])


def lasting_masks_of(matcher, needed, left=None):
    bitmask = palmette.allocate_bitmask(1, len(PIECES) + 2)
    matcher.fill_mask(bitmask, tokens_left=left, tokens_needed=needed)
    return tokens_in(bitmask)


def test_texts_do_not_end_before_the_tokens_they_need(schema):
    fewest = schema.matcher().fewest_tokens()
    for seed in range(20):
        draw, at, written = random.Random(seed), schema.matcher(), 0
        needed = fewest + seed % 4
        left = needed + seed % 3
        if not at.has_way(tokens_left=left, tokens_needed=needed):
            with pytest.raises(palmette.TooManyTokens, match=f"no text is known that takes {needed}( to {left})? tokens from here"):
                lasting_masks_of(at, needed, left)
            continue
        while not at.is_ended:
            least, most = max(needed - written, 0), left - written
            allowed = lasting_masks_of(at, least, most)
            if least > 0:
                ways = set()
                for token in at.allowed().tolist():
                    after = at.fork()
                    after.commit(token)
                    if token != END and after.has_way(tokens_left=most - 1, tokens_needed=least - 1):
                        ways.add(token)
                assert allowed == ways
            # As soon as it may end it does.
            at.commit(END if END in allowed else draw.choice(sorted(allowed)))
            written += 1
        assert needed <= written - 1 <= left


def test_more_tokens_than_any_text_takes_are_an_error(schema):
    matcher = schema.matcher()
    longest = next(n for n in range(1, 500) if not matcher.has_way(tokens_needed=n)) - 1
    assert longest >= matcher.fewest_tokens()
    bitmask = palmette.allocate_bitmask(2, len(PIECES) + 2)
    with pytest.raises(palmette.TooManyTokens, match="row 1") as raised:
        palmette.fill_masks([matcher, matcher], bitmask, tokens_left=[None, 999], tokens_needed=[longest, longest + 1])
    assert (raised.value.row, raised.value.needed, raised.value.left) == (1, longest + 1, 999)
    assert tokens_in(bitmask, 0) == lasting_masks_of(matcher, longest)
    with pytest.raises(ValueError, match="tokens_needed is -1"):
        matcher.has_way(tokens_needed=-1)
    with pytest.raises(ValueError, match="2 matchers and 1 numbers of tokens_needed"):
        palmette.fill_masks([matcher, matcher], bitmask, tokens_needed=[3])


def test_drafts_and_followed_rows_keep_the_tokens_they_need(schema):
    needed = schema.matcher().fewest_tokens() + 1
    shortest, _ = schema.matcher().shortest_completion()
    draft = [*shortest, END]
    bitmask = palmette.allocate_bitmask(len(draft) + 1, len(PIECES) + 2)
    (kept,) = palmette.fill_masks_with_drafts([schema.matcher()], [draft], bitmask, tokens_needed=[needed])
    at = schema.matcher()
    for row in range(kept + 1):
        mask = lasting_masks_of(at, needed - row)
        assert tokens_in(bitmask, row) == mask and END not in mask
        assert (draft[row] in mask) == (row < kept)
        if row < kept:
            at.commit(draft[row])
    assert kept < len(draft)
    follower = palmette.Follower(schema)
    rows = np.array([shortest[:kept]], np.int64)
    follower.advance(rows, bitmask, tokens_needed=needed - kept)
    assert tokens_in(bitmask, 0) == lasting_masks_of(at, needed - kept)
