/** The viewer's avatar and banner: the buttons with which they are chosen and removed. */
import { request, useApi } from "../api/api";
import { PictureActions } from "./picture-actions";
import { RemoveAvatar, RemoveBanner, SetAvatar, SetBanner } from "./picture-operations";

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
