"""Catalogs, lexicons, lists and documents under the names that grammars call them."""

import json
import pickle
import random

import numpy as np
import pytest
from conftest import END, PIECES, mask_of

import palmette
from palmette import Grammar, GrammarError, Lexicon, Substrings

ITEMS = {"a1": ("x", 0), "ab": ("yz", 3), "abc": ("x", 7), "b2": ("z", 1)}


@pytest.fixture
def shop():
    return palmette.Catalog.build(
        np.array([[0, i] for i in range(len(ITEMS))]),
        ids=list(ITEMS),
        attributes={"brand": [brand for brand, _ in ITEMS.values()], "stock": [stock for _, stock in ITEMS.values()]},
    )


def compiled_of(vocabulary, source):
    return Grammar.from_gbnf(source).compile(vocabulary)


LIST = 'root ::= <catalog:shop> ("," <catalog:shop>)*'


def texts_of(items, length):
    """The texts of the grammar `LIST` over these values, up to a length."""
    found, waiting = set(), set(items)
    while waiting:
        text = waiting.pop()
        if len(text) <= length and text not in found:
            found.add(text)
            waiting.update(f"{text},{item}" for item in items)
    return found


def check_masks(compiled, items, seed=1, walks=20):
    """Masks along random walks, compared with the definition: a text of the list begins so."""
    texts, draw = texts_of(items, 16), random.Random(seed)
    for _ in range(walks):
        matcher, text = compiled.matcher(), ""
        while len(text) < 6:
            starts = {token for token, piece in enumerate(PIECES) if any(t.startswith(text + piece.decode("latin-1")) for t in texts)}
            expected = starts | ({END} if text in texts else set())
            assert mask_of(matcher) == expected, text
            token = draw.choice(sorted(starts))
            matcher.commit(token)
            text += PIECES[token].decode("latin-1")


def test_masks_are_those_of_the_values(vocabulary, shop):
    compiled = compiled_of(vocabulary, LIST)
    assert compiled.names == ["shop"] and compiled.sources == {}
    in_stock = shop.filter({"range": {"stock": {"gt": 0}}})
    for source, items in [
        (shop, set(ITEMS)),
        (in_stock, {"ab", "abc", "b2"}),
        (in_stock & shop.filter({"match": {"brand": "x"}}), {"abc"}),
        (shop.all_items() - in_stock, {"a1"}),
        (shop.items_with_ids(["b2", "a1"]), {"a1", "b2"}),
        (Lexicon(["abc", "ab", "ab"]), {"ab", "abc"}),
        (["x", "yz"], {"x", "yz"}),
    ]:
        bound = compiled.bind(shop=source)
        assert bound.sources == {"shop": {"generation": None, "eligible": len(items)}}
        check_masks(bound, items)
    # The grammar that was bound is as it was.
    with pytest.raises(GrammarError, match="shop"):
        mask_of(compiled.matcher())


def test_members_of_a_text_are_told(vocabulary, shop):
    schema = {
        "type": "object",
        "required": ["a", "b"],
        "additionalProperties": False,
        "properties": {
            "a": {"type": "string", "x-catalog": "shop.brand"},
            "b": {"type": "string", "x-substring": {"of": "doc", "unit": "chars"}},
        },
    }
    compiled = Grammar.from_json_schema(schema).compile(vocabulary)
    assert compiled.names == ["doc", "shop"]
    bound = compiled.bind(shop=shop, doc=Substrings(["no", 'x"yz']))
    matcher = bound.matcher()
    assert matcher.members() == []
    text = b'{"a":"yz","b":"\\"y"}'
    matcher.commit_bytes(text[:5])
    for byte in text[5:]:
        matcher.commit(PIECES.index(bytes([byte])))
    brand, quote = matcher.members()
    assert (brand.set, brand.field, brand.value, brand.id) == ("shop", "brand", "yz", None)
    assert text[slice(*brand.span)] == b"yz"
    assert (quote.value, quote.document, quote.place) == ('"y', 1, (1, 3))
    assert text[slice(*quote.span)] == b'\\"y'
    assert matcher.fork().members() == [brand, quote] and "shop.brand 'yz'" in repr(brand).replace('"', "'")
    matcher.commit(END)
    assert matcher.members() == [brand, quote]
    matcher.rollback(5)
    assert matcher.members() == [brand]
    ids = compiled_of(vocabulary, LIST).bind(shop=shop).matcher()
    ids.commit_bytes(b"ab,b2")
    assert [(member.id, member.span) for member in ids.members()] == [("ab", (0, 2)), ("b2", (3, 5))]


def test_live_catalogs_are_pinned_where_they_are_bound(vocabulary, shop, tmp_path):
    compiled = compiled_of(vocabulary, LIST)
    with palmette.LiveCatalog.create(tmp_path / "live", shop) as live:
        before = compiled.bind(shop=live)
        live.apply([{"delete": "ab"}, {"delete": "abc"}, {"id": "xx", "codes": [0, 2]}])
        after = before.bind(shop=live)
        reader = palmette.LiveReader.open(tmp_path / "live")
        assert (before.sources["shop"]["generation"], after.sources["shop"]["generation"]) == (0, live.generation)
        check_masks(before, set(ITEMS))
        for bound in (after, compiled.bind(shop=reader), compiled.bind(shop=live.snapshot())):
            check_masks(bound, {"a1", "b2", "xx"})


