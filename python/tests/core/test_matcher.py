"""Masks against the definition, and the laws of commits, rollbacks and forks on random walks."""

import copy
import random
import re
import threading

import numpy as np
import pytest
from conftest import END, PAD, PIECES, SCHEMA, mask_of, regex_language, schema_language, tokens_in

import palmette
from palmette import Grammar, NotAllowed


def check_language(compiled, language, longest=None):
    """Compares the mask after every text of tokens that the language begins with, up to a length."""
    seen, waiting = set(), [(b"", compiled.matcher())]
    while waiting:
        text, matcher = waiting.pop()
        if text in seen:
            continue
        seen.add(text)
        expected = language.mask(text)
        assert mask_of(matcher) == expected, text
        assert matcher.allowed().tolist() == sorted(expected)
        assert matcher.is_accepting == (text in language.texts)
        for token in range(len(PIECES) + 2):
            after = matcher.fork()
            if token not in expected:
                assert not after.try_commit(token), (text, token)
                assert after.position == matcher.position
                continue
            after.commit(token)
            if token == END:
                assert after.is_ended and after.is_accepting and not mask_of(after)
            elif longest is None or len(text + PIECES[token]) <= longest:
                waiting.append((text + PIECES[token], after))
    return len(seen)


@pytest.mark.parametrize(
    ("pattern", "alphabet", "longest"),
    [
        (r"(ab|a)(c|bcd)?d*", "abcd", 8),
        (r"(a|bc)*x?", "abcx", 8),
        (r"[ab]{2,3}(c[xy]|d)?", "abcdxy", 5),
        (r"a?b?c?d?", "abcd", 4),
        (r"(a(b(c)?)?)+", "abc", 9),
    ],
)
def test_regex_masks_are_the_definition(vocabulary, pattern, alphabet, longest):
    language = regex_language(pattern, alphabet, longest)
    compiled = Grammar.from_regex(pattern).compile(vocabulary)
    # Of infinite languages only texts up to a length are known: of what comes three letters, the longest token, and two more
    # before that, everything.
    infinite = "*" in pattern or "+" in pattern
    assert check_language(compiled, language, longest - 5 if infinite else None) > 5


def test_schema_masks_are_the_definition(schema):
    assert check_language(schema, schema_language()) > 100


def test_choices_are_exactly_these(vocabulary):
    choices = ["ab", "abc", "b.c", "b+", "[x]", "é", "a b", 'x"y', "\\d", "{1,2}", "a-z", "0^1", "-e"]
    compiled = Grammar.from_choices(choices).compile(vocabulary)
    for choice in choices:
        matcher = compiled.matcher()
        matcher.commit_bytes(choice.encode())
        assert matcher.is_accepting, choice
    assert not compiled.matcher().try_commit(PIECES.index(b"d"))
    for other in ["bxc", "bb", "é é", "5", "aa", "a-"]:
        matcher = compiled.matcher()
        try:
            matcher.commit_bytes(other.encode())
        except NotAllowed:
            continue
        assert not matcher.is_accepting, other


