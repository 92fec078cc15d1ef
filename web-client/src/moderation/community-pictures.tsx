/** The picture and the banner of a community: the buttons with which owners choose and remove them. */
import { request, useApi } from "../api/api";
import { graphql } from "../api/graphql";
import { PictureActions } from "../files/picture-actions";
import { useTranslation } from "../ui/preferences";
import type { Community } from "./operations";

const SetPicture = graphql(`
  mutation SetCommunityPicture($id: ID!, $uploadId: ID!) {
    setCommunityPicture(communityId: $id, uploadId: $uploadId) { id pictureUrl }
  }
`);
const RemovePicture = graphql(`
  mutation RemoveCommunityPicture($id: ID!) { removeCommunityPicture(communityId: $id) { id pictureUrl } }
`);
const SetBanner = graphql(`
  mutation SetCommunityBanner($id: ID!, $uploadId: ID!) {
    setCommunityBanner(communityId: $id, uploadId: $uploadId) { id bannerUrl }
  }
`);
const RemoveBanner = graphql(`
  mutation RemoveCommunityBanner($id: ID!) { removeCommunityBanner(communityId: $id) { id bannerUrl } }
`);

export function CommunityPictures({ community: { id, pictureUrl, bannerUrl } }: { community: Community }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  return (
    <section className="flex flex-col gap-3 border-t border-line pt-6">
      <p className="text-quiet">{t("communityPicture.hint")}</p>
      <PictureActions
        purpose="AVATAR"
        subject="communityPicture"
        hasPicture={pictureUrl !== null}
        set={(uploadId) => request(cached, SetPicture, { id, uploadId })}
        remove={() => request(cached, RemovePicture, { id })}
      />
      <PictureActions
        purpose="BANNER"
        subject="communityBanner"
        hasPicture={bannerUrl !== null}
        set={(uploadId) => request(cached, SetBanner, { id, uploadId })}
        remove={() => request(cached, RemoveBanner, { id })}
      />
    </section>
  );
}
