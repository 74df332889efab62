"""Replays accept and reject cases for Lark grammars that another project keeps as a Rust test file.

  python lab/peers/grammar/lark_cases.py PALMETTE test_lark.rs

The file is read from outside and not kept here (llguidance: `parser/tests/test_lark.rs`). Read are the calls with literal arguments
of `lark_ok(grammar)`, `lark_err_test(grammar, message)`, and `lark_str_test_many(grammar, [accepted], [rejected])`: an
accepted text is in the language; a rejected one stops being the beginning of one of its texts, or, after `FINAL_REJECT:`,
is one and may not end. A grammar that is to be an error is one here whatever the message.

Prints each case that comes out otherwise, then how many are right. The exit status is 1 below the share of --least.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

CALL = re.compile(r"\b(lark_ok|lark_err_test|lark_str_test_many(?:_quiet)?)\(")


class NotLiteral(Exception):
    """An argument is computed."""


class Reader:
    """Rust's literals, lists of them and what is between."""

    def __init__(self, text, at):
        self.text, self.at = text, at

    def skip(self):
        blank = re.compile(r"(\s+|//[^\n]*)*")
        self.at = blank.match(self.text, self.at).end()

    def eat(self, symbol):
        self.skip()
        found = self.text.startswith(symbol, self.at)
        self.at += len(symbol) if found else 0
        return found

    def arguments(self):
        found = []
        while not self.eat(")"):
            found.append(self.value())
            self.eat(",")
        return found

    def value(self):
        self.eat("&")
        if self.eat("["):
            items = []
            while not self.eat("]"):
                items.append(self.value())
                self.eat(",")
            return items
        if raw := re.compile(r'r(#*)"').match(self.text, self.at):
            self.at = raw.end()
            end = self.text.index('"' + raw[1], self.at)
            found, self.at = self.text[self.at : end], end + 1 + len(raw[1])
            return found
        if self.eat('"'):
            return self.string()
        raise NotLiteral

    def string(self):
        found = ""
        while (character := self.text[self.at]) != '"':
            self.at += 1
            found += self.escape() if character == "\\" else character
        self.at += 1
        return found

    def escape(self):
        letter = self.text[self.at]
        self.at += 1
        if letter == "\n":
            self.at = re.compile(r"\s*").match(self.text, self.at).end()
            return ""
        if letter == "x":
            self.at += 2
            return chr(int(self.text[self.at - 2 : self.at], 16))
        if letter == "u":
            end = self.text.index("}", self.at)
            code, self.at = self.text[self.at + 1 : end], end + 1
            return chr(int(code, 16))
        return {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}.get(letter, letter)


def calls(text):
    """The calls with literal arguments, and how many others there are."""
    found, others = [], 0
    for call in CALL.finditer(text):
        try:
            line = text.count("\n", 0, call.start()) + 1
            found.append((call[1], line, Reader(text, call.end()).arguments()))
        except NotLiteral:
            others += 1
    return found, others


def check(palmette, grammar, texts):
    """None where the grammar is refused, with why; else the verdict on each text."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "grammar.lark")
        path.write_text(grammar)
        command = [palmette, "grammar", "check", str(path), "--json"]
        for number, text in enumerate(texts):
            pathlib.Path(folder, str(number)).write_text(text, newline="")
            command += ["--text", str(pathlib.Path(folder, str(number)))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if not done.stdout:
        return None, done.stderr.strip().splitlines()[0]
    return json.loads(done.stdout)["texts"], ""


def verdict(found):
    """What came out for a text: accept, or reject in its middle or at its end."""
    if found["accepted"]:
        return "accept"
    return "middle" if "refused_at" in found else "end"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("palmette", help="the command")
    parser.add_argument("file", type=pathlib.Path, help="the Rust test file")
    parser.add_argument("--least", type=float, default=0.0, help="least share of cases that come out right")
    arguments = parser.parse_args()
    found, others = calls(arguments.file.read_text())
    right = total = 0

    def judge(line, what, expected, came, why=""):
        nonlocal right, total
        total += 1
        right += expected == came
        if expected != came:
            print(f"line {line}: {what}: {expected} expected, {came} came out {why}".rstrip())

    for name, line, args in found:
        if name in ("lark_ok", "lark_err_test"):
            texts, why = check(arguments.palmette, args[0], [])
            expected = "grammar" if name == "lark_ok" else "error"
            judge(line, repr(args[0])[:160], expected, "error" if texts is None else "grammar", why)
            continue
        grammar, accepted, rejected = args
        wanted = [(text, "accept") for text in accepted]
        for text in rejected:
            final = text.startswith("FINAL_REJECT:")
            wanted.append((text.removeprefix("FINAL_REJECT:"), "end" if final else "middle"))
        texts, why = check(arguments.palmette, grammar, [text for text, _ in wanted])
        for number, (text, expected) in enumerate(wanted):
            came = "error" if texts is None else verdict(texts[number])
            judge(line, f"{grammar!r:.120} with {text!r:.80}", expected, came, why)
    print(f"{right} of {total} cases right; {others} calls have computed arguments and were left out")
    sys.exit(right < arguments.least * total)


if __name__ == "__main__":
    main()
