"""The checkers by the name in the table of a run."""

from tests.lab.checkers import Checker, answers, calls, feeds, mail, members, pages, publications, subscriptions

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
    "feeds hold every post once": feeds.feeds_hold_every_post_once,
    "authors see their posts at once": feeds.authors_see_their_posts_at_once,
    "feeds are in order": feeds.feeds_are_in_order,
    "arrivals are reported": feeds.arrivals_are_reported,
    "feed subscriptions are resumed": feeds.feed_subscriptions_are_resumed,
    "follower counts are exact": feeds.follower_counts_are_exact,
    "publications happen once": publications.publications_happen_once,
    "publications are never early": publications.publications_are_never_early,
    "states of publications are true": publications.states_of_publications_are_true,
    "cancelled posts stay unpublished": publications.cancelled_posts_stay_unpublished,
    "calls stay within limits": calls.calls_stay_within_limits,
    "numbers are called once": calls.numbers_are_called_once,
    "states of calls are true": calls.states_of_calls_are_true,
    "counts of the book are exact": mail.counts_of_the_book_are_exact,
    "successes never decrease": mail.successes_never_decrease,
    "errors are expected": answers.errors_are_expected,
}
