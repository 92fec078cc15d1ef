"""Recognizes notices that delivery is late but goes on. They are no bounces: the outcome is still open."""

import re
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message

_RETRIED = (
    r"still being retried|(?:will|shall) (?:then )?be (?:re-?tried|re-?attempted) (?:until|for|again|every|within)"
    r"|will (?:keep|continue|go on)(?: on)? (?:trying|retrying|attempting|to (?:try|retry|attempt|be made))"
    r"|attempts?(?: to deliver[^.]{0,60})? will (?:continue|be continued|be repeated)"
    r"|will retry for|will (?:re)?try (?:again )?for (?:up to |another )?\d|(?:is|are) still (?:trying|retrying)"
)
_NOTHING_TO_DO = (
    r"(?:do not|don't|no|not) need to re-?send|no action is (?:required|needed|necessary)"
    r"|not (?:have|required|necessary) to (?:re-?send|take any action)"
    r"|(?:is|just|only) a warning(?: message)?|warning (?:message )?only|notified if the delivery fails"
)
_DELAYED = (
    r"not yet been delivered|still undelivered|undelivered after|(?:has|have) been (?:delayed|postponed|deferred)"
    r"|(?:delivery|message|mail) (?:is |was )?(?:delayed|deferred|temporarily suspended)|will be re-?tried"
    r"|will (?:try again|retry)|配信が遅延|再送(?:信)?を(?:試み|続け|行い)"
)
_SURE_DELAY = re.compile(rf"{_RETRIED}|{_NOTHING_TO_DO}", re.IGNORECASE)
_POSSIBLE_DELAY = re.compile(_DELAYED, re.IGNORECASE)
_DELAY_SUBJECT = re.compile(
    r"delayed|\(delay\)|\bdelay notification|still being retried|still undelivered|delivery (?:delay|incomplete)"
    r"|(?:could not|can ?not) (?:be )?(?:sen[dt]|deliver(?:ed)?)\b.*\b(?:for (?:the )?past|yet)|warning: could not send"
    r"|temporarily suspended|will be retried|配信遅延|遅延通知",
    re.IGNORECASE,
)
_FAILURE_SUBJECT = re.compile(
    r"undeliver(?:able|ed mail)|return(?:ed|ing)|fail|non-?deliver|rejected|not delivered", re.IGNORECASE
)
_FINAL = re.compile(
    r"permanent(?:ly)? (?:fatal )?(?:error|fail|delivery|undeliver|reject)|(?<!not )(?<!not yet )given up"
    r"|no (?:further|more|additional) (?:delivery )?(?:attempts|retries)|gave up|has expired|retry timeout exceeded"
    r"|(?:will not|won't|not|no longer|never) (?:keep trying|try|retry|be (?:attempted|tried|re-?tried))"
    r"|(?:is|was|has been|being) returned|too long in the queue|in the queue too long|delivery has failed",
    re.IGNORECASE,
)


def is_delay_notice(message: Message, text: str) -> bool:
    """Returns whether a mail server says that it goes on trying. `text` is the message's own text."""
    subject, words = _subject(message), " ".join(text.split())
    if _DELAY_SUBJECT.search(subject):
        return True
    if _FINAL.search(words):
        return False
    if _SURE_DELAY.search(words):
        return True
    return _POSSIBLE_DELAY.search(words) is not None and not _FAILURE_SUBJECT.search(subject)


def is_from_mail_server(message: Message) -> bool:
    """Returns whether the sender is a mail server. People's automatic replies may announce a delay too."""
    senders = " ".join(str(message.get(name, "")) for name in ("From", "Sender", "Return-Path"))
    return re.search(r"mailer-?daemon|postmaster|mail delivery|mail ?system|<>", senders, re.IGNORECASE) is not None


def _subject(message: Message) -> str:
    subject = str(message.get("Subject", ""))
    try:
        return str(make_header(decode_header(subject)))
    except (HeaderParseError, LookupError, ValueError):
        return subject
