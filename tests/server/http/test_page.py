"""The page is served unchanged from the package, under a strict policy; nothing else can be fetched."""

import json
from pathlib import Path

import httpx
import pytest

from pendula.server.http.envelope import SECURITY_HEADERS
from pendula.server.http.page import Page
from pendula.server.security.identity import Role, TokenStore
from pendula.server.settings import Settings
from tests.server.living import client_of, code_of, running

pytestmark = pytest.mark.anyio


@pytest.fixture
def built(tmp_path: Path) -> Page:
    root = tmp_path / "page"
    (root / "assets").mkdir(parents=True)
    (root / "index.html").write_text("<!doctype html><title>Pendula</title>")
    (root / "favicon.svg").write_text("<svg/>")
    (root / "assets" / "main-1a2b.js").write_text("1")
    (root / "assets" / "main-1a2b.css").write_text("a{}")
    (tmp_path / "secret.txt").write_text("secret")
    (root / "assets" / "link.txt").symlink_to(tmp_path / "absent")
    return Page(root)


async def test_the_page_is_served_at_the_root_and_revalidated(settings: Settings, built: Page) -> None:
    async with running(settings, page=built) as app, client_of(app) as client:
        response = await client.get("/")

        assert response.text == "<!doctype html><title>Pendula</title>"
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        assert response.headers["cache-control"] == "no-cache"
        again = await client.get("/", headers={"if-none-match": response.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/assets/main-1a2b.js", "text/javascript; charset=utf-8"),
        ("/assets/main-1a2b.css", "text/css; charset=utf-8"),
        ("/favicon.svg", "image/svg+xml"),
    ],
)
async def test_files_have_their_content_type_and_assets_are_immutable(
    settings: Settings, built: Page, path: str, kind: str
) -> None:
    async with running(settings, page=built) as app, client_of(app) as client:
        response = await client.get(path)

    assert response.status_code == 200
    assert response.headers["content-type"] == kind
    assert ("immutable" in response.headers["cache-control"]) is path.startswith("/assets/")


async def test_the_documentation_is_served_beside_the_page(settings: Settings, built: Page, tmp_path: Path) -> None:
    docs = tmp_path / "page/docs"
    (docs / "how-to").mkdir(parents=True)
    (docs / "index.html").write_text("all pages")
    (docs / "how-to/serve.html").write_text("how to serve")
    async with running(settings, page=Page(tmp_path / "page")) as app, client_of(app) as client:
        found = [(await client.get(path)).text for path in ("/docs/", "/docs/how-to/serve.html")]
        folder = await client.get("/docs")
        missing = await client.get("/docs/how-to/../../secret.txt")
    store = TokenStore(settings.data)
    store.new("ann", Role.VIEWER)
    async with running(settings, page=Page(tmp_path / "page")) as app, client_of(app) as client:
        for_anybody = await client.get("/docs/")

    assert for_anybody.text == "all pages"
    assert found == ["all pages", "how to serve"]
    assert (folder.status_code, folder.headers["location"]) == (307, "docs/")
    assert (missing.status_code, code_of(missing)) == (404, "not_found")


async def test_documentation_scripts_are_allowed_by_hash_and_only_there(
    settings: Settings, built: Page, tmp_path: Path
) -> None:
    docs = tmp_path / "page/docs"
    docs.mkdir()
    (docs / "index.html").write_text("<script>1</script>")
    good = f"sha256-{'aB+/' * 10}abc="
    (docs / "script-hashes.json").write_text(json.dumps([good, "sha256-short", "x'; script-src *"]))
    async with running(settings, page=Page(tmp_path / "page")) as app, client_of(app) as client:
        page = await client.get("/docs/")
        again = await client.get("/docs/", headers={"if-none-match": page.headers["etag"]})
        control_room = await client.get("/")

    policy = SECURITY_HEADERS["content-security-policy"]
    allowed = policy.replace("script-src 'self'", f"script-src 'self' '{good}'")
    assert again.status_code == 304
    assert [page.headers["content-security-policy"], again.headers["content-security-policy"]] == [allowed, allowed]
    assert control_room.headers["content-security-policy"] == policy


async def test_a_missing_documentation_page_is_an_html_404(settings: Settings, built: Page, tmp_path: Path) -> None:
    (tmp_path / "page/docs").mkdir()
    (tmp_path / "page/docs/404.html").write_text("no such page")
    async with running(settings, page=Page(tmp_path / "page")) as app, client_of(app) as client:
        missing = [await client.get(f"/docs/{name}") for name in ("nothing.html", "how-to/", "../../secret.txt")]
        head = await client.head("/docs/nothing.html")

    assert [(it.status_code, it.text) for it in missing[:2]] == [(404, "no such page")] * 2
    assert missing[0].headers["content-type"] == "text/html; charset=utf-8"
    assert missing[2].status_code == 404
    assert (head.status_code, head.text) == (404, "")


@pytest.mark.parametrize(
    "path",
    ["/assets/", "/assets/absent.js", "/assets/link.txt", "/assets/../../secret.txt", "/secret.txt", "/index.html/x"],
)
async def test_an_unknown_asset_is_not_found(settings: Settings, built: Page, path: str) -> None:
    async with running(settings, page=built) as app, client_of(app) as client:
        response = await client.get(path)

    assert (response.status_code, code_of(response)) == (404, "not_found")


async def test_a_missing_page_build_is_explained(settings: Settings, tmp_path: Path) -> None:
    async with running(settings, page=Page(tmp_path / "absent")) as app, client_of(app) as client:
        response = await client.get("/")

    assert response.status_code == 200
    assert "Node" in response.text
    assert "./run" not in response.text  # an installation with pip has none
    assert "<script" not in response.text


async def test_a_head_request_has_no_body(settings: Settings, built: Page) -> None:
    async with running(settings, page=built) as app, client_of(app) as client:
        assert (await client.head("/")).status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/v1/schedulers", "/healthz", "/nowhere", "/openapi.json"])
async def test_every_response_carries_the_security_headers(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path)

    for name, value in SECURITY_HEADERS.items():
        assert response.headers[name] == value
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
