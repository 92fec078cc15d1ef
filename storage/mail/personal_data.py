"""Personal data of the bounce address book: addresses as keyed hashes, and encrypted where they are kept readable."""

from storage.identity.privacy_rules import PersonalData, change_rule
from storage.ids import UserKey
from storage.mongo import Document


def _decisions(person: UserKey) -> Document:
    return {"org": person.organization_id, "by": person.user_id, "reason": {"$ne": ""}}


HASHES = "Keyed hashes of addresses, which name nobody without the organization's key."

PERSONAL_DATA = (
    PersonalData("mail_ledger", HASHES),
    PersonalData(
        "mail_addresses",
        f"{HASHES} Readable addresses of an erased person, and the reasons of an erased operator, are removed.",
    ),
    PersonalData("mail_domains", "Counts by domain. The reasons of an erased operator are removed."),
    PersonalData("mail_days", "Counts by source."),
    PersonalData("mail_sources", "Names of sources; a source may be the id of a service's token."),
    PersonalData(
        "mail_audit",
        "Decisions of the person as an operator, by id, without the reason.",
        rules=[change_rule(_decisions)],
    ),
    PersonalData("mail_reports", "No document concerns a person."),
    PersonalData("mail_tails", "No document concerns a person."),
    PersonalData("mail_differences", HASHES),
)
