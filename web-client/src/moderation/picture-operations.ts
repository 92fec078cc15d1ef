/** API operations of the picture and the banner of a community. */
import { graphql } from "../api/graphql";

export const SetPicture = graphql(`
  mutation SetCommunityPicture($id: ID!, $uploadId: ID!) {
    setCommunityPicture(communityId: $id, uploadId: $uploadId) { id pictureUrl }
  }
`);
export const RemovePicture = graphql(`
  mutation RemoveCommunityPicture($id: ID!) { removeCommunityPicture(communityId: $id) { id pictureUrl } }
`);
export const SetBanner = graphql(`
  mutation SetCommunityBanner($id: ID!, $uploadId: ID!) {
    setCommunityBanner(communityId: $id, uploadId: $uploadId) { id bannerUrl }
  }
`);
export const RemoveBanner = graphql(`
  mutation RemoveCommunityBanner($id: ID!) { removeCommunityBanner(communityId: $id) { id bannerUrl } }
`);
