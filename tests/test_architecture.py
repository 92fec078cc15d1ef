"""The rules of the repository: import directions, sizes, names, and a test for every module."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("server", "schema", "resolvers", "jobs", "storage")
MODULES = sorted(path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
DOCUMENT_TYPES = [module for module in MODULES if module.parts[0] == "storage" and module.name == "documents.py"]
MAX_LINES = 400
MAX_ENTRIES = 25
VAGUE = {"util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"}

READS_ENVIRONMENT = {"server/settings.py"}

NAMES_AUDIT_LOG = {
    "storage/identity/audit.py",
    "storage/indexes/identity.py",
    # What erasures empty, and what exports hold.
    "storage/identity/personal_data.py",
    "storage/privacy/addresses.py",
    "storage/privacy/archives.py",
}
"""Modules that name the collection of the audit log."""

TESTED_ELSEWHERE = {
    # Covered by the tests of the checks at start.
    "resolvers/chat/community_pictures.py": "tests/server/http/test_community_pictures.py",
    "storage/mongo/deployments.py": "tests/server/embedded/test_checks.py",
    # Declarations, which tests check on the whole schema, and modules that the tests of other layers cover.
    "schema/administration/users.py": "tests/resolvers/administration/test_users.py",
    "storage/publishing/editing.py": "tests/storage/publishing/test_stored_posts.py",
    "schema/search.py": "tests/resolvers/search/test_messages.py",
    "storage/chat/search/messages.py": "tests/resolvers/search/test_rights.py",
    "storage/chat/search/terms.py": "tests/resolvers/search/test_messages.py",
    "storage/chat/search/topics.py": "tests/resolvers/search/test_topics.py",
    "storage/mongo/text_index/entries.py": "tests/resolvers/search/test_messages.py",
    "storage/feed/search.py": "tests/resolvers/search/test_posts.py",
    "storage/mongo/text_index/pages.py": "tests/resolvers/search/test_messages.py",
    "storage/mongo/text_index/term_index.py": "tests/resolvers/search/test_messages.py",
    "storage/identity/presence/settings.py": "tests/resolvers/chat/test_presence.py",
    "schema/presence.py": "tests/resolvers/chat/test_presence.py",
    "storage/secrets/unsubscribe_links.py": "tests/server/http/test_unsubscribe.py",
    "jobs/notifications/texts.py": "tests/jobs/notifications/test_push.py",
    "jobs/notifications/unread.py": "tests/jobs/notifications/test_push.py",
    "storage/secrets/vapid_keys.py": "tests/jobs/providers/test_web_push.py",
    "storage/privacy/retention_rules.py": "tests/resolvers/administration/test_retention_rules.py",
    "storage/calls/expired_data.py": "tests/jobs/test_retention.py",
    "storage/mail/expired_events.py": "tests/jobs/test_retention.py",
    "schema/chat/conversations.py": "tests/resolvers/chat/test_conversations.py",
    "schema/administration/service_keys.py": "tests/resolvers/administration/test_service_keys.py",
    "schema/administration/webhooks.py": "tests/resolvers/administration/test_webhooks.py",
    "resolvers/administration/webhook_inputs.py": "tests/resolvers/administration/test_webhooks.py",
    "server/webhook_payloads.py": "tests/jobs/webhooks/test_passes.py",
    "jobs/publishing/calls.py": "tests/jobs/publishing/test_external.py",
    "jobs/webhooks/failures.py": "tests/jobs/webhooks/test_delivery.py",
    "jobs/webhooks/messages.py": "tests/jobs/webhooks/test_passes.py",
    "jobs/webhooks/progress.py": "tests/jobs/webhooks/test_delivery.py",
    "jobs/webhooks/requested.py": "tests/jobs/webhooks/test_passes.py",
    **{
        f"schema/chat/{module}.py": "tests/schema/test_shapes.py"
        for module in ("communities", "messages", "stamps", "threads")
    },
    "schema/chat/root.py": "tests/schema/test_root.py",
    "schema/moderation.py": "tests/schema/test_shapes.py",
    "schema/identity.py": "tests/schema/test_shapes.py",
    "schema/feed/posts.py": "tests/schema/test_shapes.py",
    "schema/feed/notifications.py": "tests/schema/test_shapes.py",
    "schema/files.py": "tests/schema/test_shapes.py",
    "schema/calls.py": "tests/schema/test_shapes.py",
    "schema/mail/book.py": "tests/schema/test_shapes.py",
    "storage/mail/decisions/judged_addresses.py": "tests/storage/mail/decisions/test_dry_runs.py",
    "schema/mail/policies.py": "tests/resolvers/mail/test_policies.py",
    "schema/mail/reports.py": "tests/resolvers/mail/test_reports.py",
    "resolvers/mail/inputs.py": "tests/resolvers/mail/test_deliveries.py",
    "resolvers/inputs.py": "tests/resolvers/test_arguments.py",
    "server/setting_groups/values.py": "tests/server/test_settings.py",
    "server/setting_groups/database.py": "tests/server/test_settings.py",
    "server/setting_groups/sign_in.py": "tests/server/test_settings.py",
    "server/setting_groups/http.py": "tests/server/test_settings.py",
    "server/setting_groups/networks.py": "tests/server/test_settings.py",
    "server/setting_groups/mail_inlets.py": "tests/server/test_settings.py",
    "server/oidc.py": "tests/server/http/test_oidc.py",
    "server/http/sign_in_options.py": "tests/server/http/test_oidc.py",
    "server/auth/oidc/failures.py": "tests/server/http/test_oidc.py",
    "server/operation_contexts.py": "tests/server/graphql/test_websocket.py",
    "server/graphql/protocols.py": "tests/server/graphql/test_websocket.py",
    "server/graphql/subscriptions.py": "tests/server/graphql/test_broadcasts.py",
    "server/transport/clients.py": "tests/server/http/test_sessions.py",
    "server/http/cookies.py": "tests/server/http/test_sessions.py",
    "server/http/accounts/operations.py": "tests/server/http/test_openapi.py",
    "server/http/accounts/sign_in_attempts.py": "tests/server/http/accounts/test_routes.py",
    "server/auth/sealed_cookies.py": "tests/server/auth/oidc/test_pending.py",
    "schema/sessions.py": "tests/schema/test_shapes.py",
    "resolvers/passkeys.py": "tests/server/http/test_passkeys.py",
    "server/auth/passkeys/ceremonies.py": "tests/server/http/test_passkeys.py",
    "storage/identity/passkeys/records.py": "tests/server/http/test_passkeys.py",
    "storage/identity/passkeys/sessions.py": "tests/server/http/test_passkeys.py",
    "storage/identity/passkeys/store.py": "tests/server/http/test_passkeys.py",
    "resolvers/sessions.py": "tests/server/http/test_sessions.py",
    "storage/identity/session_records.py": "tests/storage/identity/test_sessions.py",
    "storage/secrets/random_tokens.py": "tests/storage/identity/accounts/test_tokens.py",
    "resolvers/feed/fan_outs.py": "tests/resolvers/test_job_events.py",
    "jobs/pictures/results.py": "tests/jobs/pictures/test_decoder.py",
    "jobs/providers/telephony/protocol.py": "tests/jobs/providers/telephony/test_webhook.py",
    "resolvers/calls/arguments.py": "tests/resolvers/calls/test_jobs.py",
    "resolvers/calls/events.py": "tests/resolvers/calls/test_jobs.py",
    "resolvers/calls/inputs.py": "tests/resolvers/calls/test_jobs.py",
    "storage/chat/conversations/expired_messages.py": "tests/jobs/test_retention.py",
    **{
        f"storage/chat/conversations/{module}.py": "tests/resolvers/chat/test_conversations.py"
        for module in ("changes", "contacts", "records", "relays", "rules", "store")
    },
    **{
        f"storage/chat/threads/{module}.py": "tests/resolvers/chat/test_threads.py"
        for module in ("changes", "relays", "rules", "store")
    },
    "storage/chat/threads/cross_posts.py": "tests/resolvers/chat/test_cross_posts.py",
    "storage/chat/threads/followers.py": "tests/resolvers/chat/test_thread_follows.py",
    # Personal data, exports and erasures.
    **{
        f"storage/{area}personal_data.py": "tests/storage/privacy/test_registry.py"
        for area in ("identity/", "chat/", "feed/", "calls/", "mail/")
    },
    "storage/identity/privacy_rules.py": "tests/storage/privacy/test_registry.py",
    "resolvers/exports.py": "tests/jobs/test_exports.py",
    "storage/privacy/exports.py": "tests/jobs/test_exports.py",
    "storage/privacy/archives.py": "tests/jobs/test_exports.py",
    "schema/privacy.py": "tests/resolvers/administration/test_erasures.py",
    "storage/privacy/steps.py": "tests/jobs/test_erasures.py",
    "storage/publishing/erasing.py": "tests/storage/publishing/test_stored_posts.py",
    # Calls, chat and content reports, which the tests of brokers, state machines and resolvers cover.
    "storage/calls/calls.py": "tests/jobs/calls/test_broker.py",
    "storage/calls/call_changes.py": "tests/storage/calls/test_call_machine.py",
    "storage/calls/do_not_call.py": "tests/resolvers/calls/test_limits.py",
    "storage/calls/jobs.py": "tests/resolvers/calls/test_jobs.py",
    "storage/chat/moderation_changes.py": "tests/storage/chat/test_moderation.py",
    "storage/chat/community_changes.py": "tests/resolvers/chat/test_joining.py",
    "storage/chat/slow_mode.py": "tests/resolvers/chat/test_community_settings.py",
    "storage/chat/topic_changes.py": "tests/resolvers/chat/test_community_settings.py",
    "schema/content_reports.py": "tests/resolvers/test_content_reports.py",
    "storage/feed/content_reports/records.py": "tests/resolvers/test_content_reports.py",
    "storage/feed/content_reports/changes.py": "tests/resolvers/test_content_reports.py",
    "storage/feed/content_reports/effects.py": "tests/resolvers/test_content_reports.py",
    "storage/feed/content_reports/store.py": "tests/resolvers/test_content_reports.py",
    "storage/feed/content_reports/relays.py": "tests/resolvers/test_content_reports.py",
    "storage/chat/restrictions.py": "tests/storage/chat/test_moderation.py",
    "storage/calls/job_changes.py": "tests/storage/calls/test_call_machine.py",
    "storage/calls/job_launcher.py": "tests/resolvers/calls/test_jobs.py",
    # Values without behaviour of their own, which the tests of the modules that use them cover.
    "resolvers/context.py": "tests/resolvers/test_blocks.py",
    "resolvers/audience.py": "tests/server/graphql/test_coalescing.py",
    "jobs/context.py": "tests/server/test_worker.py",
    "storage/mail/legacy_book.py": "tests/resolvers/mail/test_lookup.py",
    "storage/mail/records.py": "tests/storage/mail/test_rates.py",
    "storage/metrics.py": "tests/server/http/test_health.py",
    "storage/identity/roles.py": "tests/resolvers/test_access.py",
    # Covered by the tests of callers or of whole processes.
    "resolvers/events.py": "tests/resolvers/feed/test_events.py",
    "storage/publishing/events.py": "tests/storage/publishing/test_stored_changes.py",
    "storage/publishing/held_posts.py": "tests/jobs/publishing/test_held_posts.py",
    "storage/publishing/holding.py": "tests/storage/publishing/test_stored_posts.py",
    "storage/publishing/sandbox.py": "tests/jobs/providers/social/test_sandbox.py",
    "storage/secrets/webhook_keys.py": "tests/jobs/providers/test_signed_webhooks.py",
    "jobs/providers/social/network.py": "tests/jobs/providers/social/test_http.py",
    "jobs/providers/social/registry.py": "tests/server/test_worker.py",
    "jobs/publishing/internal.py": "tests/jobs/publishing/test_publisher.py",
    "jobs/publishing/sweepers.py": "tests/jobs/publishing/test_author_mails.py",
    "schema/publishing.py": "tests/schema/test_shapes.py",
    "resolvers/publishing/inputs.py": "tests/resolvers/publishing/test_posts.py",
    "storage/feed/records.py": "tests/storage/feed/test_changes.py",
    "storage/feed/posts.py": "tests/resolvers/feed/test_posts.py",
    "storage/feed/relays.py": "tests/storage/feed/test_feeds.py",
    "storage/feed/trimming.py": "tests/storage/feed/test_feeds.py",
    "jobs/account_mail_texts.py": "tests/jobs/test_account_mails.py",
    "storage/identity/accounts/mails.py": "tests/jobs/test_account_mails.py",
    "schema/administration/invitations.py": "tests/resolvers/administration/test_invitations.py",
    "storage/identity/accounts/password_sessions.py": "tests/server/http/accounts/test_routes.py",
    "server/http/accounts/inputs.py": "tests/server/http/accounts/test_routes.py",
    "server/first_admin.py": "tests/server/test_supervisor.py",
    "server/http/demo_sign_in.py": "tests/server/test_app.py",
    "server/launch.py": "tests/server/test_supervisor.py",
    "server/stores.py": "tests/server/test_app.py",
}
"""Modules without a test file of their name, and the test file that fails when they are wrong."""


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_import_contracts_hold() -> None:
    linted = lint_imports(ROOT)
    where = "[tool.importlinter] in pyproject.toml"
    assert linted.returncode == 0, f"Import along the layers of {where}, and list new modules there.\n{linted.stdout}"


def test_import_against_direction_breaks_contract(tmp_path: Path) -> None:
    forbidden_imports = {
        "storage": ["resolvers", "jobs", "schema", "server"],
        "resolvers": ["schema", "jobs", "server"],
        "jobs": ["resolvers", "schema", "server"],
        "schema": ["jobs", "server"],
        "storage.chat": ["storage.feed", "storage.publishing"],
        "storage.feed": ["storage.mail", "storage.calls"],
        "storage.notifications": ["storage.chat"],
        "storage.streams": ["storage.identity"],
        "storage.mongo": ["storage.streams"],
        "server.graphql": ["server.http", "server.app"],
        "server.auth": ["server.graphql"],
        "server.embedded": ["server.settings", "server.auth"],
        "jobs.context": ["jobs.publishing", "jobs.calls"],
        "jobs.providers": ["jobs.context"],
    }
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert lint_imports(tmp_path).returncode == 0, "Repair test_import_contracts_hold first."
    arrows = []
    for importer, imported in forbidden_imports.items():
        path = tmp_path.joinpath(*importer.split("."))
        module, file = (
            (importer, path.with_suffix(".py")) if not path.is_dir() else (f"{importer}.wrong", path / "wrong.py")
        )
        with file.open("a") as source:
            source.writelines(f"\nimport {name}\n" for name in imported)
        arrows += [f"{module} -> {name}" for name in imported]
    linted = lint_imports(tmp_path)
    assert linted.returncode == 1
    assert [arrow for arrow in arrows if arrow not in linted.stdout] == []


def imported_packages() -> set[str]:
    """Returns the top-level packages that the product imports, without its own and the standard library's."""
    trees = [ast.parse((ROOT / module).read_text(encoding="utf-8")) for module in MODULES]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - set(PACKAGES)


