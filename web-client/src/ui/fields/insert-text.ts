/** Changes of a field's text that Ctrl Z undoes. */

/** Inserts text into a field as if it was typed, in place of what is selected. The field gets the focus. */
export function insertText(field: HTMLTextAreaElement | null, text: string): void {
  field?.focus();
  // The only way to change a field so that Ctrl Z undoes it. It emits an input event.
  document.execCommand("insertText", false, text);
}

/** Removes a text from a field, unless it is not there any more. Returns whether it was there. The field gets the focus. */
export function removeText(field: HTMLTextAreaElement, text: string): boolean {
  const start = field.value.lastIndexOf(text);
  if (start < 0) return false;
  field.focus();
  field.setSelectionRange(start, start + text.length);
  document.execCommand("delete");
  return true;
}
