"""Arrays that are written in place: which are taken, what the others hear, and logits under masks."""

import ctypes

import numpy as np
import pytest
from conftest import mask_of, tokens_in

import palmette
from palmette.numpy import apply_bitmask_


@pytest.fixture
def matcher(schema):
    return schema.matcher()


def test_a_new_bitmask_allows_everything():
    bitmask = palmette.allocate_bitmask(3, 65)
    assert bitmask.shape == (3, 3) and bitmask.dtype == np.int32 and (bitmask == -1).all()
    assert [palmette.bitmask_words(n) for n in (0, 1, 32, 33, 200_019)] == [0, 1, 1, 2, 6251]
    for call in (lambda: palmette.bitmask_words(-1), lambda: palmette.allocate_bitmask(-1, 5)):
        with pytest.raises(ValueError, match="-1"):
            call()
    with pytest.raises(ValueError, match="numpy"):
        palmette.allocate_bitmask(1, 1, like="jax")
    with pytest.raises(ValueError, match="pin"):
        palmette.allocate_bitmask(1, 1, pin=True)


def test_layouts_that_are_written(matcher, schema):
    expected, words = mask_of(matcher), palmette.bitmask_words(schema.num_tokens)
    for make in (
        lambda: np.full((2, words), -1, np.int32),
        lambda: np.full((2, words), 2**32 - 1, np.uint32),
        lambda: np.full((2, words + 3), -1, np.int32),
        lambda: np.full((4, words), -1, np.int32)[::2],
        lambda: np.full((2, 9), -1, np.int32)[:, :words],
        lambda: np.full((2, words), -1, np.int32)[::-1],
        lambda: np.full((1, words), -1, np.int32, order="F").repeat(2, axis=0),
    ):
        array = make()
        before = array[0].copy()
        assert matcher.fill_mask(array, 1) is True
        assert tokens_in(np.ascontiguousarray(array), 1) == expected
        assert (array[0] == before).all(), "other rows stay"
    row = np.full(words, -1, np.int32)
    matcher.fill_mask(row)
    assert tokens_in(row[None]) == expected
    memory = bytearray(4 * words)
    matcher.fill_mask(memoryview(memory).cast("i"))
    assert tokens_in(np.frombuffer(memory, np.int32)[None]) == expected


def test_nothing_beyond_the_row_is_touched(matcher, schema):
    words = palmette.bitmask_words(schema.num_tokens)
    around = np.full((4, words + 2), 77, np.int32)
    matcher.fill_mask(around[1:3, 1:-1], 1)
    assert (around[[0, 1, 3]] == 77).all() and (around[2, [0, -1]] == 77).all()
    assert tokens_in(np.ascontiguousarray(around[2:3, 1:-1])) == mask_of(matcher)


def test_arrays_that_are_refused(matcher, schema):
    words = palmette.bitmask_words(schema.num_tokens)
    shape = (2, words)
    read_only = np.zeros(shape, np.int32)
    read_only.flags.writeable = False
    swapped = np.zeros(shape, np.dtype(np.int32).newbyteorder())
    unaligned = np.frombuffer(bytearray(4 * words + 1), np.uint8)[1:].view(np.int32)
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(9 + words, np.int32), shape, (4, 4))
    for array, error, text in [
        (np.zeros(shape, np.int64), TypeError, "int64; a bitmask is int32"),
        (np.zeros(shape, np.float32), TypeError, "float32"),
        (np.zeros(shape, bool), TypeError, "bool"),
        (np.zeros(shape, object), TypeError, "object"),
        (swapped, TypeError, ">i4"),
        (np.zeros((2, 4 * words), np.uint8), TypeError, "uint8"),
        (np.zeros((2, words), np.int32, order="F"), ValueError, r"C order"),
        (np.zeros((2, 2 * words), np.int32)[:, ::2], ValueError, "C order"),
        (overlapping, ValueError, "C order"),
        (unaligned, ValueError, "C order"),
        (np.zeros((2, words - 1), np.int32), ValueError, rf"\(2, {words - 1}\).*takes {words} words"),
        (np.zeros((1, 2, words), np.int32), ValueError, rf"\(1, 2, {words}\)"),
        (np.zeros((), np.int32), ValueError, "no matrix"),
        (np.zeros((1, 1, 1, 1, 1), np.int32), ValueError, "5 dimensions"),
        (read_only, ValueError, "read-only"),
        (bytes(4 * words), TypeError, "int32"),
        ([[0] * words] * 2, TypeError, "list"),
        (None, TypeError, "NoneType"),
        (np.float32(1), ValueError, "float32"),
        (np.zeros(shape, "M8[s]"), TypeError, "datetime64"),
    ]:
        with pytest.raises(error, match=text):
            matcher.fill_mask(array)


