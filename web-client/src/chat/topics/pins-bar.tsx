/** The latest pinned message of a topic above its timeline. It opens the list of all pins. */
import { useState } from "react";
import { hrefOf } from "../../app/router";
import { dateAndTime, dateOf } from "../../i18n/times";
import { Avatar } from "../../ui/avatar";
import { IconButton } from "../../ui/button";
import { Dialog } from "../../ui/dialogs/dialog";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { plainText } from "../../ui/text/formatting";
import { useValue } from "../../ui/value";
import type { Message } from "../operations";
import type { TopicPins } from "./pins";

export function PinsBar({ pins, mayModerate }: { pins: TopicPins; mayModerate: boolean }) {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  const messages = useValue(pins.messages);
  const [latest] = messages;
  if (!latest) return null;
  return (
    <>
      <button
        type="button"
        data-testid="pins"
        onClick={() => setIsOpen(true)}
        className="flex min-h-10 w-full items-center gap-2 border-b border-line px-4 py-1.5 text-left text-sm hover:bg-hover sm:px-6"
      >
        <Icon name="pin" className="size-4 text-accent" />
        <span className="shrink-0 font-medium">{t("pins.count", { count: messages.length })}</span>
        <span className="min-w-0 truncate text-quiet">{textOf(latest)}</span>
      </button>
      {isOpen && (
        <Dialog title={t("pins.title")} onClose={() => setIsOpen(false)}>
          <ul className="flex flex-col">
            {messages.map((message) => (
              <PinRow
                key={message.id}
                message={message}
                onUnpin={mayModerate ? () => pins.unpin(message.id) : undefined}
                onClose={() => setIsOpen(false)}
              />
            ))}
          </ul>
        </Dialog>
      )}
    </>
  );
}

const textOf = ({ text, stamp }: Message) => plainText(text) || stamp?.name;

interface PinRowProps {
  message: Message;
  onUnpin: (() => void) | undefined;
  onClose: () => void;
}

function PinRow({ message, onUnpin, onClose }: PinRowProps) {
  const { t, language } = useTranslation();
  const { author, topicId, timestamp } = message;
  return (
    <li data-pin={message.id} className="flex items-start gap-3 border-b border-line py-3 last:border-0">
      <Avatar user={author} />
      <a
        href={hrefOf({ name: "topic", id: topicId, at: timestamp })}
        onClick={onClose}
        className="min-w-0 grow rounded hover:underline"
      >
        <span className="block">
          <span className="font-semibold">{author.name}</span>{" "}
          <span className="text-xs text-quiet">{dateAndTime(language, dateOf(timestamp))}</span>
        </span>
        <span className="line-clamp-4 whitespace-pre-wrap break-words">{textOf(message)}</span>
      </a>
      {onUnpin && (
        <IconButton
          icon="close"
          size="size-8"
          label={t("pins.unpinNamed", { name: author.name })}
          onClick={onUnpin}
        />
      )}
    </li>
  );
}