def test_random_walks_obey_the_laws(schema):
    """Commits, refusals, rollbacks, forks and copies against a list of tokens that is replayed."""
    rng = random.Random(7)
    num_tokens = len(PIECES) + 2

    def replayed(tokens):
        matcher = schema.matcher()
        matcher.commit_all(tokens)
        return matcher

    walks = [(schema.matcher(), [])]
    for _ in range(3000):
        at = rng.randrange(len(walks))
        matcher, tokens = walks[at]
        action = rng.random()
        if action < 0.6:
            allowed = matcher.allowed().tolist()
            token = rng.choice(allowed) if allowed and rng.random() < 0.8 else rng.randrange(num_tokens)
            if matcher.try_commit(token):
                assert token in allowed
                tokens.append(token)
            else:
                assert token not in allowed
                with pytest.raises(NotAllowed) as refused:
                    matcher.commit(token)
                assert refused.value.token == token and refused.value.position == len(tokens)
        elif action < 0.75:
            count = rng.randint(0, len(tokens))
            matcher.rollback(count)
            del tokens[len(tokens) - count :]
        elif action < 0.9 and len(walks) < 12:
            fork = rng.choice([matcher.fork, lambda: copy.copy(matcher), lambda: copy.deepcopy(matcher)])
            walks.append((fork(), list(tokens)))
        elif action < 0.95:
            matcher.reset()
            tokens.clear()
        elif len(walks) > 1:
            walks.pop(at)
            continue
        assert matcher.position == len(tokens)
        fresh = replayed(tokens)
        assert mask_of(matcher) == mask_of(fresh)
        assert matcher.is_accepting == fresh.is_accepting and matcher.is_ended == fresh.is_ended
    for matcher, tokens in walks:
        assert mask_of(matcher) == mask_of(replayed(tokens)), "forks do not see each other"


def test_an_end_token_is_a_commit(schema, vocabulary):
    matcher = schema.matcher()
    matcher.commit_bytes(b'{"a":"x"}')
    before = mask_of(matcher)
    assert END in before and PAD not in before
    matcher.commit(END)
    assert matcher.is_ended and matcher.is_accepting and matcher.position == 2
    assert not mask_of(matcher) and not matcher.try_commit(END)
    matcher.rollback()
    assert not matcher.is_ended and mask_of(matcher) == before
    matcher.rollback()
    assert mask_of(matcher) == mask_of(schema.matcher())


def test_ends_of_a_matcher_replace_those_of_the_vocabulary(vocabulary):
    compiled = Grammar.from_regex("ab(c|d)?").compile(vocabulary)
    c, d, x = (PIECES.index(piece) for piece in (b"c", b"d", b"x"))
    ab = PIECES.index(b"ab")

    special = compiled.matcher(ends=[PAD])
    special.commit(ab)
    assert special.ends == [PAD] and mask_of(special) == {c, d, PAD}

    text = compiled.matcher(ends=[x])
    assert x not in mask_of(text), "elsewhere than at an end it is text"
    text.commit(ab)
    assert mask_of(text) == {c, d, x}
    text.commit(x)
    assert text.is_ended
    text.rollback()

    both = compiled.matcher(ends=[c, END])
    both.commit(ab)
    assert mask_of(both) == {c, d, END}
    both.commit(c)
    assert both.is_ended, "at an end, an end token ends though the text could go on"

    none = compiled.matcher(ends=[])
    none.commit(ab)
    assert mask_of(none) == {c, d}
    ordinary = compiled.matcher()
    ordinary.commit(ab)
    assert mask_of(ordinary) == {c, d, END}, "others are not affected"


def test_all_or_none_and_prefixes(schema, vocabulary):
    good = [PIECES.index(b'{"'), PIECES.index(b"a"), PIECES.index(b'":'), PIECES.index(b'"')]
    bad = [*good, PIECES.index(b"0")]
    matcher = schema.matcher()
    assert matcher.accepted_prefix(bad) == 4 and matcher.accepted_prefix(good) == 4 and matcher.accepted_prefix([]) == 0
    with pytest.warns(DeprecationWarning, match="Matcher.accepted_prefix"):
        assert matcher.validate(bad) == 4
    with pytest.raises(NotAllowed) as refused:
        matcher.commit_all(bad)
    assert refused.value.position == 4 and matcher.position == 0
    matcher.commit_all(good)
    assert matcher.position == 4
    matcher.commit_all([])
    assert matcher.position == 4


def test_bytes_that_do_not_fit_change_nothing(schema):
    matcher = schema.matcher()
    with pytest.raises(NotAllowed, match="offset 4") as refused:
        matcher.commit_bytes(b'{"a"x')
    assert refused.value.token is None and refused.value.position == 0
    assert matcher.position == 0


