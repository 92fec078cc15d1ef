"""Adds the built web client to the wheel. Editable installs serve it from web-client/dist instead."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebClientHook(BuildHookInterface[Any]):
    """Puts web-client/dist into the wheel as server/http/web."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises: FileNotFoundError when the web client is not built."""
        if version != "standard":
            return
        dist = Path(self.root, "web-client", "dist")
        if not (dist / "index.html").exists():
            raise FileNotFoundError(f"{dist} holds no built web client: run `make web` first.")
        build_data["force_include"][str(dist)] = "server/http/web"
