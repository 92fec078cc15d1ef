/** BlurHashes as pictures, to show while a picture loads. */
import { decode } from "blurhash";

const SIDE_PX = 24;

/** Returns a data URL of the blurred picture; null if the text is no BlurHash. */
export function blurredPicture(hash: string): string | null {
  const canvas = document.createElement("canvas");
  canvas.width = SIDE_PX;
  canvas.height = SIDE_PX;
  const context = canvas.getContext("2d");
  if (!context) return null;
  try {
    context.putImageData(
      new ImageData(Uint8ClampedArray.from(decode(hash, SIDE_PX, SIDE_PX)), SIDE_PX),
      0,
      0,
    );
  } catch {
    return null;
  }
  return canvas.toDataURL();
}
