"""The `tektite` command as a shell sees it."""

from __future__ import annotations

import subprocess
import sys

import tektite


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from tektite.__main__ import main; main()"
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)


def test_version_is_the_package_s() -> None:
    assert run("--version").stdout == f"tektite {tektite.__version__}\n"


def test_help_lists_the_subcommands() -> None:
    shown = run("--help")
    assert shown.returncode == 0
    assert "warm" in shown.stdout


def test_warm_says_that_nothing_is_left_to_do() -> None:
    assert run("warm").stdout == "all kernels are compiled\n"


def test_what_can_be_mended_is_said_in_a_line() -> None:
    shown = run("console", "--attach", "nowhere", "--no-browser")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.startswith("tektite: a server is named by a URL") and shown.stderr.count("\n") == 1
