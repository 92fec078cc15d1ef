/** Files that are dropped outside of the field that takes files. The browser would leave the page to open them. */
import type { DragEvent as ReactDragEvent, RefObject } from "react";

/** Ignores files that are dropped where nothing takes them, anywhere in the window. */
export function ignoreStrayDrops(): void {
  addEventListener("dragover", ignore);
  addEventListener("drop", ignore);
}

function ignore(event: DragEvent): void {
  const { dataTransfer, target } = event;
  if (event.defaultPrevented || !dataTransfer?.types.includes("Files")) return;
  // The browser puts the file into such a field.
  if (target instanceof HTMLInputElement && target.type === "file") return;
  event.preventDefault();
  dataTransfer.dropEffect = "none";
}

/** Returns attributes of an area whose dropped files go to a field. Without a field, they are ignored. */
export function dropAreaProps(field: RefObject<HTMLElement | null>) {
  function isForField({ dataTransfer: { types } }: ReactDragEvent): boolean {
    // A picture of the page itself, which is dragged by mistake, comes with its markup.
    return field.current !== null && types.includes("Files") && !types.includes("text/html");
  }
  return {
    onDragOver: (event: ReactDragEvent) => isForField(event) && event.preventDefault(),
    onDrop(event: ReactDragEvent) {
      if (!isForField(event)) return;
      event.preventDefault();
      const { dataTransfer } = event;
      field.current?.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    },
  };
}