def test_forced_text(vocabulary):
    compiled = Grammar.from_regex("abc(x|yé)").compile(vocabulary)
    matcher = compiled.matcher()
    assert matcher.forced_bytes() == b"abc" and matcher.forced_bytes(2) == b"ab"
    assert matcher.forced_tokens() == [], "three tokens begin abc"
    matcher.commit_bytes(b"abcx")
    assert matcher.forced_tokens() == [END] and matcher.forced_tokens(0) == []
    matcher.commit(END)
    assert matcher.forced_tokens() == [] and matcher.forced_bytes() == b""


def test_false_means_that_nothing_is_forbidden():
    full = palmette.Vocabulary([bytes([c]) for c in range(32)])
    compiled = Grammar.from_regex(r"(?s-u:.)*").compile(full)
    matcher = compiled.matcher()
    narrow, wide = palmette.allocate_bitmask(1, 32), palmette.allocate_bitmask(1, 64)
    assert matcher.fill_mask(narrow) is False and narrow[0, 0] == -1
    assert matcher.fill_mask(wide) is True, "padding is forbidden"
    assert wide.tolist() == [[-1, 0]]
    some = Grammar.from_regex(r"\x00").compile(full).matcher()
    assert some.fill_mask(narrow) is True and narrow.tolist() == [[1]]


def test_numbers_that_are_no_tokens(schema):
    matcher, size = schema.matcher(), schema.num_tokens
    for number in (-1, size, 2**31, 2**40):
        for call in (matcher.commit, matcher.try_commit, lambda n: matcher.accepted_prefix([n])):
            with pytest.raises(palmette.VocabularyError, match=rf"token {number} is not.*0 to {size - 1}"):
                call(number)
    with pytest.raises(OverflowError):
        matcher.commit(2**70)
    for other in ("a", None, 1.5, [1]):
        with pytest.raises(TypeError):
            matcher.commit(other)
    with pytest.raises(palmette.VocabularyError, match=f"token {size} is not"):
        schema.matcher(ends=[size])
    assert matcher.position == 0


def test_rollbacks_that_are_none(schema):
    matcher = schema.matcher()
    with pytest.raises(palmette.Error, match="1"):
        matcher.rollback(1)
    with pytest.raises(ValueError, match="-1"):
        matcher.rollback(-1)
    matcher.rollback(0)


def test_numpy_integers_are_numbers(schema):
    matcher, bitmask = schema.matcher(), palmette.allocate_bitmask(2, schema.num_tokens)
    matcher.fill_mask(bitmask, np.int64(1))
    matcher.commit(np.int32(matcher.allowed()[0]))
    matcher.accepted_prefix(np.array([1, 2], dtype=np.uint16))
    assert matcher.position == 1


# ------------------------------------------------------------------------------------------------------------------------
# Errors of grammars
# ------------------------------------------------------------------------------------------------------------------------


def test_errors_have_places(vocabulary):
    with pytest.raises(palmette.GrammarError) as lark:
        Grammar.from_lark('start: a\na: "x" b\n').compile(vocabulary)
    assert (lark.value.line, lark.value.column, lark.value.rule) == (2, 8, "a")
    with pytest.raises(palmette.GrammarError) as gbnf:
        Grammar.from_gbnf("root ::= item\nitem ::= other").compile(vocabulary)
    assert (gbnf.value.line, gbnf.value.rule) == (2, "item")
    with pytest.raises(palmette.GrammarError) as regex:
        Grammar.from_regex("ab(c").compile(vocabulary)
    assert regex.value.line == 1 and regex.value.column >= 1
    with pytest.raises(palmette.GrammarError) as schema:
        Grammar.from_json_schema('{"properties":\n {"a": {"type": 3}}}').compile(vocabulary)
    assert (schema.value.line, schema.value.path, schema.value.keyword) == (2, "/properties/a/type", "type")
    with pytest.raises(palmette.GrammarError) as json:
        Grammar.from_json_schema("{").compile(vocabulary)
    assert json.value.keyword is None
    assert issubclass(palmette.GrammarError, palmette.Error) and issubclass(palmette.Error, ValueError)


