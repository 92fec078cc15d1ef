"""Asks whether the server is ready, signs in with a password, and records a delivery with a service key.

openapi-python-client generate --url http://127.0.0.1:8000/openapi.json --config config.yaml \
    --meta none --output-path noroshi_http
NOROSHI_ADDRESS=... NOROSHI_PASSWORD=... NOROSHI_KEY=... python deliveries.py
"""

import json
import os
from datetime import UTC, datetime
from io import BytesIO
from uuid import uuid4

from noroshi_http import AuthenticatedClient, Client
from noroshi_http.api.mail import ingest_deliveries
from noroshi_http.api.operation import get_readiness
from noroshi_http.api.sign_in import sign_in_with_password
from noroshi_http.models import DeliveryEvent, ErrorAnswer, PasswordSignIn
from noroshi_http.types import File

URL = os.environ.get("NOROSHI_URL", "http://127.0.0.1:8000")


def main() -> None:
    """Sends the requests, and prints their results."""
    client = Client(base_url=URL)
    print(f"The server is {get_readiness.sync(client=client).status}.")

    for password in ("a wrong one", os.environ["NOROSHI_PASSWORD"]):
        body = PasswordSignIn(address=os.environ["NOROSHI_ADDRESS"], password=password)
        answer = sign_in_with_password.sync(client=client, body=body, noroshi_client="example")
        if isinstance(answer, ErrorAnswer):
            print(answer.errors[0].extensions.code)
        else:
            print(f"Signed in as {answer.user_id}.")

    service = AuthenticatedClient(base_url=URL, token=os.environ["NOROSHI_KEY"])
    delivery = DeliveryEvent(event_id=str(uuid4()), address="ann@example.org", at=datetime.now(UTC), smtp_code=250)
    lines = json.dumps(delivery.to_dict()) + "\n"
    recorded = ingest_deliveries.sync(client=service, body=File(BytesIO(lines.encode())))
    print(f"Recorded {recorded.accepted}.")


if __name__ == "__main__":
    main()
