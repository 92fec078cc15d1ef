"""Reports of publications: the references of their events, and the objects that events show."""

from typing import Any

import pytest

from storage.publishing.records import post_record, publication_record
from storage.publishing.reports.records import ReportReason, found_reports, parse_report_ref, report_ref
from storage.publishing.transitions import MarkFailed
from tests.storage.publishing.in_memory_posts import stored_post, stored_publication
from tests.storage.publishing.scenario import PublishingScenario

STORED_POST: Any = stored_post()
STORED_PUBLICATION: Any = stored_publication()
POST, PUBLICATION = post_record(STORED_POST), publication_record(STORED_PUBLICATION)


@pytest.mark.parametrize("reason", ReportReason)
def test_reference_names_publication_and_reason(reason: ReportReason) -> None:
    ref = report_ref("pub", reason, 3)
    assert parse_report_ref(ref) == ("pub", reason, 3)
    (report,) = found_reports([ref], {"pub": PUBLICATION}, {"post": POST}).values()
    assert (report.reason, report.publication, report.post) == (reason, PUBLICATION, POST)


def test_reports_of_a_second_attempt_have_another_reference() -> None:
    assert report_ref("pub", ReportReason.FAILED, 1) != report_ref("pub", ReportReason.FAILED, 2)


def test_report_without_publication_or_post_is_left_out() -> None:
    ref = report_ref("pub", ReportReason.LATE, 1)
    assert found_reports([ref], {}, {"post": POST}) == {}
    assert found_reports([ref], {"pub": PUBLICATION}, {}) == {}


@pytest.mark.anyio
async def test_reports_are_read_within_their_organization(scenario: PublishingScenario) -> None:
    posts = scenario.stores.scheduled_posts
    claimed = await scenario.claim(await scenario.schedule(in_s=-1))
    failed = await posts.apply(MarkFailed(claimed, "REFUSED", "no"))
    (ref,) = [ref for kind, ref in await scenario.events() if kind == "PublicationReported"]
    report = (await posts.reports_by_ref(scenario.organization_id, [ref]))[ref]
    assert (report.reason, report.publication, report.post.text) == (ReportReason.FAILED, failed, "hello")
    assert await posts.reports_by_ref("other", [ref]) == {}
