"""Runs the commands of a Markdown page and compares what they print with what the page shows.

Every block fenced as ``console`` counts. A line that begins with ``$ `` is a command, ``> ``
continues it, and the lines below it are what it prints: each must occur in the output, in this
order. In a line, ``...`` stands for any text and blanks for any number of blanks. All blocks of a
page run in one shell, in a copy of the checkout, so a page can be followed from top to bottom.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Command", "commands", "disagreement", "main"]

BLOCK = re.compile(r"^```console\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Command:
    """A command of a page and the lines that the page shows below it."""

    text: str
    shown: list[str] = field(default_factory=list)


def commands(page: str) -> list[Command]:
    """The commands of a page, in order; ``ValueError`` for a block that starts with output."""
    found: list[Command] = []
    for block in BLOCK.finditer(page):
        first = len(found)
        for line in block["body"].splitlines():
            if line.startswith("$ "):
                found.append(Command(line[2:]))
            elif len(found) == first:
                raise ValueError(f"a console block starts with {line!r} instead of a command")
            elif line.startswith("> "):
                found[-1].text += "\n" + line[2:]
            elif line.strip():
                found[-1].shown.append(line.strip())
    return found


def disagreement(shown: Sequence[str], output: str) -> str | None:
    """The first line of ``shown`` that ``output`` does not have in its turn, or None."""
    lines = iter([" ".join(line.split()) for line in output.splitlines()])
    for expected in shown:
        parts = " ".join(expected.split()).split("...")
        pattern = re.compile(".*".join(map(re.escape, parts)))
        if not any(pattern.fullmatch(line) for line in lines):
            return expected
    return None


def copy_checkout(target: Path) -> None:
    """Copies what git knows of, or would add, into ``target``."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"],
        check=True,
        capture_output=True,
        text=True,
    )
    present = [name for name in listed.stdout.splitlines() if Path(name).exists()]
    archive = subprocess.run(
        ["tar", "--create", "--files-from=-"],
        input="\n".join(present).encode(),
        check=True,
        capture_output=True,
    )
    subprocess.run(["tar", "--extract", f"--directory={target}"], input=archive.stdout, check=True)


class Shell:
    """One bash in which the commands of a page run one after another."""

    END = "--- end of command, status "

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        """The exit status of a command and what it printed, which is printed here too."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # The output may not end in a newline, so the mark brings its own.
        script = f"{{ {command}\n}} </dev/null\nstatus=$?; echo; echo '{self.END}'$status\n"
        self._process.stdin.write(script)
        self._process.stdin.flush()
        output: list[str] = []
        for line in self._process.stdout:
            if line.startswith(self.END):
                return int(line.removeprefix(self.END)), "".join(output)
            output.append(line)
            print(line, end="", flush=True)
        return self._process.wait(), "".join(output)

    def close(self) -> None:
        """Ends the shell and what it runs."""
        self._process.terminate()
        self._process.communicate()


def run_page(page: Path, shell: Shell, done: Sequence[str]) -> str | None:
    """Runs the commands of a page but those in ``done``; what went wrong, or None."""
    for command in commands(page.read_text(encoding="utf-8")):
        print(f"{page}: $ {command.text}", flush=True)
        if command.text in done:
            print("(has run already)", flush=True)
            continue
        status, output = shell.run(command.text)
        if status != 0:
            return f"{command.text!r} failed with status {status}"
        if (missing := disagreement(command.shown, output)) is not None:
            return f"{command.text!r} did not print {missing!r} in its turn"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the pages that the command line names; 0 when all of them tell the truth."""
    parser = argparse.ArgumentParser(description="Runs the commands of Markdown pages.")
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument(
        "--done",
        action="append",
        default=[],
        metavar="COMMAND",
        help="a command that the caller has run already, in the checkout itself",
    )
    options = parser.parse_args(arguments)
    for page in options.pages:
        with tempfile.TemporaryDirectory(prefix="tack-console-") as folder:
            copy_checkout(Path(folder))
            shell = Shell(Path(folder))
            try:
                fault = run_page(page, shell, options.done)
            finally:
                shell.close()
        if fault:
            print(f"{page}: {fault}")
            return 1
    print(f"the commands of {', '.join(map(str, options.pages))} do what the pages say")
    return 0


if __name__ == "__main__":
    sys.exit(main())
