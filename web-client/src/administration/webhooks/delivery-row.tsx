/** One delivery, with its request and its answer, and the button that sends its event again. */
import { type ReactNode, useId, useState } from "react";
import { request, useApi } from "../../api/api";
import { dateAndTime, timeOrDate } from "../../i18n/times";
import { Badge, type BadgeTone } from "../../ui/badge";
import { Button } from "../../ui/button";
import { useTranslation } from "../../ui/preferences";
import { notifyError } from "../../ui/toasts";
import { eventTypeName, GAP_TYPE } from "./event-types";
import { RedeliverWebhookEvent, type WebhookDelivery } from "./operations";
import { indented } from "./request-text";

const TONES: Record<WebhookDelivery["outcome"], BadgeTone> = {
  WAITING: "live",
  DELIVERED: "good",
  FAILED: "bad",
};

interface Props {
  delivery: WebhookDelivery;
  onRequested: (delivery: WebhookDelivery) => void;
}

export function DeliveryRow({ delivery, onRequested }: Props) {
  const { t, language } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  const { id, eventType, at, outcome, status, durationMs } = delivery;
  const date = new Date(at);
  const facts = [
    status,
    durationMs !== null && outcome !== "WAITING" && t("webhooks.duration", { count: durationMs }),
  ];
  return (
    <li data-delivery={id} data-outcome={outcome} className="border-b border-line">
      <details onToggle={(event) => setIsOpen(event.currentTarget.open)}>
        <summary className="py-2.5 hover:bg-hover">
          <span className="inline-flex max-w-[calc(100%-1.5rem)] flex-wrap items-center gap-x-2 gap-y-1 align-top">
            <Badge tone={TONES[outcome]}>{t(`webhooks.deliveryOutcome.${outcome}`)}</Badge>
            <span className="font-medium">{eventTypeName(eventType, t)}</span>
            <time dateTime={at} title={dateAndTime(language, date)} className="text-sm text-quiet">
              {timeOrDate(language, date, new Date())}
            </time>
            <span className="text-sm text-quiet tabular-nums">
              {facts.filter((fact) => fact !== null && fact !== false).join(" · ")}
            </span>
          </span>
        </summary>
        {isOpen && <DeliveryDetails delivery={delivery} onRequested={onRequested} />}
      </details>
    </li>
  );
}

function DeliveryDetails({ delivery, onRequested }: Props) {
  const { t, language } = useTranslation();
  const { direct } = useApi();
  const [isSending, setIsSending] = useState(false);
  const { id, eventType, at, messageId, outcome, request: body, answer, status } = delivery;
  const shownBody = body ? indented(body) : null;

  async function sendAgain() {
    setIsSending(true);
    await request(direct, RedeliverWebhookEvent, { id }).then(
      ({ redeliverWebhookEvent }) => onRequested(redeliverWebhookEvent),
      notifyError,
    );
    setIsSending(false);
  }

  return (
    <div className="flex flex-col gap-3 pt-2 pb-4">
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 text-sm">
        <Fact name={t("webhooks.eventType")}>{eventType}</Fact>
        <Fact name={t("webhooks.messageId")}>{messageId}</Fact>
        {status !== null && <Fact name={t("webhooks.status")}>{status}</Fact>}
      </dl>
      {shownBody && (
        <DeliveryText
          title={t("webhooks.request")}
          text={shownBody.text}
          note={shownBody.isJson ? null : t("webhooks.cutRequest")}
        />
      )}
      {answer !== null && answer !== "" && (
        <DeliveryText
          title={t(status === null ? "webhooks.error" : "webhooks.answer")}
          text={answer}
          note={null}
        />
      )}
      {outcome !== "WAITING" && eventType !== GAP_TYPE && (
        <p>
          <Button
            isBusy={isSending}
            onClick={sendAgain}
            aria-label={t("webhooks.sendAgainNamed", {
              event: eventTypeName(eventType, t),
              time: timeOrDate(language, new Date(at), new Date()),
            })}
          >
            {t("webhooks.sendAgain")}
          </Button>
        </p>
      )}
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="contents">
      <dt className="text-quiet">{name}</dt>
      <dd className="break-all font-mono">{children}</dd>
    </div>
  );
}

/** A text that scrolls if it is long. */
function DeliveryText({ title, text, note }: { title: string; text: string; note: string | null }) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="text-sm">
      <h4 id={id} className="mb-1 text-quiet">
        {title}
      </h4>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard.
        tabIndex={0}
        className="thin-scroll max-h-96 overflow-y-auto rounded-xl bg-well p-3 font-mono whitespace-pre-wrap break-all"
      >
        {text}
      </pre>
      {note && <p className="text-quiet">{note}</p>}
    </section>
  );
}
