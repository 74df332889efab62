#!/usr/bin/env python3
"""Files, types and arrows between files on the way from the text of a schema to its first mask.

    CARGO_PROFILE_RELEASE_DEBUG=line-tables-only cargo build --release -p palmette-grammar --example first_mask
    valgrind --tool=callgrind --toggle-collect='*schema_to_first_mask*' --callgrind-out-file=walk.out --compress-strings=no \\
        --compress-pos=no target/release/examples/first_mask lab/timings/first_mask.json
    lab/timings/first_mask_walk.py walk.out [SOURCES]

Counted from what was executed, inlined code included, in the crates of this project: files with an executed line; types (structs, enums,
traits) with an executed line in an `impl` of theirs; functions with an executed line; arrows, ordered pairs of files of which the first
calls the second; and pairs of files that call each other. SOURCES is the checkout that the program was built from, by default this one.
"""

import collections
import pathlib
import re
import sys

CRATES = re.compile(r"crates/([\w-]+)/src/(.*)")


def executed(profile):
    """Executed lines by file, and arrows between files, from a profile of callgrind."""
    lines, arrows = collections.defaultdict(set), set()
    own = here = called = None
    skip = False
    for record in open(profile):
        name, _, value = record.rstrip("\n").partition("=")
        if name in ("fl", "fi", "fe"):
            here = value
            if name == "fl":
                own = value
            elif own and here != own:
                arrows.add((own, here))
        elif name in ("cfi", "cfl"):
            called = value
        elif name == "fn":
            here = own
        elif name == "cfn":
            called = called or here
        elif name == "calls":
            if here != called:
                arrows.add((here, called))
            called, skip = None, True
        elif record[:1].isdigit():
            if not skip:
                lines[here].add(int(record.split()[0]))
            skip = False
    return lines, arrows


def items(source):
    """The type of the `impl` and the function that each line is in."""
    owner = function = None
    found = {}
    for number, line in enumerate(source.split("\n"), 1):
        block = re.match(r"(?:unsafe )?impl\b(?:<.*?>)? ?(?:.*? for )?&?(?:'\w+ )?(?:\w+::)*(\w+)", line)
        block = block or re.match(r"(?:pub(?:\(\w+\))? )?trait (\w+)", line)
        if block:
            owner = block[1]
        elif line.startswith("}"):
            owner = function = None
        defined = re.match(r"\s*(?:pub(?:\([\w: ]+\))? )?(?:const |unsafe )*fn (\w+)", line)
        if defined:
            function = defined[1]
        found[number] = (owner, function)
    return found


def main():
    profile = sys.argv[1]
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parents[2])
    lines, arrows = executed(profile)
    crates, types, functions = collections.Counter(), set(), set()
    for file, numbers in lines.items():
        if not (inside := CRATES.search(file)):
            continue
        crates[inside[1]] += 1
        known = items((root / inside[0]).read_text())
        for number in numbers:
            owner, function = known.get(number, (None, None))
            if owner:
                types.add((inside[1], owner))
            if function:
                functions.add((inside[0], owner, function))
    arrows = {tuple(CRATES.search(end)[0] for end in arrow) for arrow in arrows if all(map(CRATES.search, map(str, arrow)))}
    mutual = {tuple(sorted(arrow)) for arrow in arrows if arrow[::-1] in arrows}
    shown = ", ".join(f"{crate} {number}" for crate, number in sorted(crates.items()))
    print(f"{sum(crates.values())} files ({shown}), {len(types)} types, {len(functions)} functions,")
    print(f"{len(arrows)} arrows between files, {len(mutual)} pairs that call each other")


main()
