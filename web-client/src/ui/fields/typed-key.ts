/** The key of a keyboard event, unless an input method uses it. */

/** The code of keys that an input method handles. */
const INPUT_METHOD_CODE = 229;

interface TypedKeyEvent {
  key: string;
  keyCode: number;
  nativeEvent: { isComposing: boolean };
}

/**
 * Returns the key; "" if it belongs to an input method, such as the Enter that accepts a Japanese word. Safari sends
 * that Enter after the composition has ended, with `isComposing` false, and only its code tells it apart.
 */
export function typedKey({ key, keyCode, nativeEvent }: TypedKeyEvent): string {
  return nativeEvent.isComposing || keyCode === INPUT_METHOD_CODE ? "" : key;
}
