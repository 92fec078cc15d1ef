"""`noroshi up` in a process that is forked from a preloaded one. Its web and worker processes are started as usual."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.preloaded import PreloadedProcess
from tests.product import ObservedProduct, RunningProduct, environment


class ForkedProduct(RunningProduct):
    """A running product whose standard output and standard error are one file."""

    def __init__(self, data_dir: Path, *arguments: str, **variables: str) -> None:
        command = ["up", "--port", "0", "--data-dir", str(data_dir), *arguments]
        self.process = PreloadedProcess(command, environment(**variables), data_dir.with_name("out"), None)
        ObservedProduct.__init__(self, data_dir, self.process.pid)
        self._err = self._out


@contextmanager
def forked_product(data_dir: Path, *arguments: str, **variables: str) -> Iterator[ForkedProduct]:
    """Starts a product, and ends it afterwards."""
    product = ForkedProduct(data_dir, *arguments, **variables)
    try:
        assert product.url
        yield product
    finally:
        product.end()
