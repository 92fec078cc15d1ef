"""docs/settings.md is generated from the settings."""

from pathlib import Path

from server.commands.settings_page import settings_page
from server.settings import Settings, variable

PAGE = Path(__file__).parents[3] / "docs/settings.md"


def test_settings_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == settings_page(), "Run `make docs`."


def test_settings_page_describes_every_setting() -> None:
    rows = {row[1].strip(): row for row in (line.split("|") for line in settings_page().splitlines()) if len(row) == 6}
    for name, field in Settings.model_fields.items():
        _, _, expected, default, meaning, _ = (cell.strip() for cell in rows[f"`{variable(name)}`"])
        assert expected
        assert default
        assert meaning == field.description


def test_settings_page_shows_defaults() -> None:
    page = settings_page()
    assert "| `NOROSHI_PORT` | a number from 0 to 65535 | `8000` | The port " in page
    assert "| `NOROSHI_DEMO` | true or false | `false` | " in page
    assert "| `MONGODB_URI` | mongodb://host:port/?replicaSet=.. | unset | " in page