UNIQUE = {"type": "array", "items": {"type": "number"}, "uniqueItems": True}


def test_what_no_grammar_can_express(vocabulary):
    unsupported = {"type": "string", "format": "idn-hostname"}
    with pytest.raises(palmette.SchemaUnsupported) as refused:
        Grammar.from_json_schema(unsupported).compile(vocabulary)
    assert refused.value.keyword == "format" and isinstance(refused.value, palmette.GrammarError)
    relaxed = Grammar.from_json_schema(unsupported, on_partial="relax").compile(vocabulary)
    assert len(relaxed.notes) == 1 and "idn-hostname" in relaxed.notes[0]
    partly = Grammar.from_json_schema(UNIQUE)
    with pytest.raises(palmette.SchemaUnsupported):
        Grammar.from_json_schema(UNIQUE, on_partial="strict").check()
    assert Grammar.from_json_schema(UNIQUE, on_partial="relax").check()
    try:
        assert partly.check(), "accepted with a note"
    except palmette.SchemaUnsupported as refused:
        assert refused.keyword == "uniqueItems"


def test_limits_are_named(vocabulary):
    with pytest.raises(palmette.LimitExceeded) as steps:
        Grammar.from_json_schema(SCHEMA).compile(vocabulary, limits={"steps": 10})
    assert steps.value.limit == "steps"
    with pytest.raises(palmette.LimitExceeded) as depth:
        Grammar.from_json_schema(SCHEMA, max_depth=2).compile(vocabulary)
    assert depth.value.limit == "max_depth"
    with pytest.raises(ValueError, match='no limit "bytes"'):
        Grammar.from_json_schema(SCHEMA).compile(vocabulary, limits={"bytes": 1})
    with pytest.raises(TypeError, match="limit steps"):
        Grammar.from_json_schema(SCHEMA).compile(vocabulary, limits={"steps": -1})


def test_options_are_checked():
    for options, error, text in [
        ({"order": "none"}, ValueError, 'order is "none"'),
        ({"whitespace": 3}, TypeError, "whitespace"),
        ({"colour": 1}, TypeError, "no option"),
        ({"formats": "yes"}, TypeError, "formats"),
        ({"max_depth": -1}, TypeError, "max_depth"),
        ({"draft": "5"}, ValueError, "draft"),
        ({"on_partial": "ignore"}, ValueError, "relax"),
        ({"resources": []}, TypeError, "resources"),
    ]:
        with pytest.raises(error, match=re.escape(text)):
            Grammar.from_json_schema(True, **options)
    for options in [{"draft": 7}, {"draft": "2019-09"}, {"resources": None}, {"max_tracked": 6}, {"max_listed": 0}]:
        Grammar.from_json_schema(True, **options)
    with pytest.raises(ValueError, match="lexing"):
        Grammar.from_lark("start:", lexing="none")
    with pytest.raises(ValueError, match="hermes"):
        Grammar.from_tools("[]", "gpt")
    for choices, error in [("ab", TypeError), ([], ValueError), ([1], TypeError)]:
        with pytest.raises(error):
            Grammar.from_choices(choices)


# ------------------------------------------------------------------------------------------------------------------------
# Front ends
# ------------------------------------------------------------------------------------------------------------------------


def accepts(compiled, text):
    matcher = compiled.matcher()
    try:
        matcher.commit_bytes(text.encode())
    except NotAllowed:
        return False
    return matcher.is_accepting


def check_texts(grammar, vocabulary, good, bad):
    compiled = grammar.compile(vocabulary)
    assert [text for text in good if not accepts(compiled, text)] == []
    assert [text for text in bad if accepts(compiled, text)] == []


