/** A section of the settings, with its heading and hint. */
import { type ReactNode, useId } from "react";

export function SettingsSection({
  title,
  hint,
  children,
}: {
  title: string;
  hint: string;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="mb-10">
      <div className="border-b border-line pb-3">
        <h2 id={id} className="text-lg font-semibold">
          {title}
        </h2>
        <p className="text-sm text-quiet">{hint}</p>
      </div>
      {children}
    </section>
  );
}
