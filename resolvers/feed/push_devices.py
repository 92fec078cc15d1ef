"""The viewer's browsers to which notifications are pushed."""

from typing import Annotated
from urllib.parse import urlsplit

import strawberry
from strawberry import ID, Parent

from resolvers.access import require_member
from resolvers.context import Info
from storage.errors import BadUserInput
from storage.notifications.channels import PushDevice, PushSubscription
from storage.secrets.vapid_keys import base64url_bytes, is_curve_point

MAX_ENDPOINT_CHARS = 2000
PUBLIC_KEY_BYTES, AUTH_SECRET_BYTES = 65, 16


@strawberry.input(description="A browser's subscription to pushes, as `PushSubscription.toJSON()` has it.")
class RegisterPushDeviceInput:
    endpoint: str = strawberry.field(
        description="Address of the browser at its push service: https, at most 2000 characters."
    )
    public_key: str = strawberry.field(description="`keys.p256dh`: a point of P-256, 65 bytes in base64url.")
    auth_secret: str = strawberry.field(description="`keys.auth`: 16 bytes in base64url.")


async def push_key(info: Info) -> str | None:
    """Returns the public VAPID key, or None if the server pushes nothing."""
    require_member(info)
    return info.context.push_key


async def push_devices(info: Info) -> list[PushDevice]:
    """Lists the viewer's devices, the newest first."""
    return await info.context.stores.notification_channels.devices(require_member(info).key)


async def register_push_device(
    info: Info,
    subscription: Annotated[
        RegisterPushDeviceInput, strawberry.argument(name="input", description="The browser's subscription.")
    ],
) -> PushDevice:
    """Registers the viewer's browser, or renews its registration."""
    viewer, context = require_member(info), info.context
    checked = PushSubscription(
        _checked_endpoint(subscription.endpoint),
        _checked_public_key(subscription.public_key),
        _checked_bytes("authSecret", subscription.auth_secret, AUTH_SECRET_BYTES),
    )
    channels, agent = context.stores.notification_channels, context.client.user_agent
    return await channels.add_device(viewer.key, checked, context.session_id, agent)


async def remove_push_device(
    info: Info, id: Annotated[ID, strawberry.argument(description="Id of a device of the viewer.")]
) -> PushDevice:
    """Removes a device of the viewer."""
    return await info.context.stores.notification_channels.remove_device(require_member(info).key, id)


async def current(root: Parent[PushDevice], info: Info) -> bool:
    """Returns whether the session of this request registered the device."""
    return root.session_id is not None and root.session_id == info.context.session_id


def _checked_endpoint(url: str) -> str:
    """Returns the address. The address guard checks where it leads when something is pushed."""
    expected = f"an https address of at most {MAX_ENDPOINT_CHARS} characters"
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme == "https" and bool(parts.hostname) and parts.username is None and url.isascii()
    except ValueError:
        is_valid = False
    if not is_valid or len(url) > MAX_ENDPOINT_CHARS:
        raise BadUserInput("endpoint", expected)
    return url


def _checked_public_key(text: str) -> bytes:
    point = _checked_bytes("publicKey", text, PUBLIC_KEY_BYTES)
    if not is_curve_point(point):
        raise BadUserInput("publicKey", "an uncompressed point of P-256")
    return point


def _checked_bytes(field: str, text: str, length: int) -> bytes:
    try:
        return base64url_bytes(text, length)
    except ValueError:
        raise BadUserInput(field, f"{length} bytes in base64url") from None
