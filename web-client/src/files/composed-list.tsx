/**
 * The files of a text that is being written. The script of the rows is loaded with the field, so that files can be
 * described without a connection.
 */
import { useEffect } from "react";
import { lazyScreen } from "../app/lazy-screen";
import type { ComposedFiles } from "./use-composed-files";

const loadRows = () => import("./composed-rows").then((module) => module.ComposedFileRows);
const ComposedFileRows = lazyScreen<{ composed: ComposedFiles }>(loadRows);

export function ComposedFileList({ composed }: { composed: ComposedFiles }) {
  // A failed load is repeated with the first file.
  useEffect(() => void loadRows().catch(() => {}), []);
  return composed.files.length > 0 && <ComposedFileRows composed={composed} />;
}
