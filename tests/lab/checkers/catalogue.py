"""The checkers by the name in the table of a run."""

from tests.lab.checkers import Checker, answers, members, pages, subscriptions

CHECKERS: dict[str, Checker] = {
    "pages hold acknowledged messages": pages.pages_hold_acknowledged_messages,
    "no smaller timestamp appears": pages.no_smaller_timestamp_appears,
    "pages are in order": pages.pages_are_in_order,
    "hasOlder and hasNewer are true": pages.flags_of_pages_are_true,
    "messages are stored once": pages.messages_are_stored_once,
    "events are contiguous": subscriptions.events_are_contiguous,
    "subscriptions are resumed": subscriptions.subscriptions_are_resumed,
    "events are the same for all": subscriptions.events_are_the_same_for_all,
    "subscribers receive every message": subscriptions.subscribers_receive_every_message,
    "reactions are exact": members.reactions_are_exact,
    "members are exact": members.members_are_exact,
    "read marks never move back": members.read_marks_never_move_back,
    "errors are expected": answers.errors_are_expected,
}
