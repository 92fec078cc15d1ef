/** The fields of attached files. */
import { graphql, type ResultOf } from "../api/graphql";

export const AttachmentParts = graphql(`
  fragment AttachmentParts on Attachment {
    id name url thumbnailUrl size width height blurhash altText
  }
`);
export type Attachment = ResultOf<typeof AttachmentParts>;
