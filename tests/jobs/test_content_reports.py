"""Decisions about content reports that were not carried out within 30 s are carried out by a sweeper."""

import pytest

from jobs.content_reports import finish_report_effects
from storage.chat.roles import Moderator
from storage.feed.content_reports.changes import CONTENT_REPORTS, NewReport, ReportRuling
from storage.feed.content_reports.records import ContentReportCategory, ContentReportDecision, ContentReportSubject
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.storage.topic_scenario import create_topic_scenario

pytestmark = pytest.mark.anyio


async def test_sweep_removes_the_message_of_a_decided_report(stores: Stores) -> None:
    scenario = await create_topic_scenario(stores)
    organization_id = scenario.organization_id
    message = await scenario.post("rude", "bob")
    category, subject = ContentReportCategory.SPAM, ContentReportSubject.MESSAGE
    community_id = scenario.community.id
    new = NewReport(organization_id, subject, message.id, community_id, "bob", "cat", category, "", "rude")
    await stores.content_reports.file(new)
    report = await stores.content_reports.get(organization_id, new.id)
    await stores.content_reports.decide(report, Moderator("ann"), ReportRuling(ContentReportDecision.REMOVE, "x", None))
    context = job_context(stores)
    assert await finish_report_effects(context) == 0
    await stores.mongo[CONTENT_REPORTS].update_one({"_id": new.id}, [{"$set": {"effect_due": "$at"}}])
    assert await finish_report_effects(context) == 1
    assert (await stores.messages.get(message.key)).deleted_at is not None
