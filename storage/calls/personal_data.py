"""Personal data of call jobs. Phone numbers are those of people who are called, not of users."""

from storage.identity.privacy_rules import PersonalData

PERSONAL_DATA = (
    PersonalData(
        "call_jobs",
        "The id of the user who launched the job. Name and scenario are the organization's record of its calls.",
    ),
    PersonalData(
        "call_tasks",
        "Phone numbers and variables, until a retention rule of the organization removes them. It deletes the "
        "recordings of the calls, which are files, together with the numbers.",
    ),
    PersonalData("call_drafts", "No document concerns a person."),
    PersonalData("call_row_errors", "Errors in rejected lists, kept as long as their job. They name no user."),
    PersonalData("call_limits", "No document concerns a person."),
    PersonalData("do_not_call", "Phone numbers that must not be called, until an operator removes them."),
    PersonalData("simulated_calls", "No document concerns a person."),
)
