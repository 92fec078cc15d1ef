/** The files of a text that is being written. The script of the rows is loaded with the first file. */
import { lazyScreen } from "../app/lazy-screen";
import type { ComposedFiles } from "./use-composed-files";

const ComposedFileRows = lazyScreen<{ composed: ComposedFiles }>(() =>
  import("./composed-rows").then((module) => module.ComposedFileRows),
);

export function ComposedFileList({ composed }: { composed: ComposedFiles }) {
  return composed.files.length > 0 && <ComposedFileRows composed={composed} />;
}
