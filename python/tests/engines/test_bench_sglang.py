"""The script that measures SGLang's beams on a GPU, at its smallest size."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from unzipped import require

require("sglang", "PALMETTE_SGLANG")

SCRIPT = pathlib.Path(__file__).parent.parent.parent / "bench" / "sglang_beams.py"


def test_the_script_runs_at_its_smallest():
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "--tiny"], capture_output=True, text=True, env=os.environ, timeout=600
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [line.split() for line in ran.stdout.splitlines() if "catalog" in line and "x" in line]
    assert len([row for row in rows if row[0] in ("8", "40")]) == 6
    assert all(row[-1] == "0" for row in rows if "no" not in row), ran.stdout
