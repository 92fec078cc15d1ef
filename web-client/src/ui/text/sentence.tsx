/** A translated sentence whose placeholders are replaced by elements, such as links. */
import { Fragment, type ReactNode } from "react";

export function Sentence({ text, parts }: { text: string; parts: Readonly<Record<string, ReactNode>> }) {
  // Every second piece is the name of a placeholder.
  const pieces = text.split(/\{(\w+)\}/);
  return pieces.map((piece, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the pieces keep their order.
    <Fragment key={index}>{index % 2 === 1 ? parts[piece] : piece}</Fragment>
  ));
}
