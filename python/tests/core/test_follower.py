"""Rows that are reordered without notice, against fresh matchers that replay every row."""

import random

import numpy as np
import pytest
from conftest import END, PIECES, mask_of, tokens_in

import palmette
from palmette import Follower


def slow_row(compiled, row):
    """The mask after a row of tokens, by a matcher that reads all of it; nothing where one is refused."""
    matcher = compiled.matcher()
    size = compiled.num_tokens
    for token in row:
        if not (0 <= token < size and matcher.try_commit(token)):
            return set()
    return set(matcher.allowed().tolist())


def test_random_beams(schema):
    """10,000 steps of beams that fork, die, swap, restart and jump, some tokens of which are wrong."""
    rng, follower = random.Random(11), Follower(schema)
    known, beams, width = {}, [()], 5
    bitmask = palmette.allocate_bitmask(width, schema.num_tokens)
    dtypes = [np.int64, np.int32, np.uint16, np.int16]
    for step in range(10_000):
        action = rng.random()
        if len(beams[0]) >= 14 or action < 0.02:
            beams = [()] * rng.randint(1, width)
        elif action < 0.04:
            pass  # the same rows again
        elif action < 0.06:
            length = rng.randint(0, len(beams[0]))
            beams = [beam[:length] for beam in beams]
        else:
            jump = 1 if action < 0.95 else rng.randint(2, 3)
            parents = [rng.choice(beams) for _ in range(rng.randint(1, width))]
            if rng.random() < 0.05:
                parents[0] = tuple(rng.randrange(schema.num_tokens) for _ in parents[0])
            for _ in range(jump):
                grown = []
                for beam in parents:
                    allowed = known.get(beam)
                    good = allowed and rng.random() < 0.9
                    grown.append((*beam, rng.choice(allowed) if good else rng.randrange(schema.num_tokens)))
                parents = grown
            beams = parents
        array = np.array(beams, dtype=rng.choice(dtypes)).reshape(len(beams), len(beams[0]))
        if step % 3 == 0:
            array = np.asfortranarray(array)
        follower.advance(array, bitmask, threads=1 if step % 50 else None)
        for row, beam in enumerate(beams):
            if beam not in known:
                known[beam] = sorted(slow_row(schema, beam))
            assert tokens_in(bitmask, row) == set(known[beam]), (step, beam)
    replayed, followed = follower.statistics
    assert followed > 4 * replayed > 0


def test_reordered_beams_are_never_read_anew(schema):
    rng, follower = random.Random(2), Follower(schema, rows=4)
    beams = [(), (), (), ()]
    bitmask = palmette.allocate_bitmask(4, schema.num_tokens)
    follower.advance(np.zeros((4, 0), np.int64), bitmask)
    assert follower.statistics == (1, 0), "equal rows are read once"
    for step in range(8):
        masks = [sorted(tokens_in(bitmask, row)) for row in range(4)]
        alive = [row for row in range(4) if masks[row]]
        parents = [rng.choice(alive) for _ in range(4)]
        beams = [(*beams[parent], rng.choice(masks[parent])) for parent in parents]
        follower.advance(np.array(beams), bitmask)
        assert follower.statistics[0] == 1, step
        assert follower.alive == [True] * 4
    assert repr(follower) == "<palmette.Follower of 4 rows>"


def test_a_draft_that_is_taken_back_is_a_rollback(schema):
    """Rows that grow, shrink and go on otherwise, as drafts do: read from the beginning once."""
    rng, follower = random.Random(5), Follower(schema)
    bitmask, row = palmette.allocate_bitmask(1, schema.num_tokens), ()
    follower.advance(np.zeros((1, 0), np.int64), bitmask)
    for step in range(300):
        back = rng.randrange(max(len(row), 1)) if rng.random() < 0.4 or len(row) > 12 else 0
        kept = row[: len(row) - back]
        for _ in range(rng.randint(1, 4)):
            allowed = sorted(slow_row(schema, kept) - {END})
            kept = (*kept, rng.choice(allowed)) if allowed else kept
        row = kept
        follower.advance(np.array([row]), bitmask)
        assert tokens_in(bitmask) == slow_row(schema, row), (step, row)
    replayed, followed = follower.statistics
    assert replayed <= 3 and followed > 250, (replayed, followed)


def test_ended_and_refused_rows(schema):
    follower = Follower(schema)
    text = b'{"a":"x"}'
    row = [PIECES.index(bytes([byte])) for byte in text]
    rows = np.array([[*row, END], [*row[:-1], END, 0], [*row[:-1], -100, END], [*row[:-1], 10**12, 0]])
    bitmask = palmette.allocate_bitmask(4, schema.num_tokens)
    follower.advance(rows, bitmask)
    assert not bitmask.any()
    assert follower.ended == [True, False, False, False] and follower.alive == [True, False, False, False]
    padded = np.concatenate([rows[:1], [[END]]], axis=1)
    follower.advance(padded, bitmask)
    assert follower.alive == [False] and not bitmask[0].any()


def test_ends_and_rows_of_a_follower(vocabulary):
    compiled = palmette.Grammar.from_regex("ab*").compile(vocabulary)
    b = PIECES.index(b"b")
    follower = Follower(compiled, ends=[b])
    bitmask = palmette.allocate_bitmask(3, compiled.num_tokens)
    follower.advance(np.array([[PIECES.index(b"a")]]), bitmask, rows=[2])
    assert tokens_in(bitmask, 2) == {b} and (bitmask[:2] == -1).all()
    follower.advance(np.array([[PIECES.index(b"a"), b]]), bitmask)
    assert follower.ended == [True]
    follower.reset()
    assert follower.ended == []
    assert follower.compiled is compiled


def test_calls_that_are_refused(schema):
    follower = Follower(schema, rows=2)
    bitmask = palmette.allocate_bitmask(2, schema.num_tokens)
    rows = np.zeros((2, 1), np.int64)
    for call, error, text in [
        (lambda: follower.advance(np.zeros((3, 1), np.int64), bitmask), ValueError, "3 rows.*made for 2"),
        (lambda: follower.advance(rows.astype(float), bitmask), TypeError, "float64; give integers"),
        (lambda: follower.advance([[0], [0]], bitmask), TypeError, "suffixes is of type list"),
        (lambda: follower.advance(rows[None], bitmask), ValueError, r"\(1, 2, 1\)"),
        (lambda: follower.advance(rows, bitmask[:1]), ValueError, "need as many rows"),
        (lambda: follower.advance(rows, bitmask[:, :1]), ValueError, "words"),
        (lambda: follower.advance(rows, bitmask, rows=[0, 0]), ValueError, "twice"),
        (lambda: Follower(schema, ends=[-1]), palmette.VocabularyError, "-1"),
        (lambda: Follower(3), TypeError, "CompiledGrammar"),
    ]:
        with pytest.raises(error, match=text):
            call()
    follower.advance(np.zeros((2, 0), np.int64), bitmask)
    assert tokens_in(bitmask) == mask_of(schema.matcher())
