/** The body of a request as it is shown. */

/** Returns the JSON with line breaks and indentation. Other text, such as JSON that was cut, stays as it is. */
export function indented(body: string): { text: string; isJson: boolean } {
  try {
    return { text: JSON.stringify(JSON.parse(body), null, 2), isJson: true };
  } catch {
    return { text: body, isJson: false };
  }
}
