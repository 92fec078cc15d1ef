"""Personal data of files."""

from storage.files.documents import FileDocument
from storage.identity.privacy_rules import (
    ExportedSelection,
    PersonalData,
    PersonalDataSelection,
    change_rule,
    delete_rule,
)
from storage.ids import UserKey
from storage.mongo import Document


def _files(person: UserKey) -> Document:
    return {"org": person.organization_id, "user": person.user_id}


def _usage(person: UserKey) -> Document:
    return {"_id": {"o": person.organization_id, "u": person.user_id}}


def _export_file(file: FileDocument) -> Document:
    return {
        "id": file["_id"],
        "fileName": file["name"],
        "size": file["size"],
        "contentType": file.get("type"),
        "state": file["state"],
        "createdAt": file["at"],
        "isInLibrary": "library_alt" in file,
        "libraryAltText": file.get("library_alt"),
    }


PERSONAL_DATA = (
    PersonalData(
        "files",
        "Nothing. Recordings of calls belong to no user, and are deleted with the number that was called.",
        rules=[change_rule(_files)],
        exports=[ExportedSelection(PersonalDataSelection(_files), _export_file)],
    ),
    PersonalData("file_removals", "Ids of files and of messages, until the file is removed."),
    PersonalData("file_usage", "Nothing.", rules=[delete_rule(_usage)]),
)
