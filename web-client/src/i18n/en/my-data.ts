/** Texts of the viewer's own data. */
export const myData = {
  myData: "My data",
  "sessions.current": "This browser",
  "sessions.endNamed": "Sign out of {name}",
  "sessions.endOthers": "Sign out everywhere else",
  "sessions.endOthersAsk": "All other browsers are signed out within 10 seconds.",
  "sessions.ended": {
    one: "{count} browser is signed out",
    other: "{count} browsers are signed out",
  },
  "sessions.hint": "Sign out of browsers that you no longer use or don’t recognize.",
  "sessions.method.DEMO": "Demo user",
  "sessions.method.OIDC": "Single sign-on",
  "sessions.method.PASSKEY": "Passkey",
  "sessions.method.PASSWORD": "Password",
  "sessions.none": "No signed-in browsers",
  "sessions.noneHint": "You are signed in with a token. It is valid until it expires.",
  "sessions.started": "signed in {time}",
  "sessions.title": "Signed-in browsers",
  "sessions.unknownBrowser": "Unknown browser",
  "sessions.used": "used {time}",
};
