"""Bitmasks and logits as torch tensors."""

import numpy as np
import pytest

import palmette

torch = pytest.importorskip("torch", reason="torch is not installed: masks in tensors are not tested")

from palmette.torch import allocate_bitmask, apply_bitmask_  # noqa: E402


@pytest.fixture(scope="module")
def compiled():
    vocabulary = palmette.Vocabulary([bytes([byte]) for byte in range(256)] + [None], ends=[256])
    return palmette.Grammar.from_json_schema({"enum": ["red", "green", None]}).compile(vocabulary)


def test_a_tensor_holds_what_an_array_does(compiled):
    matcher = compiled.matcher()
    array, tensor = palmette.allocate_bitmask(3, 257), allocate_bitmask(3, 257)
    assert tensor.dtype == torch.int32 and tensor.shape == array.shape and (tensor == -1).all()
    for given in (tensor, tensor[:], tensor.clone(), palmette.MaskBuffer(tensor)):
        matcher.fill_mask(given, 1)
    matcher.fill_mask(array, 1)
    assert (tensor.numpy() == array).all()
    wide = torch.full((4, 20), 7, dtype=torch.int32)
    matcher.fill_mask(wide[1:3, 2:12], 1)
    assert (wide[2, 2:11].numpy() == array[1]).all() and wide[2, 11] == 0
    assert (wide[[0, 1, 3]] == 7).all() and (wide[2, [0, 1, 12, 19]] == 7).all()


def test_a_tensor_that_was_put_elsewhere_needs_another_buffer(compiled):
    matcher, words = compiled.matcher(), palmette.bitmask_words(257)
    for change in (
        lambda tensor: tensor.resize_(40_000, words),
        lambda tensor: tensor.resize_(1, words),
        lambda tensor: tensor.set_(allocate_bitmask(3, 257)),
        lambda tensor: tensor.data.untyped_storage().resize_(0),
        lambda tensor: tensor.t_(),
    ):
        tensor = allocate_bitmask(3, 257)
        buffer = palmette.MaskBuffer(tensor)
        assert matcher.fill_mask(buffer, 2)
        change(tensor)
        with pytest.raises(ValueError, match="make another MaskBuffer|has no memory"):
            matcher.fill_mask(buffer, 2)


def test_tensors_of_the_batch_functions(compiled):
    matchers = [compiled.matcher() for _ in range(4)]
    tensor, array = allocate_bitmask(4, 257), palmette.allocate_bitmask(4, 257)
    palmette.fill_masks(matchers, tensor, torch.tensor([3, 1, 0, 2]).tolist())
    palmette.fill_masks(matchers, array)
    assert (tensor.numpy() == array).all()
    follower = palmette.Follower(compiled)
    follower.advance(torch.tensor([[34, 114], [34, 120]]), tensor)
    assert follower.alive == [True, False]
    follower.advance(torch.tensor([[34, 114], [34, 120]], dtype=torch.int32).t().contiguous().t(), tensor)
    assert follower.alive == [True, False] and follower.statistics == (2, 2)


def test_tensors_that_are_refused(compiled):
    matcher = compiled.matcher()
    for tensor, error, text in [
        (torch.zeros(2, 9), TypeError, "torch.float32; a bitmask is int32"),
        (torch.zeros(2, 9, dtype=torch.int64), TypeError, "torch.int64"),
        (torch.zeros(2, 9, dtype=torch.bool), TypeError, "torch.bool"),
        (torch.zeros(9, 9, dtype=torch.int32).t()[:, :9], ValueError, "C order"),
        (torch.zeros(2, 8, dtype=torch.int32), ValueError, "takes 9 words"),
        (torch.zeros(1, 2, 9, dtype=torch.int32), ValueError, r"\(1, 2, 9\)"),
        (torch.zeros(2, 9, dtype=torch.int32, device="meta"), (ValueError, RuntimeError, BufferError), "meta|memory|device"),
    ]:
        with pytest.raises(error, match=text):
            matcher.fill_mask(tensor)
    with pytest.raises(IndexError, match="row 2"):
        matcher.fill_mask(torch.zeros(2, 9, dtype=torch.int32), 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("tokens", [200, 256, 257, 320])
def test_logits_under_a_mask(dtype, tokens):
    generator = torch.Generator().manual_seed(4)
    words = torch.randint(-(2**31), 2**31, (5, 8), generator=generator, dtype=torch.int64).to(torch.int32)
    logits = torch.randn(5, tokens, generator=generator).to(dtype)
    bits = np.unpackbits(words.numpy().view(np.uint8), axis=1, bitorder="little").astype(bool)
    allowed = torch.zeros(5, tokens, dtype=torch.bool)
    covered = min(tokens, 256)
    allowed[:, :covered] = torch.from_numpy(bits[:, :covered])
    expected = logits.masked_fill(~allowed, float("-inf"))
    given = logits.clone()
    assert apply_bitmask_(given, words) is given
    assert torch.equal(given, expected)
    some = logits.clone()
    apply_bitmask_(some, words, rows=[3, 0])
    assert torch.equal(some[[0, 3]], expected[[0, 3]]) and torch.equal(some[[1, 2, 4]], logits[[1, 2, 4]])
    row = logits[2].clone()
    apply_bitmask_(row, words[2])
    assert torch.equal(row, expected[2])
    if dtype == torch.float32:
        # The path of devices, on this one: the same bits by torch's own operations.
        from palmette.torch import _spread_

        spread = logits.clone()
        _spread_(spread, words)
        assert torch.equal(spread, expected)
        needs_gradient = logits.clone().requires_grad_()
        apply_bitmask_(needs_gradient, words)
        assert torch.equal(needs_gradient.detach(), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU: masks on devices are not tested")
def test_logits_on_a_device():
    words = torch.tensor([[5, -1], [0, 1]], dtype=torch.int32)
    for dtype in (torch.float32, torch.bfloat16):
        expected = apply_bitmask_(torch.zeros(2, 70, dtype=dtype), words)
        for mask in (words, words.cuda(), words.pin_memory(), palmette.MaskBuffer(words)):
            logits = torch.zeros(2, 70, dtype=dtype, device="cuda")
            assert torch.equal(apply_bitmask_(logits, mask).cpu(), expected)
        logits = torch.zeros(2, 70, dtype=dtype, device="cuda")
        assert torch.equal(apply_bitmask_(logits, words, rows=[1]).cpu()[1], expected[1])
        assert (logits[0] == 0).all()
    with pytest.raises(ValueError, match="cuda:0"):
        palmette.MaskBuffer(words.cuda())