def test_every_front_end(vocabulary):
    check_texts(Grammar.from_lark('start: "a" start "b" |'), vocabulary, ["", "ab", "aabb"], ["a", "abb"])
    check_texts(Grammar.from_lark('x: "a"\ny: "b"', start="y"), vocabulary, ["b"], ["a"])
    check_texts(Grammar.from_gbnf('root ::= "a" | "b" root'), vocabulary, ["a", "bba"], ["b"])
    check_texts(Grammar.from_gbnf('r ::= "a"', root="r"), vocabulary, ["a"], [""])
    check_texts(Grammar.from_regex("[0-9]{2}"), vocabulary, ["42"], ["4", "421"])
    tag = {
        "type": "structural_tag",
        "format": {
            "type": "triggered_tags",
            "triggers": ["<f"],
            "tags": [
                {"begin": "<f>", "content": {"type": "json_schema", "json_schema": {"type": "boolean"}}, "end": "</f>"}
            ],
        },
    }
    check_texts(
        Grammar.from_structural_tag(tag), vocabulary, ["", "ok <f>true</f>", "a < b"], ["<f>3</f>", "<f>true"]
    )
    tools = [{"name": "now", "input_schema": {"enum": [{}]}}]
    call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    check_texts(Grammar.from_tools(tools, "hermes"), vocabulary, ["hello", call], [call[:-3], call.replace("now", "no")])
    request = {"tools": tools, "tool_choice": "required"}
    check_texts(Grammar.from_tools(request, "hermes"), vocabulary, [call], ["hello"])


def test_schemas_come_in_many_shapes(vocabulary):
    class Model:
        @staticmethod
        def model_json_schema():
            return {"type": "object", "properties": {"a": {"const": "x"}}, "required": ["a"]}

    class Adapter:
        @staticmethod
        def json_schema():
            return {"const": "x"}

    check_texts(Grammar.from_json_schema(Model), vocabulary, ['{"a": "x"}', '{"a":"x","b":1}'], ["{}", '{"a":"y"}'])
    check_texts(Grammar.from_json_schema(Adapter()), vocabulary, ['"x"'], ['"y"'])
    check_texts(Grammar.from_json_schema(True), vocabulary, ["1", "[{}]"], ["", "["])
    check_texts(Grammar.from_json_schema({}), vocabulary, ["1", "[{}]"], ["", "["])
    check_texts(Grammar.from_json_schema('{"const": "é"}'), vocabulary, ['"é"'], ['"e"'])
    check_texts(Grammar.from_json_schema({"const": "é"}), vocabulary, ['"é"', '"\\u00e9"'], ['"e"'])
    assert Grammar.from_json_schema({"const": 1}) == Grammar.from_json_schema('{"const": 1}')
    with pytest.raises(TypeError, match="pydantic"):
        Grammar.from_json_schema({"const": object()})
    with pytest.raises(ValueError):
        Grammar.from_json_schema({"const": float("nan")})
    with pytest.raises(palmette.GrammarError):
        Grammar.from_json_schema(False).compile(vocabulary)


