"""Use cases of exports: people request their own data, follow the progress and get the address of the archive."""

from dataclasses import dataclass

from strawberry import Parent

from resolvers.access import require_signed_in
from resolvers.context import Context, Info
from resolvers.events import Event, JobEventView
from storage.errors import Forbidden
from storage.identity.records import User
from storage.privacy.archives import EXPORTED
from storage.privacy.exports import DataExport, ExportState


@dataclass(frozen=True, slots=True)
class DataExportEvent(Event):
    """A changed export. `kind` is the event's GraphQL type."""

    kind: str
    export: DataExport


JOB_EVENT_VIEWS = {
    "DataExportChanged": JobEventView(
        record=DataExportEvent,
        may_see=lambda viewer, _roles, export: export.user_id == viewer.id,
        job_ids=lambda export: [export.id],
    ),
}


async def is_visible_job(context: Context, viewer: User, job_id: str) -> bool:
    """Returns whether there is an export with this id. Raises: Forbidden if the export is another person's."""
    export = await context.stores.exports.find_by_id(job_id)
    if export is None or export.person.organization_id != viewer.organization_id:
        return False
    if export.user_id != viewer.id:
        raise Forbidden("An export is visible only to the person whose data it holds.")
    return True


async def export_my_data(info: Info) -> DataExport:
    """Requests an export of the viewer's data."""
    return await info.context.stores.exports.request(require_signed_in(info).key)


async def my_data_export(info: Info) -> DataExport | None:
    """Returns the viewer's latest export, or None."""
    return await info.context.stores.exports.find(require_signed_in(info).key)


async def files(_root: Parent[DataExport]) -> int:
    """Returns the number of files of an export."""
    return len(EXPORTED)


async def download_url(root: Parent[DataExport], info: Info) -> str | None:
    """Returns a signed URL of the archive; None until the archive is complete, and for any other person."""
    viewer = require_signed_in(info)
    if root.state is not ExportState.COMPLETED or root.person != viewer.key:
        return None
    return info.context.sign_download(root.id)
