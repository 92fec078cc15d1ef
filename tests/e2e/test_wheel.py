"""The built wheel in an empty environment serves the whole product: API, web client, GraphiQL and demo data."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.wheel import INSTALL_TIMEOUT_S, install_wheel, product_of_wheel, run_command
from tests.product import RunningProduct, eventually
from tests.programs import require_web_client

pytestmark = pytest.mark.timeout(INSTALL_TIMEOUT_S + 300)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and its declared dependencies at their locked versions."""
    require_web_client()
    return install_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def product(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProduct]:
    """Runs `noroshi up --demo` of the environment, with only `sh` and `ps` on PATH."""
    folder = tmp_path_factory.mktemp("installed")
    programs = folder / "bin"
    programs.mkdir()
    for name in ("sh", "ps"):
        (programs / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    with product_of_wheel(environment, folder, "--demo", PATH=str(programs)) as product:
        yield product


def test_modules_come_from_the_environment(environment: Path, tmp_path: Path) -> None:
    code = "import server, schema, resolvers, jobs, storage as s; print(*server.__path__, *s.__path__)"
    for path in run_command(environment / "bin" / "python", "-c", code, cwd=tmp_path).split():
        assert Path(path).is_relative_to(environment)


def test_license_is_in_the_wheel(environment: Path) -> None:
    (license_file,) = environment.glob("lib/python*/site-packages/noroshi-*.dist-info/licenses/LICENSE")
    assert "Apache License" in license_file.read_text()


def test_trusted_documents_of_the_web_client_are_in_the_wheel(environment: Path, tmp_path: Path) -> None:
    code = "from server.http.pages import documents_of_web_client as documents; print(len(documents()))"
    assert int(run_command(environment / "bin" / "python", "-c", code, cwd=tmp_path)) > 300


@pytest.mark.parametrize("path", ["/", "/graphiql"])
def test_page_and_its_assets_are_served(product: RunningProduct, path: str) -> None:
    page = httpx2.get(product.url + path)
    assert page.status_code == 200
    assets = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page.text)
    assert any(asset.endswith(".js") for asset in assets)
    assert {httpx2.get(product.url + asset).status_code for asset in assets} == {200}


def test_stamp_is_served(product: RunningProduct) -> None:
    assert httpx2.get(f"{product.url}/stamps/hello.svg").status_code == 200


def test_demo_user_reads_demo_data(product: RunningProduct) -> None:
    token_link = eventually(lambda: re.search(r"#token=([\w.-]+)", product.output))
    assert token_link, product.errors

    def communities() -> Any:
        headers = {"authorization": f"Bearer {token_link[1]}"}
        response = httpx2.post(f"{product.url}/graphql", json={"query": "{ communities { name } }"}, headers=headers)
        return response.json()["data"]["communities"]

    assert eventually(communities, 120), product.errors
