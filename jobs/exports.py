"""The sweeper that writes the archives of exports. When the claim of a killed worker ends, another one starts again."""

import structlog

from jobs.context import JobContext
from storage.privacy.archives import archive
from storage.privacy.exports import CHUNK_BYTES, MAX_BYTES, DataExport, ExportFailure, ExportLost

log = structlog.get_logger(__name__)


async def write_exports(jobs: JobContext) -> int:
    """Writes the archives of all exports that are due, one after the other. Returns how many."""
    count = 0
    while (export := await jobs.stores.exports.claim()) is not None:
        count += 1
        try:
            await _write(jobs, export)
        except ExportLost:
            log.info("export_lost")
        except Exception:
            # The export is due again when its claim ends. The others must not wait for it.
            log.exception("export_failed")
    return count


async def _write(jobs: JobContext, export: DataExport) -> None:
    exports, waiting, number = jobs.stores.exports, bytearray(), 0
    async for data, ends_file in archive(jobs.stores.mongo, export.person):
        waiting += data
        while len(waiting) >= CHUNK_BYTES:
            size = await exports.add_chunk(export, number, bytes(waiting[:CHUNK_BYTES]))
            del waiting[:CHUNK_BYTES]
            number += 1
            if size > MAX_BYTES:
                await exports.fail(export, ExportFailure.TOO_LARGE)
                return
        if ends_file:
            await exports.finish_file(export)
    await exports.add_chunk(export, number, bytes(waiting))
    await exports.complete(export)
