/** The checkboxes for the targets of a post, and the names of targets. */
import { useState } from "react";
import { useQuery } from "urql";
import { matchingItems } from "../../app/matching-items";
import { useJoinedCommunities } from "../../chat/sidebar/joined-communities";
import { mayOperate } from "../../session/permissions";
import { useViewer } from "../../session/viewer";
import { Icon } from "../../ui/icons";
import { type Translate, useTranslation } from "../../ui/preferences";
import { Accounts, type PublicationTarget } from "../operations";

const SEARCHABLE_TOPICS_MIN = 8;

export interface TargetIds {
  toHomeFeed: boolean;
  toTopicIds: readonly string[];
  toAccountIds: readonly string[];
}

export function targetsOf(targets: readonly PublicationTarget[]): TargetIds {
  const ids = (idOf: (target: PublicationTarget) => string | undefined) =>
    targets.flatMap((each) => idOf(each) ?? []);
  return {
    toHomeFeed: targets.some(({ __typename }) => __typename === "HomeFeedTarget"),
    toTopicIds: ids((each) => (each.__typename === "TopicTarget" ? each.topic?.id : undefined)),
    toAccountIds: ids((each) => (each.__typename === "AccountTarget" ? each.account.id : undefined)),
  };
}

export function targetText(target: PublicationTarget, t: Translate): string {
  if (target.__typename === "TopicTarget") return target.topic?.title ?? t("publishing.topicGone");
  if (target.__typename === "AccountTarget") return target.account.name;
  return t("publishing.homeFeed");
}

interface Props {
  value: TargetIds;
  onChange: (targets: TargetIds) => void;
  /** Opens the accounts dialog. */
  openAccounts: () => void;
}

export function TargetCheckboxes({ value, onChange, openAccounts }: Props) {
  const { t } = useTranslation();
  const [filter, setFilter] = useState("");
  const { communities } = useJoinedCommunities("cache-and-network");
  const topics = (communities ?? []).flatMap((community) =>
    community.topics.map(({ id, title }) => ({ id, title, community: community.name })),
  );
  // A post that is used again may have topics that the viewer has left.
  const leftTopicIds = communities
    ? value.toTopicIds.filter((id) => !topics.some((each) => each.id === id))
    : [];
  const selectTopic = (id: string) => (isSelected: boolean) =>
    onChange({ ...value, toTopicIds: withSelection(value.toTopicIds, id, isSelected) });
  const visibleTopics = matchingItems(topics, filter, ({ title, community }) => `${title} ${community}`);
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1 text-sm font-medium">{t("publishing.targets")}</legend>
      <TargetCheckbox
        checked={value.toHomeFeed}
        onChange={(toHomeFeed) => onChange({ ...value, toHomeFeed })}
        text={t("publishing.homeFeed")}
        hint={t("publishing.homeFeedHint")}
      />
      {topics.length >= SEARCHABLE_TOPICS_MIN && (
        <input
          type="search"
          className="field mt-1 text-sm"
          aria-label={t("publishing.findTopic")}
          placeholder={t("publishing.findTopic")}
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
      )}
      <div className="thin-scroll max-h-40 overflow-y-auto">
        {visibleTopics.map(({ id, title, community }) => (
          <TargetCheckbox
            key={id}
            checked={value.toTopicIds.includes(id)}
            onChange={selectTopic(id)}
            text={title}
            hint={community}
          />
        ))}
        {leftTopicIds.map((id) => (
          <TargetCheckbox
            key={id}
            checked
            onChange={selectTopic(id)}
            text={t("publishing.topicGone")}
            hint=""
          />
        ))}
      </div>
      <AccountCheckboxes value={value} onChange={onChange} openAccounts={openAccounts} />
    </fieldset>
  );
}

function AccountCheckboxes({ value, onChange, openAccounts }: Props) {
  const { t } = useTranslation();
  const isOperator = mayOperate(useViewer().roles);
  const [{ data }] = useQuery({ query: Accounts, requestPolicy: "cache-and-network", pause: !isOperator });
  if (!isOperator) return <p className="px-2 text-sm text-quiet">{t("publishing.accountsNeedOperator")}</p>;
  // A post that is used again may have accounts that were disconnected.
  const accounts = data?.connectedAccounts.filter(
    ({ id, disconnectedAt }) => disconnectedAt === null || value.toAccountIds.includes(id),
  );
  return (
    <>
      {accounts?.map(({ id, name, network, disconnectedAt }) => (
        <TargetCheckbox
          key={id}
          checked={value.toAccountIds.includes(id)}
          onChange={(on) => onChange({ ...value, toAccountIds: withSelection(value.toAccountIds, id, on) })}
          text={name}
          hint={t(disconnectedAt === null ? `publishing.network.${network}` : "publishing.disconnected")}
          isGone={disconnectedAt !== null}
        />
      ))}
      <button
        type="button"
        onClick={openAccounts}
        className="inline-flex min-h-9 items-center gap-2 self-start rounded-lg px-2 text-sm text-accent hover:bg-hover"
      >
        <Icon name="plus" className="size-4" />
        {t("publishing.connect")}
      </button>
    </>
  );
}

function withSelection(ids: readonly string[], id: string, isSelected: boolean): string[] {
  const others = ids.filter((each) => each !== id);
  return isSelected ? [...others, id] : others;
}

interface TargetCheckboxProps {
  checked: boolean;
  onChange: (isChecked: boolean) => void;
  text: string;
  hint: string;
  /** Whether the target takes no posts any more, so that it has to be removed. */
  isGone?: boolean;
}

function TargetCheckbox({ checked, onChange, text, hint, isGone = false }: TargetCheckboxProps) {
  return (
    <label className="flex min-h-9 cursor-pointer items-center gap-3 rounded-lg px-2 hover:bg-hover">
      <input
        type="checkbox"
        className="size-4 accent-accent"
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span className="truncate">{text}</span>
      <span className={`ml-auto truncate text-sm ${isGone ? "text-bad" : "text-quiet"}`}>{hint}</span>
    </label>
  );
}
