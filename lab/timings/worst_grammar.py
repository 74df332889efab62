"""The worst cases of an engine, from the lines that `palmette bench grammar --lines` prints or its `--keep-lines FOLDER` keeps.

    python3 worst_grammar.py palmette.jsonl [--floor 0.28 2.61] [--show 10]

Three tables in Markdown: by the slowest first visit, by the slowest later mask, by compiling. For first visits it says how many
there are beyond 20 us, 100 us and 1 ms and which part of the walk's time they are; for later masks how far they are from the
floor, which is the time of copying a mask in the cache and from memory (`palmette bench grammar` prints it).
"""

import argparse
import json


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", type=argparse.FileType())
    parser.add_argument("--floor", nargs=2, type=float, default=[0.28, 2.61], metavar="US")
    parser.add_argument("--show", type=int, default=10)
    args = parser.parse_args()
    compiled = [line for line in map(json.loads, args.lines) if line["compiled"]]
    cases = [case for case in compiled if case["mask_us"]]

    beyond = [20, 100, 1000]
    head = ["case", "steps", "slowest us", "median us", *(f"> {us} us" for us in beyond), "their part of the time"]
    print("By first visits\n\n" + table(head, [first(case, beyond) for case in worst(cases, args.show, "mask_us_cold")]))
    head = ["case", "steps", "slowest us", "median us", "slowest / copy in cache", "slowest / copy from memory"]
    print("\nBy later masks\n\n" + table(head, [later(case, args.floor) for case in worst(cases, args.show, "mask_us")]))
    compiled.sort(key=lambda case: -case["compile_ms"])
    rows = [[case["name"], figure(case["compile_ms"]), figure(case["bytes"] / 1024)] for case in compiled[: args.show]]
    print("\nBy compiling\n\n" + table(["case", "compile ms", "memory KB, with masks"], rows))


def worst(cases, count, column):
    return sorted(cases, key=lambda case: -max(case[column]))[:count]


def first(case, beyond):
    times = case["mask_us_cold"]
    slow = sum(us for us in times if us > beyond[0])
    return [
        *shape(case, times),
        *(str(sum(us > least for us in times)) for least in beyond),
        f"{100 * slow / sum(times):.0f}%",
    ]


def later(case, floor):
    times = case["mask_us"]
    return [*shape(case, times), *(figure(max(times) / us) for us in floor)]


def shape(case, times):
    return [case["name"], str(len(times)), figure(max(times)), figure(sorted(times)[len(times) // 2])]


def figure(number):
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def table(head, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


if __name__ == "__main__":
    main()
