"""Where a text begins in rows that a loop shows call by call: known, or an error."""

import random
import threading

import numpy as np
import pytest

from palmette._text_start import WatchedLoop


def rows(*each):
    return np.array(each, np.int64).reshape(len(each), -1)


def loop(*calls):
    watched = WatchedLoop("processor")
    return watched, [watched.text(call).tolist() for call in calls][-1]


def test_random_loops_of_beams_and_drafts():
    """Rows that go on from rows of the call before, or go back to what they were: the tokens behind the prompt."""
    rng = random.Random(3)
    for _ in range(200):
        prompt, width = [rng.randrange(9) for _ in range(rng.randrange(6))], rng.randint(1, 4)
        watched, beams = WatchedLoop("processor"), [[]] * width
        for _ in range(20):
            assert watched.text(rows(*(prompt + beam for beam in beams))).tolist() == beams
            if rng.random() < 0.3:
                length = rng.randint(0, len(beams[0]))
                beams = [beam[:length] for beam in beams]
            else:
                beams = [rng.choice(beams) + [rng.randrange(9)] for _ in beams]


def test_the_same_call_again_and_a_replaced_token():
    _, text = loop(rows([1, 2]), rows([1, 2, 3]), rows([1, 2, 3]), rows([1, 2, 4]), rows([1, 2, 4, 5]))
    assert text == [[4, 5]]


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([rows([1, 2]), rows([1, 3])], "do not begin with the prompt of 2 tokens"),
        ([rows([1, 2]), rows([1])], "do not begin with the prompt"),
        ([rows([1, 2]), rows([1, 2], [1, 2])], "1 rows, and now with 2"),
        ([rows([1, 2]), rows([1, 2, 3, 4])], "goes on from none of the call before"),
        ([rows([1, 2]), rows([1, 2, 3]), rows([1, 2, 3, 4]), rows([1, 2, 5, 6])], "goes on from none"),
        ([rows([1], [1]), rows([1, 2], [1, 3]), rows([1, 2, 4], [1, 5, 4])], "goes on from none"),
    ],
)
def test_what_may_be_another_prompt_is_an_error(calls, message):
    watched, _ = loop(*calls[:-1])
    with pytest.raises(ValueError, match=message) as raised:
        watched.text(calls[-1])
    assert "reset()" in str(raised.value) and "prompt_length=" in str(raised.value)
    watched.reset()
    assert watched.text(calls[-1]).shape == (len(calls[-1]), 0)


def test_two_threads_are_an_error():
    watched, raised = WatchedLoop("processor"), []
    watched.text(rows([1, 2]))

    def other():
        with pytest.raises(ValueError, match="two threads") as error:
            watched.text(rows([1, 2]))
        raised.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert raised and watched.text(rows([1, 2, 3])).tolist() == [[3]]
