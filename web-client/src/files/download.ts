/** Downloads of files. With a session the browser sends the cookie; with a token the page fetches the file. */
import { isSession, requestHeaders } from "../session/identity";
import { token } from "../session/session";
import { saveFile } from "../ui/save-file";

/** Throws: Error if the file can't be downloaded. */
export async function downloadFile({ url, name }: { url: string; name: string }): Promise<void> {
  const credential = token.get();
  if (credential === null) throw new Error("Nobody is signed in.");
  if (isSession(credential)) {
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    return;
  }
  const response = await fetch(url, { headers: requestHeaders(credential) });
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  saveFile(name, await response.blob());
}
