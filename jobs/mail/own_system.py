"""Tells delivery lines about a recipient from those about the sender's own mail system, which count for nobody.

A content filter gets a message from Postfix, and hands it back under another queue id, whose line counts (Postfix's
FILTER_README). Postfix logs that the filter has the message as `status=sent`, like a delivery.
"""

import re
from ipaddress import IPv6Address, ip_address

FILTER_PORTS = range(10_020, 10_040)
"""Ports of content filters, on any host: Amavis, and the examples of Postfix's documentation."""

MAILBOX_PORTS = {24, 2003, 7025, 8024}
"""Ports of LMTP servers that store mail on this host: Dovecot and Cyrus, Kopano, Zimbra, Mailman."""

_RELAY = re.compile(r"(?P<name>[^\[\]]*?)(?:\[(?P<address>[^\]]+)\])?(?::(?P<port>\d+))?")
_NAMED_HOST = re.compile(r"[^\s\[\]]{1,255}\[[^\]\s]{1,255}\](?::\d+)?")
_LOCALHOST = re.compile(r"(?:(?:.+\.)?localhost(?:\.localdomain)?|ip6-localhost)\.?", re.IGNORECASE)
_MAILBOX_AGENT = re.compile(
    r"dovecot|cyrus|maildrop|procmail|deliver|virtual|mailbox|vmail|dbmail|kopano|mailman|sympa|majordomo|scalemail"
    r"|uucp|ifmail|bsmtp",
    re.IGNORECASE,
)
_FILTER = re.compile(r"amavis|filter|spam|scan|clam|virus", re.IGNORECASE)
_HANDED_BACK = re.compile(r"\bqueued as\b|\bfrom MTA\b")
_SAVED = re.compile(r"\bSaved$")
_NOT_DELIVERED = re.compile(r"forwarded as |discarded$|delivered to file: /dev/null$")
_OWN_FAULT = re.compile(r"mail transport (?:error|unavailable)|Name service error for name=(?:localhost|127\.)")


def is_evidence(agent: str, relay: str, status: str, text: str) -> bool:
    """Returns whether a line shows something about its recipient. `agent` is Postfix's program, such as "smtp".

    The line of a filter, of a transport that is down, or of discarded or forwarded mail shows nothing: not that mail
    was delivered, nor that the recipient's domain failed.
    """
    match agent:
        case "discard":
            return False
        case "pipe":
            # The service runs a program of this host. All but known ones may be filters.
            return _MAILBOX_AGENT.search(relay) is not None
        case "local" | "virtual":
            return status != "sent" or (relay != "none" and _NOT_DELIVERED.match(text) is None)
    if relay == "none" or agent in ("error", "retry"):
        # Nothing was sent. The text may name the host of an earlier failure.
        host = _NAMED_HOST.search(text, 0, 1000)
        return status != "sent" and not _OWN_FAULT.search(text) and not (host and is_own_host(host[0]))
    return not is_own_host(relay) or ("lmtp" in agent and _stores_mail(relay, status, text))


def is_own_host(relay: str) -> bool:
    """Returns whether a relay is on this host, or a content filter by its port."""
    parts = _RELAY.fullmatch(relay)
    if parts is None:
        return False
    address = parts["address"] or parts["name"]
    is_socket = "/" in address
    has_filter_port = parts["port"] is not None and int(parts["port"]) in FILTER_PORTS
    return is_socket or has_filter_port or _LOCALHOST.fullmatch(parts["name"]) is not None or _is_loopback(address)


def _is_loopback(address: str) -> bool:
    try:
        ip = ip_address(address.removeprefix("IPv6:"))
    except ValueError:
        return False
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.is_loopback or ip.is_unspecified


def _stores_mail(relay: str, status: str, text: str) -> bool:
    """Returns whether an LMTP server of this host stores mail, and has answered about the recipient."""
    if _HANDED_BACK.search(text) if status == "sent" else " said: " not in text:
        return False
    parts = _RELAY.fullmatch(relay)
    address = (parts["address"] or parts["name"]) if parts else relay
    if "/" in address and (_MAILBOX_AGENT.search(address) or ("lmtp" in address and not _FILTER.search(address))):
        return True
    port = int(parts["port"]) if parts and parts["port"] else None
    return port in MAILBOX_PORTS or _SAVED.search(text) is not None
