"""The sweeper that writes archives of exports. When the claim of a killed worker ends, another worker starts again."""

import structlog

from jobs.context import JobContext
from storage.privacy.archives import archive
from storage.privacy.exports import CHUNK_BYTES, MAX_BYTES, DataExport, ExportFailure, ExportLost

log = structlog.get_logger(__name__)


async def write_exports(jobs: JobContext) -> int:
    """Writes the archives of all exports that are due, one after the other. Returns their number."""
    count = 0
    while (export := await jobs.stores.exports.claim()) is not None:
        count += 1
        try:
            await _write(jobs, export)
        except ExportLost:
            log.info("export_lost")
        except Exception:
            # This export is due again when its claim ends. Other exports must not wait for it.
            log.exception("export_failed")
    return count


async def _write(jobs: JobContext, export: DataExport) -> None:
    exports, unstored, number = jobs.stores.exports, bytearray(), 0
    async for data, ends_file in archive(jobs.stores.mongo, jobs.stores.file_objects, export.person):
        unstored += data
        while len(unstored) >= CHUNK_BYTES:
            size = await exports.add_chunk(export, number, bytes(unstored[:CHUNK_BYTES]))
            del unstored[:CHUNK_BYTES]
            number += 1
            if size > MAX_BYTES:
                await exports.fail(export, ExportFailure.TOO_LARGE)
                return
        if ends_file:
            await exports.finish_file(export)
    await exports.add_chunk(export, number, bytes(unstored))
    await exports.complete(export)
