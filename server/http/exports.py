"""GET /exports/{id}: the archive of a person's data, under a signed URL that the API gives to the person only."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from server.http.openapi import Answer, DescribedRoute, Operation, Parameter, Tag
from storage.privacy.exports import ExportState, ExportStore
from storage.secrets.download_urls import DownloadUrls

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Disposition": 'attachment; filename="my-data.zip"',
    "X-Content-Type-Options": "nosniff",
}

DOWNLOAD = Operation(
    id="downloadExport",
    tag=Tag.FILES,
    summary="Download the archive of a person's own data",
    description="The address is `DataExport.downloadUrl` of the GraphQL API.",
    parameters=[
        Parameter("expires", "query", "Part of the signed address.", is_required=True),
        Parameter("signature", "query", "Part of the signed address.", is_required=True),
    ],
    answers={
        200: Answer("The archive.", media_types=["application/zip"]),
        404: Answer("The address is wrong or has expired: a text, since browsers show it.", media_types=["text/plain"]),
    },
)


def exports_route(exports: ExportStore, urls: DownloadUrls) -> DescribedRoute:
    """Returns the route of archives."""

    async def download(request: Request) -> Response:
        id_, query = request.path_params["id"], request.query_params
        if not urls.is_valid(id_, query.get("expires", ""), query.get("signature", "")):
            return PlainTextResponse("The address is wrong or has expired. Open your export again.", 404)
        export = await exports.find_by_id(id_)
        if export is None or export.state is not ExportState.COMPLETED:
            return PlainTextResponse("There is no such export.", 404)
        headers = {**_HEADERS, "Content-Length": str(export.size_bytes)}
        return StreamingResponse(exports.read(export), media_type="application/zip", headers=headers)

    return DescribedRoute("/exports/{id}", download, {"GET": DOWNLOAD})
