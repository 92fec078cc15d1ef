"""Use cases of administrators about service keys."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import require_role
from resolvers.arguments import After, ListLimit, checked_limit, checked_text, instant_or_none, text_or_none
from resolvers.context import Info
from resolvers.idempotency import KEY_DESCRIPTION, input_key
from storage.errors import BadUserInput
from storage.identity.audit import COMMAND_LINE
from storage.identity.keys.records import IssuedKey, NewServiceKey, ServiceKey
from storage.identity.keys.scopes import SCOPES
from storage.identity.records import User
from storage.identity.roles import Role

MAX_NAME_CHARS = 100
MAX_GRACE_S = 30 * 86_400

KeyId = Annotated[ID, strawberry.argument(description="Id of the service key.")]


@strawberry.input(description="A new service key.")
class CreateServiceKeyInput:
    name: str = strawberry.field(
        description="Name of the key and of its service account, such as `Mail server`: 1 to 100 characters."
    )
    scopes: list[str] = strawberry.field(
        description=f"Scopes, at least one. Possible are {', '.join(f'`{scope}`' for scope in SCOPES)}."
    )
    expires_at: datetime | None = strawberry.field(
        default=UNSET, description="When the key expires, in the future. Omitted or null: it does not expire."
    )
    idempotency_key: str | None = strawberry.field(default=UNSET, description=KEY_DESCRIPTION)


@strawberry.input(description="A rotation of a service key.")
class RotateServiceKeyInput:
    service_key_id: ID = strawberry.field(description="Id of the service key.")
    grace_s: int = strawberry.field(
        description="Seconds for which the present secret stays valid: 0 to 2592000, which is 30 days. 0 ends it "
        "at once."
    )
    idempotency_key: str | None = strawberry.field(default=UNSET, description=KEY_DESCRIPTION)


async def service_keys(info: Info, after: After = UNSET, limit: ListLimit = 50) -> list[ServiceKey]:
    """Lists the organization's service keys, the newest first."""
    viewer = require_role(info, Role.ADMIN)
    return await info.context.stores.service_keys.list_keys(
        viewer.organization_id, text_or_none(after), checked_limit(limit)
    )


async def create_service_key(
    info: Info, input: Annotated[CreateServiceKeyInput, strawberry.argument(description="The key to create.")]
) -> IssuedKey:
    """Creates a service key and its service account."""
    viewer = require_role(info, Role.ADMIN)
    key = input_key(viewer, "createServiceKey", input)
    return await info.context.stores.service_keys.create(info.context.actor, _new_key(input), key)


def _new_key(input: CreateServiceKeyInput) -> NewServiceKey:
    name = checked_text("name", input.name, 1, MAX_NAME_CHARS)
    return NewServiceKey(name, checked_scopes(input.scopes), instant_or_none(input.expires_at))


def checked_scopes(scopes: Sequence[str]) -> list[str]:
    """Returns the scopes, sorted and each once. Raises: BadUserInput for an unknown scope or none."""
    if not scopes or not set(scopes) <= set(SCOPES):
        raise BadUserInput("scopes", f"at least one of {', '.join(SCOPES)}")
    return sorted(set(scopes))


async def rotate_service_key(
    info: Info, input: Annotated[RotateServiceKeyInput, strawberry.argument(description="The key to rotate.")]
) -> IssuedKey:
    """Issues a new secret for a service key."""
    viewer = require_role(info, Role.ADMIN)
    if not 0 <= input.grace_s <= MAX_GRACE_S:
        raise BadUserInput("graceS", f"0 to {MAX_GRACE_S} seconds")
    key = input_key(viewer, "rotateServiceKey", input)
    return await info.context.stores.service_keys.rotate(info.context.actor, input.service_key_id, input.grace_s, key)


async def revoke_service_key(info: Info, service_key_id: KeyId) -> ServiceKey:
    """Ends a service key for good."""
    require_role(info, Role.ADMIN)
    return await info.context.stores.service_keys.revoke(info.context.actor, service_key_id)


async def account(root: Parent[ServiceKey], info: Info) -> User:
    """Returns the service account."""
    return await info.context.stores.users.get(root.organization_id, root.id)


async def accounts(keys: Sequence[ServiceKey], info: Info) -> list[User]:
    """Returns the service account of each key."""
    if not keys:
        return []
    return await info.context.stores.users.get_all(keys[0].organization_id, [key.id for key in keys])


async def created_by(root: Parent[ServiceKey], info: Info) -> User | None:
    """Returns the administrator who created the key; None for the command line."""
    return (await created_by_each([root], info))[0]


async def needs_rotation(root: Parent[ServiceKey], info: Info) -> bool:
    """Returns whether the person who saw the newest secret is no ADMIN any more."""
    return (await need_rotation([root], info))[0]


async def need_rotation(keys: Sequence[ServiceKey], info: Info) -> list[bool]:
    """Returns for each key whether the person who saw the newest secret is no ADMIN any more."""
    if not keys:
        return []
    ids = [key.issued_to_id for key in keys]
    people = await info.context.stores.users.find_or_none(keys[0].organization_id, ids)
    return [key.is_active and not _is_entitled(key, person) for key, person in zip(keys, people, strict=True)]


def _is_entitled(key: ServiceKey, person: User | None) -> bool:
    """Returns whether the person is an active ADMIN, or the secret was shown to the command line."""
    if person is None:
        return key.issued_to_id == COMMAND_LINE
    return Role.ADMIN in person.roles and not person.is_deactivated


async def created_by_each(keys: Sequence[ServiceKey], info: Info) -> list[User | None]:
    """Returns the administrator who created each key; None for the command line."""
    if not keys:
        return []
    ids = [key.created_by_id for key in keys]
    return await info.context.stores.users.find_or_none(keys[0].organization_id, ids)
