"""All work outside requests: arq functions by queue, periodic sweepers, and loops that run all the time."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from arq.worker import Function, func

from jobs.account_mails import send_account_mails
from jobs.calls.broker_pool import run_broker_pool
from jobs.calls.polling import poll_overdue_calls, sweep_abandoned_lists
from jobs.calls.recordings import fetch_recordings
from jobs.content_reports import finish_report_effects
from jobs.context import JobContext
from jobs.erasures import erase_users
from jobs.exports import write_exports
from jobs.fan_out import fan_out, finish_fan_outs, rebuild_feed, rebuild_feeds, retry_failed_inserts, settle_follows
from jobs.files import check_file, check_files, delete_expired_files
from jobs.link_previews import find_lost_previews, preview_message_link, preview_post_link
from jobs.mail.aggregation import aggregate_mail
from jobs.mail.forgetting import forget_addresses
from jobs.mail.summary import report_bounces
from jobs.mail_files import delete_old_mails
from jobs.notifications.digests import send_digests
from jobs.notifications.publication_summaries import send_publication_summaries
from jobs.notifications.push import find_arrivals, send_pushes
from jobs.publishing.author_mails import send_author_mails
from jobs.publishing.renewals import renew_credentials
from jobs.publishing.sweepers import fail_disconnected, publish_due, resume_accounts, upload_media, wake_publisher
from jobs.publishing.verifications import verify_credentials
from jobs.publishing.warnings import warn_of_ends
from jobs.retention import apply_retention_rules
from jobs.stamps import evaluate_active_people, evaluate_all_people
from jobs.streams import prune_events, relay_outbox
from jobs.webhooks.delivery import send_webhook_events
from jobs.webhooks.discovery import find_webhook_events
from jobs.webhooks.notices import send_webhook_notices
from jobs.webhooks.streams import keep_local_feeds_open
from storage.redis.queue import FAN_OUT, FILES, PREVIEWS, PUBLISHING


@dataclass(frozen=True, slots=True)
class Sweeper:
    """A function that every worker runs every `every_s` seconds. Concurrent runs must be harmless."""

    name: str
    every_s: float
    run: Callable[[JobContext], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class WorkerLoop:
    """A function that every worker runs all the time, and restarts after a failure. Locks divide the work."""

    name: str
    run: Callable[[JobContext], Awaitable[None]]


FUNCTIONS: dict[str, list[Function]] = {
    PREVIEWS: [
        func(preview_message_link, name="chat.preview_link", timeout=20, keep_result=0, max_tries=1000),
        func(preview_post_link, name="feed.preview_link", timeout=20, keep_result=0, max_tries=1000),
    ],
    FAN_OUT: [
        func(fan_out, name="feed.fan_out", timeout=30, keep_result=0, max_tries=1000),
        func(rebuild_feed, name="feed.rebuild", timeout=30, keep_result=0, max_tries=5),
    ],
    PUBLISHING: [func(wake_publisher, name="publishing.wake", timeout=10, keep_result=0, max_tries=1000)],
    FILES: [func(check_file, name="files.check", timeout=60, keep_result=0, max_tries=5)],
}


LOOPS: list[WorkerLoop] = [
    WorkerLoop("run_broker_pool", run_broker_pool),
    WorkerLoop("aggregate_mail", aggregate_mail),
    WorkerLoop("find_webhook_events", find_webhook_events),
    WorkerLoop("send_webhook_events", send_webhook_events),
]

SWEEPERS: list[Sweeper] = [
    Sweeper("relay_outbox", 2.0, relay_outbox),
    Sweeper("find_lost_previews", 5.0, find_lost_previews),
    Sweeper("finish_fan_outs", 1.0, finish_fan_outs),
    Sweeper("retry_failed_inserts", 1.0, retry_failed_inserts),
    Sweeper("settle_follows", 2.0, settle_follows),
    Sweeper("rebuild_feeds", 5.0, rebuild_feeds),
    Sweeper("publish_due", 1.0, publish_due),
    Sweeper("upload_media", 1.0, upload_media),
    Sweeper("send_author_mails", 2.0, send_author_mails),
    Sweeper("send_account_mails", 1.0, send_account_mails),
    Sweeper("find_notification_arrivals", 1.0, find_arrivals),
    Sweeper("send_pushes", 1.0, send_pushes),
    Sweeper("send_digests", 5.0, send_digests),
    Sweeper("send_publication_summaries", 60.0, send_publication_summaries),
    Sweeper("fail_disconnected", 10.0, fail_disconnected),
    Sweeper("resume_accounts", 5.0, resume_accounts),
    Sweeper("renew_credentials", 5.0, renew_credentials),
    Sweeper("verify_credentials", 30.0, verify_credentials),
    Sweeper("warn_of_ends", 60.0, warn_of_ends),
    Sweeper("report_bounces", 30.0, report_bounces),
    Sweeper("forget_addresses", 10.0, forget_addresses),
    Sweeper("finish_report_effects", 5.0, finish_report_effects),
    Sweeper("evaluate_active_people", 5.0, evaluate_active_people),
    Sweeper("evaluate_all_people", 2.0, evaluate_all_people),
    Sweeper("prune_events", 60.0, prune_events),
    Sweeper("keep_local_feeds_open", 60.0, keep_local_feeds_open),
    Sweeper("send_webhook_notices", 5.0, send_webhook_notices),
    Sweeper("erase_users", 1.0, erase_users),
    Sweeper("write_exports", 1.0, write_exports),
    Sweeper("apply_retention_rules", 10.0, apply_retention_rules),
    Sweeper("check_files", 2.0, check_files),
    Sweeper("delete_expired_files", 5.0, delete_expired_files),
    Sweeper("delete_old_mails", 600.0, delete_old_mails),
    Sweeper("poll_overdue_calls", 1.0, poll_overdue_calls),
    Sweeper("sweep_abandoned_lists", 600.0, sweep_abandoned_lists),
    Sweeper("fetch_recordings", 2.0, fetch_recordings),
]
