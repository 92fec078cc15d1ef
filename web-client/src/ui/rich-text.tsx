/** A text whose URLs, mentions and hashtags are links. */
import { hrefOf } from "../app/router";
import { parseText } from "./text";

interface MentionedUser {
  id: string;
  handle: string;
}

const LINK_CLASS = "text-accent underline decoration-1 underline-offset-2 hover:decoration-2";

export function RichText({ text, mentions }: { text: string; mentions: readonly MentionedUser[] }) {
  const usersByHandle = new Map(mentions.map((user) => [user.handle.toLowerCase(), user]));
  return (
    <>
      {parseText(text).map((part, index) => {
        const key = `${index}:${part.text}`;
        if (part.kind === "link")
          return (
            <a key={key} href={part.href} target="_blank" rel="noreferrer noopener" className={LINK_CLASS}>
              {part.text}
            </a>
          );
        if (part.kind === "tag")
          return (
            <a key={key} href={hrefOf({ name: "tag", tag: part.tag })} className={LINK_CLASS}>
              {part.text}
            </a>
          );
        const user = part.kind === "mention" && usersByHandle.get(part.handle.toLowerCase());
        if (!user) return <span key={key}>{part.text}</span>;
        return (
          <a
            key={key}
            href={hrefOf({ name: "person", id: user.id })}
            className="rounded bg-glow px-1 font-medium text-accent hover:underline"
          >
            {part.text}
          </a>
        );
      })}
    </>
  );
}
