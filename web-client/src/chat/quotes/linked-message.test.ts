import { expect, test } from "vitest";
import { messageAddress } from "./linked-message";

const PAGE = "https://chat.example/#/topic/other";
const AT = "1700000000.000001";
const addressOf = (text: string) => messageAddress(text, PAGE);

test("the address of a message in a topic or a thread is recognized", () => {
  expect(addressOf(`https://chat.example/#/topic/t/${AT}`)).toEqual({
    place: { topicId: "t" },
    timestamp: AT,
  });
  expect(addressOf(`https://chat.example/#/topic/t/latest/m%3A1/${AT}`)).toEqual({
    place: { parentId: "m:1" },
    timestamp: AT,
  });
});

test.each([
  `https://other.example/#/topic/t/${AT}`,
  `http://chat.example/#/topic/t/${AT}`,
  `https://chat.example/other#/topic/t/${AT}`,
  `See https://chat.example/#/topic/t/${AT}`,
  `https://chat.example/#/topic/t/${AT} and more`,
  "https://chat.example/#/topic/t",
  "https://chat.example/#/topic/t/latest/m",
  "https://chat.example/#/home",
  "https://chat.example/",
  "text",
])("other texts are no address of a message: %s", (text) => {
  expect(addressOf(text)).toBeNull();
});
