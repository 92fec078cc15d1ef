/**
 * tus-js-client sends a file. After the first chunk the connection is closed; a second client continues at the offset.
 *
 * Standard input: {url, token, size}. `url` is the address of an upload of `size` bytes. Prints a line of JSON:
 * {sha256, interruptedAt, resumedFrom}. The last two are offsets in bytes.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Upload } from "tus-js-client";

const { url, token, size } = JSON.parse(readFileSync(0, "utf8"));
const chunkSize = 300_000;
const content = Buffer.alloc(size, "a beacon on a hill at night. ");
const options = {
  uploadUrl: url,
  chunkSize,
  headers: { authorization: `Bearer ${token}` },
  retryDelays: null,
};

const interruptedAt = await new Promise((resolve, reject) => {
  const upload = new Upload(content, {
    ...options,
    onError: reject,
    onChunkComplete: (_, accepted) => upload.abort().then(() => resolve(accepted)),
  });
  upload.start();
});

const offsets = [];
await new Promise((resolve, reject) => {
  new Upload(content, {
    ...options,
    onError: reject,
    onSuccess: resolve,
    onProgress: (sent) => offsets.push(sent),
  }).start();
});

const sha256 = createHash("sha256").update(content).digest("hex");
console.log(JSON.stringify({ sha256, interruptedAt, resumedFrom: offsets[0] }));
