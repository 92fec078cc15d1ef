/** The field for the community that invited people join. */
import { useEffect, useState } from "react";
import { request, useApi } from "../../api/api";
import type { ResultOf } from "../../api/graphql";
import { SelectField } from "../../ui/fields/select-field";
import { useTranslation } from "../../ui/preferences";
import { OwnCommunities } from "./operations";

const MAX_COMMUNITIES = 200;

interface Props {
  communityId: string | null;
  onChange: (communityId: string | null) => void;
}

/** Offers the communities that the viewer moderates: the API refuses others. Shows nothing if there are none. */
export function InvitedCommunityField({ communityId, onChange }: Props) {
  const { t } = useTranslation();
  const communities = useModeratedCommunities();
  if (communities.length === 0) return null;
  return (
    <SelectField
      label={t("invitations.community")}
      hint={t("invitations.communityHint")}
      emptyText={t("invitations.noCommunity")}
      value={communityId}
      values={communities.map(({ id }) => id)}
      textOf={(each) => communities.find(({ id }) => id === each)?.name ?? ""}
      onChange={onChange}
    />
  );
}

/** Returns the communities that the viewer moderates; none until they are loaded, or if that fails. */
function useModeratedCommunities() {
  const { direct } = useApi();
  const [communities, setCommunities] = useState<ResultOf<typeof OwnCommunities>["communities"]>([]);
  useEffect(() => {
    request(direct, OwnCommunities, { limit: MAX_COMMUNITIES }).then(
      (answer) =>
        setCommunities(
          answer.communities.filter(({ viewerRole }) => viewerRole === "OWNER" || viewerRole === "MODERATOR"),
        ),
      () => {},
    );
  }, [direct]);
  return communities;
}