def test_rows_that_are_not_there(matcher, schema):
    bitmask = palmette.allocate_bitmask(2, schema.num_tokens)
    for row in (-1, 2, 2**40):
        with pytest.raises(IndexError, match=f"row {row} of a bitmask with rows 0 to 1"):
            matcher.fill_mask(bitmask, row)
    with pytest.raises(IndexError, match="without rows"):
        matcher.fill_mask(bitmask[:0])
    with pytest.raises(TypeError):
        matcher.fill_mask(bitmask, "0")


def test_a_mask_buffer_is_the_array(matcher, schema):
    bitmask = palmette.allocate_bitmask(2, schema.num_tokens)
    buffer = palmette.MaskBuffer(bitmask)
    assert buffer.shape == bitmask.shape and buffer.array is bitmask
    matcher.fill_mask(buffer, 1)
    assert tokens_in(bitmask, 1) == mask_of(matcher)
    with pytest.raises(IndexError):
        matcher.fill_mask(buffer, 2)
    del bitmask
    matcher.fill_mask(buffer, 0)
    assert tokens_in(buffer.array, 0) == mask_of(matcher)
    with pytest.raises(TypeError):
        palmette.MaskBuffer([1])
    read_only = np.zeros((1, 9), np.int32)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        palmette.MaskBuffer(read_only)


def test_a_mask_buffer_whose_array_changed_is_refused(matcher, schema):
    """Arrays may be put elsewhere while others hold them: nothing is written where one was."""
    words = palmette.bitmask_words(schema.num_tokens)

    def resize(array):
        array.resize((400, words), refcheck=False)

    def reshape(array):
        array.shape = (1, 2 * words)

    def lock(array):
        array.flags.writeable = False

    for change in (resize, reshape, lock):
        array = np.full((2, words), -1, np.int32)
        buffer, logits = palmette.MaskBuffer(array), np.zeros((2, schema.num_tokens), np.float32)
        change(array)
        for call in (
            lambda: matcher.fill_mask(buffer),
            lambda: palmette.fill_masks([matcher, matcher], buffer),
            lambda: palmette.Follower(schema).advance(np.zeros((1, 0), np.int64), buffer),
            lambda: apply_bitmask_(logits, buffer),
        ):
            with pytest.raises(ValueError, match="make another MaskBuffer"):
                call()
        assert (array[:1] == -1).all() or change is not resize
    memory = bytearray(4 * words)
    buffer = palmette.MaskBuffer(memoryview(memory).cast("i"))
    with pytest.raises(BufferError):
        memory.extend(b"more")
    tensor = DLPackOnly(palmette.allocate_bitmask(2, schema.num_tokens))
    buffer = palmette.MaskBuffer(palmette.MaskBuffer(tensor))
    assert buffer.array is tensor and matcher.fill_mask(buffer)
    tensor.array = palmette.allocate_bitmask(2, schema.num_tokens)
    with pytest.raises(ValueError, match="make another MaskBuffer"):
        matcher.fill_mask(buffer)


class DLPackOnly:
    """A tensor that speaks DLPack and nothing else, as torch's do; `old` knows no versions."""

    def __init__(self, array, old=False, device=None):
        self.array, self.dtype, self.old, self.device = array, array.dtype, old, device

    def __dlpack__(self, **options):
        if self.old and options:
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("old", [False, True])
def test_tensors_by_dlpack(matcher, schema, old):
    bitmask = palmette.allocate_bitmask(3, schema.num_tokens)
    for _ in range(3):
        matcher.fill_mask(DLPackOnly(bitmask, old), 1)
    assert tokens_in(bitmask, 1) == mask_of(matcher) and (bitmask[[0, 2]] == -1).all()
    matcher.fill_mask(DLPackOnly(bitmask[::2], old), 1)
    assert tokens_in(bitmask, 2) == mask_of(matcher)
    with pytest.raises(ValueError, match="C order"):
        matcher.fill_mask(DLPackOnly(np.asfortranarray(np.zeros((9, 9), np.int32)), old))
    with pytest.raises(TypeError, match="float64"):
        matcher.fill_mask(DLPackOnly(np.zeros((2, 9)), old))
    logits = np.zeros((3, schema.num_tokens), np.float16)
    apply_bitmask_(DLPackOnly(logits, old), bitmask)
    assert (logits[0] == 0).sum() == schema.num_tokens


def test_a_read_only_tensor_is_refused(matcher):
    frozen = np.zeros((1, 9), np.int32)
    frozen.flags.writeable = False
    with pytest.raises((ValueError, BufferError), match="read-?only"):
        matcher.fill_mask(DLPackOnly(frozen))


