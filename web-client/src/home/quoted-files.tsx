/** The files of a quoted post: its first picture, small, and the names of the others. */
import type { Attachment } from "../files/operations";
import { usePicture } from "../files/pictures";
import { Icon } from "../ui/icons";

export function QuotedFiles({ attachments }: { attachments: readonly Attachment[] }) {
  const picture = attachments.find(({ thumbnailUrl }) => thumbnailUrl !== null);
  const others = attachments.filter((file) => file !== picture);
  return (
    <div className="mt-2 flex items-start gap-3">
      {picture && <QuotedPicture picture={picture} />}
      {others.length > 0 && (
        <ul className="min-w-0 text-sm text-quiet">
          {others.map(({ id, name }) => (
            <li key={id} className="flex items-center gap-1.5">
              <Icon name="file" className="size-4" />
              <span className="truncate">{name}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function QuotedPicture({ picture }: { picture: Attachment }) {
  const url = usePicture(picture.thumbnailUrl);
  return (
    <div className="size-24 shrink-0 overflow-hidden rounded-lg bg-well">
      {url && <img src={url} alt={picture.altText} className="size-full object-cover" />}
    </div>
  );
}