def test_options_reach_the_grammar(vocabulary):
    both = {"type": "object", "properties": {"a": True, "b": True}, "required": ["a", "b"]}
    one_way, other = '{"a":1,"b":2}', '{"b":2,"a":1}'
    check_texts(Grammar.from_json_schema(both, order="schema"), vocabulary, [one_way], [other])
    check_texts(Grammar.from_json_schema(both), vocabulary, [one_way, other], [])
    array = {"type": "array", "items": {"type": "integer"}}
    check_texts(Grammar.from_json_schema(array, whitespace="spaced"), vocabulary, ["[1, 2]"], ["[1,2]"])
    check_texts(Grammar.from_json_schema(array, whitespace="compact"), vocabulary, ["[1,2]"], ["[1, 2]"])
    separated = Grammar.from_json_schema(array, whitespace=(" , ", ":"))
    check_texts(separated, vocabulary, ["[1 , 2]"], ["[1,2]", "[1, 2]"])
    assert separated.options["whitespace"] == (" , ", ":")
    assert Grammar.from_json_schema(array, **separated.options).options == separated.options
    with pytest.raises(ValueError, match="does not separate JSON"):
        Grammar.from_json_schema(array, whitespace=(";", ":"))
    check_texts(Grammar.from_json_schema(array), vocabulary, ["[1, 2]", "[1.0]"], ["[1,  2]"])
    check_texts(Grammar.from_json_schema(array, whitespace="flexible"), vocabulary, ["[1,    2] "], [])
    check_texts(Grammar.from_json_schema(array, integer_fractions=False), vocabulary, ["[1]"], ["[1.0]"])
    check_texts(Grammar.from_json_schema({"const": "a"}, escapes="any"), vocabulary, ['"\\u0061"'], [])
    check_texts(Grammar.from_json_schema({"const": "a"}), vocabulary, ['"a"'], ['"\\u0061"'])
    reference = Grammar.from_json_schema({"$ref": "u:x"}, resources={"u:x": {"const": 1}})
    check_texts(reference, vocabulary, ["1"], ["2"])
    date = {"type": "string", "format": "date"}
    check_texts(Grammar.from_json_schema(date), vocabulary, ['"2026-01-31"'], ['"x"'])
    check_texts(Grammar.from_json_schema(date, formats=False), vocabulary, ['"x"'], [])


# ------------------------------------------------------------------------------------------------------------------------
# Threads
# ------------------------------------------------------------------------------------------------------------------------


def test_threads_share_a_matcher_and_a_grammar(schema):
    """Two threads move one matcher back and forth while a third fills from it: every answer is one of the two masks."""
    open_brace = PIECES.index(b'{"')
    start = mask_of(schema.matcher())
    moved = schema.matcher()
    moved.commit(open_brace)
    known = {frozenset(start), frozenset(mask_of(moved))}
    shared, stop, wrong = schema.matcher(), threading.Event(), []

    def move():
        own = schema.matcher()
        for _ in range(3000):
            own.commit(open_brace)
            own.rollback()
            if shared.try_commit(open_brace):
                try:
                    shared.rollback()
                except palmette.Error as error:  # the other thread took it back
                    assert "commit" in str(error)

    def fill():
        bitmask = palmette.allocate_bitmask(1, schema.num_tokens)
        while not stop.is_set():
            shared.fill_mask(bitmask)
            if frozenset(tokens_in(bitmask)) not in known:
                wrong.append(tokens_in(bitmask))

    threads = [threading.Thread(target=move) for _ in range(2)]
    filler = threading.Thread(target=fill)
    for thread in [*threads, filler]:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    filler.join()
    assert wrong == []


def test_others_run_while_a_grammar_is_compiled(vocabulary):
    """Without the lock a second thread counts on; with it, it would not get a turn before the end."""
    item = {"type": "array", "uniqueItems": True, "items": {"enum": list(range(11))}}
    grammar = Grammar.from_json_schema({"type": "object", "properties": {f"p{i}": item for i in range(8)}})
    finished, counted = threading.Event(), 0

    def compile():
        grammar.compile(vocabulary, limits={})
        finished.set()

    thread = threading.Thread(target=compile)
    thread.start()
    while not finished.is_set():
        counted += 1
    thread.join()
    assert counted > 1000


def test_notes_name_terminals_that_nothing_can_follow() -> None:
    vocabulary = palmette.Vocabulary([b"x", b"!", None], [2])
    compiled = palmette.Grammar.from_lark('start: NAME "x" | "!"\nNAME: /[a-z]+/\n').compile(vocabulary)
    (note,) = compiled.notes
    assert note.startswith("line 2, column 1: no text has NAME where ")
    assert compiled.matcher().allowed().tolist() == [1]
