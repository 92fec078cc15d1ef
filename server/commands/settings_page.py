"""docs/settings.md: a page about every setting, generated from `Settings`."""

from pydantic.fields import FieldInfo

from server.settings import Settings, expected_value, variable

HEAD = """\
# Settings

Every process reads its settings from environment variables once, at start. An empty variable counts as unset. An
invalid value ends the process with one line that names the variable. Command-line options win over variables.

Generated from `server/settings.py` by `make docs`; do not edit.

| variable | value | default | meaning |
| --- | --- | --- | --- |
"""


def settings_page() -> str:
    """Returns the page as Markdown."""
    rows = [_row(variable(name), field) for name, field in Settings.model_fields.items()]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(name: str, field: FieldInfo) -> tuple[str, str, str, str]:
    return f"`{name}`", expected_value(field), _default(field), field.description or ""


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "see meaning"
    if field.default is None or field.default == ():
        return "unset"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"
