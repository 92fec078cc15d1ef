"""Service keys: their format, issued secrets and ends, and concurrent changes."""

import asyncio
from datetime import timedelta
from functools import partial

import pytest

from storage.errors import BadUserInput, Conflict, Forbidden, MissingScope, NotFound
from storage.idempotency import idempotency_key
from storage.identity.audit import Actor, AuditAction, AuditFilter, command_line_actor
from storage.identity.keys.recognition import KeyExpired, KeyInvalid
from storage.identity.keys.records import IssuedKey, NewServiceKey
from storage.identity.keys.scopes import ROLE_OF_SCOPE, SCOPES, roles_of_scopes
from storage.identity.keys.secrets import MalformedKey, new_key_text, parse_key
from storage.identity.keys.store import MAX_ACTIVE_KEYS
from storage.identity.rights import lock_actor
from storage.identity.roles import Role
from storage.ids import new_id
from storage.secrets.rotation import MAX_PREVIOUS_SECRETS
from storage.stores import Stores

pytestmark = pytest.mark.anyio

MAIL = NewServiceKey("Mail server", ["mail:ingest"])
ALL = AuditFilter()


async def create_key(stores: Stores, actor: Actor, new: NewServiceKey = MAIL) -> tuple[str, str]:
    """Creates a key. Returns its id and its text."""
    issued = await stores.service_keys.create(actor, new)
    assert issued.secret is not None
    return issued.key.id, issued.secret


async def actions(stores: Stores, actor: Actor) -> list[AuditAction]:
    """Returns the actions of the organization's audit log, the newest first."""
    return [each.action for each in await stores.audit.list_entries(actor.organization_id, ALL, None, 100)]


async def is_refused(stores: Stores, text: str) -> bool:
    try:
        await stores.key_recognizer.recognize(text)
    except (KeyInvalid, KeyExpired):
        return True
    return False


def test_changed_character_does_not_fit_the_checksum() -> None:
    text = new_key_text(new_id())
    assert parse_key(text).id == text.split("_")[1]
    for place in range(len(text)):
        changed = text[:place] + ("a" if text[place] != "a" else "b") + text[place + 1 :]
        with pytest.raises(MalformedKey):
            parse_key(changed)
    for malformed in ("", "nrk_", text[:-1], text + "0", f" {text}", text.upper(), text.replace("_", "-")):
        with pytest.raises(MalformedKey):
            parse_key(malformed)


def test_secrets_differ_and_hold_256_bits() -> None:
    texts = [new_key_text("0" * 26) for _ in range(50)]
    assert len({each[31:74] for each in texts}) == 50
    assert 62**43 > 2**256


def test_no_scope_gives_the_role_admin() -> None:
    assert Role.ADMIN not in ROLE_OF_SCOPE.values()
    assert roles_of_scopes(["mail:ingest", "a scope of a later version"]) == {Role.SERVICE}
    assert roles_of_scopes(SCOPES) == {Role.SERVICE, Role.MEMBER, Role.OPERATOR}
    assert MissingScope("chat:read").extensions == {"code": "FORBIDDEN", "scope": "chat:read"}


async def test_key_acts_as_its_service_account(shared_stores: Stores, admin: Actor) -> None:
    id_, text = await create_key(shared_stores, admin, NewServiceKey("Ann", ["chat:write"]))
    key = await shared_stores.key_recognizer.recognize(text)
    assert (key.account.id, key.account.name, key.account.is_service) == (id_, "Ann", True)
    assert set(key.account.roles) == {Role.SERVICE, Role.MEMBER}
    # A user has the handle `ann`.
    assert key.account.handle == "ann-2"
    assert key.scopes == {"chat:write"}
    assert key.valid_s == float("inf")


async def test_no_collection_holds_a_secret(shared_stores: Stores, admin: Actor) -> None:
    id_, text = await create_key(shared_stores, admin)
    secret = text.removeprefix(f"nrk_{id_}_")[:43]
    for name in ("service_keys", "users", "audit", "idempotency", "access_changes"):
        documents = await shared_stores.mongo[name].find().to_list(None)
        assert secret not in repr(documents), name


