"""Personal data of webhooks. What they have sent is not reachable any more."""

from storage.identity.privacy_rules import PersonalData, delete_rule
from storage.ids import UserKey
from storage.mongo import Document


def _of_organization(person: UserKey) -> Document:
    return {"org": person.organization_id}


PERSONAL_DATA = (
    PersonalData(
        "webhooks", "The id of the administrator who created the webhook. Name and address are the organization's."
    ),
    PersonalData("webhook_positions", "No document concerns a person."),
    PersonalData(
        "webhook_deliveries",
        "Nothing that was sent before. Requests and answers may have texts of the person, so the log of the whole "
        "organization is deleted. It has three days.",
        rules=[delete_rule(_of_organization)],
    ),
    PersonalData("webhook_searches", "No document concerns a person."),
)