def distributions(packages: set[str]) -> set[str]:
    """Returns the normalized names of the distributions that provide the packages."""
    providers = packages_distributions()
    return {re.sub(r"[-_.]+", "-", providers[package][0]).lower() for package in packages}


def declared_dependencies() -> dict[str, str]:
    """Returns the version bounds of each direct dependency in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    matches = [re.match(r"([\w.-]+)(?:\[[\w,]+\])?([^;]*)", line) for line in project["dependencies"]]
    return {re.sub(r"[-_.]+", "-", match[1]).lower(): match[2].strip() for match in matches if match}


def test_imported_distributions_are_declared_with_upper_bound() -> None:
    declared = declared_dependencies()
    assert distributions(imported_packages()) - declared.keys() == set()
    # Time zone data have no interface that could break.
    assert {name for name, bounds in declared.items() if "<" not in bounds} == {"tzdata"}


def engine_internals(source: str) -> list[str]:
    """Returns the modules inside the GraphQL engine that a source imports."""
    return re.findall(r"^\s*(?:from|import) (server\.graphql\.[\w.]+)", source, flags=re.MULTILINE)


def test_engine_is_imported_through_its_public_interface() -> None:
    others = [module for module in MODULES if module.parts[:2] != ("server", "graphql")]
    found = {str(each): engine_internals((ROOT / each).read_text(encoding="utf-8")) for each in others}
    assert {module: names for module, names in found.items() if names} == {}


def test_import_of_an_engine_module_is_found() -> None:
    assert engine_internals("import a\n    from server.graphql.http import b") == ["server.graphql.http"]
    assert engine_internals("from server.graphql import Documents") == []


def environment_reads(source: str) -> list[int]:
    """Returns the lines that read or change the process's environment."""
    names = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
    if not any(name in source for name in names):
        return []
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Attribute) and node.attr in names and ast.unparse(node.value) == "os")
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and names & {alias.name for alias in node.names})
    ]


