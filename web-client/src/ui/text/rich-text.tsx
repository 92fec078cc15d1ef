/** A formatted text whose URLs, mentions and hashtags are links. It is never interpreted as HTML. */
import { Fragment, type ReactNode, useMemo } from "react";
import { hrefOf } from "../../app/router";
import { type Block, type Inline, parseFormatting } from "./formatting";
import { parseText } from "./text";

interface MentionedUser {
  id: string;
  handle: string;
}

interface Props {
  text: string;
  mentions: readonly MentionedUser[];
  /** Shown after the text, in its last line if that is no quote, list or code. */
  tail?: ReactNode;
}

type UsersByHandle = ReadonlyMap<string, MentionedUser>;

const LINK_CLASS = "text-accent underline decoration-1 underline-offset-2 hover:decoration-2";

/** Renders blocks, such as paragraphs. */
export function RichText({ text, mentions, tail }: Props) {
  const blocks = useMemo(() => parseFormatting(text), [text]);
  const users: UsersByHandle = new Map(mentions.map((user) => [user.handle.toLowerCase(), user]));
  const hasLastLine = blocks.at(-1)?.kind === "paragraph";
  return (
    <>
      {blocks.map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the blocks keep their order.
        <BlockView key={index} block={block} users={users}>
          {index === blocks.length - 1 && hasLastLine && tail}
        </BlockView>
      ))}
      {!hasLastLine && tail}
    </>
  );
}

interface BlockProps {
  block: Block;
  users: UsersByHandle;
  children: ReactNode;
}

function BlockView({ block, users, children }: BlockProps) {
  if (block.kind === "codeBlock")
    return (
      <pre className="my-1 whitespace-pre-wrap break-words rounded-lg border border-line bg-well px-3 py-2 text-sm">
        <code>{block.text}</code>
      </pre>
    );
  if (block.kind === "list") {
    const isNumbered = block.items[0]?.number !== null;
    const List = isNumbered ? "ol" : "ul";
    return (
      <List className={`my-0.5 whitespace-pre-wrap ${isNumbered ? "list-decimal pl-8" : "list-disc pl-5"}`}>
        {block.items.map(({ number, children: nodes }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the items keep their order.
          <li key={index} value={number ?? undefined}>
            <InlineNodes nodes={nodes} users={users} />
          </li>
        ))}
      </List>
    );
  }
  const nodes = <InlineNodes nodes={block.children} users={users} />;
  if (block.kind === "quote")
    return (
      <blockquote className="my-1 whitespace-pre-wrap border-l-4 border-line pl-3 text-quiet">
        {nodes}
      </blockquote>
    );
  return (
    <p className="whitespace-pre-wrap">
      {nodes}
      {children}
    </p>
  );
}

/** `users` is null inside of a link, where nothing else is a link. */
function InlineNodes({ nodes, users }: { nodes: readonly Inline[]; users: UsersByHandle | null }) {
  return nodes.map((node, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the nodes keep their order.
    <Fragment key={index}>{inlineNode(node, users)}</Fragment>
  ));
}

const TAGS = { italic: "em", bold: "strong", struck: "s" } as const;

function inlineNode(node: Inline, users: UsersByHandle | null): ReactNode {
  if (node.kind === "text") return users ? <LinkedText text={node.text} users={users} /> : node.text;
  if (node.kind === "code")
    return (
      <code className="break-words rounded border border-line bg-well px-1 text-[0.9em]">{node.text}</code>
    );
  if (node.kind !== "link") {
    const Tag = TAGS[node.kind];
    return (
      <Tag>
        <InlineNodes nodes={node.children} users={users} />
      </Tag>
    );
  }
  return (
    <a href={node.href} title={node.href} target="_blank" rel="noreferrer noopener" className={LINK_CLASS}>
      <InlineNodes nodes={node.children} users={null} />
    </a>
  );
}

/** A text without formatting. */
function LinkedText({ text, users }: { text: string; users: UsersByHandle }) {
  return parseText(text).map((part, index) => {
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
    // "@ann-2" mentions ann-2 if that handle exists, otherwise ann.
    const user =
      part.kind === "mention" && (users.get(part.handle) ?? users.get(part.handle.replace(/-.*/, "")));
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
  });
}
