/**
 * A panel beside the button that opens it. It is in the browser's top layer, so it is never clipped. Escape and a click
 * outside close it.
 */
import { type ReactElement, type ReactNode, useEffect, useId, useRef, useState } from "react";

const GAP_PX = 6;
const WINDOW_MARGIN_PX = 8;

interface PopoverTriggerProps {
  id: string;
  popoverTarget: string;
  "aria-expanded": boolean;
}

export function Popover({
  trigger,
  children,
  label,
}: {
  trigger: (props: PopoverTriggerProps) => ReactElement;
  /** Rendered while open; `close` closes it. */
  children: (close: () => void) => ReactNode;
  label: string;
}) {
  const id = useId();
  const panel = useRef<HTMLDivElement>(null);
  const [isOpen, setIsOpen] = useState(false);

  function positionPanel() {
    const button = document.getElementById(`${id}-button`)?.getBoundingClientRect();
    const box = panel.current?.getBoundingClientRect();
    if (!button || !box || !panel.current) return;
    const above = button.top - box.height - GAP_PX;
    const top =
      above > WINDOW_MARGIN_PX
        ? above
        : Math.min(button.bottom + GAP_PX, innerHeight - box.height - WINDOW_MARGIN_PX);
    const left = Math.min(
      Math.max(WINDOW_MARGIN_PX, button.right - box.width),
      innerWidth - box.width - WINDOW_MARGIN_PX,
    );
    Object.assign(panel.current.style, { top: `${Math.max(WINDOW_MARGIN_PX, top)}px`, left: `${left}px` });
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: the function reads only elements.
  useEffect(() => {
    if (!isOpen || !panel.current) return;
    // The panel grows when its content is loaded.
    const observer = new ResizeObserver(positionPanel);
    observer.observe(panel.current);
    addEventListener("resize", positionPanel);
    return () => {
      observer.disconnect();
      removeEventListener("resize", positionPanel);
    };
  }, [isOpen]);

  return (
    <>
      {trigger({ id: `${id}-button`, popoverTarget: id, "aria-expanded": isOpen })}
      <div
        ref={panel}
        id={id}
        popover="auto"
        role="dialog"
        aria-label={label}
        onToggle={(event) => {
          setIsOpen(event.newState === "open");
          if (event.newState === "open") requestAnimationFrame(positionPanel);
        }}
        className="visible fixed m-0 max-w-[calc(100vw-1rem)] rounded-card border border-line bg-raised p-2 text-ink shadow-raised"
      >
        {isOpen && children(() => panel.current?.hidePopover())}
      </div>
    </>
  );
}