def vague_names(module: Path) -> list[str]:
    return [part for part in module.with_suffix("").parts if part in VAGUE]


def test_only_settings_read_the_environment() -> None:
    readers = {str(module) for module in MODULES if environment_reads((ROOT / module).read_text(encoding="utf-8"))}
    assert readers == READS_ENVIRONMENT


@pytest.mark.parametrize(
    "source", ["import os\nos.environ['A']", "import os\nx = os.getenv('A')", "from os import environ as e"]
)
def test_environment_read_is_found(source: str) -> None:
    assert environment_reads(source)


def names_audit_log(source: str) -> bool:
    """Returns whether a module names the collection of the audit log, by its constant or as a text."""
    return ("audit" in source or "AUDIT" in source) and any(
        (isinstance(node, ast.Constant) and node.value == "audit")
        or (isinstance(node, ast.ImportFrom) and any(alias.name == "AUDIT" for alias in node.names))
        or (isinstance(node, ast.Attribute) and node.attr == "AUDIT")
        for node in ast.walk(ast.parse(source))
    )


def test_only_its_store_and_erasures_reach_the_audit_log() -> None:
    found = {str(module) for module in MODULES if names_audit_log((ROOT / module).read_text(encoding="utf-8"))}
    assert found == NAMES_AUDIT_LOG, "Write entries with put_entry or AuditLog.insert."


