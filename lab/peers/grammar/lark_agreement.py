"""Random Lark grammars with free text: what is accepted here, beside the Python package `lark`.

  pip install lark
  python lab/peers/grammar/lark_agreement.py PALMETTE --grammars 300 --texts 60 --seed 1

`--lexing any` is compared with lark's Earley parser and its lexer `dynamic_complete`, which tries all cuttings; contextual lexing, the
default, with lark's LALR parser and contextual lexer. There lark takes the first terminal that matches in an order of its own
(priority, the text's or pattern's length, its kind), and here the longest lexeme wins, as in llguidance: where two terminals that a
parser state takes match different lengths the two may differ, which is counted apart: a text is *cut otherwise* if lark's tokens are not
the longest at their places among those that it accepted there. A grammar that LALR(1) cannot read without a conflict, and one with a rule that has no
sentence, is left out of the second comparison.

With `--walks N`, masks write N texts for each grammar that both read, one character after another: at each place the text may end or
something may follow, and lark reads what is written. A text that did not come to an end is counted as *open*.

With `--looking-back`, terminals with lookbehinds and word boundaries at their beginning are among the others. Dead ends are not looked for in such
grammars, and the first comparison is left out: `dynamic_complete` matches all but the longest lexeme of a place apart from the text before it.

Prints each disagreement that is not explained so, and the counts. The exit status is 1 if there is one.
"""

import argparse
import json
import logging
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import lark

# Terminals of which grammars are made, with some of their lexemes: keywords, names, numbers, free text to the end of a line or to a mark.
TERMINALS = {
    "NAME": (r"/[a-z]+/", ["a", "ab", "if", "end", "b"]),
    "NUMBER": (r"/[0-9]+/", ["0", "90"]),
    "WORD": (r"/[a-z0-9]+/", ["a0", "if", "9", "b"]),
    "LINE": (r"/[^\n]+/", ["a b", "if", "- 0;", "x"]),
    "TEXT": (r"/[^<>]+/", ["a b", "a\nb", "end"]),
    "VALUE": (r"/[^;=\n]+/", ["a", "0 b", "- a"]),
    "STRING": (r"/\"[^\"]*\"/", ['"a"', '""']),
    "SPACES": (r"/ +/", [" ", "  "]),
}
# Those that look at the text before their lexemes, taken in by --looking-back.
LOOKING_BACK = {
    "KEYWORD": (r"/\bif\b/", ["if"]),
    "AFTER": (r"/(?<=[=:;])[a-z]+/", ["a", "end"]),
    "END": (r"/(?<![a-z])end/", ["end"]),
    "WITHIN": (r"/\B[0-9]+/", ["0", "90"]),
    "PAIR": (r"/(?<=- |if)[a-z]/", ["a"]),
}
MARKS = [":", "=", ";", "<", ">", "- ", "if", "end", "\n", "(", ")", "a", "0"]
LETTERS = list("ab0 9:=;<>-\"()\n") + ["if", "end"]


