"""Sends a daily summary of bounces, and alarms when too many mails bounce. Each is sent once, by mail or webhook.

An alarm is about an organization or one of its domains, today or yesterday, since events may be recorded after
midnight. A report that cannot be sent is tried again after ten minutes, with the same id.
"""

from collections import defaultdict
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx2
import orjson
import structlog

from jobs.context import JobContext
from jobs.providers.mailer import Mail, MailDelayed, MailRefused
from jobs.providers.signed_webhooks import sign
from storage.mail.epoch_time import DAY_MS, epoch_ms
from storage.mail.rates import MIN_SENT, day_of
from storage.mail.records import BounceRate
from storage.secrets.shared_secrets import shared_secret

SUMMARY_AFTER_MS = 3_600_000
"""How long after midnight UTC a day's summary is sent. The last events of the day are aggregated by then."""

ALARMED_DOMAINS = 5
"""How many domains of an organization can raise an alarm in one run: those with the highest rates of the day."""

TIMEOUT_S = 15.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class BounceReport:
    """A day's bounce rate of an organization or one of its domains. `worst` are the domains with the most bounces."""

    kind: str
    organization_id: str
    rate: BounceRate
    worst: list[BounceRate]
    threshold_percent: float

    @property
    def id(self) -> str:
        """Id of the report, the same on every attempt."""
        return f"bounce-{self.kind}-{self.rate.day:%Y-%m-%d}-{self.scope}"

    @property
    def scope(self) -> str:
        """Subject of the report: an organization, or one of its domains."""
        return f"{self.rate.domain} {self.organization_id}" if self.rate.domain else self.organization_id

    @property
    def payload(self) -> bytes:
        """JSON body for a webhook. Its `text` is what Slack, Mattermost and Rocket.Chat show."""
        worst = [{"domain": e.domain, "sent": e.sent, "bounced": e.bounced, "rate": e.rate} for e in self.worst]
        rate = {"sent": self.rate.sent, "bounced": self.rate.bounced, "rate": self.rate.rate}
        header = {"type": f"bounce.{self.kind}", "organizationId": self.organization_id, "domain": self.rate.domain}
        day = {"day": f"{self.rate.day:%Y-%m-%d}", "thresholdPercent": self.threshold_percent}
        return orjson.dumps({**header, **day, **rate, "worstDomains": worst, "text": f"{self.subject}\n{self.text}"})

    @property
    def subject(self) -> str:
        """Subject of a mail."""
        title = "Too many mails bounce" if self.kind == "alarm" else "Bounces"
        return f"{title}: {self.rate.rate:.2%} of {self.scope} on {self.rate.day:%Y-%m-%d}"

    @property
    def text(self) -> str:
        """Text of a mail."""
        lines = [
            f"Day (UTC): {self.rate.day:%Y-%m-%d}",
            f"Organization: {self.organization_id}",
            *([f"Domain: {self.rate.domain}"] if self.rate.domain else []),
            f"Sent: {self.rate.sent}, bounced: {self.rate.bounced}, rate: {self.rate.rate:.2%}",
            f"Alarm above: {self.threshold_percent:g} %",
            "",
            *(f"{each.domain}: {each.bounced} of {each.sent} bounced" for each in self.worst),
        ]
        return "\n".join(lines)


async def report_bounces(jobs: JobContext) -> int:
    """Sends due alarms of yesterday and today, and due summaries of yesterday. Returns how many."""
    now = await jobs.stores.mongo.now()
    today = day_of(now)
    due = [
        (day, "alarm", org, rate) for day in (today - 1, today) for org, rate in await _rates_above_threshold(jobs, day)
    ]
    if jobs.bounce_report_to is not None and epoch_ms(now) % DAY_MS >= SUMMARY_AFTER_MS:
        yesterday = await jobs.stores.bounce_rates.of_day(today - 1)
        due += [(today - 1, "summary", org, rate) for org, rate in yesterday.items()]
    return sum([await _report(jobs, *each) for each in due])


async def _rates_above_threshold(jobs: JobContext, day: int) -> list[tuple[str, BounceRate]]:
    """Returns a day's rates above the threshold, each with its organization: totals, and rates of single domains."""
    percent, rates = jobs.bounce_alarm_percent, jobs.stores.bounce_rates
    totals = (await rates.of_day(day)).items()
    domains: dict[str, list[BounceRate]] = defaultdict(list)
    for org, rate in await rates.highest(day, percent / 100):
        domains[org].append(rate)
    return [
        *((org, rate) for org, rate in totals if rate.sent >= MIN_SENT and rate.rate * 100 > percent),
        *((org, rate) for org, worst in domains.items() for rate in worst[:ALARMED_DOMAINS]),
    ]


async def _report(jobs: JobContext, day: int, kind: str, org: str, rate: BounceRate) -> bool:
    report_name = f"{kind} {rate.domain}" if rate.domain else kind
    if not await jobs.stores.reports.claim(org, day, report_name):
        return False
    worst = [] if rate.domain else await jobs.stores.bounce_rates.worst_domains(org, day)
    report = BounceReport(kind, org, rate, worst, jobs.bounce_alarm_percent)
    if kind == "alarm":
        subject = {"organization": org, "domain": rate.domain, "rate": rate.rate}
        log.warning("bounce_alarm_raised", **subject, sent=rate.sent, bounced=rate.bounced)
    try:
        await _send(jobs, report)
    except (MailDelayed, httpx2.HTTPError) as error:
        log.warning("bounce_report_delayed", report=report.id, error=type(error).__name__)
        return False
    except MailRefused as error:
        log.warning("bounce_report_refused", report=report.id, error=type(error).__name__)
    await jobs.stores.reports.mark_sent(org, day, report_name)
    return True


async def _send(jobs: JobContext, report: BounceReport) -> None:
    to = jobs.bounce_report_to
    if to is None:
        return
    if "://" in to:
        await _post(jobs, to, report)
    else:
        await jobs.mailer.send(Mail("Postmaster", to, report.subject, report.text), report.id)


async def _post(jobs: JobContext, url: str, report: BounceReport) -> None:
    """POSTs the report, signed with the URL's password if there is one, or else with a secret from the database."""
    parts = urlsplit(url)
    secret = unquote(parts.password or "") or (await shared_secret(jobs.stores.mongo, "bounce_reports")).hex()
    bare_url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    now_s = int((await jobs.stores.mongo.now()).timestamp())
    headers = {"content-type": "application/json", **sign(secret, report.id, now_s, report.payload)}
    async with httpx2.AsyncClient(timeout=TIMEOUT_S) as http:
        (await http.post(bare_url, content=report.payload, headers=headers)).raise_for_status()
