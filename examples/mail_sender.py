"""Sends a mail to the addresses that the address book does not block, and reports how the mail server answered.

Create a key with `noroshi key create --org acme --name Mailer --scope mail:read --scope mail:ingest`, install
`httpx2`, and run `NOROSHI_KEY=nrk_... SMTP=127.0.0.1:25 python mail_sender.py ann@example.org bob@example.org`. A few
seconds later the book blocks the addresses that the mail server has refused for good.
"""

import os
import smtplib
import sys
import uuid
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any

import httpx2

STANDINGS = (
    "query ($addresses: [String!]!) { addressBook(addresses: $addresses) { address blocked verdict { detail } } }"
)
REPORT = """mutation ($events: [DeliveryEventInput!]!) {
  recordDeliveries(events: $events) { accepted rejected { eventId message } }
}"""
URL = os.environ.get("NOROSHI_URL", "http://127.0.0.1:8000") + "/graphql"
HEADERS = {"authorization": f"Bearer {os.environ['NOROSHI_KEY']}"}
SMTP_HOST, _, SMTP_PORT = os.environ.get("SMTP", "127.0.0.1").partition(":")


def run(document: str, **variables: Any) -> dict[str, Any]:
    """Runs an operation and returns its data."""
    answer = httpx2.post(URL, json={"query": document, "variables": variables}, headers=HEADERS).json()
    if answer.get("errors"):
        sys.exit("\n".join(f"{error['extensions']['code']}: {error['message']}" for error in answer["errors"]))
    return answer["data"]


def send(address: str) -> tuple[int, str]:
    """Sends the mail. Returns the code and the text of the mail server's answer."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "news@example.org", address, "The beacon is lit"
    with smtplib.SMTP(SMTP_HOST, int(SMTP_PORT or 25)) as server:
        try:
            server.send_message(mail)
        except smtplib.SMTPRecipientsRefused as refused:
            code, text = refused.recipients[address]
            return code, text.decode(errors="replace")
    return 250, "accepted"


deliveries: list[dict[str, Any]] = []
for standing in run(STANDINGS, addresses=sys.argv[1:])["addressBook"]:
    if standing["blocked"]:
        print(f"{standing['address']}: not sent. {standing['verdict']['detail']}")
        continue
    code, text = send(address := standing["address"])
    print(f"{address}: {code} {text}")
    event = {"eventId": str(uuid.uuid4()), "address": address, "at": datetime.now(UTC).isoformat()}
    deliveries.append({**event, "smtpCode": code, "diagnostic": text})
print(run(REPORT, events=deliveries)["recordDeliveries"])
