"""The program `pendula`: ways in to the kernel, the schedulers and the server; no decisions.

    text        words and numbers for somebody who reads them
    plain_help  help without types of Python
    writing     files that are whole or not there
    fitting     tables that fit, and split no word
    failing     exit codes, and errors as one line or one JSON object
    output      results as one JSON document or as tables; progress on stderr
    spread_options  options of commands that make many runs
    schedulers       the schedulers by name: their groups of commands and their engines, imported when needed
    benchmarks  what a benchmark is, how it is judged and where benchmarks are found
    program     the tree of commands, and one run of it
    commands    a package a scheduler, a module a command

Where Pendula was installed without its dependencies, `pendula` says what to install.
"""

import sys


def main() -> None:
    """Run `pendula` with the arguments of this process and exit with its code."""
    from pendula.cli.failing import ending

    arguments = sys.argv[1:]
    raise SystemExit(ending(arguments, lambda: _run(arguments)))


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        # Programs ask for the version often, and the tree of commands takes a tenth of a second to build.
        from pendula import __version__

        sys.stdout.write(f"pendula {__version__}\n")
        return 0

    from pendula.cli.failing import require

    require("cli")
    from pendula.cli.program import run

    return run(arguments)