async def test_repeated_creation_shows_no_secret_again(shared_stores: Stores, admin: Actor) -> None:
    key = idempotency_key(admin.organization_id, "ada", "createServiceKey", "once", {"name": "Mail server"})
    issued = await asyncio.gather(*(shared_stores.service_keys.create(admin, MAIL, key) for _ in range(5)))
    assert len({each.key.id for each in issued}) == 1
    assert [each.secret is None for each in issued].count(False) == 1
    assert await actions(shared_stores, admin) == [AuditAction.SERVICE_KEY_CREATED]
    other = idempotency_key(admin.organization_id, "ada", "createServiceKey", "once", {"name": "Other"})
    with pytest.raises(Conflict):
        await shared_stores.service_keys.create(admin, MAIL, other)


async def test_only_administrators_and_the_command_line_change_keys(shared_stores: Stores, admin: Actor) -> None:
    org, keys = admin.organization_id, shared_stores.service_keys
    id_, text = await create_key(shared_stores, admin)
    await shared_stores.user_administration.set_roles(admin, "bob", {Role.OPERATOR})
    for change in (keys.create(Actor(org, "bob"), MAIL), keys.rotate(Actor(org, "bob"), id_, 0)):
        with pytest.raises(Forbidden):
            await change
    with pytest.raises(Forbidden):
        await keys.revoke(Actor(org, "bob"), id_)
    for change in (keys.rotate(command_line_actor(new_id()), id_, 0), keys.rotate(admin, new_id(), 0)):
        with pytest.raises(NotFound):
            await change
    assert not await is_refused(shared_stores, text)
    await keys.revoke(command_line_actor(org), id_)
    (entry,) = await shared_stores.audit.list_entries(org, AuditFilter(actor_id="command-line"), None, 10)
    assert (entry.action, entry.target_id) == (AuditAction.SERVICE_KEY_REVOKED, id_)


async def test_lock_actor_returns_the_time_of_the_database(shared_stores: Stores, admin: Actor) -> None:
    before = await shared_stores.mongo.now()
    for actor in (admin, command_line_actor(admin.organization_id)):
        at = await shared_stores.mongo.transact(partial(lock_actor, shared_stores.mongo, actor))
        assert before <= at <= await shared_stores.mongo.now()


async def test_revoked_key_is_refused_and_revoked_once(shared_stores: Stores, admin: Actor) -> None:
    id_, text = await create_key(shared_stores, admin)
    results = await asyncio.gather(*(shared_stores.service_keys.revoke(admin, id_) for _ in range(5)))
    assert {each.is_active for each in results} == {False}
    assert len({each.revoked_at for each in results}) == 1
    assert await actions(shared_stores, admin) == [AuditAction.SERVICE_KEY_REVOKED, AuditAction.SERVICE_KEY_CREATED]
    assert await is_refused(shared_stores, text)
    with pytest.raises(Conflict):
        await shared_stores.service_keys.rotate(admin, id_, 0)


async def test_key_ends_at_its_expiry(shared_stores: Stores, admin: Actor) -> None:
    now = await shared_stores.mongo.now()
    with pytest.raises(BadUserInput):
        await create_key(shared_stores, admin, NewServiceKey("Late", ["mail:ingest"], now))
    id_, text = await create_key(shared_stores, admin, NewServiceKey("Late", ["mail:ingest"], now + timedelta(hours=1)))
    assert 3000 < (await shared_stores.key_recognizer.recognize(text)).valid_s <= 3600
    past = {"ends_at": now - timedelta(seconds=1), "expires_at": now - timedelta(seconds=1)}
    await shared_stores.mongo["service_keys"].update_one({"_id": id_}, {"$set": past})
    with pytest.raises(KeyExpired):
        await shared_stores.key_recognizer.recognize(text)
    assert not (await shared_stores.service_keys.revoke(admin, id_)).is_active
    assert await actions(shared_stores, admin) == [AuditAction.SERVICE_KEY_CREATED]