def test_batches_and_followers_take_bound_grammars(vocabulary, shop):
    compiled = compiled_of(vocabulary, LIST)
    bounds = [compiled.bind(shop=[value]) for value in ("a1", "b2", "yz")]
    bitmask = palmette.allocate_bitmask(3, vocabulary.num_tokens)
    palmette.fill_masks([bound.matcher() for bound in bounds], bitmask)
    for row, bound in enumerate(bounds):
        alone = palmette.allocate_bitmask(1, vocabulary.num_tokens)
        bound.matcher().fill_mask(alone)
        assert (bitmask[row] == alone[0]).all()
    follower = palmette.Follower(bounds[1])
    mask = palmette.allocate_bitmask(1, vocabulary.num_tokens)
    follower.advance(np.array([[PIECES.index(b"b")]]), mask)
    matcher = bounds[1].matcher()
    matcher.commit(PIECES.index(b"b"))
    alone = palmette.allocate_bitmask(1, vocabulary.num_tokens)
    matcher.fill_mask(alone)
    assert (mask == alone).all()


def test_what_does_not_fit_is_an_error(vocabulary, shop, tmp_path):
    compiled = compiled_of(vocabulary, LIST)
    for sets, error, words in [
        ({}, GrammarError, "which is not bound; nothing is bound"),
        ({"shpo": shop}, GrammarError, "the nearest that is bound is shpo"),
        ({"shop": shop, "more": shop}, GrammarError, "more is bound, and the grammar names no such catalog"),
        ({"shop": shop.filter({"match": {"brand": "nobody"}})}, GrammarError, "shop: 0 of 4 match"),
        ({"shop": Substrings(["x"])}, GrammarError, "documents"),
        ({"shop": 5}, TypeError, "not int"),
        ({"shop": "a1"}, TypeError, "not str"),
    ]:
        with pytest.raises(error, match=words):
            compiled.bind(**sets)
    with pytest.raises(palmette.CatalogError, match="colour"):
        compiled_of(vocabulary, "root ::= <catalog:shop.colour>").bind(shop=shop)
    with pytest.raises(TypeError, match="put it in a list"):
        Lexicon("text")
    with pytest.raises(TypeError, match="put it in a list"):
        Substrings("text")
    bound = compiled.bind(shop=shop)
    with pytest.raises(TypeError, match="bind it there"):
        pickle.dumps(bound)
    # A file has the grammar and none of its sets.
    bound.save(tmp_path / "grammar.pmg")
    check_masks(palmette.load(tmp_path / "grammar.pmg", vocabulary).bind(shop=["x"]), {"x"}, walks=3)


def test_lexicons_are_files(tmp_path):
    lexicon = Lexicon(["tea", "tent", "tea"])
    assert len(lexicon) == 2 and "tent" in lexicon and "ten" not in lexicon
    lexicon.save(tmp_path / "words.palm")
    opened = Lexicon.open(tmp_path / "words.palm")
    assert len(opened) == 2 and "tea" in opened and repr(opened) == "<palmette.Lexicon of 2 texts>"
    with pytest.raises(FileNotFoundError):
        Lexicon.open(tmp_path / "none.palm")
    (tmp_path / "broken.palm").write_bytes(b"PALMLEX")
    with pytest.raises(palmette.CatalogError, match="broken.palm"):
        Lexicon.open(tmp_path / "broken.palm")


def test_catalogs_of_the_process(vocabulary, shop, tmp_path, monkeypatch):
    catalogs = palmette.catalogs
    compiled = compiled_of(vocabulary, LIST)
    with pytest.raises(GrammarError, match="nothing is bound"):
        catalogs.bound(compiled)
    plain = Grammar.from_regex("a").compile(vocabulary)
    assert catalogs.bound(plain) is plain
    Lexicon(["x"]).save(tmp_path / "words.palm")
    shop.save(tmp_path / "shop.palm")
    palmette.LiveCatalog.create(tmp_path / "live", shop).close()
    for kind, path, items in [("path", "words.palm", {"x"}), ("path", "shop.palm", set(ITEMS)), ("live", "live", set(ITEMS))]:
        file = tmp_path / f"{path}.json"
        file.write_text(json.dumps({"shop": {kind: str(tmp_path / path)}, "other": {"path": "none.palm"}}))
        monkeypatch.setenv(catalogs.ENVIRONMENT, str(file))
        assert catalogs.names() == ["other", "shop"]
        check_masks(catalogs.bound(compiled), items, walks=3)
    catalogs.register("shop", ["yz"])
    try:
        check_masks(catalogs.bound(compiled), {"yz"}, walks=3)
    finally:
        catalogs.unregister("shop")
    (tmp_path / "wrong.json").write_text('{"shop": {"code_tokens": []}}')
    monkeypatch.setenv(catalogs.ENVIRONMENT, str(tmp_path / "wrong.json"))
    with pytest.raises(ValueError, match="needs 'path' or 'live'"):
        catalogs.bound(compiled)
    monkeypatch.delenv(catalogs.ENVIRONMENT)
    with pytest.raises(KeyError):
        catalogs.unregister("shop")


def test_filters_stand_in_schemas_too(large, shop):
    member = {"type": "string", "x-catalog": {"name": "shop", "filter": {"match": {"brand": "x"}}}}
    compiled = Grammar.from_json_schema(member, whitespace="compact").compile(large)
    bound = compiled.bind(shop=shop.filter({"range": {"stock": {"gt": 0}}}))
    assert bound.sources["shop"]["eligible"] == 1
    matcher = bound.matcher()
    matcher.commit_bytes(b'"')
    assert matcher.forced_bytes() == b'abc"'
    assert json.loads(b'"' + matcher.forced_bytes()) == "abc"
