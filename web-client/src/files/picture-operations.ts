/** API operations of the viewer's avatar and banner. */
import { graphql } from "../api/graphql";

export const SetAvatar = graphql(
  `mutation SetAvatar($id: ID!) { setAvatar(uploadId: $id) { id avatarUrl } }`,
);
export const RemoveAvatar = graphql(`mutation RemoveAvatar { removeAvatar { id avatarUrl } }`);
export const SetBanner = graphql(
  `mutation SetBanner($id: ID!) { setBanner(uploadId: $id) { id bannerUrl } }`,
);
export const RemoveBanner = graphql(`mutation RemoveBanner { removeBanner { id bannerUrl } }`);
