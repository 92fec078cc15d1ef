/** What a person writes about themselves. */
import { RichText } from "../ui/text/rich-text";

export function Bio({ text }: { text: string }) {
  return (
    <div data-bio className="w-full max-w-prose break-words">
      <RichText text={text} mentions={[]} />
    </div>
  );
}
