"""Cases of programming languages: each Lark grammar with texts of its language.

The texts are in `texts/` beside this file (Python's are scripts of this folder); the grammars are given by a folder
with `json.lark`, `calc.lark`, `c.lark`, `sql.lark`, `java.lark` and `go.lark`, and a `python.lark`. A grammar
whose start is not called `start` gets a rule in front of it that is, since the engines agree on no other way to say so.

--plain writes each grammar once more in what all engines read: without priorities, and with comments and strings spelled
by greedy repetitions. A grammar with templates or declared terminals (Python's blocks) has no such form and is left out.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
TEXTS = {
    "json": ["texts/shop.json"],
    "calc": ["texts/ledger.calc"],
    "c": ["texts/numeric.c"],
    "sql": ["texts/reports.sql"],
    "java": ["texts/Inventory.java"],
    "go": ["texts/warehouse.go"],
    "python": ["languages.py", "xgrammar_worker.py"],
}

# Reluctant repetitions, and greedy ones that match the same.
GREEDY = {
    r"/\/\*(.|\n)*?\*\//": r"/\/\*([^*]|\*+[^*\/])*\*+\//",
    r"/\/\*[\s\S]*?\*\//": r"/\/\*([^*]|\*+[^*\/])*\*+\//",
    r"""/(?:[^"\\]|\\.)*?/""": r"""/(?:[^"\\]|\\.)*/""",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grammars", required=True, type=pathlib.Path, help="folder of the .lark files")
    parser.add_argument("--python", type=pathlib.Path, help="a grammar of Python, starting with file_input")
    parser.add_argument("--prepare", required=True, help="llguidance-peer or glrmask-peer, which cuts texts into tokens")
    parser.add_argument("--out", required=True, help="the cases as their grammars are written")
    parser.add_argument("--plain", help="the cases with grammars that all engines read")
    args = parser.parse_args()

    sources = {name: read(args, name) for name in TEXTS}
    write(args.prepare, sources, args.out)
    if args.plain:
        write(args.prepare, {name: source and plain(name, source) for name, source in sources.items()}, args.plain)


def read(args, name):
    """A grammar's source, None where there is none."""
    path = args.python if name == "python" else args.grammars / f"{name}.lark"
    if path is None or not path.exists():
        print(f"LEFT OUT: {name}, since there is no grammar {path or '(--python)'}", file=sys.stderr)
        return None
    return ("start: file_input\n" if name == "python" else "") + path.read_text()


def plain(name, source):
    """The grammar without what some engines do not read; None where that changes what it is."""
    source = re.sub(r"^([?!]?\w+)\.-?\d+(\s*:)", r"\1\2", source, flags=re.MULTILINE)
    for reluctant, greedy in GREEDY.items():
        source = source.replace(reluctant, greedy)
    for feature, sign in [("templates", r"^\w+\{"), ("declared terminals", r"^%declare")]:
        if re.search(sign, source, flags=re.MULTILINE):
            print(f"LEFT OUT of the plain cases: {name}, which has {feature}", file=sys.stderr)
            return None
    return source


def write(prepare, sources, out):
    """A case for each source that is there."""
    with tempfile.TemporaryDirectory() as folder:
        command = [prepare, "prepare", "--out", out]
        for name, source in sources.items():
            if source is None:
                continue
            grammar = pathlib.Path(folder) / f"{name}.lark"
            grammar.write_text(source)
            texts = []
            for path in TEXTS[name]:
                text = (HERE / path).read_text()
                texts.append(pathlib.Path(folder) / pathlib.Path(path).name)
                # Engines differ in whether ignored text may end a text; a line's end ends statements of Go and Python.
                texts[-1].write_text(text if name in ("go", "python") else text.rstrip())
            command += ["--lark", f"{name}={grammar}:" + ",".join(map(str, texts))]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
