/** A link preview card. */
interface Preview {
  url: string;
  title: string;
  description: string | null;
  imageUrl: string | null;
  siteName: string | null;
}

export function LinkPreviewCard({ preview }: { preview: Preview }) {
  return (
    <a
      href={preview.url}
      target="_blank"
      rel="noreferrer noopener"
      className="mt-2 flex max-w-lg gap-3 overflow-hidden rounded-xl border border-line bg-raised hover:bg-hover"
    >
      {preview.imageUrl && (
        <img src={preview.imageUrl} alt="" loading="lazy" className="h-24 w-24 shrink-0 object-cover" />
      )}
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