class Grammar:
    """Rules of nested sequences, over some of the terminals and marks."""

    def __init__(self, rng):
        self.rng = rng
        self.names = rng.sample(sorted(TERMINALS), rng.randint(1, 3))
        self.rules = {name: None for name in ["start"] + [f"r{i}" for i in range(rng.randint(0, 2))]}
        for name in self.rules:
            self.rules[name] = [self.sequence(0) for _ in range(rng.randint(1, 3))]
        self.ignores = rng.random() < 0.3

    def sequence(self, depth):
        return [self.symbol(depth) for _ in range(self.rng.randint(1, 3))]

    def symbol(self, depth):
        kind, rng = self.rng.random(), self.rng
        if kind < 0.4:
            return ("mark", rng.choice(MARKS))
        if kind < 0.75 or depth > 1:
            return ("terminal", rng.choice(self.names))
        others = [name for name in self.rules if name != "start"]
        if kind < 0.85 and others:
            return ("rule", rng.choice(others))
        return ("group", self.sequence(depth + 1), rng.choice(["", "?", "*", "+"]))

    def lark(self):
        def shown(symbol):
            if symbol[0] == "group":
                return "(" + " ".join(map(shown, symbol[1])) + ")" + symbol[2]
            return json.dumps(symbol[1]) if symbol[0] == "mark" else symbol[1]

        lines = [
            f"{name}: " + " | ".join(" ".join(map(shown, body)) for body in bodies)
            for name, bodies in self.rules.items()
        ]
        lines += [f"{name}: {TERMINALS[name][0]}" for name in self.names if any(name in line for line in lines)]
        return "\n".join(lines + ['%ignore " "'] * self.ignores) + "\n"

    def is_productive(self):
        """Every rule has a sentence. A terminal that only leads into a rule without one is not taken here; lark takes it and is stuck."""
        ended = set()

        def ends(symbol):
            if symbol[0] == "group":
                return symbol[2] in ("?", "*") or all(map(ends, symbol[1]))
            return symbol[0] != "rule" or symbol[1] in ended

        for _ in self.rules:
            ended |= {name for name, bodies in self.rules.items() if any(all(map(ends, body)) for body in bodies)}
        return len(ended) == len(self.rules)

    def sentence(self, symbol=("rule", "start"), depth=0):
        rng = self.rng
        if symbol[0] == "mark":
            return symbol[1]
        if symbol[0] == "terminal":
            return rng.choice(TERMINALS[symbol[1]][1])
        if depth > 8:
            return ""
        parts = symbol[1] if symbol[0] == "group" else rng.choice(self.rules[symbol[1]])
        times = {"?": (0, 1), "*": (0, 2), "+": (1, 2)}.get(symbol[2] if symbol[0] == "group" else "", (1, 1))
        blank = " " if self.ignores and rng.random() < 0.3 else ""
        return "".join(blank + self.sentence(part, depth + 1) for _ in range(rng.randint(*times)) for part in parts)

    def text(self):
        """A sentence, or one that was changed in a place."""
        text = self.sentence()[:60]
        at = self.rng.randint(0, len(text))
        change = self.rng.random()
        if change < 0.2:
            return text[:at] + self.rng.choice(LETTERS) + text[at:]
        return text[:at] + text[at + 1 :] if change < 0.4 else text


