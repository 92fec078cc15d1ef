"""Checks of the files that an input attaches."""

from collections.abc import Collection, Sequence

from resolvers.access import require_member
from resolvers.arguments import checked_text
from resolvers.context import Info
from resolvers.inputs import AttachmentInput
from storage.errors import BadUserInput
from storage.files.attachments import NewAttachment

MAX_ATTACHMENTS = 10
MAX_ALT_TEXT_CHARS = 1500


async def checked_attachments(
    info: Info, inputs: Sequence[AttachmentInput] | None, kept: Collection[str] = ()
) -> Sequence[NewAttachment]:
    """Returns the files of the viewer to attach; none for null and for an omitted list.

    `kept` are the ids of files that the subject has already. Whether the others may be attached now is checked when
    they are. Raises: BadUserInput; NotFound for files of others.
    """
    if not inputs:
        return ()
    ids = {str(each.upload_id) for each in inputs}
    if len(inputs) > MAX_ATTACHMENTS or len(ids) < len(inputs):
        raise BadUserInput("attachments", f"at most {MAX_ATTACHMENTS} different files (there are {len(inputs)})")
    attachments = [_checked(index, each) for index, each in enumerate(inputs)]
    await info.context.stores.uploads.require(require_member(info).key, ids.difference(kept))
    return attachments


def _checked(index: int, attachment: AttachmentInput) -> NewAttachment:
    text = checked_text(f"attachments[{index}].altText", attachment.alt_text, 0, MAX_ALT_TEXT_CHARS)
    return NewAttachment(attachment.upload_id, text)
