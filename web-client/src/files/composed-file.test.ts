import { expect, test } from "vitest";
import {
  type ComposedFile,
  chosenFile,
  hasSameFacts,
  outcomeOf,
  readyFiles,
  restoredFiles,
  sendableFiles,
  withOtherBytes,
} from "./composed-file";

const picture = new File(["pixels"], "beacon.png", { type: "image/png", lastModified: 7 });
const upload = { id: "Upload:u", fileId: "u", name: "beacon.png", size: 6, offset: 6, url: "/uploads/u" };
const checked = { ...upload, state: "READY", refusal: null, isPicture: true, contentType: null } as const;

const ready = (part: Partial<ComposedFile> = {}): ComposedFile => ({
  ...chosenFile(picture),
  uploadId: "u",
  ...outcomeOf(checked),
  ...part,
});

test("a picture can be sent when it is checked and described", () => {
  expect(readyFiles([chosenFile(picture)])).toBeNull();
  expect(readyFiles([ready()])).toBeNull();
  expect(readyFiles([ready({ altText: " A hill " })])).toEqual([
    { uploadId: "u", name: "beacon.png", altText: "A hill" },
  ]);
  expect(readyFiles([ready({ altText: "x".repeat(1_501) })])).toBeNull();
  expect(readyFiles([])).toEqual([]);
});

test("a message takes files that are on their way, and no failed ones", () => {
  const waiting = { ...chosenFile(picture), altText: "A hill", state: "waiting" } as const;
  const { key, name, size, modifiedAt } = waiting;
  const unsent = { key, uploadId: null, name, size, modifiedAt, altText: "A hill" };
  const sent = { uploadId: "u", name, altText: "A boat" };
  expect(sendableFiles([waiting, ready({ altText: "A boat" })])).toEqual([unsent, sent]);
  expect(readyFiles([waiting])).toBeNull();
  for (const state of ["failed", "interrupted"] as const)
    expect(sendableFiles([{ ...waiting, state }])).toBeNull();
  expect(sendableFiles([{ ...waiting, altText: "" }])).toBeNull();
});

test("an upload without its bytes is interrupted, and says how much the server has", () => {
  expect(outcomeOf({ ...checked, state: "RECEIVING", offset: 3 })).toEqual({
    state: "interrupted",
    share: 0.5,
  });
  expect(outcomeOf(null)).toEqual({ state: "interrupted", uploadId: null, share: 0 });
  expect(readyFiles([ready({ altText: "A hill", ...outcomeOf(null) })])).toBeNull();
});

test("a refused picture says why, and a file that is no picture needs no description", () => {
  expect(outcomeOf({ ...checked, state: "REFUSED", refusal: "TOO_SLOW" })).toEqual({
    state: "failed",
    failure: "file.refusal.TOO_SLOW",
  });
  expect(readyFiles([ready({ ...outcomeOf({ ...checked, isPicture: false }) })])).toHaveLength(1);
});

test("an upload continues only with the file that was chosen, and the description stays", () => {
  const composed = { ...chosenFile(picture), altText: "A hill" };
  expect(hasSameFacts(composed, picture)).toBe(true);
  for (const other of [
    new File(["pixels"], "other.png", { lastModified: 7 }),
    new File(["pixel"], "beacon.png", { lastModified: 7 }),
    new File(["pixels"], "beacon.png", { lastModified: 8 }),
  ]) {
    expect(hasSameFacts(composed, other)).toBe(false);
    expect(withOtherBytes(composed, other)).toMatchObject({ key: composed.key, altText: "A hill" });
  }
});

test("files are restored from JSON, and what is no file is left out", () => {
  const kept = JSON.parse(JSON.stringify([ready(), { key: "k" }, null, 7]));
  expect(restoredFiles(kept)).toEqual([ready({ key: kept[0].key })]);
  expect(restoredFiles(null)).toEqual([]);
});