def ours(palmette, source, inputs, *options):
    """By text, whether it is accepted; None where the grammar is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "grammar.lark")
        path.write_text(source)
        command = [palmette, "grammar", "check", str(path), "--json", *options]
        for number, text in enumerate(inputs):
            file = pathlib.Path(folder, str(number))
            file.write_text(text, newline="")
            command += ["--text", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if not done.stdout:
        return None
    return [text["accepted"] for text in json.loads(done.stdout)["texts"]]


def pieces(folder):
    """A vocabulary of single characters, as a SentencePiece list; gives its file and the characters by token."""
    shown = {"\n": "<0x0A>", " ": "\u2581"}
    characters = sorted(set("".join(LETTERS) + "".join("".join(texts) for _, texts in TERMINALS.values()) + "".join(MARKS)))
    path = pathlib.Path(folder, "pieces.json")
    path.write_text(json.dumps(["<unk>", "<s>", "</s>"] + [shown.get(one, one) for one in characters]))
    return path, {number: one for number, one in enumerate(characters, 3)}


def written(palmette, source, rng):
    """A text that masks write, and whether it came to an end; the text and None where it is stuck. None where no text is allowed."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "grammar.lark")
        path.write_text(source)
        vocabulary, characters = pieces(folder)
        text, prefix = "", pathlib.Path(folder, "prefix")
        for step in range(40):
            prefix.write_text(text, newline="")
            command = [palmette, "grammar", "mask", str(path), "--vocab", str(vocabulary), "--prefix-file", str(prefix), "--json"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            if done.returncode != 0:
                raise RuntimeError(f"{text!r} was allowed and then refused: {done.stderr}\n{source}")
            mask = json.loads(done.stdout)
            followers = [characters[token] for token in mask["tokens"] if token in characters]
            if mask["accepting"] and (not followers or rng.random() < 0.3):
                return text, True
            if not followers:
                return (text, None) if text else None
            # What ends sentences is rarely a letter.
            marks = [one for one in followers if not one.isalnum()]
            text += rng.choice(marks if marks and rng.random() < 0.5 else followers)
        return text, False


def accepts(parser, text):
    """Lark's verdict; None where it fails."""
    try:
        parser.parse(text)
        return True
    except (lark.exceptions.UnexpectedInput, lark.exceptions.UnexpectedEOF):
        return False
    except (RuntimeError, AssertionError):
        return None


def is_cut_otherwise(parser, text):
    """Whether lark stopped a token where a terminal that it accepted there goes on, or chose of equals by its own order."""
    state = parser.parse_interactive(text)
    try:
        while True:
            accepted = [name for name in state.accepts() | set(parser.ignore_tokens) if name != "$END"]
            token = next(state.lexer_thread.lex(state.parser_state), None)
            if token is None:
                return False
            matches = {}
            for name in accepted:
                found = re.compile(parser.get_terminal(name).pattern.to_regexp()).match(text, token.start_pos)
                if found:
                    matches[name] = found.end() - token.start_pos
            longest = max(matches.values(), default=0)
            if len(token) < longest or sum(length == longest for length in matches.values()) > 1:
                return True
            state.feed_token(token)
    except lark.exceptions.UnexpectedInput:
        # No token at all matched, or one that the parser takes did not.
        return True


class Conflicts(logging.Handler):
    """Counts the conflicts between shift and reduce that lark settles silently, for the shift."""

    def __init__(self):
        super().__init__()
        self.count = 0
        lark.logger.addHandler(self)
        lark.logger.setLevel(logging.DEBUG)
        lark.logger.propagate = False

    def emit(self, record):
        self.count += record.getMessage().startswith("Shift/Reduce conflict")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("palmette", help="the command")
    parser.add_argument("--grammars", type=int, default=300)
    parser.add_argument("--texts", type=int, default=60, help="texts of each grammar")
    parser.add_argument("--walks", type=int, default=0, help="texts of each grammar that masks write")
    parser.add_argument("--looking-back", action="store_true", help="with terminals that look at the text before them")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.looking_back:
        TERMINALS.update(LOOKING_BACK)
    counts = dict.fromkeys(["refused", "any", "accepted", "contextual", "cut otherwise", "unproductive", "not LALR(1)", "lark failed", "written", "open", "wrong"], 0)
    rng, conflicts = random.Random(arguments.seed), Conflicts()
    for _ in range(arguments.grammars):
        made = Grammar(rng)
        source, inputs = made.lark(), [made.text() for _ in range(arguments.texts)]
        free = ours(arguments.palmette, source, inputs, "--lexing", "any")
        if free is None:
            counts["refused"] += 1
            continue
        earley = lark.Lark(source, parser="earley", lexer="dynamic_complete")
        for text, found in zip(inputs, [] if arguments.looking_back else free):
            expected = accepts(earley, text)
            if expected is None:
                counts["lark failed"] += 1
                continue
            counts["any"] += 1
            counts["accepted"] += expected
            if found != expected:
                counts["wrong"] += 1
                print(f"any: {found} here, {expected} by lark: {text!r} of\n{source}")
        if not made.is_productive():
            counts["unproductive"] += 1
            continue
        conflicts.count = 0
        try:
            lalr = lark.Lark(source, parser="lalr", lexer="contextual", debug=True)
        except lark.exceptions.GrammarError:
            conflicts.count += 1
        if conflicts.count:
            counts["not LALR(1)"] += 1
            continue
        for text, found in zip(inputs, ours(arguments.palmette, source, inputs)):
            expected = accepts(lalr, text)
            counts["contextual"] += 1
            if found == expected:
                continue
            if is_cut_otherwise(lalr, text):
                counts["cut otherwise"] += 1
                continue
            counts["wrong"] += 1
            print(f"contextual: {found} here, {expected} by lark: {text!r} of\n{source}")
        for _ in range(arguments.walks):
            found = written(arguments.palmette, source, rng)
            if found is None:
                break
            text, ended = found
            counts["written"] += 1
            counts["open"] += ended is False
            if ended is None and arguments.looking_back:
                continue
            if ended is None:
                counts["wrong"] += 1
                print(f"written: stuck after {text!r} of\n{source}")
            elif ended and not accepts(lalr, text):
                explained = is_cut_otherwise(lalr, text)
                counts["cut otherwise"] += explained
                counts["wrong"] += not explained
                if not explained:
                    print(f"written: {text!r} is refused by lark, of\n{source}")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    sys.exit(counts["wrong"] > 0)


if __name__ == "__main__":
    main()