def test_audit_log_is_append_only() -> None:
    source = (ROOT / "storage/identity/audit.py").read_text(encoding="utf-8")
    called = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    writing = re.compile("insert|update|replace|delete|remove|find_one_and|bulk|aggregate|drop|rename")
    assert {name for name in called if writing.search(name)} == {"insert_one"}


@pytest.mark.parametrize("source", ["mongo['audit']", "from storage.identity.audit import AUDIT as A", "audit.AUDIT"])
def test_name_of_the_audit_log_is_found(source: str) -> None:
    assert names_audit_log(source)


def test_modules_have_docstring_and_at_most_400_lines() -> None:
    sources = {module: (ROOT / module).read_text(encoding="utf-8") for module in MODULES}
    without_docstring = [str(module) for module, source in sources.items() if not ast.get_docstring(ast.parse(source))]
    assert not without_docstring, f"Say in a docstring what is in {', '.join(without_docstring)}."
    too_long = [str(module) for module, source in sources.items() if len(source.splitlines()) > MAX_LINES]
    assert not too_long, f"Split into modules of at most {MAX_LINES} lines: {', '.join(too_long)}."


def test_folders_hold_at_most_25_entries() -> None:
    folders = {
        path for module in MODULES for path in (ROOT / module).parents if path.is_relative_to(ROOT) and path != ROOT
    }
    entries = {str(each.relative_to(ROOT)): [e for e in each.iterdir() if e.name != "__pycache__"] for each in folders}
    full = {name: len(found) for name, found in entries.items() if len(found) > MAX_ENTRIES}
    assert not full, (
        f"Move modules of these folders into subfolders; a folder holds at most {MAX_ENTRIES} entries: {full}."
    )


