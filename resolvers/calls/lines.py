"""The telephony lines by which call jobs make their calls."""

from collections.abc import Sequence

from resolvers.calls.jobs import require_operator
from resolvers.context import Info
from storage.calls.records import TelephonyLine


async def telephony_lines(info: Info) -> Sequence[TelephonyLine]:
    """Returns the lines that the organization's calls use; nothing if no calls can be made."""
    require_operator(info)
    return info.context.telephony_lines
