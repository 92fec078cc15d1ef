/** A link preview card. */
import { useMemo, useState } from "react";
import { blurredPicture } from "../../files/blurhash";

interface LinkPreview {
  url: string;
  title: string;
  description: string | null;
  imageUrl: string | null;
  /** The stored copy; null if only the page has the image. */
  image: { width: number; height: number; blurhash: string } | null;
  siteName: string | null;
}

export function LinkPreviewCard({ preview }: { preview: LinkPreview }) {
  return (
    <a
      href={preview.url}
      target="_blank"
      rel="noreferrer noopener"
      className="mt-2 flex max-w-lg gap-3 overflow-hidden rounded-xl border border-line bg-raised hover:bg-hover"
    >
      {preview.imageUrl && <PreviewImage url={preview.imageUrl} image={preview.image} />}
      <span className="flex min-w-0 flex-col justify-center px-3 py-2">
        {preview.siteName && <span className="text-xs text-quiet">{preview.siteName}</span>}
        <span className="line-clamp-1 font-medium">{preview.title}</span>
        {preview.description && (
          <span className="line-clamp-2 text-sm text-quiet">{preview.description}</span>
        )}
      </span>
    </a>
  );
}

/** The image in a square of a fixed size, blurred until it is loaded. A small image is not enlarged. */
function PreviewImage({ url, image }: { url: string; image: LinkPreview["image"] }) {
  const [isLoaded, setIsLoaded] = useState(false);
  const blurhash = image?.blurhash;
  const blurred = useMemo(() => (blurhash ? blurredPicture(blurhash) : null), [blurhash]);
  const isSmall = image !== null && Math.max(image.width, image.height) < 96;
  return (
    <img
      src={url}
      alt=""
      loading="lazy"
      width={96}
      height={96}
      onLoad={() => setIsLoaded(true)}
      style={blurred && !isSmall && !isLoaded ? { background: `center / cover url(${blurred})` } : undefined}
      className={`h-24 w-24 shrink-0 ${isSmall ? "object-none" : "object-cover"}`}
    />
  );
}
