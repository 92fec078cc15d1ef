/** A modal dialog. It is the browser's <dialog> element, which traps the focus and closes on Escape. */
import { type ReactNode, useEffect, useRef } from "react";
import { IconButton } from "../button";
import { useTranslation } from "../preferences";

/**
 * Returns the element that gets the focus when a dialog opens: the first field, else the first button or link of the
 * content. Without this, the browser would focus the close button. Dialogs put the button that changes nothing first.
 */
function firstToFocus(dialog: HTMLElement): HTMLElement | null {
  const fields = "input:enabled, textarea:enabled, select:enabled";
  const actions = "[data-content] :is(button:enabled, a[href])";
  return dialog.querySelector<HTMLElement>(fields) ?? dialog.querySelector<HTMLElement>(actions);
}

export function Dialog({
  title,
  children,
  onClose,
  isBare = false,
}: {
  title: string;
  children: ReactNode;
  onClose: () => void;
  /** Leaves out the heading and the close button. */
  isBare?: boolean;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { t } = useTranslation();
  useEffect(() => {
    const element = dialog.current;
    const opener = document.activeElement;
    if (element && !element.open) {
      element.showModal();
      firstToFocus(element)?.focus();
    }
    // When a dialog is unmounted without being closed, the browser does not return the focus to the opener.
    return () => {
      if (document.activeElement === document.body && opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog without a handler; the click is on its backdrop.
    <dialog
      ref={dialog}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
      className={`m-auto w-[min(34rem,calc(100vw-2rem))] rounded-card bg-raised p-0 text-ink shadow-raised ${isBare ? "mt-[12vh]" : ""}`}
    >
      <div className={isBare ? "" : "p-5"}>
        {!isBare && (
          <div className="mb-4 flex items-center justify-between gap-4">
            <h2 className="text-lg font-semibold">{title}</h2>
            <IconButton icon="close" label={t("close")} onClick={() => dialog.current?.close()} />
          </div>
        )}
        <div data-content>{children}</div>
      </div>
    </dialog>
  );
}
