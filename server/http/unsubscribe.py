"""/unsubscribe/{token}: ends a person's digests by the link of a mail, without a sign-in (RFC 8058).

GET shows a page with a button and changes nothing, since mail scanners open links. POST ends the digests. Mail programs
send it with one click, and the button of the page sends the same.
"""

from typing import NamedTuple

import structlog
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from server.http.openapi import Answer, DescribedRoute, Operation, Tag
from storage.errors import Unavailable
from storage.identity.accounts.local_accounts import MailLanguage
from storage.mail.addresses import normalize
from storage.mongo import unavailable
from storage.notifications.settings import DigestPeriod, NotificationSettingsChange
from storage.secrets.unsubscribe_links import UnsubscribeLinks, UnsubscribeTarget
from storage.stores import Stores

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
}

HEAD = """<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Noroshi</title>
<style>:root { color-scheme: light dark } body { font-family: sans-serif; line-height: 1.5; margin: 4em 1em }
main { max-width: 36em; margin: auto } button { font: inherit; padding: 0.5em 1em }</style></head>"""

log = structlog.get_logger(__name__)

_REFUSALS = {
    404: Answer("The link is wrong or too old: a page.", media_types=["text/html"]),
    503: Answer("The database does not answer: a page.", media_types=["text/html"]),
}
ASK = Operation(
    id="showUnsubscribePage",
    tag=Tag.MAIL,
    summary="Show the page that ends a person's digests",
    description="Changes nothing, since mail scanners open links.",
    answers={200: Answer("A page with a button.", media_types=["text/html"]), 404: _REFUSALS[404]},
)
UNSUBSCRIBE = Operation(
    id="unsubscribe",
    tag=Tag.MAIL,
    summary="End a person's digests with one click (RFC 8058)",
    description="The body has no effect.",
    answers={200: Answer("The digests have ended: a page.", media_types=["text/html"]), **_REFUSALS},
)


class _Texts(NamedTuple):
    """The texts of the pages."""

    question: str
    button: str
    done: str
    hint: str
    unknown: str
    later: str


TEXTS = {
    MailLanguage.EN: _Texts(
        "End mails about unread notifications?",
        "End these mails",
        "You get no more mails about unread notifications.",
        "You can turn them on again in the settings of your notifications.",
        "This link is wrong or too old. Turn the mails off in the settings of your notifications.",
        "This is not possible at the moment. Try again in a minute.",
    ),
    MailLanguage.JA: _Texts(
        "未読の通知のメールを停止しますか？",
        "メールを停止する",
        "未読の通知のメールを停止しました。",
        "通知の設定でもう一度有効にできます。",
        "リンクが正しくないか、古すぎます。通知の設定でメールを停止してください。",
        "今は停止できません。1 分後にもう一度お試しください。",
    ),
}


def unsubscribe_route(stores: Stores, links: UnsubscribeLinks) -> DescribedRoute:
    """Returns the route."""

    async def unsubscribe(request: Request) -> Response:
        target = links.open(request.path_params["token"])
        if target is None:
            both = " ".join(texts.unknown for texts in TEXTS.values())
            return _page(MailLanguage.EN, f"<p>{both}</p>", 404)
        language = MailLanguage(target.language)
        texts = TEXTS[language]
        if request.method != "POST":
            form = f'<form method="post"><button>{texts.button}</button></form>'
            return _page(language, f"<h1>{texts.question}</h1>{form}")
        try:
            await end_digests(stores, target)
        except Exception as error:
            if unavailable(error) is None and not isinstance(error, Unavailable):
                raise
            return _page(language, f"<p>{texts.later}</p>", 503, {"Retry-After": "60"})
        return _page(language, f"<h1>{texts.done}</h1><p>{texts.hint}</p>")

    return DescribedRoute("/unsubscribe/{token}", unsubscribe, {"GET": ASK, "POST": UNSUBSCRIBE})


async def end_digests(stores: Stores, target: UnsubscribeTarget) -> None:
    """Ends the person's digests, and records in the address book that the address gets no more. Idempotent."""
    person, address = target.person, normalize(target.address)
    user = await stores.users.find(*person)
    # An erasure has deleted the settings, which must not be stored again.
    if user is not None and not user.is_erased:
        settings = await stores.notification_settings.get(person)
        if settings.digest is not DigestPeriod.NEVER:
            await stores.digests.change_settings(person, NotificationSettingsChange(digest=DigestPeriod.NEVER))
            log.info("digests_ended_by_link")
    if address is not None and stores.address_book.has_keys:
        await stores.address_book.set_unsubscribed(person.organization_id, address, True)


def _page(language: MailLanguage, content: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    html = f'<!doctype html>\n<html lang="{language.value}">{HEAD}<body><main>{content}</main></body></html>\n'
    return HTMLResponse(html, status, {**HEADERS, **(headers or {})})
