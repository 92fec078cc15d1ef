/**
 * The settings of a community. Owners change its name, description, visibility and
 * pictures, and archive it. Members see its
 * archived topics and the button to leave.
 */
import { type FormEvent, useState } from "react";
import { request, useApi } from "../api/api";
import { failureTextKey, rejectionText } from "../api/failure";
import { LIMITS } from "../api/limits";
import { navigate } from "../app/router";
import { LeaveCommunity } from "../chat/operations";
import { Button } from "../ui/button";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { LabelledField } from "../ui/fields/labelled-field";
import { useLength } from "../ui/fields/length";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import { ArchivedTopicsSection } from "./archived-topics";
import { CommunityPictures } from "./community-pictures";
import {
  ArchiveCommunity,
  type Community,
  type CommunityVisibility,
  UnarchiveCommunity,
  UpdateCommunity,
} from "./operations";
import { type CommunityRights, maySetRoles } from "./rights";
import { VisibilityField } from "./visibility-field";

export function CommunitySettings({ community, rights }: { community: Community; rights: CommunityRights }) {
  return (
    <div className="flex max-w-xl flex-col gap-8 pt-2">
      {maySetRoles(rights) && <CommunitySettingsForm key={community.id} community={community} />}
      {maySetRoles(rights) && <CommunityPictures community={community} />}
      {maySetRoles(rights) && <ArchiveSection community={community} />}
      {community.joined && <ArchivedTopicsSection communityId={community.id} />}
      {community.joined && <LeaveSection community={community} />}
    </div>
  );
}

function CommunitySettingsForm({ community }: { community: Community }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [name, setName] = useState(community.name);
  const [description, setDescription] = useState(community.description);
  const [visibility, setVisibility] = useState<CommunityVisibility>(community.visibility);
  const [isSaving, setIsSaving] = useState(false);
  const [errorText, setErrorText] = useState<string | null>(null);
  const nameLength = useLength(name, LIMITS.communityName);
  const descriptionLength = useLength(description, LIMITS.communityDescription);
  const isChanged =
    name.trim() !== community.name ||
    description !== community.description ||
    visibility !== community.visibility;
  const canSave =
    isChanged && name.trim() !== "" && !nameLength.isTooLong && !descriptionLength.isTooLong && !isSaving;

  async function save(event: FormEvent) {
    event.preventDefault();
    if (!canSave) return;
    setIsSaving(true);
    try {
      await request(cached, UpdateCommunity, {
        id: community.id,
        name: name.trim(),
        description,
        visibility,
      });
      setErrorText(null);
      notify(t("community.saved"));
    } catch (error) {
      setErrorText(rejectionText(error) ?? t(failureTextKey(error)));
    }
    setIsSaving(false);
  }

  return (
    <form onSubmit={save} aria-label={t("community.settings")} className="flex flex-col gap-4">
      <LabelledField label={t("community.name")} length={nameLength}>
        {(props) => (
          <input
            {...props}
            className="field"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </LabelledField>
      <LabelledField label={t("community.description")} length={descriptionLength}>
        {(props) => (
          <textarea
            {...props}
            className="field thin-scroll field-sizing-content max-h-60 min-h-20"
            value={description}
            onChange={(event) => setDescription(event.target.value)}
          />
        )}
      </LabelledField>
      <VisibilityField value={visibility} onChange={setVisibility} />
      {errorText && (
        <p role="alert" className="text-bad">
          {errorText}
        </p>
      )}
      <Button type="submit" kind="main" disabled={!canSave} className="self-end">
        {t("save")}
      </Button>
    </form>
  );
}

function ArchiveSection({ community: { id, name, archivedAt } }: { community: Community }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [isConfirming, setIsConfirming] = useState(false);
  const isArchived = archivedAt !== null;
  async function change() {
    setIsConfirming(false);
    try {
      if (isArchived) await request(cached, UnarchiveCommunity, { id });
      else await request(cached, ArchiveCommunity, { id });
      notify(t(isArchived ? "archive.reopened" : "archive.archived", { name }));
    } catch (error) {
      notifyFailure(error);
    }
  }
  return (
    <section className="flex flex-wrap items-center justify-between gap-3 border-t border-line pt-6 sm:flex-nowrap">
      <p className="max-w-sm text-quiet">{t(isArchived ? "archive.reopenHint" : "archive.hint")}</p>
      <Button className="shrink-0" onClick={() => (isArchived ? void change() : setIsConfirming(true))}>
        {t(isArchived ? "archive.reopen" : "archive.action")}
      </Button>
      {isConfirming && (
        <ConfirmDialog
          title={t("archive.title")}
          text={t("archive.ask", { name })}
          action={t("archive.now")}
          kind="main"
          onDone={(isConfirmed) => (isConfirmed ? change() : setIsConfirming(false))}
        />
      )}
    </section>
  );
}

function LeaveSection({ community }: { community: Community }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [isConfirming, setIsConfirming] = useState(false);
  async function leave(isConfirmed: boolean) {
    setIsConfirming(false);
    if (!isConfirmed) return;
    try {
      await request(cached, LeaveCommunity, { id: community.id });
      notify(t("community.left", { name: community.name }));
      navigate({ name: "chat" });
    } catch (error) {
      const rejection = rejectionText(error);
      if (rejection) notify(t("community.lastOwner"));
      else notifyFailure(error);
    }
  }
  return (
    <section className="flex flex-wrap items-center justify-between gap-3 border-t border-line pt-6">
      <p className="text-quiet">{t("community.leaveHint")}</p>
      <Button onClick={() => setIsConfirming(true)}>{t("community.leave")}</Button>
      {isConfirming && (
        <ConfirmDialog
          title={t("community.leave")}
          text={t("community.leaveAsk", { name: community.name })}
          action={t("community.leave")}
          onDone={leave}
        />
      )}
    </section>
  );
}
