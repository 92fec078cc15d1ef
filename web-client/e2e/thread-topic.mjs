/** Sets up a topic with threads by the API, and finds what a page shows of an open thread. */

/** Creates a topic of a person that another person has joined. Returns its id. */
export async function createTopic(run, owner, member) {
  const { created } = await run(
    owner,
    'mutation { created: createCommunity(input: { name: "Rowers" }) { id } }',
  );
  await run(member, "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }", { id: created.id });
  const { topic } = await run(
    owner,
    'mutation ($id: ID!) { topic: createTopic(input: { communityId: $id, title: "Boats" }) { id } }',
    { id: created.id },
  );
  return topic.id;
}

/** Posts a message to a topic, or a reply to one of its messages. Returns the message. */
export async function post(run, token, input) {
  const query =
    "mutation ($input: PostMessageInput!) { posted: postMessage(input: $input) { id topicId timestamp } }";
  return (await run(token, query, { input })).posted;
}

export function thread(page) {
  return page.getByTestId("thread");
}

export function message(place, text) {
  return place.locator("[data-message]").filter({ hasText: text });
}

/** Returns the field for a reply. */
export function field(page) {
  return thread(page).getByRole("textbox", { name: "Reply" });
}

export async function texts(place) {
  return await place.locator("[data-message] p.whitespace-pre-wrap").allInnerTexts();
}
