import { expect, test } from "vitest";
import type { Attachment } from "../../files/operations";
import { copyFiles } from "./copied-files";

const fileNamed = (name: string) => ({ id: name, name, altText: "" }) as Attachment;

test("Files that cannot be kept are named, and the others are copied in their order", async () => {
  const files = ["a.png", "gone.png", "b.png"].map(fileNamed);
  const keep = async ({ name }: Attachment) => {
    if (name === "gone.png") throw { graphQLErrors: [{ extensions: { code: "NOT_FOUND" } }] };
  };
  const { copiedFiles, missingFiles } = await copyFiles(files, keep);
  expect(copiedFiles.map(({ name }) => name)).toEqual(["a.png", "b.png"]);
  expect(missingFiles).toEqual(["gone.png"]);
});

test("Files do not count as gone while the server cannot be reached", async () => {
  const offline = { networkError: new Error("offline") };
  await expect(copyFiles([fileNamed("a.png")], () => Promise.reject(offline))).rejects.toBe(offline);
});
