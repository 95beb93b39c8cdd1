"""Adds generated pages and the hashes of inline scripts to the documentation site.

mkdocs calls these functions (`hooks` in mkdocs.yml), so `mkdocs build` and `mkdocs serve` need no step before them.
"""

import base64
import hashlib
import importlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from scripts import reference, specifications, traceability  # noqa: E402

FAVICON = "web/public/favicon.svg"
PACKAGES = ("kernel", "actions", "jobs", "governance", "credit", "playback", "fleet", "testing")
HASHES = "script-hashes.json"
# Maps for those who debug the theme, other languages, and a list of addresses without a host.
NEEDLESS = ("assets/**/*.map", "assets/javascripts/lunr/**/*.js", "sitemap.xml*")
# The path of the site on the server; only the 404 page needs it.
MOUNTED = "/docs/"

_FENCE = re.compile(r"^(?P<marks>```+)(?P<language>\w+)(?P<option> .*)?$", re.MULTILINE)
_FILE = re.compile(r" file=(?P<name>\S+)")
_LINK = re.compile(r"(?<!!)\[(?P<words>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and the icon."""
    for path, text in generated().items():
        files.append(File.generated(config, path, content=text))
    files.append(File.generated(config, "assets/favicon.svg", abs_src_path=str(ROOT / FAVICON)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """The page without the marks of blocks for the tests, and without links to files outside docs/."""
    return within_docs(plain_fences(markdown), page.file.src_uri)


def on_post_page(output: str, **_: Any) -> str:
    return with_named_search(output)


def on_post_template(output_content: str, **_: Any) -> str:
    return with_named_search(output_content)


def on_template_context(context: dict[str, Any], template_name: str, **_: Any) -> dict[str, Any]:
    """The 404 page is shown at any depth, so its links begin at the root of the server."""
    if template_name == "404.html":
        context["base_url"] = MOUNTED
    return context


def on_post_build(config: MkDocsConfig) -> None:
    """Remove what no page loads, and write the hashes of all inline scripts for the server's policy."""
    site = Path(config.site_dir)
    for needless in [found for pattern in NEEDLESS for found in site.glob(pattern)]:
        needless.unlink()
    pages = (path.read_text(encoding="utf-8") for path in site.rglob("*.html"))
    hashes = sorted({found for page in pages for found in script_hashes(page)})
    (site / HASHES).write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")


# ---- pages -----------------------------------------------------------------------------------------------------------


def generated() -> Mapping[str, str]:
    """The generated pages, by their paths below docs/."""
    pages = {f"reference/{name}": write() for name, write in reference.PAGES.items()}
    pages |= {f"reference/python/{package}.md": python_page(f"pendula.{package}") for package in PACKAGES}
    pages["reference/traceability.md"] = traceability.written(ROOT)
    pages["reference/specifications.md"] = specifications.written(ROOT)
    return pages


def python_page(package: str) -> str:
    """The names that a package exports, each to be filled in by mkdocstrings."""
    module = importlib.import_module(package)
    names = "\n\n".join(f"::: {package}.{name}" for name in module.__all__)
    summary = str(module.__doc__).partition("\n\n")[0]
    return f"# `{package}`\n\n{summary}\n\n{names}\n"


def plain_fences(markdown: str) -> str:
    """Keep only the language of each block, and its file name as the title."""

    def plain(fence: re.Match[str]) -> str:
        named = _FILE.fullmatch(fence["option"] or "")
        title = f' title="{named["name"]}"' if named else ""
        return f"{fence['marks']}{fence['language']}{title}"

    return _FENCE.sub(plain, markdown)


def within_docs(markdown: str, path: str) -> str:
    """Turn links to tests, examples and sources into text: the site does not have these files."""
    depth = path.count("/") + 1

    def kept(link: re.Match[str]) -> str:
        leads_out = link["target"].startswith("../" * depth)
        return link["words"] if leads_out else link[0]

    return _LINK.sub(kept, markdown)


def with_named_search(page: str) -> str:
    """The search of the theme is a dialog without a name, which a screen reader cannot announce."""
    return page.replace(' role="dialog">', ' role="dialog" aria-label="Search">', 1)


def script_hashes(page: str) -> Iterator[str]:
    """The hashes of the inline scripts of a page, in the form of a Content-Security-Policy; data is no script."""
    for script in _SCRIPT.finditer(page):
        if "src=" not in script["attributes"] and "application/json" not in script["attributes"]:
            digest = hashlib.sha256(script["text"].encode()).digest()
            yield f"sha256-{base64.b64encode(digest).decode()}"
