/** The viewer's avatar and banner: the buttons with which they are chosen and removed. */
import { request, useApi } from "../api/api";
import { graphql } from "../api/graphql";
import { PictureActions } from "./picture-actions";

const SetAvatar = graphql(`mutation SetAvatar($id: ID!) { setAvatar(uploadId: $id) { id avatarUrl } }`);
const RemoveAvatar = graphql(`mutation RemoveAvatar { removeAvatar { id avatarUrl } }`);
const SetBanner = graphql(`mutation SetBanner($id: ID!) { setBanner(uploadId: $id) { id bannerUrl } }`);
const RemoveBanner = graphql(`mutation RemoveBanner { removeBanner { id bannerUrl } }`);

export function AvatarActions({ hasAvatar }: { hasAvatar: boolean }) {
  const { cached } = useApi();
  return (
    <PictureActions
      purpose="AVATAR"
      subject="avatar"
      hasPicture={hasAvatar}
      set={(id) => request(cached, SetAvatar, { id })}
      remove={() => request(cached, RemoveAvatar, {})}
    />
  );
}

export function BannerActions({ hasBanner }: { hasBanner: boolean }) {
  const { cached } = useApi();
  return (
    <PictureActions
      purpose="BANNER"
      subject="banner"
      hasPicture={hasBanner}
      set={(id) => request(cached, SetBanner, { id })}
      remove={() => request(cached, RemoveBanner, {})}
    />
  );
}
