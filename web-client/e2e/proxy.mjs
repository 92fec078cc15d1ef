/** A TCP proxy on a loopback port, which a test can disconnect and reconnect. */
import { connect, createServer } from "node:net";

/** Starts a proxy to a host and port. Browsers use its `url`. */
export async function startProxy({ hostname, port }) {
  const sockets = new Set();
  let isConnected = true;
  const server = createServer((clientSocket) => {
    if (!isConnected) return clientSocket.destroy();
    const serverSocket = connect(Number(port), hostname);
    for (const [from, to] of [
      [clientSocket, serverSocket],
      [serverSocket, clientSocket],
    ]) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** Closes every connection, and rejects new ones until `reconnect`. */
    disconnect() {
      isConnected = false;
      for (const socket of sockets) socket.destroy();
    },
    reconnect() {
      isConnected = true;
    },
    close: () => server.close(),
  };
}