def test_module_names_are_specific() -> None:
    vague = [str(module) for module in MODULES if vague_names(module)]
    assert not vague, f"Name these modules by what they hold: {', '.join(vague)}."


def possible_test_files(module: Path) -> list[Path]:
    """Returns the possible test files of a module: the file of its name, and the files of the packages that hold it."""
    own = Path("tests", module.parent, f"test_{module.name}")
    packages = [parent for parent in module.parents if len(parent.parts) > 1]
    return [own, *(Path("tests", parent.parent, f"test_{parent.name}.py") for parent in packages)]


def modules_without_test_file() -> set[str]:
    named = [module for module in MODULES if module.name != "__init__.py" and module not in DOCUMENT_TYPES]
    return {str(module) for module in named if not any((ROOT / file).exists() for file in possible_test_files(module))}


def test_modules_of_document_types_contain_nothing_that_runs() -> None:
    """The type checker covers these modules, so they have no test file."""
    runs = (ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.If, ast.Lambda, ast.comprehension)
    for module in DOCUMENT_TYPES:
        nodes = ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8")))
        assert [ast.unparse(node) for node in nodes if isinstance(node, runs)] == [], module


def test_modules_have_a_test_file() -> None:
    missing = sorted(
        str(possible_test_files(Path(module))[0]) for module in modules_without_test_file() - TESTED_ELSEWHERE.keys()
    )
    assert not missing, f"Write {', '.join(missing)}, or name another test file in TESTED_ELSEWHERE."
    tested = sorted(TESTED_ELSEWHERE.keys() - modules_without_test_file())
    assert not tested, f"Remove {', '.join(tested)} from TESTED_ELSEWHERE: a test file exists now."
    assert [path for path in TESTED_ELSEWHERE.values() if not (ROOT / path).exists()] == []