def test_what_is_no_tensor(matcher):
    class Wrong:
        def __dlpack__(self, **options):
            return object()

    class Raises:
        def __dlpack__(self, **options):
            raise RuntimeError("on another device")

    with pytest.raises(TypeError, match="gave no tensor"):
        matcher.fill_mask(Wrong())
    with pytest.raises(RuntimeError, match="another device"):
        matcher.fill_mask(Raises())


def test_the_memory_outlives_the_tensor(matcher, schema):
    """A tensor that is handed over is released, and only once the call is at its end."""
    bitmask = palmette.allocate_bitmask(1, schema.num_tokens)
    before = ctypes.c_ssize_t.from_address(id(bitmask)).value
    for _ in range(100):
        matcher.fill_mask(DLPackOnly(bitmask))
        matcher.fill_mask(bitmask)
        palmette.MaskBuffer(bitmask)
    assert ctypes.c_ssize_t.from_address(id(bitmask)).value == before


# ------------------------------------------------------------------------------------------------------------------------
# Logits
# ------------------------------------------------------------------------------------------------------------------------


def slowly(logits, bitmask):
    """The definition: a logit stays where its bit is 1."""
    expected = logits.copy()
    for row in range(logits.shape[0]):
        for token in range(logits.shape[1]):
            word, bit = divmod(token, 32)
            if word >= bitmask.shape[1] or not int(bitmask[row, word]) >> bit & 1:
                expected[row, token] = -np.inf
    return expected


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_logits_under_a_mask(dtype):
    rng = np.random.default_rng(3)
    for tokens, words in [(1, 1), (31, 1), (32, 1), (33, 2), (100, 4), (100, 2), (64, 9), (0, 0), (5, 0)]:
        logits = rng.normal(size=(3, tokens)).astype(dtype)
        bitmask = rng.integers(-(2**31), 2**31, size=(3, words)).astype(np.int32)
        bitmask[rng.random(bitmask.shape) < 0.3] = -1
        bitmask[rng.random(bitmask.shape) < 0.3] = 0
        expected = slowly(logits, bitmask)
        assert apply_bitmask_(logits, bitmask) is logits
        np.testing.assert_array_equal(logits, expected)


def test_rows_of_logits():
    bitmask = np.array([[0], [-1], [5], [0]], np.int32)
    logits = np.zeros((4, 8), np.float32)
    apply_bitmask_(logits, bitmask, rows=[2, 1])
    assert np.isneginf(logits[2]).tolist() == [False, True, False, True, True, True, True, True]
    assert (logits[[0, 1, 3]] == 0).all()
    row = np.zeros(8, np.float32)
    apply_bitmask_(row, bitmask[2])
    assert np.isneginf(row).sum() == 6
    strided = np.zeros((8, 8), np.float32)
    apply_bitmask_(strided[::2], bitmask)
    assert np.isneginf(strided).sum() == 8 + 6 + 8 and (strided[1::2] == 0).all()


def test_bfloat16_is_seen_as_its_bits():
    class BFloat16(np.ndarray):
        """A double of `ml_dtypes.bfloat16`, as it looks from outside."""

    from palmette._palmette import apply_bitmask

    bits = np.full((1, 4), 0x3F80, np.uint16)
    apply_bitmask(bits, np.array([[0b0101]], np.int32), bfloat16=True)
    assert bits.tolist() == [[0x3F80, 0xFF80, 0x3F80, 0xFF80]]
    with pytest.raises(TypeError, match="uint16"):
        apply_bitmask(bits, np.array([[0]], np.int32))


def test_logits_that_are_refused():
    bitmask = np.zeros((2, 1), np.int32)
    read_only = np.zeros((2, 8), np.float32)
    read_only.flags.writeable = False
    for logits, error, text in [
        (np.zeros((2, 8), np.int32), TypeError, "int32; give float32"),
        (np.zeros((2, 8), np.complex64), TypeError, "complex64"),
        (np.zeros((3, 8), np.float32), ValueError, "3 rows and the bitmask has 2"),
        (np.zeros((2, 8), np.float32, order="F"), ValueError, "contiguous"),
        (read_only, ValueError, "read-only"),
        ([[0.0] * 8] * 2, TypeError, "list"),
    ]:
        with pytest.raises(error, match=text):
            apply_bitmask_(logits, bitmask)
    for row in (-1, 2):
        with pytest.raises(IndexError, match=f"row {row}"):
            apply_bitmask_(np.zeros((5, 8), np.float32), bitmask, rows=[row])
    with pytest.raises(IndexError, match="row 1 of logits"):
        apply_bitmask_(np.zeros((1, 8), np.float32), bitmask, rows=[1])
