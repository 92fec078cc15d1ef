"""A `noroshi up` for tests that kill and stop its processes. All of them run one after another in one process."""

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import DeployedProduct, organization_of, start_product
from tests.product import eventually


@pytest.fixture(scope="package")
def own_product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedProduct]:
    """The product of the tests in this folder."""
    processes = start_product(tmp_path_factory.mktemp("product") / "data")
    try:
        yield DeployedProduct(processes.url, processes.data_dir, processes)
    finally:
        processes.end()


@pytest.fixture
def product(own_product: DeployedProduct, request: pytest.FixtureRequest) -> Iterator[DeployedProduct]:
    """The product, with users in an organization of the module. The next test begins when all processes run again."""
    yield own_product.in_organization(organization_of(request))
    assert eventually(own_product.is_whole, 120), own_product.processes.errors[-5000:]
