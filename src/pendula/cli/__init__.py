"""The program `pendula`: the command line of the kernel, the schedulers and the server.

    text            printable text and numbers
    writing         atomic file writes
    fitting         tables that fit the terminal
    failing         exit codes, and errors as one line or one JSON object
    output          results as one JSON document or as tables; progress on stderr
    spread_options  options of commands with many runs
    schedulers      command groups and engines by scheduler, imported when needed
    benchmarks      the benchmark protocol, verdicts, and how benchmarks are found
    program         the command tree and its execution
    commands        the commands, a package per scheduler

If dependencies are missing, `pendula` prints what to install.
"""

import sys


def main() -> None:
    """Run `pendula` with the arguments of this process and exit with its code."""
    from pendula.cli.failing import ending

    arguments = sys.argv[1:]
    raise SystemExit(ending(arguments, lambda: _run(arguments)))


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        # Scripts query the version often, and building the command tree takes a tenth of a second.
        from pendula import __version__

        sys.stdout.write(f"pendula {__version__}\n")
        return 0

    from pendula.cli.failing import require

    require("cli")
    from pendula.cli.program import run

    return run(arguments)
