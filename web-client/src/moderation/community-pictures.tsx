/** The picture and the banner of a community: the buttons with which owners choose and remove them. */
import { request, useApi } from "../api/api";
import { PictureActions } from "../files/picture-actions";
import { useTranslation } from "../ui/preferences";
import type { Community } from "./operations";
import { RemoveBanner, RemovePicture, SetBanner, SetPicture } from "./picture-operations";

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