async def test_rotation_keeps_the_old_secret_for_a_grace_period(shared_stores: Stores, admin: Actor) -> None:
    id_, first = await create_key(shared_stores, admin)
    keys = shared_stores.service_keys
    rotated = await keys.rotate(admin, id_, 3600)
    assert rotated.secret is not None
    assert rotated.key.previous_secret_until is not None
    assert 3000 < (await shared_stores.key_recognizer.recognize(first)).valid_s <= 3600
    assert (await shared_stores.key_recognizer.recognize(rotated.secret)).valid_s == float("inf")
    last = await keys.rotate(admin, id_, 0)
    assert await is_refused(shared_stores, rotated.secret)
    # The first rotation chose the end of the first secret. Later rotations do not change this end.
    assert not await is_refused(shared_stores, first)
    assert last.secret is not None
    assert not await is_refused(shared_stores, last.secret)


async def test_concurrent_rotations_issue_valid_secrets(shared_stores: Stores, admin: Actor) -> None:
    id_, first = await create_key(shared_stores, admin)
    rotations = (shared_stores.service_keys.rotate(admin, id_, 3600) for _ in range(MAX_PREVIOUS_SECRETS + 2))
    results = await asyncio.gather(*rotations, return_exceptions=True)
    issued = [each for each in results if isinstance(each, IssuedKey)]
    assert [type(each) for each in results].count(Conflict) == 2
    assert len(issued) == MAX_PREVIOUS_SECRETS
    assert not any([await is_refused(shared_stores, text) for text in (first, *(each.secret or "" for each in issued))])


async def test_repeated_rotation_issues_one_secret(shared_stores: Stores, admin: Actor) -> None:
    id_, first = await create_key(shared_stores, admin)
    key = idempotency_key(admin.organization_id, "ada", "rotateServiceKey", "once", {})
    issued = await asyncio.gather(*(shared_stores.service_keys.rotate(admin, id_, 60, key) for _ in range(5)))
    assert [each.secret is None for each in issued].count(False) == 1
    assert not await is_refused(shared_stores, first)


async def test_organization_has_at_most_a_hundred_active_keys(shared_stores: Stores, admin: Actor) -> None:
    rows = [
        {"_id": f"{admin.organization_id}{n}", "org": admin.organization_id, "name": "x", "scopes": [], "secrets": []}
        for n in range(MAX_ACTIVE_KEYS - 1)
    ]
    await shared_stores.mongo["service_keys"].insert_many(rows)
    creations = (shared_stores.service_keys.create(admin, MAIL) for _ in range(4))
    results = await asyncio.gather(*creations, return_exceptions=True)
    assert [type(each) for each in results].count(Conflict) == 3
    (active,) = [each for each in results if isinstance(each, IssuedKey)]
    await shared_stores.service_keys.revoke(admin, active.key.id)
    assert (await shared_stores.service_keys.create(admin, MAIL)).key.is_active


async def test_use_is_noted_once_a_minute(shared_stores: Stores, admin: Actor) -> None:
    id_, text = await create_key(shared_stores, admin)
    store = shared_stores.mongo["service_keys"]

    async def used_at() -> object:
        await asyncio.gather(*(shared_stores.key_recognizer.recognize(text) for _ in range(5)))
        return ((await store.find_one({"_id": id_})) or {}).get("used_at")

    first = await used_at()
    assert first is not None
    assert await used_at() == first
    old = await shared_stores.mongo.now() - timedelta(minutes=2)
    await store.update_one({"_id": id_}, {"$set": {"used_at": old}})
    assert await used_at() != old


async def test_keys_are_listed_newest_first(shared_stores: Stores, admin: Actor) -> None:
    org, keys = admin.organization_id, shared_stores.service_keys
    ids = [(await create_key(shared_stores, admin))[0] for _ in range(3)]
    assert {each.id for each in await keys.list_keys(org, None, 10)} == set(ids)
    newest, *older = await keys.list_keys(org, None, 10)
    assert [each.id for each in await keys.list_keys(org, newest.id, 1)] == [older[0].id]
    with pytest.raises(NotFound):
        await keys.list_keys(org + "x", ids[0], 10)
