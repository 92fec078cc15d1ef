/** Inserts text into a field as if it was typed, in place of what is selected. The field gets the focus. */
export function insertText(field: HTMLTextAreaElement | null, text: string): void {
  field?.focus();
  // The only way to change a field so that Ctrl Z undoes it. It emits an input event.
  document.execCommand("insertText", false, text);
}