def test_possible_test_files_include_those_of_packages() -> None:
    assert possible_test_files(Path("storage/locks.py")) == [Path("tests/storage/test_locks.py")]
    assert possible_test_files(Path("server/embedded/mongod.py")) == [
        Path("tests/server/embedded/test_mongod.py"),
        Path("tests/server/test_embedded.py"),
    ]


def tracked() -> Iterator[tuple[Path, str]]:
    """Yields every text file of the repository."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("Needs git and its repository, to tell which files belong to the project.")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        path = ROOT / name
        if path.is_file() and b"\0" not in (content := path.read_bytes())[:8000]:
            yield Path(name), content.decode("utf-8", "replace")


MACHINE_PATH = re.compile(r"(?<![\w.:/$}~-])/(?:home|Users|root|work|private|var/folders)/[\w.-]+|\b[A-Z]:\\\\?[A-Z]")


def machine_paths(text: str) -> list[str]:
    return MACHINE_PATH.findall(text)


def test_no_file_holds_a_path_of_a_machine() -> None:
    assert {str(path): found for path, text in tracked() if (found := machine_paths(text))} == {}


# The paths are composed at run time, because this file must not contain a machine's path either.
@pytest.mark.parametrize(
    ("before", "folder"), [("", "home"), ("cd '", "Users"), ("=", "work"), ('open("', "root"), ("C:", None)]
)
def test_path_of_machine_is_found(before: str, folder: str | None) -> None:
    assert machine_paths(before + (f"/{folder}/ann" if folder else "\\Users"))


@pytest.mark.parametrize("before", ["https://example.org", ".", "docs", "~", "$ROOT", "}"])
def test_urls_and_relative_paths_are_allowed(before: str) -> None:
    assert not machine_paths("/".join((before, "work", "main")))


PACKAGE_LOCKS = [
    "web-client/package-lock.json",
    "benchmarks/peers/package-lock.json",
    "examples/clients/package-lock.json",
]
PYTHON_LOCKS = ["requirements.lock", "requirements.buckets.lock", "requirements.clients.lock"]


@pytest.mark.parametrize("lock", [*PYTHON_LOCKS, *PACKAGE_LOCKS])
def test_lock_files_pin_by_hash_without_urls(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert re.search(r"sha256:[0-9a-f]{64}|sha512-[\w+/=]{86,}", text)


def unhashed(lock: str) -> list[str]:
    """Returns requirements without a version or a hash."""
    entries = re.split(r"\n(?=[A-Za-z0-9])", re.sub(r"^\s*#.*\n", "", lock, flags=re.MULTILINE).strip())
    return [entry for entry in entries if not re.match(r"[\w.\[\],-]+==", entry) or "--hash=sha256:" not in entry]


def test_locked_requirements_have_version_and_hash() -> None:
    for lock in PYTHON_LOCKS:
        assert unhashed((ROOT / lock).read_text(encoding="utf-8")) == []
    assert unhashed("a==1 \\\n    --hash=sha256:0\nb==2\nc>=1 --hash=sha256:0\n") == ["b==2", "c>=1 --hash=sha256:0"]


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "docs/architecture.md", "docs/error-codes.md"])
def test_standard_documents_exist(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8")) > 500


def missing_files(text: str, pattern: str, exists: Callable[[str], bool]) -> list[str]:
    return [path for path in re.findall(pattern, text) if not exists(path)]


def test_files_named_in_readme_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pattern = r"\b((?:tests|docs)/[\w/.-]+\.(?:py|md))"
    assert missing_files(text, pattern, lambda path: (ROOT / path).exists()) == []
    assert missing_files("see `tests/none.py`", pattern, lambda path: (ROOT / path).exists()) == ["tests/none.py"]
